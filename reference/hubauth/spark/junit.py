"""``junit.xml``: what continuous integration shows. A suite per trace, a case per hub and per check between hubs."""

from xml.etree import ElementTree

from hubauth.judge.verdicts import Outcome
from hubauth.report.escape import visible
from hubauth.spark.results import Finding, HubFinding, HubResult, Summary, how_often

_TAGS = {Outcome.VIOLATES: "failure", Outcome.CANNOT_TELL: "error"}


def junit(summary: Summary, hubs: tuple[HubResult, ...]) -> str:
    """The whole file."""
    root = ElementTree.Element("testsuites", name="hubauth validate")
    by_trace: dict[str, list[HubResult]] = {}
    for hub in hubs:
        by_trace.setdefault(hub.trace, []).append(hub)
    for trace, members in by_trace.items():
        cases = [_case(trace, hub.hub, hub.outcome, hub.rule, _whole(hub)) for hub in members]
        found: dict[str, list[Finding]] = {check.name: [] for check in summary.checks}
        for finding in summary.findings:
            if finding.trace == trace:
                found[finding.check].append(finding)
        for check in summary.checks:
            findings = sorted(found[check.name], key=lambda finding: finding.outcome is not Outcome.VIOLATES)
            first = findings[0] if findings else None
            outcome = first.outcome if first is not None else Outcome.CONFORMS
            why = "\n".join(map(_why, findings))
            cases.append(_case(trace, check.name, outcome, first.rule if first is not None else "", why))
        counts = {tag: str(sum(case.find(tag) is not None for case in cases)) for tag in _TAGS.values()}
        attributes = {"name": visible(trace), "tests": str(len(cases)), "failures": counts["failure"]}
        suite = ElementTree.SubElement(root, "testsuite", {**attributes, "errors": counts["error"]})
        suite.extend(cases)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(trace: str, name: str, outcome: Outcome, rule: str, why: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", classname=visible(trace), name=visible(name))
    if outcome is not Outcome.CONFORMS:
        said = ElementTree.SubElement(case, _TAGS[outcome], type=rule, message=why.partition("\n")[0])
        said.text = why
    return case


def _whole(hub: HubResult) -> str:
    """Every finding about a hub, the one that decides first."""
    ranked = sorted(hub.findings, key=lambda finding: finding.outcome is not hub.outcome)
    return "\n".join([*(_why(finding, hub.hub) for finding in ranked), *([hub.stopped] if hub.stopped else [])])


def _why(result: HubFinding | Finding, hub: str = "") -> str:
    name = result.hub if isinstance(result, Finding) else hub
    at = f"row {result.sequence} of {name}" if result.sequence is not None else name
    parts = [("expected", result.expected), ("seen", result.seen), ("missing", result.missing)]
    if isinstance(result, HubFinding):
        at += how_often(result)
        parts.insert(0, ("differs", result.what))
    elif result.since is not None and result.since >= 0:
        parts.insert(0, ("against", f"row {result.since} of {result.other}"))
    parts.insert(0, ("basis", result.basis))
    return "\n".join(map(visible, [f"{result.rule} at {at}", *(f"{name}: {value}" for name, value in parts if value)]))
