"""What the core would have sent beside what was seen: what differs, by field, and under which rule."""

from collections.abc import Iterator
from typing import TypeAlias

from attrs import evolve, field, fields, frozen

from hubauth.core.inputs import Link
from hubauth.core.messages import (
    SUB_PROTO,
    Answer,
    Authenticate,
    Body,
    Frame,
    Major,
    Malformed,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.outputs import Close, Output, Send
from hubauth.core.transition import Step
from hubauth.forms.events import Event, Kind
from hubauth.forms.reading import frame_of
from hubauth.judge.blame import blame_for, blame_for_close, blame_for_header, blame_unasked
from hubauth.wire.dialects.codec import Codec, NotInDialect

Visible: TypeAlias = Send | Close
"""The outputs that somebody outside can see."""

UNKNOWN_JOURNAL = "a journal that was not seen yet"
"""Stands for the journal of a hub that has not said it: it may say any, and must say the same ever after."""

UNKNOWN_CREDENTIAL = "0" * 43
"""Stands for a credential that was issued but never seen."""

_VISIBLE = (Send, Close)
_NOT_CHOSEN = (Answer, bytes)
_HEADER = {
    "sub_proto": "SubProto",
    "major": "Major",
    "flags": "Flags",
    "source": "SourceID",
    "target": "TargetID",
    "msg_id": "MsgID",
    "trace_id": "TraceID",
    "hop_limit": "HopLimit",
    "timestamp": "Timestamp",
}
"""Header fields, and what the documents call them."""
_FIELDS = {"reason": "code", "grant": "role or perms"}
"""Fields of messages that people know under another name."""
_NAMES = {0: "OKResp", 1: "ErrResp", 2: "Msg", 3: "Cmd"}
_OF_FORM = ("code", "role or perms", "total", "roles", "refresh")
"""What can be wrong in a message without the hub having done anything else than it should."""
UNREADABLE = "unreadable"
IN_ANY_ORDER = frozenset({"Major", "Flags", UNREADABLE})
"""What is wrong with a frame whatever came before it, if all else is as it should be."""
SILENCE, NOT_DUE, ORDER = "silence", "not due", "order"


@frozen
class Difference:
    """Something was done otherwise than the rules say."""

    rule: str
    expected: str
    seen: str
    what: str = ""
    """What differs: a field, ``silence``, ``not due``, ``order``."""
    of_form: bool = False
    """The hub did what it had to; only the frame looks otherwise."""
    due: Visible | None = field(default=None, eq=False, repr=False)
    done: Event | None = field(default=None, eq=False, repr=False)


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
        or (expected.msg_id != seen.msg_id and not chooses_msg_id(expected))
        or (seen.header == 2 and (expected.trace_id != seen.trace_id or expected.hop_limit != seen.hop_limit))
    ):
        return _unequal_header(expected, seen)[0]
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


def _unequal_header(expected: Frame, seen: Event) -> list[str]:
    """The header fields in which a frame differs."""
    names = ["sub_proto", "major", "flags", "source", "target"]
    names += [] if chooses_msg_id(expected) else ["msg_id"]
    names += ["trace_id", "hop_limit"] if seen.header == 2 else []
    return [name for name in names if getattr(expected, name) != getattr(seen, name)]


def _unequal_content(codec: Codec, due: Body, seen: Event, major: Major) -> list[str]:
    """The fields of a message that differ, in words."""
    if isinstance(due, bytes):
        return ["payload"] if due != seen.payload else []
    meant = codec.decode(codec.encode(due), major).body
    said = _with_names_of(meant, frame_of(seen, codec).body)
    found = []
    for name in (each.name for each in fields(type(meant))):  # type: ignore[arg-type]
        wanted, got = getattr(meant, name), getattr(said, name)
        if wanted == got:
            continue
        word = _FIELDS.get(name, name)
        found.append(f"{word} too many" if not wanted else f"{word} missing" if not got else word)
    return found


def has_free_credential(body: Body) -> bool:
    """Whether a message holds a credential that is for the hub to choose, and was not seen."""
    return isinstance(body, Answer) and body.credential == UNKNOWN_CREDENTIAL


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


@frozen
class Compared:
    """One step's outputs beside what was seen: every difference, the most telling first, and what belongs together."""

    differences: list[Difference] = field(factory=list)
    pairs: list[tuple[Visible, Event]] = field(factory=list)


_ALIKE = Compared()


def compare(codec: Codec, done: Step, expected: list[Visible], seen: list[Event]) -> Compared:
    """Compare what a step would have done with what was seen, link by link."""
    if len(expected) == len(seen):
        for output, event in zip(expected, seen, strict=True):
            if not same(codec, output, event):
                break
        else:
            return _ALIKE
    comparing = Comparing(codec, done)
    found: list[tuple[int, Difference]] = []
    pairs: list[tuple[Visible, Event]] = []
    for link in sorted({output.link for output in expected} | {event.link or 0 for event in seen}):
        here = [output for output in expected if output.link == link]
        found += comparing.on_link(here, [event for event in seen if event.link == link], pairs)
    return Compared([difference for _, difference in sorted(found, key=lambda pair: pair[0])], pairs)


