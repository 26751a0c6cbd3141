"""Files that say they are larger than they are, or hold more than memory does: a message, and no memory spent."""

import resource
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hubauth.forms.events import Event, Kind, TraceError
from hubauth.trace import parquet
from hubauth.trace.parquet import CHECKPOINT_SCHEMA, SCHEMA, batch_of
from hubauth.trace.storage import TraceWriter, read_events

ROW = Event("t", "hub", 0, Kind.FRAME_IN, 1, 1, header=1, major=3, sub_proto=2)


def repeated(path: Path, rows: int, size: int) -> None:
    """A small file of many rows, each with the same large payload."""
    batch = batch_of([ROW])
    columns = [pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), column) for column in batch.columns]
    columns[SCHEMA.get_field_index("payload")] = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array([b"x" * size])
    )
    columns[SCHEMA.get_field_index("link")] = pa.array([1] * rows, pa.int64())
    table = pa.table(columns, names=SCHEMA.names)
    pq.write_table(table, path, compression="zstd", store_schema=False, row_group_size=rows)


def test_a_small_file_of_64_gib_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "large.parquet"
    repeated(path, 64 * 1024, 1 << 20)
    assert path.stat().st_size < 1 << 20
    program = (
        "import sys; from pathlib import Path; from hubauth.trace.storage import read_events\n"
        "rows = sum(len(event.payload) for event in read_events(Path(sys.argv[1]))); print(rows)"
    )

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=120, preexec_fn=limited
    )
    assert (done.returncode, done.stdout) == (0, f"{64 << 30}\n"), done.stderr


def test_a_row_group_that_says_it_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plain.parquet"
    batch = batch_of([Event("t", "hub", at, Kind.FRAME_IN, payload=b"x" * (1 << 20)) for at in range(64)])
    pq.write_table(pa.Table.from_batches([batch]), path, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 1 << 20
    assert len(list(read_events(path))) == 64
    monkeypatch.setattr(parquet, "LARGEST_GROUP", 32 << 20)
    with pytest.raises(TraceError, match="unpacks to more than"):
        list(read_events(path))


def test_memory_that_is_not_there_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some.parquet"
    pq.write_table(pa.Table.from_batches([batch_of([ROW])]), path)

    def none(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 68719476736 failed")

    monkeypatch.setattr(parquet, "_check", none)
    with pytest.raises(TraceError, match="malloc of size"):
        list(read_events(path))


def test_columns_of_another_type_are_a_message(tmp_path: Path) -> None:
    for name in SCHEMA.names:
        table = pa.Table.from_batches([batch_of([ROW])])
        at = table.schema.get_field_index(name)
        pq.write_table(table.set_column(at, name, pa.array([1.5])), tmp_path / "other.parquet")
        with pytest.raises(TraceError, match=f"column {name} should be"):
            list(read_events(tmp_path / "other.parquet"))
    pq.write_table(pa.Table.from_batches([batch_of([ROW])]).drop(["peer"]), tmp_path / "less.parquet")
    with pytest.raises(TraceError, match="column peer should be string and is missing"):
        list(read_events(tmp_path / "less.parquet"))
    nulls = [pa.array([None], field.type) for field in CHECKPOINT_SCHEMA]
    pq.write_table(pa.table(nulls, names=CHECKPOINT_SCHEMA.names), tmp_path / "null.parquet")
    with pytest.raises(TraceError):
        list(read_events(tmp_path / "null.parquet"))


def test_damaged_files_are_a_message(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.Table.from_batches([batch_of([ROW] * 50)]), whole, compression="zstd")
    content = whole.read_bytes()
    damaged = tmp_path / "damaged.parquet"
    for at in range(0, len(content), 7):
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        try:
            list(read_events(damaged))
        except TraceError as problem:
            assert str(problem)


def test_large_payloads_are_written_in_small_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubauth.trace.storage._BYTES", 1000)
    with TraceWriter(tmp_path / "t", "parquet") as writer:
        for at in range(30):
            writer.event(Event("t", "hub", at, Kind.FRAME_IN, payload=b"x" * 100))
    (path,) = (tmp_path / "t" / "events").iterdir()
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    assert len(list(read_events(path))) == 30
