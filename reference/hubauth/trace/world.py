"""A tree of hubs with devices and traffic, driven by the real core, every row of it given to a sink.

The same seed gives the same rows. Whoever drives it may bend what one hub does (``faults``): the bent frames really
travel, so the rows of all other hubs stay right.
"""

import heapq
from base64 import urlsafe_b64encode
from collections import deque
from collections.abc import Callable
from random import Random

from attrs import define, field

from hubauth.core.canonical import digest_of, encode_state
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, OperatorRevoke, Received, TimerFired
from hubauth.core.messages import SUB_PROTO, AssistRegister, Frame, Register, Revoke
from hubauth.core.model import State
from hubauth.core.outputs import CancelTimer, Close, Output, Send, StartTimer
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.forms.events import Checkpoint, Event, Kind, Opening, Order, encode_command, encode_opening
from hubauth.forms.policies import encode_policy, form_of
from hubauth.forms.reading import frame_of
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import Codec

FANOUT = 8
BEGINNING = 1_700_000_000_000_000
_ROLE_PERMS = {"hub": ("auth.assist",), "admin": ("auth.revoke", "auth.perms_invalidate")}


@define(eq=False)
class Wire:
    """A connection: who is at which end, and what is under way. None in a queue: it was closed after that."""

    name: str
    parent: "Node"
    link: Link
    child: "Node | Device"
    version: int
    up: deque[Event | None] = field(factory=deque)
    down: deque[Event | None] = field(factory=deque)
    open_above: bool = True
    open_below: bool = True


@define(eq=False)
class Device:
    """Something that connects to hubs."""

    device_id: str
    home: int
    node_id: int = 0
    credential: str = ""
    wire: Wire | None = None
    asked: str = ""
    """What it waits for."""
    msg_id: int = 0


@define(eq=False)
class Node:
    """A hub of the tree."""

    index: int
    name: str
    policy: Policy
    parent: "Node | None"
    state: State
    sequence: int = 0
    since_checkpoint: int = 0
    next_link: int = 1
    wires: dict[Link, Wire] = field(factory=dict)
    timers: dict[int, int] = field(factory=dict)


Bend = Callable[["World", Node, Input, Step], "tuple[Output, ...] | None"]
"""What a faulty hub does instead; None: this is not the moment."""


