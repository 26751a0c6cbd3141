"""revoke: which whitelist entries die, and how every hub is sure to hear of it.

A revoke that finds nothing is silent, so silence proves nothing. Every broadcast revoke is therefore owed to each
neighbouring hub until that has acknowledged it (owed.py), where both speak the extension. Numbers per neighbour keep a
repeated revoke from killing a credential that was issued after it.
"""

from attrs import evolve

from hubauth.core import once, owed, presence, unheard
from hubauth.core.credentials import same_credential
from hubauth.core.inputs import PARENT, Link, OperatorRevoke, Received
from hubauth.core.messages import Action, Answer, Frame, HubFence, Major, Reason, Revoke
from hubauth.core.model import PARENT_NEIGHBOUR, Entry, Neighbour, Pending, Purpose, is_extended, is_plain
from hubauth.core.outputs import NoteKind, Send, Tell
from hubauth.core.perms import check_permission
from hubauth.core.routing import lower_hop_limit
from hubauth.core.talk import answer_to, is_busy, peer_node, refuse, reply, settle, waiting_for
from hubauth.core.transition import Transition

# Where a revoke comes from


def on_revoke(t: Transition, received: Received, message: Revoke) -> None:
    """A revoke arrived: from a device, which must be allowed to, or from a hub, which has checked that."""
    session = t.links[received.link]
    if received.link != PARENT and session is not None and not session.is_hub:
        allowed = check_permission(t, received, "auth.revoke")
        if allowed is not None:
            finish_revoke(t, received, message, allowed)
        return
    t.cite("TRUST-6")
    if message.seq and received.frame.target == 0 and is_extended(t, received.link):
        t.cite("EXT-10")
        key = PARENT_NEIGHBOUR if received.link == PARENT else peer_node(t, received.link)
        neighbour = t.neighbours.get(key, Neighbour())
        if message.seq <= neighbour.handled:
            t.note("EXT-10", f"revoke {message.seq} was handled before", received.link)
            return
        t.put_neighbour(key, evolve(neighbour, handled=message.seq))
    frame = received.frame
    if is_plain(t, received.link) and frame.target in (0, t.node_id):
        # Whom a plain hub addresses is the next hub: the documents know no revoke but the broadcast.
        t.cite("REV-24")
        frame = evolve(frame, target=0)
        if once.is_echo(t, received.link, message):
            t.note("REV-24", f"the echo of a revoke of {message.device_id}", received.link)
            return
    _dispatch(t, message, frame, frame.source, received.link)


def on_fence(t: Transition, received: Received, _: HubFence) -> None:
    """A neighbouring hub asks whether what it sent before has been handled: it has, for frames are handled in order."""
    t.cite("EXT-11")
    answer_to(t, received, Reason.OK)


def finish_revoke(t: Transition, received: Received, message: Revoke, allowed: bool) -> None:
    """The originator is a device of this hub, and its permission is known."""
    t.cite("REV-1")
    session = t.links[received.link]
    if not allowed or session is None:
        refuse(t, received, Reason.FORBIDDEN)
        return
    if is_busy(t, received.link):
        refuse(t, received, Reason.BUSY, "TIME-4")
        return
    if received.frame.target not in (0, t.node_id) and _onward(t, received.frame, received.link) is None:
        refuse(t, received, Reason.UNREACHABLE, "REV-20")
        return
    t.cite("REV-18")
    about = waiting_for(received, Purpose.REVOKE, None, device_id=message.device_id, node_id=session.node_id)
    t.put_pending(t.take_msg_id(), about)
    _dispatch(t, message, received.frame, session.node_id, received.link)


def on_operator_revoke(t: Transition, command: OperatorRevoke) -> None:
    """The operator of this hub revokes."""
    t.cite("REV-19")
    if not t.policy.has_presence:
        t.note("REV-19", "this dialect has no revoke", kind=NoteKind.COMMAND_REFUSED)
        return
    _dispatch(t, command.revoke, Frame(command.revoke, target=command.target), t.node_id, None)


def broadcast(t: Transition, message: Revoke, originator: int, *, registering: Link) -> None:
    """The authority's own revoke, everywhere, on behalf of a registration on ``registering``."""
    _dispatch(t, message, Frame(message), originator, None, registering)


