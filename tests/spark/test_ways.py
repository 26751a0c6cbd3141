"""Tasks that read their own row groups, and rows that Spark sorts, come to the same; only in the one way rows move."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from hubauth.forms.events import Checkpoint, Event, Kind
from hubauth.spark import plan, spanning, work
from hubauth.spark.access import Access
from hubauth.spark.rows import read_rows
from hubauth.spark.segment import OUT
from hubauth.spark.storage import Storage
from hubauth.trace import parquet
from hubauth.trace.generate import Blueprint
from tests.spark.traces import judge, rows_of, write, write_rows

TABLES = ("hubs", "findings", "links", "coverage", "facts")


def write_mixed(directory: Path, events: list[Event], checkpoints: list[Checkpoint]) -> None:
    """As no recorder does: row groups that all hubs share."""
    for name, writer, rows in (
        ("events", parquet.EventWriter, events),
        ("checkpoints", parquet.CheckpointWriter, checkpoints),
    ):
        (directory / name).mkdir(parents=True)
        if rows:
            file: Any = writer(directory / name / "part-0000.parquet")
            file.write(rows)
            file.close()


def swapped(events: list[Event]) -> list[Event]:
    """Two rows of one hub the wrong way round."""
    first, second = [at for at, event in enumerate(events) if event.hub == "hub-1"][40:42]
    events[first], events[second] = events[second], events[first]
    return events


def altered(events: list[Event]) -> list[Event]:
    """A frame between hubs arrives otherwise."""
    at = [at for at, row in enumerate(events) if row.kind is Kind.FRAME_IN and row.link == 0][20]
    events[at] = replace(events[at], timestamp=events[at].timestamp + 1)
    return events


def traces(cut: str) -> dict[str, tuple[list[Event], list[Checkpoint]]]:
    found = {}
    for name, fault in (("clean", ""), ("wrong", "wrong_code"), ("revoked", "admits_revoked")):
        found[name] = rows_of(Blueprint(5, 20, 2000, 4, fault=fault, checkpoint_events=150, trace=name))
    for name, change in (("swapped", swapped), ("altered", altered)):
        events, checkpoints = rows_of(Blueprint(4, 15, 1500, 6, checkpoint_events=150, trace=name))
        found[name] = (change(events), checkpoints)
    events, checkpoints = rows_of(Blueprint(2, 15, 1500, 8, checkpoint_events=150, trace=cut))
    # A checkpoint of a row that is none: where files say that a hub can be cut, it cannot be.
    found[cut] = (events, [replace(checkpoint, sequence=checkpoint.sequence + 1) for checkpoint in checkpoints])
    return found


def tables(report: Path) -> dict[str, list[str]]:
    """As sorted rows, but for the number of a task: it says in which order tasks were planned."""
    plain: dict[str, list[str]] = {}
    for name in TABLES:
        table: Any = pq.read_table(report / name)
        plain[name] = sorted(str({**row, "task": None}) for row in table.to_pylist())
    return plain


def test_both_ways_come_to_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SMALLEST_SEGMENT", 300)
    sorted_hubs: list[set[tuple[str, str]]] = []
    way = work.replay_sorted

    def watched(spark: SparkSession, rows: Any, tasks: Any, links: Any) -> DataFrame:
        sorted_hubs.append({(task.trace, task.hub) for task in tasks})
        return way(spark, rows, tasks, links)

    monkeypatch.setattr(work, "replay_sorted", watched)
    for name, (events, checkpoints) in traces("cut").items():
        write_rows(tmp_path / "tidy" / name, events, checkpoints)
        write_mixed(tmp_path / "mixed" / name, events, checkpoints)
    tidy = judge(spark, tmp_path / "tidy", tmp_path / "one")
    moved = sorted_hubs.pop()
    assert ("swapped", "hub-1") in moved and moved <= {("swapped", "hub-1"), ("cut", "hub-0"), ("cut", "hub-1")}
    mixed = judge(spark, tmp_path / "mixed", tmp_path / "other")
    assert len(sorted_hubs.pop()) == tidy.hubs == mixed.hubs
    assert tidy.segments > tidy.hubs
    one, other = tables(tmp_path / "one"), tables(tmp_path / "other")
    for name in TABLES:
        # A checkpoint of no row is one where rows are looked at, so that another segment begins there.
        uncut = [[row for row in rows[name] if "'cut'" not in row] for rows in (one, other)]
        assert uncut[0] == uncut[1] != [], name
    assert tidy.outcomes == mixed.outcomes and tidy.checks == mixed.checks and tidy.coverage == mixed.coverage
    assert tidy.findings == mixed.findings


def explained(table: DataFrame) -> str:
    said = io.StringIO()
    with redirect_stdout(said):
        table.explain()
    return said.getvalue()


def test_only_tasks_and_facts_are_shuffled(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", Blueprint(3, 10, 600, 7, checkpoint_events=200, trace="t"))
    rows = read_rows(spark, Storage(spark), str(tmp_path / "t"), str(tmp_path / "scratch"))
    todo = work.look_through(rows)
    assert len(todo.tidy) == 3 and not todo.others.hubs
    tasks = [plan.with_groups(task, rows.events.index, rows.states.index) for task in plan.make_tasks(todo.tidy, 2)]
    said = explained(work.replay_in_order(spark, rows, tasks, {}))
    assert "LocalTableScan" in said and said.count("Exchange") == 1
    assert "Sort" not in said and "parquet" not in said.lower() and "payload" not in said

    judge(spark, tmp_path / "t", tmp_path / "report")
    facts = spark.read.parquet(str(tmp_path / "report" / "facts"))
    for table in (spanning.ways(facts, set()), spanning.promises(facts)):
        said = explained(table)
        assert said.count("Exchange") == 1 and "payload" not in said, "one shuffle, of facts"


def test_facts_grow_with_what_was_seen_and_not_with_devices_times_hubs(spark: SparkSession, tmp_path: Path) -> None:
    """Ten times the devices at ten times the hubs, and as many rows: not many more facts."""
    sizes = []
    for hubs, devices in ((3, 20), (30, 200)):
        write(tmp_path / f"{hubs}", Blueprint(hubs, devices, 4_000, 7, trace="t"))
        judge(spark, tmp_path / f"{hubs}", tmp_path / f"report-{hubs}")
        sizes.append(pq.read_table(tmp_path / f"report-{hubs}" / "facts").num_rows)
    assert sizes[1] < 5 * sizes[0], sizes


def test_what_spark_was_told_of_a_store_holds_for_executors() -> None:
    settings = {
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "s",
        "fs.s3a.bucket.b.secret.key": "of the bucket",
        "fs.s3a.endpoint": "http://storage.example:9000",
        "fs.s3a.path.style.access": "true",
    }
    wanted = Access.wanted("s3a://b/traces/x.parquet")
    assert settings.keys() <= set(wanted) and Access.wanted("hdfs://n/x") == Access.wanted("file:/x") == []
    given = Access(settings)._s3("b")
    assert given == {
        "access_key": "a",
        "secret_key": "of the bucket",
        "endpoint_override": "storage.example:9000",
        "scheme": "http",
        "force_virtual_addressing": False,
    }
    assert "of the bucket" not in repr(Access(settings))
    assert OUT.field("end").type == pa.binary()
