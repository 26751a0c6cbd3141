"""Traces of any size from traffic that could be real, clean or with one planted fault."""

from collections.abc import Callable
from random import Random

from attrs import frozen

from hubauth.core.messages import (
    Answer,
    Authenticate,
    Frame,
    GetPerms,
    ListRoles,
    Major,
    Offline,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.forms.events import Checkpoint, Event
from hubauth.forms.reading import frame_of
from hubauth.trace.faults import FAULTS
from hubauth.trace.planting import Plan
from hubauth.trace.world import Device, World

_BUSY = 24
"""With this much under way, nobody begins anything new."""


@frozen
class Blueprint:
    """What to generate."""

    hubs: int = 4
    devices: int = 100
    events: int = 10_000
    seed: int = 1
    dialect: Dialect = Dialect.AUTH
    fault: str = ""
    checkpoint_events: int = 0
    trace: str = "generated"


def generate(
    blueprint: Blueprint, rows: Callable[[Event], None], checkpoints: Callable[[Checkpoint], None] | None = None
) -> Plan | None:
    """Give every row to ``rows`` as it happens; with a fault, what was planted. Raises ValueError if it cannot be.

    About ``blueprint.events`` rows; more if the fault needs longer to find its moment, or the tree to start.
    """
    plan = FAULTS[blueprint.fault].plan(Random(blueprint.seed), blueprint.events) if blueprint.fault else None
    write = rows if plan is None else plan.tampering(rows)
    keep = checkpoints if plan is None else plan.tampering_checkpoints(checkpoints)
    world = World(
        blueprint.hubs,
        blueprint.seed,
        blueprint.dialect,
        write,
        keep,
        blueprint.checkpoint_events,
        blueprint.trace,
        plan.kept if plan is not None else lambda _node: None,
    )
    if plan is not None:
        plan.attach(world)
    Traffic(world, blueprint.devices).run(blueprint.events, lambda: plan is None or plan.done)
    world.stop()
    return plan


class Traffic:
    """Devices that register, come back, roam, talk, leave and are revoked."""

    def __init__(self, world: World, devices: int) -> None:
        self._world = world
        self._random = world.random
        hubs = len(world.nodes)
        self._devices = [Device(f"device-{n}", self._random.randrange(hubs)) for n in range(devices)]
        admin = world.nodes[0].policy.provisioned_by_device["admin"]
        self._admin = Device(admin.device_id, 0, admin.node_id, admin.credential)
        self._revoked: set[str] = set()
        self._others = [(0.02, self._send_garbage)]
        if world.dialect is not Dialect.FLAT:
            self._others += [(0.05, self._go_offline), (0.03, self._register), (0.05, self._guess)]
        if world.dialect is Dialect.AUTH:
            self._others += [(0.25, self._ask_perms), (0.02, self._list_roles)]

    def run(self, events: int, satisfied: Callable[[], bool]) -> None:
        """Until there are enough rows, and for a while longer until ``satisfied``; then let everything arrive."""
        world, random = self._world, self._random
        while world.count < events or (not satisfied() and world.count < 4 * events + 100_000):
            if world.in_flight and (world.in_flight > _BUSY or random.random() < 0.8):
                self._deliver()
            else:
                self._begin_something()
        while world.in_flight:
            self._deliver()
        self._rejoin()
        while world.in_flight:
            self._deliver()
        if not satisfied():
            raise ValueError("the fault never found its moment: take more events, devices or hubs, or another dialect")

    def _deliver(self) -> None:
        arrived = self._world.deliver()
        if arrived is not None:
            self._hear(*arrived)

    def _hear(self, device: Device, event: Event) -> None:
        if not device.asked or event.msg_id != device.msg_id:
            return
        body = frame_of(event, self._world.codec).body
        if not isinstance(body, Answer):
            return
        asked, device.asked = device.asked, ""
        if body.reason is Reason.OK:
            device.node_id = body.node_id
            device.credential = body.credential or device.credential
        elif asked == "auth" and body.reason is Reason.NOT_ADMITTED and device is not self._admin:
            device.node_id, device.credential = 0, ""

    # Something new

    def _begin_something(self) -> None:
        world, random = self._world, self._random
        if not world.in_flight:
            world.tick(random.randrange(1_000, 200_000))
        chance = random.random()
        if chance < 0.004:
            self._disturb()
            return
        if chance < 0.03:
            self._administrate()
            return
        device = random.choice(self._devices)
        if device.wire is None:
            self._arrive(device)
        elif not device.asked:
            self._act(device)

    def _disturb(self) -> None:
        """A hub loses its parent, or finds it again; sometimes a revoke by an operator."""
        world = self._world
        node = self._random.choice(world.nodes)
        if self._random.random() < 0.3 and world.dialect is not Dialect.FLAT:
            world.operate(node, Revoke(self._random.choice(self._devices).device_id))
        elif node.parent is not None:
            world.drop(node)
        self._rejoin()

    def _rejoin(self) -> None:
        for away in self._world.nodes[1:]:
            if 0 not in away.wires:
                self._world.join(away)

    def _administrate(self) -> None:
        admin, world = self._admin, self._world
        if admin.wire is None or not admin.node_id:
            self._arrive(admin)
        elif not admin.asked and world.dialect is not Dialect.FLAT:
            victim = self._random.choice(self._devices)
            credential = victim.credential if self._random.random() < 0.3 else ""
            self._ask(admin, Revoke(victim.device_id, 0, credential), "")

    def _arrive(self, device: Device) -> None:
        """Connect, mostly where it always does, and present itself."""
        world, random = self._world, self._random
        away = random.random() < 0.15 and device is not self._admin
        node = random.choice(world.nodes) if away else world.nodes[device.home]
        device.wire = world.connect(device, node)
        device.asked = ""
        self._present(device)

    def _present(self, device: Device) -> None:
        if device.credential or (self._world.dialect is Dialect.FLAT and device.node_id):
            credential = device.credential if self._world.dialect is not Dialect.FLAT else ""
            self._ask(device, Authenticate(device.device_id, credential), "auth")
        else:
            self._register(device)

    def _act(self, device: Device) -> None:
        random = self._random
        chance = random.random()
        if not device.node_id or chance < 0.08:
            self._present(device)
        elif chance < 0.16:
            self._world.hang_up(device)
        elif chance < 0.20:
            self._arrive(device)  # elsewhere, the old connection still open
        else:
            for share, other in self._others:
                if random.random() < share:
                    other(device)
                    return
            self._talk(device)

    def _ask(
        self, device: Device, body: Register | Authenticate | Offline | GetPerms | ListRoles | Revoke, asked: str
    ) -> None:
        device.msg_id += 1
        device.asked = asked
        self._world.say(device, Frame(body, Major.CMD, device.msg_id, device.node_id))

    def _register(self, device: Device) -> None:
        self._ask(device, Register(device.device_id), "register")

    def _ask_perms(self, device: Device) -> None:
        self._ask(device, GetPerms(self._random.choice((device.node_id, device.node_id, 1, 10_000_000))), "")

    def _list_roles(self, device: Device) -> None:
        self._ask(device, ListRoles(limit=5), "")

    def _go_offline(self, device: Device) -> None:
        self._ask(device, Offline(device.device_id, device.node_id, "bye"), "")

    def _guess(self, device: Device) -> None:
        self._ask(device, Authenticate(device.device_id, self._world.fresh()), "")

    def _send_garbage(self, device: Device) -> None:
        device.msg_id += 1
        frame = Frame(b"", Major.CMD, device.msg_id, device.node_id)
        self._world.say_bytes(device, frame, b'{"action":"register","data":{}}')

    def _talk(self, device: Device) -> None:
        other = self._random.choice(self._devices)
        body = self._random.randbytes(self._random.randrange(4, 24))
        frame = Frame(body, Major.MSG, 0, device.node_id, other.node_id or 1, 7)
        self._world.say(device, frame)
