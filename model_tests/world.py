"""A network to which anything may happen: one method per kind of event, every choice made by ``pick``.

The same events serve the Hypothesis machine (``network_machine``) and the seeded walk (``walk``). After
each of them every invariant is checked, and a few things that only whoever drives the network can see.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from hubauth.core.inputs import PARENT, Input, OperatorInvalidate, OperatorRevoke, PolicyChanged
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose
from hubauth.core.policy import Dialect, Policy
from hubauth.lab import tree
from hubauth.lab.invariants import check
from hubauth.lab.stepping import timers_of
from hubauth.lab.tree import Network, is_settled
from model_tests import outcomes
from model_tests.exercised import Tally
from model_tests.judging import sessions_not_online
from model_tests.trees import (
    ADMIN_KEY,
    SPARE_KEY,
    Pick,
    Shape,
    changed,
    child_hubs,
    draw_options,
    renewed,
    with_binding,
)

DEVICES = ("d1", "d2", "admin", "spare")
STORM = 4000
"""More deliveries than this without coming to rest, and messages do not drain."""
WRONG = "w" * 43

Event = Callable[["World", Pick], None]
EVENTS: dict[str, Event] = {}
"""Everything that may happen, by name."""
FLAT_EVENTS = {"connect", "register", "authenticate", "deliver", "drop", "drop_hub", "return_hub", "fire", "opaque"}
FLAT_EVENTS |= {"restart", "roam", "hang_up", "hostile", "settle_midway", "change_policy", "change_hub"}


def event(method: Event) -> Event:
    """List a method as something that may happen."""
    EVENTS[method.__name__] = method
    return method


class World:
    """A network, driven one event at a time."""

    def __init__(self, shape: Shape, dialect: Dialect, pick: Pick, tally: Tally) -> None:
        self.shape = shape
        self.dialect = dialect
        self.tally = tally
        self.rules: set[str] = set()
        self.most_pending = 0
        self.next_msg_id = 1000
        self.network = shape.build(draw_options(pick, dialect))
        self.settle()
        for device in ("d1", "d2", "admin"):
            if pick((True, False)):
                self.arrive(device, pick(self.hubs))
        self.drain()

    # One step at a time

    def become(self, network: Network) -> None:
        """Take the next network and insist that everything holds."""
        for happened in network.last:
            self.tally.add(happened.step.rules)
            self.rules.update(happened.step.rules)
        self.network = network
        found = check(network) + self.timers_disagree()
        for one in network.last:
            found += outcomes.check(one.policy, one.before, one.input, one.step)
        for state in network.states.values():
            found += sessions_not_online(state)
        assert not found, "\n".join(found)
        self.most_pending = max(self.most_pending, *(len(state.pending) for state in network.states.values()))

    def timers_disagree(self) -> list[str]:
        """Every request that waits has its timer, and no timer runs for nothing."""
        return [
            f"Timers: {hub} runs {running}, should run {needed}"
            for hub, state in self.network.states.items()
            if (running := {timer for name, timer in self.network.timers if name == hub})
            != (needed := timers_of(state))
        ]

    def _running(self, hub: str) -> set[int]:
        return {timer for name, timer in self.network.timers if name == hub}

    def feed(self, hub: str, happened: Input) -> None:
        self.become(tree.feed(self.network, hub, happened))

    def say(self, number: int, body: Body, **header: Any) -> None:
        """A device puts a frame on its connection."""
        self.next_msg_id += 1
        header.setdefault("sub_proto", 6 if isinstance(body, bytes) else 2)
        self.become(tree.say(self.network, number, Frame(body, msg_id=self.next_msg_id, **header)))

    # What the driver knows

    @property
    def hubs(self) -> list[str]:
        return sorted(self.network.states)

    def live(self) -> list[tuple[int, str]]:
        """The connections that devices can speak on."""
        return [
            (number, connection.child)
            for number, connection in sorted(self.network.connections.items())
            if connection.child in DEVICES and connection.child_open
        ]

    def hub_connections(self) -> list[int]:
        return [
            number
            for number, connection in sorted(self.network.connections.items())
            if connection.child in self.network.states and connection.child_open and connection.parent_open
        ]

    def answers_to(self, device: str) -> list[Answer]:
        return [frame.body for frame in self.network.inboxes.get(device, ()) if isinstance(frame.body, Answer)]

    def credentials_of(self, device: str) -> list[str]:
        """Everything a device was ever given, the newest last."""
        own = {"admin": [ADMIN_KEY], "spare": [SPARE_KEY]}.get(device, [])
        return own + [answer.credential for answer in self.answers_to(device) if answer.credential]

    def node_of(self, device: str) -> int:
        """What a device believes its node id is."""
        return next((answer.node_id for answer in reversed(self.answers_to(device)) if answer.node_id), 0)

    # Coming to rest

    def settle(self) -> None:
        """All hubs are hubs, they connect, everything is delivered, and the tree must come to rest."""
        for _ in range(20):
            self.reinstate_hubs()
            for hub in sorted(self.network.parents):
                if all(connection.child != hub for connection in self.network.connections.values()):
                    self.become(tree.connect(self.network, hub))
            self.drain()
            if is_settled(self.network):
                return
        raise AssertionError("the hubs do not all find their parents")

    def reinstate_hubs(self) -> None:
        """What operators did to hubs is undone: a demoted one is a hub again, a revoked one has a new credential."""
        for child, parent in sorted(self.network.parents.items()):
            policy, own = self.network.policies[parent], self.network.policies[child]
            (binding,) = [one for one in child_hubs(policy) if one.device_id == own.device_id]
            revoked = binding.device_id in self.network.states[parent].beaten
            now = evolve(renewed(binding) if revoked else binding, role="hub")
            if now != binding:
                self.configure(parent, with_binding(policy, now))
            if revoked:
                self.configure(child, evolve(own, credential=now.credential))
            # While it is taken for a device, and close_superseded is off, a hub can lose its session and not be told.
            if revoked or (now != binding and own.node_id not in self.network.states[parent].index.link_of_node):
                for number, connection in sorted(self.network.connections.items()):
                    if connection.child == child and connection.child_open:
                        self.become(tree.drop(self.network, number))

    def drain(self) -> None:
        for _ in range(STORM):
            if waiting := tree.waiting(self.network):
                self.become(tree.deliver(self.network, *waiting[0]))
            elif due := sorted(key for key, seconds in self.network.timers.items() if seconds == 0.0):
                self.become(tree.fire(self.network, *due[0]))
            else:
                return
        raise AssertionError("messages do not drain")

    def finish(self) -> None:
        """At the end everything settles, every request gets its answer, and every revoke is acknowledged."""
        self.settle()
        for key in sorted(self.network.timers):
            if key in self.network.timers:
                self.become(tree.fire(self.network, *key))
                self.drain()
        self.settle()
        for hub, state in sorted(self.network.states.items()):
            waits = [
                pending
                for pending in state.pending.values()
                if pending.purpose is not Purpose.UNHEARD or pending.asked not in state.links
            ]
            assert not waits, f"PendingEventuallyAnswered: {hub} still waits for {waits}"
            above = self.network.parents.get(hub)
            assert above is None or state.node_id in self.network.states[above].index.link_of_node, (
                f"{hub} believes its parent present, which has no session for it"
            )
            assert not state.owed, f"{hub} still owes {dict(state.owed)}"

    # What devices do

    def arrive(self, device: str, hub: str) -> None:
        """A device connects and presents what it has, or registers."""
        self.become(tree.connect(self.network, device, hub))
        keys = self.credentials_of(device)
        proof = "" if self.dialect is Dialect.FLAT else (keys or [""])[-1]
        entrance = Authenticate(device, proof) if keys else Register(device)
        self.say(self.network.next_connection - 1, entrance)

    @event
    def roam(self, pick: Pick) -> None:
        """A device turns up at another hub, its old connection still there or not."""
        device = pick(DEVICES[:3])
        number = tree.connection_of(self.network, device)
        if number is not None and pick((True, False)):
            self.become(tree.drop(self.network, number))
        self.arrive(device, pick(self.hubs))
        self.deliver(pick)

    @event
    def connect(self, pick: Pick) -> None:
        self.become(tree.connect(self.network, pick(DEVICES), pick(self.hubs)))

    @event
    def register(self, pick: Pick) -> None:
        if live := self.live():
            number, device = pick(live)
            claimed = pick((device, device, device, *DEVICES, "hub-2"))
            if claimed != "spare":  # a binding that comes and goes by configuration is never registered
                self.say(number, Register(claimed), source=pick((0, 0, 77)))

    @event
    def authenticate(self, pick: Pick) -> None:
        if live := self.live():
            number, device = pick(live)
            if self.dialect is Dialect.FLAT:
                claimed = pick((device, device, device, device, *DEVICES, "hub-2"))
                self.say(number, Authenticate(claimed), source=pick((0, 77)))
                return
            keys = self.credentials_of(device)
            self.say(number, Authenticate(device, pick((*keys[-1:] * 4, *keys, WRONG, ""))), trace_id=pick((0, 5)))

    @event
    def offline(self, pick: Pick) -> None:
        if live := self.live():
            number, device = pick(live)
            node_id = self.node_of(device)
            about = pick((device, device, device, *DEVICES))
            self.say(number, Offline(about, pick((node_id, 0)), pick(("", "bye"))), source=node_id)

    @event
    def revoke(self, pick: Pick) -> None:
        """By a device: some may, most may not."""
        if live := self.live():
            number, device = pick(live)
            self.say(number, self._some_revoke(pick), source=self.node_of(device), target=self._some_target(pick))

    @event
    def ask_perms(self, pick: Pick) -> None:
        if live := self.live():
            number, device = pick(live)
            bodies: tuple[Body, ...] = (GetPerms(pick((9, 10, 11, 2, 77))), ListRoles(0, pick((100, 1))))
            body = pick(bodies)
            self.say(number, body, source=self.node_of(device))

    @event
    def invalidate(self, pick: Pick) -> None:
        if live := self.live():
            number, device = pick(live)
            self.say(number, self._some_invalidation(pick), source=self.node_of(device))

    @event
    def opaque(self, pick: Pick) -> None:
        """A frame of another sub-protocol."""
        if live := self.live():
            number, device = pick(live)
            source = pick((self.node_of(device), self.node_of(device), 0, 10))
            self.say(number, b"opaque", source=source, target=pick((0, 2, 9, 10, 11, 77)), hop_limit=pick((0, 1, 2)))

    @event
    def hostile(self, pick: Pick) -> None:
        """A device sends what only hubs may send, an answer without a request, a foreign source, or nonsense."""
        live = self.live()
        if not live:
            return
        number, device = pick(live)
        source = pick((self.node_of(device), self.node_of(device), 0, 2, 10))
        victim = pick(DEVICES)
        flat: tuple[Body, ...] = (
            AssistRegister(victim),
            AssistAuthenticate(victim, "" if self.dialect is Dialect.FLAT else pick((WRONG, ADMIN_KEY))),
            Answer(pick((Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE)), Reason.OK, victim, 10, WRONG),
            Malformed(pick((None, Action.REGISTER, Action.ASSIST_REGISTER)), "bad", is_answer=pick((False, True))),
        )
        more: tuple[Body, ...] = (
            AssistAuthenticate(victim),
            HubOnline(victim, pick((0, 10, 11))),
            HubDismiss(victim, pick((0, 10, 11))),
            HubFence(),
            Register(victim, Ext("journal of a liar", "root", 9)),
            AssistQueryCredential(victim),
            AssistOffline(victim, pick((0, 10, 11))),
            Answer(pick((Action.HUB_FENCE, Action.HUB_DISMISS)), pick((Reason.OK, Reason.NOT_INDEXED)), victim, 10),
            Answer(Action.REVOKE, Reason.OK, victim, 10),
            Answer(Action.GET_PERMS, Reason.OK, node_id=10, grant=Grant("admin", ("auth.revoke", "auth.assist"))),
            Malformed(pick((Action.REVOKE, Action.GET_PERMS)), "bad"),
        )
        body = pick(flat if self.dialect is Dialect.FLAT else flat + more)
        msg_id = pick((1, 2, 3, self.next_msg_id + 1))
        major = Major.OK_RESP if isinstance(body, Answer) else Major.CMD
        frame = Frame(body, major, msg_id, source, pick((0, 1, 10)))
        self.become(tree.say(self.network, number, frame))

    # What operators do

    @event
    def operator_revoke(self, pick: Pick) -> None:
        self.feed(pick(self.hubs), OperatorRevoke(self._some_revoke(pick), self._some_target(pick)))

    @event
    def operator_invalidate(self, pick: Pick) -> None:
        self.feed(pick(self.hubs), OperatorInvalidate(self._some_invalidation(pick)))

    @event
    def change_policy(self, pick: Pick) -> None:
        hub = pick(self.hubs)
        old = self.network.policies[hub]
        self.configure(hub, evolve(old, **changed(old, pick, is_authority=hub == self.shape.authority)))

    @event
    def change_hub(self, pick: Pick) -> None:
        """A hub is told that a child hub is only a device, or is a hub again."""
        hub = pick(sorted(set(self.network.parents.values())))
        binding = pick(child_hubs(self.network.policies[hub]))
        other = evolve(binding, role="node" if binding.role == "hub" else "hub")
        self.configure(hub, with_binding(self.network.policies[hub], other))

    def configure(self, hub: str, new: Policy) -> None:
        """The operator of a hub changes its configuration."""
        self.become(tree.feed(self.network, hub, PolicyChanged(new)))

    # What befalls them all

    @event
    def deliver(self, pick: Pick) -> None:
        """Some of what is in flight arrives, in any order between connections."""
        for _ in range(pick((1, 2, 4, 8))):
            waiting = tree.waiting(self.network)
            if not waiting:
                return
            self.become(tree.deliver(self.network, *pick(waiting)))

    @event
    def settle_midway(self, pick: Pick) -> None:
        if pick((True, False)):
            self.settle()

    @event
    def drop(self, pick: Pick) -> None:
        if live := self.live():
            self.become(tree.drop(self.network, pick(live)[0]))

    @event
    def hang_up(self, pick: Pick) -> None:
        if live := self.live():
            self.become(tree.hang_up(self.network, pick(live)[0]))

    @event
    def drop_hub(self, pick: Pick) -> None:
        if numbers := self.hub_connections():
            self.become(tree.drop(self.network, pick(numbers)))

    @event
    def return_hub(self, pick: Pick) -> None:
        away = [
            hub
            for hub in sorted(self.network.parents)
            if PARENT not in self.network.states[hub].links
            and not any(c.child == hub and c.child_open for c in self.network.connections.values())
        ]
        if away:
            self.become(tree.connect(self.network, pick(away)))

    @event
    def fire(self, pick: Pick) -> None:
        if self.network.timers:
            self.become(tree.fire(self.network, *pick(sorted(self.network.timers))))

    @event
    def restart(self, pick: Pick) -> None:
        self.become(tree.restart(self.network, pick(self.hubs)))

    # Pieces

    def _some_revoke(self, pick: Pick) -> Revoke:
        if pick((True, *[False] * 9)):
            return Revoke(self.network.policies[pick(sorted(self.network.parents))].device_id)
        device = pick(DEVICES)
        keys = self.credentials_of(device)
        return Revoke(device, pick((0, 0, self.node_of(device), 77)), pick(("", "", *keys, WRONG)))

    def _some_target(self, pick: Pick) -> int:
        """Mostly everywhere; else a hub, a device, or nobody."""
        return pick((0, 0, 0, 1, 2, 3, 10, 77))

    def _some_invalidation(self, pick: Pick) -> PermsInvalidate:
        return PermsInvalidate(pick(((), (9,), (10, 11))), refresh=pick((False, True)))
