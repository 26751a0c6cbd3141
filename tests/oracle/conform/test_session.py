"""Random sequences: the same for the same seed, silent about a right hub, short about a wrong one."""

from typing import Any

import pytest

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Authenticate
from hubauth.core.model import State
from hubauth.core.policy import Dialect, Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.moves import MOVES, guessed
from hubauth.oracle.conform.run import prepare
from hubauth.oracle.conform.session import Explored, explore
from hubauth.oracle.conform.subject import Subject
from hubauth.shell import engine
from hubauth.shell.addresses import parse_address
from hubauth.wire.header import Version
from tests.oracle.conform.breaking import Decide, body_of
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.broken_extension import BROKEN_EXTENSION
from tests.oracle.conform.hubs import Described, describe, in_thread, judge
from tests.oracle.conform.wrong import accepts_any_credential


def explored(described: Described, number: int, examples: int) -> Explored:
    with in_thread(described) as address, Subject(*address, described.profile, Version.V1) as subject:
        if described.profile.parent is not None:
            subject.listen(*parse_address(described.profile.parent.listen))
            subject.join()
        prepare(subject, Version.V1)
        return explore(subject, number=number, examples=examples)


@pytest.mark.parametrize("role", ["root", "middle"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_the_reference_agrees_with_the_core(role: str, dialect: Dialect) -> None:
    found = explored(describe(role, dialect), 7, 15)
    assert found.failure is None and found.trouble == ""
    assert found.sequences == 15 and found.steps > 100


def test_the_same_seed_makes_the_same_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[Any]] = []
    monkeypatch.setattr("hubauth.oracle.conform.session.Cast.make", lambda _, move: made[-1].append(move))
    for _ in range(2):
        made.append([])
        explored(describe("root"), 3, 5)
    made.append([])
    explored(describe("root"), 4, 5)
    assert made[0] == made[1] != made[2]
    assert {move[0] for move in made[0]} <= set(MOVES)


@pytest.mark.parametrize(
    ("name", "rule", "most"),
    [
        ("accepts any credential", "AUTH-2", 3),
        ("believes late reports", "OFF-7", 3),
        ("forgets what it owes", "EXT-12", 4),
    ],
)
def test_a_wrong_hub_is_found_and_the_sequence_is_short(
    name: str, rule: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "step", (BROKEN | BROKEN_EXTENSION)[name].decide())
    failure = explored(describe("root"), 1, 40).failure
    assert failure is not None and failure.again == 3
    assert failure.violated.differences[0].rule == rule
    assert len(failure.moves) <= most, failure.moves


def once_wrong() -> Decide:
    """A hub that takes a wrong credential for the right one, a single time."""
    done = False

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        nonlocal done
        body = body_of(happened)
        wrong = (
            isinstance(body, Authenticate)
            and body.credential == guessed(body.device_id)
            and body.device_id in state.whitelist
        )
        if not wrong or done:
            return step(policy, state, happened)
        done = True
        assert isinstance(happened, Received)
        return accepts_any_credential(policy, state, happened)

    return decide


def test_what_does_not_come_again_is_a_finding_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "step", once_wrong())
    described = describe("root")
    with in_thread(described) as address:
        judgement = judge(address, described.profile, [CASES["FRAME-10"]], sequences=40)
    found = {result.id: result for result in judgement.results if result.verdict == "fail"}
    assert set(found) == {"AUTH-2/random", "promise/AdmittedByCredential"}
    failed = found["AUTH-2/random"]
    assert "played 3 times more, showed it 0 times" in failed.reason
    assert failed.findings and not judgement.trouble
