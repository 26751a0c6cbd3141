"""``validate``: the whole job, from a path to a verdict and a directory of results."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

from attrs import frozen
from pyspark.sql import DataFrame, SparkSession

from hubauth.judge.verdicts import Outcome, worst
from hubauth.spark.between import Between, Coverage
from hubauth.spark.plan import BIN_ROWS, Task
from hubauth.spark.results import (
    SHOWN,
    Check,
    Finding,
    HubResult,
    Summary,
    TraceResult,
    exit_code,
    merge_verdicts,
    unreadable,
    with_problems,
)
from hubauth.spark.rows import NothingToJudge, Problem, Rows, problem_of, read_rows
from hubauth.spark.segment import VERDICT
from hubauth.spark.storage import Storage, join
from hubauth.spark.tables import small_table
from hubauth.spark.work import Replayed, look_through, replay
from hubauth.specification import Basis, rules

Phase = Callable[[str], AbstractContextManager[None]]

_HUB_COLUMNS = (
    "trace string, hub string, outcome string, rows long, segments int, sequence long, "
    "rule string, text string, expected string, seen string, missing string, leads array<string>"
)


@frozen
class Result:
    """The summary, and what a report draws beside it."""

    summary: Summary
    hubs: tuple[HubResult, ...]


def validate(spark: SparkSession, path: str, report: str, phase: Phase, basis: Basis = "all") -> Result:
    """Judge everything below ``path`` and write tables to ``report``. Raises StorageProblem and NothingToJudge."""
    begun = time.monotonic()
    storage = Storage(spark)
    scratch = join(report, "_scratch")
    try:
        with phase("reading"):
            rows = read_rows(spark, storage, path, scratch)
            work = look_through(rows)
        if not work.rows and not rows.problems:
            raise NothingToJudge(f"{path} holds no rows")
        # Of Spark's 200 most would be empty.
        partitions = max(spark.sparkContext.defaultParallelism, work.rows // BIN_ROWS)
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        replaying = time.monotonic()
        with phase("replaying"):
            replayed = replay(spark, storage, rows, work, report)
        seconds = time.monotonic() - replaying
        with phase("comparing"):
            problems = _problems(rows, replayed)
            hubs = with_problems(_merge(replayed, basis), problems)
            _table(spark, hubs).write.mode("overwrite").parquet(join(report, "hubs"))
            between = Between(hubs, replayed.told, basis)
            findings, checks, coverage = between.check(rows, replayed.facts, report)
    finally:
        storage.remove(scratch)
    return Result(
        summary=_summary(
            path=path,
            spark=spark,
            hubs=hubs,
            tasks=replayed.tasks,
            findings=findings,
            checks=checks,
            coverage=coverage,
            problems=problems,
            seconds=time.monotonic() - begun,
            replayed=seconds,
        ),
        hubs=tuple(hubs),
    )


# Verdicts


def _merge(replayed: Replayed, basis: Basis) -> list[HubResult]:
    """One verdict per hub; whoever has fewer rows than were counted has lost some to a damaged file."""
    segments: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in sorted((row for row in replayed.told if row.kind == VERDICT), key=lambda row: row.task):
        segments.setdefault((row.trace, row.hub), []).append((row["name"], row.number))
    merged = []
    for hub in replayed.hubs:
        found = segments.get((hub.trace, hub.hub), [])
        # The row of a checkpoint belongs to both segments that it parts.
        rows = sum(rows for _, rows in found) - max(len(found) - 1, 0)
        result = merge_verdicts(found, rows, basis) if found else None
        if result is None or (rows < hub.rows and result.outcome is Outcome.CONFORMS):
            lost = Problem("file", f"{hub.rows - rows} rows could not be read", hub.trace, hub.hub)
            result = unreadable(hub.trace, hub.hub, [lost], rows)
        merged.append(result)
    return merged


def _problems(rows: Rows, replayed: Replayed) -> list[Problem]:
    """Files that cannot be read, and files of which less could be read than they say they hold."""
    said = rows.events.index.rows_in
    short = [
        problem_of(file, f"{said[file] - counted} of {said[file]} rows cannot be read")
        for file, counted in replayed.counted.items()
        if counted < said[file]
    ]
    return [*rows.problems, *short]


def _table(spark: SparkSession, hubs: list[HubResult]) -> DataFrame:
    plain = [
        (h.trace, h.hub, h.outcome.value, h.rows, h.segments, h.sequence)
        + (h.rule, h.text, h.expected, h.seen, h.missing, list(h.leads))
        for h in hubs
    ]
    return small_table(spark, plain, _HUB_COLUMNS)


# All together


def _summary(
    *,
    path: str,
    spark: SparkSession,
    hubs: list[HubResult],
    tasks: list[Task],
    findings: list[Finding],
    checks: list[Check],
    coverage: Coverage,
    problems: list[Problem],
    seconds: float,
    replayed: float,
) -> Summary:
    rows = sum(hub.rows for hub in hubs)
    outcome = worst([*(hub.outcome for hub in hubs), *(check.outcome for check in checks)])
    overall: Counter[str] = Counter()
    per_trace: Counter[str] = Counter()
    for (trace, rule), steps in coverage.items():
        overall[rule] += steps
        per_trace[trace] += 1
    of_trace: dict[str, list[HubResult]] = {}
    for hub in hubs:
        of_trace.setdefault(hub.trace, []).append(hub)
    between: dict[str, list[Outcome]] = {}
    for finding in findings:
        between.setdefault(finding.trace, []).append(finding.outcome)
    wrong = [hub for hub in hubs if hub.outcome is not Outcome.CONFORMS]
    return Summary(
        path=path,
        master=spark.sparkContext.master or "",
        outcome=outcome,
        exit_code=exit_code(outcome, unreadable=bool(problems)),
        rows=rows,
        hubs=len(hubs),
        segments=len(tasks),
        seconds=round(seconds, 3),
        rows_per_second=round(rows / max(replayed, 1e-9)),
        outcomes={kind.value: sum(hub.outcome is kind for hub in hubs) for kind in Outcome},
        traces=tuple(
            TraceResult(
                trace=trace,
                outcome=worst([*(hub.outcome for hub in members), *between.get(trace, [])]),
                hubs=len(members),
                rows=sum(hub.rows for hub in members),
                rules=per_trace[trace],
            )
            for trace, members in of_trace.items()
        ),
        not_conforming=tuple(sorted(wrong, key=lambda hub: hub.outcome is not Outcome.VIOLATES)[:SHOWN]),
        findings=tuple(findings),
        checks=tuple(checks),
        coverage=dict(sorted(overall.items())),
        not_covered=tuple(rule for rule in rules() if rule not in overall),
        unreadable=tuple(f"{problem.file}: {problem.what}" for problem in problems),
    )
