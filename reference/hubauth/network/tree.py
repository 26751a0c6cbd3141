"""A tree of hubs and devices in one immutable value, stepping one event at a time.

Every connection is two FIFO queues. Dropping one loses what is in flight; each end notices when it takes
the ``DOWN`` mark from its queue, so the two ends may notice at different times. Nothing happens by itself:
whoever drives the network chooses the next event, and so can reach every interleaving.
"""

from enum import Enum
from typing import TypeAlias

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, OperatorRevoke, Received, TimerFired
from hubauth.core.messages import Answer, Frame, Register, Revoke
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, Owed, Session, State
from hubauth.core.outputs import CancelTimer, Close, Send, StartTimer
from hubauth.core.policy import Policy
from hubauth.core.recovery import after_restart
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.network.history import History, HubHistory, Meant, Name, Revokes, follow, forget_links, said_first


class Mark(Enum):
    """What a queue may hold besides frames."""

    DOWN = "down"


Item: TypeAlias = Frame | Mark


class Way(Enum):
    """A direction on a connection."""

    UP = "up"
    DOWN = "down"


@frozen
class Connection:
    """A child (device or hub) connected to a hub. The parent knows it as the link of its own number."""

    child: Name
    parent: Name
    up: tuple[Item, ...] = ()
    down: tuple[Item, ...] = ()
    child_open: bool = True
    parent_open: bool = True


@frozen
class Happened:
    """One step that a hub took: what tests and invariants look at."""

    hub: Name
    before: State
    input: Input
    step: Step


@frozen
class Network:
    """Hubs, connections, and what devices have received.

    The last five fields are history: no hub reads them, the invariants that span hubs do.
    """

    policies: Map[Name, Policy]
    states: Map[Name, State]
    parents: Map[Name, Name]
    connections: Map[int, Connection] = field(factory=Map)
    next_connection: int = 1
    timers: Map[tuple[Name, int], float] = field(factory=Map)
    inboxes: Map[Name, tuple[Frame, ...]] = field(factory=Map)
    fresh: int = 1
    """The number of the next credential."""
    last: tuple[Happened, ...] = ()
    """The steps that the last event caused."""
    direct: Map[Name, frozenset[str]] = field(factory=Map)
    """hub -> devices that have ever had a session there."""
    revoked: frozenset[str] = frozenset()
    """Credentials that a broadcast revoke meant: what was stored anywhere when it was said, and what it found later."""
    admitted: Map[str, tuple[Name, str]] = field(factory=Map)
    """device_id -> hub and credential of its last admission, unless revoked or to be replaced since."""
    history: History = field(factory=History, eq=False, repr=False)
    """How it came to be: two networks that differ in nothing else behave alike."""


def build(hubs: dict[Name, tuple[Name | None, Policy]]) -> Network:
    """A network of hubs, each with its parent's name; nothing is connected yet. A hub's journal is its name."""
    return Network(
        policies=Map({name: policy for name, (_, policy) in hubs.items()}),
        states=Map({name: initial_state(policy, name) for name, (_, policy) in hubs.items()}),
        parents=Map({name: parent for name, (parent, _) in hubs.items() if parent is not None}),
    )


def credential(number: int) -> str:
    """The credential that the network issues under this number: well formed, and readable in a failing test."""
    return f"c{number:042d}"


# Events


def connect(network: Network, child: Name, parent: Name | None = None) -> Network:
    """A device connects to ``parent``, or a hub to its own parent."""
    at = parent or network.parents[child]
    number = network.next_connection
    network = evolve(
        network,
        connections=network.connections.set(number, Connection(child, at)),
        next_connection=number + 1,
        last=(),
    )
    network = feed(network, at, LinkUp(number))
    if child in network.states:
        return _also(network, feed(network, child, LinkUp(PARENT)))
    return network


def say(network: Network, number: int, frame: Frame) -> Network:
    """A device (or whatever plays one) puts a frame on its connection."""
    connection = network.connections[number]
    if isinstance(frame.body, Register) and frame.body.device_id in network.admitted:
        network = evolve(network, admitted=network.admitted.delete(frame.body.device_id))
    return evolve(network, connections=network.connections.set(number, _put(connection, Way.UP, frame)), last=())


