"""The behaviours of a model of HubAuth.tla, with the real core taking every step."""

from collections.abc import Iterator

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Action, Answer, Authenticate, Frame, Offline, Reason, Register, Revoke
from hubauth.core.model import Purpose
from hubauth.core.model import State as HubState
from hubauth.core.policy import Dialect, Policy, Provisioned, Reregister
from hubauth.core.recovery import after_restart
from hubauth.lab import tree
from hubauth.lab.history import History
from hubauth.lab.plain import PlainHub
from hubauth.lab.tree import Network, Way
from model_tests.equivalence.constants import as_names, as_number, as_record, as_records, as_triples
from model_tests.equivalence.machine import Event, SharedValues, State
from model_tests.equivalence.plain_stranger import PlainStranger, plain_value, session_on
from model_tests.equivalence.tree_abstraction import (
    another_journal,
    answer_value,
    hub_value,
    number_of,
    queue_value,
    read_shape,
    strip,
)
from model_tests.equivalence.values import Value, function, record

CONSTANTS = (
    *("Root", "ParentOf", "NodeOf", "Authority", "Owner", "Devices", "Sockets", "Uses", "Online", "FirstNode", "Nodes"),
    *("PlainHubs", "PlainHabits"),
    *("AfterRevoke", "TrackHubs", "Registers", "Authentications", "Offlines", "SocketDrops", "HubDrops", "Restarts"),
    *("Revokes", "Timeouts", "Losses", "Backups", "Restores", "DropAt", "NoticeLate", "LateEnd", "RestartAt"),
    *("RevokeAt", "TimeoutAt", "LossAt", "RestoreAt", "Batch", "RevokeKinds", "Probing"),
)
"""What the machine has to know of a configuration."""

ACTIONS = (
    *("DeviceRegisters", "DeviceAuthenticates", "DeviceLeaves", "DeviceProbes", "SocketBreaks", "HubLinkDrops"),
    *("HubLinkDropsSilently", "ParentNoticesLate", "HubLinkDropsUnseen", "ChildNoticesLate", "HubReconnects"),
    *("HubRestarts", "HubBeginsAnew", "HubIsBackedUp", "HubIsRestored", "OperatorRevokes", "RequestTimesOut"),
    *("FrameGoesUp", "FrameGoesDown"),
)
"""Everything that can happen in HubAuth.tla."""

PLAIN_ACTIONS = (
    *("DeviceRegisters", "DeviceAuthenticates", "HubLinkDrops", "HubReconnects", "OperatorRevokes"),
    *("RequestTimesOut", "FrameGoesUp", "FrameGoesDown"),
)
"""What happens next to hubs that know only the documents."""

_BUDGETS = {
    "reg": "Registers",
    "auth": "Authentications",
    "off": "Offlines",
    "gone": "SocketDrops",
    "cut": "HubDrops",
    "restart": "Restarts",
    "rev": "Revokes",
    "late": "Timeouts",
    "lose": "Losses",
    "save": "Backups",
    "restore": "Restores",
}
_SITES = ("DropAt", "RestartAt", "RevokeAt", "TimeoutAt", "LossAt", "RestoreAt")
_REQUESTS = (Purpose.REGISTER, Purpose.AUTHENTICATE, Purpose.RELAY, Purpose.CONFIRM)


@frozen
class TreeWorld:
    """A network and the history that the model keeps beside it."""

    network: Network
    left: Map[str, int]
    ports: Map[int, str] = field(factory=Map)
    """The port of every connection; a connection is known by its number."""
    got: Map[str, frozenset[int]] = field(factory=Map)
    given: tuple[str, ...] = ()
    asked: Map[str, frozenset[int]] = field(factory=Map)
    backups: Map[str, HubState] = field(factory=Map)
    """What hubs would begin with again, had they stopped when they were backed up."""
    state: State = ()
    received: tuple[tuple[str, Frame], ...] = ()
    """What devices have received in the last event."""


