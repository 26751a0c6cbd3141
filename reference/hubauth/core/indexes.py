"""The derived tables of a state, computed from nothing: for a first state, a recovered one, and as a check."""

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from attrs import evolve
from immutables import Map

from hubauth.core.messages import Grant
from hubauth.core.model import (
    Debts,
    Index,
    Purpose,
    Registration,
    State,
    bound_node,
    entry_of,
    is_authority,
    online_group,
    subject_of,
)
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.policy import Policy

Key = TypeVar("Key")


def initial_state(policy: Policy) -> State:
    """A hub that has never run, with what its configuration provisions."""
    whitelist = Map({binding.device_id: entry_of(policy, binding) for binding in policy.verified_here})
    state = State(node_id=policy.node_id, credential=policy.credential, whitelist=whitelist)
    return evolve(state, index=derive_index(policy, state))


def derive_index(policy: Policy, state: State) -> Index:
    """What every index must hold, given the rest of the state."""
    sessions = {link: session for link, session in state.links.items() if session is not None}
    online = [(node_id, route) for node_id, route in state.directory.items() if route.online]
    pending = state.pending.items()
    listed = rosters(policy, state.node_id, state.registry, state.perms)
    return Index(
        link_of_node=Map({session.node_id: link for link, session in sessions.items()}),
        node_of_device=Map(
            {
                route.device_id: node_id
                for node_id, route in state.directory.items()
                if bound_node(state, route.device_id) != node_id
            }
        ),
        online_via=_grouped(
            (group, node_id)
            for node_id, route in online
            if (group := online_group(policy, route.via, node_id)) is not None
        ),
        waiting=_grouped((asked.asker, msg_id) for msg_id, asked in pending if asked.asker is not None),
        asking=_grouped((subject, msg_id) for msg_id, asked in pending if (subject := subject_of(asked)) is not None),
        dismissed=Map(
            {(asked.asked, asked.node_id): msg_id for msg_id, asked in pending if asked.purpose is Purpose.DISMISS}
        ),
        roster=listed[0],
        roster_of_role=listed[1],
        named_and_registered=listed[2],
        debts=Debts(
            turns=_grouped((key, owed.turn) for (key, _), owed in state.owed.items()),
            at=Map({(key, owed.turn): message for (key, message), owed in state.owed.items()}),
            about=_grouped(((key, message.device_id), owed.turn) for (key, message), owed in state.owed.items()),
        ),
    )


Rosters: TypeAlias = tuple[OrderedIds, Map[str, OrderedIds], frozenset[int]]


def rosters(policy: Policy, own: int, registry: Map[str, Registration], cached: Map[int, Grant]) -> Rosters:
    """The nodes ``list_roles`` shows, all and by role: every existing one at the authority, else the cached.

    And those of them that are both registered and named by the configuration.
    """
    if not is_authority(policy, own):
        return OrderedIds.of(cached), _grouped((grant.role, node_id) for node_id, grant in cached.items()), frozenset()
    named = policy.named_nodes | ({own} - {0})
    registered = {registration.node_id for registration in registry.values()}
    # Those that are not named may be very many, and all have one role.
    roster = unnamed = OrderedIds.of(registered - named)
    of_role = {policy.default_role: unnamed} if unnamed else {}
    for node_id in named:
        role = policy.role_of(node_id)
        of_role[role] = of_role.get(role, EMPTY).add(node_id)
        roster = roster.add(node_id)
    return roster, Map(of_role), named & registered


def _grouped(pairs: Iterable[tuple[Key, int]]) -> Map[Key, OrderedIds]:
    groups: dict[Key, list[int]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return Map({key: OrderedIds.of(items) for key, items in groups.items()})
