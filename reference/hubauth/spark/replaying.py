"""What an executor does: batches of sorted rows in, verdicts and facts out, one hub's segment after the other.

Nothing is kept but the state of the segment under way. The replay itself is ``hubauth.judge.replay``.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from attrs import evolve

from hubauth.forms.events import Checkpoint, Event, Kind, Opening, TraceError, decode_opening
from hubauth.forms.lines import decode_checkpoint, encode_checkpoint
from hubauth.judge.facts import Fact
from hubauth.judge.replay import Replay, Seal, seal_of
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.spark.plan import Task
from hubauth.trace.parquet import SCHEMA, events_of

BEGIN, SEAL, ROW = 0, 1, 2
"""The roles of rows given to a task: the checkpoint to begin with, what a checkpoint really holds, a row of the trace;
in the order in which those of one sequence come."""

VERDICT, RULE, OPENED = "verdict", "rule", "opened"
"""What comes out beside facts: a task's verdict, how often a rule decided, and the key of a trace's tokens (in
``proof``)."""

OUT = pa.schema(
    [
        pa.field("trace", pa.string()),
        pa.field("hub", pa.string()),
        pa.field("task", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("sequence", pa.int64()),
        pa.field("device_id", pa.string()),
        pa.field("node_id", pa.int64()),
        pa.field("proof", pa.string()),
        pa.field("since", pa.int64()),
        pa.field("until", pa.int64()),
        pa.field("number", pa.int64()),
        pa.field("name", pa.string()),
    ]
)
"""Of a fact its kind and fields. ``name`` is the rule, or the verdict as JSON; ``number`` is how often, or how many
rows."""

_OUT_ROWS = 10_000
_encode = msgspec.json.Encoder().encode
_decode_seal = msgspec.json.Decoder(tuple[str, str]).decode


class _Output:
    """Rows of ``OUT`` until there are enough for a batch."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def add(self, task: Task, kind: str, **values: Any) -> None:
        given = (values.get(name) for name in OUT.names[4:])
        self._rows.append((task.trace, task.hub, task.number, kind, *given))

    def add_facts(self, task: Task, facts: list[Fact]) -> None:
        at = (task.trace, task.hub, task.number)
        self._rows += [
            (*at, f.kind.value, f.sequence, f.device_id, f.node_id, f.proof, f.since, f.until, f.number, None)
            for f in facts
        ]

    def batches(self, least: int = _OUT_ROWS) -> Iterator[Any]:
        if self._rows and len(self._rows) >= least:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, OUT, strict=True)]
            self._rows = []
            yield pa.record_batch(arrays, schema=OUT)