class World:
    """The tree and its clock."""

    def __init__(
        self,
        hubs: int,
        seed: int,
        dialect: Dialect,
        rows: Callable[[Event], None],
        checkpoints: Callable[[Checkpoint], None] | None = None,
        checkpoint_events: int = 0,
        trace: str = "generated",
        kept: Callable[[Node], State | None] = lambda _node: None,
    ) -> None:
        """``kept``: what a hub begins with, if that is not an empty state."""
        self.random = Random(seed)
        self.trace = trace
        self.codec: Codec = CODECS[dialect]
        self.dialect = dialect
        self.rows = rows
        self._keep = checkpoints
        self._checkpoint_events = checkpoint_events
        self.now = BEGINNING
        self.count = 0
        self.nodes = _tree(hubs, dialect, self.random)
        self.bend: Bend | None = None
        self.reuse_credential: Callable[[str], str | None] = lambda _: None
        self.lose: Callable[[Wire, Event], bool] = lambda _wire, _event: False
        self._wires = 0
        self._timers: list[tuple[int, int, int]] = []
        self._ready: list[tuple[Wire, bool]] = []
        for node in self.nodes:
            state = kept(node)
            if state is not None:
                node.state = state
                self._keep_state(node)
            digest = digest_of(state).hex() if state is not None else ""
            opening = Opening(Order.HANDLED, form_of(node.policy), digest, node.state.journal)
            self._row(node, Kind.START, payload=encode_opening(opening))
        for node in self.nodes[1:]:
            self.join(node)

    # What drives it

    @property
    def in_flight(self) -> int:
        """Directions of connections on which something is under way."""
        return len(self._ready)

    def deliver(self) -> tuple[Device, Event] | None:
        """Let something that is under way arrive; if at a device, what it was."""
        ready = self._ready
        at = self.random.randrange(len(ready))
        wire, upwards = ready[at]
        queue = wire.up if upwards else wire.down
        item = queue.popleft()
        if not queue:
            ready[at] = ready[-1]
            ready.pop()
        self.tick()
        end = wire.parent if upwards else wire.child
        if isinstance(end, Node):
            self._arrive(end, wire, wire.link if upwards else PARENT, item)
            return None
        if item is None:
            self._shut(wire, above=False)
            if end.wire is wire:
                end.wire, end.asked = None, ""
            return None
        return end, item

    def tick(self, microseconds: int = 0) -> None:
        """Time passes; timers that have run out fire."""
        self.now += microseconds or self.random.randrange(20, 400)
        while self._timers and self._timers[0][0] <= self.now:
            due, index, timer = heapq.heappop(self._timers)
            node = self.nodes[index]
            if node.timers.get(timer) == due:
                del node.timers[timer]
                self._row(node, Kind.TIMER, msg_id=timer)
                self._step(node, TimerFired(timer))

    def connect(self, child: Node | Device, parent: Node) -> Wire:
        """A new connection, known to the parent as a link."""
        self._wires += 1
        wire = Wire(f"c{self._wires}", parent, parent.next_link, child, 1 + self._wires % 2)
        parent.next_link += 1
        parent.wires[wire.link] = wire
        peer = child.device_id if isinstance(child, Device) else child.name
        self._row(parent, Kind.LINK_UP, wire, wire.link, peer=peer)
        self._step(parent, LinkUp(wire.link))
        return wire

    def join(self, node: Node) -> None:
        """A hub connects to its parent."""
        assert node.parent is not None
        wire = self.connect(node, node.parent)
        node.wires[PARENT] = wire
        self._row(node, Kind.LINK_UP, wire, PARENT, peer=node.parent.name)
        self._step(node, LinkUp(PARENT))

    def say(self, device: Device, frame: Frame) -> None:
        """A device sends a frame."""
        assert device.wire is not None
        payload = frame.body if isinstance(frame.body, bytes) else self.codec.encode(frame.body)
        self.say_bytes(device, frame, payload)

    def say_bytes(self, device: Device, frame: Frame, payload: bytes) -> None:
        wire = device.wire
        assert wire is not None
        if wire.open_above:
            self._push(wire, True, self._frame_row("", 0, Kind.FRAME_OUT, wire, 0, frame, payload))

    def hang_up(self, device: Device) -> None:
        """A device goes without a word."""
        wire = device.wire
        assert wire is not None
        device.wire, device.asked = None, ""
        self._shut(wire, above=False)
        self._push(wire, True, None)

    def drop(self, node: Node) -> None:
        """The connection of a hub to its parent breaks; what is under way is lost."""
        wire = node.wires.get(PARENT)
        if wire is not None:
            for upwards, queue in ((True, wire.up), (False, wire.down)):
                if queue:
                    queue.clear()
                    self._ready.remove((wire, upwards))
                self._push(wire, upwards, None)

    def operate(self, node: Node, revoke: Revoke) -> None:
        """The operator of a hub revokes."""
        command = OperatorRevoke(revoke)
        self._row(node, Kind.OPERATOR, payload=encode_command(command))
        self._step(node, command)

    def stop(self) -> None:
        """Every hub stops in order."""
        for node in self.nodes:
            self._row(node, Kind.END)

    def fresh(self) -> str:
        return urlsafe_b64encode(self.random.randbytes(32)).decode().rstrip("=")

    # Inside

    def _arrive(self, node: Node, wire: Wire, link: Link, item: Event | None) -> None:
        if node.wires.get(link) is not wire:
            return
        if item is None:
            self._shut(wire, above=link != PARENT)
            self._row(node, Kind.LINK_DOWN, wire, link)
            del node.wires[link]
            self._step(node, LinkDown(link))
            return
        if self.lose(wire, item):
            return
        event = self._copy(node, wire, link, item)
        self._emit(node, event)
        frame = frame_of(event, self.codec)
        fresh = ""
        if isinstance(frame.body, Register | AssistRegister):
            fresh = self.reuse_credential(frame.body.device_id) or self.fresh()
        self._step(node, Received(link, frame, fresh))

    def _step(self, node: Node, happened: Input) -> None:
        done = step(node.policy, node.state, happened)
        outputs = done.outputs
        if self.bend is not None:
            bent = self.bend(self, node, happened, done)
            outputs = outputs if bent is None else bent
        node.state = done.state
        for output in outputs:
            if isinstance(output, Send):
                self._send(node, output)
            elif isinstance(output, StartTimer):
                due = self.now + max(int(output.seconds * 1_000_000), 1)
                node.timers[output.timer] = due
                heapq.heappush(self._timers, (due, node.index, output.timer))
            elif isinstance(output, CancelTimer):
                node.timers.pop(output.timer, None)
            elif isinstance(output, Close):
                self._close(node, output.link)
        if self._checkpoint_events and node.since_checkpoint >= self._checkpoint_events:
            self._checkpoint(node)

    def _send(self, node: Node, output: Send) -> None:
        wire = node.wires.get(output.link)
        if wire is None:
            return
        frame = output.frame
        payload = frame.body if isinstance(frame.body, bytes) else self.codec.encode(frame.body)
        event = self._frame_row(node.name, node.sequence, Kind.FRAME_OUT, wire, output.link, frame, payload)
        self._emit(node, event)
        upwards = output.link == PARENT
        if wire.open_above if upwards else wire.open_below:
            self._push(wire, upwards, event)

    def _close(self, node: Node, link: Link) -> None:
        wire = node.wires.pop(link, None)
        if wire is not None:
            self._row(node, Kind.CLOSE, wire, link)
            self._shut(wire, above=link != PARENT)
            self._push(wire, link == PARENT, None)

    def _shut(self, wire: Wire, *, above: bool) -> None:
        """One end takes nothing more."""
        queue = wire.up if above else wire.down
        if queue:
            queue.clear()
            self._ready.remove((wire, above))
        if above:
            wire.open_above = False
        else:
            wire.open_below = False

    def _push(self, wire: Wire, upwards: bool, item: Event | None) -> None:
        if not (wire.open_above if upwards else wire.open_below):
            return
        queue = wire.up if upwards else wire.down
        if not queue:
            self._ready.append((wire, upwards))
        queue.append(item)

    def _checkpoint(self, node: Node) -> None:
        node.since_checkpoint = 0
        self._keep_state(node)
        self._row(node, Kind.CHECKPOINT)

    def _keep_state(self, node: Node) -> None:
        if self._keep is not None:
            policy, state = encode_policy(node.policy), encode_state(node.state)
            digest = digest_of(node.state).hex()
            self._keep(Checkpoint(self.trace, node.name, node.sequence, digest, policy, state))

    def _row(
        self,
        node: Node,
        kind: Kind,
        wire: Wire | None = None,
        link: Link | None = None,
        *,
        peer: str = "",
        msg_id: int = 0,
        payload: bytes = b"",
    ) -> None:
        connection = wire.name if wire is not None else ""
        event = Event(
            self.trace,
            node.name,
            node.sequence,
            kind,
            self.now,
            link,
            connection,
            peer,
            msg_id=msg_id,
            payload=payload,
        )
        self._emit(node, event)

    def _emit(self, node: Node, event: Event) -> None:
        node.sequence += 1
        node.since_checkpoint += 1
        self.count += 1
        self.rows(event)

    def _frame_row(
        self, hub: str, sequence: int, kind: Kind, wire: Wire, link: Link, frame: Frame, payload: bytes
    ) -> Event:
        long = wire.version == 2
        stamped = frame.sub_proto == SUB_PROTO or not frame.timestamp
        return Event(
            self.trace,
            hub,
            sequence,
            kind,
            self.now,
            link,
            wire.name,
            "",
            wire.version,
            int(frame.major),
            frame.sub_proto,
            frame.flags,
            frame.msg_id,
            frame.source,
            frame.target,
            frame.trace_id if long else 0,
            frame.hop_limit if long else 0,
            self.now // 1_000_000 if stamped else frame.timestamp,
            payload,
        )

    def _copy(self, node: Node, wire: Wire, link: Link, sent: Event) -> Event:
        """What was sent at one end, received at the other."""
        return Event(
            self.trace,
            node.name,
            node.sequence,
            Kind.FRAME_IN,
            self.now,
            link,
            wire.name,
            "",
            sent.header,
            sent.major,
            sent.sub_proto,
            sent.flags,
            sent.msg_id,
            sent.source,
            sent.target,
            sent.trace_id,
            sent.hop_limit,
            sent.timestamp,
            sent.payload,
        )