class TreeMachine:
    """HubAuth.tla with these constants."""

    def __init__(self, constants: dict[str, Value], table: SharedValues) -> None:
        self.table = table
        self.history: frozenset[str] = frozenset()
        self.without_history: dict[str, str] = {}
        self.divided = frozenset(["hub", "up", "down", "backup"])
        self._constants = constants
        self._shape = read_shape(constants)
        self._uses = sorted(as_triples(constants["Uses"]))
        self._sites = {name: set(as_names(constants[name])) for name in _SITES}
        self._plain, self._habits = as_names(constants["PlainHubs"]), as_names(constants["PlainHabits"])
        self._budget = Map({short: as_number(constants[name]) for short, name in _BUDGETS.items()})
        self._hubs, self._children = sorted(self._shape.node_of), sorted(self._shape.parent_of)
        self.parts = (
            *(f"hub[{name}]" for name in self._hubs),
            *(f"{way}[{child}]" for way in ("up", "down") for child in self._children),
            *("uplink", "given", "asked", "got", "left"),
            *(f"backup[{name}]" for name in sorted(self._sites["RestoreAt"])),
        )

    # The start

    def start(self) -> TreeWorld:
        """All hubs have joined, and the devices that the model wants online have registered."""
        world = TreeWorld(self._build(), self._budget)
        world = evolve(world, state=self._abstract(world, world))
        for child in sorted(self._children, key=self._depth):
            port = min(port for port, owner in self._shape.owner.items() if owner == child)
            world = self._drain(self._connect(world, child, port))
        for socket, hub, device in as_triples(self._constants["Online"]):
            world = self._drain(self._request(world, socket, hub, Register(device), 0))
        for hub in sorted(self._sites["RestoreAt"]):
            world = self._back_up(world, hub)
        return world

    def _depth(self, name: str) -> int:
        return 0 if name == self._shape.root else self._depth(self._shape.parent_of[name]) + 1

    def _build(self) -> Network:
        shape, authority = self._shape, str(self._constants["Authority"])
        hubs: dict[str, tuple[str | None, Policy]] = {}
        for name, node_id in shape.node_of.items():
            if name in self._plain:
                continue
            children = [child for child, parent in shape.parent_of.items() if parent == name]
            hubs[name] = (
                shape.parent_of.get(name),
                Policy(
                    device_id=name,
                    node_id=node_id,
                    credential="" if name == shape.root else _secret(name),
                    has_parent=name != shape.root,
                    authority=0 if authority == shape.root else shape.node_of[authority],
                    dialect=Dialect.LOGIN,
                    first_node_id=shape.first_node,
                    reregister=Reregister.AFTER_REVOKE if shape.after_revoke else Reregister.OPEN,
                    role_perms=Map({"hub": ("auth.assist",)}),
                    revoke_batch=as_number(self._constants["Batch"]),
                    provisioned=tuple(
                        Provisioned(child, shape.node_of[child], _secret(child), "hub") for child in children
                    ),
                ),
            )
        strangers = Map({name: self._stranger(name) for name in self._plain})
        parents = Map(shape.parent_of)
        return evolve(tree.build(hubs), parents=parents, strangers=strangers, monitor=None)

    def _stranger(self, name: str) -> PlainStranger:
        """A hub that knows only the documents."""
        shape = self._shape
        children = {child: shape.node_of[child] for child, parent in shape.parent_of.items() if parent == name}
        machine = PlainHub(
            fresh=str,
            dialect="login",
            device_id=name,
            node_id=shape.node_of[name],
            has_parent=name != shape.root,
            joins=name != shape.root,
            credential=_secret(name),
            msg_id="echo" if "ids" in self._habits else "zero",
            echoes="echo" in self._habits,
            terse="terse" in self._habits,
            hub_devices=tuple(children),
            first_node_id=shape.first_node,
            nodes=children,
            whitelist={child: (node_id, _secret(child)) for child, node_id in children.items()},
        )
        return PlainStranger(machine)

    def _drain(self, world: TreeWorld) -> TreeWorld:
        while waiting := tree.waiting(world.network):
            world = self._settle(world, tree.deliver(world.network, *waiting[0]))
        return world

    # What may happen

    def events(self, world: TreeWorld) -> Iterator[Event]:
        left, op = world.left, self._next_op(world)
        yield from self._arrivals(world)
        for socket, hub, device in self._usable(world):
            if left["reg"]:
                yield "DeviceRegisters", socket, hub, device, op
            if left["auth"]:
                for number in self._presentable(world, hub, device):
                    yield "DeviceAuthenticates", socket, hub, device, number, op
        yield from self._devices_go(world)
        yield from self._links_change(world)
        yield from self._hubs_act(world)

    def _presentable(self, world: TreeWorld, hub: str, device: str) -> list[int]:
        """The credentials that a device may present; 0 is none."""
        nothing = [0] if hub in self._plain and "empty" in self._habits else []
        return [*nothing, *sorted(world.got.get(device, frozenset()))]

    def _next_op(self, world: TreeWorld) -> int:
        return 1 + sum(self._budget[what] - world.left[what] for what in ("reg", "auth"))

    def _arrivals(self, world: TreeWorld) -> Iterator[Event]:
        for connection in world.network.connections.values():
            if connection.child in self._children and connection.child_open and connection.parent_open:
                if connection.up:
                    yield "FrameGoesUp", connection.child
                if connection.down:
                    yield "FrameGoesDown", connection.child

    def _usable(self, world: TreeWorld) -> Iterator[tuple[str, str, str]]:
        where = {connection.child: connection.parent for connection in world.network.connections.values()}
        for socket, hub, device in self._uses:
            if where.get(socket, hub) == hub:
                yield socket, hub, device

    def _devices_go(self, world: TreeWorld) -> Iterator[Event]:
        for number, connection in world.network.connections.items():
            if connection.child not in self._shape.sockets:
                continue
            session = _session(world, connection.parent, number)
            if session is not None and world.left["off"]:
                yield "DeviceLeaves", connection.child, connection.parent
            if world.left["gone"]:
                yield "SocketBreaks", connection.child, connection.parent
            if session is None and self._constants["Probing"]:
                yield "DeviceProbes", connection.child, connection.parent

    def _links_change(self, world: TreeWorld) -> Iterator[Event]:
        open_ends = {
            connection.child: number
            for number, connection in world.network.connections.items()
            if connection.child_open
        }
        late = self._constants["LateEnd"] if self._constants["NoticeLate"] else ""
        for child in self._children:
            if child not in open_ends:
                for port, owner in self._shape.owner.items():
                    if owner == child and port not in world.ports.values():
                        yield "HubReconnects", child, port
            elif not world.network.connections[open_ends[child]].parent_open:
                yield "ChildNoticesLate", child
            elif child in self._sites["DropAt"] and world.left["cut"]:
                yield "HubLinkDrops", child
                if late == "parent":
                    yield "HubLinkDropsSilently", child
                elif late and world.network.states[child].parent_present:
                    yield "HubLinkDropsUnseen", child
        for number, connection in world.network.connections.items():
            if not connection.child_open:
                yield "ParentNoticesLate", world.ports[number]

    def _hubs_act(self, world: TreeWorld) -> Iterator[Event]:
        for hub in self._hubs:
            if hub in self._sites["RestartAt"] and world.left["restart"]:
                yield "HubRestarts", hub
            if hub in self._sites["LossAt"] and world.left["lose"]:
                yield "HubBeginsAnew", hub
            if hub in self._sites["RestoreAt"] and world.left["save"]:
                yield "HubIsBackedUp", hub
            if hub in self._sites["RestoreAt"] and world.left["restore"]:
                yield "HubIsRestored", hub
            if hub in self._sites["RevokeAt"] and world.left["rev"]:
                for device in self._shape.devices:
                    yield from (("OperatorRevokes", hub, device, number) for number in self._revocable(world, device))
            if hub in self._sites["TimeoutAt"] and world.left["late"]:
                for pending in world.network.states[hub].pending.values():
                    if pending.purpose in _REQUESTS:
                        yield "RequestTimesOut", hub, pending.trace_id

    def _revocable(self, world: TreeWorld, device: str) -> list[int]:
        """The credentials that an operator may name; 0 is all of them."""
        kinds = as_names(self._constants["RevokeKinds"])
        one = sorted(world.got.get(device, frozenset())) if "one" in kinds else []
        return [*([0] if "all" in kinds else []), *one]

    # What happens then

    def apply(self, world: TreeWorld, event: Event) -> TreeWorld:
        match event:
            case ("FrameGoesUp" | "FrameGoesDown" as name, str(child)):
                way = Way.UP if name == "FrameGoesUp" else Way.DOWN
                return self._settle(world, tree.deliver(world.network, _connected(world, child), way))
            case ("DeviceRegisters", str(socket), str(hub), str(device), int(op)):
                return self._request(_spend(world, "reg"), socket, hub, Register(device), op)
            case ("DeviceAuthenticates", str(socket), str(hub), str(device), int(number), int(op)):
                request = Authenticate(device, tree.credential(number) if number else "")
                return self._request(_spend(world, "auth"), socket, hub, request, op)
            case ("DeviceLeaves", str(socket), str(hub)):
                return self._leave(_spend(world, "off"), socket, hub)
            case ("SocketBreaks", str(socket), _):
                return self._break(_spend(world, "gone"), _connected(world, socket), (Way.UP, Way.DOWN))
            case ("DeviceProbes", str(socket), _):
                return self._say(world, socket, Frame(Offline("")))
            case ("HubLinkDrops", str(child)):
                return self._break(_spend(world, "cut"), _connected(world, child), (Way.UP, Way.DOWN))
            case ("HubLinkDropsSilently", str(child)):
                return self._break(_spend(world, "cut"), _connected(world, child), (Way.DOWN,))
            case ("HubLinkDropsUnseen", str(child)):
                return self._break(_spend(world, "cut"), _connected(world, child), (Way.UP,))
            case ("ChildNoticesLate", str(child)):
                return self._settle(world, tree.deliver(world.network, _connected(world, child), Way.DOWN))
            case ("ParentNoticesLate", str(port)):
                number = next(number for number, known in world.ports.items() if known == port)
                return self._settle(world, tree.deliver(world.network, number, Way.UP))
            case ("HubReconnects", str(child), str(port)):
                return self._connect(world, child, port)
            case ("HubRestarts", str(hub)):
                return self._restart(_spend(world, "restart"), hub)
            case ("HubBeginsAnew", str(hub)):
                journal = another_journal(hub, 2 + self._budget["lose"] - world.left["lose"])
                return self._restart(_spend(world, "lose"), hub, initial_state(world.network.policies[hub], journal))
            case ("HubIsBackedUp", str(hub)):
                return self._back_up(_spend(world, "save"), hub)
            case ("HubIsRestored", str(hub)):
                return self._restart(_spend(world, "restore"), hub, world.backups[hub])
            case ("OperatorRevokes", str(hub), str(device), int(number)):
                revoke = Revoke(device, 0, tree.credential(number) if number else "")
                return self._settle(_spend(world, "rev"), tree.feed(world.network, hub, OperatorRevoke(revoke)))
            case ("RequestTimesOut", str(hub), int(op)):
                (msg_id,) = [
                    msg_id
                    for msg_id, pending in world.network.states[hub].pending.items()
                    if pending.purpose in _REQUESTS and pending.trace_id == op
                ]
                return self._settle(_spend(world, "late"), tree.fire(world.network, hub, msg_id))
        raise AssertionError(f"no such event: {event}")

    def _connect(self, world: TreeWorld, child: str, port: str, parent: str | None = None) -> TreeWorld:
        number = world.network.next_connection
        network = tree.connect(world.network, child, parent)
        return self._settle(evolve(world, ports=world.ports.set(number, port)), network)

    def _request(self, world: TreeWorld, socket: str, hub: str, body: Register | Authenticate, op: int) -> TreeWorld:
        if socket not in world.ports.values():
            world = self._connect(world, socket, socket, hub)
        asking = evolve(world, asked=world.asked.set(socket, world.asked.get(socket, frozenset()) | {op}))
        return self._say(asking, socket, Frame(body, msg_id=op, trace_id=op))

    def _say(self, world: TreeWorld, socket: str, frame: Frame) -> TreeWorld:
        number = _connected(world, socket)
        return self._settle(world, tree.deliver(tree.say(world.network, number, frame), number, Way.UP))

    def _leave(self, world: TreeWorld, socket: str, hub: str) -> TreeWorld:
        session = _session(world, hub, _connected(world, socket))
        assert session is not None
        return self._say(world, socket, Frame(Offline(*session), source=session[1]))

    def _break(self, world: TreeWorld, number: int, noticed: tuple[Way, ...]) -> TreeWorld:
        network = tree.drop(world.network, number)
        for way in noticed:
            network = tree.deliver(network, number, way)
        return self._settle(world, network)

    def _back_up(self, world: TreeWorld, hub: str) -> TreeWorld:
        lasting = after_restart(world.network.policies[hub], world.network.states[hub])
        return self._settle(evolve(world, backups=world.backups.set(hub, lasting)), world.network)

    def _restart(self, world: TreeWorld, hub: str, found: HubState | None = None) -> TreeWorld:
        """The hub's own ends are down first, then those of the others, except what was broken before."""
        others = [
            (number, Way.DOWN if connection.parent == hub else Way.UP)
            for number, connection in world.network.connections.items()
            if hub in (connection.child, connection.parent) and connection.child_open
        ]
        network = tree.restart(world.network, hub, found)
        for number, way in others:
            network = tree.deliver(network, number, way)
        return self._settle(world, network)

    # What it looks like afterwards

    def _settle(self, world: TreeWorld, network: Network) -> TreeWorld:
        """Devices read at once, what changes nothing is stripped, and the history goes on."""
        for number, connection in network.connections.items():
            if connection.child in self._shape.sockets:
                while number in network.connections and network.connections[number].down:
                    network = tree.deliver(network, number, Way.DOWN)
        got, asked, received = world.got, world.asked, []
        for socket, frames in network.inboxes.items():
            for frame in frames:
                answer = frame.body
                assert isinstance(answer, Answer)
                if answer.action is Action.OFFLINE and answer.reason is Reason.OK:
                    continue  # the model does not say that leaving is answered
                received.append((socket, frame))
                asked = asked.set(socket, asked[socket] - {frame.trace_id})
                if answer.action is Action.REGISTER and answer.reason is Reason.OK:
                    known = got.get(answer.device_id, frozenset())
                    got = got.set(answer.device_id, known | {number_of(answer.credential)})
        ports = world.ports
        for number, port in world.ports.items():
            if number not in network.connections:
                ports = ports.delete(number)
                asked = asked.set(port, frozenset())
        network = evolve(
            strip(self._shape, network),
            inboxes=Map(),
            last=(),
            history=History(),
        )
        given = world.given
        if network.fresh > len(given) + 1:
            given = (*given, _owner(network, tree.credential(network.fresh - 1)))
        after = TreeWorld(network, world.left, ports, got, given, asked, world.backups, (), tuple(received))
        return evolve(after, state=self._abstract(world, after))

    def state(self, world: TreeWorld) -> State:
        return world.state

    def answers(self, world: TreeWorld) -> list[Value]:
        found: list[Value] = []
        for socket, frame in world.received:
            assert isinstance(frame.body, Answer)
            probed = frame.body.action is Action.OFFLINE
            message = record(t="refused") if probed else answer_value(frame.body, frame.trace_id)
            found.append(record(to=socket, m=message))
        return found

    def expected_answers(self, act: Value) -> list[Value]:
        log = as_records(as_record(act)["log"])
        return [record(to=sent["to"], m=sent["m"]) for sent in log if sent["to"] in self._shape.sockets]

    def _abstract(self, before: TreeWorld, world: TreeWorld) -> State:
        """The state of HubAuth.tla; hubs that are as before are taken from there."""
        shape, network, intern = self._shape, world.network, self.table.intern
        parts: list[Value] = []
        for name in self._hubs:
            hub = network.states.get(name)
            if before.state and _same(before.network, network, name):
                parts.append(before.state[len(parts)])
            elif hub is not None:
                parts.append(intern(hub_value(shape, hub, name, world.ports)))
            else:
                parts.append(intern(plain_value(shape, _plain(network, name), name, world.ports)))
        live = {
            connection.child: (number, connection)
            for number, connection in network.connections.items()
            if connection.child_open and connection.parent_open
        }
        for way in ("up", "down"):
            for child in self._children:
                parts.append(intern(queue_value(network, live[child][1], way)) if child in live else ())
        uplink = {child: world.ports[live[child][0]] if child in live else "" for child in self._children}
        parts += [
            intern(function(uplink)),
            intern(world.given),
            intern(_sets(world.asked, shape.sockets)),
            intern(_sets(world.got, shape.devices)),
            intern(function(world.left)),
        ]
        for name in sorted(self._sites["RestoreAt"]):
            parts.append(intern(hub_value(shape, world.backups.get(name, network.states[name]), name, world.ports)))
        return tuple(parts)


