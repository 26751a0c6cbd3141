"""``report.html``: one file for people, with everything in it that a browser needs."""

from hubauth import __version__
from hubauth.forms.lines import decode_event
from hubauth.judge.verdicts import Outcome, rule_text
from hubauth.report.escape import markup
from hubauth.spark.charts import Bar, bars
from hubauth.spark.results import Finding, HubFinding, HubResult, Summary, how_often
from hubauth.specification import rules
from hubauth.trace.drawing import to_svg
from hubauth.trace.explain import diagram_of_rows

DRAWN = 5
"""Hubs whose way into the violation is drawn."""
_TRACES = 30
_LISTED = 50
_WORDS = {Outcome.CONFORMS: "conforms", Outcome.VIOLATES: "violates", Outcome.CANNOT_TELL: "cannot tell"}

_STYLE = """
:root { color-scheme: light dark; --good: #2e8b57; --bad: #c0392b; --open: #c98a00; --line: #8884; --soft: #8888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; } h3 { font-size: 1rem; }
table { border-collapse: collapse; width: 100%; } td, th { border-bottom: 1px solid var(--line); padding: .3rem .6rem;
text-align: left; vertical-align: top; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { overflow-x: auto; white-space: pre-wrap; }
.conforms { color: var(--good); } .violates { color: var(--bad); } .cannot_tell { color: var(--open); }
svg.bars { width: 100%; } svg.bars text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg.bars .note { opacity: .75; } rect.conforms { fill: var(--good); } rect.violates { fill: var(--bad); }
rect.cannot_tell { fill: var(--open); } rect.rest { fill: var(--soft); } .drawing { overflow-x: auto; }
.drawing svg { max-width: 100%; height: auto; } pre { overflow-wrap: anywhere; }
@media (max-width: 40rem) { table { display: block; overflow-x: auto; } .drawing svg { max-width: none; } }
"""


def html(summary: Summary, drawings: dict[tuple[str, str], str]) -> str:
    """The whole page; ``drawings`` are SVG texts of (trace, hub)."""
    word = _WORDS[summary.outcome]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f"<title>hubauth: {word}</title><style>{_STYLE}</style></head><body>",
        f'<h1>{markup(summary.path)} <span class="{summary.outcome.value}">{word}</span></h1>',
        f"<p>{summary.rows:,} rows of {summary.hubs:,} hubs in {len(summary.traces):,} traces, replayed as "
        f"{summary.segments:,} segments on <code>{markup(summary.master)}</code> in {summary.seconds:,.1f} s; "
        f"{summary.rows_per_second:,} rows/s of the replay itself.</p>",
        *_unreadable(summary),
        "<h2>Hubs</h2>",
        bars("Hubs by outcome", _outcomes(summary)),
        *_not_conforming(summary, drawings),
        "<h2>Between hubs</h2>",
        *_checks(summary),
        *_findings(summary.findings),
        "<h2>Traces</h2>",
        bars("Traces by rows", _traces(summary)),
        _more(len(summary.traces) - _TRACES, "traces", ""),
        "<h2>Rules exercised</h2>",
        f"<p>{len(summary.coverage)} of {len(summary.coverage) + len(summary.not_covered)} rules decided something. "
        "A rule that decided nothing was not tested by these traces.</p>",
        bars("Rules exercised by family", _families(summary)),
        *_coverage(summary),
        f"<p>hubauth {markup(__version__)}. Tables with all results stand beside this file.</p></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def worst_hubs(hubs: tuple[HubResult, ...]) -> list[HubResult]:
    """Those to be drawn: violations first, one of each rule before a second one."""
    seen: dict[str, int] = {}
    ranked = []
    for hub in hubs:
        if hub.outcome is not Outcome.CONFORMS and hub.leads:
            seen[hub.rule] = seen.get(hub.rule, 0) + 1
            ranked.append((hub.outcome is not Outcome.VIOLATES, seen[hub.rule], hub.trace, hub.hub, hub))
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1])[:DRAWN]]


def _unreadable(summary: Summary) -> list[str]:
    if not summary.unreadable:
        return []
    items = [f"<li><code>{markup(line)}</code></li>" for line in summary.unreadable[:_LISTED]]
    more = _more(len(summary.unreadable) - _LISTED, "files", "")
    return ['<h2 class="cannot_tell">Cannot be read</h2><ul>', *items, "</ul>", more]


def _outcomes(summary: Summary) -> list[Bar]:
    return [
        Bar(_WORDS[kind], ((summary.outcomes[kind.value], kind.value),), f"{summary.outcomes[kind.value]:,}")
        for kind in Outcome
    ]


