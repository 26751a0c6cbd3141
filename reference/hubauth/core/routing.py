"""Frames of other sub-protocols: opaque, checked for their source, and moved along the tree."""

from attrs import evolve

from hubauth.core import plain
from hubauth.core.inputs import PARENT, Link, Received
from hubauth.core.messages import Frame
from hubauth.core.outputs import NoteKind, Send
from hubauth.core.transition import Transition

DEFAULT_HOP_LIMIT = 16


def lower_hop_limit(frame: Frame) -> int | None:
    """The hop limit of a frame that is forwarded once more; None: used up."""
    return ((frame.hop_limit or DEFAULT_HOP_LIMIT) - 1) or None


def reachable_through(t: Transition, link: Link, node_id: int) -> bool:
    """Whether a frame on ``link`` may claim to come from ``node_id``."""
    if link == PARENT:
        return True
    session = t.links[link]
    if session is None:
        return False
    if node_id == session.node_id:
        return True
    if not session.is_hub:
        return False
    route = t.directory.get(node_id)
    if not session.extended and (route is None or not route.online) and plain.learns(t, link, node_id):
        return True
    return route is not None and route.via == session.node_id


def on_opaque(t: Transition, received: Received) -> None:
    """Move a frame of another sub-protocol one hop, or drop it with the reason."""
    frame, link = received.frame, received.link
    if frame.source == 0:
        t.note("FRAME-1", "not authenticated", link)
        return
    if not reachable_through(t, link, frame.source):
        t.note("FRAME-2", f"node {frame.source} is not reachable through this link", link)
        return
    if frame.target == t.node_id:
        t.note("FRAME-3", f"sub-protocol {frame.sub_proto} for this hub", link, NoteKind.DELIVERED)
        return
    ways = _broadcast(t) if frame.target == 0 else _towards(t, frame.target)
    if not ways and frame.target != 0:
        t.note("FRAME-5", f"no way to node {frame.target}", link)
        return
    _forward(t, frame, ways, link)


def _broadcast(t: Transition) -> list[Link]:
    t.cite("FRAME-6")
    return sorted(link for link, session in t.links.items() if session is not None)


def _towards(t: Transition, target: int) -> list[Link]:
    route = t.directory.get(target)
    if route is not None and route.online:
        t.cite("FRAME-4")
        return [t.link_of_node[route.via]]
    if target in t.learnt:
        t.cite("FRAME-26")
        return [t.learnt[target].link]
    t.cite("FRAME-5")
    return [PARENT] if t.parent_present else []


def _forward(t: Transition, frame: Frame, ways: list[Link], came_from: Link) -> None:
    hops = lower_hop_limit(frame)
    t.cite("FRAME-8")
    if hops is None:
        t.note("FRAME-8", "hop limit used up", came_from)
        return
    onward = evolve(frame, hop_limit=hops)
    for link in ways:
        if link == came_from:
            t.cite("FRAME-7")
            if frame.target != 0:
                t.note("FRAME-7", f"the way to node {frame.target} leads back", came_from)
            continue
        t.emit(Send(link, onward))
