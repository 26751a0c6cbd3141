"""Traces on disk: ``DIR/events`` and ``DIR/checkpoints``, each with any number of JSON Lines or Parquet files.

The rows of one hub are in order within a file and from file to file, by name. Different hubs may share files.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeAlias

from hubauth import private
from hubauth.forms.events import Checkpoint, Event, TraceError
from hubauth.trace import jsonl

Format: TypeAlias = Literal["jsonl", "parquet"]
EVENTS, CHECKPOINTS = "events", "checkpoints"
ROWS = 64 * 1024
"""Rows that are written together, unless their payloads are large."""
_BYTES = 64 * 1024 * 1024
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


def _module(path: Path) -> ModuleType:
    if path.suffix != ".parquet":
        return jsonl
    try:
        from hubauth.trace import parquet
    except ImportError as problem:
        raise TraceError("Parquet needs pyarrow: pip install 'hubauth[spark]'") from problem
    return parquet


class TraceWriter:
    """A new trace of many hubs, rows in the order in which they come. Use it as a context manager."""

    def __init__(self, directory: Path, form: Format = "jsonl", rows_per_file: int = 1_000_000) -> None:
        """Raises TraceError if there is something already."""
        self._directory, self._form, self._rows_per_file = directory, form, rows_per_file
        self._module = _module(Path(f"x.{form}"))
        self._part = self._rows = self._bytes = 0
        self._waiting: list[Event] = []
        self.rows = 0
        """Written or about to be."""
        self._writer: Any = None
        try:
            for name in (EVENTS, CHECKPOINTS):
                private.make_directory(directory / name, new=True)
            self._checkpoints = self._module.CheckpointWriter(self._path(CHECKPOINTS))
        except FileExistsError as problem:
            raise TraceError(f"{directory} holds a trace already") from problem
        except OSError as problem:
            raise TraceError(f"cannot write to {directory}: {problem.strerror}") from problem

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        self._end_part()
        self._checkpoints.close()

    def event(self, event: Event) -> None:
        """Write a row, sooner or later."""
        self._waiting.append(event)
        self._bytes += len(event.payload)
        self.rows += 1
        if len(self._waiting) >= ROWS or self._bytes >= _BYTES:
            self._write()

    def checkpoint(self, checkpoint: Checkpoint) -> None:
        self._checkpoints.write([checkpoint])

    def _path(self, name: str) -> Path:
        return self._directory / name / f"part-{self._part:04d}.{self._form}"

    def _write(self) -> None:
        if self._waiting:
            if self._writer is None:
                self._writer = self._module.EventWriter(self._path(EVENTS))
            self._writer.write(self._waiting)
            self._rows += len(self._waiting)
            self._waiting, self._bytes = [], 0
        if self._rows >= self._rows_per_file:
            self._end_part()

    def _end_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._part += 1
            self._rows = 0
