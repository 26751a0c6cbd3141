"""tla/ABSTRACTION.md in Python: what a network looks like to HubAuth.tla.

A hub's ``device_id`` must be its name in the model.
"""

from collections.abc import Mapping

from attrs import evolve, frozen

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Ext,
    Frame,
    HubDismiss,
    HubFence,
    HubOnline,
    Reason,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, Neighbour, Pending, Purpose, Registration, State
from hubauth.lab.tree import Item, Network, QueueMark, TreeConnection, credential
from model_tests.equivalence.constants import as_function, as_names, as_number, as_numbers
from model_tests.equivalence.values import Value, function, record

CODES = {Reason.OK: "ok", Reason.NOT_ADMITTED: "no", Reason.PROTECTED: "no", Reason.UNREACHABLE: "away"}
KINDS = {Purpose.REGISTER: "reg", Purpose.AUTHENTICATE: "auth", Purpose.CONFIRM: "confirm"}
RELAYED = {Action.ASSIST_REGISTER: "relayReg", Action.ASSIST_AUTHENTICATE: "relayAuth"}
GIVEN_UP = {Action.ASSIST_REGISTER: "reg", Action.ASSIST_AUTHENTICATE: "auth"}
CLOSED = record(dev="closed", node=0)
IDLE = record(dev="", node=0)
NO_ROUTE = record(dev="", via=0, on=False)

Ports = Mapping[int, str]
"""The port of every connection, by its number."""


@frozen
class TreeConstants:
    """The constants of a model that the map needs."""

    root: str
    node_of: Mapping[str, int]
    parent_of: Mapping[str, str]
    owner: Mapping[str, str]
    """Hub port -> the child hub whose it is."""
    devices: tuple[str, ...]
    sockets: tuple[str, ...]
    first_node: int
    nodes: tuple[int, ...]
    """What directories list."""
    track_hubs: bool
    after_revoke: bool

    def ports(self, name: str) -> list[str]:
        """The ends of connections that a hub may see."""
        return [*(port for port, child in self.owner.items() if self.parent_of[child] == name), *self.sockets]

    def neighbours(self, name: str) -> dict[str, int]:
        """Neighbouring hubs by the name and the key they have here."""
        children = {child: self.node_of[child] for child, parent in self.parent_of.items() if parent == name}
        return children if name == self.root else {**children, "up": 0}


def read_shape(constants: dict[str, Value]) -> TreeConstants:
    """What the constants of a configuration say of it."""
    return TreeConstants(
        root=str(constants["Root"]),
        node_of={str(name): as_number(node) for name, node in as_function(constants["NodeOf"])},
        parent_of={str(name): str(parent) for name, parent in as_function(constants["ParentOf"])},
        owner={str(port): str(child) for port, child in as_function(constants["Owner"])},
        devices=as_names(constants["Devices"]),
        sockets=as_names(constants["Sockets"]),
        first_node=as_number(constants["FirstNode"]),
        nodes=as_numbers(constants["Nodes"]),
        track_hubs=constants["TrackHubs"] is True,
        after_revoke=constants["AfterRevoke"] is True,
    )


def number_of(issued: str) -> int:
    """The number of a credential that the network issued; 0 for none."""
    number = int(issued[1:]) if issued else 0
    assert not issued or issued == credential(number)
    return number


# Frames without effect


def strip(shape: TreeConstants, network: Network) -> Network:
    """Take out of the queues between hubs what changes nothing wherever it arrives."""
    for number, connection in network.connections.items():
        if connection.child in shape.sockets or not (connection.up or connection.down):
            continue
        above, below = network.states.get(connection.parent), network.states.get(connection.child)
        up = tuple(item for item in connection.up if _matters(shape, above, item))
        down = tuple(item for item in connection.down if _matters(shape, below, item))
        if (len(up), len(down)) != (len(connection.up), len(connection.down)):
            kept = evolve(connection, up=up, down=down)
            network = evolve(network, connections=network.connections.set(number, kept))
    return network


