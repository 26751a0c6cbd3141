"""A step in the making.

``step`` opens a ``Transition`` on a state, the flows work on it, and ``finish`` turns it into the next
state. It never outlives the step, so nothing outside can see anything change. All tables are written
here and nowhere else: an index cannot be forgotten, and every change is recorded for the digest.
"""

from collections.abc import Callable
from itertools import compress
from operator import attrgetter, ne
from typing import Any, TypeAlias

from attrs import evolve, fields
from immutables import Map

from hubauth.core.inputs import Link
from hubauth.core.messages import Action, Grant, Revoke
from hubauth.core.model import (
    TIMELESS,
    Debts,
    Entry,
    Index,
    Learnt,
    Neighbour,
    Others,
    Owed,
    Pending,
    Plain,
    Purpose,
    Registration,
    Route,
    Session,
    State,
    Subject,
    asked_keys,
    bound_node,
    learnt_rank,
    online_group,
    queues_of,
    subjects_of,
)
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.outputs import CancelTimer, Close, Note, NoteKind, Output, StartTimer
from hubauth.core.policy import Policy
from hubauth.core.values import frozen

Change: TypeAlias = tuple[str, Any, Any, Any]
"""(table, key, old value or None, new value or None)"""

ALL = "*"
"""The key of a change that empties a whole table."""


@frozen
class Step:
    """The result of one step: the policy in force, the next state, what to do in order, and the rules that decided."""

    policy: Policy
    """What the next step is given: another one only if a changed configuration was accepted."""
    state: State
    outputs: tuple[Output, ...]
    rules: tuple[str, ...]
    changes: tuple[Change, ...]
    """What differs between the two states, for the incremental digest."""
    cited: tuple[str, ...] = ()
    """The rules in the order in which they were cited."""
    marks: tuple[int, ...] = ()
    """How many of them had been when each output was made."""

    def rules_behind(self, output: Output) -> tuple[str, ...]:
        """The rules that led to one of the outputs, the last one cited first."""
        at = next(at for at, other in enumerate(self.outputs) if other is output)
        return tuple(dict.fromkeys(reversed(self.cited[: self.marks[at]])))


STATE_FIELDS = tuple(attribute.name for attribute in fields(State) if attribute.name != "index")
INDEX_FIELDS = tuple(attribute.name for attribute in fields(Index))
SCALARS = STATE_FIELDS[: STATE_FIELDS.index("links")]
_HUB = ("hub",) * len(SCALARS)
_scalars: Callable[[object], tuple[Any, ...]] = attrgetter(*SCALARS)


