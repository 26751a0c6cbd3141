"""``validate``: the whole job, from a path to a verdict and a directory of results."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from attrs import frozen
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hubauth.judge.facts import FactKind
from hubauth.judge.verdicts import Outcome, worst
from hubauth.spark.between import Between, Coverage
from hubauth.spark.plan import BIN_ROWS, Census, Task, make_tasks, take_census
from hubauth.spark.replaying import (
    BEGIN,
    COLUMNS,
    INSTRUCTIONS,
    OPENED,
    OUT,
    ROW,
    VERDICT,
    replay_tasks,
    seal_checkpoints,
)
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
from hubauth.spark.storage import Storage, join, literal
from hubauth.spark.tables import small_table
from hubauth.specification import Basis, rules

Phase = Callable[[str], AbstractContextManager[None]]

_EMPTY: dict[str, Any] = {"string": "", "binary": bytearray(), "bigint": 0, "int": 0}
_HUB = ["trace", "hub"]
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
            census = take_census(rows.events, rows.checkpoints)
            # Of Spark's 200 most would be empty.
            partitions = max(spark.sparkContext.defaultParallelism, census.rows // BIN_ROWS)
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        if not census.rows and not rows.problems:
            raise NothingToJudge(f"{path} holds no rows")
        cores = spark.sparkContext.defaultParallelism
        tasks = make_tasks(census.hubs, cores)
        replaying = time.monotonic()
        with phase("replaying"):
            _replay(spark, rows, tasks).write.mode("overwrite").parquet(join(report, "facts"))
        replayed = time.monotonic() - replaying
        facts = spark.read.schema(from_arrow_schema(OUT)).parquet(literal(join(report, "facts")))
        with phase("comparing"):
            problems = _problems(rows, census)
            told = facts.filter(F.col("kind").isin(VERDICT, OPENED, FactKind.SETTLED.value)).collect()
            hubs = with_problems(_merge(told, census, basis), problems)
            _table(spark, hubs).write.mode("overwrite").parquet(join(report, "hubs"))
            findings, checks, coverage = Between(hubs, told, basis).check(rows.events, facts, report)
    finally:
        storage.remove(scratch)
    return Result(
        summary=_summary(
            path=path,
            spark=spark,
            hubs=hubs,
            tasks=tasks,
            findings=findings,
            checks=checks,
            coverage=coverage,
            problems=problems,
            seconds=time.monotonic() - begun,
            replayed=replayed,
        ),
        hubs=tuple(hubs),
    )


# Replay


def _replay(spark: SparkSession, rows: Rows, tasks: list[Task]) -> DataFrame:
    """Every task's rows together, sorted, to one executor; out come rows of ``OUT``."""
    out = from_arrow_schema(OUT)
    if not tasks:
        return spark.createDataFrame([], out)
    plain = [(task.trace, task.hub, task.begin, task.end, task.number, task.bin) for task in tasks]
    names = "trace string, hub string, begin long, end long, task long, bin int"
    plan = F.broadcast(small_table(spark, plain, names))
    inside = F.col("sequence").between(F.col("begin"), F.col("end"))
    given = rows.events.join(plan, _HUB).filter(inside).select(*COLUMNS[:-1], F.lit(ROW).alias("role"), "bin")
    if rows.has_checkpoints:
        instructions = _instructions(rows.checkpoints, plan)
        # A trace that begins in the middle of a hub's life has a checkpoint of its first row.
        begins = (F.col("role") == BEGIN) & (F.col("sequence") == F.greatest("begin", F.lit(0)))
        meant = instructions.join(plan, _HUB).filter(begins | ((F.col("role") != BEGIN) & inside))
        given = given.unionByName(meant.select(*_padded(given, meant)))
    bins = max(task.bin for task in tasks) + 1
    ordered = given.repartitionById(bins, F.col("bin")).drop("bin").sortWithinPartitions("task", "sequence", "role")
    by_number = {task.number: task for task in tasks}
    return ordered.mapInArrow(replay_tasks(by_number, rows.has_checkpoints), out)


def _instructions(checkpoints: DataFrame, plan: DataFrame) -> DataFrame:
    """What the checkpoints really hold, and those to begin with themselves."""
    begun = plan.select(*_HUB, F.greatest("begin", F.lit(0)).alias("sequence"), F.lit(True).alias("begins"))
    flagged = checkpoints.join(F.broadcast(begun), [*_HUB, "sequence"], "left")
    together = flagged.withColumn("begins", F.coalesce("begins", F.lit(False)))
    return together.mapInArrow(seal_checkpoints, from_arrow_schema(INSTRUCTIONS))


def _padded(like: DataFrame, given: DataFrame) -> list[Column]:
    """The columns of ``like``, empty where ``given`` does not have them."""
    return [
        F.col(field.name)
        if field.name in given.columns
        else F.lit(_EMPTY[field.dataType.simpleString()]).cast(field.dataType).alias(field.name)
        for field in like.schema
    ]


# Verdicts


def _merge(told: list[Row], census: Census, basis: Basis) -> list[HubResult]:
    """One verdict per hub; whoever has fewer rows than were counted has lost some to a damaged file."""
    segments: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for row in sorted((row for row in told if row.kind == VERDICT), key=lambda row: row.task):
        segments.setdefault((row.trace, row.hub), []).append((row["name"], row.number))
    merged = []
    for hub in census.hubs:
        found = segments.get((hub.trace, hub.hub), [])
        # The row of a checkpoint belongs to both segments that it parts.
        rows = sum(rows for _, rows in found) - max(len(found) - 1, 0)
        result = merge_verdicts(found, rows, basis) if found else None
        if result is None or (rows < hub.rows and result.outcome is Outcome.CONFORMS):
            lost = Problem("file", f"{hub.rows - rows} rows could not be read", hub.trace, hub.hub)
            result = unreadable(hub.trace, hub.hub, [lost], rows)
        merged.append(result)
    return merged


def _problems(rows: Rows, census: Census) -> list[Problem]:
    """Files that cannot be read, and files of which less could be read than they say they hold."""
    short = [
        problem_of(file, f"{said - census.rows_of_file.get(file, 0)} of {said} rows cannot be read")
        for file, said in rows.rows_in.items()
        if census.rows_of_file.get(file, 0) < said
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