def _tree(hubs: int, dialect: Dialect, random: Random) -> list[Node]:
    """Hub 0 is the root; hub n hangs below hub (n - 1) // FANOUT. All are provisioned."""
    credentials = [urlsafe_b64encode(random.randbytes(32)).decode().rstrip("=") for _ in range(hubs)]
    journals = [random.randbytes(16).hex() for _ in range(hubs)]
    admin = Provisioned("admin", hubs + 1, urlsafe_b64encode(random.randbytes(32)).decode().rstrip("="), "admin")
    nodes: list[Node] = []
    for index in range(hubs):
        children = range(index * FANOUT + 1, min(index * FANOUT + FANOUT + 1, hubs))
        below = [Provisioned(f"hub-{n}", n + 1, credentials[n], "hub") for n in children]
        others = [Provisioned(f"hub-{n}", n + 1, "", "hub") for n in range(1, hubs) if n not in children]
        policy = Policy(
            device_id=f"hub-{index}",
            node_id=index + 1,
            credential=credentials[index] if index else "",
            has_parent=index > 0,
            dialect=dialect,
            first_node_id=hubs + 2,
            role_perms=_ROLE_PERMS,
            provisioned=tuple(below) if index else (*below, *others, admin),
        )
        parent = nodes[(index - 1) // FANOUT] if index else None
        nodes.append(Node(index, policy.device_id, policy, parent, initial_state(policy, journals[index])))
    return nodes
