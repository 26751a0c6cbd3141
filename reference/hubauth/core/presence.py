"""Where a device is: binding, announcements, and what happens to the place it was before.

Presence never looks at a credential and verification never looks at presence: the last announcement wins,
whatever order messages of different links arrive in.
"""

from hubauth.core import authority, once, search, unheard
from hubauth.core.inputs import PARENT, Link, Received
from hubauth.core.messages import Action, AssistOffline, Frame, HubDismiss, HubOnline, Major, Offline, Reason
from hubauth.core.model import Pending, Purpose, Route, Session, is_extended
from hubauth.core.outputs import Send
from hubauth.core.talk import give_up, send_request, settle
from hubauth.core.transition import Transition

_ENTRANCE = (Purpose.REGISTER, Purpose.AUTHENTICATE, Purpose.QUERY, Purpose.ADMIT)


def bind(t: Transition, link: Link, device_id: str, node_id: int, is_hub: bool, extended: bool = False) -> None:
    """Give ``link`` to a device that was admitted, taking it from wherever the device was."""
    t.cite("BIND-1")
    former = t.links[link]
    if former is not None and former.node_id != node_id:
        t.cite("BIND-2")
        end_session(t, link)
    elif former is not None and former.is_hub and not is_hub:
        lose_hub(t, link, former)
    elsewhere = t.session_of_node(node_id)
    if elsewhere is not None and elsewhere[0] != link:
        t.cite("BIND-3")
        displace(t, elsewhere[0])
    point_at(t, node_id, device_id, via=node_id)
    t.set_session(link, Session(device_id, node_id, is_hub, extended))
    announce(t, node_id, device_id)


def point_at(t: Transition, node_id: int, device_id: str, via: int) -> None:
    """Let the directory say the node is online via ``via``, dismissing another child hub that held it."""
    old = t.directory.get(node_id)
    if old is not None and old.online and old.via not in (via, node_id):
        dismiss(t, old.via, node_id, old.device_id)
    t.put_route(node_id, Route(device_id, via, online=True))


def announce(t: Transition, node_id: int, device_id: str) -> None:
    """Tell an extended parent that a node is here. Nobody answers; a parent that is away is told when it returns."""
    if t.parent_extended:
        t.cite("EXT-8")
        send_request(t, PARENT, HubOnline(device_id, node_id))


def report_offline(t: Transition, node_id: int, device_id: str, reason: str = "") -> None:
    """Tell the parent that a node is gone, and why if somebody has said why."""
    if t.policy.has_presence and t.parent_present:
        t.cite("OFF-5", *(("OFF-13",) if reason else ()))
        send_request(t, PARENT, AssistOffline(device_id, node_id, reason))


def dismiss(t: Transition, hub: int, node_id: int, device_id: str) -> None:
    """Order a child hub to let go of a node that is elsewhere now."""
    link = t.hub_link(hub)
    if link is None or not is_extended(t, link):
        return
    t.cite("EXT-9")
    msg_id = send_request(t, link, HubDismiss(device_id, node_id))
    t.put_pending(msg_id, Pending(Purpose.DISMISS, Action.HUB_DISMISS, link, device_id=device_id, node_id=node_id))


def end_session(t: Transition, link: Link, *, report: bool = True, reason: str = "") -> None:
    """The device on ``link`` is gone from here; the link itself stays."""
    session = t.links[link]
    assert session is not None
    if session.is_hub:
        lose_hub(t, link, session)
    t.set_session(link, None)
    refuse_needing_session(t, link)
    route = t.directory.get(session.node_id)
    if route is not None and route.online and route.via == session.node_id:
        t.mark_offline(session.node_id)
        if report:
            report_offline(t, session.node_id, route.device_id, reason)


def displace(t: Transition, link: Link) -> None:
    """The device on ``link`` has a newer session: this one ends without a report, and the device is told."""
    session = t.links[link]
    assert session is not None
    if session.is_hub:
        t.cite("BIND-4")
    if goes_with_session(t, session, t.policy.close_superseded):
        close_link(t, link, report=False)
        return
    end_session(t, link, report=False)
    if t.policy.has_presence:
        message = Offline(session.device_id, session.node_id, "superseded")
        t.emit(Send(link, Frame(message, Major.MSG, t.take_msg_id(), t.node_id)))


def goes_with_session(t: Transition, session: Session, as_configured: bool) -> bool:
    """Whether the link of a session that ends is closed: for a device as configured, for a hub always.

    A hub that kept its link would believe its parent present; only one that joins anew is welcomed and announces.
    """
    if session.is_hub:
        t.cite("LINK-11")
    return session.is_hub or as_configured


def close_link(t: Transition, link: Link, *, report: bool = True) -> None:
    """Forget what a link asked, end its session and close it."""
    forget_asker(t, link)
    end_session(t, link, report=report)
    t.forget_link(link)
    t.close(link)


