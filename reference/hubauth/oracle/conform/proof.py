"""Proof that the hub under test has handled what was done, before anything is done on another connection.

A hub reads its connections in any order, so what this tool does on two of them tells one story only if the first is
known to be handled before the second begins. That is shown

- for what was sent, by a fence: a request that changes nothing and is always answered, on an extended link hub_fence.
  Its answer comes after everything that was sent before on that connection, and so does whatever this tool has to
  answer on the way;
- for a connection that this tool ends, by the hub ending it, too: it is told that nothing more comes. A hub may keep
  it while somebody waits there for an answer; that one is cut, and what must follow elsewhere is the only proof.

A hub that shows neither is given the stated time instead.
"""

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from hubauth.core.messages import Answer, AssistOffline, Frame, HubDismiss, HubFence, Major, Reason, Revoke
from hubauth.oracle.conform.wire import Closed, Patience, Seen, Wire, write_frame

if TYPE_CHECKING:
    from hubauth.oracle.conform.subject import Subject

TO_ACKNOWLEDGE = (AssistOffline, HubDismiss, HubFence)
"""What hubs answer with a plain success."""


def settle(subject: "Subject", wire: Wire, source: int, names: Container[str] = ()) -> list[Seen]:
    """Everything that the hub says on a connection because of what was done before, as far as it is about ``names``."""
    heard: list[Seen] = []
    again = True
    while again:
        again = False
        for seen in _fence(subject, wire, source):
            if is_late(wire, seen, names):
                again |= acknowledge(subject, wire, source, seen)
            else:
                heard.append(seen)
    return heard


def _fence(subject: "Subject", wire: Wire, source: int) -> list[Seen]:
    """What comes before the answer to a fence. A hub that leaves hub_fence unanswered is not asked so again."""
    of_extension = wire.extended and subject.answers_fences
    payload = subject.codec.encode(HubFence()) if of_extension else subject.fence_payload(subject.fence)
    number = subject.fence_id()
    if payload:
        wire.write(write_frame(wire.version, Frame(b"", msg_id=number, source=source), payload))
    timeouts = subject.profile.timeouts
    patience = Patience(timeouts.answer if payload else timeouts.silence)
    before: list[Seen] = []
    while True:
        got = wire.read(patience)
        if got is None or isinstance(got, Closed):
            subject.answers_fences &= not (of_extension and got is None)
            return before
        if got.frame.msg_id == number or (subject.fence_answer and got.payload == subject.fence_answer):
            return before
        before.append(got)


def is_late(wire: Wire, seen: Seen, names: Container[str]) -> bool:
    """Whether a request is a late consequence of an earlier case: it is about a device of that case.

    A fence names nobody, and is as late as the last revoke before it: what is owed longest comes first.
    """
    body = seen.frame.body
    if isinstance(body, HubFence):
        late, wire.behind_late = wire.behind_late, False
        return late
    name = getattr(body, "device_id", "")
    late = not isinstance(body, Answer | bytes) and bool(name) and name not in names
    if isinstance(body, Revoke):
        wire.behind_late = late
    return late


def acknowledge(subject: "Subject", wire: Wire, source: int, seen: Seen) -> bool:
    """Answer an order, report or fence; whether it was one."""
    body = seen.frame.body
    if not isinstance(body, TO_ACKNOWLEDGE):
        return False
    answer = Answer(body.action, Reason.OK, getattr(body, "device_id", ""), getattr(body, "node_id", 0))
    # Whoever was just admitted may not know its own node yet; the hub, which asks it, does.
    frame = Frame(b"", Major.OK_RESP, seen.frame.msg_id, seen.frame.target or source, subject.node_id)
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
