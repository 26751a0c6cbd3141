"""Rows and verdicts as pictures and sentences."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import msgspec

from hubauth.core.inputs import PARENT
from hubauth.core.messages import SUB_PROTO
from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.judge.across import Breach
from hubauth.judge.verdicts import Finding, Outcome, Verdict, count_words
from hubauth.report.conceal import conceal, secrets_in
from hubauth.report.escape import markup, markup_lines, visible
from hubauth.trace.drawing import Arrow, Diagram, Mark, to_svg

_COLUMNS = 3
"""Links that have a column of their own; more share one."""
_SHOWN = ("device_id", "node_id", "code")
_WORDS = {
    Kind.START: "start",
    Kind.LINK_UP: "link up",
    Kind.LINK_DOWN: "link down",
    Kind.CLOSE: "close",
    Kind.TIMER: "timer",
    Kind.OPERATOR: "operator",
    Kind.POLICY: "new policy",
    Kind.CHECKPOINT: "checkpoint",
    Kind.END: "end",
}


def summary(event: Event, secrets: Iterable[str] = ()) -> str:
    """What a frame says, in a few words, none of which is a credential."""
    if event.sub_proto != SUB_PROTO:
        return f"SubProto {event.sub_proto}, {len(event.payload)} bytes, {event.source} to {event.target}"
    try:
        content = msgspec.json.decode(event.payload, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "unreadable"
    data = content.get("data")
    fields = data if isinstance(data, dict) else content
    said = [str(content.get("action", "answer"))]
    said += [f"{name}={fields[name]}" for name in _SHOWN if name in fields and fields[name] not in ("", 0)]
    return conceal(" ".join([*said, f"#{event.msg_id}"]), secrets)


def diagram_of(
    events: tuple[Event, ...], finding: Finding | None = None, marked: Iterable[int] = (), *, narrow: bool = False
) -> Diagram:
    """The rows of one hub: it stands between its parent and its other links; if ``narrow``, beside all of them.

    ``marked`` are rows to look at, beside those that a finding is about.
    """
    hub = events[0].hub if events else ""
    links = sorted({event.link for event in events if event.link is not None and (narrow or event.link != PARENT)})
    has_parent = not narrow and any(event.link == PARENT for event in events)
    own = 1 if has_parent else 0
    together = narrow or len(links) > _COLUMNS
    places = {PARENT: 0} | {link: own + 1 + (0 if together else at) for at, link in enumerate(links)}
    peers = {event.link: event.peer for event in events if event.kind is Kind.LINK_UP and event.peer}
    names = [f"links of {hub}"] if together else [f"link {link} {peers.get(link, '')}".rstrip() for link in links]
    wrong = {*_wrong_rows(events, finding), *marked}
    secrets = set().union(*(secrets_in(event.payload.decode("latin-1")) for event in events))
    steps = [_step(event, own, places, event.sequence in wrong, together, secrets) for event in events]
    if finding is not None and finding.outcome is not Outcome.CONFORMS:
        steps.append(Mark(own, finding.rule or finding.outcome.value, wrong=True))
    participants = [*(["parent"] if has_parent else []), hub, *names]
    return Diagram(tuple(conceal(name, secrets) for name in participants), tuple(steps))


AROUND = 8
"""So many rows before and after one are looked at for what belongs to it."""
_NEXT, _DONE = 2, 2
"""Of its own link so many before and after are shown, and so many that the hub did at once."""


def diagram_of_rows(windows: Iterable[tuple[int, tuple[Event, ...]]], promise: str) -> Diagram:
    """Some rows, maybe of several hubs, each given with those around it; the hubs stand one beside the other."""
    at_hub: dict[str, dict[int, Event]] = {}
    wanted: dict[str, set[int]] = {}
    for row, events in windows:
        for event in _belonging(row, events):
            at_hub.setdefault(event.hub, {})[event.sequence] = event
            wanted.setdefault(event.hub, set()).add(row)
    names: tuple[str, ...] = ()
    steps: tuple[Arrow | Mark, ...] = ()
    for hub, rows in at_hub.items():
        part = diagram_of(tuple(rows[row] for row in sorted(rows)), marked=wanted[hub], narrow=True)
        steps += tuple(step.moved(len(names)) for step in part.steps)
        names += part.participants
    last = len(names) - 1
    return Diagram(names, (*steps, *([Mark(last - 1, promise, wrong=True)] if names else [])))


def _belonging(row: int, events: tuple[Event, ...]) -> list[Event]:
    """A row, the other rows of its link, and what the hub did at once."""
    found = next((event for event in events if event.sequence == row), None)
    if found is None:
        return []
    after = takewhile(lambda event: event.kind in OUTPUTS, (event for event in events if event.sequence > row))
    done = list(after)[:_DONE]
    same = [event for event in events if event.link == found.link]
    at = same.index(found)
    near = same[max(at - _NEXT, 0) : at + _NEXT + 1]
    return sorted({event.sequence: event for event in (*near, *done)}.values(), key=lambda event: event.sequence)


def _wrong_rows(events: tuple[Event, ...], finding: Finding | None) -> set[int]:
    """The row that was decided about, and what the hub did because of it."""
    if finding is None or finding.sequence is None or finding.outcome is Outcome.CONFORMS:
        return set()
    after = [event for event in events if event.sequence > finding.sequence]
    done = takewhile(lambda event: event.kind in OUTPUTS, after)
    return {finding.sequence, *(event.sequence for event in done)}


def _step(
    event: Event, own: int, places: dict[int, int], wrong: bool, together: bool, secrets: Iterable[str]
) -> Arrow | Mark:
    margin = str(event.sequence)
    which = f"{event.link or 'parent'}: " if together and event.link is not None else ""
    if event.link is None or event.link not in places:
        word = f"{_WORDS.get(event.kind, event.kind.value)} {event.msg_id or ''}".rstrip()
        return Mark(own, word, margin, wrong)
    there = places[event.link]
    if event.kind is Kind.FRAME_IN:
        return Arrow(there, own, which + summary(event, secrets), margin, wrong)
    if event.kind is Kind.FRAME_OUT:
        return Arrow(own, there, which + summary(event, secrets), margin, wrong)
    return Mark(there, which + _WORDS[event.kind], margin, wrong)


_OUTCOMES = {Outcome.CONFORMS: "conforms", Outcome.VIOLATES: "VIOLATES", Outcome.CANNOT_TELL: "cannot tell"}


def in_words(verdict: Verdict) -> str:
    """A verdict as a few lines: each finding once, in the order of the rows."""
    title = _title(verdict)
    lines = [line for finding in verdict.findings for line in _finding_in_words(title, finding)]
    if verdict.outcome is Outcome.CONFORMS:
        lines.append(f"{title}: conforms ({verdict.events} rows)")
    for finding in verdict.apart:
        lines += _finding_in_words(f"{title}: against a decision only", finding)
    for finding in verdict.known:
        lines += _finding_in_words(f"{title}: known", finding)
    return "\n".join(map(visible, [*lines, *([f"  {verdict.stopped}"] if verdict.stopped else [])]))


def _finding_in_words(title: str, finding: Finding) -> list[str]:
    at = f" at row {finding.sequence}" if finding.sequence is not None else ""
    often = count_words(finding.times, finding.last, finding.consequences)
    lines = [f"{title}: {_OUTCOMES[finding.outcome]} {finding.rule}{at}{often}"]
    for name in ("text", "basis", "what", "expected", "seen", "missing"):
        value = getattr(finding, name)
        if value:
            lines.append(f"  {_LABELS.get(name, name):<9}{value}")
    others = [rule for rule in finding.rules if rule != finding.rule]
    return [*lines, f"  {'also':<9}{' '.join(others)}"] if others else lines


_LABELS = {"text": "rule", "what": "differs"}


def breach_in_words(breach: Breach) -> str:
    """A promise that the hubs of a trace together have broken, as a few lines."""
    broken = breach.broken
    title = conceal(f"{breach.trace}/{broken.hub}")
    outcome = "breaks" if breach.outcome is Outcome.VIOLATES else "may break"
    lines = [f"{title}: {outcome} {broken.promise} at row {broken.sequence} ({broken.rule})"]
    if broken.since >= 0:
        lines.append(f"  {'against':<9}row {broken.since} of {broken.other}")
    if broken.heard >= 0:
        lines.append(f"  {'heard':<9}in row {broken.heard} of {broken.hub}")
    for name, value in (("expected", broken.expected), ("seen", broken.seen), ("missing", breach.missing)):
        if value:
            lines.append(f"  {name:<9}{value}")
    return "\n".join(map(visible, lines))


def _title(verdict: Verdict) -> str:
    return conceal(f"{verdict.trace}/{verdict.hub}")


def parts_of(verdict: Verdict, otherwise: Diagram) -> list[tuple[str, Diagram]]:
    """Each finding in words, with a picture of the rows where it was first seen; else the verdict with another one."""
    title = _title(verdict)
    parts = [
        ("\n".join(map(visible, _finding_in_words(title, finding))), diagram_of(finding.leads, finding))
        for finding in (*verdict.findings, *verdict.apart, *verdict.known)
        if finding.leads
    ]
    return parts or [(in_words(verdict), otherwise)]


def to_html(verdict: Verdict, parts: Iterable[tuple[str, Diagram]]) -> str:
    """One file with everything that is said about a hub, first in a list, then each with its picture."""
    title, parts = f"{_title(verdict)}: {verdict.outcome.value.replace('_', ' ')}", list(parts)
    listed = "".join(
        f'<li><a href="#part-{at}">{markup(words.partition(chr(10))[0])}</a></li>'
        for at, (words, _) in enumerate(parts)
    )
    sections = "".join(_section(at, words, diagram) for at, (words, diagram) in enumerate(parts))
    stopped = f"<p>{markup(verdict.stopped)}</p>" if verdict.stopped else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{markup(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body><h1>{markup(title)}</h1>\n<ol>{listed}</ol>{stopped}\n{sections}</body></html>\n"
    )


_STYLE = """:root{color-scheme:light dark} body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:80rem}
h2{margin-top:2.5rem;font-size:1.15rem} figure{overflow-x:auto;margin:1rem 0 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:1rem;background:light-dark(#f4f4f4,#222)}"""


def _section(at: int, words: str, diagram: Diagram) -> str:
    first, _, rest = words.partition("\n")
    said = f"<pre>{markup_lines(rest)}</pre>\n" if rest else ""
    return f'<h2 id="part-{at}">{markup(first)}</h2>\n{said}<figure>{to_svg(diagram)}</figure>\n'
