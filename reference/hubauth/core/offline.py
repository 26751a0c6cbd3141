"""offline, assist_offline and hub_dismiss: a device leaves, is reported gone, or has to be let go."""

from hubauth.core import presence
from hubauth.core.inputs import PARENT, Received
from hubauth.core.messages import AssistOffline, HubDismiss, Offline, Reason
from hubauth.core.talk import answer_to, refuse
from hubauth.core.transition import Transition


def on_offline(t: Transition, received: Received, message: Offline) -> None:
    """A device says it leaves, and its link stays open without a session; or its direct hub says it for the device."""
    session = t.links[received.link]
    assert session is not None
    if message.device_id == session.device_id and message.node_id in (0, session.node_id):
        t.cite("OFF-1")
        _confirm(t, received, session.node_id)
        presence.end_session(t, received.link, reason=message.reason)
    elif session.is_hub:
        t.cite("OFF-12")
        _on_report(t, received, message)
    else:
        _refuse_about_others(t, received, message, session.node_id)


def _confirm(t: Transition, received: Received, node_id: int) -> None:
    """Answer what was done; an ``offline`` need not be answered."""
    assert isinstance(received.frame.body, Offline | AssistOffline)
    if isinstance(received.frame.body, Offline):
        if not t.policy.answer_offline:
            return
        t.cite("OFF-2")
    answer_to(t, received, Reason.OK, node_id=node_id)


def _refuse_about_others(t: Transition, received: Received, message: Offline, own: int) -> None:
    named = {message.node_id, t.node_of(message.device_id) or 0} - {own}
    if any(node_id in t.directory and t.directory[node_id].online for node_id in named):
        refuse(t, received, Reason.FORBIDDEN, "OFF-11")
    else:
        refuse(t, received, Reason.NOT_INDEXED, "OFF-10")


def on_assist_offline(t: Transition, received: Received, message: AssistOffline) -> None:
    """A report from a child hub; a parent has none to make, for nothing is online through it."""
    if message.node_id == 0:
        t.cite("OFF-12")
    _on_report(t, received, message)


def _on_report(t: Transition, received: Received, message: Offline | AssistOffline) -> None:
    sender = t.links[received.link]
    via = sender.node_id if sender is not None else 0
    node_id = message.node_id or t.node_of(message.device_id) or 0
    route = t.directory.get(node_id)
    if route is None or not route.online or route.via != via or node_id == via:
        if node_id in t.learnt and t.learnt[node_id].link == received.link:
            t.cite("FRAME-26")
            t.unlearn_node(node_id)
        refuse(t, received, Reason.NOT_INDEXED, "OFF-7")
        return
    t.cite("OFF-6")
    t.mark_offline(node_id)
    _confirm(t, received, node_id)
    presence.report_offline(t, node_id, route.device_id, message.reason)


def on_dismiss(t: Transition, received: Received, message: HubDismiss) -> None:
    """The node has a newer session in another part of the tree; only a parent can know that."""
    if received.link != PARENT:
        refuse(t, received, Reason.FORBIDDEN, "EXT-9")
        return
    route = t.directory.get(message.node_id)
    if route is None or not route.online:
        refuse(t, received, Reason.NOT_INDEXED, "EXT-9")
        return
    t.cite("BIND-12")
    own = t.session_of_node(message.node_id)
    if own is not None:
        presence.displace(t, own[0])
    else:
        presence.dismiss(t, route.via, message.node_id, route.device_id)
        t.mark_offline(message.node_id)
    answer_to(t, received, Reason.OK)