def deliver(network: Network, number: int, way: Way) -> Network:
    """The next item on a connection arrives."""
    connection = network.connections[number]
    queue = connection.up if way is Way.UP else connection.down
    item, rest = queue[0], queue[1:]
    network = _set_connection(network, number, _queue(connection, way, rest))
    hub, link = (connection.parent, number) if way is Way.UP else (connection.child, PARENT)
    if item is Mark.DOWN:
        network = _close_end(network, number, way)
        return feed(network, hub, LinkDown(link)) if hub in network.states else evolve(network, last=())
    assert isinstance(item, Frame)
    if hub not in network.states:
        inbox = (*network.inboxes.get(hub, ()), item)
        return evolve(network, inboxes=network.inboxes.set(hub, inbox), last=())
    return feed(network, hub, Received(link, item, credential(network.fresh)))


def drop(network: Network, number: int) -> Network:
    """A connection breaks: what is in flight is lost, and each end will notice."""
    connection = network.connections[number]
    broken = evolve(
        connection,
        up=(Mark.DOWN,) if connection.parent_open else (),
        down=(Mark.DOWN,) if connection.child_open else (),
    )
    return evolve(_set_connection(network, number, broken), last=())


def hang_up(network: Network, number: int) -> Network:
    """A device closes its connection after what it has sent."""
    connection = network.connections[number]
    network = _set_connection(network, number, _put(connection, Way.UP, Mark.DOWN))
    return evolve(_close_end(network, number, Way.DOWN), last=())


def fire(network: Network, hub: Name, timer: int) -> Network:
    """A timer runs out."""
    network = evolve(network, timers=network.timers.delete((hub, timer)))
    return feed(network, hub, TimerFired(timer))


def restart(network: Network, hub: Name, found: State | None = None) -> Network:
    """A hub stops and begins again: every connection breaks, and nobody hears a word of it.

    It begins with what outlives it or, if its disk was lost or replaced meanwhile, with what it finds there.
    """
    for number, connection in sorted(network.connections.items()):
        if hub in (connection.child, connection.parent):
            network = drop(network, number)
            network = _close_end(network, number, Way.UP if connection.parent == hub else Way.DOWN)
    kept = {key: seconds for key, seconds in network.timers.items() if key[0] != hub}
    left = after_restart(network.policies[hub], network.states[hub] if found is None else found)
    history = network.history
    of_hub = forget_links(history.hubs.get(hub, HubHistory()))
    return evolve(
        network,
        timers=Map(kept),
        states=network.states.set(hub, left),
        history=evolve(history, hubs=history.hubs.set(hub, of_hub)),
        last=(),
    )


def feed(network: Network, hub: Name, happened: Input) -> Network:
    """Let one hub take one step and do what it asks for."""
    before = network.states[hub]
    done = step(network.policies[hub], before, happened)
    network = evolve(
        network,
        states=network.states.set(hub, done.state),
        last=(Happened(hub, before, happened, done),),
    )
    network = _remember(network, hub, before, happened, done)
    for output in done.outputs:
        match output:
            case Send(link, frame):
                network = _send(network, hub, link, frame)
            case Close(link):
                network = _close(network, hub, link)
            case StartTimer(timer, seconds):
                network = evolve(network, timers=network.timers.set((hub, timer), seconds))
            case CancelTimer(timer):
                if (hub, timer) in network.timers:
                    network = evolve(network, timers=network.timers.delete((hub, timer)))
            case _:
                pass
    return network


def waiting(network: Network) -> list[tuple[int, Way]]:
    """Every delivery that could come next."""
    return [
        (number, way)
        for number, connection in sorted(network.connections.items())
        for way, queue in ((Way.UP, connection.up), (Way.DOWN, connection.down))
        if queue
    ]


def connection_of(network: Network, child: Name) -> int | None:
    """The open connection of a device or child hub, the newest if there are several."""
    numbers = [
        number
        for number, connection in network.connections.items()
        if connection.child == child and connection.child_open and connection.parent_open
    ]
    return max(numbers, default=None)


# Inside


def _also(earlier: Network, later: Network) -> Network:
    return evolve(later, last=earlier.last + later.last)


def _queue(connection: Connection, way: Way, items: tuple[Item, ...]) -> Connection:
    return evolve(connection, up=items) if way is Way.UP else evolve(connection, down=items)


