"""The result of a conformance run as one HTML file: no network, no other file, readable on a phone."""

from collections.abc import Iterator

from hubauth.oracle.conform.record import HUB
from hubauth.oracle.conform.results import LEVELS, Result
from hubauth.oracle.report_diagram import diagram
from hubauth.oracle.report_style import SCRIPT, STYLE
from hubauth.oracle.report_summary import Summary
from hubauth.report.escape import markup

_ORDER = ("fail", "fixed", "error", "known", "apart", "blocked", "info", "pass", "skipped")
_MEANINGS = {
    "fail": "does not do what the rule says",
    "fixed": "passes, but is listed as known to fail",
    "error": "the tool or the connection failed: no verdict",
    "known": "fails, and is listed as known to",
    "apart": "fails, but only by a decision of this project: the documents alone do not forbid it",
    "blocked": "not asked, since something it depends on did not pass",
    "info": "says which way the hub does it",
    "pass": "does what the rule says",
    "skipped": "not asked: the profile does not declare what it needs",
}
_WORDS = {
    "conforms": "conforms",
    "violates": "violates the rules",
    "failed": "could not be judged to the end",
}


def page(summary: Summary) -> str:
    """``report.html``."""
    return "".join(
        [
            "<!doctype html><html lang=en><head><meta charset=utf-8>",
            '<meta name=viewport content="width=device-width, initial-scale=1">',
            f"<title>{markup(summary.hub)} {summary.outcome}</title><style>{STYLE}</style></head><body><main>",
            *_head(summary),
            *_filters(summary),
            *(_case(result) for result in sorted(summary.results, key=lambda one: _ORDER.index(one.verdict))),
            f"<p id=none hidden>No case with these verdicts.</p></main><script>{SCRIPT}</script></body></html>\n",
        ]
    )


def _head(summary: Summary) -> Iterator[str]:
    yield f"<h1>{markup(summary.hub)} <span class='outcome {summary.outcome}'>{_WORDS[summary.outcome]}</span></h1>"
    facts = {
        "profile": summary.profile or "none given",
        "dialect": summary.dialect,
        "silence shown by": summary.fence,
        "random sequences": f"{summary.sequences} of {summary.steps} steps, seed {summary.seed}",
    }
    yield (
        "<dl>"
        + "".join(f"<div><dt>{name}</dt><dd>{markup(value)}</dd></div>" for name, value in facts.items())
        + "</dl>"
    )
    yield "<div class=wide><table class=sums><thead><tr><th>level</th>"
    present = [verdict for verdict in _ORDER if any(verdict in by for by in summary.counts.values())]
    yield "".join(f"<th>{verdict}</th>" for verdict in present) + "</tr></thead><tbody>"
    for level in LEVELS:
        if summary.counts.get(level):
            cells = "".join(f"<td>{summary.counts[level].get(verdict, 0) or ''}</td>" for verdict in present)
            yield f"<tr><th>{level}</th>{cells}</tr>"
    yield "</tbody></table></div>"
    if summary.causes:
        yield "<h2>What is wrong</h2><ul class=causes>"
        for cause in summary.causes:
            times = f"{cause.count} times" if cause.count > 1 else "once"
            name, words = markup(cause.case), markup(cause.differs)
            yield f"<li><b>{name}</b> {words} <small>{times}</small></li>"
        yield "</ul>"


def _filters(summary: Summary) -> Iterator[str]:
    verdicts = {result.verdict for result in summary.results}
    yield "<fieldset><legend>show</legend>"
    for verdict in _ORDER:
        if verdict in verdicts:
            count = sum(result.verdict == verdict for result in summary.results)
            checked = "" if verdict == "skipped" else " checked"
            means = f"<small>{_MEANINGS[verdict]}</small>"
            box = f"<input type=checkbox name=verdict value={verdict}{checked}>"
            yield f"<label>{box} {verdict} ({count}) {means}</label>"
    yield "</fieldset>"


def _case(result: Result) -> str:
    hidden = " hidden" if result.verdict == "skipped" else ""
    head = (
        f"<span class='badge {result.verdict}'>{result.verdict}</span> <b>{markup(result.id)}</b> "
        f"<span class=level>{result.level} v{result.header}</span> <span class=title>{markup(result.title)}</span>"
    )
    identity = markup(f"{result.id}-v{result.header}")
    return "".join(
        [
            f"<details class=case id='{identity}' data-verdict={result.verdict}{hidden}><summary>{head}</summary>",
            f"<blockquote><b>{result.rule}</b> {markup(result.text)} <i>({markup(result.basis)})</i></blockquote>",
            *_body(result),
            "</details>",
        ]
    )


def _body(result: Result) -> Iterator[str]:
    if result.reason:
        yield f"<p class=reason>{markup(result.reason)}</p>"
    for finding in result.findings:
        where = f" <small>in {markup(finding.case)}</small>" if finding.case else ""
        rule = f" <small>{finding.rule}</small>" if finding.rule != result.rule else ""
        yield f"<section class=finding><h3>{markup(finding.what)}{where}{rule}</h3>"
        yield f"<dl class=pair><dt>expected</dt><dd><code>{markup(finding.expected)}</code></dd>"
        yield f"<dt>seen</dt><dd><code class=seen>{markup(finding.seen)}</code></dd></dl></section>"
    if result.exchange:
        yield f"<div class=wide>{diagram(result.exchange, HUB)}</div>"
    if result.exchange and result.verdict != "pass":
        yield "<details class=raw><summary>frames</summary><ol>"
        for one in result.exchange:
            kind = " class=wrong" if one.wrong else ""
            who = f"{markup(one.sender)} → {markup(one.receiver)}"
            yield f"<li{kind}>{who} <code>{markup(one.detail or one.label)}</code></li>"
        yield "</ol></details>"
    if result.command:
        yield f"<p>Again: <code class=command>{markup(result.command)}</code></p>"
