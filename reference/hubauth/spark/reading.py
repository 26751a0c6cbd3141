"""What an executor does where rows are in order: it reads the row groups of its tasks itself, one after the other.

No row goes through the JVM. Whatever turns out to be otherwise than the files said (rows that are not in order, or of
another hub; bytes that are no values; a cut where no checkpoint is) ends the task, which says so: then the hub's rows
are brought together by Spark, and judged again.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hubauth.core.inputs import PARENT
from hubauth.forms.events import Checkpoint, Event, Kind
from hubauth.judge.replay import Seal, seal_of
from hubauth.spark.access import Access
from hubauth.spark.index import Group
from hubauth.spark.plan import Task
from hubauth.spark.segment import UNTIDY, Output, Segment
from hubauth.trace.parquet import CHECKPOINT_SCHEMA, ROWS, SCHEMA, events_of

_decode = msgspec.json.Decoder(Task).decode
_LINKS = pa.schema([SCHEMA.field(name) for name in ("kind", "link", "connection")])
_TEXTS = [field.name for field in SCHEMA if field.type in (pa.string(), pa.binary())]
"""Read as dictionaries: what occurs a thousand times is held once."""


class _Untidy(Exception):
    """The files do not hold what they said."""


def encode_task(task: Task) -> bytes:
    """For the column ``task``."""
    return msgspec.json.encode(task)


def replay_groups(
    access: Access, checkpointed: bool, links: dict[str, set[str]]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``mapInArrow``: tasks (in the column ``task``) in, rows of ``OUT`` out.

    Whether the trace is ``checkpointed``: only then a missing checkpoint is one. ``links``: of each trace, those of
    hubs to their parents.
    """

    def replay(batches: Iterator[Any]) -> Iterator[Any]:
        output = Output()
        for batch in batches:
            for encoded in batch.column("task").to_pylist():
                segment = _segment(encoded, checkpointed, links)
                try:
                    for _ in _judged(access, segment):
                        segment.tell(output)
                        yield from output.batches()
                except _Untidy as problem:
                    output.add(segment.task, UNTIDY, name=str(problem))
                else:
                    segment.finish(output)
        yield from output.batches(1)

    return replay


def _segment(encoded: bytes, checkpointed: bool, links: dict[str, set[str]]) -> Segment:
    task = _decode(encoded)
    return Segment(task, checkpointed, links.get(task.trace, ()))


def find_links(access: Access) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``mapInArrow``: tasks in, ``trace`` and ``connection`` of the hubs' links to parents out.

    Row groups that cannot be read have none: their tasks will say so.
    """

    def find(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for encoded in batch.column("task").to_pylist():
                with suppress(_Untidy):
                    for trace, found in _links_of(access, encoded):
                        yield pa.record_batch([pa.repeat(trace, len(found)), found], names=["trace", "connection"])

    return find


def _links_of(access: Access, encoded: bytes) -> Iterator[tuple[str, Any]]:
    task = _decode(encoded)
    groups = tuple(group for group in task.groups if group.reaches_up)
    for batch in _batches(access, groups, _LINKS, 8 * ROWS, []):
        begins, upwards = pc.equal(batch.column("kind"), Kind.LINK_UP.value), pc.equal(batch.column("link"), PARENT)
        yield task.trace, pc.unique(batch.filter(pc.and_(begins, upwards)).column("connection"))


def _judged(access: Access, segment: Segment) -> Iterator[None]:
    """Let a task see its rows, some at a time. Raises _Untidy."""
    task = segment.task
    _open(access, segment)
    first: Event | None = None
    last: Event | None = None
    for events in _rows(access, task):
        if events:
            first, last = first or events[0], events[-1]
            segment.feed(events)
            yield
    for wanted, at, there in ((task.resumes, task.begin, first), (not task.is_last, task.end, last)):
        if wanted and (there is None or there.sequence != at or there.kind is not Kind.CHECKPOINT):
            raise _Untidy(f"row {at} is no checkpoint")


def _open(access: Access, segment: Segment) -> None:
    """Tell a task what its checkpoints really hold, and which it begins with."""
    task = segment.task
    seals: dict[int, Seal] = {}
    for checkpoint in _states(access, task):
        sequence, seal = checkpoint.sequence, seal_of(checkpoint)
        seals[sequence] = seal if seals.get(sequence, seal) == seal else Seal("", b"")
        if sequence == max(task.begin, 0) and seal.digest:
            segment.begin(checkpoint)
    segment.seal_all(seals)


def _states(access: Access, task: Task) -> Iterator[Checkpoint]:
    # One at a time: states are large.
    for batch in _batches(access, task.states, CHECKPOINT_SCHEMA, 1, []):
        for plain in batch.to_pylist():
            try:
                checkpoint = msgspec.convert(plain, Checkpoint)
            except msgspec.ValidationError as problem:
                raise _Untidy(str(problem)) from problem
            if (checkpoint.trace, checkpoint.hub) != (task.trace, task.hub):
                raise _Untidy(f"a checkpoint of {checkpoint.hub}")
            if task.begin <= checkpoint.sequence <= task.end:
                yield checkpoint


def _rows(access: Access, task: Task) -> Iterator[list[Event]]:
    before = -1
    for batch in _batches(access, task.groups, SCHEMA, ROWS, _TEXTS):
        try:
            sequence = batch.column("sequence").to_numpy()
            tidy = sequence[0] > before and bool((np.diff(sequence) > 0).all())
            if not (tidy and _is_all(batch, "trace", task.trace) and _is_all(batch, "hub", task.hub)):
                raise _Untidy("rows that are not in order, or of another hub")
            before = int(sequence[-1])
            begin, end = np.searchsorted(sequence, task.begin), np.searchsorted(sequence, task.end, "right")
            events = events_of(batch.slice(int(begin), int(end - begin)))
        except Exception as problem:  # whatever is wrong with a file, Spark looks at it again
            raise _Untidy(str(problem)) from problem
        yield events


def _batches(
    access: Access, groups: tuple[Group, ...], schema: Any, rows: int, dictionaries: list[str]
) -> Iterator[Any]:
    """Row groups one after the other, so many rows at a time."""
    try:
        for path, members in groupby(groups, key=attrgetter("file")):
            with access.open_parquet(path, read_dictionary=dictionaries) as file:
                for group in members:
                    wanted = [group.number]
                    yield from file.iter_batches(rows, row_groups=wanted, columns=schema.names, use_threads=False)
    except Exception as problem:  # whatever is wrong with a file, Spark looks at it again
        raise _Untidy(str(problem)) from problem


def _is_all(batch: Any, name: str, value: str) -> bool:
    column = batch.column(name)
    words = column.dictionary
    return bool(words[0].as_py() == value if len(words) == 1 else pc.all(pc.equal(column.cast(pa.string()), value)))