def _put(connection: Connection, way: Way, item: Item) -> Connection:
    if way is Way.UP:
        return evolve(connection, up=(*connection.up, item)) if connection.parent_open else connection
    return evolve(connection, down=(*connection.down, item)) if connection.child_open else connection


def _set_connection(network: Network, number: int, connection: Connection) -> Network:
    return evolve(network, connections=network.connections.set(number, connection))


def _close_end(network: Network, number: int, way: Way) -> Network:
    """The end that ``way`` leads to takes nothing more; with both ends closed the connection is gone."""
    connection = network.connections[number]
    if way is Way.UP:
        connection = evolve(connection, parent_open=False, up=())
    else:
        connection = evolve(connection, child_open=False, down=())
    if connection.parent_open or connection.child_open:
        return _set_connection(network, number, connection)
    return evolve(network, connections=network.connections.delete(number))


def _at(network: Network, hub: Name, link: Link) -> tuple[int, Way] | None:
    """The connection behind a hub's link, and the direction away from the hub."""
    if link != PARENT:
        return (link, Way.DOWN) if link in network.connections else None
    for number, connection in sorted(network.connections.items(), reverse=True):
        if connection.child == hub and connection.child_open:
            return number, Way.UP
    return None


def _send(network: Network, hub: Name, link: Link, frame: Frame) -> Network:
    found = _at(network, hub, link)
    if found is None:
        return network
    number, way = found
    return _set_connection(network, number, _put(network.connections[number], way, frame))


def _close(network: Network, hub: Name, link: Link) -> Network:
    found = _at(network, hub, link)
    if found is None:
        return network
    number, way = found
    network = _set_connection(network, number, _put(network.connections[number], way, Mark.DOWN))
    return _close_end(network, number, Way.UP if way is Way.DOWN else Way.DOWN)


def _remember(network: Network, hub: Name, before: State, happened: Input, done: Step) -> Network:
    """Keep the history that the invariants need."""
    history = network.history
    now = history.now + 1
    of_hub = follow(history.hubs.get(hub, HubHistory()), now, network.policies[hub], before, happened, done)
    history = evolve(history, now=now, hubs=history.hubs.set(hub, of_hub))
    network = _remember_revokes(evolve(network, history=history), hub, before, happened, done)
    for output in done.outputs if isinstance(happened, Received) else ():
        answer = output.frame.body if isinstance(output, Send) else None
        if isinstance(answer, Answer) and isinstance(happened, Received) and answer.credential == happened.fresh:
            issued = network.history.issued.set(answer.device_id, answer.credential)
            network = evolve(network, fresh=network.fresh + 1, history=evolve(network.history, issued=issued))
    for table, _, _, new in done.changes:
        if table == "links" and isinstance(new, Session):
            devices = network.direct.get(hub, frozenset()) | {new.device_id}
            network = evolve(network, direct=network.direct.set(hub, devices))
            entry = done.state.whitelist.get(new.device_id)
            if entry is not None:
                admitted = network.admitted.set(new.device_id, (hub, entry.credential))
                network = evolve(network, admitted=admitted)
    return network


