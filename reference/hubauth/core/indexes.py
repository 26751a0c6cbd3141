"""The derived tables of a state, computed from nothing: for a first state, a recovered one, and as a check."""

from collections.abc import Iterable
from typing import TypeVar

from attrs import evolve
from immutables import Map

from hubauth.core.messages import Grant
from hubauth.core.model import Index, Purpose, Registration, State, entry_of, is_authority, subject_of
from hubauth.core.ordered import OrderedIds
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
    listed = listed_roles(policy, state.node_id, state.registry, state.perms)
    return Index(
        link_of_node=Map({session.node_id: link for link, session in sessions.items()}),
        node_of_device=Map({route.device_id: node_id for node_id, route in state.directory.items()}),
        online_via=_grouped((0 if route.via == node_id else route.via, node_id) for node_id, route in online),
        waiting=_grouped((asked.asker, msg_id) for msg_id, asked in pending if asked.asker is not None),
        asking=_grouped((subject, msg_id) for msg_id, asked in pending if (subject := subject_of(asked)) is not None),
        dismissed=Map(
            {(asked.asked, asked.node_id): msg_id for msg_id, asked in pending if asked.purpose is Purpose.DISMISS}
        ),
        roster=OrderedIds.of(listed),
        roster_of_role=by_role(listed),
    )


def listed_roles(policy: Policy, own: int, registry: Map[str, Registration], cached: Map[int, Grant]) -> dict[int, str]:
    """The nodes ``list_roles`` shows, and their roles: every existing one at the authority, else the cached."""
    if not is_authority(policy, own):
        return {node_id: grant.role for node_id, grant in cached.items()}
    registered = {registration.node_id for registration in registry.values()}
    existing = registered | policy.named_nodes | ({own} - {0})
    return {node_id: policy.role_of(node_id) for node_id in existing}


def by_role(listed: dict[int, str]) -> Map[str, OrderedIds]:
    """The same nodes, grouped by role."""
    return _grouped((role, node_id) for node_id, role in listed.items())


def _grouped(pairs: Iterable[tuple[Key, int]]) -> Map[Key, OrderedIds]:
    groups: dict[Key, list[int]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return Map({key: OrderedIds.of(items) for key, items in groups.items()})
