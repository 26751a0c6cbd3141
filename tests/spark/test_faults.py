"""Every fault that can be planted is found, at its hub, with the rule it breaks; and nobody else is accused."""

from pathlib import Path

from pyspark.sql import SparkSession

from hubauth.trace.faults import FAULTS
from hubauth.trace.generate import Blueprint
from hubauth.trace.verdicts import Outcome
from tests.spark.traces import judge, write

_CHECKPOINT_EVENTS = 300


def test_every_planted_fault_is_found_with_its_rule(spark: SparkSession, tmp_path: Path) -> None:
    plans = {
        name: write(
            tmp_path / "traces" / name,
            Blueprint(10, 30, 1500, 3, fault=name, checkpoint_events=_CHECKPOINT_EVENTS, trace=name),
        )
        for name in FAULTS
    }
    write(
        tmp_path / "traces" / "clean", Blueprint(10, 30, 1500, 3, checkpoint_events=_CHECKPOINT_EVENTS, trace="clean")
    )
    summary = judge(spark, tmp_path / "traces", tmp_path / "report")

    broken: dict[str, set[str]] = {name: set() for name in (*FAULTS, "clean")}
    accused: dict[str, set[str]] = {name: set() for name in FAULTS}
    for hub in summary.not_conforming:
        broken[hub.trace].add(hub.rule)
        accused[hub.trace].add(hub.hub)
    for finding in summary.findings:
        broken[finding.trace].add(finding.rule)
    assert broken == {**{name: {fault.rule} for name, fault in FAULTS.items()}, "clean": set()}
    # A frame that never arrives is nobody's fault; whatever else was planted, only its hub does not conform.
    expected = {name: set() if plan.fault.loses_frame else {plan.hub} for name, plan in plans.items() if plan}
    assert accused == expected
    assert summary.exit_code == 1
    outcomes = {trace.trace: trace.outcome for trace in summary.traces}
    assert outcomes.pop("clean") is Outcome.CONFORMS
    assert Outcome.CONFORMS not in outcomes.values()
