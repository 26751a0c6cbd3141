"""What the core would have sent beside what was seen."""

from typing import TypeAlias

from attrs import evolve, frozen

from hubauth.core.inputs import Link
from hubauth.core.messages import SUB_PROTO, Answer, Authenticate, Body, Frame, Malformed, Reason, Register, Revoke
from hubauth.core.outputs import Close, Output, Send
from hubauth.trace.blame import blame_for, blame_for_close, blame_for_header
from hubauth.trace.events import Event, Kind, frame_of
from hubauth.wire.dialects.codec import Codec, NotInDialect

Visible: TypeAlias = Send | Close
"""The outputs that somebody outside can see."""

UNKNOWN_JOURNAL = "a journal that was not seen yet"
"""Stands for the journal of a hub that has not said it: it may say any, and must say the same ever after."""

_VISIBLE = (Send, Close)
_NOT_CHOSEN = (Answer, bytes)
_HEADER = ("sub_proto", "major", "flags", "source", "target")
_NAMES = {0: "OKResp", 1: "ErrResp", 2: "Msg", 3: "Cmd"}


@frozen
class Difference:
    """Something was done otherwise than the rules say."""

    rule: str
    expected: str
    seen: str


def visible(outputs: tuple[Output, ...]) -> list[Visible]:
    """What of a step's outputs can be seen, in order."""
    return [output for output in outputs if isinstance(output, _VISIBLE)]


def chooses_msg_id(frame: Frame) -> bool:
    """Whether the MsgID of a frame is its sender's own choice."""
    return frame.sub_proto == SUB_PROTO and not isinstance(frame.body, _NOT_CHOSEN)


def unequal_field(codec: Codec, expected: Frame, seen: Event) -> str | None:
    """The first field in which a frame differs from what was expected; None: it is the same message.

    A MsgID that the sender chose, the numbers of its revokes, a journal that is not known, the time of sending and the
    words of ``msg`` are free.
    """
    if (
        expected.sub_proto != seen.sub_proto
        or expected.major != seen.major
        or expected.flags != seen.flags
        or expected.source != seen.source
        or expected.target != seen.target
    ):
        return next(name for name in _HEADER if getattr(expected, name) != getattr(seen, name))
    if expected.msg_id != seen.msg_id and not chooses_msg_id(expected):
        return "msg_id"
    if seen.header == 2 and (expected.trace_id != seen.trace_id or expected.hop_limit != seen.hop_limit):
        return "trace_id" if expected.trace_id != seen.trace_id else "hop_limit"
    body = expected.body
    if isinstance(body, bytes):
        if expected.timestamp and expected.timestamp != seen.timestamp:
            return "timestamp"
        return None if body == seen.payload else "payload"
    written = codec.encode(body)
    if written == seen.payload:
        return None
    meant, said = codec.decode(written, expected.major).body, frame_of(seen, codec).body
    return None if meant == _with_names_of(meant, said) else "payload"


def names_itself(body: Body) -> bool:
    """Whether a hub says its journal in this message, and it was not known before."""
    ext = body.ext if isinstance(body, Register | Authenticate | Answer) else None
    return ext is not None and ext.journal == UNKNOWN_JOURNAL


def _with_names_of(meant: Body, said: Body) -> Body:
    """What was said, with the core's names for what the sender was free to choose."""
    if isinstance(meant, Revoke) and isinstance(said, Revoke) and meant.seq and said.seq:
        return evolve(said, seq=meant.seq)
    if names_itself(meant) and isinstance(said, Register | Authenticate | Answer) and said.ext is not None:
        journal = UNKNOWN_JOURNAL if said.ext.hub else ""
        return evolve(said, ext=evolve(said.ext, journal=journal))
    return said


def same(codec: Codec, expected: Visible, seen: Event) -> bool:
    """Whether this is what was expected, link included."""
    if expected.link != seen.link:
        return False
    if isinstance(expected, Close):
        return seen.kind is Kind.CLOSE
    return seen.kind is Kind.FRAME_OUT and unequal_field(codec, expected.frame, seen) is None


def find_difference(
    codec: Codec, expected: list[Visible], seen: list[Event], cited: tuple[str, ...]
) -> Difference | None:
    """What is wrong with the outputs of one step, compared link by link; None: nothing."""
    if len(expected) == len(seen):
        for output, event in zip(expected, seen, strict=True):
            if not same(codec, output, event):
                break
        else:
            return None
    found: list[tuple[int, Difference]] = []
    for link in sorted({output.link for output in expected} | {event.link or 0 for event in seen}):
        due = [output for output in expected if output.link == link]
        done = [event for event in seen if event.link == link]
        difference = _on_link(codec, due, done, cited)
        if difference is not None:
            found.append(difference)
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _on_link(
    codec: Codec, due: list[Visible], done: list[Event], cited: tuple[str, ...]
) -> tuple[int, Difference] | None:
    """The first difference on one link, and how much it tells: less is more."""
    for index in range(max(len(due), len(done))):
        output = due[index] if index < len(due) else None
        event = done[index] if index < len(done) else None
        if output is not None and event is not None:
            if same(codec, output, event):
                continue
            if any(same(codec, later, event) for later in due[index + 1 :]):
                return 2, missing(codec, output, cited, show_event(event))
            if any(same(codec, output, later) for later in done[index + 1 :]):
                return 1, unexpected(codec, event, cited, show_output(codec, output))
            return 0, different(codec, output, event, cited)
        if event is not None:
            return 1, unexpected(codec, event, cited)
        assert output is not None
        return 2, missing(codec, output, cited)
    return None


