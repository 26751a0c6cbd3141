"""Who hands out node ids, and the way there. Two small decisions that every registration hangs on."""

from enum import Enum

from hubauth.core.inputs import PARENT, Link
from hubauth.core.model import is_authority
from hubauth.core.transition import Transition


class Authority(Enum):
    """Who decides about registrations, seen from one hub."""

    SELF = "self"
    NODE = "node"
    PARENT = "parent"


def choose_authority(configured: int, own: int, has_parent: bool) -> Authority:
    """The choice of the three documents: a configured node first, then the parent, then this hub."""
    if configured:
        return Authority.SELF if configured == own else Authority.NODE
    return Authority.PARENT if has_parent else Authority.SELF


_RULES = {Authority.NODE: "AUTHY-1", Authority.PARENT: "AUTHY-2"}


def is_here(t: Transition) -> bool:
    """Whether this hub is the authority."""
    here = is_authority(t.policy, t.node_id)
    if here:
        t.cite("AUTHY-1" if t.policy.authority else "AUTHY-3")
    return here


def has_given_out(t: Transition, node_id: int) -> bool:
    """Whether this hub, as the authority, knows a device by this node id that it has given out."""
    if not is_authority(t.policy, t.node_id):
        return False
    return node_id in (t.named_and_registered if node_id in t.policy.named_nodes else t.roster)


def next_hop(t: Transition, came_from: Link | None) -> Link | None:
    """The link towards an authority that is not this hub; None: it cannot be reached from here."""
    link = way(t)
    if link is None:
        t.cite("AUTHY-5")
    elif link == came_from:
        t.cite("AUTHY-6")
        return None
    return link


def way(t: Transition) -> Link | None:
    """The same for a question that nothing depends on: whether it can be asked is not decided here."""
    choice = choose_authority(t.policy.authority, t.node_id, t.policy.has_parent)
    t.cite(_RULES[choice])
    return _towards_node(t, t.policy.authority) if choice is Authority.NODE else _up(t)


def _towards_node(t: Transition, node_id: int) -> Link | None:
    route = t.directory.get(node_id)
    if route is not None and route.online:
        return t.hub_link(route.via)
    return _up(t)


def _up(t: Transition) -> Link | None:
    return PARENT if t.parent_present else None