def _plain(network: Network, name: str) -> PlainStranger:
    stranger = network.strangers[name]
    assert isinstance(stranger, PlainStranger)
    return stranger


def _same(before: Network, after: Network, name: str) -> bool:
    """Whether a hub has not taken a step."""
    if name in after.states:
        return after.states[name] is before.states[name]
    return after.strangers[name] is before.strangers[name]


def _session(world: TreeWorld, hub: str, number: int) -> tuple[str, int] | None:
    """The device, and its node, that a hub takes for being on a connection."""
    if hub not in world.network.states:
        return session_on(_plain(world.network, hub).hub, number)
    session = world.network.states[hub].links[number]
    return None if session is None else (session.device_id, session.node_id)


def _sets(known: Map[str, frozenset[int]], names: tuple[str, ...]) -> Value:
    return function({name: known.get(name, frozenset()) for name in names})


def _spend(world: TreeWorld, what: str) -> TreeWorld:
    assert world.left[what] > 0
    return evolve(world, left=world.left.set(what, world.left[what] - 1))


def _connected(world: TreeWorld, child: str) -> int:
    """The connection that a child holds open."""
    return next(
        number
        for number, connection in world.network.connections.items()
        if connection.child == child and connection.child_open
    )


def _secret(name: str) -> str:
    return f"h-{name:0>41}"


def _owner(network: Network, issued: str) -> str:
    """To whom the newest credential was issued: it is stored, or on its way."""
    for state in network.states.values():
        for device_id, entry in state.whitelist.items():
            if entry.credential == issued:
                return device_id
    for name in network.strangers:
        for device_id, (_, credential) in _plain(network, name).hub.whitelist.items():
            if credential == issued:
                return device_id
    for connection in network.connections.values():
        for item in (*connection.up, *connection.down):
            if isinstance(item, Frame) and isinstance(item.body, Answer) and item.body.credential == issued:
                return item.body.device_id
    raise AssertionError("a credential that nobody got")
