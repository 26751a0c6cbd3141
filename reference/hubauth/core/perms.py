"""Roles and permissions: who knows them, asking for them, listing them, and forgetting them."""

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge
from itertools import islice

from hubauth.core import authority
from hubauth.core.indexes import rosters
from hubauth.core.inputs import PARENT, Link, Received
from hubauth.core.messages import (
    MAX_NODE_ID,
    NO_GRANT,
    Action,
    Answer,
    Frame,
    GetPerms,
    Grant,
    ListRoles,
    Major,
    PermsInvalidate,
    Reason,
    RoleOfNode,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.core.talk import answer_to, ask, refuse, reply, settle, waiting_for
from hubauth.core.transition import Transition

MAX_PAGE = 1000
MAX_PAGE_BYTES = 60_000
"""A payload of SubProto 2 is at most 64 KiB."""
MAX_NAMED = 4000
"""Node ids that fit one invalidation."""


def known_grant(t: Transition, node_id: int) -> Grant | None:
    """What this hub knows about a node: as the authority, by its own configuration, or from its cache."""
    if t.policy.names_role(node_id) or (authority.is_here(t) and node_id in t.roster):
        t.cite("PERM-6")
        return t.policy.resolve(node_id)
    return t.perms.get(node_id)


def is_hub_grant(grant: Grant) -> bool:
    """Whether a node with this grant is a hub: ``auth.assist`` must be named, ``*`` is not enough."""
    return "auth.assist" in grant.perms


def is_privileged(grant: Grant) -> bool:
    """Whether a node with this grant must not be taken over by whoever registers its device_id."""
    return any(permission == "*" or permission.startswith("auth.") for permission in grant.perms)


def decide_hub(t: Transition, grant: Grant | None, before: bool) -> bool:
    """Whether the node being bound is a hub; without known permissions it stays what it was."""
    if grant is None:
        t.cite("TRUST-2")
        return before
    t.cite("TRUST-1")
    return is_hub_grant(grant)


def learn(t: Transition, pending: Pending, grant: Grant) -> bool:
    """Cache an answer about permissions, unless they were invalidated meanwhile; whether it may be used."""
    if pending.stale or pending.epoch != t.perms_epoch:
        t.cite("PERM-5")
        return False
    if not t.policy.names_role(pending.node_id):
        t.cite("PERM-4")
        t.put_perms(pending.node_id, grant)
    return True


# get_perms


def on_get_perms(t: Transition, received: Received, message: GetPerms) -> None:
    grant = known_grant(t, message.node_id)
    if grant is not None:
        t.cite("PERM-1")
        answer_to(t, received, Reason.OK, grant=grant)
        return
    if authority.is_here(t):
        refuse(t, received, Reason.UNKNOWN_NODE, "PERM-3")
        return
    way = authority.next_hop(t, received.link)
    if way is None:
        refuse(t, received, Reason.UNREACHABLE)
        return
    t.cite("PERM-2")
    about = waiting_for(received, Purpose.PERMS, way, node_id=message.node_id, epoch=t.perms_epoch)
    ask(t, GetPerms(message.node_id), about)


def on_perms_answer(t: Transition, pending: Pending, answer: Answer) -> None:
    """Somebody nearer to the authority has answered."""
    grant = answer.grant if answer.reason is Reason.OK else NO_GRANT
    if answer.reason is Reason.OK:
        learn(t, pending, grant)
    settle(t, pending, answer.reason, grant=grant)


# Permission to do something


def check_permission(t: Transition, received: Received, permission: str) -> bool | None:
    """Whether the session on this link may do it; None: the request is held until that is known."""
    session = t.links[received.link]
    assert session is not None
    t.cite("TRUST-6")
    grant = known_grant(t, session.node_id)
    if grant is not None:
        return grant.allows(permission)
    way = authority.next_hop(t, received.link) if t.policy.has_perms and not authority.is_here(t) else None
    if way is None:
        return False
    t.cite("TRUST-7")
    about = waiting_for(received, Purpose.HELD, way, node_id=session.node_id, held=received.frame, epoch=t.perms_epoch)
    ask(t, GetPerms(session.node_id), about)
    return None


# list_roles


def on_list_roles(t: Transition, received: Received, message: ListRoles) -> None:
    t.cite("PERM-19", "PERM-9", "PERM-10")
    listed: tuple[OrderedIds, ...]
    if message.role:
        listed = t.roster_of_role.get(message.role, EMPTY), t.others.of_role.get(message.role, EMPTY)
    else:
        listed = t.roster, t.others.named, t.others.cached
    total, page = select_page(listed, message.node_ids, message.offset, message.limit)
    resolve, roster, perms = t.policy.resolve, t.roster, t.perms
    if t.others.named or t.others.cached:
        rows = [
            RoleOfNode(node_id, resolve(node_id) if node_id in roster else perms.get(node_id, NO_GRANT))
            for node_id in page
        ]
    else:
        rows = [RoleOfNode(node_id, resolve(node_id)) for node_id in page]
    answer = Answer(Action.LIST_ROLES, Reason.OK, total=total, roles=_fitting(t, rows))
    reply(t, received.link, received.frame.msg_id, received.frame.trace_id, answer)


def select_page(
    listed: tuple[OrderedIds, ...], wanted: tuple[int, ...], offset: int, limit: int
) -> tuple[int, list[int]]:
    """How many nodes of these sets, which have none in common, are left after filtering, and the ones on this page."""
    size = min(limit, MAX_PAGE)
    if wanted:
        kept = [node_id for node_id in sorted(set(wanted)) if any(node_id in one for one in listed)]
        return len(kept), kept[offset : offset + size]
    some = [one for one in listed if one]
    rows = some[0].page(offset) if len(some) == 1 else _merged(some, offset)
    return sum(map(len, some)), list(islice(rows, size))


def _merged(listed: list[OrderedIds], offset: int) -> Iterator[int]:
    """The members of all sets in ascending order from position ``offset`` on, found lazily."""

    def position(item: int) -> int:
        return sum(one.position(item) for one in listed)

    first = bisect_right(range(MAX_NODE_ID + 2), offset, key=position) - 1
    return merge(*(one.page(one.position(first)) for one in listed))


def _fitting(t: Transition, rows: list[RoleOfNode]) -> tuple[RoleOfNode, ...]:
    """As many rows as one frame can hold, counting generously what JSON adds to each."""
    left = MAX_PAGE_BYTES
    for count, row in enumerate(rows):
        names = (row.grant.role, *row.grant.perms)
        left -= 64 + sum(2 * len(name.encode()) + 3 for name in names)
        if left < 0:
            t.cite("PERM-17")
            return tuple(rows[: max(count, 1)])
    return tuple(rows)


# perms_invalidate


def on_perms_invalidate(t: Transition, received: Received, message: PermsInvalidate) -> None:
    if received.link == PARENT:
        allowed: bool | None = True
    else:
        allowed = check_permission(t, received, "auth.perms_invalidate")
    if allowed is not None:
        finish_invalidate(t, received, message, allowed)


def finish_invalidate(t: Transition, received: Received, message: PermsInvalidate, allowed: bool) -> None:
    """The originator's permission is known."""
    t.cite("PERM-11")
    if not allowed:
        refuse(t, received, Reason.FORBIDDEN)
        return
    t.cite("PERM-15")
    invalidate(t, message, received.link)


def invalidate(t: Transition, message: PermsInvalidate, came_from: Link | None) -> None:
    """Forget, pass it down, and ask again for what was wanted fresh."""
    t.cite("PERM-12")
    cached = [node_id for node_id in sorted(set(message.node_ids)) if t.delete_perms(node_id)]
    for node_id in sorted(set(message.node_ids)):
        for msg_id in t.asking.get(node_id, ()):
            t.mark_stale(msg_id)
    if not message.node_ids:
        if not authority.is_here(t):
            t.clear_perms()
        t.perms_epoch += 1
    t.invalidations += 1
    pass_down(t, message, came_from)
    if message.refresh and cached and not authority.is_here(t):
        way = authority.next_hop(t, None)
        if way is not None:
            t.cite("PERM-14")
            for node_id in cached:
                refresh = Pending(Purpose.PERMS, Action.GET_PERMS, way, node_id=node_id, epoch=t.perms_epoch)
                ask(t, GetPerms(node_id), refresh)


def pass_down(t: Transition, message: PermsInvalidate, came_from: Link | None) -> None:
    """To every child hub but the sender."""
    if not t.policy.has_perms:
        return
    for node_id in sorted(t.neighbours):
        link = t.hub_link(node_id)
        if link is not None and link != came_from:
            t.cite("PERM-18", "FRAME-15")
            t.emit(Send(link, Frame(message, Major.CMD, t.take_msg_id(), t.node_id)))


# Policy


def changed_grants(old: Policy, new: Policy) -> tuple[int, ...] | None:
    """The nodes whose role or permissions differ between two policies; empty: every node; None: none."""
    if old.grant_of_role(old.default_role) != new.grant_of_role(new.default_role):
        return ()
    named = old.named_nodes | new.named_nodes
    changed = sorted(node_id for node_id in named if old.resolve(node_id) != new.resolve(node_id))
    return () if len(changed) > MAX_NAMED else tuple(changed) or None


def rebuild_roster(t: Transition) -> None:
    """List every existing node anew: this hub has become the authority, or its roles changed."""
    t.roster, t.roster_of_role, t.others, t.named_and_registered = rosters(t.policy, t)
