"""Hubs of other people on Spark: the same is said of their recordings as on one process."""

from pathlib import Path

from msgspec.structs import replace
from pyspark.sql import SparkSession

from hubauth.forms.events import Event, Order
from hubauth.judge.verdicts import Outcome
from tests.judge.strange_findings import Taken, taken
from tests.judge.strange_recipes import RECIPES
from tests.spark.traces import judge, write_rows
from tests.trace.harness import verdict_of


def test_all_recordings_are_judged_as_on_one_process(spark: SparkSession, tmp_path: Path) -> None:
    recordings: dict[str, Taken] = {}
    rows: list[Event] = []
    for recipe in RECIPES:
        for order in Order:
            for faulty in (False, True):
                name = f"{recipe.name}-{order.value}-{'faulty' if faulty else 'right'}"
                one = recordings[name] = taken(recipe, order, tmp_path, faulty=faulty)
                rows += [replace(row, trace=name) for row in one.rows]
    write_rows(tmp_path / "traces", rows, [])
    summary = judge(spark, tmp_path / "traces", tmp_path / "report")

    here = {name: verdict_of(one.rows) for name, one in recordings.items()}
    wrong = {name for name, verdict in here.items() if verdict.outcome is Outcome.VIOLATES}
    assert wrong == {name for name in recordings if name.endswith("faulty")}
    found = {hub.trace: hub for hub in summary.not_conforming}
    assert found.keys() == wrong
    for name, hub in found.items():
        told = [(each.rule, each.what, each.sequence, each.times) for each in hub.findings]
        assert told == [(each.rule, each.what, each.sequence, each.times) for each in here[name].findings], name
