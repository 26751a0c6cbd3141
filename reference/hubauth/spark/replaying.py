"""What an executor does where rows had to be brought together: batches of sorted rows in, verdicts and facts out, one
hub's segment after the other.
"""

from collections.abc import Callable, Container, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from hubauth.forms.events import Checkpoint, TraceError
from hubauth.forms.lines import decode_checkpoint, encode_checkpoint
from hubauth.judge.replay import Seal, seal_of
from hubauth.spark.plan import Task
from hubauth.spark.segment import Output, Segment
from hubauth.trace.parquet import SCHEMA, events_of

BEGIN, SEAL, ROW = 0, 1, 2
"""The roles of rows given to a task: the checkpoint to begin with, what a checkpoint really holds, a row of the trace;
in the order in which those of one sequence come."""

_encode = msgspec.json.Encoder().encode
_decode_seal = msgspec.json.Decoder(tuple[str, str]).decode


class _Sorted(Segment):
    """One task under way."""

    def __init__(self, task: Task, checkpointed: bool, links: Container[str]) -> None:
        super().__init__(task, checkpointed, links)
        self._stood = (0, -1)
        """The piece of a file in which the last row stood, and where in it."""

    def feed_batch(self, batch: Any) -> None:
        self.rows += batch.num_rows
        if not self.is_open():
            return
        batch = self._in_order(batch)
        try:
            events = events_of(batch)
        except TraceError:
            self._feed_singly(batch)
        else:
            self._feed(events)

    def _feed_singly(self, batch: Any) -> None:
        """Up to the row that is none."""
        for at in range(batch.num_rows):
            row = batch.slice(at, 1)
            try:
                self._feed(events_of(row))
            except TraceError as problem:
                self._fail(row.column("sequence")[0].as_py(), "TRACE-5", str(problem), "a readable row")
                return

    def _in_order(self, batch: Any) -> Any:
        """Rows come sorted by their numbers: they must stand in their file in that order. Cuts off what does not."""
        pieces, places = batch.column("piece").to_numpy(), batch.column("place").to_numpy()
        before = np.concatenate(([self._stood[0]], pieces[:-1])), np.concatenate(([self._stood[1]], places[:-1]))
        back = np.flatnonzero((pieces == before[0]) & (places < before[1]))
        self._stood = (int(pieces[-1]), int(places[-1]))
        if not len(back):
            return batch
        sequence = batch.column("sequence")[int(back[0])].as_py()
        seen = f"row {sequence} before a row with a lower number"
        self._fail(sequence, "TRACE-1", seen, "the order of the rows")
        return batch.slice(0, int(back[0]))


def replay_tasks(
    tasks: dict[int, Task], checkpointed: bool, links: dict[str, set[str]]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``mapInArrow``: rows of many tasks, sorted by task, sequence and role.

    Whether the trace is ``checkpointed``: only then a missing checkpoint is one. ``links``: of each trace, those of
    hubs to their parents.
    """

    def replay(batches: Iterator[Any]) -> Iterator[Any]:
        output = Output()
        segment: _Sorted | None = None
        for batch in batches:
            for number, role, part in _runs(batch):
                if segment is None or segment.task.number != number:
                    if segment is not None:
                        segment.finish(output)
                    task = tasks[number]
                    segment = _Sorted(task, checkpointed, links.get(task.trace, ()))
                if role == ROW:
                    segment.feed_batch(part)
                else:
                    _instruct(segment, role, part)
            if segment is not None:
                segment.tell(output)
            yield from output.batches()
        if segment is not None:
            segment.finish(output)
        yield from output.batches(1)

    return replay


def _runs(batch: Any) -> Iterator[tuple[int, int, Any]]:
    """A batch cut where the task or the role changes."""
    tasks, roles = batch.column("task").to_numpy(), batch.column("role").to_numpy()
    if not len(tasks):
        return
    changes = np.flatnonzero((np.diff(tasks) != 0) | (np.diff(roles) != 0)) + 1
    bounds = [0, *changes.tolist(), len(tasks)]
    for begin, end in pairwise(bounds):
        yield int(tasks[begin]), int(roles[begin]), batch.slice(begin, end - begin)


def _instruct(segment: Segment, role: int, part: Any) -> None:
    for sequence, payload in zip(part.column("sequence").to_pylist(), part.column("payload").to_pylist(), strict=True):
        if role == BEGIN:
            segment.begin(decode_checkpoint(payload))
        else:
            digest, policy = _decode_seal(payload)
            segment.seal(sequence, Seal(digest, policy.encode()))


INSTRUCTIONS = pa.schema(
    [
        pa.field("trace", pa.string()),
        pa.field("hub", pa.string()),
        pa.field("sequence", pa.int64()),
        pa.field("role", pa.int32()),
        pa.field("payload", pa.binary()),
    ]
)


def seal_checkpoints(batches: Iterator[Any]) -> Iterator[Any]:
    """Checkpoints (and ``begins``: whether a task begins there) as rows of the roles SEAL and BEGIN."""
    for batch in batches:
        for plain in batch.to_pylist():
            begins = plain.pop("begins")
            checkpoint = Checkpoint(**plain)
            seal = seal_of(checkpoint)
            rows = [(SEAL, _encode((seal.digest, seal.policy.decode(errors="replace"))))]
            if begins and seal.digest:
                rows.append((BEGIN, encode_checkpoint(checkpoint)))
            at = [[checkpoint.trace] * len(rows), [checkpoint.hub] * len(rows), [checkpoint.sequence] * len(rows)]
            columns = [*at, [role for role, _ in rows], [payload for _, payload in rows]]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, INSTRUCTIONS, strict=True)]
            yield pa.record_batch(arrays, schema=INSTRUCTIONS)


COLUMNS = (*SCHEMA.names, "piece", "place", "task", "role")
"""What a task is given."""
