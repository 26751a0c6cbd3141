"""The behaviours of a model of HubPerms.tla, with the real core taking every step."""

from collections.abc import Iterator

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import PARENT, Link, OperatorInvalidate, PolicyChanged
from hubauth.core.messages import (
    Action,
    Answer,
    Authenticate,
    Frame,
    GetPerms,
    Offline,
    PermsInvalidate,
    Reason,
    Revoke,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.policy import Policy, Provisioned
from hubauth.lab import tree
from hubauth.lab.history import History
from hubauth.lab.tree import Network, Way
from model_tests.equivalence.constants import as_function, as_names, as_number, as_numbers, as_record, as_records
from model_tests.equivalence.machine import Event, SharedValues, State
from model_tests.equivalence.perms_abstraction import (
    CODES,
    KINDS,
    Served,
    hub_value,
    queue_value,
    strip,
    version_of,
)
from model_tests.equivalence.values import Value, function, record

CONSTANTS = (
    *("Root", "ParentOf", "Authority", "Nodes", "AskAt", "CheckAt", "CommandAt", "DropAt", "TimeoutAt"),
    *("Asks", "Checks", "Changes", "Commands", "Drops", "Timeouts", "Leaves", "Refreshing"),
)
"""What the machine has to know of a configuration."""

ACTIONS = (
    *("DeviceAsks", "PolicyChanges", "OperatorInvalidates", "HubLinkDrops", "HubReconnects", "RequestTimesOut"),
    *("DeviceLeaves", "DeviceReturns", "FrameGoesUp", "FrameGoesDown"),
)
"""Everything that can happen in HubPerms.tla."""

_BUDGETS = {
    "ask": "Asks",
    "check": "Checks",
    "change": "Changes",
    "command": "Commands",
    "drop": "Drops",
    "late": "Timeouts",
    "leave": "Leaves",
}
_ASKER_NODE = 100
_ASKER = 0
"""The device of a hub that asks about others; a node stands for itself."""


@frozen
class PermsWorld:
    """A network and what the model keeps beside it."""

    network: Network
    left: Map[str, int]
    version: Map[int, int]
    gone: frozenset[tuple[str, int]] = frozenset()
    """Devices of a hub that have said they leave, and are still connected."""
    default: int = 1
    """The version of the default role, which changes together with all nodes."""
    ops: int = 0
    op_of: Served = field(factory=Map)
    state: State = ()
    received: tuple[Value, ...] = ()


class PermsMachine:
    """HubPerms.tla with these constants."""

    def __init__(self, constants: dict[str, Value], table: SharedValues) -> None:
        self.table = table
        self.history = frozenset(["old", "news"])
        self.without_history = {"hub": "PlainHub", "up": "PlainQueue", "down": "PlainQueue"}
        self.divided = frozenset(["hub", "up", "down"])
        self._root, self._authority = str(constants["Root"]), str(constants["Authority"])
        self._parent_of = {str(child): str(parent) for child, parent in as_function(constants["ParentOf"])}
        self._children = sorted(self._parent_of)
        self._hubs = sorted([self._root, *self._children])
        self._node_of = {name: number for number, name in enumerate([self._root, *self._children], 1)}
        self._nodes = as_numbers(constants["Nodes"])
        self._ask_at = as_names(constants["AskAt"])
        self._check_at = as_names(constants["CheckAt"])
        assert len(self._check_at) <= 1, "a node has one session, so it can be checked at one hub only"
        self._sites = {name: set(as_names(constants[name])) for name in ("CommandAt", "DropAt", "TimeoutAt")}
        self._refreshing = constants["Refreshing"]
        self._budget = Map({short: as_number(constants[name]) for short, name in _BUDGETS.items()})
        self._versions = 1 + self._budget["change"]
        self.parts = (
            *(f"hub[{name}]" for name in self._hubs),
            *(f"{way}[{child}]" for way in ("up", "down") for child in self._children),
            *("version", "gone", "ops", "left"),
        )

    # The start

    def start(self) -> PermsWorld:
        """All hubs have joined, the devices that ask or are checked are online, and no hub knows anything yet."""
        version = Map(dict.fromkeys(self._nodes, 1))
        network = evolve(
            tree.build({name: (self._parent_of.get(name), self._policy(name, version, 1)) for name in self._hubs}),
            monitor=None,
        )
        for child in sorted(self._children, key=self._depth):
            network = _drain(tree.connect(network, child))
        for hub in self._hubs:
            for device in self._devices(hub):
                number = network.next_connection
                network = tree.connect(network, device.device_id, hub)
                network = tree.say(network, number, Frame(Authenticate(device.device_id, device.credential)))
                network = _drain(network)
        network = _drain(tree.feed(network, self._root, OperatorInvalidate(PermsInvalidate())))
        world = PermsWorld(evolve(network, inboxes=Map(), last=()), self._budget, version)
        return evolve(world, state=self._abstract(world, world))

    def _depth(self, name: str) -> int:
        return 0 if name == self._root else self._depth(self._parent_of[name]) + 1

    def _devices(self, hub: str) -> list[Provisioned]:
        """Who asks at this hub, and the nodes whose own requests are checked there."""
        found = []
        if hub in self._ask_at:
            found.append(Provisioned(_asker(hub), _ASKER_NODE + self._node_of[hub], _secret(_asker(hub)), "asker"))
        if hub in self._check_at:
            found += [Provisioned(_checked(node), node, _secret(_checked(node))) for node in self._nodes]
        return found

    def _policy(self, name: str, version: Map[int, int], default: int) -> Policy:
        """Only the authority knows roles of nodes: ``v1``, ``v2``, ...; the odd ones may revoke."""
        here = name == self._authority
        children = [child for child, parent in self._parent_of.items() if parent == name]
        hubs = [Provisioned(child, self._node_of[child], _secret(child), "hub") for child in children]
        roles = {f"v{number}": ("auth.revoke",) if number % 2 else () for number in range(1, self._versions + 1)}
        return Policy(
            device_id=name,
            node_id=self._node_of[name],
            credential="" if name == self._root else _secret(name),
            has_parent=name != self._root,
            authority=0 if self._authority == self._root else self._node_of[self._authority],
            default_role=f"default {default}",
            node_roles=Map({node: f"v{number}" for node, number in version.items()} if here else {}),
            role_perms=Map({**roles, "hub": ("auth.assist",)} if here else {"hub": ("auth.assist",)}),
            provisioned=(*hubs, *self._devices(name)),
        )

    # What may happen

    def events(self, world: PermsWorld) -> Iterator[Event]:
        left = world.left
        connected = {connection.child: connection for connection in world.network.connections.values()}
        for child in self._children:
            if child not in connected:
                yield "HubReconnects", child
                continue
            if connected[child].up:
                yield "FrameGoesUp", child
            if connected[child].down:
                yield "FrameGoesDown", child
            if left["drop"] and child in self._sites["DropAt"]:
                yield "HubLinkDrops", child
        for node in self._nodes:
            if left["ask"]:
                yield from (("DeviceAsks", hub, node, "get") for hub in self._ask_at if (hub, _ASKER) not in world.gone)
            if left["check"]:
                yield from (
                    ("DeviceAsks", hub, node, "held") for hub in self._check_at if (hub, node) not in world.gone
                )
        targets = [frozenset[int](), *(frozenset([node]) for node in self._nodes)]
        if left["change"]:
            yield from (("PolicyChanges", nodes) for nodes in targets)
        yield from self._hubs_act(world, targets)
        yield from (("DeviceReturns", *device) for device in world.gone if not _waits(world.network, *device))
        if left["leave"]:
            here = [(hub, _ASKER) for hub in self._ask_at] + [
                (hub, node) for hub in self._check_at for node in self._nodes
            ]
            yield from (("DeviceLeaves", *device) for device in here if device not in world.gone)

    def _hubs_act(self, world: PermsWorld, targets: list[frozenset[int]]) -> Iterator[Event]:
        assert isinstance(self._refreshing, frozenset)
        for hub in self._hubs:
            if hub in self._sites["CommandAt"] and world.left["command"]:
                for nodes in targets:
                    for refresh in (True, False):
                        if refresh in self._refreshing:
                            yield "OperatorInvalidates", hub, nodes, refresh
            if hub in self._sites["TimeoutAt"] and world.left["late"]:
                for msg_id, pending in world.network.states[hub].pending.items():
                    if pending.purpose in KINDS:
                        yield "RequestTimesOut", hub, world.op_of[hub, msg_id]

    # What happens then

    def apply(self, world: PermsWorld, event: Event) -> PermsWorld:
        network = world.network
        match event:
            case ("FrameGoesUp", str(child)):
                return self._settle(world, tree.deliver(network, _connected(network, child), Way.UP))
            case ("FrameGoesDown", str(child)):
                return self._settle(world, tree.deliver(network, _connected(network, child), Way.DOWN))
            case ("HubLinkDrops", str(child)):
                number = _connected(network, child)
                network = tree.deliver(tree.drop(network, number), number, Way.UP)
                return self._settle(_spend(world, "drop"), tree.deliver(network, number, Way.DOWN))
            case ("HubReconnects", str(child)):
                return self._settle(world, tree.connect(network, child))
            case ("DeviceAsks", str(hub), int(node), str(kind)):
                return self._ask(_spend(world, "ask" if kind == "get" else "check"), hub, node, kind)
            case ("DeviceLeaves", str(hub), int(device)):
                left = evolve(_spend(world, "leave"), gone=world.gone | {(hub, device)})
                speaker = self._speaker(hub, device)
                return self._say(
                    left, speaker, Frame(Offline(speaker.device_id, speaker.node_id), msg_id=2, source=speaker.node_id)
                )
            case ("DeviceReturns", str(hub), int(device)):
                speaker, is_asker = self._speaker(hub, device), device == _ASKER
                gone = world.gone - {(hub, _ASKER)} if is_asker else world.gone
                back = evolve(world, gone=gone, ops=world.ops + (not is_asker))
                return self._say(back, speaker, Frame(Authenticate(speaker.device_id, speaker.credential), msg_id=2))
            case ("PolicyChanges", frozenset() as nodes):
                return self._change(_spend(world, "change"), nodes)
            case ("OperatorInvalidates", str(hub), frozenset() as nodes, bool(refresh)):
                command = OperatorInvalidate(PermsInvalidate(tuple(sorted(nodes)), refresh=refresh))
                return self._settle(_spend(world, "command"), tree.feed(network, hub, command))
            case ("RequestTimesOut", str(hub), int(op)):
                (msg_id,) = [one for one in network.states[hub].pending if world.op_of.get((hub, one)) == op]
                return self._settle(_spend(world, "late"), tree.fire(network, hub, msg_id))
        raise AssertionError(f"no such event: {event}")

    def _ask(self, world: PermsWorld, hub: str, node: int, kind: str) -> PermsWorld:
        """``get`` asks for the node's permissions; ``held`` asks for something that the node needs one for."""
        speaker = self._speaker(hub, _ASKER if kind == "get" else node)
        if kind == "get":
            frame = Frame(GetPerms(node), msg_id=1, source=speaker.node_id)
        else:
            frame = Frame(Revoke("nobody"), msg_id=1, source=node, target=self._node_of[hub])
        return self._say(evolve(world, ops=world.ops + 1), speaker, frame)

    def _speaker(self, hub: str, device: int) -> Provisioned:
        name = _asker(hub) if device == _ASKER else _checked(device)
        return next(one for one in self._devices(hub) if one.device_id == name)

    def _say(self, world: PermsWorld, speaker: Provisioned, frame: Frame) -> PermsWorld:
        number = _connected(world.network, speaker.device_id)
        return self._settle(world, tree.deliver(tree.say(world.network, number, frame), number, Way.UP))

    def _change(self, world: PermsWorld, nodes: frozenset[int]) -> PermsWorld:
        """The roles of some nodes change, or, with none named, the default and with it all of them."""
        version, default = world.version, world.default + (not nodes)
        for node in nodes or self._nodes:
            version = version.set(node, version[node] + 1)
        policy = self._policy(self._authority, version, default)
        network = tree.feed(world.network, self._authority, PolicyChanged(policy))
        return self._settle(evolve(world, version=version, default=default), network)

    # What it looks like afterwards

    def _settle(self, world: PermsWorld, network: Network) -> PermsWorld:
        """Devices read at once, a revoke that was allowed is over at once, and presence is stripped."""
        for name, state in network.states.items():
            if state is not world.network.states[name]:
                for msg_id, pending in state.pending.items():
                    if pending.purpose is Purpose.REVOKE:
                        network = tree.fire(network, name, msg_id)
        for number, connection in network.connections.items():
            if connection.child in network.states:
                network = strip(network, number, connection)
            while connection.child not in network.states and network.connections[number].down:
                network = tree.deliver(network, number, Way.DOWN)
        received = [self._received(device, answer) for device, answer in _answers(network)]
        network = evolve(network, inboxes=Map(), last=(), history=History())
        ops, op_of, gone = world.ops, world.op_of, world.gone - self._admitted(received)
        for name, state in network.states.items():
            if state is world.network.states[name]:
                continue
            for msg_id in sorted(state.pending):
                pending = state.pending[msg_id]
                if pending.purpose in KINDS and (name, msg_id) not in op_of:
                    ops += pending.asker is None
                    op_of = op_of.set((name, msg_id), self._op(network, name, pending, op_of, ops))
        told = tuple(received)
        after = evolve(world, network=network, gone=gone, ops=ops, op_of=op_of, state=(), received=told)
        return evolve(after, state=self._abstract(world, after))

    def _op(self, network: Network, name: str, pending: Pending, op_of: Served, newest: int) -> int:
        """The request that a new question serves: the one it was relayed for, or the newest."""
        asker = self._peer(network, name, pending.asker)
        if asker in self._hubs:
            return op_of[asker, pending.msg_id]
        return newest

    def _peer(self, network: Network, name: str, link: Link | None) -> str:
        """Who is at the other end of a hub's link; "" if there is none."""
        if link is None:
            return ""
        return self._parent_of[name] if link == PARENT else network.connections[link].child

    def _received(self, device: str, answer: Answer) -> Value:
        if answer.action is Action.GET_PERMS:
            return record(kind="get", node=answer.node_id, code=CODES[answer.reason], ver=version_of(answer.grant))
        node = next(node for node in self._nodes if _checked(node) == device)
        if answer.action is Action.AUTHENTICATE:
            return record(kind="admit", node=node, code=CODES[answer.reason], ver=version_of(answer.grant))
        return record(kind="held", node=node, allowed=answer.reason is not Reason.FORBIDDEN)

    def _admitted(self, received: list[Value]) -> set[tuple[str, int]]:
        """The nodes, and where they are checked, that have been told that they are back."""
        answers = [as_record(answer) for answer in received]
        nodes = [as_number(answer["node"]) for answer in answers if answer["kind"] == "admit"]
        return {(hub, node) for hub in self._check_at for node in nodes}

    def state(self, world: PermsWorld) -> State:
        return world.state

    def answers(self, world: PermsWorld) -> list[Value]:
        return list(world.received)

    def expected_answers(self, act: Value) -> list[Value]:
        found: list[Value] = []
        for sent in as_records(as_record(act)["log"]):
            message = as_record(sent["m"])
            if message["kind"] in ("get", "admit"):
                found.append(sent["m"])
            else:
                allowed = message["code"] == "ok" and as_number(message["ver"]) % 2 == 1
                found.append(record(kind="held", node=message["node"], allowed=allowed))
        return found

    def _abstract(self, before: PermsWorld, world: PermsWorld) -> State:
        """The state of HubPerms.tla; hubs that are as before are taken from there."""
        network, intern = world.network, self.table.intern
        parts: list[Value] = []
        for index, name in enumerate(self._hubs):
            same = before.state and network.states[name] is before.network.states[name]
            parts.append(before.state[index] if same else intern(hub_value(network, world.op_of, name, self._nodes)))
        live = {connection.child: connection for connection in network.connections.values()}
        for way in ("up", "down"):
            for child in self._children:
                parts.append(intern(queue_value(world.op_of, live[child], way)) if child in live else ())
        parts += [intern(function(world.version)), intern(world.gone), world.ops, intern(function(world.left))]
        return tuple(parts)


def _spend(world: PermsWorld, what: str) -> PermsWorld:
    assert world.left[what] > 0
    return evolve(world, left=world.left.set(what, world.left[what] - 1))


def _drain(network: Network) -> Network:
    while waiting := tree.waiting(network):
        network = tree.deliver(network, *waiting[0])
    return network


def _answers(network: Network) -> Iterator[tuple[str, Answer]]:
    """What devices have received, but for answers about their sessions that the model has not."""
    for device, frames in network.inboxes.items():
        for frame in frames:
            assert isinstance(frame.body, Answer)
            is_askers = frame.body.action is Action.AUTHENTICATE and device.startswith(_asker(""))
            if frame.body.action is not Action.OFFLINE and not is_askers:
                yield device, frame.body


def _waits(network: Network, hub: str, node: int) -> bool:
    """Whether a node waits to be admitted at a hub."""
    waiting = [asked for asked in network.states[hub].pending.values() if asked.purpose is Purpose.ADMIT]
    return any(asked.node_id == node for asked in waiting)


def _connected(network: Network, child: str) -> int:
    return next(number for number, connection in network.connections.items() if connection.child == child)


def _asker(hub: str) -> str:
    return f"asker-{hub}"


def _checked(node: int) -> str:
    return f"node-{node}"


def _secret(name: str) -> str:
    return f"h-{name:0>41}"
