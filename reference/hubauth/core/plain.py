"""Links to hubs that speak the documents alone."""

from hubauth.core import authority
from hubauth.core.inputs import Link
from hubauth.core.transition import Transition

# Who is trusted to be one


def is_named(t: Transition, link: Link, node_id: int) -> bool:
    """Whether whoever has connected on ``link`` is known, by where it comes from, to be this hub if it says so."""
    return link in t.plain and node_id in t.plain[link].hubs


def is_live(t: Transition, node_id: int) -> bool:
    """Whether a node is on some link of this hub's, or online below."""
    route = t.directory.get(node_id)
    return node_id in t.link_of_node or (route is not None and route.online)


def may_be(t: Transition, link: Link, node_id: int) -> bool:
    """Whether a link is believed to be this hub's: it takes the place of a live one only from the same peer."""
    if not is_named(t, link, node_id) or node_id not in t.policy.plain_hubs or authority.has_given_out(t, node_id):
        return False
    former = t.link_of_node.get(node_id)
    if former is None:
        return not is_live(t, node_id)
    return former in t.plain and bool(t.plain[link].peer) and t.plain[former].peer == t.plain[link].peer
