"""What a validation comes to: a verdict per hub, findings that span hubs, coverage, and one exit code."""

from collections.abc import Iterable
from enum import IntEnum

import msgspec
from msgspec.structs import replace

from hubauth.judge.verdicts import Outcome, count_words, rule_text, worst
from hubauth.report.escape import visible_lines
from hubauth.spark.rows import Problem
from hubauth.specification import Basis, basis_of, counts_under

VERSION = 1
"""Of ``summary.json``."""


class ExitCode(IntEnum):
    """How ``hubauth validate`` ends."""

    CONFORMS = 0
    VIOLATES = 1
    USAGE = 2
    JOB_FAILED = 3
    UNREADABLE = 4
    """Files or lines cannot be read, or there is nothing to read, and what could be read does not violate."""
    CANNOT_TELL = 5


class HubFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a hub, or cannot be told, however often it was seen."""

    outcome: Outcome
    rule: str = ""
    text: str = ""
    basis: str = ""
    """Where the rule comes from: lines of the documents, or a decision."""
    what: str = ""
    """What differed: a field, silence, something that was not due, the order."""
    sequence: int | None = None
    last: int | None = None
    """The rows at which it was seen first and last."""
    times: int = 1
    consequences: int = 0
    """Later differences about the same device, node or link."""
    rules: tuple[str, ...] = ()
    """Every rule that took part in the decision."""
    expected: str = ""
    seen: str = ""
    missing: str = ""
    leads: tuple[str, ...] = ()
    """The rows that lead there, as JSON lines."""


def how_often(finding: HubFinding) -> str:
    """How often something was found, if that was more than once, and what followed from it."""
    return count_words(finding.times, finding.last, finding.consequences)


class HubResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about one hub, and why: the first finding, and all."""

    trace: str
    hub: str
    outcome: Outcome
    rows: int
    segments: int = 1
    sequence: int | None = None
    rule: str = ""
    text: str = ""
    expected: str = ""
    seen: str = ""
    missing: str = ""
    leads: tuple[str, ...] = ()
    """The rows that lead there, as JSON lines."""
    findings: tuple[HubFinding, ...] = ()
    apart: tuple[HubFinding, ...] = ()
    """What only a decision forbids, where the hub is judged by the documents alone."""
    stopped: str = ""
    """Why nothing is said of the rows after some row; empty: all were judged."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is wrong between hubs."""

    check: str
    outcome: Outcome
    trace: str
    hub: str
    sequence: int | None
    rule: str
    expected: str
    seen: str
    missing: str = ""
    basis: str = ""
    """Where the rule comes from: lines of the documents, or a decision."""
    other: str = ""
    since: int | None = None
    """The hub and the row that it contradicts."""
    heard: int | None = None
    """The row at which ``hub`` heard of that."""
    windows: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Each of these rows with those around it, as JSON lines; of the first findings only."""

    @property
    def rows(self) -> list[tuple[str, int]]:
        """Hub and row, in the order in which they are told."""
        rows = [(self.other, self.since), (self.hub, self.heard), (self.hub, self.sequence)]
        return [(hub, row) for hub, row in rows if hub and row is not None and row >= 0]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A check that spans hubs: what it says, and on how much it was tried."""

    name: str
    text: str
    outcome: Outcome
    looked_at: int
    """Frames, bindings, credentials or entries; 0: there was nothing to try it on."""
    findings: int


