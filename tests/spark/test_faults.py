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

    accused: dict[str, list[tuple[str, str]]] = {name: [] for name in (*FAULTS, "clean")}
    for hub in summary.not_conforming:
        accused[hub.trace].append((hub.hub, hub.rule))
    for finding in summary.findings:
        accused[finding.trace].append((finding.hub, finding.rule))
    expected = {name: plan.fault.rule for name, plan in plans.items() if plan is not None}
    found = {name: sorted({rule for _, rule in accused[name]}) for name in FAULTS}
    assert found == {name: [rule] for name, rule in expected.items()}
    assert accused["clean"] == []
    wrong_hub = {
        name: accused[name]
        for name, plan in plans.items()
        if plan is not None and not plan.fault.loses_frame and {hub for hub, _ in accused[name]} != {plan.hub}
    }
    assert wrong_hub == {}
    assert summary.exit_code == 1
    outcomes = {trace.trace: trace.outcome for trace in summary.traces}
    assert outcomes.pop("clean") is Outcome.CONFORMS
    assert Outcome.CONFORMS not in outcomes.values()
