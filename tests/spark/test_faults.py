"""Every fault that can be planted is found, at its hub, with the rule it breaks; and nobody else is accused."""

from pathlib import Path

from pyspark.sql import SparkSession

from hubauth.judge.verdicts import Outcome
from hubauth.spark.results import Summary
from hubauth.spark.spanning import SENT_IS_RECEIVED
from hubauth.trace.faults import FAULTS, NEVER_THERE
from hubauth.trace.generate import Blueprint
from hubauth.trace.judge import judge as judge_in_one_process
from hubauth.trace.planting import INNER_HUB, Plan
from tests.spark.traces import judge, write

HUBS = 18
FOUND_ELSEWHERE = {"swallows_revokes": {f"hub-{number}" for number in range(9, 17)}}
"""Fault -> the hubs one of which must be named: the hub at fault keeps no log, and those below it still hold what was
revoked. They go on answering for such a device, so that it may have been let in anywhere else as well."""
CONSEQUENCES = {
    "same_credential": {("IssuedOnce", "REG-4")},
    "admits_revoked": {("RevokedStaysOut", "REV-5")},
    "answers_from_cache": {("CredentialsNeverCachedUpstream", "REG-7"), ("RevokedStaysOut", "REV-5")},
    "node_id_twice": {("UniqueNodeIds", "REG-2")},
}
"""Fault -> which promises it breaks besides."""


def planted(directory: Path, name: str) -> Plan:
    # Revokes that leave something behind are rare: the device must have been on two hubs.
    events = 20_000 if name == "swallows_revokes" else 3_000
    plan = write(directory / name, Blueprint(HUBS, 40, events, 3, fault=name, checkpoint_events=300, trace=name))
    assert plan is not None and plan.done
    return plan


def test_every_planted_fault_is_found_with_its_rule(spark: SparkSession, tmp_path: Path) -> None:
    plans = {name: planted(tmp_path / "traces", name) for name in FAULTS}
    write(tmp_path / "traces" / "clean", Blueprint(HUBS, 40, 3000, 3, checkpoint_events=300, trace="clean"))
    summary = judge(spark, tmp_path / "traces", tmp_path / "report")

    alone: dict[str, set[tuple[str, str]]] = {name: set() for name in (*FAULTS, "clean")}
    for hub in summary.not_conforming:
        alone[hub.trace].add((hub.hub, hub.rule))
    expected = {name: set() if plan.fault.spans else {(plan.hub, plan.fault.rule)} for name, plan in plans.items()}
    assert alone == {**expected, "clean": set()}

    together: dict[str, set[tuple[str, str, str]]] = {name: set() for name in (*FAULTS, "clean")}
    for finding in summary.findings:
        together[finding.trace].add((finding.check, finding.hub, finding.rule))
    promises_are_judged_alike_in_one_process(tmp_path / "traces", summary)
    for name, plan in plans.items():
        fault, found = plan.fault, together.pop(name)
        checks = {(check, rule) for check, _, rule in found}
        if not fault.spans:
            assert checks == CONSEQUENCES.get(name, set()), (name, found)
            continue
        assert checks == {(fault.spans, fault.rule)}, (name, found)
        hubs = {hub for _, hub, _ in found}
        assert hubs & FOUND_ELSEWHERE[name] if name in FOUND_ELSEWHERE else hubs == {plan.hub}, (name, found)
    assert together == {"clean": set()}

    assert summary.exit_code == 1
    outcomes = {trace.trace: trace.outcome for trace in summary.traces}
    assert outcomes.pop("clean") is Outcome.CONFORMS
    assert Outcome.CONFORMS not in outcomes.values()
    assert all(check.looked_at for check in summary.checks)
    the_two_checks_that_need_more_than_one_hub(summary)


def the_two_checks_that_need_more_than_one_hub(summary: Summary) -> None:
    swallowed = [finding for finding in summary.findings if finding.trace == "swallows_revokes"]
    assert {finding.outcome for finding in swallowed} == {Outcome.VIOLATES}
    (cached,) = [finding for finding in summary.findings if finding.trace == "caches_upstream"]
    assert (cached.outcome, cached.hub) == (Outcome.VIOLATES, INNER_HUB)
    assert NEVER_THERE in cached.seen


def promises_are_judged_alike_in_one_process(directory: Path, summary: Summary) -> None:
    breaches = judge_in_one_process(sorted(directory.iterdir())).breaches
    alone = {
        (one.trace, one.broken.promise, one.broken.hub, one.broken.sequence, one.broken.other, one.broken.since)
        for one in breaches
        if one.outcome is Outcome.VIOLATES
    }
    assert alone == {
        (one.trace, one.check, one.hub, one.sequence, one.other, one.since)
        for one in summary.findings
        if one.check != SENT_IS_RECEIVED and one.outcome is Outcome.VIOLATES
    }
