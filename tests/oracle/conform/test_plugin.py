"""The plugin: the cases as tests of somebody else's suite, and the fixture for their own."""

import subprocess
import sys
from pathlib import Path

from hubauth.oracle.conform.cases import CASES
from tests.oracle.conform.hubs import as_process, describe, free_port, profile_toml

OWN = """
def test_keeps_its_node(hub):
    device = hub.device()
    first = device.register().node_id
    device.hang_up()
    assert hub.again(device).authenticate().node_id == first

def test_of_nothing_to_do_with_hubs():
    pass
"""


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "hubauth.pytest", "-q", "-rs", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120)


def test_cases_and_own_tests_run_together(tmp_path: Path) -> None:
    described = describe("root")
    (tmp_path / "profile.toml").write_text(profile_toml(described.profile), encoding="utf-8")
    (tmp_path / "test_own.py").write_text(OWN, encoding="utf-8")
    with as_process(described, tmp_path) as address:
        done = run_pytest(
            tmp_path,
            "--hub",
            str(address),
            "--hub-profile",
            "profile.toml",
            "-k",
            "REG or test_own",
            "--junit-xml",
            "x.xml",
        )
    assert done.returncode == 0, done.stdout + done.stderr
    about = [case for case in CASES.values() if "REG" in case.id]
    skipped = [case for case in about if set(case.needs) - described.profile.available]
    assert f"{len(about) - len(skipped) + 2} passed, {len(skipped)} skipped" in done.stdout
    assert "REG-13[v1]" in (tmp_path / "x.xml").read_text(encoding="utf-8")


def test_a_violation_fails_with_expected_and_seen(tmp_path: Path) -> None:
    described = describe("root")
    described.tables["hub"]["close_superseded"] = False
    (tmp_path / "profile.toml").write_text(profile_toml(described.profile), encoding="utf-8")
    with as_process(described, tmp_path) as address:
        done = run_pytest(tmp_path, "--hub", str(address), "--hub-profile", "profile.toml", "-k", "BIND-3 or FRAME-10")
    assert done.returncode == 1
    assert "expected  closed by the hub" in done.stdout and "seen      still open" in done.stdout
    assert "BIND-3: A device bound on a new link" in done.stdout


def test_a_hub_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "--hub", f"127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert "says nothing about any rule" in done.stdout + done.stderr


def test_without_a_hub_the_plugin_is_silent(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN, encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode == 0
    assert "1 passed, 1 skipped" in done.stdout and "needs --hub HOST:PORT" in done.stdout


def test_bad_arguments_are_usage_errors(tmp_path: Path) -> None:
    for arguments in (("--hub", "nonsense"), ("--hub", "127.0.0.1:1", "--hub-profile", "no such file")):
        done = run_pytest(tmp_path, *arguments)
        assert done.returncode == 4
        assert "Traceback" not in done.stderr