class _Segment:
    """One task under way."""

    def __init__(self, task: Task, checkpointed: bool) -> None:
        self.task = task
        self.rows = 0
        self._seals: dict[int, Seal] = {}
        self._replay: Replay | None = None if task.resumes else Replay(None, self._seals if checkpointed else None)
        self._begins: Checkpoint | None = None
        self._openings: list[tuple[int, Opening]] = []
        self._failed: Verdict | None = None
        self._stood = (0, -1)
        """The piece of a file in which the last row stood, and where in it."""

    def begin(self, checkpoint: Checkpoint) -> None:
        """Of two checkpoints of one row the first will do: that they differ is found where they are compared."""
        if self._begins is not None:
            return
        self._begins = checkpoint
        try:
            resumes = self.task.resumes
            self._replay = Replay.resume(checkpoint, self._seals) if resumes else Replay(None, self._seals, checkpoint)
        except ValueError as problem:
            self._fail(checkpoint.sequence, "TRACE-3", str(problem), "a checkpoint that can be read")

    def seal(self, sequence: int, seal: Seal) -> None:
        """Two different checkpoints of one row are none. Those of earlier rows have been compared."""
        known = self._seals.get(sequence)
        if known is None:
            self._seals.clear()
        self._seals[sequence] = seal if known in (None, seal) else Seal("", b"")

    def feed(self, batch: Any) -> None:
        self.rows += batch.num_rows
        if self._failed is not None:
            return
        if self._replay is None:
            self._fail(self.task.begin, "TRACE-3", "nothing", f"the checkpoint of row {self.task.begin}")
            return
        batch = self._in_order(batch)
        try:
            self._feed(self._replay, events_of(batch))
        except TraceError:
            self._feed_singly(self._replay, batch)

    def _feed(self, replay: Replay, events: list[Event]) -> None:
        sequence = -1
        try:
            for event in events:
                sequence = event.sequence
                replay.feed(event)
                if event.kind is Kind.START:
                    self._open(event)
        except Exception as problem:  # whatever is wrong with one hub's rows, the others go on
            self._fail(sequence, "TRACE-5", f"{type(problem).__name__}: {problem}", "rows that can be replayed")

    def _feed_singly(self, replay: Replay, batch: Any) -> None:
        """Up to the row that is none."""
        for at in range(batch.num_rows):
            row = batch.slice(at, 1)
            try:
                self._feed(replay, events_of(row))
            except TraceError as problem:
                self._fail(row.column("sequence")[0].as_py(), "TRACE-5", str(problem), "a readable row")
                return

    def _open(self, event: Event) -> None:
        # Of one that cannot be read the replay has said so.
        with suppress(TraceError):
            self._openings.append((event.sequence, decode_opening(event.payload)))

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

    def facts(self) -> list[Fact]:
        """What was learnt since they were taken last."""
        return self._replay.take_facts() if self._replay is not None else []

    def finish(self, output: _Output) -> None:
        task, replay = self.task, self._replay
        verdict = self._failed
        if verdict is None and replay is not None:
            verdict = replay.finish()
        if verdict is None:
            verdict = self._cannot_tell(task.begin, "TRACE-1", "nothing", "any row at all")
        output.add_facts(task, self.facts())
        output.add(task, VERDICT, sequence=verdict.sequence, name=encode_verdict(verdict), number=self.rows)
        if replay is not None:
            for rule, times in replay.rules.items():
                output.add(task, RULE, name=rule, number=times)
        for sequence, opening in self._openings:
            output.add(task, OPENED, sequence=sequence, proof=opening.tokens)
        if task.is_last and self._failed is None and replay is not None:
            output.add_facts(task, replay.take_last_facts())

    def _fail(self, sequence: int, rule: str, seen: str, missing: str) -> None:
        self._failed = self._cannot_tell(sequence, rule, seen, missing)

    def _cannot_tell(self, sequence: int, rule: str, seen: str, missing: str) -> Verdict:
        why = {"sequence": sequence, "rule": rule, "seen": seen, "missing": missing}
        verdict = Verdict.of(Outcome.CANNOT_TELL, self.task.trace, self.task.hub, self.rows, **why)
        return evolve(verdict, stopped=f"nothing after row {sequence} was judged")


def encode_verdict(verdict: Verdict) -> str:
    """As JSON, without the words of the rule: the specification is the driver's, not the executors'."""
    plain = {name: getattr(verdict, name) for name in ("trace", "hub", "stopped")}
    findings = [finding.plain() for finding in verdict.findings]
    return _encode({**plain, "outcome": verdict.outcome.value, "findings": findings}).decode()


def replay_tasks(tasks: dict[int, Task], checkpointed: bool) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``mapInArrow``: rows of many tasks, sorted by task, sequence and role.

    Whether the trace is ``checkpointed``: only then a missing checkpoint is one.
    """

    def replay(batches: Iterator[Any]) -> Iterator[Any]:
        output = _Output()
        segment: _Segment | None = None
        for batch in batches:
            for number, role, part in _runs(batch):
                if segment is None or segment.task.number != number:
                    if segment is not None:
                        segment.finish(output)
                    segment = _Segment(tasks[number], checkpointed)
                if role == ROW:
                    segment.feed(part)
                else:
                    _instruct(segment, role, part)
            if segment is not None:
                output.add_facts(segment.task, segment.facts())
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


def _instruct(segment: _Segment, role: int, part: Any) -> None:
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
