"""Links that come and go, this hub's own place at its parent, timers, and a changed configuration."""

from attrs import evolve

from hubauth.core import authority, extension, once, owed, perms, plain, presence, unheard
from hubauth.core.inputs import PARENT, Link, LinkUp, PolicyChanged, TimerFired
from hubauth.core.messages import CODES, Answer, Authenticate, Frame, Major, PermsInvalidate, Reason, Register
from hubauth.core.model import PARENT_NEIGHBOUR, Entry, Pending, Plain, Purpose, Registration, entry_of, is_authority
from hubauth.core.outputs import NoteKind, Send
from hubauth.core.policy import Policy, Provisioned
from hubauth.core.talk import give_up
from hubauth.core.transition import Transition


def on_link_up(t: Transition, happened: LinkUp) -> None:
    link = happened.link
    if link in t.links:
        t.note("FRAME-20", "this link is up already", link)
        return
    t.open_link(link)
    if happened.hubs and link != PARENT:
        t.put_plain(link, Plain(happened.hubs, happened.peer))
    if link == PARENT:
        _join(t)
    else:
        t.cite("LINK-1")


def on_link_down(t: Transition, link: Link) -> None:
    if link not in t.links:
        t.note("FRAME-20", "this link is not up", link)
        return
    if link == PARENT:
        t.parent_present = t.parent_extended = False
        presence.stop_announcing(t)
        presence.fail_asked(t, PARENT)
    presence.forget_asker(t, link)
    if t.links[link] is not None:
        t.cite("OFF-4")
        presence.end_session(t, link)
    t.forget_link(link)


# This hub and its parent


def _join(t: Transition) -> None:
    """Authenticate to the parent like a device, or register if this hub has nothing to show yet."""
    t.cite("LINK-2", "TIME-1")
    known = t.node_id != 0 and (bool(t.credential) or not t.policy.has_credentials)
    device_id = t.policy.device_id
    msg_id = t.take_msg_id()
    if known:
        body: Authenticate | Register = Authenticate(device_id, t.credential, extension.offer(t))
        purpose = Purpose.SELF_AUTHENTICATE
    else:
        body, purpose = Register(device_id, extension.offer(t)), Purpose.SELF_REGISTER
    t.emit(Send(PARENT, Frame(body, Major.CMD, msg_id, source=0)))
    t.put_pending(msg_id, Pending(purpose, body.action, PARENT, device_id=device_id))


def on_join_answer(t: Transition, frame: Frame, pending: Pending, answer: Answer) -> None:
    """The parent has answered this hub's own registration or authentication."""
    if CODES[answer.reason] in (4002, 4500):
        _try_again(t)
        return
    wrong_node = t.node_id not in (0, answer.node_id) or answer.node_id == 0
    if answer.reason is not Reason.OK or wrong_node:
        why = "answered another node id" if answer.reason is Reason.OK else answer.reason.value
        t.note("LINK-4", f"the parent refuses this hub: {why}", PARENT, NoteKind.REFUSED_BY_PARENT)
        return
    t.cite("LINK-3")
    if pending.purpose is Purpose.SELF_REGISTER:
        t.node_id, t.credential = answer.node_id, answer.credential
        perms.rebuild_roster(t)
    if answer.ext is not None and not answer.ext.hub and extension.speaks(t):
        t.note("EXT-7", "the parent takes this hub for a device", PARENT, NoteKind.REFUSED_BY_PARENT)
        _try_again(t)
        return
    t.parent_node = frame.source
    t.parent_present = True
    if extension.accepts_parent(t, answer.ext) and answer.ext is not None:
        t.parent_extended = True
        extension.meet(t, PARENT_NEIGHBOUR, answer.ext)
    if t.policy.has_perms and not authority.is_here(t):
        t.cite("PERM-7")
        t.clear_perms()
        t.perms_epoch += 1
        t.invalidations += 1
        # Hubs below never lost their parent, but what this hub missed they have missed with it.
        perms.pass_down(t, PermsInvalidate((), "parent is back"), PARENT)
    owed.welcome(t, PARENT_NEIGHBOUR)
    presence.start_announcing(t)


def _try_again(t: Transition) -> None:
    """Close the parent link: whoever keeps it open will try again after a while."""
    t.cite("LINK-5")
    presence.forget_asker(t, PARENT)
    presence.fail_asked(t, PARENT)
    t.forget_link(PARENT)
    t.close(PARENT)


# Timers


def on_timer(t: Transition, fired: TimerFired) -> None:
    if t.announcing is not None and fired.timer == t.announce_timer:
        presence.continue_announcing(t)
        return
    pending = t.pending.get(fired.timer)
    if pending is None:
        return
    unheard.forget(t, fired.timer, fired=True)
    if pending.purpose is Purpose.SENT:
        once.run_out(t, pending)
        return
    if pending.purpose is Purpose.PACE:
        owed.go_on_telling(t, pending)
        return
    if pending.purpose in (Purpose.SELF_REGISTER, Purpose.SELF_AUTHENTICATE):
        _try_again(t)
    elif pending.purpose is Purpose.REVOKE:
        t.cite("REV-18")
    else:
        t.cite("TIME-2")
        give_up(t, pending)


