"""Proof that the hub under test has handled what was done, before anything is done on another connection.

A hub reads its connections in any order, so what this tool does on two of them tells one story only if the first is
known to be handled before the second begins. That is shown

- for what was sent, by a fence: a request that changes nothing and is always answered. Its answer comes after
  everything that was sent before on that connection, and so does whatever this tool has to answer on the way;
- for a connection that this tool ends, by the hub ending it, too: it is told that nothing more comes. A hub may keep
  it while somebody waits there for an answer; that one is cut, and what must follow elsewhere is the only proof.

A hub that shows neither is given the stated time instead.
"""

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from hubauth.core.messages import Action, Answer, AssistOffline, Frame, Major, Reason
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.wire import Closed, Patience, Seen, Wire, write_frame

if TYPE_CHECKING:
    from hubauth.oracle.conform.subject import Subject


def settle(
    subject: "Subject", wire: Wire, source: int, names: Container[str] = (), *, upwards: bool = False
) -> list[Seen]:
    """Everything that the hub says on a connection because of what was done before, as far as it is about ``names``."""
    heard: list[Seen] = []
    again = True
    while again:
        again = False
        for seen in _fence(subject, wire, source, upwards):
            if is_late(seen, names):
                again |= acknowledge(subject, wire, source, seen)
            else:
                heard.append(seen)
    return heard


def _fence(subject: "Subject", wire: Wire, source: int, upwards: bool) -> list[Seen]:
    """What comes before the answer to a fence."""
    number, payload = subject.fence_id(), _payload(subject, upwards)
    if payload:
        wire.write(write_frame(wire.version, Frame(b"", msg_id=number, source=source), payload))
    timeouts = subject.profile.timeouts
    patience = Patience(timeouts.answer if payload else timeouts.silence)
    before: list[Seen] = []
    while True:
        got = wire.read(patience)
        if got is None or isinstance(got, Closed):
            return before
        if got.frame.msg_id == number or (subject.fence_answer and got.payload == subject.fence_answer):
            return before
        before.append(got)


def _payload(subject: "Subject", upwards: bool) -> bytes:
    if not upwards:
        return subject.fence_payload(subject.fence) if subject.fence else b""
    if subject.profile.dialect is Dialect.FLAT:
        return subject.fence_payload("invalid")
    return subject.codec.encode(AssistOffline("conform-fence"))


def is_late(seen: Seen, names: Container[str]) -> bool:
    """Whether a request is a late consequence of an earlier case: it is about a device of that case."""
    body = seen.frame.body
    name = getattr(body, "device_id", "")
    return not isinstance(body, Answer | bytes) and bool(name) and name not in names


def acknowledge(subject: "Subject", wire: Wire, source: int, seen: Seen) -> bool:
    """Answer an order, report or fence; whether it was one."""
    body = seen.frame.body
    if not isinstance(body, AssistOffline):
        return False
    reason, major = (Reason.OK, Major.OK_RESP) if body.node_id else (Reason.NOT_INDEXED, Major.ERR_RESP)
    answer = Answer(Action.ASSIST_OFFLINE, reason, body.device_id, body.node_id)
    # Whoever was just admitted may not know its own node yet; the hub, which asks it, does.
    frame = Frame(b"", major, seen.frame.msg_id, seen.frame.target or source, subject.node_id)
    wire.write(write_frame(wire.version, frame, subject.codec.encode(answer)))
    return True


def part(subject: "Subject", wires: Iterable[Wire], waiting: Iterable[Wire] = ()) -> None:
    """End connections, and see to it that the hub has noticed; on those ``waiting`` it may owe an answer."""
    ended, cut = list(wires), list(waiting)
    shown = subject.ends_too and (not cut or bool(subject.fence))
    if subject.ends_too:
        patience = Patience(subject.profile.timeouts.answer)
        for wire in ended:
            wire.finish()
        for wire in ended:
            shown &= wire.is_ended(patience)
    for wire in ended + cut:
        wire.close()
    subject.knock(shown=shown)
