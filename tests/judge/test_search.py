"""Where only the order on each link is known, some order explains everything, or it is said what is missing."""

from functools import cache

import msgspec
import pytest

from hubauth.core.messages import Revoke
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.forms.events import Event, Kind, Order
from hubauth.judge import search
from hubauth.judge.replay import Replay
from hubauth.judge.verdicts import Outcome
from hubauth.trace.generate import Blueprint
from hubauth.trace.shrink import shrink
from hubauth.trace.world import World
from tests.trace.harness import Generated, frame, numbered, seen_from_outside, start, verdict_of

ROOT = Policy(device_id="hub")
SOON = 1000
"""Microseconds by which the outside is late, or early; the rows of a hub are about half as far apart."""


def _received(rows: list[Event]) -> list[bytes]:
    return [event.payload for event in rows if event.kind is Kind.FRAME_IN]


@cache
def generated(fault: str = "", dialect: Dialect = Dialect.AUTH) -> Generated:
    return Generated(Blueprint(hubs=4, devices=30, events=2500, seed=1, fault=fault, dialect=dialect))


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("delay", [0, SOON])
def test_what_a_hub_did_right_is_found_right_from_outside(dialect: Dialect, delay: int) -> None:
    moved = 0
    for rows in generated(dialect=dialect).rows.values():
        outside = seen_from_outside(rows, delay)
        pairs = zip(_received(outside), _received(rows), strict=True)
        moved += sum(seen != handled for seen, handled in pairs)
        assert verdict_of(outside).outcome is Outcome.CONFORMS
    assert moved > 50 if delay else moved == 0


def test_facts_and_rules_are_those_of_the_order_that_was_found() -> None:
    rows = generated().rows["hub-1"]
    inside, outside = Replay(), Replay()
    for event in rows:
        inside.feed(event)
    for event in seen_from_outside(rows, 0):
        outside.feed(event)
    assert inside.finish().outcome is outside.finish().outcome is Outcome.CONFORMS
    assert len(inside.take_facts()) == len(outside.take_facts())
    assert set(outside.rules) >= set(inside.rules) - {"REV-18"}


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("same_credential", "REG-9"),
        ("answers_revoke", "REV-9"),
        ("lost_answer", "AUTH-1"),
        ("wrong_msg_id", "FRAME-12"),
        ("wrong_code", "AUTH-2"),
        ("no_announcement", "EXT-8"),
        ("keeps_link", "BIND-3"),
    ],
)
def test_what_a_hub_did_wrong_is_found_from_outside(fault: str, rule: str) -> None:
    trace = generated(fault)
    assert trace.plan is not None
    verdict = verdict_of(seen_from_outside(trace.rows[trace.plan.hub], SOON // 3))
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, rule)


# By hand

UP = [Event("t", "hub", 0, Kind.LINK_UP, time, link) for link, time in ((1, 10), (2, 20))]
END = Event("t", "hub", 0, Kind.END, 9_000_000)


def asks(link: int, device: bytes, time: int, msg_id: int = 1) -> Event:
    event = frame(Kind.FRAME_IN, link, b'{"action":"register","data":{"device_id":"%s"}}' % device, msg_id=msg_id)
    return msgspec.structs.replace(event, time=time)


def answered(link: int, device: bytes, node_id: int, time: int, msg_id: int = 1) -> Event:
    credential = (device * 43)[:43]
    payload = b'{"action":"register_resp","data":{"code":1,"msg":"ok","device_id":"%s","node_id":%d,"credential":"%s",'
    payload = payload % (device, node_id, credential) + b'"role":"node","perms":[]}}'
    return msgspec.structs.replace(frame(Kind.FRAME_OUT, link, payload, major=0, msg_id=msg_id, source=1), time=time)


def observed(*rows: Event) -> list[Event]:
    return numbered([start(ROOT, Order.OBSERVED), *UP, *rows, END])


def test_the_hub_may_have_handled_the_later_one_first() -> None:
    rows = [asks(1, b"a", 100), asks(2, b"b", 110), answered(2, b"b", 2, 200), answered(1, b"a", 3, 210)]
    assert verdict_of(observed(*rows)).outcome is Outcome.CONFORMS
    swapped = [asks(1, b"a", 100), asks(2, b"b", 110), answered(2, b"b", 3, 200), answered(1, b"a", 2, 210)]
    assert verdict_of(observed(*swapped)).outcome is Outcome.CONFORMS


def test_a_registration_that_fails_is_not_taken_for_an_earlier_one_with_its_number() -> None:
    def refused(code: int, time: int) -> Event:
        payload = b'{"action":"register_resp","data":{"code":%d,"msg":"no"}}' % code
        return frame(Kind.FRAME_OUT, 1, payload, major=1, msg_id=1, source=1, time=time)

    policy = Policy(device_id="hub", provisioned=(Provisioned("p", 9, "p" * 43),))
    rows = [UP[0], asks(1, b"p", 100), refused(4001, 200), asks(1, b"x", 300), refused(4500, 400), END]
    assert verdict_of(numbered([start(policy, Order.OBSERVED), *rows])).outcome is Outcome.CONFORMS


def test_no_order_explains_one_number_for_two() -> None:
    rows = [asks(1, b"a", 100), asks(2, b"b", 110), answered(2, b"b", 2, 200), answered(1, b"a", 2, 210)]
    verdict = verdict_of(observed(*rows))
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "REG-2")


