"""Random sequences: the same for the same seed, silent about a right hub, short about a wrong one."""

from typing import Any

import pytest

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.moves import MOVES
from hubauth.oracle.conform.run import prepare
from hubauth.oracle.conform.session import Explored, explore
from hubauth.oracle.conform.subject import Subject
from hubauth.shell import engine
from hubauth.shell.addresses import parse_address
from hubauth.wire.header import Version
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.broken_extension import BROKEN_EXTENSION
from tests.oracle.conform.hubs import Described, describe, in_thread


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
    assert failure is not None and failure.repeats
    assert failure.violated.differences[0].rule == rule
    assert len(failure.moves) <= most, failure.moves
