"""Files of JSON Lines: one row, or one checkpoint, per line."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from hubauth import private
from hubauth.core.inputs import PARENT
from hubauth.forms.events import Checkpoint, Event, Kind, TraceError
from hubauth.forms.lines import decode_checkpoint, decode_event, encode_checkpoint, encode_event

LONGEST_LINE = 1 << 29
"""Bytes of a row or checkpoint: of a file that has no lines at all no more is read."""


def read_events(path: Path) -> Iterator[Event]:
    """The rows of a file, one at a time. Raises TraceError that names the line."""
    for number, line in lines(path):
        try:
            yield decode_event(line)
        except TraceError as problem:
            raise TraceError(f"{path}:{number}: {problem}") from problem


def read_checkpoints(path: Path) -> Iterator[Checkpoint]:
    """Likewise for a file of checkpoints."""
    for number, line in lines(path):
        try:
            yield decode_checkpoint(line)
        except TraceError as problem:
            raise TraceError(f"{path}:{number}: {problem}") from problem


def read_links_to_parents(path: Path) -> Iterator[tuple[str, str]]:
    """Trace and name of the connections that hubs had to their parents."""
    kind = Kind.LINK_UP.value.encode()
    for _, line in lines(path):
        if kind in line:  # most are not, and need not be decoded for that
            with suppress(TraceError):
                event = decode_event(line)
                if event.kind is Kind.LINK_UP and event.link == PARENT:
                    yield event.trace, event.connection


class EventWriter:
    """A file that grows."""

    def __init__(self, path: Path) -> None:
        self._file = private.create(path)

    def write(self, events: Iterable[Event]) -> None:
        self._file.writelines(map(encode_event, events))

    def close(self) -> None:
        self._file.close()


class CheckpointWriter:
    """Likewise for checkpoints."""

    def __init__(self, path: Path) -> None:
        self._file = private.create(path)

    def write(self, checkpoints: Iterable[Checkpoint]) -> None:
        self._file.writelines(map(encode_checkpoint, checkpoints))

    def close(self) -> None:
        self._file.close()


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its line break is a row all the same; else its writer was interrupted."""
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file and their numbers; a last one that was never finished is left out. Raises TraceError."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
                if len(line) > LONGEST_LINE:
                    raise TraceError(f"{path}:{number}: a line of more than {LONGEST_LINE} bytes")
                if line.endswith(b"\n") or _is_whole(line):
                    yield number, line
    except OSError as problem:
        raise TraceError(f"cannot read {path}: {problem.strerror}") from problem
