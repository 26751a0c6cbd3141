"""The rows and checkpoints of a trace: what Parquet files say is in them, DataFrames of them, and what cannot be read.

Parquet is read where it lies. JSON Lines is for people and other languages, so it is turned into Parquet once, beside
the report, and everything after sees one kind of file.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from attrs import frozen
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hubauth.forms.events import Checkpoint, TraceError
from hubauth.forms.lines import decode_checkpoint, decode_event
from hubauth.spark.access import Access
from hubauth.spark.index import Group, Hub, Index, read_groups
from hubauth.spark.storage import Storage, StorageProblem, Stored, join, literal
from hubauth.trace.parquet import CHECKPOINT_SCHEMA, SCHEMA, batch_of

REPORT_MARK = "summary.schema.json"
"""The file by which the directory of a report is known; it is written first."""
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz")
_CHECKPOINTS = "checkpoints"
_FOOTERS_AT_ONCE = 16
_PROBLEMS_KEPT = 1000
_PHYSICAL = {pa.string(): "BINARY", pa.binary(): "BINARY", pa.int64(): "INT64", pa.int32(): "INT32"}
_DEFAULTS: dict[str, Any] = {"string": "", "binary": bytearray(), "bigint": -1, "int": 0}
_ORIGIN = [pa.field("file", pa.string()), pa.field("piece", pa.int64()), pa.field("place", pa.int64())]
_STAGED = [*_ORIGIN, pa.field("problem", pa.string())]


class NothingToJudge(Exception):
    """There is no row, nor anything that should have been one."""


@frozen
class Problem:
    """A file, or a line of one, that cannot be read; and whose it is, as far as that is known."""

    file: str
    what: str
    trace: str
    hub: str


class Table:
    """The rows, or the checkpoints: the files that hold them, and what these say is in them."""

    def __init__(self, spark: SparkSession, schema: Any) -> None:
        self._spark, self._schema = spark, schema
        self.index = Index()
        self.problems: list[Problem] = []
        self.lines: DataFrame | None = None
        """What was in JSON Lines."""

    @property
    def tells(self) -> bool:
        """Whether every file says whose rows it holds, and which."""
        return self.lines is None and not self.index.silent

    def frame(self, files: Iterable[str] | None = None) -> DataFrame:
        """All of it, or what is in these Parquet files and in JSON Lines.

        It has the columns of the schema, none of them null but ``link``; ``file``; and where a row stands in it:
        ``place`` increases within each ``piece``.
        """
        paths = sorted(self.index.rows_in if files is None else files)
        frames = [_parquet(self._spark, paths, self._schema)] if paths else []
        frames += [self.lines] if self.lines is not None else []
        if not frames:
            return self._spark.createDataFrame([], from_arrow_schema(pa.schema([*self._schema, *_ORIGIN])))
        return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


@frozen
class Rows:
    """What there is to judge."""

    events: Table
    states: Table
    """The checkpoints."""
    access: Access
    has_checkpoints: bool
    """Whether there should be a table of checkpoints: a single file comes without."""

    @property
    def problems(self) -> list[Problem]:
        """Files that are none, and lines."""
        return [*self.events.problems, *self.states.problems]

    @property
    def checkpoints(self) -> DataFrame:
        return self.states.frame().drop(*(field.name for field in _ORIGIN))

    def events_of(self, hubs: Iterable[Hub]) -> DataFrame:
        """The rows of these hubs; there may be others among them."""
        return self.events.frame({*self.events.index.files_of(hubs), *self.events.index.silent})


def read_rows(spark: SparkSession, storage: Storage, path: str, scratch: str) -> Rows:
    """Everything below ``path`` but reports. Raises StorageProblem, and NothingToJudge if no file could be a trace."""
    listed = storage.files(path)
    reports = tuple(file.path.removesuffix(REPORT_MARK) for file in listed if file.name == REPORT_MARK)
    files = [file for file in listed if file.name.endswith(_SUFFIXES) and not file.path.startswith(reports)]
    events = [file for file in files if file.folder != _CHECKPOINTS]
    if not events:
        raise NothingToJudge(f"{path} holds no {', '.join(_SUFFIXES)} file with rows")
    checkpoints = [file for file in files if file.folder == _CHECKPOINTS]
    # Whoever loses rows to a damaged file will be told by the numbers of its rows; the rest of the job goes on.
    spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    # A state can be large: batches are bounded by bytes, too.
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(64 * 1024 * 1024))
    access = Access(storage.settings(Access.wanted(files[0].path)))
    reader = _Reader(spark, storage, access)
    return Rows(
        events=reader.read(events, SCHEMA, _parse_events, join(scratch, "events")),
        states=reader.read(checkpoints, CHECKPOINT_SCHEMA, _parse_checkpoints, join(scratch, "states")),
        access=access,
        has_checkpoints=not storage.is_file(path),
    )


_Parse = Callable[[Iterator[Any]], Iterator[Any]]
_Groups: TypeAlias = list[tuple[Hub, Group]] | None


@frozen
class _Reader:
    """Looks at files."""

    spark: SparkSession
    storage: Storage
    access: Access

    def read(self, files: list[Stored], schema: Any, parse: _Parse, scratch: str) -> Table:
        table = Table(self.spark, schema)
        columnar = [file.path for file in files if file.name.endswith(".parquet")]
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            for path, found in zip(columnar, pool.map(lambda path: self._footer(path, schema), columnar), strict=True):
                if isinstance(found, str):
                    table.problems.append(problem_of(path, found))
                else:
                    table.index.add(path, *found)
        lines = [file.path for file in files if not file.name.endswith(".parquet")]
        if lines:
            table.lines, bad = _stage(self.spark, lines, schema, parse, scratch)
            table.problems += bad
        return table

    def _footer(self, path: str, schema: Any) -> tuple[int, _Groups] | str:
        """How many rows a Parquet file has, and its row groups if they can be read one by one; or what is wrong."""
        try:
            return read_groups(self.access, path, schema)
        except Exception:  # Spark may reach what pyarrow does not; and if not, it says why
            return self._plain_footer(path, schema)

    def _plain_footer(self, path: str, schema: Any) -> tuple[int, None] | str:
        try:
            footer = self.storage.parquet_footer(path)
        except StorageProblem as problem:
            return f"not readable as Parquet: {problem}"
        for field in schema:
            expected, found = _PHYSICAL[field.type], footer.columns.get(field.name, "missing")
            if found != expected:
                return f"column {field.name} should be {expected} and is {found}"
        return footer.rows, None


def _parquet(spark: SparkSession, paths: list[str], schema: Any) -> DataFrame:
    structure = from_arrow_schema(schema)
    file = F.col("_metadata.file_path")
    origin = [file.alias("file"), F.xxhash64(file).alias("piece"), F.col("_metadata.row_index").alias("place")]
    return spark.read.schema(structure).parquet(*map(literal, paths)).select(*_filled(structure), *origin)


def _filled(structure: StructType) -> list[Column]:
    """Columns without nulls, which only a link may be."""
    return [
        F.col(field.name)
        if field.name == "link"
        else F.coalesce(field.name, F.lit(_DEFAULTS[field.dataType.simpleString()])).alias(field.name)
        for field in structure
    ]


# JSON Lines


def _stage(
    spark: SparkSession, paths: list[str], schema: Any, parse: _Parse, scratch: str
) -> tuple[DataFrame, list[Problem]]:
    file, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    lines = spark.read.text([*map(literal, paths)]).select(
        F.col("value").cast("binary").alias("line"),
        file.alias("file"),
        F.xxhash64(file, start).alias("piece"),
        F.monotonically_increasing_id().alias("place"),
    )
    staged_schema = from_arrow_schema(pa.schema([*schema, *_STAGED]))
    lines.mapInArrow(parse, staged_schema).write.mode("overwrite").parquet(scratch)
    staged = spark.read.schema(staged_schema).parquet(literal(scratch))
    bad = staged.filter(F.col("problem").isNotNull()).select("file", "problem").limit(_PROBLEMS_KEPT).collect()
    origin = [field.name for field in _ORIGIN]
    rows = staged.filter(F.col("problem").isNull()).select(*_filled(from_arrow_schema(schema)), *origin)
    return rows, [problem_of(plain_path(row.file), row.problem) for row in bad]


def _parse_events(batches: Iterator[Any]) -> Iterator[Any]:
    return _parse(batches, decode_event, batch_of)


def _parse_checkpoints(batches: Iterator[Any]) -> Iterator[Any]:
    return _parse(batches, decode_checkpoint, _checkpoint_batch)


def _checkpoint_batch(checkpoints: list[Checkpoint]) -> Any:
    columns = [[getattr(row, field.name) for row in checkpoints] for field in CHECKPOINT_SCHEMA]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, CHECKPOINT_SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=CHECKPOINT_SCHEMA)


def _parse(
    batches: Iterator[Any], decode: Callable[[bytes], Any], together: Callable[[list[Any]], Any]
) -> Iterator[Any]:
    for batch in batches:
        rows: list[Any] = []
        read: list[int] = []
        bad: dict[int, str] = {}
        for index, line in enumerate(batch.column("line").to_pylist()):
            if not line.strip():
                continue
            try:
                rows.append(decode(line))
                read.append(index)
            except TraceError as problem:
                bad[index] = str(problem)
        good = together(rows)
        yield _staged(good, batch, read, [None] * len(read))
        if bad:
            yield _staged(_empty(good.schema, len(bad)), batch, [*bad], [*bad.values()])


def _staged(rows: Any, lines: Any, read: list[int], problems: list[Any]) -> Any:
    """Rows, and where they come from."""
    origin = lines.take(pa.array(read, pa.int64()))
    added = [origin.column(field.name) for field in _ORIGIN]
    columns = [*rows.columns, *added, pa.array(problems, pa.string())]
    return pa.record_batch(columns, schema=pa.schema([*rows.schema, *_STAGED]))


def _empty(schema: Any, size: int) -> Any:
    """As many rows that say nothing."""
    fill = {pa.string(): "", pa.binary(): b"", pa.int64(): -1, pa.int32(): 0}
    return pa.record_batch([pa.array([fill[field.type]] * size, field.type) for field in schema], schema=schema)


def plain_path(uri: str) -> str:
    """The path of a file, of which Spark's metadata column gives the URI."""
    return unquote(uri).replace("file:///", "file:/")


def problem_of(path: str, what: str) -> Problem:
    """Whose a file is: ``TRACE/events/HUB-0000.suffix``, as the recorder names them; a ``part`` is of many hubs."""
    parts = path.split("/")
    hub, _, run = parts[-1].split(".")[0].rpartition("-")
    if len(parts) < 3 or parts[-2] not in ("events", _CHECKPOINTS):
        return Problem(path, what, "", "")
    return Problem(path, what, parts[-3], unquote(hub) if run.isdigit() and hub != "part" else "")
