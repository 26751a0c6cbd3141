"""Whom to ask about a device without an entry: at most one child hub, then the parent.

The child hub is the one the device is online through, else its home, else the one it was last seen through. The home is
where the entry of the last registration is; where a device was seen may be older than that. A search that comes from
the parent only goes down and one that comes from a child hub never goes back into it, so it meets no hub twice.
"""

from attrs import evolve

from hubauth.core.inputs import PARENT
from hubauth.core.messages import Action, AssistAuthenticate, AssistQueryCredential, Reason
from hubauth.core.model import Pending, Purpose
from hubauth.core.talk import ask, settle
from hubauth.core.transition import Transition


def begin(t: Transition, about: Pending, presented: str) -> None:
    """Search on behalf of ``about.asker``, who has presented this; a query presents nothing."""
    child = _likely_child(t, about.device_id)
    link = t.hub_link(child)
    if child == 0 or link == about.asker:
        _climb(t, about, presented)
    elif link is None:
        _climb(t, evolve(about, missed=True), presented)
    else:
        t.cite("AUTH-20")
        climbs = about.asker != PARENT and t.policy.has_parent
        if climbs and about.purpose is Purpose.RELAY:
            t.cite("AUTH-22")
            about = evolve(about, credential=presented)
        _ask(t, evolve(about, asked=link, climbs=climbs), presented)


def go_on(t: Transition, pending: Pending, reason: Reason) -> None:
    """The child hub that was asked has not settled a search, for this reason: the parent is next."""
    t.cite("AUTH-21")
    missed, presented = pending.missed or reason is not Reason.NOT_ADMITTED, pending.credential
    kept = "" if pending.purpose is Purpose.RELAY else presented
    _climb(t, evolve(pending, climbs=False, missed=missed, credential=kept), presented)


def outcome(t: Transition, pending: Pending, reason: Reason) -> Reason:
    """What the answer to the last question means for the whole search."""
    if pending.missed and reason is Reason.NOT_ADMITTED:
        t.cite("AUTH-10")
        return Reason.UNREACHABLE
    return reason


def _likely_child(t: Transition, device_id: str) -> int:
    """The child hub that may have the entry, 0 if none.

    That the device is online there proves nothing: a plain authority replaces a credential without a word.
    """
    node_id = t.node_of(device_id)
    route = t.directory[node_id] if node_id is not None else None
    seen = route.via if route is not None and route.via != node_id else 0
    if seen and route is not None and route.online and t.policy.has_presence:
        return seen
    return t.homes.get(device_id) or seen


def _climb(t: Transition, about: Pending, presented: str) -> None:
    if about.asker == PARENT or not t.policy.has_parent:
        if not about.missed:
            t.cite("AUTH-9")
        settle(t, about, outcome(t, about, Reason.NOT_ADMITTED))
    elif not t.parent_present:
        t.cite("AUTH-10")
        settle(t, about, Reason.UNREACHABLE)
    else:
        t.cite("AUTH-21" if about.missed else "AUTH-9")
        _ask(t, evolve(about, asked=PARENT), presented)


def _ask(t: Transition, about: Pending, presented: str) -> None:
    if about.purpose is Purpose.QUERY or about.action is Action.ASSIST_QUERY_CREDENTIAL:
        known = t.node_of(about.device_id) if about.purpose is Purpose.QUERY else None
        ask(t, AssistQueryCredential(about.device_id, known or about.node_id), about)
    else:
        ask(t, AssistAuthenticate(about.device_id, presented), about)