def _remember_revokes(network: Network, hub: Name, before: State, happened: Input, done: Step) -> Network:
    """Follow each revoke on its way, and let it excuse only what whoever said it meant, once at each hub."""
    deleted = [(key, old) for table, key, old, new in done.changes if table == "whitelist" and new is None]
    owed = [(key, old, new) for table, key, old, new in done.changes if table == "owed"]
    unnumbered = [
        (output.link, output.frame.msg_id, output.frame.body)
        for output in done.outputs
        if isinstance(output, Send) and isinstance(output.frame.body, Revoke) and not output.frame.body.seq
    ]
    arrived = _arrived(network, hub, happened)
    if arrived is None and not (deleted or owed or unnumbered or isinstance(happened, OperatorRevoke)):
        return network
    revokes = network.history.revokes
    lost = {
        key: _carried(revokes, hub, _neighbour(network, hub, key[0]), old.turn) for key, old, new in owed if new is None
    }
    if arrived is not None:
        # What another hub of this tree sends on was said before: under a number nobody knows it means nothing.
        said = revokes.carried.get(arrived, frozenset())
    else:
        # A step that only sends what was owed before has revoked nothing, whatever it was about.
        acts = deleted or unnumbered or not all(_is_numbered(old, new) for _, old, new in owed)
        operates = isinstance(happened, OperatorRevoke)
        meant = said_first(before, happened, network.fresh) if acts or operates else None
        said = frozenset() if meant is None else frozenset({len(revokes.meant)})
        if meant is not None:
            if meant.everywhere:
                network = evolve(network, revoked=network.revoked | _stored(network, before, meant))
            revokes = evolve(revokes, meant=revokes.meant.set(len(revokes.meant), meant))
    for key, old, new in owed:
        if new is None:
            continue
        # What gets or loses its number was said before; what is owed anew takes over the part of its equal.
        to = _neighbour(network, hub, key[0])
        news = frozenset() if _is_numbered(old, new) else said
        before_it = _carried(revokes, hub, to, old.turn) if old is not None else frozenset()
        revokes = _carry(revokes, hub, to, new.turn, lost[key] if key in lost and old is None else news | before_it)
    for link, msg_id, message in unnumbered:
        session = before.links.get(link)
        key = (session.node_id if session is not None else PARENT_NEIGHBOUR, message)
        revokes = _carry(revokes, hub, _peer(network, hub, link), -msg_id, lost.get(key, said))
    met = revokes.met.get(hub, frozenset())
    if arrived is None or deleted or owed or unnumbered or _is_believed(before, happened):
        revokes = evolve(revokes, met=revokes.met.set(hub, met | said))
    network = evolve(network, history=evolve(network.history, revokes=revokes))
    for device_id, entry in deleted:
        for meant in (revokes.meant[revoke] for revoke in sorted(said - met)):
            if meant.means(device_id, entry):
                network = _excuse(network, hub, device_id, entry.credential, meant.everywhere)
    return network


def _is_numbered(old: Owed | None, new: Owed) -> bool:
    """Whether what waited has been sent."""
    return old is not None and old.turn >= FIRST_PLACE > new.turn


def _carried(revokes: Revokes, hub: Name, to: Name | None, turn: int) -> frozenset[int]:
    return revokes.carried.get((hub, to or "", turn), frozenset())


def _carry(revokes: Revokes, hub: Name, to: Name | None, turn: int, said: frozenset[int]) -> Revokes:
    """What is owed to a neighbour at this turn means this."""
    return revokes if to is None else evolve(revokes, carried=revokes.carried.set((hub, to, turn), said))


def _stored(network: Network, before: State, meant: Meant) -> set[str]:
    """The credentials that a revoke means, of all that any hub has when it is said: ``before`` where it is said."""
    return {
        entry.credential
        for state in (*network.states.values(), before)
        for device_id, entry in state.whitelist.items()
        if meant.means(device_id, entry)
    }


def _is_believed(before: State, happened: Input) -> bool:
    """Whether a hub's revoke came in as one; a hub that is taken for a device may be refused, and will say it again."""
    assert isinstance(happened, Received)
    session = before.links.get(happened.link)
    return happened.link == PARENT or (session is not None and session.is_hub)


def _arrived(network: Network, hub: Name, happened: Input) -> tuple[Name, Name, int] | None:
    """Which hub's revoke to which, and what it is known by between the two, if another hub's revoke has arrived."""
    if not isinstance(happened, Received) or not isinstance(happened.frame.body, Revoke):
        return None
    sender = _peer(network, hub, happened.link)
    return None if sender is None else (sender, hub, happened.frame.body.seq or -happened.frame.msg_id)


def _peer(network: Network, hub: Name, link: Link) -> Name | None:
    """The hub at the other end of a link."""
    if link == PARENT:
        return network.parents.get(hub)
    connection = network.connections.get(link)
    return connection.child if connection is not None and connection.child in network.states else None


def _neighbour(network: Network, hub: Name, key: int) -> Name | None:
    if key == PARENT_NEIGHBOUR:
        return network.parents.get(hub)
    return next((name for name, state in network.states.items() if state.node_id == key), None)


def _excuse(network: Network, hub: Name, device_id: str, credential: str, everywhere: bool) -> Network:
    """A credential was deleted as somebody meant it to be."""
    if everywhere:
        network = evolve(network, revoked=network.revoked | {credential})
    else:
        network = evolve(network, history=evolve(network.history, thinned=network.history.thinned | {credential}))
    where, admitted = network.admitted.get(device_id, ("", ""))
    if admitted == credential and (everywhere or where == hub):
        network = evolve(network, admitted=network.admitted.delete(device_id))
    return network