def test_an_answer_cannot_come_before_its_question() -> None:
    rows = [asks(1, b"a", 100), answered(1, b"a", 2, 200), answered(2, b"b", 3, 210), asks(2, b"b", 220)]
    assert verdict_of(observed(*rows)).outcome is Outcome.VIOLATES


def test_an_answer_that_never_came_is_missed_after_a_while() -> None:
    late = [asks(1, b"a", 100), asks(2, b"b", 5_000_000), answered(2, b"b", 3, 5_000_100)]
    verdict = verdict_of(observed(*late))
    assert (verdict.outcome, verdict.rule, verdict.main.seen) == (Outcome.VIOLATES, "REG-13", "nothing")
    soon = [asks(1, b"a", 100), asks(2, b"b", 120), answered(2, b"b", 2, 200)]
    ended = msgspec.structs.replace(END, time=300)
    assert verdict_of(numbered([start(ROOT, Order.OBSERVED), *UP, *soon, ended])).outcome is Outcome.CONFORMS


def test_what_is_lost_with_a_link_is_not_missed() -> None:
    down = Event("t", "hub", 0, Kind.LINK_DOWN, 150, 1)
    assert verdict_of(observed(asks(1, b"a", 100), down)).outcome is Outcome.CONFORMS


def test_a_peer_that_only_stopped_speaking_is_still_answered() -> None:
    down = Event("t", "hub", 0, Kind.LINK_DOWN, 110, 1)
    assert verdict_of(observed(asks(1, b"a", 100), down, answered(1, b"a", 2, 200))).outcome is Outcome.CONFORMS


def test_a_hub_may_close_a_connection_for_its_own_reasons() -> None:
    close = Event("t", "hub", 0, Kind.CLOSE, 150, 1)
    assert verdict_of(observed(asks(1, b"a", 100), close)).outcome is Outcome.CONFORMS


def test_a_timeout_is_found_by_its_answer() -> None:
    child = Policy(device_id="hub", node_id=5, credential="c" * 43, has_parent=True, extension=False)
    parent = Event("t", "hub", 0, Kind.LINK_UP, 10, 0)
    joins = frame(
        Kind.FRAME_OUT, 0, b'{"action":"auth","data":{"device_id":"hub","credential":"%s"}}' % (b"c" * 43), msg_id=1
    )
    welcome = frame(
        Kind.FRAME_IN,
        0,
        b'{"action":"auth_resp","data":{"code":1,"device_id":"hub","node_id":5,"credential":"%s"}}' % (b"c" * 43),
        major=0,
        msg_id=1,
        source=1,
    )
    passed = frame(
        Kind.FRAME_OUT, 0, b'{"action":"assist_register","data":{"device_id":"a"}}', msg_id=2, source=5, target=1
    )
    gives_up = frame(
        Kind.FRAME_OUT, 1, b'{"action":"register_resp","data":{"code":4002,"msg":"late"}}', major=1, msg_id=1, source=5
    )

    def told(after: int) -> Outcome:
        times = [(joins, 20), (welcome, 30), (asks(1, b"a", 100), 100), (passed, 120), (gives_up, after)]
        rows = [msgspec.structs.replace(event, time=time) for event, time in times]
        ended = msgspec.structs.replace(END, time=after + 10)
        return verdict_of(numbered([start(child, Order.OBSERVED), parent, UP[0], *rows, ended])).outcome

    assert told(5_000_200) is Outcome.CONFORMS
    assert told(50_000) is Outcome.VIOLATES


def test_what_an_operator_might_have_done_cannot_be_told() -> None:
    rows: list[Event] = []
    world = World(2, 1, Dialect.AUTH, rows.append)
    while world.in_flight:
        world.deliver()
    world.operate(world.nodes[0], Revoke("sensor"))
    world.stop()
    own = [event for event in rows if event.hub == "hub-0"]
    assert verdict_of(seen_from_outside(own, 0)).outcome is Outcome.CONFORMS
    unexplained = seen_from_outside([event for event in own if event.kind is not Kind.OPERATOR], 0)
    verdict = verdict_of(unexplained)
    assert verdict.outcome is Outcome.CANNOT_TELL and "operator" in verdict.main.missing
    small = shrink(unexplained)
    assert len(small) <= len(unexplained) + 1 and verdict_of(small).outcome is Outcome.CANNOT_TELL


def test_a_search_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "EFFORT", 3)
    trace = generated("wrong_code")
    assert trace.plan is not None
    verdict = verdict_of(seen_from_outside(trace.rows[trace.plan.hub], SOON))
    assert verdict.outcome is Outcome.CANNOT_TELL and "the order in which the hub handled" in verdict.main.missing