def _not_conforming(summary: Summary, drawings: dict[tuple[str, str], str]) -> list[str]:
    parts = []
    for hub in summary.not_conforming[:_LISTED]:
        at = f", row {hub.sequence}" if hub.sequence is not None else ""
        parts += [
            f'<h3><span class="{hub.outcome.value}">{_WORDS[hub.outcome]}</span> {markup(hub.trace)} / '
            f"{markup(hub.hub)}{at}: {markup(hub.rule)}</h3>",
            *(part for finding in hub.findings for part in _finding(finding)),
            *(part for finding in hub.apart for part in _finding(finding)),
            f"<p>{markup(hub.stopped)}</p>" if hub.stopped else "",
        ]
        drawing = drawings.get((hub.trace, hub.hub))
        if drawing is not None:
            parts.append(f'<div class="drawing">{drawing}</div>')
    return [*parts, _more(len(summary.not_conforming) - _LISTED, "hubs", "the table hubs")]


def _finding(finding: HubFinding) -> list[str]:
    at = f", row {finding.sequence}" if finding.sequence is not None else ""
    head = f"{markup(finding.rule)}{at}{how_often(finding)}"
    return [f'<p><b class="{finding.outcome.value}">{head}</b>: {markup(finding.text)}</p>', _why(finding)]


def _why(result: HubFinding | Finding) -> str:
    lines = [("expected", result.expected), ("seen", result.seen), ("missing", result.missing)]
    if isinstance(result, HubFinding):
        lines.insert(0, ("differs", result.what))
    elif result.since is not None and result.since >= 0:
        heard = f", heard of in row {result.heard}" if result.heard is not None and result.heard >= 0 else ""
        lines.insert(0, ("against", f"row {result.since} of {result.other}{heard}"))
    lines.insert(0, ("basis", result.basis))
    return "<pre>" + "\n".join(f"{name:<9}{markup(value)}" for name, value in lines if value) + "</pre>"


def _checks(summary: Summary) -> list[str]:
    rows = []
    for check in summary.checks:
        said = _WORDS[check.outcome] if check.looked_at else "nothing to look at"
        rows.append(
            f"<tr><td>{check.name}</td><td>{markup(check.text)}</td><td class='number'>{check.looked_at:,}</td>"
            f"<td class='number'>{check.findings:,}</td><td class='{check.outcome.value}'>{said}</td></tr>"
        )
    head = "<tr><th>check</th><th></th><th class='number'>looked at</th><th class='number'>findings</th><th></th></tr>"
    return [f"<table>{head}", *rows, "</table>"]


def _findings(findings: tuple[Finding, ...]) -> list[str]:
    parts = []
    for finding in findings[:_LISTED]:
        at = f", row {finding.sequence}" if finding.sequence is not None else ""
        parts += [
            f'<h3><span class="{finding.outcome.value}">{finding.check}</span> '
            f"{markup(finding.trace)} / {markup(finding.hub)}{at}</h3>",
            f"<p>{markup(finding.rule)}: {markup(rule_text(finding.rule))}</p>",
            _why(finding),
            f'<div class="drawing">{draw_finding(finding)}</div>' if finding.windows else "",
        ]
    return [*parts, _more(len(findings) - _LISTED, "findings", "the table findings")]


def draw_finding(finding: Finding) -> str:
    """The rows that break a promise, of all hubs that took part, as SVG."""
    windows = ((row, tuple(decode_event(line.encode()) for line in lines)) for row, lines in finding.windows)
    return to_svg(diagram_of_rows(windows, finding.check))


def _traces(summary: Summary) -> list[Bar]:
    worst_first = sorted(summary.traces, key=lambda trace: (trace.outcome is Outcome.CONFORMS, -trace.rows))
    return [
        Bar(trace.trace, ((trace.rows, trace.outcome.value),), f"{trace.rows:,} rows, {trace.rules} rules")
        for trace in worst_first[:_TRACES]
    ]


def _families(summary: Summary) -> list[Bar]:
    families: dict[str, list[bool]] = {}
    for rule in rules():
        families.setdefault(rule.partition("-")[0], []).append(rule in summary.coverage)
    return [
        Bar(name, ((sum(seen), "conforms"), (len(seen) - sum(seen), "rest")), f"{sum(seen)} of {len(seen)}")
        for name, seen in families.items()
    ]


def _coverage(summary: Summary) -> list[str]:
    rows = [
        f"<tr><td>{rule}</td><td>{markup(rule_text(rule))}</td><td class='number'>{steps:,}</td></tr>"
        for rule, steps in summary.coverage.items()
    ]
    missing = " ".join(summary.not_covered)
    return [
        "<details><summary>Every rule that decided, and in how many steps</summary><table>",
        *rows,
        "</table></details>",
        f"<details><summary>Rules that decided nothing</summary><p>{markup(missing)}</p></details>",
    ]


def _more(count: int, what: str, where: str) -> str:
    return f"<p>and {count:,} more {what}{f', in {where}' if where else ''}</p>" if count > 0 else ""
