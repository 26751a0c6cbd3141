"""The replay as Spark jobs: tasks that read their own row groups, and what has to be brought together for the others.

Where files say whose rows they hold and these are in order, only a list of tasks is a DataFrame, and no row is. The
rows of all other hubs (JSON Lines, row groups that hubs share, no order, damage) are sorted by Spark first.
"""

from collections import Counter
from typing import Any

from attrs import evolve, frozen
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from hubauth.core.inputs import PARENT
from hubauth.forms.events import Kind
from hubauth.judge.facts import FactKind
from hubauth.spark.index import Hub
from hubauth.spark.plan import Census, HubLog, Task, log_of, make_tasks, take_census, with_groups
from hubauth.spark.reading import encode_task, find_links, replay_groups
from hubauth.spark.replaying import BEGIN, COLUMNS, INSTRUCTIONS, ROW, replay_tasks, seal_checkpoints
from hubauth.spark.rows import Rows
from hubauth.spark.segment import OPENED, OUT, UNTIDY, VERDICT
from hubauth.spark.storage import Storage, join, literal
from hubauth.spark.tables import small_table

_EMPTY: dict[str, Any] = {"string": "", "binary": bytearray(), "bigint": 0, "int": 0}
_HUB = ["trace", "hub"]
_TOLD = (VERDICT, OPENED, UNTIDY, FactKind.SETTLED.value)
_NOBODY = Census((), {})


@frozen
class Work:
    """What there is to do: hubs whose rows are in order where they lie, and hubs whose rows were counted."""

    tidy: tuple[HubLog, ...]
    others: Census

    @property
    def rows(self) -> int:
        return sum(hub.rows for hub in self.tidy) + self.others.rows


@frozen
class Replayed:
    """What came of it."""

    hubs: tuple[HubLog, ...]
    tasks: list[Task]
    facts: DataFrame
    """Rows of ``OUT``, from where they were written to."""
    told: list[Row]
    """Those of them that the driver has to know: a few of each task."""
    counted: dict[str, int]
    """Of files whose rows were brought together: how many could be read."""


def look_through(rows: Rows) -> Work:
    """Plan from what files say about themselves; where they do not say enough, count."""
    index, states = rows.events.index, rows.states.index
    in_order = {hub: index.in_order(hub) for hub in index.hubs} if rows.states.tells else {}
    others = index.hubs.keys() - {hub for hub, groups in in_order.items() if groups is not None}
    census = _census(rows, others) if others or not rows.events.tells else _NOBODY
    mixed = {(log.trace, log.hub) for log in census.hubs} & index.hubs.keys()
    if mixed - others:
        # Some of their rows are in files that do not tell: only all together are they in order.
        others |= mixed
        census = _census(rows, others)
    tidy = [
        log_of(hub, groups, states.hubs.get(hub, []))
        for hub, groups in sorted(in_order.items())
        if groups is not None and hub not in others
    ]
    return Work(tuple(tidy), census)


def _census(rows: Rows, hubs: set[Hub]) -> Census:
    """Count the rows of these hubs, and of all in files that do not tell."""
    census = take_census(rows.events_of(hubs), rows.checkpoints)
    index = rows.events.index
    known = index.hubs.keys() - hubs
    return evolve(
        census,
        hubs=tuple(log for log in census.hubs if (log.trace, log.hub) not in known),
        rows_of_file={file: census.rows_of_file.get(file, 0) for file in {*index.files_of(hubs), *index.silent}},
    )


def replay(spark: SparkSession, storage: Storage, rows: Rows, work: Work, report: str) -> Replayed:
    """Let executors judge every hub; what they tell goes to the table ``facts`` of the report."""
    cores, place = spark.sparkContext.defaultParallelism, join(report, "facts")
    tasks = [
        with_groups(task, rows.events.index, rows.states.index) for task in make_tasks(work.tidy, cores, work.rows)
    ]
    links = _links_to_parents(spark, rows, tasks, work.others)
    census, told = work.others, list[Row]()
    if tasks or not census.hubs:
        facts = _written(replay_in_order(spark, rows, tasks, links), place)
        told = facts.filter(F.col("kind").isin(*_TOLD)).collect()
    again = {(row.trace, row.hub) for row in told if row.kind == UNTIDY}
    if again:
        # Nothing of what they told counts.
        census = _census(rows, again | {(log.trace, log.hub) for log in census.hubs} & rows.events.index.hubs.keys())
        tasks = [task for task in tasks if (task.trace, task.hub) not in again]
    if census.hubs or again:
        late = make_tasks(census.hubs, cores, work.rows)
        sorted_facts = replay_sorted(spark, rows, late, links)
        if told:
            before = join(report, "_scratch", "facts")
            storage.move(place, before)
            first = spark.read.schema(from_arrow_schema(OUT)).parquet(literal(before))
            anew = small_table(spark, sorted(again), "trace string, hub string")
            sorted_facts = first.join(F.broadcast(anew), _HUB, "left_anti").unionByName(sorted_facts)
        facts = _written(sorted_facts, place)
        told = facts.filter(F.col("kind").isin(*_TOLD)).collect()
        tasks = [*tasks, *late]
    hubs = [log for log in work.tidy if (log.trace, log.hub) not in again]
    together = sorted([*hubs, *census.hubs], key=lambda log: (log.trace, log.hub))
    return Replayed(tuple(together), tasks, facts, told, census.rows_of_file)


