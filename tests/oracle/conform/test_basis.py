"""By the documents alone: a hub that does just what they say passes, and what only we decided is listed apart."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from hubauth.cli import main
from hubauth.oracle.conform.results import VIOLATES, Finding, Result, by_documents, exit_code
from hubauth.specification import rules
from tests.oracle.conform.hubs import free_port
from tests.shell.plain.harness import PROGRAM

FEATURES = ["register", "authenticate", "offline", "revoke", "routing"]
WITH_ROLES = [*FEATURES, "perms", "list_roles", "perms_invalidate"]
SECRET = "s" * 43


@contextmanager
def plain_hub(dialect: str, parent: str = "") -> Iterator[str]:
    """A hub that was written from the documents, as a process; its address."""
    pipe = subprocess.PIPE
    command = [sys.executable, str(PROGRAM), "--dialect", dialect]
    if parent:
        command += ["--parent", parent, "--joins", "--node-id", "7", "--device-id", "under-test"]
        command += [] if dialect == "flat" else ["--credential", SECRET]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield f"127.0.0.1:{json.loads(process.stdout.readline())['port']}"
        finally:
            process.stdin.close()
            process.wait(30)


@pytest.mark.parametrize(
    ("dialect", "with_parent"),
    [("auth", False), ("login", False), ("flat", False), ("auth", True), ("login", True)],
    ids=lambda value: {False: "root", True: "child"}.get(value, value),
)
def test_a_hub_that_does_what_the_documents_say_passes(
    dialect: str, with_parent: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "plain.toml"
    features = json.dumps(WITH_ROLES if dialect == "auth" else FEATURES)
    said = f'dialect = "{dialect}"\nfeatures = {features}\n'
    said += "[choices]\nrevoke_on_reregister = false\nextra_fields = true\n"
    parent = f"127.0.0.1:{free_port()}" if with_parent else ""
    if parent:
        credential = "" if dialect == "flat" else SECRET
        said += f'[hub]\nnode_id = 7\ndevice_id = "under-test"\ncredential = "{credential}"\n'
        said += f'[parent]\nlisten = "{parent}"\n'
    profile.write_text(said, encoding="utf-8")
    with plain_hub(dialect, parent) as address:
        command = ["conform", address, "--profile", str(profile), "--basis", "documents", "--examples", "0"]
        code = main([*command, "--report", str(tmp_path / "report")])
    said = capsys.readouterr().out
    results = json.loads((tmp_path / "report" / "summary.json").read_text())["results"]
    assert code == 0, said
    passed = [result for result in results if result["verdict"] == "pass"]
    apart = [result for result in results if result["verdict"] == "apart"]
    assert len(passed) >= 20 and len(apart) >= 10
    assert all(result["basis"] for result in results)
    assert "  basis     decision: " in said or "; decision: " in said
    assert "only a decision forbids it" in (tmp_path / "report" / "junit.xml").read_text()


def test_no_case_spoils_the_profile_where_only_a_decision_protects_it(capsys: pytest.CaptureFixture[str]) -> None:
    for basis, played in (("all", True), ("documents", False)):
        assert main(["conform", "--list", "--basis", basis, "--only", "REG-12", "--only", "REG-7"]) == 0
        listed = capsys.readouterr().out
        assert ("REG-12" in listed) is played and "REG-7" in listed


def failed(rule: str, **finding: str) -> Result:
    told = Finding("answer", "this", "that", **{"rule": rule, **finding})  # type: ignore[arg-type]
    return Result(rule, rule, "MUST", "", "", 1, "fail", findings=(told,))


def test_what_the_documents_forbid_is_a_failure_by_the_documents() -> None:
    documented = next(rule.id for rule in rules().values() if rule.is_documented)
    decided = next(rule.id for rule in rules().values() if not rule.is_documented)
    assert exit_code([by_documents(failed(documented))]) == VIOLATES
    assert by_documents(failed(decided)).verdict == "apart"
    assert by_documents(failed(documented, behind=decided)).verdict == "apart"
    both = replace(failed(decided), findings=failed(decided).findings + failed(documented).findings)
    assert by_documents(both).verdict == "fail"
    assert by_documents(replace(failed(decided), verdict="error")).verdict == "error"
