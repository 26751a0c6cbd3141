"""The one door: everything that changes a hub's state goes through ``step``.

Theory of operation. A hub keeps three concerns apart. *Verification* asks who knows a credential and only
reads (authenticate.py). *Presence* says where a device is; the last announcement wins (presence.py,
offline.py). *Revocation* says which whitelist entries die (revoke.py). Registration (register.py) creates
what the three work on and admission.py lets in; perms.py answers who may do what; routing.py moves the frames of other
sub-protocols; links.py joins the parent and takes links, timers and configuration as they come.

A step is given a policy, a state and one input, and returns the policy in force, the next state, the outputs in order,
and the ids of the rules that decided. It reads no clock, draws no random number and raises nothing for whatever a
peer may send.
"""

from collections.abc import Callable
from typing import Any

from hubauth.core import (
    admission,
    authenticate,
    authority,
    links,
    offline,
    owed,
    perms,
    plain,
    presence,
    register,
    revoke,
    routing,
)
from hubauth.core.inputs import (
    PARENT,
    Input,
    Link,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    Received,
    TimerFired,
)
from hubauth.core.messages import (
    ENTRANCE,
    SUB_PROTO,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import Pending, Purpose, Session, State, asked_for, is_extended, is_plain
from hubauth.core.policy import Policy, Trust
from hubauth.core.talk import handler_of, refuse, refuse_malformed, settle
from hubauth.core.transition import Step, Transition

_DEVICES_ONLY = (*ENTRANCE, Action.OFFLINE)
_ASSISTS = (
    Action.ASSIST_REGISTER,
    Action.ASSIST_AUTHENTICATE,
    Action.ASSIST_QUERY_CREDENTIAL,
    Action.ASSIST_OFFLINE,
)
_OF_PLAIN_HUBS = (*_ASSISTS, Action.REVOKE, Action.OFFLINE, Action.GET_PERMS)
"""By which a hub that never authenticates shows that it is there."""
_EXTENSION = (Action.HUB_ONLINE, Action.HUB_DISMISS, Action.HUB_FENCE)


def step(policy: Policy, state: State, happened: Input) -> Step:
    """What a hub with this policy, in this state, does when this happens."""
    t = Transition(policy, state)
    match happened:
        case Received():
            _on_frame(t, happened)
        case LinkUp():
            links.on_link_up(t, happened)
        case LinkDown(link):
            links.on_link_down(t, link)
        case TimerFired():
            links.on_timer(t, happened)
        case OperatorRevoke():
            revoke.on_operator_revoke(t, happened)
        case OperatorInvalidate(message):
            t.cite("PERM-11")
            perms.invalidate(t, message, None)
        case PolicyChanged():
            links.on_policy_changed(t, happened)
    if t.unanswered:
        admission.go_on_unanswered(t)
    return t.finish()


def _on_frame(t: Transition, received: Received) -> None:
    frame = received.frame
    body = frame.body
    if received.link not in t.links:
        t.note("FRAME-20", "a frame on a link that is not up", received.link)
    elif frame.sub_proto != SUB_PROTO or isinstance(body, bytes):
        routing.on_opaque(t, received)
    elif isinstance(body, Answer):
        _on_answer(t, received, body)
    elif _may_ask(t, received, body):
        if isinstance(body, Malformed):
            refuse_malformed(t, received, body)
        else:
            _HANDLERS[type(body)](t, received, body)


def _may_ask(t: Transition, received: Received, body: Request | Malformed) -> bool:
    """Whether this link may make this request at all; if not, it has been refused here."""
    action, link, source = body.action, received.link, received.frame.source
    if action is None or (isinstance(body, Malformed) and body.is_answer):
        return True  # dropped as unreadable, whoever sent it
    if link == PARENT:
        if action in _DEVICES_ONLY:
            refuse(t, received, Reason.FORBIDDEN, "FRAME-19")
            return False
        if action in _EXTENSION and not _may_extend(t, link):
            return False
        return source != 0 or _means_the_hub(t, link, action)
    if action in ENTRANCE:
        t.cite("FRAME-10")
        return True
    if action in _EXTENSION and not _may_extend(t, link):
        return False
    if t.links[link] is None and not isinstance(body, Malformed):
        _trust(t, received, action)
    session = t.links[link]
    if session is None:
        if action is Action.OFFLINE:
            refuse(t, received, Reason.NOT_INDEXED, "OFF-10")
        else:
            refuse(t, received, Reason.FORBIDDEN, "FRAME-23")
        return False
    exempt = action is Action.REVOKE and session.is_hub and source != 0
    if not exempt and not _may_speak_for(t, link, session, source, action):
        return False
    if action in _ASSISTS and not session.is_hub:
        refuse(t, received, Reason.FORBIDDEN, "TRUST-3")
        return False
    return True


def _may_extend(t: Transition, link: Link) -> bool:
    """Whether the extension is spoken on a link; if not, the request has been dropped here."""
    if is_extended(t, link):
        return True
    t.note("EXT-1", "a message of the extension on a plain link", link)
    return False


def _may_speak_for(t: Transition, link: Link, session: Session, source: int, action: Action | None) -> bool:
    """Whether a frame on a link with this session may claim this source; if not, it has been dropped here."""
    if source == 0 and session.is_hub:
        return _means_the_hub(t, link, action)
    if source == 0:
        t.cite("FRAME-21")
        return True
    if routing.reachable_through(t, link, source):
        return True
    t.note("FRAME-22", f"node {source} is not reachable through this link", link)
    return False


def _means_the_hub(t: Transition, link: Link, action: Action | None) -> bool:
    """Whether a frame without a source is the hub's own, or may be a stranger's and has been dropped here."""
    if action is None or action in _ASSISTS:
        t.cite("FRAME-27")
        return True
    t.note("FRAME-27", f"{action.value} of a hub that names no source", link)
    return False


def _trust(t: Transition, received: Received, action: Action) -> None:
    """Believe an unknown link that it is the hub it says it is: by where it comes from or, in laboratories, anyhow."""
    node_id = received.frame.source
    if action not in _OF_PLAIN_HUBS or node_id in (0, t.node_id):
        return
    if plain.may_be(t, received.link, node_id):
        t.cite("TRUST-9")
    elif action in _ASSISTS and t.policy.trust is Trust.OPEN and not plain.is_live(t, node_id):
        if authority.has_given_out(t, node_id):
            return
        t.cite("TRUST-5")
    else:
        return
    known = t.policy.provisioned_by_node.get(node_id) or t.directory.get(node_id)
    device_id = known.device_id if known is not None else f"hub:{node_id}"
    presence.bind(t, received.link, device_id, node_id, is_hub=True)
    owed.welcome(t, node_id)


_Handler = Callable[[Transition, Received, Any], None]

_HANDLERS: dict[type[Request], _Handler] = {
    Register: register.on_register,
    Authenticate: authenticate.on_authenticate,
    AssistRegister: register.on_assist_register,
    AssistAuthenticate: authenticate.on_assist_authenticate,
    AssistQueryCredential: authenticate.on_query_credential,
    Revoke: revoke.on_revoke,
    Offline: offline.on_offline,
    AssistOffline: offline.on_assist_offline,
    HubOnline: presence.on_announcement,
    HubDismiss: offline.on_dismiss,
    HubFence: revoke.on_fence,
    GetPerms: perms.on_get_perms,
    ListRoles: perms.on_list_roles,
    PermsInvalidate: perms.on_perms_invalidate,
}


def _on_answer(t: Transition, received: Received, answer: Answer) -> None:
    """Find what was asked and let its flow go on."""
    session, source = t.links[received.link], received.frame.source
    if answer.action is Action.REVOKE:
        if session is None or not session.is_hub or source or _means_the_hub(t, received.link, Action.REVOKE):
            revoke.on_revoke_answer(t, received, answer)
        return
    if session is not None and not _may_speak_for(t, received.link, session, source, answer.action):
        return
    t.cite("FRAME-16")
    msg_id = _find_asked(t, received, answer)
    if msg_id is None:
        if answer.action is Action.ASSIST_OFFLINE:
            t.cite("OFF-9")
        else:
            t.note("FRAME-16", "an answer to nothing that was asked", received.link)
        return
    pending = t.take_pending(msg_id)
    if msg_id != received.frame.msg_id:
        pending = plain.doubted(t, pending)
    _settle_with(t, received, pending, answer)


def _find_asked(t: Transition, received: Received, answer: Answer) -> int | None:
    """The MsgID of the request that an answer settles; None: nothing that was asked."""
    msg_id, link = received.frame.msg_id, received.link
    pending = t.pending.get(msg_id)
    found = pending is not None and pending.asked == link and answer.action in (None, asked_for(pending))
    if not is_plain(t, link):
        return msg_id if found else None
    return msg_id if found and plain.agrees(t, msg_id, answer) else plain.find_asked(t, link, answer)


def _settle_with(t: Transition, received: Received, pending: Pending, answer: Answer) -> None:
    match pending.purpose:
        case Purpose.REGISTER:
            register.on_register_answer(t, pending, answer, handler_of(t, received))
        case Purpose.AUTHENTICATE | Purpose.QUERY:
            authenticate.on_search_answer(t, pending, answer, handler_of(t, received))
        case Purpose.RELAY:
            authenticate.on_relayed_answer(t, pending, answer, handler_of(t, received))
        case Purpose.PERMS:
            perms.on_perms_answer(t, pending, answer)
        case Purpose.HELD:
            _resume(t, pending, answer)
        case Purpose.ADMIT:
            admission.on_perms_answer(t, pending, answer)
        case Purpose.SELF_REGISTER | Purpose.SELF_AUTHENTICATE:
            links.on_join_answer(t, received.frame, pending, answer)
        case Purpose.CONFIRM:
            register.on_confirmation(t, pending, answer)
        case Purpose.FENCE:
            owed.on_fence_answer(t, pending, answer)
        case Purpose.DISMISS | Purpose.REVOKE | Purpose.UNHEARD:
            pass


def _resume(t: Transition, pending: Pending, answer: Answer) -> None:
    """A held request goes on, now that its originator's permissions are known."""
    assert pending.held is not None and pending.asker is not None
    session = t.links.get(pending.asker)
    usable = answer.reason is Reason.OK and perms.learn(t, pending, answer.grant)
    if session is None or session.node_id != pending.node_id or not usable:
        t.cite("TRUST-7")
        settle(t, pending, Reason.FORBIDDEN)
        return
    held = Received(pending.asker, pending.held)
    body = pending.held.body
    if isinstance(body, Revoke):
        revoke.finish_revoke(t, held, body, answer.grant.allows("auth.revoke"))
    elif isinstance(body, PermsInvalidate):
        perms.finish_invalidate(t, held, body, answer.grant.allows("auth.perms_invalidate"))
