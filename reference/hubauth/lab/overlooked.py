"""Mistakes that every check once overlooked, each with its story: random walks must find all of them, too."""

from attrs import evolve
from immutables import Map

from hubauth.core import authenticate, presence, register, revoke
from hubauth.core.inputs import Link, OperatorRevoke, PolicyChanged, Received
from hubauth.core.messages import Answer, Authenticate, HubOnline, Reason, Register, Revoke
from hubauth.core.model import Entry, Pending, Purpose, Registration
from hubauth.core.policy import Provisioned, Reregister
from hubauth.core.transition import Transition
from hubauth.lab import tree
from hubauth.lab.planted import Planted, Watched
from hubauth.lab.story import configured
from hubauth.lab.tree import Way

_cancel_authentications, _on_relayed_answer = revoke._cancel_authentications, authenticate.on_relayed_answer
_on_register_answer, _allocate, _on_announcement = (
    register.on_register_answer,
    register._allocate,
    presence.on_announcement,
)


def two_searches_meet_a_revoke(story: Watched) -> None:
    """Two connections at B are searched for; one is let in, then the device is revoked, then the other answer comes."""
    credential = story.register("sensor", "A").credential
    for _ in range(2):
        number = story.connect("sensor", "B")
        story.say(number, Authenticate("sensor", credential))
        story.deliver(number, Way.UP)
    for child, way in (("B", Way.UP), ("mid", Way.DOWN), ("A", Way.DOWN), ("A", Way.UP), ("mid", Way.UP)):
        story.deliver(story.connection(child), way, times=2)
    story.deliver(story.connection("B"), Way.DOWN)
    story.feed("B", OperatorRevoke(Revoke("sensor")))
    story.settle()


def cancels_only_for_strangers(t: Transition, message: Revoke) -> None:
    if message.device_id not in t.whitelist:
        _cancel_authentications(t, message)


def registers_at_two_hubs_of_a_branch(story: Watched) -> None:
    """Nothing is revoked by registering again, so mid has the older credential when it passes the newer on."""
    story.network = configured(story.network, "root", revoke_on_reregister=False)
    story.register("sensor", "mid")
    story.register("sensor", "A")


