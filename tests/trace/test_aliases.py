"""Hubs number their own requests and revokes as they like: right is right under any numbers, wrong stays wrong."""

from collections.abc import Callable
from functools import cache

import msgspec
from immutables import Map

from hubauth.core.inputs import PARENT, Received, TimerFired
from hubauth.core.messages import Action, Answer, Frame, Major, Reason
from hubauth.trace.aliases import Aliases
from hubauth.trace.events import Checkpoint, Event, Kind
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.replay import Replay
from hubauth.trace.verdicts import Outcome, Verdict
from tests.trace.harness import Generated, numbered, verdict_of

WRONG_KIND = b'{"action":"register_resp","data":{"code":1,"msg":"ok","device_id":"d","node_id":9,"credential":"%s"}}'


@cache
def generated() -> Generated:
    """Hubs that come and go while revokes are sent to them."""
    return Generated(Blueprint(hubs=4, devices=40, events=20_000, seed=3))


def root_rows() -> list[Event]:
    return generated().rows["hub-0"]


def is_revoke(event: Event) -> bool:
    return event.kind is Kind.FRAME_OUT and b'"action":"revoke"' in event.payload


def renumbered(number: Callable[[Event, str], int]) -> Verdict:
    """The verdict on the root if its revokes had other numbers; ``number`` knows the row and the neighbour."""
    peers = {event.link: event.peer for event in root_rows() if event.kind is Kind.LINK_UP}
    rows = [
        msgspec.structs.replace(event, msg_id=number(event, peers[event.link])) if is_revoke(event) else event
        for event in root_rows()
    ]
    return verdict_of(rows)


def test_neighbours_reconnect_and_are_sent_revokes_again() -> None:
    peers = {event.link: event.peer for event in root_rows() if event.kind is Kind.LINK_UP}
    links: dict[str, set[int | None]] = {}
    numbers: dict[str, list[int]] = {}
    for event in filter(is_revoke, root_rows()):
        links.setdefault(peers[event.link], set()).add(event.link)
        numbers.setdefault(peers[event.link], []).append(event.msg_id)
    assert any(len(used) > 2 for used in links.values())
    assert any(len(set(sent)) < len(sent) for sent in numbers.values())
    assert verdict_of(root_rows()).outcome is Outcome.CONFORMS


def test_numbers_of_revokes_may_leave_some_out() -> None:
    assert renumbered(lambda event, _: event.msg_id * 3 + 5).outcome is Outcome.CONFORMS


def test_a_neighbour_that_reconnects_is_not_numbered_from_the_beginning() -> None:
    next_number: dict[int | None, int] = {}

    def count(event: Event, _: str) -> int:
        next_number[event.link] = next_number.get(event.link, 0) + 1
        return next_number[event.link]

    verdict = renumbered(count)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "REV-15")


def test_what_is_sent_again_keeps_its_number() -> None:
    last: dict[str, int] = {}

    def count(_: Event, peer: str) -> int:
        last[peer] = last.get(peer, 0) + 1
        return last[peer]

    verdict = renumbered(count)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "REV-15")
    assert "as before" in verdict.expected


def test_numbers_go_on_after_a_checkpoint() -> None:
    kept: list[Checkpoint] = []
    rows: list[Event] = []
    generate(Blueprint(hubs=4, devices=40, events=8_000, seed=2, checkpoint_events=500), rows.append, kept.append)
    checkpoint = [kept_one for kept_one in kept if kept_one.hub == "hub-0"][-1]
    after = [event for event in rows if event.hub == "hub-0" and event.sequence >= checkpoint.sequence]
    first = next(filter(is_revoke, after))
    for number, outcome in ((first.msg_id, Outcome.CONFORMS), (1, Outcome.VIOLATES)):
        replay = Replay.resume(checkpoint)
        for event in after:
            replay.feed(msgspec.structs.replace(event, msg_id=number) if event is first else event)
        assert replay.finish().outcome is outcome


def test_an_answer_of_another_kind_settles_nothing() -> None:
    rows: list[Event] = []
    asked: set[int] = set()
    for event in generated().rows["hub-1"]:
        own = event.link == PARENT and b'"action":"revoke' not in event.payload
        if own and event.kind is Kind.FRAME_OUT and event.major == Major.CMD:
            event = msgspec.structs.replace(event, msg_id=event.msg_id + 70_000)
            asked.add(event.msg_id)
        elif own and event.kind is Kind.FRAME_IN and event.major != Major.CMD and event.msg_id + 70_000 in asked:
            event = msgspec.structs.replace(event, msg_id=event.msg_id + 70_000)
            rows.append(msgspec.structs.replace(event, major=Major.OK_RESP, payload=WRONG_KIND % (b"c" * 43)))
        elif event.kind is Kind.TIMER and event.msg_id + 70_000 in asked:
            event = msgspec.structs.replace(event, msg_id=event.msg_id + 70_000)
        rows.append(event)
    assert len(rows) > len(generated().rows["hub-1"]) + 100
    verdict = verdict_of(numbered(rows))
    assert verdict.outcome is Outcome.CONFORMS, verdict


def test_the_answer_to_a_revoke_keeps_its_number() -> None:
    aliases = Aliases(Map({(PARENT, 50): 5}), Map({5: (PARENT, 50)}))
    for msg_id in (5, 50):
        answer = Answer(Action.REVOKE, Reason.OK, "d", 9)
        received = Received(PARENT, Frame(answer, Major.OK_RESP, msg_id, 1, 9))
        assert aliases.translate(received) == received


def test_a_timer_of_the_hubs_own_is_not_one_that_the_core_calls_the_same() -> None:
    aliases = Aliases(Map({(PARENT, 50): 5}), Map({5: (PARENT, 50)}))
    assert aliases.translate(TimerFired(50)) == TimerFired(5)
    assert aliases.translate(TimerFired(5)) == TimerFired(0)
    assert aliases.translate(TimerFired(6)) == TimerFired(6)
