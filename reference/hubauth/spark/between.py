"""The checks that span hubs, applied: which hubs take part in them, and what they come to."""

from collections import Counter
from functools import reduce

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from hubauth.spark import spanning
from hubauth.spark.replaying import OPENED, RULE, SETTLED
from hubauth.spark.results import SHOWN, Check, Finding, HubResult, worst
from hubauth.spark.storage import join
from hubauth.spark.tables import small_table, written
from hubauth.trace.verdicts import Outcome

_HUB = ["trace", "hub"]


class Between:
    """Who can be compared with whom: from the verdicts, and from what each hub ``told`` of its key and its end."""

    def __init__(self, hubs: list[HubResult], told: list[Row]) -> None:
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

    def check(self, events: DataFrame, facts: DataFrame, report: str) -> tuple[list[Finding], list[Check]]:
        """Every check of ``spanning``; its tables go to ``report``."""
        spark = facts.sparkSession
        damaged = small_table(spark, self.damaged, "trace string, hub string")
        mixed = small_table(spark, [(trace,) for trace in sorted(self.mixed)], "trace string")
        links = written(spanning.compare_ends(events, damaged, mixed), join(report, "links"))
        looked_at = self._frames(links)
        limits = small_table(spark, self.limits, "trace string, hub string, until long")
        reaches = F.col("until").isNull() | (F.coalesce("sequence", F.lit(0)) <= F.col("until"))
        sound = facts.join(F.broadcast(limits), _HUB, "left").filter(reaches).drop("until")
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
        found = [
            Finding(**{**row.asDict(), "outcome": Outcome(row.outcome)}) for row in findings.limit(SHOWN).collect()
        ]
        checks = _checks(findings, looked_at + self._facts(sound))
        return sorted(found, key=lambda finding: (finding.trace, finding.check, finding.hub)), checks

    def _frames(self, links: DataFrame) -> Counter[str]:
        """How many frames were compared; traces with frames that never arrived are not settled."""
        frames = 0
        flying = F.max(F.when(F.col("sent") > F.col("received"), F.col("connection"))).alias("flying")
        for row in links.groupBy("trace").agg(F.sum("received").alias("received"), flying).collect():
            frames += row.received
            if row.flying is not None:
                self.unsettled[row.trace] = f"what was on its way over {row.flying}"
        return Counter({spanning.SENT_IS_RECEIVED: frames})

    def _facts(self, sound: DataFrame) -> Counter[str]:
        """Check -> how many facts there were to look at."""
        of_check: Counter[str] = Counter()
        for row in sound.groupBy("trace", "kind").count().collect():
            for check, kinds in spanning.LOOKED_AT.items():
                if row.kind in kinds and not (check == spanning.REVOKED_STAYS_OUT and row.trace in self.excluded):
                    of_check[check] += row["count"]
        return of_check


def _several(pairs: set[tuple[str, str]]) -> set[str]:
    """The first parts that have more than one second part."""
    times = Counter(first for first, _ in pairs)
    return {first for first, count in times.items() if count > 1}


def _checks(findings: DataFrame, looked_at: Counter[str]) -> list[Check]:
    counted: dict[str, dict[Outcome, int]] = {name: {} for name in spanning.CHECKS}
    for row in findings.groupBy("check", "outcome").count().collect():
        counted[row.check][Outcome(row.outcome)] = row["count"]
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


def cover(facts: DataFrame, report: str) -> dict[tuple[str, str], int]:
    """(trace, rule) -> in how many steps it decided."""
    counted = facts.filter(F.col("kind") == RULE).groupBy("trace", F.col("name").alias("rule"))
    table = written(counted.agg(F.sum("number").alias("steps")), join(report, "coverage"))
    return {(row.trace, row.rule): row.steps for row in table.collect()}
