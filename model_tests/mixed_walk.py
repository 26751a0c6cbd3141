"""Random walks through trees with plain hubs: devices, operators and faults, judged by the promises."""

from collections.abc import Callable
from typing import Any

from hubauth.core.messages import Revoke
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned
from hubauth.lab import plain
from hubauth.promises.events import Event, Setting
from model_tests.mixed import MixedTree, Ours, Strange
from model_tests.trees import Pick
from model_tests.walk import RandomPick

SHAPES: dict[str, dict[str, str]] = {
    "a plain child": {"root": "", "A": "root", "p": "root"},
    "a plain parent": {"r": "", "A": "r", "B": "r"},
    "a plain hub in the middle": {"root": "", "m": "root", "A": "m", "B": "root"},
    "two plain children": {"root": "", "p": "root", "q": "root", "A": "root"},
    "plain above and below": {"r": "", "A": "r", "p": "A", "B": "r"},
    "a plain hub below the middle": {"root": "", "M": "root", "p": "M", "B": "root"},
    "plain below plain": {"root": "", "p": "root", "q": "p", "A": "root"},
    "plain above plain above ours": {"r": "", "m": "r", "A": "m"},
}
"""Who is below whom; a plain hub has a small letter, but for the root of our own."""
MSG_IDS = ("echo", "zero", "reordered")
"""How plain hubs number their answers."""
BOTH = "plain above and below"
"""Nobody revokes what a registration replaces, and a query ends at a plain child that still has it (AUTH-14)."""
DEVICES = ("d1", "d2", "d3")
WRONG = "w" * 43
STORM = 4000
FIRST_NODE = 100
NODES = {name: at for at, name in enumerate(("A", "B", "M", "p", "q", "m"), 11)}
ROLES = {"hub": ("auth.assist",)}


def is_plain(name: str) -> bool:
    return name.islower() and name != "root"


def key_of(name: str) -> str:
    """The provisioned credential of a hub."""
    return f"h{NODES[name]:042d}"