def _dispatch(
    t: Transition,
    message: Revoke,
    frame: Frame,
    originator: int,
    came_from: Link | None,
    registering: Link | None = None,
) -> None:
    if message.seq:
        message = evolve(message, seq=0)  # every link numbers by itself
    if frame.target == 0:
        t.cite("REV-2")
        sender = _sender(t, came_from)
        _handle(t, message, frame, originator, registering)
        _pass_on(t, message, frame, originator, sender)
    elif frame.target == t.node_id:
        t.cite("REV-4")
        _handle(t, message, frame, originator, registering)
    else:
        _route_revoke(t, evolve(frame, body=message), originator, came_from)


# What it does here


def agrees(message: Revoke, node_id: int, credential: str) -> bool:
    """Whether an entry is the one a revoke means, as far as the revoke says."""
    if message.node_id and message.node_id != node_id:
        return False
    return not message.credential or same_credential(credential, message.credential)


def _handle(t: Transition, message: Revoke, frame: Frame, originator: int, registering: Link | None) -> None:
    _cancel_authentications(t, message)
    entry = t.whitelist.get(message.device_id)
    deleted = entry is not None and agrees(message, entry.node_id, entry.credential)
    registration = t.registry.get(message.device_id)
    if registration is not None:
        t.cite("REV-12")
        means_it = message.node_id in (0, registration.node_id) and not message.credential
        if (means_it or deleted) and not registration.revoked:
            t.put_registration(message.device_id, evolve(registration, revoked=True))
    if entry is None:
        if frame.target == 0:
            t.cite("REV-9")
        else:
            t.cite("REV-10")
            _answer(t, message, frame, originator, Reason.NOT_WHITELISTED)
    elif deleted:
        # The answer first: a device that revokes itself is still here to hear it.
        t.cite("REV-5")
        _answer(t, message, frame, originator, Reason.OK, entry.node_id)
        _delete(t, message, entry, registering)
    else:
        t.cite("REV-8")
        if t.policy.answer_mismatch:
            _answer(t, message, frame, originator, Reason.CREDENTIAL_MISMATCH)


def _delete(t: Transition, message: Revoke, entry: Entry, registering: Link | None) -> None:
    t.delete_entry(message.device_id)
    if message.device_id in t.policy.provisioned_by_device:
        t.cite("TRUST-4")
        t.put_beaten(message.device_id, entry.credential)
    found = t.session_of_node(entry.node_id)
    if found is None:
        return
    t.cite("REV-6")
    link, session = found
    closes = presence.goes_with_session(t, session, t.policy.close_on_revoke)
    if closes and link != registering and not _registers(t, link):
        t.cite("REV-7")
        presence.close_link(t, link)
    else:
        presence.end_session(t, link)


def _registers(t: Transition, link: Link) -> bool:
    """Whether a registration waits on this link: its answer must still find it."""
    return any(t.pending[msg_id].action is Action.REGISTER for msg_id in t.waiting.get(link, ()))


def _cancel_authentications(t: Transition, message: Revoke) -> None:
    """An answer that was sent just before the revoke must not let the device back in."""
    for msg_id in t.asking.get(message.device_id, ()):
        if _is_ended(t, t.pending[msg_id], message):
            pending = unheard.forget(t, msg_id)
            t.cite("REG-17" if pending.asker is None else "REV-11")
            settle(t, pending, Reason.NOT_ADMITTED)


def _is_ended(t: Transition, pending: Pending, message: Revoke) -> bool:
    """Whether a revoke means what a device or, having no memory of revokes itself, a plain hub waits for."""
    if pending.purpose is Purpose.ADMIT:
        return agrees(message, pending.node_id, pending.credential)
    if pending.purpose is not Purpose.RELAY:
        return not message.credential or same_credential(pending.credential, message.credential)
    if pending.asker is None or not is_plain(t, pending.asker):
        return False
    named = message.credential and pending.credential
    return not named or same_credential(pending.credential, message.credential)


# How it travels


def _pass_on(t: Transition, message: Revoke, frame: Frame, originator: int, sender: int | None) -> None:
    """To every neighbouring hub but the sender: now where the link is up, later where it is not."""
    keys = set(t.neighbours) | ({PARENT_NEIGHBOUR} if t.policy.has_parent else set())
    for key in sorted(keys - {sender}):
        owed.owe(t, key, message, originator, frame.trace_id)


