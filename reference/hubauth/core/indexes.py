"""The derived tables of a state, computed from nothing: for a first state, a recovered one, and as a check."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from attrs import evolve
from immutables import Map

from hubauth.core.messages import Grant
from hubauth.core.model import (
    Debts,
    Index,
    Others,
    Purpose,
    Registration,
    Route,
    State,
    asked_keys,
    bound_node,
    entry_of,
    is_authority,
    learnt_rank,
    online_group,
    queues_of,
    subjects_of,
)
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.policy import Policy

Key = TypeVar("Key")


def initial_state(policy: Policy, journal: str = "") -> State:
    """A hub that has never run, with what its configuration provisions; without a journal it speaks no extension."""
    whitelist = Map({binding.device_id: entry_of(policy, binding) for binding in policy.verified_here})
    state = State(node_id=policy.node_id, credential=policy.credential, journal=journal, whitelist=whitelist)
    return evolve(state, index=derive_index(policy, state))


def derive_index(policy: Policy, state: State) -> Index:
    """What every index must hold, given the rest of the state."""
    sessions = {link: session for link, session in state.links.items() if session is not None}
    online = [(node_id, route) for node_id, route in state.directory.items() if route.online]
    pending = state.pending.items()
    listed = rosters(policy, state)
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
        queues=_grouped((queue, msg_id) for msg_id, asked in pending for queue in queues_of(asked)),
        asking=_grouped((subject, msg_id) for msg_id, asked in pending for subject in subjects_of(asked)),
        asked=_grouped((key, msg_id) for msg_id, asked in pending for key in asked_keys(state, asked)),
        learnt_over=_grouped((learnt.link, learnt_rank(node_id, learnt)) for node_id, learnt in state.learnt.items()),
        dismissed=Map(
            {(asked.asked, asked.node_id): msg_id for msg_id, asked in pending if asked.purpose is Purpose.DISMISS}
        ),
        roster=listed.roster,
        roster_of_role=listed.roster_of_role,
        others=listed.others,
        named_and_registered=listed.named_and_registered,
        debts=Debts(
            turns=_grouped((key, owed.turn) for (key, _), owed in state.owed.items()),
            at=Map({(key, owed.turn): message for (key, message), owed in state.owed.items()}),
            about=_grouped(((key, message.device_id), owed.turn) for (key, message), owed in state.owed.items()),
        ),
    )


class Known(Protocol):
    """The tables of a state that know nodes."""

    @property
    def node_id(self) -> int: ...
    @property
    def registry(self) -> Map[str, Registration]: ...
    @property
    def directory(self) -> Map[int, Route]: ...
    @property
    def perms(self) -> Map[int, Grant]: ...


class Rosters(NamedTuple):
    """The part of the index that ``list_roles`` shows."""

    roster: OrderedIds
    roster_of_role: Map[str, OrderedIds]
    others: Others
    named_and_registered: frozenset[int]


def rosters(policy: Policy, tables: Known) -> Rosters:
    """Every node this hub knows, by how it knows it."""
    named = policy.named_nodes | ({tables.node_id} - {0})
    registered: set[int] = set()
    sure = {node_id for node_id in named if policy.names_role(node_id)}
    if is_authority(policy, tables.node_id):
        registered = {registration.node_id for registration in tables.registry.values()}
        sure = set(named)
    # Those that are registered and not named may be very many, and all have one role.
    roster = unnamed = OrderedIds.of(registered - named)
    of_role = {policy.default_role: unnamed} if unnamed else {}
    for node_id in sure:
        role = policy.role_of(node_id)
        of_role[role] = of_role.get(role, EMPTY).add(node_id)
        roster = roster.add(node_id)
    met = OrderedIds.of({*named, *tables.directory} - sure - registered)
    grants = [(grant.role, node_id) for node_id, grant in tables.perms.items() if node_id not in roster]
    cached = OrderedIds.of(node_id for _, node_id in grants if node_id not in met)
    return Rosters(roster, Map(of_role), Others(met, cached, _grouped(grants)), named & registered)


def _grouped(pairs: Iterable[tuple[Key, int]]) -> Map[Key, OrderedIds]:
    groups: dict[Key, list[int]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return Map({key: OrderedIds.of(items) for key, items in groups.items()})
