"""register and assist_register: one device, one node id, for ever.

Only the authority allocates. Every other hub passes the request towards it and keeps nothing but the
question. The credential is issued with the answer and stored by the direct hub alone.
"""

from attrs import evolve

from hubauth.core import authority, revoke
from hubauth.core.admission import admit, make_way, told_with
from hubauth.core.authenticate import follow_answer, is_usable, let_routes_follow, remember_home
from hubauth.core.credentials import is_well_formed
from hubauth.core.inputs import Received
from hubauth.core.messages import (
    MAX_NODE_ID,
    NO_GRANT,
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Ext,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Pending, Purpose, Registration
from hubauth.core.perms import is_privileged, known_grant
from hubauth.core.policy import Reregister
from hubauth.core.talk import answer_to, ask, refuse, settle, waiting_for
from hubauth.core.transition import Transition

_REGISTER = Purpose.REGISTER


def on_register(t: Transition, received: Received, message: Register) -> None:
    """A device registers at this hub, its direct one."""
    make_way(t, received.link)
    if t.node_id == 0:
        refuse(t, received, Reason.UNREACHABLE, "TRUST-8")
        return
    asker = waiting_for(received, _REGISTER, None, message.device_id, ext=message.ext)
    if not authority.is_here(t):
        entry = _own_binding(t, message.device_id)
        if entry is None:
            _pass_on(t, received, message.device_id, Purpose.REGISTER, message.ext)
        else:
            t.cite("REG-21")
            admit(t, asker, entry)
            let_routes_follow(t, message.device_id)
        return
    issued = _issue(t, received, message.device_id, confirmed=True)
    if isinstance(issued, Reason):
        refuse(t, received, issued)
        return
    t.cite("REG-13")
    admit(t, asker, Entry(issued, _fresh(t, received)))


def _own_binding(t: Transition, device_id: str) -> Entry | None:
    """The entry by which a hub that is not the authority answers a registration itself: where it is the whole proof."""
    if t.policy.has_credentials or t.policy.reregister is Reregister.AFTER_REVOKE or t.policy.is_provisioned(device_id):
        return None
    entry = t.whitelist.get(device_id)
    if entry is None or entry.is_hub:
        return None
    return None if is_privileged(known_grant(t, entry.node_id) or NO_GRANT) else entry


def on_assist_register(t: Transition, received: Received, message: AssistRegister) -> None:
    """Another hub asks on behalf of one of its devices."""
    t.cite("AUTHY-4")
    if not authority.is_here(t):
        _pass_on(t, received, message.device_id, Purpose.RELAY)
        return
    confirmed = t.policy.reregister is not Reregister.AFTER_REVOKE or not t.policy.has_credentials
    issued = _issue(t, received, message.device_id, confirmed=confirmed)
    if isinstance(issued, Reason):
        refuse(t, received, issued)
        return
    t.cite("REG-7")
    follow_answer(t, received.link, issued, message.device_id)
    remember_home(t, received.link, message.device_id)
    answer_to(t, received, Reason.OK, node_id=issued, credential=_fresh(t, received), grant=t.policy.resolve(issued))
    if not confirmed:
        # Behind the answer on the same links: whoever stored the credential has done so when it is asked for.
        t.cite("REG-16")
        about = waiting_for(received, Purpose.CONFIRM, received.link, message.device_id, issued)
        question = evolve(about, action=Action.ASSIST_AUTHENTICATE, asker=None)
        ask(t, AssistAuthenticate(message.device_id, received.fresh), question)


def on_confirmation(t: Transition, pending: Pending, answer: Answer) -> None:
    """The hub that was told of a registration says whether it has the credential."""
    if answer.reason is Reason.OK and answer.device_id == pending.device_id:
        t.cite("REG-17")
        t.put_registration(pending.device_id, evolve(t.registry[pending.device_id], confirmed=True))


def on_register_answer(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    """The authority has answered for a device of this hub."""
    complete = is_usable(t, pending, answer) and bool(answer.credential) == t.policy.has_credentials
    if answer.reason is not Reason.OK or not complete:
        t.cite("REG-14")
        settle(t, pending, Reason.UNREACHABLE if answer.reason is Reason.OK else answer.reason, source=source)
        return
    t.cite("REG-6")
    admit(t, pending, Entry(answer.node_id, answer.credential), told_with(t, pending, answer), source)


def _pass_on(t: Transition, received: Received, device_id: str, purpose: Purpose, ext: Ext | None = None) -> None:
    if t.policy.is_provisioned(device_id):
        refuse(t, received, Reason.PROTECTED, "REG-12")
        return
    way = authority.next_hop(t, received.link)
    if way is None:
        refuse(t, received, Reason.UNREACHABLE)
        return
    t.cite("REG-5" if purpose is Purpose.REGISTER else "REG-8")
    about = waiting_for(received, purpose, way, device_id=device_id, epoch=t.invalidations, ext=ext)
    ask(t, AssistRegister(device_id), about)


def _issue(t: Transition, received: Received, device_id: str, *, confirmed: bool) -> int | Reason:
    """Allocate or look up the node of a device that may have a new credential."""
    if t.policy.has_credentials:
        t.cite("REG-4")
        if not is_well_formed(received.fresh):
            return Reason.INTERNAL
    if t.policy.is_provisioned(device_id):
        t.cite("REG-12")
        return Reason.PROTECTED
    registration = t.registry.get(device_id)
    if registration is None:
        return _allocate(t, device_id, confirmed)
    return _renew(t, received, device_id, registration, confirmed)


def _allocate(t: Transition, device_id: str, confirmed: bool) -> int | Reason:
    t.cite("REG-2")
    node_id = max(t.next_node_id, t.policy.first_node_id)
    while node_id in t.policy.kept_nodes or node_id in t.link_of_node or authority.has_given_out(t, node_id):
        node_id += 1
    if node_id > MAX_NODE_ID:
        t.cite("REG-3")
        return Reason.EXHAUSTED
    t.cite("REG-1")
    t.next_node_id = node_id + 1
    t.forget_hearsay(device_id, node_id)
    t.put_registration(device_id, Registration(node_id, confirmed=confirmed))
    t.enroll(node_id, t.policy.role_of(node_id))
    if node_id in t.policy.named_nodes:
        t.cite("REG-20")
        t.named_and_registered |= {node_id}
    return node_id


def _renew(
    t: Transition, received: Received, device_id: str, registration: Registration, confirmed: bool
) -> int | Reason:
    node_id = registration.node_id
    if is_privileged(t.policy.resolve(node_id)):
        t.cite("REG-12")
        return Reason.PROTECTED
    if t.policy.reregister is Reregister.AFTER_REVOKE and registration.confirmed and not registration.revoked:
        t.cite("REG-11")
        return Reason.PROTECTED
    t.cite("REG-9")
    if t.policy.revoke_on_reregister and t.policy.has_presence:
        # First the revoke, then the answer: on the asking path FIFO deletes the old before the new is stored.
        t.cite("REG-10", "REV-19")
        revoke.broadcast(t, Revoke(device_id, node_id), t.node_id, registering=received.link)
    t.put_registration(device_id, Registration(node_id, confirmed=confirmed))
    return node_id


def _fresh(t: Transition, received: Received) -> str:
    return received.fresh if t.policy.has_credentials else ""
