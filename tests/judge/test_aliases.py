"""Hubs number requests and revokes as they like, and draw journals: what is right is so under any names."""

from collections.abc import Callable
from functools import cache

import msgspec
from attrs import evolve
from immutables import Map

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Received, TimerFired
from hubauth.core.messages import Action, Answer, Frame, Major, Reason, Revoke
from hubauth.core.model import Neighbour, Session
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.forms.events import Checkpoint, Event, Kind, decode_opening, encode_opening
from hubauth.judge.aliases import Aliases
from hubauth.judge.replay import Replay
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.trace.generate import Blueprint, generate
from hubauth.wire.dialects.auth import AUTH
from tests.trace.harness import Generated, frame, numbered, verdict_of

WRONG_KIND = b'{"action":"register_resp","data":{"code":1,"msg":"ok","device_id":"d","node_id":9,"credential":"%s"}}'


@cache
def generated() -> Generated:
    """Hubs that come and go while revokes are sent to them."""
    return Generated(Blueprint(hubs=4, devices=40, events=20_000, seed=3))


def root_rows() -> list[Event]:
    return generated().rows["hub-0"]


def is_revoke(event: Event) -> bool:
    return event.kind is Kind.FRAME_OUT and b'"action":"revoke"' in event.payload


def number_of(event: Event) -> int:
    number = msgspec.json.decode(event.payload)["data"]["seq"]
    assert isinstance(number, int)
    return number


def with_number(event: Event, number: int) -> Event:
    """The same revoke under another number."""
    payload = msgspec.json.decode(event.payload)
    payload["data"]["seq"] = number
    return msgspec.structs.replace(event, payload=msgspec.json.encode(payload))


def renumbered(number: Callable[[Event, str], int]) -> Verdict:
    """The verdict on the root if its revokes had other numbers; ``number`` knows the row and the neighbour."""
    peers = {event.link: event.peer for event in root_rows() if event.kind is Kind.LINK_UP}
    return verdict_of(
        with_number(event, number(event, peers[event.link])) if is_revoke(event) else event for event in root_rows()
    )


def test_neighbours_reconnect_and_are_sent_revokes_again() -> None:
    peers = {event.link: event.peer for event in root_rows() if event.kind is Kind.LINK_UP}
    links: dict[str, set[int | None]] = {}
    numbers: dict[str, list[int]] = {}
    for event in filter(is_revoke, root_rows()):
        links.setdefault(peers[event.link], set()).add(event.link)
        numbers.setdefault(peers[event.link], []).append(number_of(event))
    assert any(len(used) > 2 for used in links.values())
    assert any(len(set(sent)) < len(sent) for sent in numbers.values())
    assert verdict_of(root_rows()).outcome is Outcome.CONFORMS


def test_numbers_of_revokes_may_leave_some_out() -> None:
    assert renumbered(lambda event, _: number_of(event) * 3 + 5).outcome is Outcome.CONFORMS


def test_a_neighbour_that_reconnects_is_not_numbered_from_the_beginning() -> None:
    next_number: dict[int | None, int] = {}

    def count(event: Event, _: str) -> int:
        next_number[event.link] = next_number.get(event.link, 0) + 1
        return next_number[event.link]

    verdict = renumbered(count)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "EXT-10")


def test_what_is_sent_again_keeps_its_number() -> None:
    last: dict[str, int] = {}

    def count(_: Event, peer: str) -> int:
        last[peer] = last.get(peer, 0) + 1
        return last[peer]

    verdict = renumbered(count)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "EXT-10")
    assert "as before" in verdict.main.expected


def test_numbers_go_on_after_a_checkpoint() -> None:
    kept: list[Checkpoint] = []
    rows: list[Event] = []
    generate(Blueprint(hubs=4, devices=40, events=8_000, seed=2, checkpoint_events=500), rows.append, kept.append)
    checkpoint = [kept_one for kept_one in kept if kept_one.hub == "hub-0"][-1]
    after = [event for event in rows if event.hub == "hub-0" and event.sequence >= checkpoint.sequence]
    first = next(filter(is_revoke, after))
    for number, outcome in ((number_of(first), Outcome.CONFORMS), (1, Outcome.VIOLATES)):
        replay = Replay.resume(checkpoint)
        for event in after:
            replay.feed(with_number(event, number) if event is first else event)
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


# Journals


def joins(event: Event) -> bool:
    return event.kind is Kind.FRAME_OUT and event.link == PARENT and b'"ext":' in event.payload


def unknown(rows: list[Event]) -> list[Event]:
    """The same rows, recorded by somebody who did not know the hub's journal."""
    opening = decode_opening(rows[0].payload)
    payload = encode_opening(msgspec.structs.replace(opening, journal=""))
    return [msgspec.structs.replace(rows[0], payload=payload), *rows[1:]]


def with_journal(event: Event, journal: str) -> Event:
    """The same join under another journal."""
    payload = msgspec.json.decode(event.payload)
    payload["data"]["ext"]["journal"] = journal
    return msgspec.structs.replace(event, payload=msgspec.json.encode(payload))


def test_a_journal_that_is_not_known_is_taken_from_what_the_hub_says() -> None:
    for hub in ("hub-0", "hub-1"):
        assert verdict_of(unknown(generated().rows[hub])).outcome is Outcome.CONFORMS


def test_a_hub_says_the_same_journal_whenever_it_joins() -> None:
    rows = unknown(generated().rows["hub-1"])
    again = [event for event in rows if joins(event)][1]
    verdict = verdict_of(with_journal(event, "another") if event is again else event for event in rows)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "EXT-2")
    assert "as before" in verdict.main.expected


def test_a_hub_whose_journal_is_known_says_that_one() -> None:
    rows = generated().rows["hub-1"]
    first = next(filter(joins, rows))
    verdict = verdict_of(with_journal(event, "another") if event is first else event for event in rows)
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "EXT-2")


def test_numbers_begin_anew_with_another_journal() -> None:
    aliases = Aliases(numbers=Map({2: Map({5: 50}), 3: Map({1: 1})}))
    known, other = Neighbour(sent=5, journal="a"), Neighbour(journal="b")
    assert aliases.after([("neighbours", 2, known, other)]).numbers == Map({3: Map({1: 1})})
    assert aliases.after([("neighbours", 2, known, Neighbour(sent=6, journal="a"))]) is aliases


def test_a_number_that_the_neighbour_has_handled_is_used_up() -> None:
    """The core goes on above it: so must a hub that was restored from a backup."""
    policy = Policy()
    session = Map({4: Session("hub-2", 2, is_hub=True, extended=True)})
    state = evolve(initial_state(policy, "own"), links=session)
    aliases = Aliases(numbers=Map({2: Map({1: 1})}))
    due = Send(4, Frame(Revoke("d", seq=8), Major.CMD, 1, 1))
    for seq, right in ((7, False), (8, True), (20, True)):
        said = frame(Kind.FRAME_OUT, 4, b'{"action":"revoke","data":{"device_id":"d","seq":%d}}' % seq)
        assert isinstance(aliases.bind(due, said, AUTH, state), Aliases) is right
