"""Trees to test on, and a driver that reads like a story. Every event is followed by every invariant."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from hubauth.core.inputs import Input
from hubauth.core.messages import Answer, Authenticate, Frame, Offline, Register, Request
from hubauth.core.model import State
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.lab import tree
from hubauth.lab.invariants import check
from hubauth.lab.observed import setting_of
from hubauth.lab.tree import Happened, Network, Way
from hubauth.promises.events import Event

EXERCISED: set[str] = set()
"""Every rule that a step in these tests returned."""
LISTENERS: list[Callable[["Story", Happened], None]] = []
"""Told of every step: ``tools/vectors.py`` makes vectors of them."""

ROLES = {"hub": ("auth.assist",), "admin": ("auth.revoke", "auth.perms_invalidate")}
FIRST_NODE = 10
ADMIN_NODE = 9


def hub_credential(node_id: int) -> str:
    """The provisioned credential of a hub."""
    return f"h{node_id:042d}"


def child_hub(node_id: int, provisioned: tuple[Provisioned, ...] = (), **options: Any) -> Policy:
    """A hub below another one."""
    return Policy(
        device_id=f"hub-{node_id}",
        node_id=node_id,
        credential=hub_credential(node_id),
        has_parent=True,
        provisioned=provisioned,
        **_common(options),
    )


def root_hub(provisioned: tuple[Provisioned, ...] = (), **options: Any) -> Policy:
    """A hub without a parent."""
    return Policy(device_id="root", provisioned=provisioned, **_common(options))


def _common(options: dict[str, Any]) -> dict[str, Any]:
    return {"role_perms": ROLES, "first_node_id": FIRST_NODE, **options}


def verified(node_id: int) -> Provisioned:
    """A child hub, provisioned at the hub that verifies it."""
    return Provisioned(f"hub-{node_id}", node_id, hub_credential(node_id), "hub")


def listed(node_id: int) -> Provisioned:
    """A hub further down, as the authority lists it."""
    return Provisioned(f"hub-{node_id}", node_id, "", "hub")


def three_levels(**options: Any) -> Network:
    """root - mid - A, and root - B. Devices may sit on any of the four."""
    return tree.build(
        {
            "root": (None, root_hub((verified(2), listed(3), verified(4)), **options)),
            "mid": ("root", child_hub(2, (verified(3),), **options)),
            "A": ("mid", child_hub(3, **options)),
            "B": ("root", child_hub(4, **options)),
        }
    )


def two_levels(**options: Any) -> Network:
    """root - A, root - B."""
    return tree.build(
        {
            "root": (None, root_hub((verified(2), verified(3)), **options)),
            "A": ("root", child_hub(2, **options)),
            "B": ("root", child_hub(3, **options)),
        }
    )


def configured(network: Network, hub: str, **options: Any) -> Network:
    """A network in which a hub's configuration was another one all the time, as far as nothing depends on it yet."""
    policies = network.policies.set(hub, evolve(network.policies[hub], **options))
    settings = [(name, setting_of(policies, name, state)) for name, state in network.states.items()]
    seen = [Event("configured", name, setting=setting) for name, setting in settings]
    assert network.monitor is not None
    return evolve(network, policies=policies, monitor=network.monitor.watch(seen))


class Story:
    """A network that events happen to, one after the other."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.next_msg_id = 1000

    def become(self, network: Network) -> None:
        """Take the next network and insist that every invariant holds."""
        self.network = network
        for happened in network.last:
            EXERCISED.update(happened.step.rules)
            for listener in LISTENERS:
                listener(self, happened)
        found = check(network)
        assert not found, "\n".join(found)

    def hubs_join(self, *names: str) -> None:
        """Child hubs connect to their parents, top down."""
        for name in names or tuple(self.network.parents):
            self.become(tree.connect(self.network, name))
            self.settle()

    def settle(self) -> None:
        """Deliver until nothing is in flight, oldest connection first, timers of no length included."""
        for _ in range(10_000):
            if waiting := tree.waiting(self.network):
                self.become(tree.deliver(self.network, *waiting[0]))
            elif due := sorted(key for key, seconds in self.network.timers.items() if seconds == 0.0):
                self.become(tree.fire(self.network, *due[0]))
            else:
                return
        raise AssertionError("messages do not drain")

    def deliver(self, number: int, way: Way, times: int = 1) -> None:
        """Deliver on one connection only."""
        for _ in range(times):
            self.become(tree.deliver(self.network, number, way))

    def connect(self, device: str, hub: str) -> int:
        """A device connects; its connection."""
        self.become(tree.connect(self.network, device, hub))
        return self.network.next_connection - 1

    def say(self, number: int, message: Request, source: int = 0) -> int:
        """A device sends; the MsgID."""
        self.next_msg_id += 1
        self.become(tree.say(self.network, number, Frame(message, msg_id=self.next_msg_id, source=source)))
        return self.next_msg_id

    def heard(self, device: str) -> Answer:
        """The last answer a device has received."""
        answer = self.network.inboxes[device][-1].body
        assert isinstance(answer, Answer)
        return answer

    def register(self, device: str, hub: str) -> Answer:
        """Connect, register and wait for the answer."""
        self.say(self.connect(device, hub), Register(device))
        self.settle()
        return self.heard(device)

    def authenticate(self, device: str, hub: str, credential: str) -> Answer:
        """Connect, authenticate and wait for the answer."""
        self.say(self.connect(device, hub), Authenticate(device, credential))
        self.settle()
        return self.heard(device)

    def offline(self, device: str, number: int, node_id: int) -> None:
        self.say(number, Offline(device, node_id), source=node_id)

    def feed(self, hub: str, happened: Input) -> None:
        """An operator's command, or a timer."""
        self.become(tree.feed(self.network, hub, happened))

    def drop(self, child: str) -> None:
        """The connection of a device or child hub breaks and both ends notice."""
        number = self.connection(child)
        self.become(tree.drop(self.network, number))
        self.settle()

    def connection(self, child: str) -> int:
        number = tree.connection_of(self.network, child)
        assert number is not None
        return number

    def state(self, hub: str) -> State:
        return self.network.states[hub]

    def route(self, hub: str, node_id: int) -> tuple[int, bool]:
        """(via, online) of a node at a hub."""
        route = self.state(hub).directory[node_id]
        return route.via, route.online


def three_level_story(dialect: Dialect = Dialect.AUTH, **options: Any) -> Story:
    """The three-level tree with every hub joined."""
    story = Story(three_levels(dialect=dialect, **options))
    story.hubs_join("mid", "A", "B")
    return story
