"""What is missing in a trace, or odd about it, row by row: for whoever writes one."""

from collections.abc import Iterator
from pathlib import Path

from attrs import define, field, frozen

from hubauth.core.inputs import PARENT
from hubauth.core.messages import MAX_NODE_ID, SUB_PROTO, Malformed
from hubauth.forms.events import OUTPUTS, Event, Kind, Order, TraceError, decode_opening
from hubauth.forms.lines import decode_event
from hubauth.forms.reading import frame_of, input_of
from hubauth.report.conceal import conceal
from hubauth.trace import jsonl
from hubauth.trace.storage import checkpoint_files, events_files, read_checkpoints, read_events
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import Codec

_LINK_KINDS = frozenset({Kind.LINK_UP, Kind.LINK_DOWN, Kind.CLOSE, Kind.FRAME_IN, Kind.FRAME_OUT})
_FRAMES = frozenset({Kind.FRAME_IN, Kind.FRAME_OUT})
_UINT32 = ("msg_id", "source", "target", "trace_id", "timestamp")


@frozen
class Finding:
    """Something to put right (``is_error``), or to know."""

    where: str
    message: str = field(converter=conceal)
    is_error: bool = True


@define
class _Hub:
    """What is known of a hub so far."""

    next: int
    codec: Codec | None = None
    is_handled: bool = False
    has_cause: bool = False
    ended: bool = False
    time: int = 0
    up: set[int] = field(factory=set)
    used: set[int] = field(factory=set)
    said: set[str] = field(factory=set)


def lint(path: Path) -> Iterator[Finding]:
    """Everything about the trace in ``path``. Raises TraceError if there is none."""
    hubs: dict[tuple[str, str], _Hub] = {}
    marked: set[tuple[str, str, int]] = set()
    rows = 0
    for file in events_files(path):
        for where, row in _rows(file):
            rows += 1
            if isinstance(row, TraceError):
                yield Finding(where, str(row))
                continue
            if row.kind is Kind.CHECKPOINT:
                marked.add((row.trace, row.hub, row.sequence))
            for message, is_error in _about(row, hubs):
                yield Finding(where, message, is_error)
    if not rows:
        yield Finding(str(path), "no row at all")
    for (_, name), hub in hubs.items():
        if not hub.ended:
            yield Finding(str(path), f"{name}: no end row: whether its last step is complete cannot be told", False)
    if not path.is_file():
        yield from _about_checkpoints(path, marked)


def _rows(file: Path) -> Iterator[tuple[str, Event | TraceError]]:
    if file.suffix == ".parquet":
        number = 0
        try:
            for number, event in enumerate(read_events(file), 1):
                yield f"{file} row {number}", event
        except TraceError as problem:
            yield f"{file} row {number + 1}", problem
        return
    for number, line in jsonl.lines(file):
        try:
            yield f"{file}:{number}", decode_event(line)
        except TraceError as problem:
            yield f"{file}:{number}", problem


def _about(event: Event, hubs: dict[tuple[str, str], _Hub]) -> Iterator[tuple[str, bool]]:
    key = (event.trace, event.hub)
    hub = hubs.get(key)
    if hub is None:
        hub = hubs[key] = _Hub(event.sequence)
        if event.kind is not Kind.START:
            yield "the first row of a hub must be its start", True
    if event.sequence != hub.next:
        yield f"sequence {event.sequence}, but {hub.next} should follow", True
    hub.next = event.sequence + 1
    if event.time and event.time < hub.time and "time" not in hub.said:
        hub.said.add("time")
        yield "time goes back", False
    if not event.time and "no time" not in hub.said:
        hub.said.add("no time")
        yield "no time: whether something took too long cannot be told", False
    hub.time = event.time or hub.time
    hub.ended = event.kind is Kind.END
    if event.kind is Kind.START:
        yield from _about_start(event, hub)
        return
    if event.kind in OUTPUTS and hub.is_handled and not hub.has_cause:
        yield "nothing has happened yet that could be the cause of this", True
    hub.has_cause = hub.has_cause or event.kind not in OUTPUTS
    if event.kind in _LINK_KINDS:
        yield from _about_link(event, hub)
    if event.kind in _FRAMES:
        yield from _about_frame(event, hub)
    elif event.kind not in (Kind.CHECKPOINT, Kind.END, Kind.CLOSE) and hub.codec is not None:
        try:
            input_of(event, hub.codec)
        except TraceError as problem:
            yield str(problem), True


def _about_start(event: Event, hub: _Hub) -> Iterator[tuple[str, bool]]:
    try:
        opening = decode_opening(event.payload)
        policy = opening.read_policy()
    except (TraceError, ValueError) as problem:
        yield str(problem), True
        return
    hub.is_handled, hub.has_cause = opening.order is Order.HANDLED, False
    hub.up, hub.used = set(), set()  # every link ended with the life before
    if policy is None:
        yield "no policy: whoever replays this has to know it from elsewhere", False
    else:
        hub.codec = CODECS[policy.dialect]
    if not opening.tokens and policy is not None and policy.has_credentials:
        yield "credentials are not replaced: do not share this trace", False


def _about_link(event: Event, hub: _Hub) -> Iterator[tuple[str, bool]]:
    link = event.link
    if link is None or link < 0:
        yield f"{event.kind.value} needs a link: 0 for the parent, else a positive number", True
        return
    if event.kind is Kind.LINK_UP:
        if link in hub.up:
            yield f"link {link} is up already", True
        elif link in hub.used and link != PARENT:
            yield f"link {link} was used before: a new connection needs a new number", True
        hub.up.add(link)
        hub.used.add(link)
    elif link not in hub.used:
        yield f"link {link} never came up: link_up is missing", True
        hub.used.add(link)
    elif event.kind in (Kind.LINK_DOWN, Kind.CLOSE):
        hub.up.discard(link)
    if not event.connection and "connection" not in hub.said:
        hub.said.add("connection")
        yield "no connection: what was sent cannot be compared with what the other end received", False


def _about_frame(event: Event, hub: _Hub) -> Iterator[tuple[str, bool]]:
    if event.header not in (1, 2):
        yield f"header {event.header}: a frame has header version 1 or 2", True
    if not 0 <= event.major <= 3 or not 0 <= event.sub_proto <= 63:
        yield "major must be 0 to 3 and sub_proto 0 to 63", True
        return
    for name in _UINT32:
        if not 0 <= getattr(event, name) <= MAX_NODE_ID:
            yield f"{name} must be 0 to 2^32-1", True
    if event.sub_proto == SUB_PROTO and not event.payload:
        yield "a frame of SubProto 2 without a payload", event.kind is Kind.FRAME_OUT
    elif event.kind is Kind.FRAME_OUT and hub.codec is not None:
        body = frame_of(event, hub.codec).body
        if isinstance(body, Malformed):
            yield f"the hub sent what its dialect cannot read: {body.detail}", False


def _about_checkpoints(path: Path, marked: set[tuple[str, str, int]]) -> Iterator[Finding]:
    kept: set[tuple[str, str, int]] = set()
    for file in checkpoint_files(path):
        try:
            kept |= {(row.trace, row.hub, row.sequence) for row in read_checkpoints(file)}
        except TraceError as problem:
            yield Finding(str(file), str(problem))
    for _, hub, sequence in sorted(marked - kept):
        yield Finding(str(path), f"{hub}: the checkpoint of row {sequence} is not in the table")
