"""Rows and verdicts as pictures and sentences."""

from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import msgspec

from hubauth.core.inputs import PARENT
from hubauth.core.messages import SUB_PROTO
from hubauth.forms.events import OUTPUTS, Event, Kind
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


def diagram_of(events: tuple[Event, ...], finding: Finding | None = None) -> Diagram:
    """The rows of one hub: it stands between its parent and its other links."""
    hub = events[0].hub if events else ""
    links = sorted({event.link for event in events if event.link is not None and event.link != PARENT})
    has_parent = any(event.link == PARENT for event in events)
    own = 1 if has_parent else 0
    together = len(links) > _COLUMNS
    places = {PARENT: 0} | {link: own + 1 + (0 if together else at) for at, link in enumerate(links)}
    peers = {event.link: event.peer for event in events if event.kind is Kind.LINK_UP and event.peer}
    names = ["links"] if together else [f"link {link} {peers.get(link, '')}".rstrip() for link in links]
    wrong = _wrong_rows(events, finding)
    secrets = set().union(*(secrets_in(event.payload.decode("latin-1")) for event in events))
    steps = [_step(event, own, places, event.sequence in wrong, together, secrets) for event in events]
    if finding is not None and finding.outcome is not Outcome.CONFORMS:
        steps.append(Mark(own, finding.rule or finding.outcome.value, wrong=True))
    participants = [*(["parent"] if has_parent else []), hub, *names]
    return Diagram(tuple(conceal(name, secrets) for name in participants), tuple(steps))


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
    which = f"{event.link}: " if together and event.link else ""
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


def _title(verdict: Verdict) -> str:
    return conceal(f"{verdict.trace}/{verdict.hub}")


def to_html(verdict: Verdict) -> str:
    """One file with the picture and the words; it needs nothing else."""
    title = _title(verdict)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{markup(title)}</title>\n'
        "<style>:root{color-scheme:light dark} body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:80rem}\n"
        "pre{white-space:pre-wrap;padding:1rem;background:light-dark(#f4f4f4,#222)} figure{overflow-x:auto;margin:0}"
        f"</style></head>\n<body><h1>{markup(title)}</h1>\n<pre>{markup_lines(in_words(verdict))}</pre>\n"
        f"<figure>{to_svg(diagram_of(verdict.main.leads, verdict.main))}</figure></body></html>\n"
    )