class Transition:
    """The tables of one state, open for writing."""

    __slots__ = (*STATE_FIELDS, *INDEX_FIELDS, "before", "changes", "cited", "marks", "outputs", "policy", "unanswered")

    node_id: int
    credential: str
    journal: str
    next_node_id: int
    next_msg_id: int
    parent_present: bool
    parent_extended: bool
    parent_node: int
    perms_epoch: int
    invalidations: int
    announcing: tuple[int, int] | None
    announce_timer: int
    links: Map[Link, Session | None]
    plain: Map[Link, Plain]
    learnt: Map[int, Learnt]
    registry: Map[str, Registration]
    whitelist: Map[str, Entry]
    directory: Map[int, Route]
    perms: Map[int, Grant]
    pending: Map[int, Pending]
    neighbours: Map[int, Neighbour]
    owed: Map[tuple[int, Revoke], Owed]
    beaten: Map[str, str]
    homes: Map[str, int]
    link_of_node: Map[int, Link]
    node_of_device: Map[str, int]
    online_via: Map[int, OrderedIds]
    waiting: Map[Link, OrderedIds]
    queues: Map[tuple[Link | None, Link], OrderedIds]
    asking: Map[Subject, OrderedIds]
    asked: Map[tuple[Link, str | int | Action], OrderedIds]
    learnt_over: Map[Link, OrderedIds]
    dismissed: Map[tuple[Link | None, int], int]
    roster: OrderedIds
    roster_of_role: Map[str, OrderedIds]
    others: Others
    named_and_registered: frozenset[int]
    debts: Debts

    def __init__(self, policy: Policy, state: State) -> None:
        self.policy = policy
        self.before = state
        self.outputs: list[Output] = []
        self.cited: list[str] = []
        self.marks: list[int] = []
        self.changes: list[Change] = []
        self.unanswered: list[Pending] = []
        # One by one, because this is done for every step and a loop over names costs ten times as much.
        self.node_id = state.node_id
        self.credential = state.credential
        self.journal = state.journal
        self.next_node_id = state.next_node_id
        self.next_msg_id = state.next_msg_id
        self.parent_present = state.parent_present
        self.parent_extended = state.parent_extended
        self.parent_node = state.parent_node
        self.perms_epoch = state.perms_epoch
        self.invalidations = state.invalidations
        self.announcing = state.announcing
        self.announce_timer = state.announce_timer
        self.links = state.links
        self.plain = state.plain
        self.learnt = state.learnt
        self.registry = state.registry
        self.whitelist = state.whitelist
        self.directory = state.directory
        self.perms = state.perms
        self.pending = state.pending
        self.neighbours = state.neighbours
        self.owed = state.owed
        self.beaten = state.beaten
        self.homes = state.homes
        index = state.index
        self.link_of_node = index.link_of_node
        self.node_of_device = index.node_of_device
        self.online_via = index.online_via
        self.waiting = index.waiting
        self.queues = index.queues
        self.asking = index.asking
        self.asked = index.asked
        self.learnt_over = index.learnt_over
        self.dismissed = index.dismissed
        self.roster = index.roster
        self.roster_of_role = index.roster_of_role
        self.others = index.others
        self.named_and_registered = index.named_and_registered
        self.debts = index.debts

    def finish(self) -> Step:
        """The step as a value; the very same state if nothing changed."""
        state, index = self.before, self.before.index
        if self._scalars_differ(state):
            old, new = _scalars(state), _scalars(self)
            self.changes += compress(zip(_HUB, SCALARS, old, new, strict=True), map(ne, old, new))
        if self._index_differs(index):
            state = self._state(self._index())
        elif self.changes:
            state = self._state(index)
        cited = tuple(self.cited)
        rules = tuple(dict.fromkeys(cited))
        return Step(self.policy, state, tuple(self.outputs), rules, tuple(self.changes), cited, tuple(self.marks))

    # Written out, because this is done for every step: a loop over names costs three times as much, compiled ten times.

    def _state(self, index: Index) -> State:
        return State(
            self.node_id,
            self.credential,
            self.journal,
            self.next_node_id,
            self.next_msg_id,
            self.parent_present,
            self.parent_extended,
            self.parent_node,
            self.perms_epoch,
            self.invalidations,
            self.announcing,
            self.announce_timer,
            self.links,
            self.plain,
            self.learnt,
            self.registry,
            self.whitelist,
            self.directory,
            self.perms,
            self.pending,
            self.neighbours,
            self.owed,
            self.beaten,
            self.homes,
            index,
        )

    def _index(self) -> Index:
        return Index(
            self.link_of_node,
            self.node_of_device,
            self.online_via,
            self.waiting,
            self.queues,
            self.asking,
            self.asked,
            self.learnt_over,
            self.dismissed,
            self.roster,
            self.roster_of_role,
            self.others,
            self.named_and_registered,
            self.debts,
        )

    def _scalars_differ(self, state: State) -> bool:
        return (
            self.node_id != state.node_id
            or self.credential != state.credential
            or self.journal != state.journal
            or self.next_node_id != state.next_node_id
            or self.next_msg_id != state.next_msg_id
            or self.parent_present != state.parent_present
            or self.parent_extended != state.parent_extended
            or self.parent_node != state.parent_node
            or self.perms_epoch != state.perms_epoch
            or self.invalidations != state.invalidations
            or self.announcing != state.announcing
            or self.announce_timer != state.announce_timer
        )

    def _index_differs(self, index: Index) -> bool:
        return (
            self.link_of_node is not index.link_of_node
            or self.node_of_device is not index.node_of_device
            or self.online_via is not index.online_via
            or self.waiting is not index.waiting
            or self.queues is not index.queues
            or self.asking is not index.asking
            or self.asked is not index.asked
            or self.learnt_over is not index.learnt_over
            or self.dismissed is not index.dismissed
            or self.roster is not index.roster
            or self.roster_of_role is not index.roster_of_role
            or self.others is not index.others
            or self.named_and_registered is not index.named_and_registered
            or self.debts is not index.debts
        )

    # Output and evidence

    def cite(self, *rules: str) -> None:
        """Record that these rules decided something in this step."""
        self.cited += rules

    def emit(self, output: Output) -> None:
        """Do something, because of the rules that were cited before."""
        self.marks.append(len(self.cited))
        self.outputs.append(output)

    def note(self, rule: str, detail: str, link: Link | None = None, kind: NoteKind = NoteKind.DROPPED) -> None:
        """Write to the audit log, citing the rule that decided. Never pass a credential."""
        self.cite(rule)
        self.emit(Note(kind, rule, detail, link))

    def start_timer(self, timer: int, seconds: float) -> None:
        self.emit(StartTimer(timer, seconds))

    def cancel_timer(self, timer: int) -> None:
        self.emit(CancelTimer(timer))

    def take_msg_id(self) -> int:
        """A MsgID (and timer) of this hub's own; 0 and ids still pending are skipped when the counter wraps."""
        while True:
            msg_id = self.next_msg_id
            self.next_msg_id = 1 if msg_id == 0xFFFFFFFF else msg_id + 1
            if msg_id not in self.pending and msg_id != self.announce_timer:
                return msg_id

    # Tables. The three that change most write out what ``_put`` and ``_delete`` do: to find a table by its name costs
    # as much as to change it.

    def _put(self, table: str, key: Any, value: Any) -> None:
        current = getattr(self, table)
        old = current.get(key)
        if old is value:
            return
        setattr(self, table, current.set(key, value))
        self.changes.append((table, key, old, value))

    def _delete(self, table: str, key: Any) -> Any:
        current = getattr(self, table)
        old = current.get(key)
        if old is not None:
            setattr(self, table, current.delete(key))
            self.changes.append((table, key, old, None))
        return old

    def put_registration(self, device_id: str, registration: Registration) -> None:
        old = self.registry.get(device_id)
        if old is not registration:
            self.registry = self.registry.set(device_id, registration)
            self.changes.append(("registry", device_id, old, registration))
        if device_id in self.node_of_device:
            self._index_device(device_id)

    def put_entry(self, device_id: str, entry: Entry) -> None:
        old = self.whitelist.get(device_id)
        if old is not entry:
            self.whitelist = self.whitelist.set(device_id, entry)
            self.changes.append(("whitelist", device_id, old, entry))
        if device_id in self.node_of_device:
            self._index_device(device_id)

    def delete_entry(self, device_id: str) -> None:
        node_id = self.node_of(device_id)
        self._delete("whitelist", device_id)
        if node_id is not None and bound_node(self, device_id) != node_id:
            self.node_of_device = self.node_of_device.set(device_id, node_id)

    def put_beaten(self, device_id: str, credential: str) -> None:
        self._put("beaten", device_id, credential)

    def delete_beaten(self, device_id: str) -> None:
        self._delete("beaten", device_id)

    def put_home(self, device_id: str, hub: int) -> None:
        if self.homes.get(device_id) != hub:
            self._put("homes", device_id, hub)

    def put_neighbour(self, key: int, neighbour: Neighbour) -> None:
        self._put("neighbours", key, neighbour)

    def put_owed(self, key: int, message: Revoke, owed: Owed) -> None:
        """Owe a revoke, or give one that is owed another turn."""
        old = self.owed.get((key, message))
        self._put("owed", (key, message), owed)
        if old is not None:
            self._lose_turn(key, message, old.turn)
        debts = self.debts
        self.debts = Debts(
            _enlist(debts.turns, key, owed.turn),
            debts.at.set((key, owed.turn), message),
            _enlist(debts.about, (key, message.device_id), owed.turn),
        )

    def delete_owed(self, key: int, message: Revoke) -> None:
        self._lose_turn(key, message, self._delete("owed", (key, message)).turn)

    def _lose_turn(self, key: int, message: Revoke, turn: int) -> None:
        debts = self.debts
        self.debts = Debts(
            _strike(debts.turns, key, turn),
            debts.at.delete((key, turn)),
            _strike(debts.about, (key, message.device_id), turn),
        )

    # Links and sessions

    def open_link(self, link: Link) -> None:
        self.links = self.links.set(link, None)
        self.changes.append(("links", link, None, False))

    def forget_link(self, link: Link) -> None:
        """The link must have no session."""
        self.links = self.links.delete(link)
        self.changes.append(("links", link, False, None))
        if link in self.plain:
            self._delete("plain", link)

    def learn_node(self, node_id: int, link: Link) -> None:
        """From now on, frames for a node go to a plain child hub's link; too many make it forget the oldest."""
        if node_id in self.learnt:
            self.unlearn_node(node_id)
        others = self.learnt_over.get(link, EMPTY)
        if len(others) >= self.policy.learnt_limit:
            self.unlearn_node(next(iter(others)) & 0xFFFFFFFF)
        learnt = Learnt(link, (others.highest() >> 32) + 1 if others else 0)
        self._put("learnt", node_id, learnt)
        self.learnt_over = _enlist(self.learnt_over, link, learnt_rank(node_id, learnt))

    def unlearn_node(self, node_id: int) -> None:
        learnt: Learnt = self._delete("learnt", node_id)
        self.learnt_over = _strike(self.learnt_over, learnt.link, learnt_rank(node_id, learnt))

    def put_plain(self, link: Link, plain: Plain) -> None:
        self._put("plain", link, plain)

    def set_session(self, link: Link, session: Session | None) -> None:
        old = self.links[link]
        if old is not None and (session is None or session.node_id != old.node_id):
            self.link_of_node = self.link_of_node.delete(old.node_id)
        if session is not None:
            self.link_of_node = self.link_of_node.set(session.node_id, link)
        self.links = self.links.set(link, session)
        self.changes.append(("links", link, old or False, session or False))

    def session_of_node(self, node_id: int) -> tuple[Link, Session] | None:
        """Where the node has its session at this hub."""
        link = self.link_of_node.get(node_id)
        if link is None:
            return None
        session = self.links[link]
        assert session is not None
        return link, session

    def hub_link(self, node_id: int) -> Link | None:
        """The live link of a child hub."""
        found = self.session_of_node(node_id)
        return found[0] if found is not None and found[1].is_hub else None

    def close(self, link: Link) -> None:
        self.emit(Close(link))

    # Directory

    def put_route(self, node_id: int, route: Route) -> None:
        """Set a route. The node and the device must not be bound otherwise."""
        if node_id in self.learnt:
            self.unlearn_node(node_id)
        old = self.directory.get(node_id)
        if old is None:
            if bound_node(self, route.device_id) != node_id:
                self.node_of_device = self.node_of_device.set(route.device_id, node_id)
            if node_id not in self.roster:
                others = self.others
                self.others = Others(others.named.add(node_id), others.cached.discard(node_id), others.of_role)
        elif old.online:
            self._mark(old.via, node_id, online=False)
        if route.online:
            self._mark(route.via, node_id, online=True)
        self._set_route(node_id, old, route)

    def node_of(self, device_id: str) -> int | None:
        """The node under which the directory knows a device."""
        node_id = self.node_of_device.get(device_id)
        if node_id is None:
            bound = bound_node(self, device_id)
            route = self.directory.get(bound)
            if route is not None and route.device_id == device_id:
                return bound
        return node_id

    def forget_hearsay(self, device_id: str, node_id: int) -> None:
        """Before a binding is made, forget routes that other hubs announced against it."""
        for other in {self.node_of(device_id) or node_id, node_id}:
            route = self.directory.get(other)
            if route is None or (other == node_id and route.device_id == device_id):
                continue
            if route.online:
                self._mark(route.via, other, online=False)
            if route.device_id in self.node_of_device:
                self.node_of_device = self.node_of_device.delete(route.device_id)
            self._delete("directory", other)
            if other not in self.roster and other not in self.policy.named_nodes and other != self.node_id:
                named, cached = self.others.named.discard(other), self.others.cached
                cached = cached.add(other) if other in self.perms else cached
                self.others = Others(named, cached, self.others.of_role)

    def mark_offline(self, node_id: int) -> Route:
        """Keep where the node was last seen, but route nothing there."""
        old = self.directory[node_id]
        self._mark(old.via, node_id, online=False)
        route = Route(old.device_id, old.via, False)
        self._set_route(node_id, old, route)
        return route

    def _set_route(self, node_id: int, old: Route | None, route: Route) -> None:
        self.directory = self.directory.set(node_id, route)
        self.changes.append(("directory", node_id, old, route))

    def _index_device(self, device_id: str) -> None:
        """A device in the index has been bound: what the binding says need not be indexed any more."""
        if bound_node(self, device_id) == self.node_of_device[device_id]:
            self.node_of_device = self.node_of_device.delete(device_id)

    def _mark(self, via: int, node_id: int, *, online: bool) -> None:
        group = online_group(self.policy, via, node_id)
        if group is None:
            return
        members = self.online_via.get(group, EMPTY)
        members = members.add(node_id) if online else members.discard(node_id)
        if members:
            self.online_via = self.online_via.set(group, members)
        elif group in self.online_via:
            self.online_via = self.online_via.delete(group)

    # Pending requests

    def put_pending(self, msg_id: int, pending: Pending) -> None:
        self._set_pending(msg_id, pending)
        if pending.asker is not None:
            self.waiting = _enlist(self.waiting, pending.asker, msg_id)
        for queue in queues_of(pending):
            self.queues = _enlist(self.queues, queue, msg_id)
        for subject in subjects_of(pending):
            self.asking = _enlist(self.asking, subject, msg_id)
        for key in asked_keys(self, pending):
            self.asked = _enlist(self.asked, key, msg_id)
        if pending.purpose is Purpose.DISMISS:
            self.dismissed = self.dismissed.set((pending.asked, pending.node_id), msg_id)
        if pending.purpose is Purpose.REVOKE:
            self.start_timer(msg_id, self.policy.revoke_memory_seconds)
        elif pending.purpose is Purpose.PACE:
            self.start_timer(msg_id, 0.0)
        elif pending.purpose not in TIMELESS:
            self.cite("TIME-1")
            self.start_timer(msg_id, self.policy.request_seconds)

    def _set_pending(self, msg_id: int, pending: Pending) -> None:
        old = self.pending.get(msg_id)
        if old is not pending:
            self.pending = self.pending.set(msg_id, pending)
            self.changes.append(("pending", msg_id, old, pending))

    def mark_stale(self, msg_id: int) -> None:
        self._set_pending(msg_id, evolve(self.pending[msg_id], stale=True))

    def flag_pending(self, msg_id: int) -> None:
        """Set ``number`` to 1, for the purposes that have two states."""
        self._set_pending(msg_id, evolve(self.pending[msg_id], number=1))

    def take_pending(self, msg_id: int, *, fired: bool = False) -> Pending:
        """Forget a pending request, because it was answered or never will be."""
        pending = self.pending[msg_id]
        self.pending = self.pending.delete(msg_id)
        self.changes.append(("pending", msg_id, pending, None))
        if pending.asker is not None:
            self.waiting = _strike(self.waiting, pending.asker, msg_id)
        for queue in queues_of(pending):
            self.queues = _strike(self.queues, queue, msg_id)
        for subject in subjects_of(pending):
            self.asking = _strike(self.asking, subject, msg_id)
        for key in asked_keys(self, pending):
            self.asked = _strike(self.asked, key, msg_id)
        if pending.purpose is Purpose.DISMISS:
            self.dismissed = self.dismissed.delete((pending.asked, pending.node_id))
        if pending.purpose not in TIMELESS and not fired:
            self.cancel_timer(msg_id)
        return pending

    # Permissions

    def put_perms(self, node_id: int, grant: Grant) -> None:
        """Cache what another hub said of a node whose role this hub does not know by itself."""
        self.delete_perms(node_id)
        self._put("perms", node_id, grant)
        others = self.others
        cached = others.cached if node_id in others.named else others.cached.add(node_id)
        self.others = Others(others.named, cached, _enlist(others.of_role, grant.role, node_id))

    def clear_perms(self) -> None:
        """Forget every cached grant, at a cost that does not depend on how many there are."""
        if self.perms:
            self.changes.append(("perms", ALL, self.perms, None))
            self.perms, self.others = Map(), Others(self.others.named)

    def delete_perms(self, node_id: int) -> bool:
        """Forget a cached grant; whether there was one."""
        grant = self._delete("perms", node_id)
        if grant is None:
            return False
        others = self.others
        of_role = _strike(others.of_role, grant.role, node_id)
        self.others = Others(others.named, others.cached.discard(node_id), of_role)
        return True

    def enroll(self, node_id: int, role: str) -> None:
        """From now on this hub knows the role of a node by itself."""
        self.roster = self.roster.add(node_id)
        self.roster_of_role = _enlist(self.roster_of_role, role, node_id)
        if node_id in self.others.named:
            self.others = evolve(self.others, named=self.others.named.discard(node_id))


def _enlist(table: Map[Any, OrderedIds], key: Any, item: int) -> Map[Any, OrderedIds]:
    return table.set(key, table.get(key, EMPTY).add(item))


def _strike(table: Map[Any, OrderedIds], key: Any, item: int) -> Map[Any, OrderedIds]:
    left = table[key].discard(item) if key in table else EMPTY
    if left:
        return table.set(key, left)
    return table.delete(key) if key in table else table