def _sender(t: Transition, came_from: Link | None) -> int | None:
    """The neighbour that a revoke came from, also if it is taken for a device at the moment.

    As a hub again it must not be told what it has said itself.
    """
    session = t.links[came_from] if came_from is not None else None
    if session is not None:
        return session.node_id
    return PARENT_NEIGHBOUR if came_from == PARENT else None


def _route(t: Transition, target: int, came_from: Link | None) -> Link | None:
    """The next hop towards a node, never back; None: there is no way."""
    route = t.directory.get(target)
    up = PARENT if t.parent_present else None
    if target in t.learnt and (route is None or not route.online):
        t.cite("FRAME-26")
        up = t.learnt[target].link
    link = t.link_of_node.get(route.via) if route is not None and route.online else up
    return link if link != came_from else None


def _onward(t: Transition, frame: Frame, came_from: Link | None) -> tuple[Link, int] | None:
    """Next hop and hop limit of an addressed revoke; None: it cannot be sent on.

    A next hop that is a device counts as none: it must never see a revoke.
    """
    link, hops = _route(t, frame.target, came_from), lower_hop_limit(frame)
    if link is None or hops is None or owed.neighbour_at(t, link) is None:
        return None
    return link, hops


def _route_revoke(t: Transition, frame: Frame, originator: int, came_from: Link | None) -> None:
    t.cite("REV-3")
    way = _onward(t, frame, came_from)
    if way is None:
        kind = NoteKind.COMMAND_REFUSED if came_from is None else NoteKind.DROPPED
        t.note("REV-20", f"no way to hub {frame.target} for a revoke", came_from, kind)
        return
    link, hops = way
    onward = evolve(frame, major=Major.CMD, msg_id=t.take_msg_id(), source=originator, hop_limit=hops)
    t.emit(Send(link, onward))


# Answers


def _answer(t: Transition, message: Revoke, frame: Frame, originator: int, reason: Reason, node_id: int = 0) -> None:
    answer = Answer(Action.REVOKE, reason, message.device_id, node_id or message.node_id)
    if originator == t.node_id:
        _tell_operator(t, t.node_id, answer)
        return
    t.cite("FRAME-12", "FRAME-13")
    major = Major.OK_RESP if reason is Reason.OK else Major.ERR_RESP
    reply_frame = Frame(answer, major, frame.msg_id, t.node_id, originator, trace_id=frame.trace_id)
    _deliver(t, reply_frame, answer, None)


def on_revoke_answer(t: Transition, received: Received, answer: Answer) -> None:
    """An answer to somebody's revoke passes through, or arrives."""
    session = t.links[received.link]
    if received.link != PARENT and (session is None or not session.is_hub):
        t.note("FRAME-16", "a device answers no revoke", received.link)
        return
    frame = received.frame
    if is_plain(t, received.link):
        # It answers whoever handed it the revoke, and that is this hub.
        frame = evolve(frame, target=once.confirm(t, received.link, answer) or frame.target)
    if frame.target == t.node_id:
        _tell_operator(t, frame.source or peer_node(t, received.link), answer)
    else:
        _deliver(t, frame, answer, received.link)


def _tell_operator(t: Transition, hub: int, answer: Answer) -> None:
    t.cite("REV-17")
    t.emit(Tell(hub, answer.device_id, answer.node_id, answer.reason))


def _deliver(t: Transition, frame: Frame, answer: Answer, came_from: Link | None) -> None:
    """Give an answer to the originator if its session is here, else send it on towards it."""
    here = t.session_of_node(frame.target)
    if here is None or here[1].is_hub:
        t.cite("REV-17")
        link = _route(t, frame.target, came_from)
        hops = lower_hop_limit(frame) if came_from is not None else frame.hop_limit
        if link is None or hops is None:
            t.note("REV-17", f"no way to node {frame.target} for the answer to a revoke", came_from)
        else:
            t.emit(Send(link, evolve(frame, hop_limit=hops)))
        return
    t.cite("REV-18")
    remembered = [t.pending[msg_id] for msg_id in t.asking.get((frame.target, answer.device_id), ())]
    mine = [pending for pending in remembered if pending.asker == here[0]]
    if mine:
        reply(t, here[0], mine[-1].msg_id, mine[-1].trace_id, answer)
    else:
        t.note("REV-18", f"nobody waits for the answer to a revoke of {answer.device_id}", came_from)
