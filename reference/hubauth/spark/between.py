"""The checks that span hubs, applied: which hubs take part in them, and what they come to."""

from collections import Counter
from functools import reduce
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from hubauth.judge.verdicts import Outcome, worst
from hubauth.report.conceal import conceal
from hubauth.spark import spanning
from hubauth.spark.replaying import OPENED, RULE, SETTLED
from hubauth.spark.results import SHOWN, Check, Finding, HubResult
from hubauth.spark.storage import join
from hubauth.spark.tables import small_table, written
from hubauth.specification import Basis, basis_of, counts_under

Coverage: TypeAlias = dict[tuple[str, str], int]
"""(trace, rule) -> in how many steps it decided."""
_HUB = ["trace", "hub"]


class Between:
    """Who can be compared with whom: from the verdicts, and from what each hub ``told`` of its key and its end."""

    def __init__(self, hubs: list[HubResult], told: list[Row], basis: Basis = "all") -> None:
        self._basis = basis
        self.damaged = [(hub.trace, hub.hub) for hub in hubs if hub.outcome is Outcome.CANNOT_TELL]
        self.limits = [(*hub, -1) for hub in self.damaged]
        self.limits += [(h.trace, h.hub, h.sequence or 0) for h in hubs if h.outcome is Outcome.VIOLATES]
        """How far the facts of a hub can be used that does not conform."""
        self.mixed = _several({(row.trace, row.proof) for row in told if row.kind == OPENED})
        """Traces in which credentials were replaced under different keys."""
        self.excluded = self.mixed | {hub.trace for hub in hubs if hub.outcome is not Outcome.CONFORMS}
        self.unsettled = {
            row.trace: f"the rows after {row.hub} had done all it had to"
            for row in told
            if row.kind == SETTLED and not row.number
        }

    def check(self, events: DataFrame, facts: DataFrame, report: str) -> tuple[list[Finding], list[Check], Coverage]:
        """Every check of ``spanning``, and which rules decided; the tables go to ``report``."""
        spark = facts.sparkSession
        damaged = small_table(spark, self.damaged, "trace string, hub string")
        mixed = small_table(spark, [(trace,) for trace in sorted(self.mixed)], "trace string")
        links = written(spanning.compare_ends(events, damaged, mixed), join(report, "links"))
        looked_at = self._frames(links)
        limits = small_table(spark, self.limits, "trace string, hub string, until long")
        reaches = F.col("until").isNull() | (F.coalesce("sequence", F.lit(0)) <= F.col("until"))
        told = facts.join(F.broadcast(limits), _HUB, "left").withColumn("is_sound", reaches).drop("until")
        sound = told.filter("is_sound").drop("is_sound")
        unsettled = small_table(spark, sorted(self.unsettled.items()), "trace string, under_way string")
        excluded = small_table(spark, [(trace,) for trace in sorted(self.excluded)], "trace string")
        parts = [
            spanning.sent_is_received(links),
            spanning.unique_node_ids(sound),
            spanning.one_to_one_binding(sound),
            spanning.issued_once(sound),
            spanning.credentials_never_cached_upstream(sound),
            spanning.revoked_stays_out(sound, unsettled, excluded),
        ]
        findings = written(reduce(DataFrame.unionByName, parts), join(report, "findings"))
        shown, times = _count(findings)
        of_check, coverage = self._facts(told)
        table = [(trace, rule, steps) for (trace, rule), steps in coverage.items()]
        covered = small_table(spark, table, "trace string, rule string, steps long")
        covered.write.mode("overwrite").parquet(join(report, "coverage"))
        found = [_finding(row.asDict()) for row in shown]
        in_order = sorted(found, key=lambda finding: (finding.trace, finding.check, finding.hub))
        return in_order, _checks(times, looked_at + of_check, self._basis), coverage

    def _frames(self, links: DataFrame) -> Counter[str]:
        """How many frames were compared; traces with frames that are still to arrive are not settled."""
        frames = 0
        flying = F.max(F.when(F.expr("sent > received and not ended"), F.col("connection"))).alias("flying")
        for row in links.groupBy("trace").agg(F.sum("received").alias("received"), flying).collect():
            frames += row.received
            if row.flying is not None:
                self.unsettled[row.trace] = f"what was on its way over {row.flying}"
        return Counter({spanning.SENT_IS_RECEIVED: frames})

    def _facts(self, told: DataFrame) -> tuple[Counter[str], Coverage]:
        """Check -> how many facts there were to look at; and in how many steps each rule decided."""
        of_check: Counter[str] = Counter()
        coverage: Coverage = {}
        rule = F.when(F.col("kind") == RULE, F.col("name")).alias("rule")
        sound = F.count(F.when(F.col("is_sound"), True)).alias("sound")
        for row in told.groupBy("trace", "kind", rule).agg(sound, F.sum("number").alias("steps")).collect():
            if row.kind == RULE:
                coverage[row.trace, row.rule] = row.steps
            for check, kinds in spanning.LOOKED_AT.items():
                if row.kind in kinds and not (check == spanning.REVOKED_STAYS_OUT and row.trace in self.excluded):
                    of_check[check] += row.sound
        return of_check, coverage


def _finding(row: dict[str, Any]) -> Finding:
    texts = {name: conceal(row[name]) for name in ("expected", "seen", "missing")}
    return Finding(**{**row, **texts, "outcome": Outcome(row["outcome"]), "basis": basis_of(row["rule"])})


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
    counted: dict[str, dict[Outcome, int]] = {name: {} for name in spanning.CHECKS}
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
        for name, text in spanning.CHECKS.items()
    ]
