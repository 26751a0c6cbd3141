"""Rows and verdicts as pictures and sentences."""

from collections.abc import Iterable
from typing import Any

import msgspec

from hubauth.core.inputs import PARENT
from hubauth.core.messages import SUB_PROTO
from hubauth.report.conceal import conceal, secrets_in
from hubauth.report.escape import markup, markup_lines, visible
from hubauth.trace.drawing import Arrow, Diagram, Mark, to_svg
from hubauth.trace.events import Event, Kind
from hubauth.trace.verdicts import Outcome, Verdict

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


def diagram_of(events: tuple[Event, ...], verdict: Verdict | None = None) -> Diagram:
    """The rows of one hub: it stands between its parent and its other links."""
    hub = events[0].hub if events else ""
    links = sorted({event.link for event in events if event.link is not None and event.link != PARENT})
    has_parent = any(event.link == PARENT for event in events)
    own = 1 if has_parent else 0
    together = len(links) > _COLUMNS
    places = {PARENT: 0} | {link: own + 1 + (0 if together else at) for at, link in enumerate(links)}
    peers = {event.link: event.peer for event in events if event.kind is Kind.LINK_UP and event.peer}
    names = ["links"] if together else [f"link {link} {peers.get(link, '')}".rstrip() for link in links]
    wrong = _wrong_rows(events, verdict)
    secrets = set().union(*(secrets_in(event.payload.decode("latin-1")) for event in events))
    steps = [_step(event, own, places, event.sequence in wrong, together, secrets) for event in events]
    if verdict is not None and verdict.outcome is not Outcome.CONFORMS:
        steps.append(Mark(own, verdict.rule or verdict.outcome.value, wrong=True))
    participants = [*(["parent"] if has_parent else []), hub, *names]
    return Diagram(tuple(conceal(name, secrets) for name in participants), tuple(steps))


def _wrong_rows(events: tuple[Event, ...], verdict: Verdict | None) -> set[int]:
    """The row that was decided about, and what the hub did because of it."""
    if verdict is None or verdict.sequence is None or verdict.outcome is Outcome.CONFORMS:
        return set()
    return {event.sequence for event in events if event.sequence >= verdict.sequence and event.kind is not Kind.END}


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


def in_words(verdict: Verdict) -> str:
    """A verdict as a few lines."""
    word = {Outcome.CONFORMS: "conforms", Outcome.VIOLATES: "VIOLATES", Outcome.CANNOT_TELL: "cannot tell"}
    head = f"{_title(verdict)}: {word[verdict.outcome]}"
    if verdict.outcome is Outcome.CONFORMS:
        return visible(f"{head} ({verdict.events} rows)")
    lines = [f"{head} {verdict.rule} at row {verdict.sequence}"]
    for name in ("text", "expected", "seen", "missing"):
        value = getattr(verdict, name)
        if value:
            lines.append(f"  {'rule' if name == 'text' else name:<9}{value}")
    others = [rule for rule in verdict.rules if rule != verdict.rule]
    if others:
        lines.append(f"  {'also':<9}{' '.join(others)}")
    return "\n".join(map(visible, lines))


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
        f"<figure>{to_svg(diagram_of(verdict.leads, verdict))}</figure></body></html>\n"
    )
