"""Rows as Parquet, for scale. Needs pyarrow, which nothing else of the package does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import astuple

from hubauth import private
from hubauth.core.inputs import PARENT
from hubauth.forms.events import Checkpoint, Event, Kind, TraceError
from hubauth.forms.lines import check_version

ROWS = 8 * 1024
"""Rows that are read together: few enough to be still in the processor's cache when they are judged."""
LARGEST_GROUP = 1 << 30
"""Bytes, unpacked, that a row group may take."""

SCHEMA = pa.schema(
    [
        pa.field("trace", pa.string(), nullable=False),
        pa.field("hub", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
        pa.field("link", pa.int64(), nullable=True),
        pa.field("connection", pa.string(), nullable=False),
        pa.field("peer", pa.string(), nullable=False),
        pa.field("header", pa.int32(), nullable=False),
        pa.field("major", pa.int32(), nullable=False),
        pa.field("sub_proto", pa.int32(), nullable=False),
        pa.field("flags", pa.int32(), nullable=False),
        pa.field("msg_id", pa.int64(), nullable=False),
        pa.field("source", pa.int64(), nullable=False),
        pa.field("target", pa.int64(), nullable=False),
        pa.field("trace_id", pa.int64(), nullable=False),
        pa.field("hop_limit", pa.int32(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
"""One column per field of ``Event``, in its order."""

CHECKPOINT_SCHEMA = pa.schema(
    [
        pa.field("trace", pa.string(), nullable=False),
        pa.field("hub", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
        pa.field("policy", pa.binary(), nullable=False),
        pa.field("state", pa.binary(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
    ]
)

_DAMAGED = (IndexError, UnicodeDecodeError, pa.ArrowException, MemoryError)
"""What values raise that are not what their column says."""
_KINDS = {kind.value: kind for kind in Kind}
_KIND_AT = SCHEMA.get_field_index("kind")
_MAJOR_AT = SCHEMA.get_field_index("major")
_VERSION_AT = SCHEMA.get_field_index("version")


def batch_of(events: list[Event]) -> Any:
    """Rows as a record batch."""
    columns: list[Any] = list(zip(*map(astuple, events), strict=True)) or [()] * len(SCHEMA)
    columns[_KIND_AT] = [kind.value for kind in columns[_KIND_AT]]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def events_of(batch: Any) -> list[Event]:
    """The rows of a record batch with these columns, in any order of columns. Raises TraceError."""
    try:
        without = [field.name for field in SCHEMA if not field.nullable and batch.column(field.name).null_count]
        if without:
            raise TraceError(f"no trace: rows without {without[0]}")
        columns = [_values(batch.column(name)) for name in SCHEMA.names]
        columns[_KIND_AT] = [_KINDS[name] for name in columns[_KIND_AT]]
    except KeyError as problem:
        raise TraceError(f"no trace: column or kind {problem}") from problem
    except _DAMAGED as problem:
        raise TraceError(f"no trace: {problem}") from problem
    for version in set(columns[_VERSION_AT]):
        check_version(version)
    if not set(columns[_MAJOR_AT]) <= {0, 1, 2, 3}:
        raise TraceError("major must be 0 to 3")
    return list(map(Event, *columns))


def _values(column: Any) -> list[Any]:
    """The values of a column: for each type the quickest way to them."""
    values: list[Any]
    if column.type == pa.string() and not column.null_count:
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type) and not column.null_count:
        # What occurs again and again is made once.
        words = column.dictionary.to_pylist()
        values = [words[index] for index in _values(column.indices)]
    elif column.null_count or column.type not in (pa.int64(), pa.int32()):
        values = column.to_pylist()
    else:
        numbers = memoryview(column.buffers()[1])
        view = numbers.cast("q") if column.type == pa.int64() else numbers.cast("i")
        values = view[column.offset : column.offset + len(column)].tolist()
    return values


def read_events(path: Path) -> Iterator[Event]:
    """The rows of a file, one row group at a time. Raises TraceError."""
    for batch in _batches(path, SCHEMA, ROWS):
        yield from events_of(batch)


def read_checkpoints(path: Path) -> Iterator[Checkpoint]:
    """Likewise for a file of checkpoints, a few at a time: states are large."""
    for batch in _batches(path, CHECKPOINT_SCHEMA, 16):
        try:
            columns = [_values(batch.column(name)) for name in CHECKPOINT_SCHEMA.names]
        except _DAMAGED as problem:
            raise TraceError(f"{path}: no checkpoints: {problem}") from problem
        yield from map(Checkpoint, *columns)


def read_links_to_parents(path: Path) -> Iterator[tuple[str, str]]:
    """Trace and name of the connections that hubs had to their parents."""
    for batch in _batches(path, SCHEMA, ROWS, ["trace", "kind", "link", "connection"]):
        # Not by pyarrow's own filter: using it for the first time takes 45 MB.
        columns = [_values(batch.column(name)) for name in ("link", "kind", "trace", "connection")]
        for link, kind, trace, connection in zip(*columns, strict=True):
            if link == PARENT and kind == Kind.LINK_UP.value:
                yield trace, connection


class EventWriter:
    """A file that grows by a row group with every call."""

    def __init__(self, path: Path) -> None:
        self._file = private.create(path)
        self._writer = pq.ParquetWriter(self._file, SCHEMA, compression="zstd")

    def write(self, events: list[Event]) -> None:
        self._writer.write_batch(batch_of(events))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


class CheckpointWriter:
    """Likewise for checkpoints."""

    def __init__(self, path: Path) -> None:
        self._file = private.create(path)
        self._writer = pq.ParquetWriter(self._file, CHECKPOINT_SCHEMA, compression="zstd")

    def write(self, checkpoints: list[Checkpoint]) -> None:
        columns = [[getattr(row, name) for row in checkpoints] for name in CHECKPOINT_SCHEMA.names]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, CHECKPOINT_SCHEMA, strict=True)]
        self._writer.write_batch(pa.record_batch(arrays, schema=CHECKPOINT_SCHEMA))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _batches(path: Path, schema: Any, rows: int, columns: list[str] | None = None) -> Iterator[Any]:
    """A file's rows (or these columns of them), so many at a time; looks at what it says about itself first."""
    try:
        with pq.ParquetFile(path) as file:
            _check(path, file, schema)
            metadata = file.metadata
        # A value that occurs a thousand times is held once.
        texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns, use_threads=False)
    except (OSError, KeyError, *_DAMAGED) as problem:
        raise TraceError(f"{path} is not readable as Parquet: {problem}") from problem


def _check(path: Path, file: Any, schema: Any) -> None:
    """Raises TraceError if a column is not what it should be, or a row group more than this program holds in memory."""
    for field in schema:
        at = file.schema_arrow.get_field_index(field.name)
        found = file.schema_arrow.field(at).type if at >= 0 else None
        found = found.value_type if found is not None and pa.types.is_dictionary(found) else found
        if found != field.type:
            raise TraceError(
                f"{path}: no trace: column {field.name} should be {field.type} and is {found or 'missing'}"
            )
    metadata = file.metadata
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        columns = [group.column(at).total_uncompressed_size for at in range(group.num_columns)]
        if min(columns, default=0) < 0 or max(sum(columns), group.total_byte_size) > LARGEST_GROUP:
            raise TraceError(
                f"{path}: row group {index} unpacks to more than {LARGEST_GROUP} bytes: write smaller ones"
            )
