"""The checks that span hubs, applied: which hubs take part in them, and what they come to."""

from collections import Counter
from functools import reduce
from typing import Any, TypeAlias

from msgspec.structs import replace
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from hubauth.forms.events import Event, Kind
from hubauth.forms.lines import encode_event
from hubauth.judge.facts import FactKind
from hubauth.judge.verdicts import Outcome, worst
from hubauth.report.conceal import conceal
from hubauth.seen import promised
from hubauth.spark import spanning
from hubauth.spark.results import SHOWN, Check, Finding, HubResult
from hubauth.spark.rows import Rows
from hubauth.spark.segment import OPENED, RULE
from hubauth.spark.storage import join
from hubauth.spark.tables import small_table, written
from hubauth.specification import Basis, basis_of, counts_under
from hubauth.trace.explain import AROUND
from hubauth.trace.parquet import SCHEMA

Coverage: TypeAlias = dict[tuple[str, str], int]
"""(trace, rule) -> in how many steps it decided."""
_HUB = ["trace", "hub"]
DRAWN = 5
"""Findings whose rows are drawn."""


class Between:
    """Who can be compared with whom: from the verdicts, and from what each hub ``told`` of its key and its end."""

    def __init__(self, hubs: list[HubResult], told: list[Row], basis: Basis = "all") -> None:
        self._basis = basis
        self.damaged = [(hub.trace, hub.hub) for hub in hubs if hub.outcome is Outcome.CANNOT_TELL]
        self.wrong = [(hub.trace, hub.hub) for hub in hubs if hub.outcome is Outcome.VIOLATES]
        """Hubs whose last state is not known: they did otherwise than the rules say."""
        self.mixed = _several({(row.trace, row.proof) for row in told if row.kind == OPENED})
        """Traces in which credentials were replaced under different keys."""
        self.unsettled = {
            row.trace: f"the rows after {row.hub} had done all it had to"
            for row in told
            if row.kind == FactKind.SETTLED.value and not row.number
        }

    def check(self, rows: Rows, facts: DataFrame, report: str) -> tuple[list[Finding], list[Check], Coverage]:
        """Every check of ``spanning``, and which rules decided; the tables go to ``report``."""
        spark = facts.sparkSession
        damaged = small_table(spark, self.damaged, "trace string, hub string")
        mixed = small_table(spark, [(trace,) for trace in sorted(self.mixed)], "trace string")
        whole = facts.join(F.broadcast(damaged), _HUB, "left_anti") if self.damaged else facts
        ways = written(spanning.ways(whole, self.mixed), join(report, "_scratch", "ways"))
        looked_at, is_open = self._frames(ways)
        if is_open:
            events = rows.events_of(rows.events.index.hubs)
            looked = spanning.compare_ends(events, ways.filter("not is_settled"), damaged, mixed)
            ways = ways.filter("is_settled").drop("is_settled").unionByName(looked)
        links = written(ways.drop("is_settled"), join(report, "links"))
        sound = whole
        if self.wrong:
            wrong = small_table(spark, self.wrong, "trace string, hub string").withColumn("is_wrong", F.lit(True))
            judged = whole.join(F.broadcast(wrong), _HUB, "left")
            is_certain = F.col("is_wrong").isNull() | (F.col("kind") != FactKind.HELD.value)
            sound = judged.filter(is_certain).drop("is_wrong")
        broken = spanning.promises(sound)
        unsettled = small_table(spark, sorted(self.unsettled.items()), "trace string, under_way string")
        parts = [spanning.sent_is_received(links)] if is_open else []
        parts += [spanning.broken_promises(broken, unsettled, mixed)]
        findings = written(reduce(DataFrame.unionByName, parts), join(report, "findings"))
        shown, times = _count(findings)
        of_check, coverage = self._facts(facts, sound)
        table = [(trace, rule, steps) for (trace, rule), steps in coverage.items()]
        covered = small_table(spark, table, "trace string, rule string, steps long")
        covered.write.mode("overwrite").parquet(join(report, "coverage"))
        found = [_finding(row.asDict()) for row in shown]
        in_order = sorted(found, key=lambda finding: (finding.trace, finding.check, finding.hub))
        return _with_windows(in_order, rows), _checks(times, looked_at + of_check, self._basis), coverage

    def _frames(self, ways: DataFrame) -> tuple[Counter[str], bool]:
        """How many frames were compared, and whether only a look at them can tell of some; traces with frames that are
        still to arrive are not settled."""
        frames, is_open = 0, False
        flying = F.max(F.when(F.expr("sent > received and not ended"), F.col("connection"))).alias("flying")
        not_settled = F.max(~F.col("is_settled")).alias("is_open")
        for row in ways.groupBy("trace").agg(F.sum("received").alias("received"), flying, not_settled).collect():
            frames += row.received
            is_open = is_open or row.is_open
            if row.flying is not None:
                self.unsettled[row.trace] = f"what was on its way over {row.flying}"
        return Counter({spanning.SENT_IS_RECEIVED: frames}), is_open

    def _facts(self, facts: DataFrame, sound: DataFrame) -> tuple[Counter[str], Coverage]:
        """Check -> how many facts there were to look at; and in how many steps each rule decided."""
        of_check: Counter[str] = Counter()
        for row in sound.groupBy("kind").count().collect():
            for check, kinds in spanning.LOOKED_AT.items():
                of_check[check] += row["count"] * (row.kind in kinds)
        decided = facts.filter(F.col("kind") == RULE).groupBy("trace", "name").agg(F.sum("number").alias("steps"))
        return of_check, {(row.trace, row["name"]): row.steps for row in decided.collect()}


