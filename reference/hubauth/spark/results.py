"""What a validation comes to: a verdict per hub, findings that span hubs, coverage, and one exit code."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import msgspec

from hubauth.report.escape import visible_lines
from hubauth.spark.rows import Problem
from hubauth.trace.verdicts import Outcome, rule_text

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


class HubResult(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about one hub, and why."""

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

_SEVERITY = {Outcome.CONFORMS: 0, Outcome.CANNOT_TELL: 1, Outcome.VIOLATES: 2}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Violates before cannot tell before conforms; nothing at all is not conforming."""
    return max(outcomes, key=_SEVERITY.__getitem__, default=Outcome.CANNOT_TELL)


def exit_code(outcome: Outcome, *, unreadable: bool) -> ExitCode:
    """What cannot be told is no success either."""
    if outcome is Outcome.CONFORMS:
        return ExitCode.CONFORMS
    return ExitCode.UNREADABLE if unreadable and outcome is not Outcome.VIOLATES else ExitCode.VIOLATES


_convert = msgspec.json.Decoder(dict[str, Any]).decode


def merge_verdicts(segments: Iterable[tuple[str, int]], rows: int) -> HubResult:
    """A hub's verdict from its segments' (verdict as JSON, rows): what was decided first counts."""
    verdicts = [_convert(encoded.encode()) for encoded, _ in segments]
    wrong = [verdict for verdict in verdicts if verdict["outcome"] != Outcome.CONFORMS.value]
    first = min(wrong, key=_place, default=verdicts[0])
    return HubResult(
        trace=first["trace"],
        hub=first["hub"],
        outcome=Outcome(first["outcome"]),
        rows=rows,
        segments=len(verdicts),
        sequence=first["sequence"],
        rule=first["rule"],
        text=rule_text(first["rule"]) if first["rule"] else "",
        expected=first["expected"],
        seen=first["seen"],
        missing=first["missing"],
        leads=tuple(first["leads"]),
    )


def _place(verdict: dict[str, Any]) -> tuple[int, bool]:
    """A violation before what could not be told at the same row."""
    sequence = verdict["sequence"]
    return -1 if sequence is None else sequence, verdict["outcome"] != Outcome.VIOLATES.value


def unreadable(trace: str, hub: str, problems: list[Problem], rows: int) -> HubResult:
    """The verdict about a hub of which a file, or part of one, cannot be read."""
    problem = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return HubResult(
        trace=trace,
        hub=hub or problem.file.rsplit("/", 1)[-1],
        outcome=Outcome.CANNOT_TELL,
        rows=rows,
        rule="TRACE-5",
        text=rule_text("TRACE-5"),
        seen=f"{problem.what}{more}",
        missing=f"a readable {problem.file}",
    )


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
