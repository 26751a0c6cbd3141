"""Who replays what: each hub's rows as one task, or cut at checkpoints into several; tasks dealt out evenly.

Where row groups say what is in them, that is planned from what they say, and a task names those that hold its rows.
Else the rows are counted first.
"""

import heapq
from bisect import bisect_left
from itertools import pairwise

from attrs import evolve, frozen
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hubauth.forms.events import Kind
from hubauth.spark.index import Group, Hub, Index
from hubauth.spark.rows import plain_path

TASKS_PER_CORE = 4
SMALLEST_SEGMENT = 20_000
"""Rows. Less is not worth reading a checkpoint for."""
BIN_ROWS = 2_000_000
"""What one executor task sorts at a time, about."""

FIRST, LAST = -(2**63), 2**63 - 1


@frozen
class HubLog:
    """The rows of one hub, counted."""

    trace: str
    hub: str
    rows: int
    last: int
    """The highest sequence."""
    checkpoints: tuple[int, ...]
    """The sequences at which it can be cut, ascending."""


@frozen
class Task:
    """Rows ``begin`` to ``end`` of a hub, both included; a checkpoint's row ends one segment and begins the next."""

    number: int
    trace: str
    hub: str
    begin: int
    end: int
    rows: int
    """About."""
    bin: int
    groups: tuple[Group, ...] = ()
    """The row groups that hold them, in order; none: they are brought together by Spark."""
    states: tuple[Group, ...] = ()
    """Those that hold the checkpoints of these rows."""

    @property
    def is_last(self) -> bool:
        return self.end == LAST

    @property
    def resumes(self) -> bool:
        """Whether it begins with a checkpoint and not with the empty state."""
        return self.begin != FIRST


@frozen
class Census:
    """What is there, before anything is judged."""

    hubs: tuple[HubLog, ...]
    rows_of_file: dict[str, int]

    @property
    def rows(self) -> int:
        return sum(hub.rows for hub in self.hubs)


def take_census(events: DataFrame, checkpoints: DataFrame) -> Census:
    """Count the rows of every hub and file. One pass over four small columns."""
    marked = F.when(F.col("kind") == Kind.CHECKPOINT.value, F.col("sequence"))
    counted = events.groupBy("trace", "hub", "file").agg(
        F.count("*").alias("rows"), F.max("sequence").alias("last"), F.collect_list(marked).alias("marked")
    )
    kept: dict[tuple[str, str], set[int]] = {}
    for row in checkpoints.select("trace", "hub", "sequence").collect():
        kept.setdefault((row.trace, row.hub), set()).add(row.sequence)
    hubs: dict[tuple[str, str], HubLog] = {}
    files: dict[str, int] = {}
    for row in counted.collect():
        key, file = (row.trace, row.hub), plain_path(row.file)
        files[file] = files.get(file, 0) + row["rows"]
        so_far = hubs.get(key) or HubLog(row.trace, row.hub, 0, row["last"], ())
        cuts = sorted({*so_far.checkpoints, *(kept.get(key, set()) & set(row.marked))})
        last = max(so_far.last, row["last"])
        hubs[key] = HubLog(row.trace, row.hub, so_far.rows + row["rows"], last, tuple(cuts))
    return Census(tuple(hub for _, hub in sorted(hubs.items())), files)


def log_of(hub: Hub, groups: list[Group], states: list[Group]) -> HubLog:
    """The same of a hub whose rows are in order, from what its row groups say. It is cut at the checkpoints that begin
    or end a row group, which are all, as they are written.
    """
    rows, last = sum(group.rows for group in groups), groups[-1].last
    marks = {mark for group in states for mark in (group.first, group.last) if groups[0].first < mark <= last}
    return HubLog(*hub, rows, last, tuple(sorted(marks)))


def with_groups(task: Task, rows: Index, states: Index) -> Task:
    """The task, and where its rows are."""
    hub = (task.trace, task.hub)
    return evolve(task, groups=_within(task, rows.in_order(hub)), states=_within(task, states.hubs.get(hub)))


def _within(task: Task, groups: list[Group] | None) -> tuple[Group, ...]:
    return tuple(group for group in groups or () if group.last >= task.begin and group.first <= task.end)


def make_tasks(hubs: tuple[HubLog, ...], cores: int, of_rows: int = 0) -> list[Task]:
    """Cut what is too large for an even share where a checkpoint allows it, and deal everything out.

    ``of_rows``: all that there are to judge, if these hubs' are not all.
    """
    total = sum(hub.rows for hub in hubs)
    share = max(-(-max(total, of_rows) // (cores * TASKS_PER_CORE)), SMALLEST_SEGMENT)
    segments = [(hub, begin, end, rows) for hub in hubs for begin, end, rows in _segments(hub, share)]
    wanted = max(cores * TASKS_PER_CORE, total // BIN_ROWS)
    loads = [(0, number) for number in range(min(wanted, len(segments)))]
    bins: dict[int, int] = {}
    # The largest first, each to whoever has least: never far from the best there is.
    for index in sorted(range(len(segments)), key=lambda index: -segments[index][3]):
        load, number = heapq.heappop(loads)
        bins[index] = number
        heapq.heappush(loads, (load + segments[index][3], number))
    return [
        Task(index, hub.trace, hub.hub, begin, end, rows, bins[index])
        for index, (hub, begin, end, rows) in enumerate(segments)
    ]


def _segments(hub: HubLog, share: int) -> list[tuple[int, int, int]]:
    """Begin, end and about how many rows."""
    pieces = -(-hub.rows // share)
    wanted = [hub.last * piece // pieces for piece in range(1, pieces)]
    cuts = sorted({_nearest(hub.checkpoints, sequence) for sequence in wanted if hub.checkpoints})
    bounds = [FIRST, *cuts, LAST]
    return [(begin, end, min(end, hub.last) - max(begin, 0) + 1) for begin, end in pairwise(bounds)]


def _nearest(sequences: tuple[int, ...], wanted: int) -> int:
    at = bisect_left(sequences, wanted)
    return min(sequences[max(at - 1, 0) : at + 1], key=lambda sequence: abs(sequence - wanted))
