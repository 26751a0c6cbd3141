"""What outlives a hub's process: which tables last, what each step changes in them, and how they become a state again.

A restart equals "every link went down, and nobody heard". Links, sessions, pending requests, timers, permissions learnt
from others and whether a node is online end with the process; bindings, credentials of a hub's own devices, where
nodes were last seen and have their home, journals, the numbers of revokes and what is owed do not.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from attrs import evolve
from immutables import MapMutation

from hubauth.core.indexes import derive_index
from hubauth.core.model import Neighbour, Route, State
from hubauth.core.policy import Policy
from hubauth.core.transition import Change

LASTING_SCALARS = ("node_id", "credential", "journal", "next_node_id")
LASTING_TABLES = ("registry", "whitelist", "directory", "neighbours", "owed", "beaten", "homes")

Lasting: TypeAlias = tuple[str, Any, Any]
"""(table, key, new value or None); the table of a scalar is ``hub``."""

_SCALARS = frozenset(LASTING_SCALARS)
_TABLES = frozenset(LASTING_TABLES) - {"directory", "neighbours"}


def lasting_changes(changes: Iterable[Change]) -> list[Lasting]:
    """What a step changed that a restart must not lose, in order; often nothing."""
    lasting: list[Lasting] = []
    for table, key, old, new in changes:
        if table == "directory":
            if new is None:
                lasting.append((table, key, None))
            elif old is None or old.via != new.via or old.device_id != new.device_id:
                lasting.append((table, key, _offline(new)))
        elif table == "neighbours":
            if old is None or _away(old) != _away(new):
                lasting.append((table, key, _away(new)))
        elif (table in _TABLES or (table == "hub" and key in _SCALARS)) and old != new:
            lasting.append((table, key, new))
    return lasting


def lasting_part(state: State) -> State:
    """What is left of a state when the process ends, without indexes."""
    recovery = Recovery(state)
    for node_id, route in state.directory.items():
        if route.online:
            recovery.apply(("directory", node_id, _offline(route)))
    for key, neighbour in state.neighbours.items():
        recovery.apply(("neighbours", key, _away(neighbour)))
    return recovery.finish()


def after_restart(policy: Policy, state: State) -> State:
    """The state with which a hub begins again."""
    return indexed(policy, lasting_part(state))


def indexed(policy: Policy, state: State) -> State:
    return evolve(state, index=derive_index(policy, state))


class Recovery:
    """The lasting part of a state, open for what happened to it since."""

    def __init__(self, state: State) -> None:
        self._scalars: dict[str, Any] = {name: getattr(state, name) for name in LASTING_SCALARS}
        self._tables: dict[str, MapMutation[Any, Any]] = {
            name: getattr(state, name).mutate() for name in LASTING_TABLES
        }
        self.forgets = False
        """Whether a credential that a revoke had named is owed no more."""

    def apply(self, change: Lasting) -> None:
        """Raises KeyError for what was never there."""
        table, key, new = change
        if table == "hub":
            self._scalars[key] = new
            return
        content = self._tables[table]
        self.forgets = self.forgets or lets_go(((table, key, content.get(key), new),))
        if new is None:
            del content[key]
        else:
            content[key] = new

    def finish(self) -> State:
        """The state, without indexes."""
        tables: dict[str, Any] = {name: content.finish() for name, content in self._tables.items()}
        return State(**self._scalars, **tables)


def lets_go(changes: Iterable[Change]) -> bool:
    """Whether a revoke that names a credential is owed no more."""
    return any(table == "owed" and new is None and key[1].credential for table, key, _, new in changes)


def _away(neighbour: Neighbour) -> Neighbour:
    """What a link has carried ends with it."""
    return Neighbour(neighbour.sent, neighbour.handled, journal=neighbour.journal, plain=neighbour.plain)


def _offline(route: Route) -> Route:
    return Route(route.device_id, route.via, False) if route.online else route
