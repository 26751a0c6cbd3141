"""Races that a world of single events meets too seldom: each of these events sets one up and leaves its end open."""

from attrs import evolve

from hubauth.core.inputs import PARENT, OperatorInvalidate, OperatorRevoke
from hubauth.core.messages import GetPerms, PermsInvalidate, Register, Revoke
from hubauth.lab import tree
from hubauth.lab.tree import Way
from model_tests import world
from model_tests.trees import Pick
from model_tests.world import DEVICES, STORM, Event, World

EVENTS: dict[str, Event] = dict(world.EVENTS)
"""Everything that may happen in a network, these races included."""


def race(method: Event) -> Event:
    """List a function as something that may happen."""
    EVENTS[method.__name__] = method
    return method


def rise(subject: World) -> None:
    """Everything on its way up arrives, and nothing of what is on its way down."""
    for _ in range(STORM):
        number = next((number for number, way in tree.waiting(subject.network) if way is Way.UP), None)
        if number is None:
            return
        subject.become(tree.deliver(subject.network, number, Way.UP))
    raise AssertionError("messages do not drain")


def hear(subject: World, number: int) -> None:
    """Everything on its way up one connection arrives."""
    while number in subject.network.connections and subject.network.connections[number].up:
        subject.become(tree.deliver(subject.network, number, Way.UP))


@race
def bounce(subject: World, pick: Pick) -> None:
    """A device is back at a hub before that hub hears that it had left."""
    device = pick(DEVICES[:3])
    known = [hub for hub, state in sorted(subject.network.states.items()) if device in state.whitelist]
    hub = pick(known or subject.hubs)
    other = pick([name for name in (known[1:] and known) or subject.hubs if name != hub])
    for at in (hub, other, hub):
        subject.arrive(device, at)
        rise(subject)


@race
def bounce_and_leave(subject: World, pick: Pick) -> None:
    """A device is back at a hub that is about to be told to let it go, and leaves where it has been meanwhile."""
    device = pick(DEVICES[:2])
    known = [hub for hub, state in sorted(subject.network.states.items()) if device in state.whitelist]
    below = [hub for hub in known if hub in subject.network.parents]
    if len(known) > 1 and below:
        hub = pick(below)
        subject.arrive(device, hub)
        rise(subject)
        subject.arrive(device, pick([name for name in known if name != hub]))
        away = subject.network.next_connection - 1
        hear(subject, away)
        subject.arrive(device, hub)
        if (away, device) in subject.live():
            subject.become(tree.hang_up(subject.network, away))
        rise(subject)


@race
def revoke_while_searching(subject: World, pick: Pick) -> None:
    """A device is revoked while its hub asks others about it."""
    strangers = [
        (device, hub)
        for device in DEVICES[:3]
        for hub, state in sorted(subject.network.states.items())
        if subject.credentials_of(device) and device not in state.whitelist
    ]
    if strangers:
        device, hub = pick(strangers)
        for _ in range(pick((1, 2, 2))):
            subject.arrive(device, hub)
        rise(subject)
        lead_back(subject, hub, pick)
        named = pick(("", "", subject.credentials_of(device)[-1]))
        subject.feed(pick((hub, hub, hub, *subject.hubs)), OperatorRevoke(Revoke(device, 0, named)))


def lead_back(subject: World, hub: str, pick: Pick) -> None:
    """What others have asked hubs below them goes there and back, and perhaps the first answer arrives at ``hub``."""
    own = tree.connection_of(subject.network, hub)
    for _ in range(pick((0, STORM, STORM))):
        others = [item for item in tree.waiting(subject.network) if item != (own, Way.DOWN)]
        if not others:
            break
        subject.become(tree.deliver(subject.network, *others[0]))
    if own is not None and subject.network.connections[own].down and pick((True, False)):
        subject.become(tree.deliver(subject.network, own, Way.DOWN))


@race
def revoke_where_another_registers(subject: World, pick: Pick) -> None:
    """A device is revoked while another registers on its connection."""
    device, other = pick((DEVICES[:2], DEVICES[1::-1]))
    below = [
        (number, connection.parent)
        for number, connection in sorted(subject.network.connections.items())
        if (number, device) in subject.live() and connection.parent != subject.shape.authority
    ]
    if below:
        number, hub = pick(below)
        subject.say(number, Register(other))
        hear(subject, number)
        subject.feed(hub, OperatorRevoke(Revoke(device)))


@race
def ask_for_a_replacement(subject: World, pick: Pick) -> None:
    """A device registers again where it has a credential and no session: that may be refused."""
    known = [
        (device, hub)
        for device in DEVICES[:2]
        for hub, state in sorted(subject.network.states.items())
        if device in state.whitelist and hub != subject.shape.authority
    ]
    if known:
        device, hub = pick(known)
        for number in [number for number, owner in subject.live() if owner == device]:
            subject.become(tree.hang_up(subject.network, number))
            hear(subject, number)
        subject.become(tree.connect(subject.network, device, hub))
        subject.say(subject.network.next_connection - 1, Register(device))


@race
def name_and_forget(subject: World, pick: Pick) -> None:
    """The configuration of the authority names the nodes that are next, until one device has registered."""
    hub = subject.shape.authority
    policy = subject.network.policies[hub]
    first = max(subject.network.states[hub].next_node_id, policy.first_node_id)
    named = range(first, first + pick((1, 2)))
    subject.configure(hub, evolve(policy, node_roles=dict.fromkeys(named, "admin")))
    for count in range(2):
        at = subject.network.next_connection
        subject.become(tree.connect(subject.network, f"new-{at}", hub))
        subject.say(at, Register(f"new-{at}"))
        hear(subject, at)
        if count == 0:
            subject.configure(hub, policy)


