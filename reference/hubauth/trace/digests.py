"""Running digests of what passed over connections: where those of both ends are equal, no frame is looked at again.

A digest is a polynomial over the frames of one direction at one end, so that those of two pieces of a hub's rows make
that of both together. It tells honest recordings apart; it does not withstand frames that were chosen to be alike.
"""

from collections.abc import Container, Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

import msgspec

from hubauth.core.inputs import PARENT
from hubauth.forms.events import FRAMES, Event, Kind

TRAIL = 512
"""Frames at the end of a direction after each of which the digest is kept: so many may be lost with a connection."""
_PRIME = (1 << 61) - 1
_BASE = 0x1B873593CC9E2D51 % _PRIME
_FRAME_OUT, _LINK_UP = Kind.FRAME_OUT, Kind.LINK_UP

header_of = attrgetter(
    *("header", "major", "sub_proto", "flags", "msg_id", "source", "target"),
    *("trace_id", "hop_limit", "timestamp"),
)
"""What of a frame is the same at both ends, beside its payload."""


class Flow(msgspec.Struct, array_like=True):
    """The frames of one direction at one end; payloads apart, for under different keys only headers are alike."""

    frames: int = 0
    headers: int = 0
    payloads: int = 0
    trail: list[tuple[int, int]] = []
    """Of what was sent: the digests after each of the last frames."""

    def add(self, event: Event) -> None:
        self.frames += 1
        self.headers = (self.headers * _BASE + hash(header_of(event))) % _PRIME
        self.payloads = (self.payloads * _BASE + hash(event.payload)) % _PRIME

    def add_sent(self, event: Event) -> None:
        self.add(event)
        trail = self.trail
        if len(trail) >= 2 * TRAIL:
            del trail[:TRAIL]
        trail.append((self.headers, self.payloads))

    def then(self, later: "Flow") -> "Flow":
        """This, and after it another piece of the same direction."""
        first = later.frames - len(later.trail) + 1
        trail = [
            (self._shifted(self.headers, first + at, headers), self._shifted(self.payloads, first + at, payloads))
            for at, (headers, payloads) in enumerate(later.trail)
        ]
        return Flow(
            self.frames + later.frames,
            self._shifted(self.headers, later.frames, later.headers),
            self._shifted(self.payloads, later.frames, later.payloads),
            [*self.trail, *trail][-TRAIL:] if first == 1 else trail,
        )

    @staticmethod
    def _shifted(before: int, frames: int, after: int) -> int:
        return (before * pow(_BASE, frames, _PRIME) + after) % _PRIME

    def begins_with(self, received: "Flow", *, payloads: bool) -> bool:
        """Whether it is known, without looking at frames, that what was ``received`` is what was sent first."""
        missing = self.frames - received.frames
        if missing == 0 or not received.frames:
            sent = (self.headers, self.payloads)
        elif 0 < missing < len(self.trail):
            sent = self.trail[-1 - missing]
        else:
            return False
        return not received.frames or (sent[0] == received.headers and (sent[1] == received.payloads or not payloads))


class End(msgspec.Struct, array_like=True):
    """One end of a connection, or what a piece of a hub's rows shows of it."""

    is_lower: bool
    """Whether it is the hub's link to its parent."""
    begins: bool = False
    ended: bool = False
    sent: Flow = msgspec.field(default_factory=Flow)
    received: Flow = msgspec.field(default_factory=Flow)

    def then(self, later: "End") -> "End":
        """This, and what the rows after it show."""
        ended, begins = self.ended or later.ended, self.begins or later.begins
        return End(self.is_lower, begins, ended, self.sent.then(later.sent), self.received.then(later.received))


Seen: TypeAlias = tuple[str, End]
"""The name of a connection, and what was seen of it."""


class Digests:
    """Feed it the rows of one hub in order; ``take`` gives the ends that are finished since they were taken last.

    Only those of the connections that are ``wanted``, if that is said.
    """

    def __init__(self, wanted: Container[str] | None = None) -> None:
        self._wanted = wanted
        self._open: dict[str, End] = {}
        self._above: dict[str, End] = {}
        """The upper ends, most of which are of devices; apart, for a hub may be at both ends of a connection."""
        self._done: list[Seen] = []

    def feed(self, event: Event) -> None:
        """The next row."""
        connection = event.connection
        if not connection or (self._wanted is not None and connection not in self._wanted):
            return
        ends = self._open if event.link == PARENT else self._above
        end = ends.get(connection)
        if end is None:
            end = ends[connection] = End(event.link == PARENT)
        kind = event.kind
        if kind in FRAMES:
            if kind is _FRAME_OUT:
                end.sent.add_sent(event)
            else:
                end.received.add(event)
        elif kind is _LINK_UP:
            end.begins = True
        else:
            end.ended = True
            del ends[connection]
            self._done.append((connection, end))

    def take(self) -> list[Seen]:
        done, self._done = self._done, []
        return done

    def rest(self) -> list[Seen]:
        """After the last row: everything that was not taken yet."""
        done = [*self.take(), *self._open.items(), *self._above.items()]
        self._open, self._above = {}, {}
        return done


class Way(msgspec.Struct, frozen=True):
    """One direction of a connection between two recorded hubs."""

    upwards: bool
    ended: bool
    sent: int
    received: int
    is_settled: bool
    """Whether what was received is known to be what was sent; else only the frames can tell."""

    @property
    def is_flying(self) -> bool:
        """Something is still to arrive."""
        return self.sent > self.received and not self.ended


def ways_of(ends: Iterable[tuple[str, End]], *, payloads: bool) -> Iterator[Way]:
    """The directions of one connection, from what each hub (its name) shows of it, in order; nothing, if one end is
    not recorded from its beginning.

    Whether ``payloads`` look the same at both ends.
    """
    together: dict[tuple[str, bool], End] = {}
    for hub, end in ends:
        before = together.get((hub, end.is_lower))
        together[hub, end.is_lower] = end if before is None else before.then(end)
    below = [end for end in together.values() if end.is_lower]
    above = [end for end in together.values() if not end.is_lower]
    if not any(end.begins for end in below) or not any(end.begins for end in above):
        return
    ended = any(end.ended for end in together.values())
    alone = len(below) == len(above) == 1
    for upwards, senders, receivers in ((True, below, above), (False, above, below)):
        sent, received = sum(end.sent.frames for end in senders), sum(end.received.frames for end in receivers)
        if sent or received:
            settled = alone and senders[0].sent.begins_with(receivers[0].received, payloads=payloads)
            yield Way(upwards, ended, sent, received, settled)