class MixedWorld(MixedTree):
    """A tree to which anything may happen: one method per kind of event, every choice made by ``pick``."""

    def __init__(self, parents: dict[str, str], dialect: Dialect, msg_id: str, pick: Pick) -> None:
        super().__init__(dialect, {name: parent for name, parent in parents.items() if parent})
        self._guests = self._asked = 0
        (root,) = [name for name, parent in parents.items() if not parent]
        options = {
            "assist": pick((Assist.AUTH, Assist.AUTH, Assist.QUERY if parents != SHAPES[BOTH] else Assist.AUTH)),
            "close_superseded": pick((True, False)),
            "close_on_revoke": pick((True, False)),
            "revoke_batch": pick((256, 1, 2)),
            "hub_pending_limit": pick((4096, 4096, 2)),
        }
        above_ours = [name for name, parent in self.parents.items() if not is_plain(parent)]
        self._named = {name for name in above_ours if is_plain(name) and pick((True, False))}
        """Plain children that are known by where they connect from; others of our hubs authenticate."""
        self._verified = set(above_ours) - self._named
        for name, parent in parents.items():
            below = [child for child in parents if parents[child] == name]
            setting = Setting(device_id=name, parent=parent, replaces=not is_plain(root))
            self.hubs[name] = (
                self._strange(name, below, msg_id, pick, setting)
                if is_plain(name)
                else self._ours(name, below, setting, options)
            )
        self.settle()

    def _ours(self, name: str, below: list[str], setting: Setting, options: dict[str, Any]) -> Ours:
        known = sorted(self._verified if name == "root" else self._verified.intersection(below))
        keys = {child: key_of(child) if child in below else "" for child in known}
        named = {child: NODES[child] for child in below if child in self._named}
        own = name in NODES and not is_plain(self.parents[name])
        identity: dict[str, Any] = {"node_id": NODES[name], "credential": key_of(name)} if own else {}
        policy = Policy(
            device_id=name,
            has_parent=name in self.parents,
            provisioned=tuple(Provisioned(child, NODES[child], key, "hub") for child, key in keys.items()),
            plain_hubs=tuple(named.values()),
            dialect=self.dialect,
            first_node_id=FIRST_NODE,
            role_perms=ROLES,
            **identity,
            **options,
        )
        return Ours(self, name, policy, named, setting)

    def _strange(self, name: str, below: list[str], msg_id: str, pick: Pick, setting: Setting) -> Strange:
        joins = name in self._verified
        machine = plain.PlainHub(
            self.fresh,
            dialect=self.dialect.value,
            device_id=name,
            node_id=NODES.get(name, 1),
            has_parent=name in self.parents,
            joins=joins,
            credential=key_of(name) if joins and self.dialect is not Dialect.FLAT else "",
            query=self.dialect is not Dialect.FLAT and pick((False, False, True)),
            msg_id=msg_id,
            terse=pick((True, False)),
            hub_devices=tuple(below),
            first_node_id=FIRST_NODE,
        )
        return Strange(self, name, machine, pick((True, False)), setting)

    # Coming to rest

    def drain(self) -> None:
        """Deliver everything, until no hub waits for a frame."""
        for _ in range(STORM):
            if ways := self.ways():
                self.deliver(*ways[0])
            elif due := [(hub, timer) for hub in self.ours() for timer, seconds in hub.timers.items() if not seconds]:
                due[0][0].fire(due[0][1])
            elif not sum(hub.flush() for hub in self.strangers()):
                return
        raise AssertionError("messages do not drain")

    def settle(self) -> None:
        """All hubs meet again, everything arrives, and those who wait in vain are answered."""
        for number in [at for at, one in self.connections.items() if one.child.startswith("guest")]:
            self.drop(number)
        for _ in range(20):
            for name in self.parents:
                if all(one.child != name for one in self.connections.values()):
                    self.meet(name)
            self.drain()
            for name, parent in self.parents.items():
                link = self.hub_connection(name)
                if link is not None and not self.hubs[parent].has_hub(link):
                    self.introduce(name)
            self.drain()
            if self.is_quiet():
                break
            for hub in self.ours():
                self.run_out(hub)
        else:
            raise AssertionError(f"the hubs do not all find their parents: {self.log[-10:]}")
        self.show([Event("quiet")])
        wrong = self.routes_disagree()
        assert not wrong, wrong
        for hub in self.ours():
            self.run_out(hub)
        self.drain()
        if self.is_quiet() and not any(hub.timers for hub in self.ours()):
            self.show([Event("idle")])

    def routes_disagree(self) -> list[str]:
        """With nothing under way, two extended hubs have the same nodes online below the lower one."""
        found = []
        for name, parent in self.parents.items():
            lower, upper = self.hubs[name], self.hubs[parent]
            if isinstance(lower, Ours) and isinstance(upper, Ours) and lower.state.parent_extended:
                own = lower.state.node_id
                here = {node_id for node_id, route in lower.state.directory.items() if route.online}
                there = {at for at, route in upper.state.directory.items() if route.online and route.via == own} - {own}
                if here != there:
                    found.append(f"RoutesAgree: online at {name} are {here}, and for {parent} there are {there}")
        return found

    def run_out(self, hub: Ours) -> None:
        for timer in hub.due(patience=True):
            if timer in hub.timers:
                hub.fire(timer)
                self.drain()

    def meet(self, name: str) -> None:
        """A hub connects to its parent. One that never authenticates has no session before its first assist_."""
        self.connect(name, self.parents[name])
        if name in self._named:
            self.introduce(name)

    def introduce(self, name: str) -> None:
        """A device registers at a hub, which therefore sends an assist_ request."""
        self._guests += 1
        number = self.connect(f"guest-{self._guests}", name)
        self.ask(number, "register")
        self.deliver(number, True)

    def judge(self) -> None:
        """With all hubs joined and nothing under way: who was admitted is, and who was revoked is nowhere."""
        self.settle()
        for device in DEVICES:
            for key in [*self.keys_of(device), *([""] if self.dialect is Dialect.FLAT else [])]:
                for name in self.hubs:
                    number = self.connect(device, name)
                    self.ask(number, "authenticate", key)
                    self.drain()
                    self._leave(number)
        self.settle()

    def _leave(self, number: int) -> None:
        if number in self.connections:
            self.drop(number)
        self.drain()

    def finish(self) -> None:
        self.judge()
        for hub in self.ours():
            waits = [one for one in hub.state.pending.values() if one.asker is not None]
            assert not waits, f"PendingEventuallyAnswered: {hub.name} waits for {waits}"
            assert not hub.state.owed, f"{hub.name} still owes {dict(hub.state.owed)}"

    # What devices do

    def keys_of(self, device: str) -> list[str]:
        """Everything a device was ever given, the newest last."""
        return list(dict.fromkeys(one.credential for one in self.inboxes.get(device, ()) if one.credential))

    def node_of(self, device: str) -> int:
        return next((one.node_id for one in reversed(self.inboxes.get(device, [])) if one.node_id), 0)

    def devices(self) -> list[int]:
        """Connections on which a device may ask: a plain hub is asked one thing at a time."""
        open_ones = ((number, one) for number, one in self.connections.items() if one.child_open)
        mine = [(number, one) for number, one in open_ones if one.child in DEVICES]
        return [number for number, one in mine if not is_plain(one.parent) or number not in self.waits]

    def ask(self, number: int, action: str, key: str = "") -> None:
        word = {"authenticate": "auth" if self.dialect is Dialect.AUTH else "login"}.get(action, action)
        data: dict[str, Any] = {"device_id": self.connections[number].child, **({"credential": key} if key else {})}
        body = {"action": word, **data} if self.dialect is Dialect.FLAT else {"action": word, "data": data}
        self._asked += 1
        self.put(number, plain.PlainFrame(body, msg_id=self._asked))
        self.waits.add(number)

    def arrive(self, pick: Pick) -> None:
        """A device turns up somewhere, its old connections still there or not, and presents what it has."""
        device = pick(DEVICES)
        if pick((True, False)):
            for number in [at for at, one in self.connections.items() if one.child == device and one.child_open]:
                self.drop(number)
        number = self.connect(device, pick(sorted(self.hubs)))
        keys = self.keys_of(device)
        known = bool(keys) or (self.dialect is Dialect.FLAT and self.node_of(device))
        self.ask(number, "authenticate" if known else "register", (keys or [""])[-1])

    def register(self, pick: Pick) -> None:
        if numbers := self.devices():
            self.ask(pick(numbers), "register")

    def authenticate(self, pick: Pick) -> None:
        if numbers := self.devices():
            number = pick(numbers)
            keys = self.keys_of(self.connections[number].child)
            guesses = [] if self.dialect is Dialect.FLAT else [WRONG]
            self.ask(number, "authenticate", pick((*keys[-1:] * 3, *keys, *guesses, *([""] if not keys else []))))

    def _enters(self, device: str, name: str, action: str, key: str = "") -> int:
        number = self.connect(device, name)
        self.ask(number, action, key)
        return number

    def _moves(self, pick: Pick) -> tuple[str, str, str]:
        """Nothing is under way, and a device has a new credential from one hub; the device, that hub and another."""
        self.settle()
        device = pick(DEVICES)
        anywhere = [(one, two) for one in sorted(self.hubs) for two in sorted(self.hubs) if one != two]
        home, other = pick((pick(anywhere), pick([(parent, name) for name, parent in sorted(self.parents.items())])))
        self._enters(device, home, "register")
        self.drain()
        return device, home, other

    def guess(self, pick: Pick) -> None:
        """At a hub where a device has not been, a stranger claims its name, or another name, at the same time."""
        device, _, other = self._moves(pick)
        keys, thief = self.keys_of(device)[-1:], pick((device, pick(DEVICES)))
        for name, key in pick([[(thief, WRONG), (device, *keys)], [(device, *keys), (thief, WRONG)]]) if keys else ():
            self.deliver(self._enters(name, other, "authenticate", key), True)

    def revoke_amid_search(self, pick: Pick) -> None:
        """A device is looked for while it is revoked."""
        device, home, other = self._moves(pick)
        number = self._enters(device, other, "authenticate", (self.keys_of(device) or [""])[-1])
        self.deliver(number, True)
        for _ in range(pick((0, 0, 1, 2))):
            self.deliver_some(pick)
        self.revoke(pick, device, pick((home, other, self.parents.get(other, home))))
        self.judge()

    def roam_with_a_trail(self, pick: Pick) -> None:
        """A device that has spoken elsewhere, at a hub that is back, is given a new credential, and moves."""
        device, home, other = self._moves(pick)
        number = self._enters(device, other, "authenticate", (self.keys_of(device) or [""])[-1])
        self.drain()
        self.drop_hub(pick)
        self.settle()
        if number in self.connections:
            self.put(number, plain.PlainFrame(b"opaque", self.node_of(device), NODES["A"], 1, plain.MSG, 6))
        self._enters(device, home, "register")
        self.drain()
        self._enters(device, pick(sorted(self.hubs)), "authenticate", (self.keys_of(device) or [""])[-1])

    def offline(self, pick: Pick) -> None:
        if self.dialect is not Dialect.FLAT and (numbers := self.devices()):
            number = pick(numbers)
            device = self.connections[number].child
            if not is_plain(self.connections[number].parent):
                data = {"device_id": device, "node_id": self.node_of(device)}
                body = {"action": "offline", "data": data}
                self.put(number, plain.PlainFrame(body, self.node_of(device), msg_id=900))

    def opaque(self, pick: Pick) -> None:
        """A frame of another sub-protocol."""
        if numbers := self.devices():
            number = pick(numbers)
            target = self.node_of(pick(DEVICES))
            source = self.node_of(self.connections[number].child)
            self.put(number, plain.PlainFrame(b"opaque", source, target, 1, plain.MSG, 6))

    # What operators do

    def revoke(self, pick: Pick, device: str = "", name: str = "") -> None:
        """An operator revokes, unless an equal revoke of a moment ago would make it look like an echo."""
        device, name = device or pick(DEVICES), name or pick(sorted(self.hubs))
        if self.dialect is not Dialect.FLAT and not any(hub.remembers(device) for hub in self.ours()):
            keys = self.keys_of(device)
            said = Revoke(device, pick((0, 0, self.node_of(device))), pick(("", "", *keys[-1:], *keys)))
            self.log.append(f"{name} is told to {said}")
            self.hubs[name].revoke(said)

    def many_kept(self, pick: Pick) -> None:
        """More is kept for a hub that is away than it is told at once, and then one of the devices registers there."""
        self.settle()
        name = pick(sorted(self.parents))
        number = self.hub_connection(name)
        assert number is not None
        self.drop(number)
        self.drain()
        for device in DEVICES:
            self.revoke(pick, device, self.parents[name])
        self.meet(name)
        self._enters(pick(DEVICES), name, "register")
        self.judge()

    def revoke_alone(self, pick: Pick) -> None:
        """Nothing else is under way, but a hub may be away."""
        self.settle()
        if pick((True, False)):
            self.drop_hub(pick)
            self.drain()
        if pick((True, False, False)):
            self.restart_hub(pick)
            self.drain()
        self.revoke(pick)
        if pick((True, False, False)):
            self.restart_hub(pick)
        self.judge()

    # What befalls them all

    def deliver_some(self, pick: Pick) -> None:
        for _ in range(pick((1, 2, 4, 8))):
            if ways := self.ways():
                self.deliver(*pick(ways))

    def flush(self, pick: Pick) -> None:
        pick(sorted(self.strangers(), key=lambda hub: hub.name)).flush()

    def drop_hub(self, pick: Pick) -> None:
        if numbers := [at for name in self.parents if (at := self.hub_connection(name)) is not None]:
            self.drop(pick(numbers))

    def return_hub(self, pick: Pick) -> None:
        open_ones = {one.child for one in self.connections.values() if one.child_open}
        if away := sorted(self.parents.keys() - open_ones):
            self.meet(pick(away))

    def drop_device(self, pick: Pick) -> None:
        if numbers := self.devices():
            self.drop(pick(numbers))

    def restart_hub(self, pick: Pick) -> None:
        self.restart(pick(sorted(self.hubs)))

    def run_out_of_patience(self, pick: Pick) -> None:
        if due := [(hub, timer) for hub in self.ours() for timer in hub.due(patience=not self.ways())]:
            hub, timer = pick(due)
            hub.fire(timer)


