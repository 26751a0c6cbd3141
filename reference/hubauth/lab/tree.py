"""A tree of hubs and devices in one immutable value, stepping one event at a time.

Every connection is two FIFO queues. Dropping one loses what is in flight; each end notices when it takes
the ``DOWN`` mark from its queue, so the two ends may notice at different times. Nothing happens by itself:
whoever drives the network chooses the next event, and so can reach every interleaving.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Protocol, TypeAlias

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, Received, TimerFired
from hubauth.core.messages import Answer, Frame
from hubauth.core.model import State
from hubauth.core.outputs import CancelTimer, Close, Output, Send, StartTimer
from hubauth.core.policy import Policy
from hubauth.core.recovery import after_restart
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.lab.history import History, HubHistory, Name, follow, forget_links
from hubauth.lab.observed import observe, setting_of
from hubauth.promises.events import Event
from hubauth.promises.monitor import Monitor


class QueueMark(Enum):
    """What a queue may hold besides frames."""

    DOWN = "down"


Item: TypeAlias = Frame | QueueMark


class Way(Enum):
    """A direction on a connection."""

    UP = "up"
    DOWN = "down"


@frozen
class TreeConnection:
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
    policy: Policy
    """The one that the step was given."""
    before: State
    input: Input
    step: Step


class Stranger(Protocol):
    """A hub of another kind: a value that is given what happened, and is followed by another one."""

    def take(self, happened: Input) -> "tuple[Stranger, tuple[Send, ...]]":
        """The hub after this, and what it sends."""
        ...


@frozen
class Network:
    """Hubs, connections, and what devices have received.

    The last three fields are history: no hub reads them.
    """

    policies: Map[Name, Policy]
    states: Map[Name, State]
    parents: Map[Name, Name]
    strangers: Map[Name, Stranger] = field(factory=Map)
    """Hubs of other kinds, which nobody watches: they are in ``parents`` and in no other table."""
    connections: Map[int, TreeConnection] = field(factory=Map)
    next_connection: int = 1
    timers: Map[tuple[Name, int], float] = field(factory=Map)
    inboxes: Map[Name, tuple[Frame, ...]] = field(factory=Map)
    fresh: int = 1
    """The number of the next credential."""
    last: tuple[Happened, ...] = ()
    """The steps that the last event caused."""
    history: History = field(factory=History, eq=False, repr=False)
    """What hubs were told about permissions. Two networks that differ in their history alone behave alike."""
    monitor: Monitor | None = field(default=None, eq=False, repr=False)
    """Whoever watches over the promises; None: nobody does."""


def build(hubs: dict[Name, tuple[Name | None, Policy]]) -> Network:
    """A network of hubs, each with its parent's name; nothing is connected yet, and the promises are watched.

    A hub's journal is its name.
    """
    policies = Map({name: policy for name, (_, policy) in hubs.items()})
    states = Map({name: initial_state(policy, name) for name, (_, policy) in hubs.items()})
    parents = Map({name: parent for name, (parent, _) in hubs.items() if parent is not None})
    settings = ((name, setting_of(policies, name, state)) for name, state in states.items())
    seen = [Event("configured", name, setting=setting) for name, setting in settings]
    return Network(policies, states, parents, monitor=Monitor().watch(seen))


def is_hub(network: Network, name: Name) -> bool:
    """Whether this is the name of a hub, ours or a stranger."""
    return name in network.states or name in network.strangers


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
        connections=network.connections.set(number, TreeConnection(child, at)),
        next_connection=number + 1,
        last=(),
    )
    network = feed(network, at, LinkUp(number))
    if is_hub(network, child):
        return _also(network, feed(network, child, LinkUp(PARENT)))
    return network


def say(network: Network, number: int, frame: Frame) -> Network:
    """The child end of a connection, usually a device, sends a frame."""
    connection = network.connections[number]
    return evolve(network, connections=network.connections.set(number, _put(connection, Way.UP, frame)), last=())


def deliver(network: Network, number: int, way: Way) -> Network:
    """The next item on a connection arrives."""
    connection = network.connections[number]
    queue = connection.up if way is Way.UP else connection.down
    item, rest = queue[0], queue[1:]
    network = _set_connection(network, number, _queue(connection, way, rest))
    hub, link = (connection.parent, number) if way is Way.UP else (connection.child, PARENT)
    if item is QueueMark.DOWN:
        network = _close_end(network, number, way)
        return feed(network, hub, LinkDown(link)) if is_hub(network, hub) else _rest(evolve(network, last=()))
    assert isinstance(item, Frame)
    if not is_hub(network, hub):
        inbox = (*network.inboxes.get(hub, ()), item)
        return _rest(evolve(network, inboxes=network.inboxes.set(hub, inbox), last=()))
    return feed(network, hub, Received(link, item, credential(network.fresh)))


def drop(network: Network, number: int) -> Network:
    """A connection breaks: what is in flight is lost, and each end will notice."""
    connection = network.connections[number]
    broken = evolve(
        connection,
        up=(QueueMark.DOWN,) if connection.parent_open else (),
        down=(QueueMark.DOWN,) if connection.child_open else (),
    )
    return evolve(_set_connection(network, number, broken), last=())


def hang_up(network: Network, number: int) -> Network:
    """A device closes its connection after what it has sent."""
    connection = network.connections[number]
    network = _set_connection(network, number, _put(connection, Way.UP, QueueMark.DOWN))
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
    network = evolve(
        network,
        timers=Map(kept),
        states=network.states.set(hub, left),
        history=evolve(history, hubs=history.hubs.set(hub, of_hub)),
        last=(),
    )
    return _show(network, [Event("restarted", hub)])


def feed(network: Network, hub: Name, happened: Input) -> Network:
    """Let one hub take one step and do what it asks for."""
    if hub in network.strangers:
        return _feed_stranger(network, hub, happened)
    before = network.states[hub]
    policy = network.policies[hub]
    done = step(policy, before, happened)
    network = evolve(
        network,
        states=network.states.set(hub, done.state),
        last=(Happened(hub, policy, before, happened, done),),
    )
    network = _remember(network, hub, before, happened, done)
    if done.policy is not policy:
        network = evolve(network, policies=network.policies.set(hub, done.policy))
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
    return _rest(network)


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


def _queue(connection: TreeConnection, way: Way, items: tuple[Item, ...]) -> TreeConnection:
    return evolve(connection, up=items) if way is Way.UP else evolve(connection, down=items)


def _put(connection: TreeConnection, way: Way, item: Item) -> TreeConnection:
    if way is Way.UP:
        return evolve(connection, up=(*connection.up, item)) if connection.parent_open else connection
    return evolve(connection, down=(*connection.down, item)) if connection.child_open else connection


def _set_connection(network: Network, number: int, connection: TreeConnection) -> Network:
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


def _feed_stranger(network: Network, hub: Name, happened: Input) -> Network:
    after, said = network.strangers[hub].take(happened)
    network = evolve(_count_issued(network, happened, said), strangers=network.strangers.set(hub, after), last=())
    for output in said:
        network = _send(network, hub, output.link, output.frame)
    return _rest(network)


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
    network = _set_connection(network, number, _put(network.connections[number], way, QueueMark.DOWN))
    return _close_end(network, number, Way.UP if way is Way.DOWN else Way.DOWN)


def _remember(network: Network, hub: Name, before: State, happened: Input, done: Step) -> Network:
    """Keep the history that the invariants need, and show the monitor what can be seen."""
    history = network.history
    now = history.now + 1
    of_hub = follow(history.hubs.get(hub, HubHistory()), now, network.policies[hub], before, happened, done)
    network = evolve(network, history=evolve(history, now=now, hubs=history.hubs.set(hub, of_hub)))
    network = _count_issued(network, happened, done.outputs)
    return _show(network, observe(network.policies, hub, before, happened, done))


def _count_issued(network: Network, happened: Input, outputs: Iterable[Output]) -> Network:
    if isinstance(happened, Received) and any(_issues(output, happened.fresh) for output in outputs):
        return evolve(network, fresh=network.fresh + 1)
    return network


def _issues(output: Output, fresh: str) -> bool:
    answer = output.frame.body if isinstance(output, Send) else None
    return isinstance(answer, Answer) and answer.credential == fresh


def _show(network: Network, events: Iterable[Event]) -> Network:
    return network if network.monitor is None else evolve(network, monitor=network.monitor.watch(events))


def _rest(network: Network) -> Network:
    """Tell the monitor if nothing is in flight and every hub is at its parent."""
    if network.monitor is None or not is_settled(network):
        return network
    return _show(network, [Event("quiet" if network.timers else "idle")])


def is_settled(network: Network) -> bool:
    """Whether nothing is in flight or left to announce, and every hub's parent is present and takes it for a hub."""
    if waiting(network) or any(state.announcing is not None for state in network.states.values()):
        return False
    return all(network.states[name].parent_present and not _is_plain_device(network, name) for name in network.parents)


def _is_plain_device(network: Network, name: Name) -> bool:
    """Whether a hub's parent has admitted it as a device: nothing it says of others is believed there."""
    above, node_id = network.states[network.parents[name]], network.states[name].node_id
    link = above.index.link_of_node.get(node_id)
    session = above.links[link] if link is not None else None
    return session is not None and not session.is_hub