def missing(codec: Codec, output: Visible, cited: tuple[str, ...], seen: str = "nothing") -> Difference:
    """Something that was due was not done."""
    rule = blame_for_close(cited) if isinstance(output, Close) else blame_for(output.frame.body, cited)
    return Difference(rule, show_output(codec, output), seen)


def unexpected(codec: Codec, event: Event, cited: tuple[str, ...], expected: str = "nothing") -> Difference:
    """Something was done that was not due."""
    if event.kind is Kind.CLOSE:
        return Difference(blame_for_close(cited), expected, show_event(event))
    rule = blame_for(frame_of(event, codec).body, cited, unexpected=True)
    return Difference(rule, expected, show_event(event))


def different(codec: Codec, output: Visible, event: Event, cited: tuple[str, ...]) -> Difference:
    """Something else was done than was due."""
    return Difference(_rule_for(codec, output, event, cited), show_output(codec, output), show_event(event))


def _rule_for(codec: Codec, output: Visible, event: Event, cited: tuple[str, ...]) -> str:
    if isinstance(output, Close) or event.kind is Kind.CLOSE:
        return blame_for_close(cited) if isinstance(output, Close) else blame_for(output.frame.body, cited)
    due, done = output.frame.body, frame_of(event, codec).body
    if type(due) is not type(done) and not isinstance(done, Malformed):
        return blame_for(done, cited, unexpected=True) if isinstance(done, Answer) else blame_for(due, cited)
    name = unequal_field(codec, output.frame, event)
    if _decides_otherwise(due, done):
        return blame_for(due, cited)
    if name is not None and name != "payload":
        return blame_for_header(name, due)
    if isinstance(done, Malformed):
        return codec.rules_for(due)[1]
    return _rule_of_content(due, done, cited)


def _decides_otherwise(due: Body, done: Body) -> bool:
    """Whether the two are different decisions, so that header fields differ as a consequence."""
    if isinstance(due, Answer) and isinstance(done, Answer):
        return due.action != done.action or (due.reason is Reason.OK) != (done.reason is Reason.OK)
    return False


def _rule_of_content(due: Body, done: Body, cited: tuple[str, ...]) -> str:
    if isinstance(due, Answer) and isinstance(done, Answer):
        if due.node_id != done.node_id and "REG-2" in cited:
            return "REG-2"
        if due.node_id != done.node_id and "REG-9" in cited:
            return "REG-9"
        if due.grant != done.grant and "AUTH-26" in cited:
            return "AUTH-26"
        if due.ext != done.ext and evolve(due, ext=None) == evolve(done, ext=None):
            return "EXT-7" if "EXT-7" in cited else "EXT-3"
    if isinstance(due, Register | Authenticate) and isinstance(done, type(due)) and due.ext != done.ext:
        return "EXT-2"
    if isinstance(due, Revoke):
        return "EXT-10" if isinstance(done, Revoke) and bool(due.seq) != bool(done.seq) else "REV-2"
    return blame_for(due, cited)


# In words


def show_output(codec: Codec, output: Visible) -> str:
    """An expected output, for people."""
    if isinstance(output, Close):
        return f"close {_link(output.link)}"
    frame = output.frame
    try:
        payload = frame.body if isinstance(frame.body, bytes) else codec.encode(frame.body)
    except NotInDialect:
        payload = b"?"
    return _show(output.link, frame.major, frame.msg_id, frame.source, frame.target, frame.sub_proto, payload)


def show_event(event: Event) -> str:
    """A seen output, for people."""
    if event.kind is Kind.CLOSE:
        return f"close {_link(event.link or 0)}"
    return _show(event.link or 0, event.major, event.msg_id, event.source, event.target, event.sub_proto, event.payload)


def _show(link: Link, major: int, msg_id: int, source: int, target: int, sub_proto: int, payload: bytes) -> str:
    said = (
        payload.decode(errors="replace") if sub_proto == SUB_PROTO else f"{len(payload)} bytes of SubProto {sub_proto}"
    )
    return f"{_link(link)}: {_NAMES.get(major, major)} msg_id={msg_id} source={source} target={target} {said}"


def _link(link: Link) -> str:
    return f"link {link}" if link else "parent"
