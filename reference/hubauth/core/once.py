"""Revokes to hubs that speak the documents alone: each is sent once, and remembered for a while.

A plain hub cannot tell a repetition from a new revoke and need not answer: what is sent again can kill what was issued
since. It may send a revoke back to where it came from, and it may confirm one by answering it.
"""

from hubauth.core import unheard
from hubauth.core.extension import speaks
from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Action, Answer, Frame, Major, Revoke
from hubauth.core.model import PARENT_NEIGHBOUR, Neighbour, Pending, Purpose
from hubauth.core.ordered import EMPTY
from hubauth.core.outputs import NoteKind, Send, Unconfirmed
from hubauth.core.transition import Transition


def was_plain(t: Transition, key: int) -> bool:
    """Whether a neighbour that is away was plain when it was last here, as far as this hub can tell."""
    return not speaks(t) or t.neighbours.get(key, Neighbour()).plain


def send(t: Transition, link: Link, message: Revoke, originator: int, trace_id: int = 0) -> None:
    """Send a revoke to a plain neighbour, and remember it for as long as it may come back."""
    t.cite("REV-23", "TIME-1")
    unheard.end(t, link, message)
    msg_id = t.take_msg_id()
    t.emit(Send(link, Frame(message, Major.CMD, msg_id, originator, 0, trace_id=trace_id)))
    sent = t.asked.get((link, Action.REVOKE), EMPTY)
    if len(sent) >= t.policy.pending_limit:
        run_out(t, t.take_pending(next(iter(sent))))
    about = message.device_id, message.node_id, message.credential
    t.put_pending(
        msg_id,
        Pending(
            Purpose.SENT,
            Action.REVOKE,
            link,
            device_id=about[0],
            node_id=about[1],
            credential=about[2],
            originator=originator,
        ),
    )


def is_echo(t: Transition, link: Link, message: Revoke) -> bool:
    """Whether a plain neighbour only says again what it was sent a moment ago.

    What this step itself has sent, because the revoke was the neighbour's first word, it cannot have heard.
    """
    said = message.device_id, message.node_id, message.credential
    heard = [sent for msg_id, sent in _sent_about(t, link, said[0]) if msg_id in t.before.pending]
    return any(said == (sent.device_id, sent.node_id, sent.credential) for sent in heard)


def confirm(t: Transition, link: Link, answer: Answer) -> int:
    """A plain neighbour answers a revoke; on whose behalf it was sent the last one about that device, 0: nobody's."""
    originator = 0
    for msg_id, sent in _sent_about(t, link, answer.device_id):
        t.cite("REV-25")
        originator = sent.originator
        if not sent.number:
            t.flag_pending(msg_id)
    return originator


def _sent_about(t: Transition, link: Link, device_id: str) -> list[tuple[int, Pending]]:
    found = [(msg_id, t.pending[msg_id]) for msg_id in t.asked.get((link, device_id), ())]
    return [(msg_id, pending) for msg_id, pending in found if pending.purpose is Purpose.SENT]


def run_out(t: Transition, sent: Pending) -> None:
    """A revoke that was sent to a plain neighbour is remembered no longer."""
    assert sent.asked is not None
    session = t.links.get(sent.asked)
    hub = t.parent_node if sent.asked == PARENT else session.node_id if session is not None else 0
    t.cite("REV-25")
    if not sent.number:
        _tell(t, hub, Revoke(sent.device_id, sent.node_id), sent.originator, sent=True)


def give_up(t: Transition, key: int, message: Revoke, originator: int, *, sent: bool) -> None:
    """What a plain neighbour cannot be told without danger is not told, and the operator hears of it."""
    what = "may not have heard" if sent else "will not hear"
    hub = t.parent_node if key == PARENT_NEIGHBOUR else key
    detail = f"hub {hub}, which is plain, {what} of a revoke that names no credential"
    t.note("REV-23", detail, kind=NoteKind.UNCONFIRMED)
    _tell(t, hub, message, originator, sent=sent)


def _tell(t: Transition, hub: int, message: Revoke, originator: int, *, sent: bool) -> None:
    if originator == t.node_id:
        t.emit(Unconfirmed(hub, message.device_id, message.node_id, sent))