def forget_asker(t: Transition, link: Link) -> None:
    """Nobody is left to answer on ``link``."""
    for msg_id in t.waiting.get(link, ()):
        t.cite("LINK-7")
        unheard.forget(t, msg_id)


def refuse_needing_session(t: Transition, link: Link) -> None:
    """Only a registration or authentication still goes on for a link without its session."""
    for msg_id in t.waiting.get(link, ()):
        if t.pending[msg_id].purpose in _ENTRANCE:
            continue
        t.cite("LINK-10")
        pending = unheard.forget(t, msg_id)
        if pending.purpose is not Purpose.REVOKE:
            settle(t, pending, Reason.FORBIDDEN)


def lose_hub(t: Transition, link: Link, session: Session) -> None:
    """A child hub is gone, or is no hub any more: so is everything behind it."""
    for node_id in t.online_via.get(session.node_id, ()):
        t.cite("OFF-8")
        route = t.mark_offline(node_id)
        report_offline(t, node_id, route.device_id)
    for rank in t.learnt_over.get(link, ()):
        t.unlearn_node(rank & 0xFFFFFFFF)
    fail_asked(t, link)
    refuse_needing_session(t, link)


def fail_asked(t: Transition, link: Link) -> None:
    """What was asked of this neighbour will not be answered: a search may go on, the others are told."""
    for msg_id in sorted(msg_id for msg_id, pending in t.pending.items() if pending.asked == link):
        pending = t.take_pending(msg_id)
        if pending.purpose is Purpose.SENT:
            once.run_out(t, pending)
        elif pending.climbs:
            search.go_on(t, pending, Reason.UNREACHABLE)
        elif pending.purpose is not Purpose.UNHEARD:
            t.cite("LINK-6")
            give_up(t, pending)


def on_announcement(t: Transition, received: Received, message: HubOnline) -> None:
    """A child hub says that a node is with it."""
    sender = t.links[received.link]
    device_id, node_id = message.device_id, message.node_id
    if sender is None or node_id in (0, t.node_id, sender.node_id) or contradicts(t, device_id, node_id):
        t.note("BIND-10", f"announcement of node {node_id} cannot be true", received.link)
        return
    if (received.link, node_id) in t.dismissed:
        t.note("BIND-9", f"announcement of node {node_id} is older than the order to let it go", received.link)
        return
    t.cite("BIND-6")
    own = t.session_of_node(node_id)
    if own is not None:
        t.cite("BIND-8")
        displace(t, own[0])
    point_at(t, node_id, device_id, via=sender.node_id)
    announce(t, node_id, device_id)


def contradicts(t: Transition, device_id: str, node_id: int) -> bool:
    """Whether another hub's word for a binding goes against what is known here: bindings are for ever."""
    binding, named = t.policy.provisioned_by_device.get(device_id), t.policy.provisioned_by_node.get(node_id)
    return (
        (binding is not None and binding.node_id != node_id)
        or (named is not None and named.device_id != device_id)
        or t.policy.is_own_device(device_id)
        or contradicts_tables(t, device_id, node_id)
        or (device_id not in t.registry and authority.has_given_out(t, node_id))
    )


def contradicts_tables(t: Transition, device_id: str, node_id: int) -> bool:
    """The same, as far as the state alone can tell."""
    registration, entry, route = t.registry.get(device_id), t.whitelist.get(device_id), t.directory.get(node_id)
    return (
        any(known.node_id != node_id for known in (registration, entry) if known is not None)
        or t.node_of(device_id) not in (None, node_id)
        or (route is not None and route.device_id != device_id)
    )


def start_announcing(t: Transition) -> None:
    """The parent is present: tell it everything that is online here, if it can be told."""
    if t.parent_extended and t.online_via:
        t.announcing = (-1, -1)
        continue_announcing(t)


def continue_announcing(t: Transition) -> None:
    """Announce one batch; a timer of no length brings the next, so that other links get their turn."""
    assert t.announcing is not None
    last_group, last_node = t.announcing
    left = t.policy.announce_batch
    for group in sorted(group for group in t.online_via if group >= last_group):
        members = t.online_via[group]
        for node_id in members.above(last_node) if group == last_group else members:
            if left == 0:
                _continue_later(t)
                return
            t.cite("BIND-11")
            announce(t, node_id, t.directory[node_id].device_id)
            t.announcing = (group, node_id)
            left -= 1
    t.announcing = None
    t.announce_timer = 0


def _continue_later(t: Transition) -> None:
    t.announce_timer = t.take_msg_id()
    t.start_timer(t.announce_timer, 0.0)


def stop_announcing(t: Transition) -> None:
    """The parent is away."""
    if t.announcing is not None:
        t.cancel_timer(t.announce_timer)
        t.announcing = None
        t.announce_timer = 0
