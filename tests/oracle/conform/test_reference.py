"""The reference hub, a process of its own, passes everything: every dialect, both headers, root, child and middle."""

from pathlib import Path
from typing import Any

import pytest

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.results import exit_code
from hubauth.oracle.conform.unasked import UNASKED
from hubauth.oracle.report import table
from hubauth.specification import rules
from tests.oracle.conform.hubs import as_process, describe, judge

CHOICES: dict[str, dict[str, Any]] = {
    "assist none": {"assist": "none"},
    "assist query": {"assist": "query"},
    "register after revoke": {"reregister": "after_revoke"},
    "quiet": {"answer_offline": False, "answer_mismatch": False},
    "keeps connections": {"close_superseded": False, "close_on_revoke": False},
    "no revoke on register": {"revoke_on_reregister": False},
}


@pytest.mark.slow
@pytest.mark.parametrize("role", ["root", "child", "middle"])
@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("headers", [(1, 2), (2, 1)], ids=["parent-v1", "parent-v2"])
def test_the_reference_passes(role: str, dialect: Dialect, headers: tuple[int, ...], tmp_path: Path) -> None:
    if role == "root" and headers == (2, 1):
        pytest.skip("a root has no parent to speak another version to")
    described = describe(role, dialect, headers)
    with as_process(described, tmp_path) as address:
        judgement = judge(address, described.profile, sequences=10)
    verdicts = {result.verdict for result in judgement.results}
    assert verdicts <= {"pass", "info", "skipped"}, table(judgement)
    assert exit_code(judgement.results) == 0
    assert {result.header for result in judgement.results if result.verdict == "pass"} == {1, 2}
    assert judgement.sequences == 20 and judgement.steps > 100


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("role", ["root", "middle"])
def test_the_reference_passes_whichever_way_it_chose(choice: str, role: str, tmp_path: Path) -> None:
    described = describe(role, **CHOICES[choice])
    about = [case for case in CASES.values() if case.rule.id.partition("-")[0] in ("REG", "AUTH", "BIND", "OFF", "REV")]
    with as_process(described, tmp_path) as address:
        judgement = judge(address, described.profile, about)
    assert {result.verdict for result in judgement.results} <= {"pass", "info", "skipped"}, table(judgement)


def test_every_rule_is_asked_about_or_has_a_reason_not_to_be() -> None:
    asked = {case.rule.id for case in CASES.values()}
    assert asked | set(UNASKED) == set(rules())
    assert not asked & set(UNASKED)