def _finding(row: dict[str, Any]) -> Finding:
    texts = {name: conceal(row[name]) for name in ("expected", "seen", "missing")}
    return Finding(**{**row, **texts, "outcome": Outcome(row["outcome"]), "basis": basis_of(row["rule"])})


def _with_windows(findings: list[Finding], rows: Rows) -> list[Finding]:
    """The first findings that break a promise, with the rows that show it: one look through the rows, none moved."""
    drawn = [finding for finding in findings if finding.check in promised()][:DRAWN]
    wanted = sorted({(finding.trace, hub, row) for finding in drawn for hub, row in finding.rows})
    if not wanted:
        return findings
    events = rows.events_of({(trace, hub) for trace, hub, _ in wanted})
    around = small_table(events.sparkSession, wanted, "trace string, hub string, row long")
    near = F.abs(F.col("sequence") - F.col("row")) <= AROUND
    found = events.join(F.broadcast(around), _HUB).filter(near).select("row", *SCHEMA.names).collect()
    windows: dict[tuple[str, str, int], dict[int, str]] = {place: {} for place in wanted}
    for row in found:
        event = Event(**{name: _plain(name, row[name]) for name in SCHEMA.names})
        windows[event.trace, event.hub, row.row][event.sequence] = conceal(encode_event(event).decode().rstrip())
    shown = {
        id(finding): tuple(
            (row, tuple(line for _, line in sorted(windows[finding.trace, hub, row].items())))
            for hub, row in finding.rows
        )
        for finding in drawn
    }
    return [replace(finding, windows=shown.get(id(finding), ())) for finding in findings]


def _plain(name: str, value: Any) -> Any:
    """A column of a row as an event has it."""
    return Kind(value) if name == "kind" else bytes(value) if isinstance(value, bytearray) else value


def _several(pairs: set[tuple[str, str]]) -> set[str]:
    """The first parts that have more than one second part."""
    times = Counter(first for first, _ in pairs)
    return {first for first, count in times.items() if count > 1}


def _count(findings: DataFrame) -> tuple[list[Row], dict[tuple[str, str, str], int]]:
    """The findings to be shown, and how many there are by check, outcome and rule."""
    few = findings.limit(SHOWN + 1).collect()
    if len(few) <= SHOWN:
        return few, Counter((row.check, row.outcome, row.rule) for row in few)
    counted = findings.groupBy("check", "outcome", "rule").count().collect()
    return few[:SHOWN], {(row.check, row.outcome, row.rule): row["count"] for row in counted}


def _checks(times: dict[tuple[str, str, str], int], looked_at: Counter[str], basis: Basis) -> list[Check]:
    counted: dict[str, dict[Outcome, int]] = {name: {} for name in spanning.LOOKED_AT}
    for (name, outcome, rule), findings in times.items():
        counts = Outcome(outcome) if counts_under(basis, rule) else Outcome.CONFORMS
        counted[name][counts] = counted[name].get(counts, 0) + findings
    return [
        Check(
            name=name,
            text=text,
            outcome=worst(counted[name] or [Outcome.CONFORMS]),
            looked_at=looked_at[name],
            findings=sum(counted[name].values()),
        )
        for name, text in spanning.check_texts().items()
    ]
