"""A hub that shares no code with the reference is judged fairly: what it can do passes, what it does wrong is named."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.profile import Profile, TimeoutsTable
from hubauth.oracle.conform.results import VIOLATIONS, exit_code
from hubauth.oracle.report import table
from hubauth.shell.addresses import Address
from tests.oracle.conform.hubs import judge, patient

SOURCE = Path(__file__).parent / "tiny_hub.py"
PROFILE = Profile(
    name="tiny",
    dialect=Dialect.LOGIN,
    features=("register", "authenticate", "offline", "routing"),
    timeouts=TimeoutsTable(connect=30.0, answer=5.0, silence=0.2),
)

FAULTS = {
    "superseded": ("BIND-3", "connection of device 1", "closed by the hub", "still open"),
    "major": ("FRAME-13", "Major", "ERR_RESP", "OK_RESP"),
    "credential": ("REG-4", "credential", "one never issued before", None),
    "short": ("REG-4", "credential", "43 characters of base64url", None),
}


@contextmanager
def tiny_hub(fault: str = "") -> Iterator[Address]:
    command = [sys.executable, str(SOURCE), "0", fault]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Address("127.0.0.1", int(process.stdout.readline()))
        finally:
            process.kill()


def test_it_shares_nothing_with_the_reference() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported and not any(name.startswith("hubauth") for name in imported)
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


def test_it_passes_what_it_declares() -> None:
    with tiny_hub() as address:
        judgement = judge(address, patient(PROFILE), sequences=20)
    assert exit_code(judgement.results) == 0, table(judgement)
    assert sum(result.verdict == "pass" for result in judgement.results) > 50
    assert judgement.sequences == 20


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_told_where_it_fails(fault: str) -> None:
    rule, what, expected, seen = FAULTS[fault]
    with tiny_hub(fault) as address:
        judgement = judge(address, PROFILE)
    failed = {result.rule: result for result in judgement.results if result.verdict in VIOLATIONS}
    assert rule in failed, table(judgement)
    findings = [(one.what, one.expected, one.seen) for one in failed[rule].findings]
    assert any(one[:2] == (what, expected) and seen in (None, one[2]) for one in findings), findings
    assert exit_code(judgement.results) == 1
    assert len(failed) <= 2 and sum(result.verdict == "pass" for result in judgement.results) > 40, table(judgement)
