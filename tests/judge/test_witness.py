"""What frames show of devices: the same from inside and from outside, from the beginning and from a checkpoint."""

from functools import cache

import pytest

from hubauth.core.policy import Dialect
from hubauth.forms.events import Checkpoint, Event
from hubauth.judge.across import Broken, Seen, judge_all
from hubauth.judge.facts import FactKind
from hubauth.judge.replay import Replay
from hubauth.trace.generate import Blueprint, generate
from tests.trace.harness import Generated, seen_from_outside

LATE = 1000
"""Microseconds by which the outside is late, or early."""


def facts_of(rows: list[Event], replay: Replay | None = None) -> list[Seen]:
    replay = Replay() if replay is None else replay
    for event in rows:
        replay.feed(event)
    replay.finish()
    return [(rows[0].hub, fact) for fact in replay.take_facts()]


def broken_in(trace: Generated, delay: int | None = None) -> list[Broken]:
    hubs = trace.rows.values()
    return list(
        judge_all(seen for rows in hubs for seen in facts_of(rows if delay is None else seen_from_outside(rows, delay)))
    )


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("delay", [None, 0, LATE])
def test_hubs_that_do_right_break_no_promise(dialect: Dialect, delay: int | None) -> None:
    trace = Generated(Blueprint(hubs=4, devices=20, events=2500, seed=1, dialect=dialect))
    assert broken_in(trace, delay) == []


@cache
def with_fault(name: str) -> Generated:
    return Generated(Blueprint(hubs=11, devices=40, events=8000, seed=5, fault=name))


@pytest.mark.parametrize("delay", [None, LATE])
@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("admits_revoked", "RevokedStaysOut"),
        ("answers_from_cache", "CredentialsNeverCachedUpstream"),
        ("node_id_twice", "UniqueNodeIds"),
        ("same_credential", "IssuedOnce"),
    ],
)
def test_a_hub_that_breaks_one_is_seen_to_from_everywhere(fault: str, promise: str, delay: int | None) -> None:
    trace = with_fault(fault)
    assert trace.plan is not None and trace.plan.done
    assert (promise, trace.plan.hub) in {(broken.promise, broken.hub) for broken in broken_in(trace, delay)}


def test_whoever_comes_later_knows_what_the_hub_was_asked_before() -> None:
    rows: dict[str, list[Event]] = {}
    kept: list[Checkpoint] = []
    blueprint = Blueprint(hubs=4, devices=20, events=3000, seed=2, checkpoint_events=7)
    generate(blueprint, lambda event: rows.setdefault(event.hub, []).append(event), kept.append)
    waiting = 0
    admitted = {
        name: {fact.sequence: fact for _, fact in facts_of(hub) if fact.kind is FactKind.ADMITTED}
        for name, hub in rows.items()
    }
    for checkpoint in kept:
        hub, whole = rows[checkpoint.hub], admitted[checkpoint.hub]
        later = facts_of(hub[checkpoint.sequence : checkpoint.sequence + 201], Replay.resume(checkpoint))
        shown = {fact.sequence for _, fact in later if fact.kind is FactKind.ADMITTED}
        cut = {
            row for row, fact in whole.items() if fact.since < checkpoint.sequence <= row < checkpoint.sequence + 190
        }
        waiting += len(cut)
        assert cut <= shown, (checkpoint.hub, checkpoint.sequence)
    assert waiting > 5
