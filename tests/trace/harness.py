"""Traces for tests: generated ones, and small ones written by hand."""

from collections.abc import Iterable, Sequence
from random import Random

import msgspec

from hubauth.core.policy import Policy
from hubauth.forms.events import OUTPUTS, Checkpoint, Event, Kind, Opening, Order, decode_opening, encode_opening
from hubauth.forms.policies import form_of
from hubauth.judge.replay import Replay, Seal, seal_of
from hubauth.judge.verdicts import Verdict
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.planting import Plan


class Generated:
    """A generated trace, in memory."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.rows: dict[str, list[Event]] = {}
        self.all: list[Event] = []
        self.seals: dict[str, dict[int, Seal]] = {}
        self.begins: dict[str, Checkpoint] = {}
        self.plan: Plan | None = generate(blueprint, self._add, self._keep)

    def _add(self, event: Event) -> None:
        self.all.append(event)
        self.rows.setdefault(event.hub, []).append(event)

    def _keep(self, checkpoint: Checkpoint) -> None:
        self.seals.setdefault(checkpoint.hub, {})[checkpoint.sequence] = seal_of(checkpoint)
        if not checkpoint.sequence:
            self.begins[checkpoint.hub] = checkpoint

    def verdicts(self) -> dict[str, Verdict]:
        return {
            hub: verdict_of(rows, self.seals.get(hub, {}), begins=self.begins.get(hub))
            for hub, rows in self.rows.items()
        }


def verdict_of(
    rows: Iterable[Event],
    seals: dict[int, Seal] | None = None,
    policy: Policy | None = None,
    begins: Checkpoint | None = None,
) -> Verdict:
    replay = Replay(policy, seals, begins)
    for event in rows:
        replay.feed(event)
    return replay.finish()


def start(policy: Policy, order: Order = Order.HANDLED) -> Event:
    opening = Opening(order, form_of(policy))
    return Event("t", "hub", 0, Kind.START, 1, payload=encode_opening(opening))


def numbered(rows: Sequence[Event]) -> list[Event]:
    return [msgspec.structs.replace(event, sequence=at) for at, event in enumerate(rows)]


def frame(kind: Kind, link: int, payload: bytes, **header: int | str) -> Event:
    """A row with a frame of SubProto 2; ``major`` is Cmd unless told otherwise."""
    event = Event("t", "hub", 0, kind, 1, link, header=1, major=3, sub_proto=2, payload=payload)
    return msgspec.structs.replace(event, **header)


def seen_from_outside(rows: Sequence[Event], delay: int, seed: int = 1) -> list[Event]:
    """What somebody outside sees of a hub: inputs up to ``delay`` microseconds early, outputs as late, no timers.

    On each link and in each direction the order stays, and nobody answers before the question has gone by.
    """
    random = Random(seed)
    last: dict[tuple[int | None, bool], int] = {}
    seen: list[tuple[int, int, Event]] = []
    answers = _times_of_next_answers(rows)
    for number, event in enumerate(rows):
        if event.kind in (Kind.CHECKPOINT, Kind.TIMER):
            continue
        if event.kind is Kind.START:
            opening = decode_opening(event.payload)
            payload = encode_opening(Opening(Order.OBSERVED, opening.policy))
            seen.append((0, number, msgspec.structs.replace(event, payload=payload)))
            continue
        shift = random.randrange(delay) if delay else 0
        is_output = event.kind in OUTPUTS
        ways = [(event.link, is_output)]
        if event.kind in (Kind.LINK_UP, Kind.LINK_DOWN, Kind.CLOSE) or _is_answer(event):
            ways = [(event.link, True), (event.link, False)]
        time = min(event.time + shift, answers[number]) if is_output else event.time - shift
        time = max([time, *(last.get(way, 0) for way in ways)])
        last.update({way: time for way in ways if not _is_answer(event) or way[1] is is_output})
        seen.append((time if event.kind is not Kind.END else 1 << 60, number, event))
    seen.sort(key=lambda item: item[:2])
    timed = [(min(time, event.time + delay) or event.time, event) for time, _, event in seen]
    return numbered([msgspec.structs.replace(event, time=time) for time, event in timed])


def _is_answer(event: Event) -> bool:
    return event.kind is Kind.FRAME_IN and event.major in (0, 1)


def _times_of_next_answers(rows: Sequence[Event]) -> list[int]:
    """For each row, when the next answer on its link was handled."""
    times: list[int] = []
    upcoming: dict[int | None, int] = {}
    for event in reversed(rows):
        times.append(upcoming.get(event.link, 1 << 60))
        if _is_answer(event) or event.kind in (Kind.LINK_DOWN, Kind.CLOSE):
            upcoming[event.link] = event.time
    return times[::-1]