class TraceResult(msgspec.Struct, frozen=True, kw_only=True):
    """One trace: the worst that was found about it."""

    trace: str
    outcome: Outcome
    hubs: int
    rows: int
    rules: int
    """How many rules decided something in it."""


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """``summary.json``. Lists of results are cut; the Parquet tables beside it hold all."""

    version: int = VERSION
    path: str
    master: str
    outcome: Outcome
    exit_code: int
    rows: int
    hubs: int
    segments: int
    seconds: float
    rows_per_second: int
    """Of the replay alone."""
    outcomes: dict[str, int]
    """Outcome -> hubs."""
    traces: tuple[TraceResult, ...]
    not_conforming: tuple[HubResult, ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    coverage: dict[str, int]
    """Rule -> in how many steps it decided."""
    not_covered: tuple[str, ...]
    unreadable: tuple[str, ...]
    """Files, and what is wrong with them."""


SHOWN = 200
"""Results listed in ``summary.json``."""


def exit_code(outcome: Outcome, *, unreadable: bool) -> ExitCode:
    """What cannot be told is no success, and no violation either."""
    if outcome is not Outcome.CANNOT_TELL:
        return ExitCode.CONFORMS if outcome is Outcome.CONFORMS else ExitCode.VIOLATES
    return ExitCode.UNREADABLE if unreadable else ExitCode.CANNOT_TELL


class _Segment(msgspec.Struct, frozen=True):
    """The verdict about a part of a hub's rows, as an executor wrote it."""

    trace: str
    hub: str
    outcome: Outcome
    findings: tuple[HubFinding, ...]
    stopped: str


_segment = msgspec.json.Decoder(_Segment).decode


def merge_verdicts(segments: Iterable[tuple[str, int]], rows: int, basis: Basis = "all") -> HubResult:
    """A hub's verdict from its segments' (verdict as JSON, rows): each thing once, in the order of the rows.

    Where one had to stop, what later ones have found is not told: one process would not have come that far.
    """
    parts = [_segment(encoded.encode()) for encoded, _ in segments]
    stops = [part.findings[-1].sequence or 0 for part in parts if part.stopped and part.findings]
    reach = min(stops, default=None)
    return result_of(
        parts[0].trace,
        parts[0].hub,
        rows,
        [one for part in parts for one in part.findings if reach is None or (one.sequence or 0) <= reach],
        segments=len(parts),
        stopped=next((part.stopped for part in parts if part.stopped), ""),
        basis=basis,
    )


def result_of(
    trace: str,
    hub: str,
    rows: int,
    findings: Iterable[HubFinding],
    *,
    segments: int = 1,
    stopped: str = "",
    basis: Basis = "all",
) -> HubResult:
    """The verdict that these findings come to; the worst of the first row is told first."""
    known: dict[tuple[str, str, Outcome], HubFinding] = {}
    for one in sorted(findings, key=_place):
        key = (one.rule, one.what, one.outcome)
        before = known.get(
            key, replace(one, times=0, consequences=0, text=rule_text(one.rule), basis=basis_of(one.rule))
        )
        times, more = before.times + one.times, before.consequences + one.consequences
        known[key] = replace(before, times=times, consequences=more, last=one.last)
    merged = tuple(one for one in known.values() if counts_under(basis, one.rule))
    apart = tuple(one for one in known.values() if not counts_under(basis, one.rule))
    outcome = worst([Outcome.CONFORMS, *(one.outcome for one in merged)])
    first = next((one for one in merged if one.outcome is outcome), HubFinding(outcome=outcome))
    return HubResult(
        trace=trace,
        hub=hub,
        outcome=outcome,
        rows=rows,
        segments=segments,
        sequence=first.sequence,
        rule=first.rule,
        text=first.text,
        expected=first.expected,
        seen=first.seen,
        missing=first.missing,
        leads=first.leads,
        findings=merged,
        apart=apart,
        stopped=stopped,
    )


def _place(finding: HubFinding) -> tuple[int, bool]:
    """A violation before what could not be told at the same row."""
    return -1 if finding.sequence is None else finding.sequence, finding.outcome is not Outcome.VIOLATES


def unreadable(trace: str, hub: str, problems: list[Problem], rows: int) -> HubResult:
    """The verdict about a hub of which a file, or part of one, cannot be read."""
    problem = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    missing = f"a readable {problem.file}"
    finding = HubFinding(outcome=Outcome.CANNOT_TELL, rule="TRACE-5", seen=f"{problem.what}{more}", missing=missing)
    return result_of(trace, hub or problem.file.rsplit("/", 1)[-1], rows, [finding])


def with_problems(hubs: list[HubResult], problems: list[Problem]) -> list[HubResult]:
    """What cannot be read spoils a verdict, unless that is already that the hub violates."""
    by_hub: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        key = (problem.trace, problem.hub) if problem.hub else (problem.trace, f"?{problem.file}")
        by_hub.setdefault(key, []).append(problem)
    judged = []
    for hub in hubs:
        found = by_hub.pop((hub.trace, hub.hub), None)
        spoilt = found is not None and hub.outcome is Outcome.CONFORMS
        judged.append(unreadable(hub.trace, hub.hub, found, hub.rows) if spoilt and found else hub)
    judged += [unreadable(found[0].trace, found[0].hub, found, 0) for found in by_hub.values()]
    return sorted(judged, key=lambda hub: (hub.trace, hub.hub))


def encode_summary(summary: Summary) -> str:
    """``summary.json``."""
    return visible_lines(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode()) + "\n"


def summary_schema() -> str:
    """The JSON Schema of ``summary.json``."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Summary)}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"
