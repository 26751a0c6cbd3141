"""Every hub that is wrong on purpose is found out, by the rule that it breaks, and for no other reason."""

import pytest

from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.declare import Case
from hubauth.oracle.conform.results import VIOLATIONS, exit_code
from hubauth.oracle.report import table
from hubauth.shell import engine
from hubauth.wire.framing import encode_frame
from tests.oracle.conform.breaking import Broken, spoiling
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.broken_extension import BROKEN_EXTENSION
from tests.oracle.conform.broken_plain import BROKEN_PLAIN
from tests.oracle.conform.broken_promises import BROKEN_PROMISES
from tests.oracle.conform.hubs import describe, in_thread, judge


def about(rule: str) -> list[Case]:
    """The cases of a rule, and every case they depend on."""
    wanted = {case.id for case in CASES.values() if case.rule.id == rule}
    for case in reversed(CASES.values()):
        if case.id in wanted:
            wanted |= set(case.depends_on)
    return [case for case in CASES.values() if case.id in wanted]


ALL = BROKEN | BROKEN_EXTENSION | BROKEN_PLAIN | BROKEN_PROMISES


@pytest.mark.parametrize("name", ALL)
def test_a_broken_hub_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Broken = ALL[name]
    described = describe(broken.role, headers=(2,), **broken.profile)
    described.tables["hub"] |= broken.hub
    described.tables["limits"] |= broken.limits
    monkeypatch.setattr(engine, "step", broken.decide())
    if broken.spoil is not None:
        monkeypatch.setattr(engine, "encode_frame", spoiling(broken.spoil, encode_frame))
    with in_thread(described) as address:
        judgement = judge(address, described.profile, about(broken.rule))
    failed = {result.rule for result in judgement.results if result.verdict in VIOLATIONS}
    assert failed == {broken.rule} | broken.also | broken.promises, table(judgement)
    for result in judgement.results:
        if result.rule in broken.promises:
            assert result.id == f"promise/{result.rule}" and result.findings[0].case and result.exchange
    assert exit_code(judgement.results) == 1


def test_the_promises_that_can_be_seen_from_outside_convict_somebody() -> None:
    shown = {promise for broken in ALL.values() for promise in broken.promises}
    assert shown == {
        "OneToOneBinding",
        "UniqueNodeIds",
        "NoAnswerWithoutRequest",
        "AdmittedByCredential",
        "RevokedStaysOut",
        "NoLockOut",
    }


def test_there_are_enough_of_them() -> None:
    assert len(ALL) >= 15
    assert {broken.rule for broken in ALL.values()} <= {case.rule.id for case in CASES.values()}
