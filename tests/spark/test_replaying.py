"""What an executor does, without a cluster: the same function on the same batches."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from hubauth.forms.events import Checkpoint, Event, Kind, Opening, Order, encode_opening
from hubauth.forms.policies import decode_policy, form_of
from hubauth.judge.across import judge_all
from hubauth.judge.facts import Fact, FactKind
from hubauth.judge.replay import Replay
from hubauth.judge.verdicts import Outcome
from hubauth.spark import segment
from hubauth.spark.plan import FIRST, LAST, Task
from hubauth.spark.replaying import BEGIN, ROW, SEAL, replay_tasks, seal_checkpoints
from hubauth.spark.results import HubResult, merge_verdicts
from hubauth.spark.segment import END, OPENED, OUT, RULE, VERDICT
from hubauth.trace.generate import Blueprint
from hubauth.trace.parquet import CHECKPOINT_SCHEMA, batch_of
from tests.spark.traces import rows_of

_STREAM = [("piece", pa.int64()), ("place", pa.int64()), ("task", pa.int64()), ("role", pa.int32())]


@cache
def _links() -> dict[str, set[str]]:
    """As if every connection were one of hubs."""
    return {"generated": {event.connection for event in busy_hub()[0]}}


@cache
def busy_hub() -> tuple[tuple[Event, ...], tuple[Checkpoint, ...]]:
    """The rows of one hub, with its checkpoints."""
    events, checkpoints = rows_of(Blueprint(3, 20, 2000, 5, checkpoint_events=150))
    return (
        tuple(event for event in events if event.hub == "hub-0"),
        tuple(checkpoint for checkpoint in checkpoints if checkpoint.hub == "hub-0"),
    )


def task(number: int = 0, begin: int = FIRST, end: int = LAST) -> Task:
    return Task(number, "generated", "hub-0", begin, end, 0, 0)


def stream(number: int, events: list[Event], role: int = ROW) -> Any:
    """Rows as a task is given them."""
    batch = batch_of(events)
    size = len(events)
    columns = [[1] * size, [event.sequence for event in events], [number] * size, [role] * size]
    added = [pa.array(values, kind) for values, (_, kind) in zip(columns, _STREAM, strict=True)]
    fields = [*batch.schema, *(pa.field(name, kind) for name, kind in _STREAM)]
    return pa.record_batch([*batch.columns, *added], schema=pa.schema(fields))


def instructions(number: int, checkpoint: Checkpoint, *, begins: bool) -> list[Any]:
    """What a checkpoint becomes, with the columns of rows."""
    plain = {name: [getattr(checkpoint, name)] for name in CHECKPOINT_SCHEMA.names}
    batch = pa.record_batch([pa.array([*v]) for v in plain.values()], names=[*plain])
    (sealed,) = seal_checkpoints(iter([batch.append_column("begins", pa.array([begins]))]))
    made = []
    for row in sealed.to_pylist():
        event = msgspec.structs.replace(
            busy_hub()[0][0], sequence=row["sequence"], payload=row["payload"], hub=row["hub"]
        )
        made.append(stream(number, [event], row["role"]))
    return sorted(made, key=lambda part: int(part.column("role")[0].as_py()))


def run(tasks: list[Task], batches: list[Any], *, checkpointed: bool = True) -> list[dict[str, Any]]:
    out: Iterator[Any] = replay_tasks({task.number: task for task in tasks}, checkpointed, _links())(iter(batches))
    rows = []
    for batch in out:
        assert batch.schema == OUT
        rows += batch.to_pylist()
    return rows


def verdict(rows: list[dict[str, Any]]) -> HubResult:
    segments = [(row["name"], row["number"]) for row in rows if row["kind"] == VERDICT]
    return merge_verdicts(segments, sum(rows for _, rows in segments))


def whole(events: tuple[Event, ...], size: int = 97) -> list[Any]:
    """One task that is given everything, in batches of an odd size."""
    return [stream(0, list(events[at : at + size])) for at in range(0, len(events), size)]


def test_a_hub_that_conforms_and_what_is_learnt_of_it() -> None:
    events, _ = busy_hub()
    rows = run([task()], whole(events), checkpointed=False)
    assert verdict(rows).outcome is Outcome.CONFORMS
    assert verdict(rows).rows == len(events)
    kinds = {row["kind"] for row in rows}
    facts = {kind.value for kind in FactKind if kind not in (FactKind.KNOWN, FactKind.HEARD)}
    assert facts | {VERDICT, RULE, OPENED, END} == kinds
    assert {"REG-1", "AUTH-1"} <= {row["name"] for row in rows if row["kind"] == RULE}


def test_the_cuts_between_batches_make_no_difference() -> None:
    events, _ = busy_hub()
    by_one, by_many = (run([task()], whole(events, size), checkpointed=False) for size in (1, 5000))
    assert sorted(map(str, by_one)) == sorted(map(str, by_many))


def segmented(checkpoints: dict[int, Checkpoint], bound: int, *, kept: bool = True) -> list[dict[str, Any]]:
    """Two segments, parted by the checkpoint at ``bound``; every other checkpoint is compared on the way."""
    events, _ = busy_hub()
    first, second = task(0, FIRST, bound), task(1, bound, LAST)
    batches = []
    for part in (first, second):
        if part.resumes and kept:
            batches += [b for b in instructions(part.number, checkpoints[bound], begins=True) if _role(b) == BEGIN]
        for event in events:
            if not part.begin <= event.sequence <= part.end:
                continue
            if event.sequence in checkpoints and (kept or event.sequence != bound):
                sealed = instructions(part.number, checkpoints[event.sequence], begins=False)
                batches += [batch for batch in sealed if _role(batch) == SEAL]
            batches.append(stream(part.number, [event]))
    return run([first, second], batches)


def _role(batch: Any) -> int:
    return int(batch.column("role")[0].as_py())


def kept() -> dict[int, Checkpoint]:
    return {checkpoint.sequence: checkpoint for checkpoint in busy_hub()[1]}


def test_segments_say_together_what_the_whole_says() -> None:
    events, _ = busy_hub()
    bound = sorted(kept())[len(kept()) // 2]
    rows = segmented(kept(), bound)
    assert verdict(rows).outcome is Outcome.CONFORMS
    assert verdict(rows).segments == 2
    alone = run([task()], whole(events), checkpointed=False)
    names = Fact.__struct_fields__

    def facts(rows: list[dict[str, Any]]) -> list[tuple[str, Fact]]:
        kinds = {kind.value: kind for kind in FactKind}
        given = [{**row, "kind": kinds[row["kind"]]} for row in rows if row["kind"] in kinds]
        return [(row["hub"], Fact(**{name: row[name] for name in names})) for row in given]

    def rules(rows: list[dict[str, Any]]) -> dict[str, int]:
        counted: dict[str, int] = {}
        for row in rows:
            if row["kind"] == RULE:
                counted[row["name"]] = counted.get(row["name"], 0) + row["number"]
        return counted

    # A later segment does not know what an earlier one has said.
    missed = [fact for _, fact in facts(alone) if fact not in [other for _, other in facts(rows)]]
    assert [fact for fact in missed if fact.since >= bound or fact.sequence < bound] == [] and len(missed) < 3
    assert list(judge_all(facts(rows))) == list(judge_all(facts(alone))) == []
    assert rules(rows) == rules(alone)


@pytest.mark.parametrize("at_the_cut", [True, False])
def test_a_checkpoint_with_another_state_is_found(at_the_cut: bool) -> None:
    """Also one that says itself what digest it has: it is that of another state."""
    checkpoints = kept()
    places = sorted(checkpoints)
    bound, wrong = places[len(places) // 2], places[len(places) // 2 if at_the_cut else 1]
    other = checkpoints[places[0]]
    checkpoints[wrong] = msgspec.structs.replace(checkpoints[wrong], state=other.state, digest=other.digest)
    found = verdict(segmented(checkpoints, bound))
    assert (found.outcome, found.rule, found.sequence) == (Outcome.VIOLATES, "TRACE-3", wrong)


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\xff\xfe", b'["hub","node_id","x"]'])
def test_a_damaged_checkpoint_is_found(damage: bytes) -> None:
    checkpoints = kept()
    bound = sorted(checkpoints)[1]
    checkpoints[bound] = msgspec.structs.replace(checkpoints[bound], state=damage)
    found = verdict(segmented(checkpoints, bound))
    assert (found.outcome, found.rule, found.sequence) == (Outcome.VIOLATES, "TRACE-3", bound)


def test_a_missing_checkpoint_is_found() -> None:
    bound = sorted(kept())[1]
    found = verdict(segmented(kept(), bound, kept=False))
    assert (found.outcome, found.rule, found.sequence) == (Outcome.CANNOT_TELL, "TRACE-3", bound)


def test_two_checkpoints_of_one_row_that_differ_are_none() -> None:
    checkpoints = kept()
    places = sorted(checkpoints)
    events, _ = busy_hub()
    batches = []
    for event in events:
        if event.sequence in checkpoints:
            batches += instructions(0, checkpoints[event.sequence], begins=False)
            if event.sequence == places[2]:
                twice = msgspec.structs.replace(checkpoints[places[1]], sequence=places[2])
                batches += instructions(0, twice, begins=False)
        batches.append(stream(0, [event]))
    found = verdict(run([task()], batches))
    assert (found.outcome, found.rule, found.sequence) == (Outcome.VIOLATES, "TRACE-3", places[2])


def test_a_trace_that_begins_in_the_middle_of_a_hubs_life() -> None:
    events, checkpoints = busy_hub()
    begins = checkpoints[1]
    later = [event for event in events if event.sequence > begins.sequence and event.kind is not Kind.CHECKPOINT]
    opening = Opening(Order.HANDLED, form_of(decode_policy(begins.policy)), begins.digest)
    start = msgspec.structs.replace(events[0], payload=encode_opening(opening))
    rows = [msgspec.structs.replace(event, sequence=n) for n, event in enumerate([start, *later])]
    given = instructions(0, msgspec.structs.replace(begins, sequence=0), begins=True)
    judged = run([task()], [*given, *(stream(0, [row]) for row in rows)])
    assert verdict(judged).outcome is Outcome.CONFORMS
    known = {row["device_id"] for row in judged if row["kind"] == "known"}
    assert known and known <= {
        row["device_id"] for row in judged if row["kind"] in ("known", "held", "revoked", "heard")
    }
    without = verdict(run([task()], [stream(0, rows)]))
    assert (without.outcome, without.rule, without.sequence) == (Outcome.CANNOT_TELL, "TRACE-3", 0)


def test_rows_that_stand_in_the_wrong_order_are_found() -> None:
    events, _ = busy_hub()
    batch = stream(0, list(events[:100]))
    places = batch.column("place").to_pylist()
    places[50], places[51] = places[51], places[50]
    swapped = batch.set_column(batch.schema.get_field_index("place"), "place", pa.array(places, pa.int64()))
    for size in (100, 51, 1):
        found = verdict(run([task()], [swapped.slice(at, size) for at in range(0, 100, size)], checkpointed=False))
        assert (found.outcome, found.rule, found.sequence) == (Outcome.CANNOT_TELL, "TRACE-1", 51)


def test_rows_of_different_files_may_stand_anywhere() -> None:
    events, _ = busy_hub()
    first, second = stream(0, list(events[:60])), stream(0, list(events[60:120]))
    at = first.schema.get_field_index("piece")
    elsewhere = second.set_column(at, "piece", pa.array([2] * 60, pa.int64()))
    at = elsewhere.schema.get_field_index("place")
    elsewhere = elsewhere.set_column(at, "place", pa.array([*range(60)], pa.int64()))
    assert verdict(run([task()], [first, elsewhere], checkpointed=False)).outcome is not Outcome.VIOLATES


def test_a_row_of_an_unknown_kind_ends_that_hub_only() -> None:
    events, _ = busy_hub()
    good, bad = stream(0, list(events)), stream(1, list(events[:10]))
    kinds = bad.column("kind").to_pylist()
    at = bad.schema.get_field_index("kind")
    bad = bad.set_column(at, "kind", pa.array(["what"] * len(kinds)))
    other = Task(1, "generated", "other", FIRST, LAST, 0, 0)
    rows = run([task(), other], [good, bad], checkpointed=False)
    results = [merge_verdicts([(row["name"], row["number"])], 0) for row in rows if row["kind"] == VERDICT]
    assert [result.outcome for result in results] == [Outcome.CONFORMS, Outcome.CANNOT_TELL]
    assert results[1].rule == "TRACE-5"


def test_whatever_goes_wrong_in_one_replay_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Replay):
        def feed(self, event: Event) -> None:
            if event.sequence == 7:
                raise ZeroDivisionError
            super().feed(event)

    monkeypatch.setattr(segment, "Replay", Broken)
    events, _ = busy_hub()
    found = verdict(run([task()], whole(events), checkpointed=False))
    assert (found.outcome, found.sequence) == (Outcome.CANNOT_TELL, 7)
    assert "ZeroDivisionError" in found.seen


def test_no_rows_are_no_success() -> None:
    assert run([task()], []) == []
    only_seal = instructions(0, busy_hub()[1][0], begins=False)
    assert verdict(run([task()], only_seal)).outcome is Outcome.CANNOT_TELL