EVENTS: tuple[tuple[Callable[..., None], int], ...] = (
    (MixedWorld.deliver_some, 14),
    (MixedWorld.flush, 2),
    (MixedWorld.arrive, 5),
    (MixedWorld.register, 3),
    (MixedWorld.authenticate, 4),
    (MixedWorld.guess, 2),
    (MixedWorld.revoke_amid_search, 1),
    (MixedWorld.roam_with_a_trail, 1),
    (MixedWorld.many_kept, 1),
    (MixedWorld.offline, 1),
    (MixedWorld.opaque, 2),
    (MixedWorld.revoke, 2),
    (MixedWorld.revoke_alone, 1),
    (MixedWorld.drop_hub, 2),
    (MixedWorld.return_hub, 3),
    (MixedWorld.drop_device, 1),
    (MixedWorld.restart_hub, 1),
    (MixedWorld.run_out_of_patience, 1),
)
_WEIGHTED = [event for event, weight in EVENTS for _ in range(weight)]


def walk(seed: int, shape: str, dialect: Dialect, msg_id: str, steps: int = 60) -> MixedWorld:
    """One walk to its end. Raises AssertionError where something does not hold."""
    pick = RandomPick(seed)
    world = MixedWorld(SHAPES[shape], dialect, msg_id, pick)
    for _ in range(steps):
        pick(_WEIGHTED)(world, pick)
    world.finish()
    return world


def walk_mixed(seed: int) -> None:
    """One walk by its seed alone, which decides about shape, dialect and how answers are numbered, too."""
    ways = [(shape, dialect, msg_id) for shape in SHAPES for dialect in Dialect for msg_id in MSG_IDS]
    walk(seed, *ways[seed % len(ways)])