@frozen
class Comparing:
    """Differences of one step, by name and rule."""

    codec: Codec
    step: Step

    def on_link(
        self, due: list[Visible], done: list[Event], pairs: list[tuple[Visible, Event]]
    ) -> Iterator[tuple[int, Difference]]:
        """Every difference on one link and how much it tells, less being more. ``pairs`` gets what belongs together."""
        due, done = list(due), list(done)
        while due or done:
            if not due:
                yield 1, self.unexpected(done.pop(0))
                continue
            output = due.pop(0)
            if not done:
                yield 2, self.missing(output)
                continue
            event = done.pop(0)
            if same(self.codec, output, event):
                pairs.append((output, event))
                continue
            at = next((at for at, later in enumerate(due) if same(self.codec, later, event)), None)
            instead = next((at for at, later in enumerate(done) if same(self.codec, output, later)), None)
            if at is not None:
                yield 2, self.missing(output, show_event(event), in_turn=instead is None)
                pairs.append((due.pop(at), event))
                if instead is not None:
                    pairs.append((output, done.pop(instead)))
            elif instead is not None:
                yield 1, self.unexpected(event, show_output(self.codec, output))
                pairs.append((output, done.pop(instead)))
            else:
                pairs.append((output, event))
                for difference in self.different(output, event):
                    yield 0, difference

    def missing(self, output: Visible, seen: str = "nothing", *, in_turn: bool = True) -> Difference:
        """Something that was due was not done, or not in its turn."""
        rules = self.step.rules_behind(output)
        rule = blame_for_close(rules) if isinstance(output, Close) else blame_for(output.frame.body, rules)
        if not in_turn and isinstance(output, Send) and isinstance(output.frame.body, Answer):
            rule = blame_for_header("msg_id", output.frame.body)
        what = f"{SILENCE}: {title_of(output)}" if in_turn else f"{ORDER}: {title_of(output)}"
        return Difference(rule, show_output(self.codec, output), seen, what, not in_turn, output)

    def unexpected(self, event: Event, expected: str = "nothing") -> Difference:
        """Something was done that was not due."""
        return unexpected(self.codec, event, self.step.rules, expected)

    def different(self, output: Visible, event: Event) -> list[Difference]:
        """Something else was done than was due: in every respect in which that is so."""
        return [
            Difference(
                rule, show_output(self.codec, output), show_event(event), what, self._is_of_form(what), output, event
            )
            for rule, what in self._respects(output, event)
        ]

    @staticmethod
    def _is_of_form(what: str) -> bool:
        return what in _HEADER.values() or what.removesuffix(" too many").removesuffix(" missing") in _OF_FORM

    def _respects(self, output: Visible, event: Event) -> list[tuple[str, str]]:
        """The rule and the name of everything that differs."""
        behind = self.step.rules_behind(output)
        if isinstance(output, Close):
            return [(blame_for_close(behind), "close")]
        due = output.frame.body
        if event.kind is Kind.CLOSE:
            return [(blame_for(due, behind), "close")]
        done = frame_of(event, self.codec).body
        if isinstance(done, Malformed) and not isinstance(due, bytes):
            return [(self.codec.rules_for(due)[1], UNREADABLE)]
        if type(due) is not type(done):
            rules = self.step.rules
            return [(blame_unasked(done, rules) if isinstance(done, Answer) else blame_for(due, behind), "message")]
        if _decides_otherwise(due, done):
            return [(blame_for(due, behind), "decision")]
        header = [(blame_for_header(name, due), _HEADER[name]) for name in _unequal_header(output.frame, event)]
        content = _unequal_content(self.codec, due, event, output.frame.major)
        if has_free_credential(due) and (header or len(content) > 1):
            content = [name for name in content if name != "credential"]
        respects = header + [(self._rule_of_content(name, due, done, behind), name) for name in content]
        return respects or [(blame_for_header("timestamp", due), "Timestamp")]

    def _rule_of_content(self, name: str, due: Body, done: Body, behind: tuple[str, ...]) -> str:
        cited = self.step.rules
        if isinstance(due, Answer):
            if name.startswith("node_id") and "REG-2" in cited:
                return "REG-2"
            if name.startswith("node_id") and "REG-9" in cited:
                return "REG-9"
            if name.startswith("total") and "PERM-9" in cited:
                return "PERM-9"
            if name.startswith("role or perms") and "AUTH-26" in cited:
                return "AUTH-26"
            if name.startswith("ext"):
                return "EXT-7" if "EXT-7" in cited else "EXT-3"
        if isinstance(due, Register | Authenticate) and name.startswith("ext"):
            return "EXT-2"
        if isinstance(due, Revoke):
            return "EXT-10" if isinstance(done, Revoke) and bool(due.seq) != bool(done.seq) else "REV-2"
        return blame_for(due, behind)


def unexpected(codec: Codec, event: Event, cited: tuple[str, ...], expected: str = "nothing") -> Difference:
    """Something was done that was not due after a step that cited these rules."""
    if event.kind is Kind.CLOSE:
        rule, name = blame_for_close(cited[::-1]), "close"
    else:
        body = frame_of(event, codec).body
        rule, name = blame_unasked(body, cited), _message(body)
    return Difference(rule, expected, show_event(event), f"{NOT_DUE}: {name}", False, None, event)


def title_of(output: Visible) -> str:
    """What an output is, in two words."""
    return "close" if isinstance(output, Close) else _message(output.frame.body)


def _message(body: Body) -> str:
    """What a message is, in two words."""
    if isinstance(body, bytes):
        return "a frame of another sub-protocol"
    name = body.action.value if body.action is not None else "something"
    return f"answer to {name}" if isinstance(body, Answer) else name


def _decides_otherwise(due: Body, done: Body) -> bool:
    """Whether the two are different decisions, so that header fields differ as a consequence."""
    if isinstance(due, Answer) and isinstance(done, Answer):
        return done.action not in (None, due.action) or (due.reason is Reason.OK) != (done.reason is Reason.OK)
    return False


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