def _written(facts: DataFrame, place: str) -> DataFrame:
    facts.write.mode("overwrite").parquet(place)
    return facts.sparkSession.read.schema(from_arrow_schema(OUT)).parquet(literal(place))


def _links_to_parents(spark: SparkSession, rows: Rows, tasks: list[Task], others: Census) -> dict[str, set[str]]:
    """Trace -> the connections of hubs to their parents, where there is more than one hub; others are of devices."""
    hubs = {(task.trace, task.hub) for task in tasks} | {(log.trace, log.hub) for log in others.hubs}
    in_trace = Counter(trace for trace, _ in hubs)
    wanted = [task for task in tasks if in_trace[task.trace] > 1 and any(group.reaches_up for group in task.groups)]
    names = "trace string, connection string"
    found = _dealt(spark, wanted).mapInArrow(find_links(rows.access), names).collect() if wanted else []
    if others.hubs:
        is_one = (F.col("kind") == Kind.LINK_UP.value) & (F.col("link") == PARENT)
        events = rows.events_of({(log.trace, log.hub) for log in others.hubs} & rows.events.index.hubs.keys())
        found += events.filter(is_one).select("trace", "connection").distinct().collect()
    links: dict[str, set[str]] = {}
    for row in found:
        links.setdefault(row.trace, set()).add(row.connection)
    return links


def _dealt(spark: SparkSession, tasks: list[Task]) -> DataFrame:
    """Tasks as the only column, in as many partitions as there are bins."""
    plan = small_table(spark, [(task.bin, encode_task(task)) for task in tasks], "bin int, task binary")
    bins = max((task.bin for task in tasks), default=0) + 1
    return plan.repartitionById(bins, F.col("bin")).select("task")


def replay_in_order(spark: SparkSession, rows: Rows, tasks: list[Task], links: dict[str, set[str]]) -> DataFrame:
    """Every task to one executor, which reads the rows itself; out come rows of ``OUT``."""
    judge = replay_groups(rows.access, rows.has_checkpoints, links)
    return _dealt(spark, tasks).mapInArrow(judge, from_arrow_schema(OUT))


def replay_sorted(spark: SparkSession, rows: Rows, tasks: list[Task], links: dict[str, set[str]]) -> DataFrame:
    """Every task's rows together, sorted, to one executor; out come rows of ``OUT``."""
    out = from_arrow_schema(OUT)
    if not tasks:
        return spark.createDataFrame([], out)
    plain = [(task.trace, task.hub, task.begin, task.end, task.number, task.bin) for task in tasks]
    names = "trace string, hub string, begin long, end long, task long, bin int"
    plan = F.broadcast(small_table(spark, plain, names))
    inside = F.col("sequence").between(F.col("begin"), F.col("end"))
    events = rows.events_of({(task.trace, task.hub) for task in tasks})
    given = events.join(plan, _HUB).filter(inside).select(*COLUMNS[:-1], F.lit(ROW).alias("role"), "bin")
    if rows.has_checkpoints:
        instructions = _instructions(rows.checkpoints, plan)
        # A trace that begins in the middle of a hub's life has a checkpoint of its first row.
        begins = (F.col("role") == BEGIN) & (F.col("sequence") == F.greatest("begin", F.lit(0)))
        meant = instructions.join(plan, _HUB).filter(begins | ((F.col("role") != BEGIN) & inside))
        given = given.unionByName(meant.select(*_padded(given, meant)))
    bins = max(task.bin for task in tasks) + 1
    ordered = given.repartitionById(bins, F.col("bin")).drop("bin").sortWithinPartitions("task", "sequence", "role")
    by_number = {task.number: task for task in tasks}
    return ordered.mapInArrow(replay_tasks(by_number, rows.has_checkpoints, links), out)


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
