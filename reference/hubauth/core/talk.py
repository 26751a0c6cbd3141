"""How a hub answers and asks: the header fields of what it sends, and who is waiting for what."""

from hubauth.core import owed
from hubauth.core.inputs import PARENT, Link, Received
from hubauth.core.messages import (
    NO_GRANT,
    SUB_PROTO,
    Action,
    Answer,
    Ext,
    Frame,
    Grant,
    Major,
    Malformed,
    Reason,
    Request,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.outputs import Send
from hubauth.core.policy import Dialect
from hubauth.core.transition import Transition

_DEVICE_FACING = (Action.REGISTER, Action.AUTHENTICATE)
"""Answers that are for a device even when a hub authenticates with them."""


_ABOUT_CREDENTIALS = (Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE, Action.ASSIST_QUERY_CREDENTIAL)
"""What makes a hub issue, verify or store a credential: what waits for it about that device goes first."""

_OK, _OK_RESP, _ERR_RESP = Reason.OK, Major.OK_RESP, Major.ERR_RESP


def peer_node(t: Transition, link: Link) -> int:
    """The node id of the hub at the other end; 0 for a device or an unknown hub."""
    if link == PARENT:
        return t.parent_node
    session = t.links.get(link)
    return session.node_id if session is not None and session.is_hub else 0


def reply(t: Transition, link: Link, msg_id: int, trace_id: int, answer: Answer, source: int = 0) -> None:
    """Answer a request that came in on ``link``; ``source`` is the hub that handled it, if that is not this one."""
    if t.owed and answer.reason is _OK and answer.action in _ABOUT_CREDENTIALS:
        owed.send_first(t, link, answer.device_id)
    t.cite("FRAME-12", "FRAME-13", "FRAME-14")
    major = _OK_RESP if answer.reason is _OK else _ERR_RESP
    target = 0 if answer.action in _DEVICE_FACING else peer_node(t, link)
    t.emit(Send(link, Frame(answer, major, msg_id, source or t.node_id, target, SUB_PROTO, trace_id)))


def answer_to(
    t: Transition,
    received: Received,
    reason: Reason,
    *,
    node_id: int = 0,
    credential: str = "",
    grant: Grant = NO_GRANT,
) -> None:
    """Answer the request just received, naming what it was about."""
    body = received.frame.body
    assert not isinstance(body, bytes | Answer)
    device_id = getattr(body, "device_id", "")
    node_id = node_id or getattr(body, "node_id", 0)
    answer = Answer(body.action, reason, device_id, node_id, credential, grant)
    reply(t, received.link, received.frame.msg_id, received.frame.trace_id, answer)


def refuse(t: Transition, received: Received, reason: Reason, *rules: str) -> None:
    """Refuse the request just received, for the reason these rules give."""
    t.cite(*rules)
    answer_to(t, received, reason)


def refuse_malformed(t: Transition, received: Received, body: Malformed) -> None:
    """Answer 400 where the action is known; drop the rest, and what is never answered."""
    if body.action is None or body.is_answer or body.action is Action.HUB_ONLINE:
        t.note("FRAME-18", f"unreadable payload: {body.detail}", received.link)
    else:
        refuse(t, received, Reason.INVALID_REQUEST, "FRAME-17")


def send_request(t: Transition, link: Link, body: Request, trace_id: int = 0) -> int:
    """Send a hub-to-hub request; its MsgID."""
    t.cite("FRAME-15")
    msg_id = t.take_msg_id()
    t.emit(Send(link, Frame(body, Major.CMD, msg_id, t.node_id, peer_node(t, link), trace_id=trace_id)))
    return msg_id


def ask(t: Transition, body: Request, pending: Pending) -> None:
    """Ask ``pending.asked`` and remember for whom; if too much is waiting for that asker already, refuse."""
    assert pending.asked is not None
    if pending.asker is not None and len(t.waiting.get(pending.asker, ())) >= t.policy.pending_limit:
        t.cite("TIME-3")
        settle(t, pending, Reason.BUSY)
        return
    if t.owed and body.action in _ABOUT_CREDENTIALS:
        owed.send_first(t, pending.asked, pending.device_id)
    msg_id = send_request(t, pending.asked, body, pending.trace_id)
    t.put_pending(msg_id, pending)


def waiting_for(
    received: Received,
    purpose: Purpose,
    asked: Link | None,
    device_id: str = "",
    node_id: int = 0,
    *,
    credential: str = "",
    held: Frame | None = None,
    epoch: int = 0,
    ext: Ext | None = None,
) -> Pending:
    """A pending request on behalf of whoever sent ``received``."""
    frame = received.frame
    action = frame.body.action  # type: ignore[union-attr]
    assert action is not None
    whom = received.link, frame.msg_id, frame.trace_id
    return Pending(
        purpose, action, asked, *whom, device_id, node_id, credential, held, 0, epoch, False, False, False, ext
    )


def settle(
    t: Transition,
    pending: Pending,
    reason: Reason,
    node_id: int = 0,
    credential: str = "",
    grant: Grant = NO_GRANT,
    source: int = 0,
    ext: Ext | None = None,
) -> None:
    """Answer whoever waits for a pending request; ``source`` is who handled it, where the dialect says so."""
    if pending.asker is None or pending.asker not in t.links:
        return
    about = pending if pending.held is None else pending.held.body
    device_id, subject = getattr(about, "device_id", ""), getattr(about, "node_id", 0)
    answer = Answer(pending.action, reason, device_id, node_id or subject, credential, grant, 0, (), ext)
    session = t.links[pending.asker]
    if source and session is not None and session.is_hub and pending.action in _DEVICE_FACING:
        source = 0  # the answer to a hub's own admission is where it learns who its parent is
    if source:
        t.cite("FRAME-24")
    reply(t, pending.asker, pending.msg_id, pending.trace_id, answer, source)


def handler_of(t: Transition, received: Received) -> int:
    """Who handled the request that this answer from another hub is about; 0: that is not passed on."""
    keeps = t.policy.dialect is Dialect.FLAT and received.link == PARENT
    return received.frame.source if keeps else 0


def give_up(t: Transition, pending: Pending) -> None:
    """Nobody will answer a pending request: tell whoever waits for it."""
    if pending.purpose is Purpose.HELD:
        t.cite("TRUST-7")
        settle(t, pending, Reason.FORBIDDEN)
    else:
        settle(t, pending, Reason.UNREACHABLE)
