"""The result of a conformance run for machines: ``summary.json``, its schema, and ``junit.xml``."""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import msgspec
from msgspec import Struct

from hubauth.oracle.conform.causes import Cause, causes_of
from hubauth.oracle.conform.results import FAILED, LEVELS, VIOLATIONS, Result, exit_code
from hubauth.oracle.conform.run import Judgement
from hubauth.oracle.conform.subject import Subject
from hubauth.report.escape import visible, visible_lines

FORMAT = "hubauth-conform/1"
SCHEMA_NAME = "summary.schema.json"
_OUTCOMES = ("conforms", "violates", "usage", "failed")


class Summary(Struct, frozen=True, rename={"schema": "$schema"}):
    """Everything about one run."""

    format: str
    hub: str
    """Its address."""
    profile: str
    dialect: str
    outcome: str
    """conforms, violates or failed."""
    exit_code: int
    fence: str
    """How silence was shown: by an "invalid" or an "empty" request that is always answered, or by "waiting"."""
    seed: int
    sequences: int
    """Random ones that were played."""
    steps: int
    """Of these sequences."""
    trouble: str
    """Why they were broken off, if they were."""
    counts: dict[str, dict[str, int]]
    """level -> verdict -> how many."""
    causes: tuple[Cause, ...]
    """What failed, one mistake at a time."""
    results: tuple[Result, ...]
    schema: str = SCHEMA_NAME


def summarize(judgement: Judgement, subject: Subject, seed: int = 0) -> Summary:
    """Sum up a run."""
    results, profile = judgement.results, subject.profile
    counts: dict[str, dict[str, int]] = {}
    for level in LEVELS:
        verdicts = [result.verdict for result in results if result.level == level]
        counts[level] = {verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))}
    code = FAILED if judgement.trouble else exit_code(results)
    return Summary(
        format=FORMAT,
        hub=f"{subject.host}:{subject.port}",
        profile=profile.name,
        dialect=profile.dialect.value,
        outcome=_OUTCOMES[code],
        exit_code=code,
        fence=subject.fence or "waiting",
        seed=seed,
        sequences=judgement.sequences,
        steps=judgement.steps,
        trouble=judgement.trouble,
        counts=counts,
        causes=tuple(causes_of(results)),
        results=tuple(results),
    )


def summary_json(summary: Summary) -> bytes:
    """``summary.json``."""
    return visible_lines(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode()).encode() + b"\n"


def summary_schema() -> bytes:
    """The JSON Schema that every ``summary.json`` of this version fulfils."""
    schema: dict[str, Any] = msgspec.json.schema(Summary)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": FORMAT}
    return msgspec.json.format(msgspec.json.encode(head | schema), indent=2) + b"\n"


def junit(results: Sequence[Result], hub: str) -> bytes:
    """``junit.xml``: one suite per header version, one test per case."""
    suites = ElementTree.Element("testsuites", name=visible(f"hubauth conform {hub}"))
    for header in sorted({result.header for result in results}):
        of_header = [result for result in results if result.header == header]
        suite = ElementTree.SubElement(
            suites,
            "testsuite",
            name=f"header {header}",
            tests=str(len(of_header)),
            failures=str(sum(result.verdict in VIOLATIONS for result in of_header)),
            errors=str(sum(result.verdict == "error" for result in of_header)),
            skipped=str(sum(result.verdict in ("skipped", "blocked", "known", "apart") for result in of_header)),
            time=f"{sum(result.seconds for result in of_header):.3f}",
        )
        for result in of_header:
            _testcase(suite, result)
    ElementTree.indent(suites)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suites) + b"\n"


def _testcase(suite: ElementTree.Element, result: Result) -> None:
    family = result.rule.partition("-")[0]
    attributes = {"classname": f"{family}.{result.level}", "name": result.id, "time": f"{result.seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    if result.verdict in VIOLATIONS:
        message = visible(result.reason or result.title)
        failure = ElementTree.SubElement(case, "failure", message=message, type=result.rule)
        failure.text = "\n".join(
            map(visible, [result.text, f"basis: {result.basis}", *_findings(result), result.command])
        )
    elif result.verdict == "error":
        ElementTree.SubElement(case, "error", message=visible(result.reason))
    elif result.verdict == "apart":
        message = visible(f"only a decision forbids it ({result.basis}): {result.title}")
        ElementTree.SubElement(case, "skipped", message=message)
    elif result.verdict in ("skipped", "blocked", "known"):
        ElementTree.SubElement(case, "skipped", message=visible(result.reason or "known to fail"))


def _findings(result: Result) -> list[str]:
    return [f"{one.what}: expected {one.expected}, seen {one.seen}" for one in result.findings]
