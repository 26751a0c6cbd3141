"""A failing trace made as small as it can be while it fails for the same reason."""

from collections.abc import Callable, Sequence
from itertools import combinations

import msgspec

from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.judge.replay import Replay
from hubauth.judge.search import EFFORT
from hubauth.judge.verdicts import Outcome, Verdict

ATTEMPTS = 3000
"""Replays that may be tried."""

Group = tuple[Event, ...]
"""A row and what the hub did because of it."""


def shrink(events: Sequence[Event], attempts: int = ATTEMPTS, effort: int = EFFORT) -> tuple[Event, ...]:
    """Rows of one hub, reduced; their last step is the first one that is wrong, or cannot be told about.

    Raises ValueError if the hub conforms, or no row is to blame.
    """
    events = _numbered([event for event in events if event.kind is not Kind.CHECKPOINT])
    verdict = replayed(events, effort)
    if verdict.outcome is Outcome.CONFORMS or verdict.sequence is None:
        raise ValueError(f"there is no row that does not conform: {verdict.outcome.value}")
    groups = _groups(events)
    last = next(at for at, group in enumerate(groups) if group[0].sequence <= verdict.sequence <= group[-1].sequence)
    kept = groups[: last + 1]
    left = iter(range(attempts))

    def fails(groups: Sequence[Group]) -> bool:
        """Whether it is still the last step that breaks the same rule."""
        if next(left, None) is None:
            return False
        found = replayed(_rows(groups), effort)
        begins = sum(map(len, groups[:-1]))
        is_same = found.outcome is verdict.outcome and found.rule == verdict.rule
        return is_same and found.sequence is not None and found.sequence >= begins

    while True:
        smaller = _smaller(kept, fails)
        if smaller == kept:
            return _rows(kept)
        kept = smaller


def _smaller(kept: list[Group], fails: Callable[[Sequence[Group]], bool]) -> list[Group]:
    """Without devices, links and steps that are not needed; the first and the last step stay."""
    for about in (_device, _link):
        for name in sorted({about(event) for group in kept for event in group} - {""}):
            without = _without(kept, about, name)
            if len(without) + sum(map(len, without)) < len(kept) + sum(map(len, kept)) and fails(without):
                kept = without
    start, final = kept[0], kept[-1]
    return [start, *_minimal(kept[1:-1], lambda groups: fails([start, *groups, final])), final]


def _without(groups: Sequence[Group], about: Callable[[Event], str], name: str) -> list[Group]:
    """As if a device, or whoever was on a link, had never been there."""
    final = groups[-1]
    others = [group for group in groups[1:-1] if about(group[0]) != name]
    quiet = [(group[0], *(event for event in group[1:] if about(event) != name)) for group in others]
    return [groups[0], *quiet, (final[0], *(event for event in final[1:] if about(event) != name))]


def _link(event: Event) -> str:
    return "" if event.link is None else f"{event.link:08d}"


def _device(event: Event) -> str:
    """The device that a frame is about."""
    try:
        return _About.find(event.payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


class _About(msgspec.Struct):
    device_id: str = ""
    data: "_About | None" = None

    @classmethod
    def find(cls, payload: bytes) -> str:
        about = msgspec.json.decode(payload, type=cls)
        return about.data.device_id if about.data is not None else about.device_id


def replayed(events: Sequence[Event], effort: int = EFFORT) -> Verdict:
    """The verdict about rows that are complete."""
    replay = Replay(effort=effort)
    for event in events:
        replay.feed(event)
    return replay.finish()


def _groups(events: Sequence[Event]) -> list[Group]:
    groups: list[list[Event]] = []
    for event in events:
        if event.kind in OUTPUTS and groups:
            groups[-1].append(event)
        else:
            groups.append([event])
    return [tuple(group) for group in groups]


def _rows(groups: Sequence[Group]) -> tuple[Event, ...]:
    """Everything in a row, and an end."""
    rows = [event for group in groups for event in group]
    first = rows[0]
    return _numbered([*rows, Event(first.trace, first.hub, 0, Kind.END, rows[-1].time)])


def _numbered(events: Sequence[Event]) -> tuple[Event, ...]:
    return tuple(msgspec.structs.replace(event, sequence=at) for at, event in enumerate(events))


def _minimal(groups: list[Group], fails: Callable[[Sequence[Group]], bool]) -> list[Group]:
    """Delta debugging: leave out ever smaller parts for as long as it still fails."""
    size = max(len(groups) // 2, 1)
    while groups:
        at = 0
        left_out = False
        while at < len(groups):
            kept = groups[:at] + groups[at + size :]
            if fails(kept):
                groups, left_out = kept, True
            else:
                at += size
        if size == 1 and not left_out:
            break
        size = max(size // 2, 1)
    return _without_few(groups, fails)


def _without_few(groups: list[Group], fails: Callable[[Sequence[Group]], bool]) -> list[Group]:
    """Two or three that belong together, wherever they are."""
    for count in (2, 3):
        for places in combinations(range(len(groups)), count):
            kept = [group for at, group in enumerate(groups) if at not in places]
            if fails(kept):
                return _minimal(kept, fails)
    return groups
