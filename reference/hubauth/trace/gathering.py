"""What is known of devices at all hubs of some traces: put aside while rows are read, judged when all are known.

There are about as many facts as requests, so those of a long trace do not stay in memory: they go to temporary files,
by what they are about, and one of these is judged after the other.
"""

import tempfile
from collections.abc import Container, Iterable, Iterator
from contextlib import ExitStack
from typing import IO, TypeAlias
from zlib import crc32

import msgspec

from hubauth.forms.events import TraceError
from hubauth.judge.across import Broken, Seen, judge_groups, keys_of
from hubauth.judge.facts import Fact

_PARTS = 32
_IN_MEMORY = 1 << 20
"""Bytes of each part that need no file."""
_Group: TypeAlias = tuple[str, str]


class _Kept(msgspec.Struct, array_like=True):
    """A fact, and what it is judged as part of."""

    trace: str
    about: str
    name: str
    hub: str
    fact: Fact


_encode = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(_Kept).decode


class Gathering:
    """The facts of every hub. Use it as a context manager."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._parts: list[IO[bytes]] = []

    def __enter__(self) -> "Gathering":
        for _ in range(_PARTS):
            self._parts.append(self._open.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="hubauth-")))
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, trace: str, hub: str, facts: Iterable[Fact]) -> None:
        """Raises TraceError if there is no room for them."""
        kept: dict[int, list[_Kept]] = {}
        for fact in facts:
            for about, name in keys_of(fact):
                part = crc32(name.encode(errors="surrogatepass")) % _PARTS
                kept.setdefault(part, []).append(_Kept(trace, about, name, hub, fact))
        try:
            for number, some in kept.items():
                self._parts[number].write(_encode(some))
        except OSError as problem:
            raise TraceError(f"cannot put aside what is known of devices: {problem.strerror}") from problem

    def broken(self, without: Container[tuple[str, str]] = ()) -> Iterator[tuple[str, Broken]]:
        """Trace, and a promise that its hubs break; of some hubs (trace and name) nothing is taken for true."""
        for part in self._parts:
            part.seek(0)
            traces: dict[str, dict[_Group, list[Seen]]] = {}
            for kept in map(_decode, part):
                if (kept.trace, kept.hub) not in without:
                    groups = traces.setdefault(kept.trace, {})
                    groups.setdefault((kept.about, kept.name), []).append((kept.hub, kept.fact))
            for trace, groups in traces.items():
                for broken in judge_groups(groups):
                    yield trace, broken