def refreshes_what_it_relays(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    _on_relayed_answer(t, pending, answer, source)
    if answer.reason is Reason.OK and answer.credential and pending.device_id in t.whitelist:
        t.put_entry(pending.device_id, Entry(answer.node_id, answer.credential))


def another_registers_on_the_link_of_the_revoked(story: Watched) -> None:
    story.register("sensor", "A")
    number = story.connection("sensor")
    story.say(number, Register("other"))
    story.deliver(number, Way.UP)
    story.feed("A", OperatorRevoke(Revoke("sensor")))
    story.settle()


def spares_only_its_own_registration(t: Transition, link: Link) -> bool:
    session = t.links[link]
    waiting = (t.pending[msg_id] for msg_id in t.waiting.get(link, ()))
    mine = session.device_id if session is not None else ""
    return any(pending.purpose is Purpose.REGISTER and pending.device_id == mine for pending in waiting)


def is_refused_a_replacement(story: Watched) -> None:
    for name in story.network.policies:
        story.network = configured(story.network, name, reregister=Reregister.AFTER_REVOKE)
    story.register("sensor", "A")
    story.drop("sensor")
    assert story.register("sensor", "A").reason is Reason.PROTECTED


def forgets_whoever_was_refused(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    _on_register_answer(t, pending, answer, source)
    entry = t.whitelist.get(pending.device_id)
    if answer.reason is not Reason.OK and entry is not None and t.session_of_node(entry.node_id) is None:
        t.delete_entry(pending.device_id)


def roles_are_named_and_forgotten(story: Watched) -> None:
    """The configuration means somebody by nodes 10 and 11; the sensor is given 12; then it means nobody any more."""
    for roles in ({10: "admin", 11: "admin"}, {}):
        policy = evolve(story.network.policies["root"], node_roles=Map(roles))
        story.become(tree.feed(story.network, "root", PolicyChanged(policy)))
        story.settle()
        story.register("sensor" if roles else "other", "A")


def goes_on_behind_what_it_skipped(t: Transition, device_id: str, confirmed: bool) -> int | Reason:
    first = max(t.next_node_id, t.policy.first_node_id)
    given = _allocate(t, device_id, confirmed)
    t.next_node_id = first + 1
    return given


def a_binding_is_configured(story: Watched) -> None:
    """The configuration of the authority means the camera by node 10, before anybody has registered."""
    root = story.network.policies["root"]
    policy = evolve(root, provisioned=(*root.provisioned, Provisioned("camera", 10, "k" * 43)))
    story.become(tree.feed(story.network, "root", PolicyChanged(policy)))
    story.settle()
    story.register("sensor", "A")


def gives_what_is_configured(t: Transition, device_id: str, confirmed: bool) -> int | Reason:
    node_id = max(t.next_node_id, t.policy.first_node_id)
    t.next_node_id = node_id + 1
    t.put_registration(device_id, Registration(node_id, confirmed=confirmed))
    return node_id


def leaves_while_its_old_hub_is_dismissed(story: Watched) -> None:
    """The sensor moved from A to B and back; before the root hears of that, B has lost it."""
    credential = story.register("sensor", "A").credential
    moved = story.connect("sensor", "B")
    story.say(moved, Authenticate("sensor", credential))
    back = story.connect("sensor", "A")
    story.say(back, Authenticate("sensor", credential))
    story.deliver(moved, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    story.deliver(story.connection("mid"), Way.DOWN)
    story.deliver(story.connection("A"), Way.DOWN)
    story.deliver(story.connection("A"), Way.UP)
    story.deliver(story.connection("mid"), Way.UP)
    while story.network.connections[story.connection("B")].down:
        story.deliver(story.connection("B"), Way.DOWN)
    story.deliver(story.connection("B"), Way.UP)
    story.deliver(back, Way.UP)
    story.deliver(story.connection("A"), Way.UP)
    story.offline("sensor", moved, 10)
    story.deliver(moved, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    story.settle()


def believes_the_dismissed_if_offline(t: Transition, received: Received, message: HubOnline) -> None:
    order, route = (received.link, message.node_id), t.directory.get(message.node_id)
    if order not in t.dismissed or route is None or route.online:
        _on_announcement(t, received, message)
        return
    outstanding = t.dismissed[order]
    t.dismissed = t.dismissed.delete(order)
    _on_announcement(t, received, message)
    t.dismissed = t.dismissed.set(order, outstanding)


A_SEARCH = Planted(
    "RevokedStaysOut",
    "B rests sensor",
    two_searches_meet_a_revoke,
    revoke,
    "_cancel_authentications",
    cancels_only_for_strangers,
)
A_RELAY = Planted(
    "CredentialsNeverCachedUpstream",
    "mid rests sensor",
    registers_at_two_hubs_of_a_branch,
    authenticate,
    "on_relayed_answer",
    refreshes_what_it_relays,
)
A_LINK = Planted(
    "PendingEventuallyAnswered",
    "A closed.* A received Register other",
    another_registers_on_the_link_of_the_revoked,
    revoke,
    "_registers",
    spares_only_its_own_registration,
)
A_REFUSAL = Planted(
    "NoLockOut",
    "A sent Answer sensor",
    is_refused_a_replacement,
    register,
    "on_register_answer",
    forgets_whoever_was_refused,
)
AN_ALLOCATOR = Planted(
    "UniqueNodeIds",
    "root sent Answer other 11",
    roles_are_named_and_forgotten,
    register,
    "_allocate",
    goes_on_behind_what_it_skipped,
)
AN_ANNOUNCEMENT = Planted(
    "RoutesLeadToSessions",
    "root has node 10 online via 2",
    leaves_while_its_old_hub_is_dismissed,
    presence,
    "on_announcement",
    believes_the_dismissed_if_offline,
)
A_CONFIGURATION = Planted(
    "UniqueNodeIds",
    "root sent Answer sensor 10 .*; but .* root configured",
    a_binding_is_configured,
    register,
    "_allocate",
    gives_what_is_configured,
)
OVERLOOKED = [A_SEARCH, A_RELAY, A_LINK, A_REFUSAL, AN_ALLOCATOR, AN_ANNOUNCEMENT, A_CONFIGURATION]