def _matters(shape: TreeConstants, receiver: State | None, item: Item) -> bool:
    if isinstance(item, QueueMark):
        return True
    body = item.body
    if isinstance(body, Answer):
        if body.action in (Action.REVOKE, Action.ASSIST_OFFLINE):
            return False
        return body.action is not Action.HUB_DISMISS or (receiver is not None and item.msg_id in receiver.pending)
    if isinstance(body, HubOnline | HubDismiss | AssistOffline) and not shape.track_hubs:
        return body.node_id not in shape.node_of.values()
    return True


# One hub


def hub_value(shape: TreeConstants, state: State, name: str, ports: Ports) -> Value:
    """``hub[name]``."""
    link_of = {ports[link]: link for link in state.links if link != PARENT}
    queries: list[Value] = []
    fences: set[Value] = set()
    dismissed: set[Value] = set()
    for msg_id in sorted(state.pending):
        pending = state.pending[msg_id]
        if pending.purpose is Purpose.FENCE:
            fences.add((_port(ports, pending.asked), pending.number))
        elif pending.purpose is Purpose.DISMISS:
            dismissed.add((_port(ports, pending.asked), pending.node_id))
        elif pending.purpose not in (Purpose.SELF_AUTHENTICATE, Purpose.SENT):
            queries.append(_query(ports, pending))
    return record(
        journal=_journal(state.journal),
        present=state.parent_present,
        links=function({port: _link(state, link_of.get(port)) for port in shape.ports(name)}),
        reg=function({device: _registration(shape, state, device) for device in shape.devices}),
        next=max(state.next_node_id, shape.first_node),
        wl=function({device: _entry(state, device) for device in shape.devices}),
        dir=function({node_id: _route(state, node_id) for node_id in shape.nodes}),
        home=function({device: state.homes.get(device, 0) for device in shape.devices}),
        pend=tuple(queries),
        fences=frozenset(fences),
        dismissed=frozenset(dismissed),
        nb=function({key: _neighbour(state, number) for key, number in shape.neighbours(name).items()}),
    )


def another_journal(name: str, number: int) -> str:
    """The journal with this number of a hub; the first, which the network gives it, is its name alone."""
    return f"{name}-{number}"


def _journal(journal: str) -> Value:
    if not journal:
        return ()
    name, _, number = journal.partition("-")
    return (name, int(number or "1"))


def _ext(ext: Ext) -> Value:
    return record(journal=_journal(ext.journal), peer=_journal(ext.peer), handled=ext.handled)


def _port(ports: Ports, link: Link | None) -> str:
    assert link is not None
    return "up" if link == PARENT else ports[link]


def _link(state: State, link: Link | None) -> Value:
    if link is None:
        return CLOSED
    session = state.links[link]
    return IDLE if session is None else record(dev=session.device_id, node=session.node_id)


def _registration(shape: TreeConstants, state: State, device: str) -> Value:
    known = state.registry.get(device, Registration(0))
    return record(node=known.node_id, revoked=known.revoked and shape.after_revoke, confirmed=known.confirmed)


def _entry(state: State, device: str) -> Value:
    entry = state.whitelist.get(device)
    return record(node=entry.node_id, cred=number_of(entry.credential)) if entry else record(node=0, cred=0)


def _route(state: State, node_id: int) -> Value:
    route = state.directory.get(node_id)
    return NO_ROUTE if route is None else record(dev=route.device_id, via=route.via, on=route.online)


def _query(ports: Ports, pending: Pending) -> Value:
    kinds = {Purpose.RELAY: RELAYED, Purpose.UNHEARD: GIVEN_UP}.get(pending.purpose)
    return record(
        kind=KINDS[pending.purpose] if kinds is None else kinds[pending.action],
        op=pending.trace_id,
        asked=_port(ports, pending.asked),
        asker="" if pending.asker is None else _port(ports, pending.asker),
        dev=pending.device_id,
        cred=number_of(pending.credential),
        climbs=pending.climbs,
        missed=pending.missed,
        ended=pending.purpose is Purpose.UNHEARD and pending.number == 1,
    )