@race
def disturb_admission(subject: World, pick: Pick) -> None:
    """A device waits at a hub that has forgotten its role, and before the answer comes something happens to it."""
    known = [
        (device, hub)
        for device in DEVICES[:3]
        for hub, state in sorted(subject.network.states.items())
        if device in state.whitelist
    ]
    if not known:
        return
    device, hub = pick(known)
    subject.feed(hub, OperatorInvalidate(PermsInvalidate()))
    subject.arrive(device, hub)
    rise(subject)
    what = pick(("revoke", "again", "elsewhere", "forget", "lose"))
    if what == "revoke":
        subject.feed(pick((hub, *subject.hubs)), OperatorRevoke(Revoke(device)))
    elif what == "again":
        subject.say(subject.network.next_connection - 1, Register(device))
    elif what == "elsewhere":
        subject.arrive(device, pick((hub, *subject.hubs)))
    elif what == "forget":
        subject.feed(pick((hub, *subject.hubs)), OperatorInvalidate(PermsInvalidate(pick(((), (10,), (11,))))))
    elif numbers := subject.hub_connections():
        subject.become(tree.drop(subject.network, pick(numbers)))


@race
def lose_acknowledgement(subject: World, pick: Pick) -> None:
    """A hub cannot know that its revoke was heard, and the device registers anew before it says so again."""
    hub, device = pick(sorted(subject.network.parents)), pick(DEVICES[:2])
    number = tree.connection_of(subject.network, hub)
    if number is not None:
        subject.feed(hub, OperatorRevoke(Revoke(device)))
        rise(subject)
        if number in subject.network.connections:
            subject.become(tree.drop(subject.network, number))
        subject.become(tree.connect(subject.network, device, pick(subject.hubs)))
        subject.say(subject.network.next_connection - 1, Register(device))
        rise(subject)


def ask_everywhere(subject: World, pick: Pick) -> None:
    """Every device asks for the permissions of some device."""
    for number, device in subject.live():
        node_id = subject.node_of(device)
        subject.say(number, GetPerms(pick((node_id, 10, 11))), source=node_id)


@race
def miss_an_invalidation(subject: World, pick: Pick) -> None:
    """A hub is away when the hub above it forgets permissions that are known below."""
    if numbers := subject.hub_connections():
        # A hub that has hubs below it comes up more often: they have missed it too, and do not know.
        inner = set(subject.network.parents.values())
        number = pick([*numbers, *(each for each in numbers * 4 if subject.network.connections[each].child in inner)])
        away = subject.network.connections[number]
        below = [hub for hub in subject.hubs if away.child in (hub, subject.network.parents.get(hub))]
        subject.arrive(pick(DEVICES[:2]), pick(below))
        subject.drain()
        ask_everywhere(subject, pick)
        subject.drain()
        if number in subject.network.connections:
            subject.become(tree.drop(subject.network, number))
        subject.feed(away.parent, OperatorInvalidate(PermsInvalidate(pick(((), (10, 11))))))
        subject.settle_midway(pick)


@race
def invalidate_while_asking(subject: World, pick: Pick) -> None:
    """Permissions are to be forgotten while answers about them are on their way."""
    ask_everywhere(subject, pick)
    rise(subject)
    message = PermsInvalidate(pick(((), (10, 11))), refresh=pick((False, True)))
    subject.feed(pick(subject.hubs), OperatorInvalidate(message))


def hold_back(subject: World, hub: str) -> None:
    """Everything arrives but what is on its way down to one hub."""
    for _ in range(STORM):
        own = tree.connection_of(subject.network, hub)
        others = [item for item in tree.waiting(subject.network) if item != (own, Way.DOWN)]
        if not others:
            return
        subject.become(tree.deliver(subject.network, *others[0]))
    raise AssertionError("messages do not drain")


@race
def revokes_pile_up(subject: World, pick: Pick) -> None:
    """A hub is lost with more than a batch unacknowledged, some of it sent out of turn; when it is back, more is."""
    hub = pick(sorted(subject.network.parents))
    number = tree.connection_of(subject.network, hub)
    if number is None or PARENT not in subject.network.states[hub].links:
        return
    above, first = subject.network.parents[hub], subject.network.next_connection
    one, two, three = (f"new-{first + count}" for count in range(3))
    for device in (one, two):
        subject.feed(above, OperatorRevoke(Revoke(device)))
    _register_unheard(subject, two, hub)
    if number in subject.network.connections:
        subject.become(tree.drop(subject.network, number))
        subject.become(tree.deliver(subject.network, number, Way.DOWN))
    subject.feed(above, OperatorRevoke(Revoke(three)))
    if PARENT in subject.network.states[hub].links:
        return
    subject.become(tree.connect(subject.network, hub))
    hold_back(subject, hub)
    again = subject.network.next_connection - 1
    if again in subject.network.connections and subject.network.connections[again].down:
        subject.become(tree.deliver(subject.network, again, Way.DOWN))
    _register_unheard(subject, three, hub)


def _register_unheard(subject: World, device: str, hub: str) -> None:
    """A device registers at a hub, and what comes back to that hub is still on its way."""
    at = subject.network.next_connection
    subject.become(tree.connect(subject.network, device, hub))
    subject.say(at, Register(device))
    hold_back(subject, hub)
