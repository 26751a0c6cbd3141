"""One task under way on an executor: rows in, verdict and facts out as record batches.

Nothing is kept but the state of the hub. The replay itself is ``hubauth.judge.replay``.
"""

from collections.abc import Container, Iterator
from contextlib import suppress
from typing import Any

import msgspec
import pyarrow as pa
from attrs import evolve
from msgspec.structs import astuple

from hubauth.forms.events import Checkpoint, Event, Kind, Opening, TraceError, decode_opening
from hubauth.judge.facts import Fact, FactKind
from hubauth.judge.replay import Replay, Seal
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.spark.plan import Task
from hubauth.trace.digests import Digests, End, Seen

VERDICT, RULE, OPENED, END, UNTIDY = "verdict", "rule", "opened", "end", "untidy"
"""What comes out beside facts: a task's verdict, how often a rule decided, the key of a trace's tokens (in ``proof``),
digests of what passed over a connection (in ``end``), and that a task's row groups hold something else than they said
(what, in ``name``)."""

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
        pa.field("end", pa.binary()),
    ]
)
"""Of a fact its kind and fields. ``name`` is the rule, the verdict as JSON, or the connection; ``number`` is how often,
how many rows, or how many ends were told before. ``end`` is what ``decode_end`` reads."""

_OUT_ROWS = 10_000
_VALUES = {kind: kind.value for kind in FactKind}
_encode = msgspec.json.Encoder().encode
_encode_end = msgspec.msgpack.Encoder().encode
_decode_end = msgspec.msgpack.Decoder(End).decode


def decode_end(encoded: bytes) -> End:
    """One end of a connection, from the column ``end``."""
    return _decode_end(encoded)


class Output:
    """Rows of ``OUT`` until there are enough for a batch: facts as columns, the few others as rows."""

    def __init__(self) -> None:
        self._size = 0
        self._ready: list[Any] = []
        self._rows: list[tuple[Any, ...]] = []
        self._ends = (-1, 0)
        """The task whose ends were told last, and how many so far."""

    def add(self, task: Task, kind: str, **values: Any) -> None:
        given = (values.get(name) for name in OUT.names[4:])
        self._rows.append((task.trace, task.hub, task.number, kind, *given))
        self._size += 1

    def add_facts(self, task: Task, facts: list[Fact]) -> None:
        if facts:
            sequences, kinds, *others = zip(*map(astuple, facts), strict=True)
            self._columns(task, len(facts), [_VALUES[kind] for kind in kinds], [sequences, *others])

    def add_ends(self, task: Task, ends: list[Seen]) -> None:
        if ends:
            before = self._ends[1] if self._ends[0] == task.number else 0
            numbers = range(before, before + len(ends))
            self._ends = (task.number, before + len(ends))
            names, encoded = [name for name, _ in ends], [_encode_end(end) for _, end in ends]
            self._columns(task, len(ends), END, [None] * 6 + [numbers, names, encoded])

    def _columns(self, task: Task, size: int, kind: str | list[str], columns: list[Any]) -> None:
        """The columns of ``OUT`` from ``sequence`` on; the last ones may be left out."""
        given = [task.trace, task.hub, task.number, kind, *columns]
        given += [None] * (len(OUT) - len(given))
        arrays = [
            pa.nulls(size, field.type)
            if values is None
            else pa.repeat(pa.scalar(values, field.type), size)
            if isinstance(values, (str, int))
            else pa.array(values, field.type)
            for values, field in zip(given, OUT, strict=True)
        ]
        self._ready.append(pa.record_batch(arrays, schema=OUT))
        self._size += size

    def batches(self, least: int = _OUT_ROWS) -> Iterator[Any]:
        if not self._size or self._size < least:
            return
        ready, self._ready, self._size = self._ready, [], 0
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, OUT, strict=True)]
            ready.append(pa.record_batch(arrays, schema=OUT))
            self._rows = []
        yield from pa.Table.from_batches(ready).combine_chunks().to_batches()


class Segment:
    """One task under way."""

    def __init__(self, task: Task, checkpointed: bool, links: Container[str]) -> None:
        """``links`` are the connections of hubs to their parents: what passes over others nobody else has seen."""
        self.task = task
        self.rows = 0
        self._seals: dict[int, Seal] = {}
        self._replay: Replay | None = None if task.resumes else Replay(None, self._seals if checkpointed else None)
        self._begins: Checkpoint | None = None
        self._openings: list[tuple[int, Opening]] = []
        self._failed: Verdict | None = None
        self._digests = Digests(links)

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

    def seal_all(self, seals: dict[int, Seal]) -> None:
        """What every checkpoint of the task really holds."""
        self._seals.update(seals)

    def feed(self, events: list[Event]) -> None:
        """The next rows, which count in any case."""
        self.rows += len(events)
        if self.is_open():
            self._feed(events)

    def is_open(self) -> bool:
        """Whether more rows would tell more."""
        if self._replay is None and self._failed is None:
            self._fail(self.task.begin, "TRACE-3", "nothing", f"the checkpoint of row {self.task.begin}")
        return self._failed is None

    def _feed(self, events: list[Event]) -> None:
        replay, digests, sequence = self._replay, self._digests, -1
        assert replay is not None
        try:
            for event in events:
                sequence = event.sequence
                replay.feed(event)
                digests.feed(event)
                if event.kind is Kind.START:
                    self._open(event)
        except Exception as problem:  # whatever is wrong with one hub's rows, the others go on
            self._fail(sequence, "TRACE-5", f"{type(problem).__name__}: {problem}", "rows that can be replayed")

    def _open(self, event: Event) -> None:
        # Of one that cannot be read the replay has said so.
        with suppress(TraceError):
            self._openings.append((event.sequence, decode_opening(event.payload)))

    def tell(self, output: Output) -> None:
        """What was learnt since it was told last."""
        if self._replay is not None:
            output.add_facts(self.task, self._replay.take_facts())
        output.add_ends(self.task, self._digests.take())

    def finish(self, output: Output) -> None:
        task, replay = self.task, self._replay
        verdict = self._failed
        if verdict is None and replay is not None:
            verdict = replay.finish()
        if verdict is None:
            verdict = self._cannot_tell(task.begin, "TRACE-1", "nothing", "any row at all")
        self.tell(output)
        output.add_ends(task, self._digests.rest())
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