def _neighbour(state: State, key: int) -> Value:
    known = state.neighbours.get(key, Neighbour())
    here = state.parent_present if key == PARENT_NEIGHBOUR else key in state.index.link_of_node
    link = PARENT if key == PARENT_NEIGHBOUR else state.index.link_of_node.get(key)
    told = [one for one in state.pending.values() if one.purpose is Purpose.SENT and one.asked == link]
    rows = sorted((owed.turn, message) for (to, message), owed in state.owed.items() if to == key)
    return record(
        journal=_journal(known.journal),
        said=frozenset(_revoke(Revoke(one.device_id, one.node_id, one.credential)) for one in told),
        sent=known.sent,
        handled=known.handled,
        owed=frozenset(record(m=_revoke(message), num=turn) for turn, message in rows if turn < FIRST_PLACE),
        wait=tuple(_revoke(message) for turn, message in rows if turn >= FIRST_PLACE),
        written=known.written if here else 0,
        batch=known.batch if here else 0,
    )


def _revoke(message: Revoke) -> Value:
    return record(dev=message.device_id, node=message.node_id, cred=number_of(message.credential))


# Connections between hubs


def queue_value(network: Network, connection: TreeConnection, way: str) -> Value:
    """``up[c]`` or ``down[c]``."""
    queue = connection.up if way == "up" else connection.down
    if not queue:
        return ()
    above, below = network.states.get(connection.parent), network.states.get(connection.child)
    sender, receiver = (below, above) if way == "up" else (above, below)
    return tuple(_frame(item, sender, receiver) for item in queue)


def _frame(item: Item, sender: State | None, receiver: State | None) -> Value:
    assert isinstance(item, Frame)
    match item.body:
        case Authenticate(ext=ext):
            return record(t="join") if ext is None else record(t="join", ext=_ext(ext))
        case Answer(action=Action.AUTHENTICATE, reason=Reason.OK, ext=ext):
            return record(t="joined") if ext is None else record(t="joined", ext=_ext(ext))
        case AssistRegister(device):
            return record(t="reg", op=item.trace_id, dev=device)
        case HubOnline(device, node_id):
            return record(t="hub_online", dev=device, node=node_id)
        case AssistAuthenticate(device, presented):
            return record(t="auth", op=item.trace_id, dev=device, cred=number_of(presented))
        case HubFence():
            return record(t="hub_fence", num=_pending(sender, item).number)
        case Answer(action=Action.HUB_FENCE):
            return record(t="fenceAns", num=_pending(receiver, item).number)
        case HubDismiss(device, node_id):
            return record(t="hub_dismiss", dev=device, node=node_id)
        case Answer(action=Action.HUB_DISMISS):
            return record(t="dismissAns", node=_pending(receiver, item).node_id)
        case AssistOffline(device, node_id):
            return record(t="off", dev=device, node=node_id)
        case Answer() as answer:
            return answer_value(answer, item.trace_id)
        case Revoke() as message:
            return record(
                t="rev",
                seq=message.seq,
                dev=message.device_id,
                node=message.node_id,
                cred=number_of(message.credential),
            )
    raise AssertionError(f"the model has no such frame: {item}")


def _pending(hub: State | None, frame: Frame) -> Pending:
    assert hub is not None, "the extension on a plain link"
    return hub.pending[frame.msg_id]


def answer_value(answer: Answer, op: int) -> Value:
    """The answer to a registration or a search, to a hub or to a device."""
    return record(
        t="regAns" if answer.action in (Action.REGISTER, Action.ASSIST_REGISTER) else "authAns",
        op=op,
        code=CODES[answer.reason],
        dev=answer.device_id,
        node=answer.node_id,
        cred=number_of(answer.credential),
    )
