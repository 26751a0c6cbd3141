"""Traces on disk: ``DIR/events`` and ``DIR/checkpoints``, each with any number of JSON Lines or Parquet files.

The rows of one hub are in order within a file and from file to file, by name. Different hubs may share files, but
recorders give each its own, and so does ``TraceWriter``.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from hubauth import private
from hubauth.forms.events import Checkpoint, Event, TraceError
from hubauth.trace import jsonl

Format: TypeAlias = Literal["jsonl", "parquet"]
EVENTS, CHECKPOINTS = "events", "checkpoints"
ROWS = 64 * 1024
"""Rows of a hub that are written together at most, unless their payloads are large."""
HELD = 128 * 1024
"""Rows of all hubs that wait to be written; then the hub that has most of them is next."""
_BYTES = 64 * 1024 * 1024
OPEN_FILES = 100
"""With more hubs than that, one whose file was closed goes on in another."""
_LONGEST_NAME = 200
_Hub: TypeAlias = tuple[str, str]
"""Trace and hub."""
_SUFFIXES = (".jsonl", ".parquet")


def events_files(path: Path) -> list[Path]:
    """The files with rows: ``path`` itself, or those of a trace. Raises TraceError if there is none."""
    if path.is_file():
        return [path]
    files = _files(path / EVENTS)
    if not files:
        raise TraceError(f"no trace in {path}: no {EVENTS}/*.jsonl or {EVENTS}/*.parquet")
    return files


def checkpoint_files(path: Path) -> list[Path]:
    return [] if path.is_file() else _files(path / CHECKPOINTS)


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*") if path.suffix in _SUFFIXES) if directory.is_dir() else []


def read_events(path: Path) -> Iterator[Event]:
    """The rows of one file. Raises TraceError."""
    events: Iterator[Event] = _module(path).read_events(path)
    return events


def read_checkpoints(path: Path) -> Iterator[Checkpoint]:
    checkpoints: Iterator[Checkpoint] = _module(path).read_checkpoints(path)
    return checkpoints


def read_links_to_parents(path: Path) -> Iterator[tuple[str, str]]:
    """Trace and name of the connections that hubs had to their parents, as far as a file can be read."""
    with suppress(TraceError):
        yield from _module(path).read_links_to_parents(path)


def _module(path: Path) -> ModuleType:
    if path.suffix != ".parquet":
        return jsonl
    try:
        from hubauth.trace import parquet
    except ImportError as problem:
        raise TraceError("Parquet needs pyarrow: pip install 'hubauth[spark]'") from problem
    return parquet


class TraceWriter:
    """A new trace of many hubs: files of their own for each, as recorders write them. Use it as a context manager.

    Rows of different hubs may come in any order, those of one hub in theirs.
    """

    def __init__(self, directory: Path, form: Format = "jsonl", rows_per_file: int = 1_000_000) -> None:
        """Raises TraceError if there is something already."""
        self._directory = directory
        self._module = _module(Path(f"x.{form}"))
        self._events = _Table(directory / EVENTS, form, self._module.EventWriter, rows_per_file)
        self._checkpoints = _Table(directory / CHECKPOINTS, form, self._module.CheckpointWriter, rows_per_file)
        self._waiting: dict[_Hub, list[Event]] = {}
        self._bytes: dict[_Hub, int] = {}
        self._held = self._held_bytes = 0
        self.rows = 0
        """Written or about to be."""
        try:
            for name in (EVENTS, CHECKPOINTS):
                private.make_directory(directory / name, new=True)
        except FileExistsError as problem:
            raise TraceError(f"{directory} holds a trace already") from problem
        except OSError as problem:
            raise self._cannot(problem) from problem

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(self, *_: object) -> None:
        for hub in [*self._waiting]:
            self._write(hub)
        self._events.close()
        self._checkpoints.close()

    def event(self, event: Event) -> None:
        """Write a row, sooner or later. Raises TraceError."""
        hub = (event.trace, event.hub)
        waiting = self._waiting.get(hub)
        if waiting is None:
            waiting = self._waiting[hub] = []
            self._bytes[hub] = 0
        waiting.append(event)
        size = len(event.payload)
        self._bytes[hub] += size
        self._held += 1
        self._held_bytes += size
        self.rows += 1
        if len(waiting) >= ROWS or self._bytes[hub] >= _BYTES:
            self._write(hub)
        elif self._held >= HELD or self._held_bytes >= 2 * _BYTES:
            self._write(max(self._waiting, key=lambda other: len(self._waiting[other])))

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, at once: states are large. Raises TraceError."""
        try:
            self._checkpoints.write((checkpoint.trace, checkpoint.hub), [checkpoint])
        except OSError as problem:
            raise self._cannot(problem) from problem

    def _write(self, hub: _Hub) -> None:
        rows = self._waiting.pop(hub)
        self._held -= len(rows)
        self._held_bytes -= self._bytes.pop(hub)
        try:
            self._events.write(hub, rows)
        except OSError as problem:
            raise self._cannot(problem) from problem

    def _cannot(self, problem: OSError) -> TraceError:
        return TraceError(f"cannot write to {self._directory}: {problem.strerror}")


class _Table:
    """The files of one directory: ``HUB-0000.suffix``, then ``HUB-0001.suffix``."""

    def __init__(self, directory: Path, form: Format, writer: Any, rows_per_file: int) -> None:
        self._directory, self._form, self._new, self._rows_per_file = directory, form, writer, rows_per_file
        self._files: dict[_Hub, tuple[Any, int]] = {}
        """The open ones and how many rows they have; who was written to last is last."""
        self._parts: Counter[str] = Counter()

    def write(self, hub: _Hub, rows: list[Any]) -> None:
        file, so_far = self._files.pop(hub) if hub in self._files else (self._open(hub), 0)
        file.write(rows)
        if so_far + len(rows) >= self._rows_per_file:
            file.close()
        else:
            self._files[hub] = (file, so_far + len(rows))

    def close(self) -> None:
        while self._files:
            self._files.pop(next(iter(self._files)))[0].close()

    def _open(self, hub: _Hub) -> Any:
        if len(self._files) >= OPEN_FILES:
            self._files.pop(next(iter(self._files)))[0].close()
        name = quote(hub[1], safe="")[:_LONGEST_NAME]
        number = self._parts[name]
        self._parts[name] += 1
        return self._new(self._directory / f"{name}-{number:04d}.{self._form}")