# Configuration


def on_policy_changed(t: Transition, changed: PolicyChanged) -> None:
    """Take over a new configuration whole, or refuse it whole."""
    old, new = t.policy, changed.policy
    conflict = _conflict(t, old, new)
    if conflict:
        t.note("LINK-8", conflict, kind=NoteKind.POLICY_REFUSED)
        return
    t.policy = new
    t.node_id = new.node_id or t.node_id
    t.credential = new.credential or t.credential
    _apply_provisioned(t, old, new)
    perms.rebuild_roster(t)
    if authority.is_here(t):
        nodes = perms.changed_grants(old, new)
        if nodes is not None and new.has_perms:
            t.cite("PERM-16")
            perms.invalidate(t, PermsInvalidate(nodes, "policy changed"), None)
    _reconsider_hubs(t)


def _conflict(t: Transition, old: Policy, new: Policy) -> str:
    """Why a configuration cannot follow the one before; empty if it can."""
    if new.dialect is not old.dialect or new.has_parent != old.has_parent:
        return "dialect and parent cannot change while the hub lives"
    if new.node_id and t.node_id not in (0, new.node_id):
        return f"this hub is node {t.node_id}, not {new.node_id}"
    if t.node_id and is_authority(old, t.node_id) != is_authority(new, t.node_id):
        return "the authority cannot change: nobody else knows which node ids were given out"
    nodes = {device_id: registration.node_id for device_id, registration in t.registry.items()}
    if is_authority(old, t.node_id):
        nodes |= {binding.device_id: binding.node_id for binding in old.provisioned}  # kept as if they had registered
    devices = {node_id: device_id for device_id, node_id in nodes.items()}
    for binding in new.provisioned:
        device_id, node_id = binding.device_id, binding.node_id
        other = devices.get(node_id, device_id)
        if other != device_id:
            return f"node {node_id} is bound to {other}"
        if nodes.get(device_id, node_id) != node_id or presence.contradicts_tables(t, device_id, node_id):
            return f"{device_id} and node {node_id} are not bound to each other"
    for node_id in new.plain_hubs:
        if node_id in devices and node_id not in new.provisioned_by_node:
            return f"node {node_id} is bound to {devices[node_id]}"
    return ""


def _apply_provisioned(t: Transition, old: Policy, new: Policy) -> None:
    t.cite("LINK-9")
    before, after, entries = _proofs(old), _proofs(new), t.whitelist
    for binding in old.verified_here:
        if _proof(binding) not in after:
            _remove(t, binding)
    for binding in new.verified_here:
        beaten = t.beaten.get(binding.device_id)
        if beaten is not None and beaten != binding.credential:
            t.delete_beaten(binding.device_id)
            beaten = None
        if beaten is not None:
            t.cite("TRUST-4")
        elif _proof(binding) not in before or binding.device_id not in t.whitelist:
            t.put_entry(binding.device_id, _installed(t, binding, entries.get(binding.device_id)))
    if authority.is_here(t):
        _keep_bindings(t, old, new)


def _installed(t: Transition, binding: Provisioned, known: Entry | None) -> Entry:
    """The entry of a binding; whose permissions only others know stays a hub, or none, as it was admitted."""
    entry = entry_of(t.policy, binding)
    if known is None or known.is_hub == entry.is_hub:
        return entry
    return evolve(entry, is_hub=perms.decide_hub(t, perms.known_grant(t, binding.node_id), known.is_hub))


def _proof(binding: Provisioned) -> tuple[str, int, str]:
    """What makes a binding another one; a new role alone does not."""
    return binding.device_id, binding.node_id, binding.credential


def _proofs(policy: Policy) -> set[tuple[str, int, str]]:
    return {_proof(binding) for binding in policy.verified_here}


def _keep_bindings(t: Transition, old: Policy, new: Policy) -> None:
    """A device that is no longer provisioned keeps its node, like any other that was ever bound."""
    for binding in old.provisioned:
        if binding.device_id not in new.provisioned_by_device and binding.device_id not in t.registry:
            t.put_registration(binding.device_id, Registration(binding.node_id))


def _remove(t: Transition, binding: Provisioned) -> None:
    t.delete_entry(binding.device_id)
    found = t.session_of_node(binding.node_id)
    if found is not None:
        presence.close_link(t, found[0])


def _reconsider_hubs(t: Transition) -> None:
    """Links whose node became a hub, or is one no longer: it joins anew as what it is."""
    for link in sorted(t.links):
        session = t.links[link]
        if session is not None and plain.is_named(t, link, session.node_id):
            if session.node_id not in t.policy.plain_hubs:
                t.cite("TRUST-9")
                presence.close_link(t, link)
            continue
        grant = perms.known_grant(t, session.node_id) if session is not None else None
        if session is None or grant is None or perms.is_hub_grant(grant) == session.is_hub:
            continue
        t.cite("TRUST-2", "LINK-11")
        entry = t.whitelist.get(session.device_id)
        if entry is not None:
            t.put_entry(session.device_id, evolve(entry, is_hub=not session.is_hub))
        presence.close_link(t, link)
