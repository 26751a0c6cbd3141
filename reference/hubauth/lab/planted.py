"""Mistakes in the core, each with a story in which it breaks something that must be true of a tree.

Steps of a mistaken core are no evidence for any rule and make no vectors, so the stories here tell nobody about them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from hubauth.core import (
    admission,
    authenticate,
    authority,
    links,
    offline,
    owed,
    perms,
    presence,
    register,
    revoke,
    search,
    step,
    talk,
)
from hubauth.core.inputs import PARENT, Link, OperatorInvalidate, OperatorRevoke, Received
from hubauth.core.messages import (
    Answer,
    AssistOffline,
    Authenticate,
    GetPerms,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Neighbour, Pending, Registration, Route, Session
from hubauth.core.policy import Reregister
from hubauth.core.talk import answer_to, settle
from hubauth.core.transition import Transition
from hubauth.lab import tree
from hubauth.lab.invariants import check
from hubauth.lab.story import Story, configured
from hubauth.lab.tree import Network, Way

if TYPE_CHECKING:
    from pytest import MonkeyPatch


class Watched(Story):
    """A story that goes on when something is found, and keeps where it was found first."""

    def __init__(self, network: Network) -> None:
        super().__init__(network)
        self.found: dict[str, Network] = {}
        self.hubs_join("mid", "A", "B")

    def become(self, network: Network) -> None:
        self.network = network
        for line in check(network):
            self.found.setdefault(line, network)


# Stories of a sensor, which becomes node 10


def two_register(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("other", "B")


def registers_twice(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("sensor", "B")


def guesses(story: Watched) -> None:
    story.register("sensor", "A")
    story.authenticate("sensor", "A", "g" * 43)


def waits_in_vain(story: Watched) -> None:
    number = story.connect("sensor", "A")
    story.say(number, Authenticate("sensor", "g" * 43))
    story.deliver(number, Way.UP)
    for hub, timer in sorted(story.network.timers):
        story.become(tree.fire(story.network, hub, timer))
    story.settle()


def roams(story: Watched) -> None:
    story.authenticate("sensor", "B", story.register("sensor", "A").credential)


def comes_twice(story: Watched) -> None:
    story.authenticate("sensor", "A", story.register("sensor", "A").credential)


def leaves(story: Watched) -> None:
    story.register("sensor", "A")
    story.drop("sensor")


def leaves_a_lost_hub(story: Watched) -> None:
    story.register("sensor", "A")
    story.drop("A")
    story.drop("sensor")
    story.hubs_join("A")


def hub_returns(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("other", "A")
    story.drop("A")
    story.hubs_join("A")


def is_reported_late(story: Watched) -> None:
    credential = story.register("sensor", "B").credential
    story.authenticate("sensor", "A", credential)
    old = story.connection("sensor")
    story.offline("sensor", old, 10)
    story.deliver(old, Way.UP)
    story.deliver(story.connection("A"), Way.UP)
    new = story.connect("sensor", "B")
    story.say(new, Authenticate("sensor", credential))
    story.deliver(new, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    assert story.route("root", 10) == (4, True), "the report of mid comes only now"
    story.settle()


def registers_while_others_are_revoked(story: Watched) -> None:
    story.register("sensor", "B")
    story.feed("root", OperatorRevoke(Revoke("other")))
    new = story.connect("sensor", "B")
    story.say(new, Register("sensor"))
    story.deliver(new, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    story.settle()


def is_searched_while_others_are_revoked(story: Watched) -> None:
    credential = story.register("sensor", "B").credential
    story.feed("root", OperatorRevoke(Revoke("other")))
    story.feed("root", OperatorRevoke(Revoke("sensor")))
    new = story.connect("sensor", "root")
    story.say(new, Authenticate("sensor", credential))
    story.deliver(new, Way.UP)
    story.settle()


def others_are_revoked_twice(story: Watched) -> None:
    story.register("sensor", "B")
    story.feed("root", OperatorRevoke(Revoke("other")))
    story.feed("root", OperatorRevoke(Revoke("sensor")))
    story.settle()


def is_revoked(story: Watched) -> None:
    roams(story)
    story.register("other", "B")
    story.feed("A", OperatorRevoke(Revoke("sensor")))
    story.settle()


def revoke_is_lost(story: Watched) -> None:
    roams(story)
    story.feed("A", OperatorRevoke(Revoke("sensor")))
    story.deliver(story.connection("A"), Way.UP)
    story.deliver(story.connection("mid"), Way.UP)
    assert story.network.connections[story.connection("B")].down, "it is on its way to B"
    story.drop("B")
    story.hubs_join("B")


def revoke_meets_answer(story: Watched) -> None:
    credential = story.register("sensor", "A").credential
    number = story.connect("sensor", "B")
    story.say(number, Authenticate("sensor", credential))
    story.deliver(number, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    story.deliver(story.connection("mid"), Way.DOWN)
    story.deliver(story.connection("A"), Way.DOWN)
    story.feed("B", OperatorRevoke(Revoke("sensor")))
    story.settle()


def old_one_is_revoked(story: Watched) -> None:
    first = story.register("sensor", "A").credential
    story.register("sensor", "A")
    story.feed("root", OperatorRevoke(Revoke("sensor", 0, first)))
    story.settle()


def revoke_comes_again(story: Watched) -> None:
    story.register("sensor", "root")
    story.feed("B", OperatorRevoke(Revoke("sensor")))
    story.deliver(story.connection("B"), Way.UP)
    story.drop("B")
    story.register("sensor", "root")
    story.hubs_join("B")


def registers_on_the_way(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("sensor", "root")


def announcement_is_lost(story: Watched) -> None:
    story.register("sensor", "A")
    number = story.connect("sensor", "B")
    story.say(number, Register("sensor"))
    story.deliver(number, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    while "sensor" not in story.state("B").whitelist:
        story.deliver(story.connection("B"), Way.DOWN)
    story.drop("B")
    story.drop("sensor")
    story.hubs_join("B")
    assert story.route("root", 10) == (2, False), "nobody above B has heard that it was there"


def answer_is_lost(story: Watched) -> None:
    for name in story.network.policies:
        story.network = configured(story.network, name, reregister=Reregister.AFTER_REVOKE)
    number = story.connect("sensor", "B")
    story.say(number, Register("sensor"))
    story.deliver(number, Way.UP)
    story.deliver(story.connection("B"), Way.UP)
    story.drop("B")
    story.hubs_join("B")


def is_invalidated(story: Watched) -> None:
    story.register("sensor", "A")
    story.feed("A", OperatorInvalidate(PermsInvalidate()))
    story.say(story.connection("sensor"), GetPerms(10), source=10)
    story.settle()
    story.feed("root", OperatorInvalidate(PermsInvalidate((10,))))
    story.settle()


# Mistakes

_on_relayed_answer, _lose_hub = authenticate.on_relayed_answer, presence.lose_hub
_pass_down, _send_fence = perms.pass_down, owed._send_fence
_put_registration, _reply = Transition.put_registration, talk.reply


def does_nothing(*_: object, **__: object) -> None:
    """Whatever should be done here is forgotten."""


def always(*_: object) -> bool:
    return True


def stays_online(t: Transition, node_id: int) -> Route:
    return t.directory[node_id]


def gives_the_first_node(t: Transition, device_id: str, _: bool) -> int:
    t.put_registration(device_id, Registration(t.policy.first_node_id))
    return t.policy.first_node_id


def gives_another_node(t: Transition, _: Received, device_id: str, __: Registration, ___: bool) -> int | Reason:
    return register._allocate(t, device_id, True)


def confirms_at_once(t: Transition, device_id: str, registration: Registration) -> None:
    _put_registration(t, device_id, evolve(registration, confirmed=True))


def keeps_relayed(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    _on_relayed_answer(t, pending, answer, source)
    t.put_entry(pending.device_id, Entry(answer.node_id, answer.credential))


def answers_twice(t: Transition, link: Link, msg_id: int, trace_id: int, answer: Answer, source: int = 0) -> None:
    for _ in range(2):
        _reply(t, link, msg_id, trace_id, answer, source)


def expects_no_answer(t: Transition, key: int, link: Link, number: int) -> None:
    _send_fence(t, key, link, number)
    for turn in t.debts.turns[key]:
        t.delete_owed(key, t.debts.at[key, turn])


def forgets_the_numbers(t: Transition, link: Link, session: Session) -> None:
    _lose_hub(t, link, session)
    t.put_neighbour(session.node_id, Neighbour(journal=t.neighbours[session.node_id].journal))


def counts_nothing_as_handled(t: Transition, key: int, neighbour: Neighbour) -> None:
    t._put("neighbours", key, evolve(neighbour, handled=0))


def does_not_climb(t: Transition, pending: Pending, reason: Reason) -> None:
    settle(t, pending, reason)


def stops_after_a_batch(t: Transition) -> None:
    t.announcing = None


def believes_it(t: Transition, received: Received, message: AssistOffline) -> None:
    route = t.mark_offline(message.node_id)
    answer_to(t, received, Reason.OK)
    presence.report_offline(t, message.node_id, route.device_id)


def passes_on_its_own(t: Transition, message: PermsInvalidate, came_from: Link | None) -> None:
    if came_from != PARENT:
        _pass_down(t, message, came_from)


@frozen
class Planted:
    """A mistake: in place of what the core does, ``does``. The invariant ``name`` must find it in the story."""

    name: str
    text: str
    story: Callable[[Watched], None]
    where: Any
    what: str
    does: Callable[..., object] = does_nothing

    def plant(self, patch: "MonkeyPatch") -> None:
        """Let the core make this mistake, also where its table of handlers names the function."""
        right = getattr(self.where, self.what)
        handlers = {kind: self.does if known is right else known for kind, known in step._HANDLERS.items()}
        patch.setattr(step, "_HANDLERS", handlers)
        patch.setattr(self.where, self.what, self.does)


PLANTED = [
    Planted("UniqueNodeIds", "other 10; .* sensor 10", two_register, register, "_allocate", gives_the_first_node),
    Planted("UniqueNodeIds", "other 10; .* sensor 10", two_register, authority, "is_here", always),
    Planted("OneToOneBinding", "sensor 11; .* sensor 10", registers_twice, register, "_renew", gives_another_node),
    Planted(
        "CredentialsNeverCachedUpstream",
        "mid rests sensor",
        two_register,
        authenticate,
        "on_relayed_answer",
        keeps_relayed,
    ),
    Planted("AdmittedByCredential", "A sent Answer sensor", guesses, authenticate, "verify", always),
    Planted("NoAnswerWithoutRequest", "A sent Answer sensor", two_register, talk, "reply", answers_twice),
    Planted("PendingEventuallyAnswered", "A received Authenticate", waits_in_vain, links, "give_up"),
    Planted("RevokeNeverReachesDevices", "to other", is_revoked, admission, "decide_hub", always),
    Planted("RevokedStaysOut", "B rests sensor", is_revoked, revoke, "_pass_on"),
    Planted("RevokeArrives", ".*.* A commanded", is_revoked, revoke, "_pass_on"),
    Planted("RevokedStaysOut", "B rests sensor", revoke_is_lost, owed, "_send_fence", expects_no_answer),
    Planted("RevokedStaysOut", "B rests sensor", revoke_meets_answer, revoke, "_cancel_authentications"),
    Planted("RevokedStaysOut", "B rests sensor", others_are_revoked_twice, owed, "_next_batch"),
    Planted("RevokedStaysOut", "root rests sensor", is_searched_while_others_are_revoked, owed, "send_first"),
    Planted("RevokedStaysOut", "A rests sensor", registers_twice, revoke, "broadcast"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", roams, presence, "dismiss"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", roams, presence, "displace"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", comes_twice, presence, "displace"),
    Planted("RoutesLeadToSessions", "A .* 10 .* via 10", leaves, Transition, "mark_offline", stays_online),
    Planted("RoutesLeadToSessions", "mid .* 10 .* via 3", leaves, presence, "report_offline"),
    Planted("RoutesLeadToSessions", "mid .* via 3", leaves_a_lost_hub, presence, "lose_hub"),
    Planted("SessionsAreRouted", "10 .* at A .* at A", two_register, presence, "point_at"),
    Planted("SessionsAreRouted", "10 .* at A .* at mid", two_register, presence, "announce"),
    Planted("SessionsAreRouted", "10 .* at mid", hub_returns, presence, "start_announcing"),
    Planted("SessionsAreRouted", "11 .* at mid", hub_returns, presence, "_continue_later", stops_after_a_batch),
    Planted("SessionsAreRouted", "at B .* at root", is_reported_late, offline, "_on_report", believes_it),
    Planted("NoLockOut", "B sent Answer sensor", registers_while_others_are_revoked, owed, "send_first"),
    Planted("NoLockOut", "A sent Answer sensor", old_one_is_revoked, revoke, "agrees", always),
    Planted("NoLockOut", "root sent Answer sensor", revoke_comes_again, presence, "lose_hub", forgets_the_numbers),
    Planted(
        "NoLockOut",
        "root sent Answer sensor",
        revoke_comes_again,
        Transition,
        "put_neighbour",
        counts_nothing_as_handled,
    ),
    Planted("AdmittedAnywhere", "mid sent Answer sensor", registers_on_the_way, search, "go_on", does_not_climb),
    Planted("AdmittedAnywhere", "root sent Answer sensor", announcement_is_lost, Transition, "put_home"),
    Planted("NobodyShutOut", "sensor", answer_is_lost, Transition, "put_registration", confirms_at_once),
    Planted("SettledPermsAreCurrent", "mid has node 10", is_invalidated, perms, "pass_down"),
    Planted("SettledPermsAreCurrent", "A has node 10", is_invalidated, perms, "pass_down", passes_on_its_own),
]
