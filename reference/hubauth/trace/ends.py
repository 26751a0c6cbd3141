"""Both ends of every connection between two recorded hubs: what one received is what the other sent."""

from collections import deque
from collections.abc import Container
from contextlib import suppress

from attrs import define, field

from hubauth.core.inputs import PARENT
from hubauth.forms.events import FRAMES, OUTPUTS, Event, Kind, TraceError, decode_opening
from hubauth.judge.compare import show_event
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.trace.digests import header_of


@define
class _Way:
    """One direction of a connection: what one end has seen and the other not yet."""

    sent: deque[Event] = field(factory=deque)
    received: deque[Event] = field(factory=deque)
    broken: bool = False


class Ends:
    """Feed it the rows of all hubs, each hub's in order; hubs may come one after the other or mixed.

    It keeps every frame that only one end has seen so far. Given what ``unsettled`` connections there are (trace and
    name), it looks at those alone: at what ``hubauth.trace.digests`` does not settle.
    """

    def __init__(self, unsettled: Container[tuple[str, str]] | None = None) -> None:
        self._unsettled = unsettled
        self._ways: dict[tuple[str, str, bool], _Way] = {}
        self._below: dict[tuple[str, str], str] = {}
        """Connection -> the hub at its lower end, if that is recorded."""
        self._above: dict[tuple[str, str], str] = {}
        self._found: dict[tuple[str, str], Verdict] = {}
        self._tokens: dict[tuple[str, str], str] = {}
        """Hub -> what tells the key that its payloads were redacted under."""

    def feed(self, event: Event) -> None:
        kind = event.kind
        if kind is Kind.START:
            with suppress(TraceError):  # whoever replays the hub says so
                self._tokens[event.trace, event.hub] = decode_opening(event.payload).tokens
        if not event.connection:
            return
        if self._unsettled is not None and (event.trace, event.connection) not in self._unsettled:
            return
        if kind in FRAMES:
            is_sent = kind in OUTPUTS
            key = (event.trace, event.connection, is_sent == (event.link == PARENT))
            way = self._ways.get(key)
            if way is None:
                way = self._ways[key] = _Way()
            (way.sent if is_sent else way.received).append(event)
            if way.sent and way.received and not way.broken:
                self._compare(way)
        elif kind is Kind.LINK_UP:
            (self._below if event.link == PARENT else self._above)[event.trace, event.connection] = event.hub

    def _compare(self, way: _Way) -> None:
        sent, received = way.sent.popleft(), way.received.popleft()
        if header_of(sent) != header_of(received) or (
            self._are_alike(sent, received) and sent.payload != received.payload
        ):
            way.broken = True
            self._note(received, show_event(sent))

    def _are_alike(self, sent: Event, received: Event) -> bool:
        """Whether payloads can be compared: under different keys the same one looks different."""
        trace = sent.trace
        return self._tokens.get((trace, sent.hub), "") == self._tokens.get((trace, received.hub), "")

    def verdicts(self, damaged: Container[str] = ()) -> list[Verdict]:
        """Every connection on which something else arrived than was sent. Frames under way at the end are no matter.

        What a damaged log of one hub says about a connection proves nothing.
        """
        both = self._below.keys() & self._above.keys()
        for (trace, connection, _), way in self._ways.items():
            if way.received and not way.broken and (trace, connection) in both:
                self._note(way.received[0], "nothing more")
        self._ways.clear()
        return [
            verdict
            for key, verdict in self._found.items()
            if key in both and self._below[key] not in damaged and self._above[key] not in damaged
        ]

    def _note(self, event: Event, expected: str) -> None:
        self._found.setdefault((event.trace, event.connection), _wrong(event, expected, show_event(event)))


def _wrong(event: Event, expected: str, seen: str) -> Verdict:
    why = {"expected": expected, "seen": seen, "leads": (event,)}
    return Verdict.of(Outcome.VIOLATES, event.trace, event.hub, 1, sequence=event.sequence, rule="TRACE-4", **why)
