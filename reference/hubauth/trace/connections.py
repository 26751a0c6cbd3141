"""The connections between the hubs of some files: digests of all, and a second look at what these leave open."""

from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from hubauth.forms.events import Event, TraceError, decode_opening
from hubauth.judge.verdicts import Verdict
from hubauth.trace.digests import Digests, End, Way, ways_of
from hubauth.trace.ends import Ends
from hubauth.trace.storage import read_events, read_links_to_parents

_Name: TypeAlias = tuple[str, str]
"""Trace, and hub or connection."""


class Connections:
    """What passed over them. Most connections of a hub are to devices, of which nobody recorded the other end: which
    are not is looked up first."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = [*files]
        self._wanted: dict[str, set[str]] = {}
        for file in self._files:
            for trace, connection in read_links_to_parents(file):
                self._wanted.setdefault(trace, set()).add(connection)
        self._hubs: dict[_Name, Digests] = {}
        self._tokens: dict[_Name, str] = {}
        """Hub -> what tells the key that its payloads were redacted under."""

    def of(self, trace: str, hub: str) -> Digests:
        """To be fed that hub's rows."""
        digests = self._hubs.get((trace, hub))
        if digests is None:
            digests = self._hubs[trace, hub] = Digests(self._wanted.setdefault(trace, set()))
        return digests

    def opens(self, start: Event) -> None:
        """A hub's start row was read."""
        with suppress(TraceError):  # whoever replays the hub says so
            self._tokens[start.trace, start.hub] = decode_opening(start.payload).tokens

    def each_key(self) -> Iterator[_Name]:
        """Trace, and a key under which payloads of it were redacted."""
        for (trace, _), key in self._tokens.items():
            yield trace, key

    def finish(self, damaged: Container[str]) -> tuple[list[_Name], list[Verdict]]:
        """After the last row: the connections (trace and name) that have not ended and on which something is still to
        arrive, and a verdict about each on which something else arrived than was sent. What a ``damaged`` log of one
        hub says about a connection proves nothing.
        """
        flying: list[_Name] = []
        unsettled: set[_Name] = set()
        for name, ends in self._together().items():
            for way in self._ways(name[0], ends):
                if way.is_flying:
                    flying.append(name)
                if not way.is_settled and not any(hub in damaged for hub, _ in ends):
                    unsettled.add(name)
        return flying, self._compare(unsettled, damaged) if unsettled else []

    def _together(self) -> dict[_Name, list[tuple[str, End]]]:
        ends: dict[_Name, list[tuple[str, End]]] = {}
        for (trace, hub), digests in self._hubs.items():
            for connection, end in digests.rest():
                ends.setdefault((trace, connection), []).append((hub, end))
        return ends

    def _ways(self, trace: str, ends: list[tuple[str, End]]) -> Iterator[Way]:
        keys = {self._tokens.get((trace, hub), "") for hub, _ in ends}
        return ways_of(ends, payloads=len(keys) == 1)

    def _compare(self, unsettled: set[_Name], damaged: Container[str]) -> list[Verdict]:
        """Frame by frame."""
        ends = Ends(unsettled)
        for file in self._files:
            with suppress(TraceError):  # that was said when it was read first
                for event in read_events(file):
                    ends.feed(event)
        return ends.verdicts(damaged)
