"""Every invariant of trees bites: one mistake in the core, or one wrong entry in a table, and it is found by its name.

The same story without the mistake finds nothing. Steps of a mistaken core are no evidence for any rule and make no
vectors, so the stories here tell nobody about them.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from attrs import evolve, frozen

from hubauth.core import admission, authenticate, authority, offline, owed, perms, presence, register, revoke, search
from hubauth.core.inputs import PARENT, Link, OperatorInvalidate, OperatorRevoke, Received
from hubauth.core.messages import (
    Answer,
    AssistOffline,
    Authenticate,
    Frame,
    GetPerms,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Neighbour, Pending, Registration, Route, Session
from hubauth.core.policy import Dialect, Reregister
from hubauth.core.talk import answer_to, settle
from hubauth.core.transition import Transition
from hubauth.network import tree
from hubauth.network.invariants import ALWAYS, SETTLED, check, is_settled
from hubauth.network.tree import Network, Way
from tests.network.harness import Story, three_levels


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


def assert_found(found: dict[str, Network], name: str, text: str) -> None:
    """The invariant of the tree with this name has found it, not one of a hub that is called the same."""
    lines = [line for line in found if re.match(f"{name}: .*{text}", line)]
    assert lines, "\n".join(found)
    for line in lines:
        assert line.removeprefix(f"{name}: ") in (ALWAYS | SETTLED)[name](found[line])


# Stories of a sensor, which becomes node 10


def two_register(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("other", "B")


def registers_twice(story: Watched) -> None:
    story.register("sensor", "A")
    story.register("sensor", "B")


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
_put_registration = Transition.put_registration


def does_nothing(*_: object, **__: object) -> None:
    """Whatever should be done here is forgotten."""


def always(*_: object) -> bool:
    return True


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


PLANTED = [
    Planted("UniqueNodeIds", "node 10 is ", two_register, register, "_allocate", gives_the_first_node),
    Planted("UniqueNodeIds", "node 10 is ", two_register, authority, "is_here", always),
    Planted("OneToOneBinding", "sensor is ", registers_twice, register, "_renew", gives_another_node),
    Planted("CredentialsNeverCachedUpstream", "mid", two_register, authenticate, "on_relayed_answer", keeps_relayed),
    Planted("RevokeNeverReachesDevices", "to other", is_revoked, admission, "decide_hub", always),
    Planted("RevokedStaysOut", "B still has", is_revoked, revoke, "_pass_on"),
    Planted("RevokedStaysOut", "B still has", revoke_is_lost, owed, "_send_fence", expects_no_answer),
    Planted("RevokedStaysOut", "B still has", revoke_meets_answer, revoke, "_cancel_authentications"),
    Planted("RevokedStaysOut", "B still has", others_are_revoked_twice, owed, "_next_batch"),
    Planted("RevokedStaysOut", "root still has", is_searched_while_others_are_revoked, owed, "send_first"),
    Planted("OneLiveCredential", "of sensor", registers_twice, revoke, "broadcast"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", roams, presence, "dismiss"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", roams, presence, "displace"),
    Planted("AtMostOneSession", "node 10 has 2 sessions", comes_twice, presence, "displace"),
    Planted("RoutesLeadToSessions", "A .* 10 .* via 10", leaves, Transition, "mark_offline"),
    Planted("RoutesLeadToSessions", "mid .* 10 .* via 3", leaves, presence, "report_offline"),
    Planted("RoutesLeadToSessions", "mid .* via 3", leaves_a_lost_hub, presence, "lose_hub"),
    Planted("SessionsAreRouted", "10 .* at A .* at A", two_register, presence, "point_at"),
    Planted("SessionsAreRouted", "10 .* at A .* at mid", two_register, presence, "announce"),
    Planted("SessionsAreRouted", "10 .* at mid", hub_returns, presence, "start_announcing"),
    Planted("SessionsAreRouted", "11 .* at mid", hub_returns, presence, "_continue_later", stops_after_a_batch),
    Planted("SessionsAreRouted", "at B .* at root", is_reported_late, offline, "_on_report", believes_it),
    Planted("NoLockOut", "B no longer", registers_while_others_are_revoked, owed, "send_first"),
    Planted("NoLockOut", "A no longer", old_one_is_revoked, revoke, "agrees", always),
    Planted("NoLockOut", "root no longer", revoke_comes_again, presence, "lose_hub", forgets_the_numbers),
    Planted("NoLockOut", "root no longer", revoke_comes_again, Transition, "put_neighbour", counts_nothing_as_handled),
    Planted("AdmittedAnywhere", "mid does not", registers_on_the_way, search, "go_on", does_not_climb),
    Planted("AdmittedAnywhere", "root does not", announcement_is_lost, Transition, "put_home"),
    Planted("NobodyShutOut", "sensor", answer_is_lost, Transition, "put_registration", confirms_at_once),
    Planted("SettledPermsAreCurrent", "mid has node 10", is_invalidated, perms, "pass_down"),
    Planted("SettledPermsAreCurrent", "A has node 10", is_invalidated, perms, "pass_down", passes_on_its_own),
]


def told(planted: Planted) -> Watched:
    story = Watched(three_levels(announce_batch=1, revoke_batch=1))
    planted.story(story)
    return story


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: f"{planted.name}-{planted.what}")
def test_a_mistake_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    right = told(planted)
    assert is_settled(right.network) and list(right.found) == []
    monkeypatch.setattr(planted.where, planted.what, planted.does)
    assert_found(told(planted).found, planted.name, planted.text)


def test_a_mistake_is_planted_for_every_invariant() -> None:
    assert {planted.name for planted in PLANTED} == {*ALWAYS, *SETTLED}


# Tables

Change: TypeAlias = tuple[str, str, Any, Any]
"""Hub, table, key, value."""

TAMPERED: list[tuple[str, str, Change]] = [
    ("UniqueNodeIds", "node 10 is ", ("B", "registry", "thief", Registration(10))),
    ("UniqueNodeIds", "node 10 is ", ("B", "whitelist", "thief", Entry(10, "c"))),
    ("UniqueNodeIds", "node 10 is ", ("B", "directory", 10, Route("thief", 10, False))),
    ("OneToOneBinding", "sensor is ", ("B", "registry", "sensor", Registration(99))),
    ("OneToOneBinding", "sensor is ", ("B", "whitelist", "sensor", Entry(99, "c"))),
    ("OneToOneBinding", "sensor is ", ("B", "directory", 99, Route("sensor", 99, False))),
    ("CredentialsNeverCachedUpstream", "root has", ("root", "whitelist", "sensor", Entry(10, "c"))),
    (
        "CredentialsNeverCachedUpstream",
        "root has .* hub-3",
        ("root", "whitelist", "hub-3", Entry(3, "c", True)),
    ),
    ("OneLiveCredential", "of sensor", ("B", "whitelist", "sensor", Entry(10, "c"))),
    ("AtMostOneSession", "node 10 ", ("B", "links", 99, Session("sensor", 10, False))),
    ("RoutesLeadToSessions", "root .* 10 .* via 4", ("root", "directory", 10, Route("sensor", 4, True))),
    ("RoutesLeadToSessions", "root .* 10 .* via 2", ("mid", "directory", 10, Route("sensor", 3, False))),
    ("RoutesLeadToSessions", "mid .* 10 .* via 3", ("A", "directory", 10, Route("sensor", 10, False))),
    ("RoutesLeadToSessions", "B .* 10 .* via 10", ("B", "directory", 10, Route("sensor", 10, True))),
    ("RoutesLeadToSessions", "B .* 10 .* via 3", ("B", "directory", 10, Route("sensor", 3, True))),
    ("RoutesLeadToSessions", "B .* 10 .* via 11", ("B", "directory", 10, Route("sensor", 11, True))),
    ("SessionsAreRouted", "10 .* at A .* at root", ("root", "directory", 10, Route("sensor", 2, False))),
    ("AdmittedAnywhere", "root does not admit other", ("root", "directory", 11, Route("other", 2, True))),
    ("NoLockOut", "A no longer admits sensor", ("A", "whitelist", "sensor", Entry(10, "d"))),
]


def settled() -> Network:
    story = Watched(three_levels())
    two_register(story)
    assert check(story.network) == []
    return story.network


def changed(network: Network, hub: str, **changes: Any) -> Network:
    return evolve(network, states=network.states.set(hub, evolve(network.states[hub], **changes)))


def tampered(network: Network, hub: str, table: str, key: Any, value: Any) -> Network:
    return changed(network, hub, **{table: getattr(network.states[hub], table).set(key, value)})


def configured(network: Network, hub: str, **options: Any) -> Network:
    return evolve(network, policies=network.policies.set(hub, evolve(network.policies[hub], **options)))


@pytest.mark.parametrize(("name", "text", "change"), TAMPERED)
def test_a_wrong_entry_is_found(name: str, text: str, change: Change) -> None:
    network = tampered(settled(), *change)
    assert_found(dict.fromkeys(check(network), network), name, text)


# What is not claimed


def test_two_credentials_are_right_where_a_registration_revokes_nothing() -> None:
    story = Watched(configured(three_levels(), "root", revoke_on_reregister=False))
    registers_twice(story)
    assert len({story.state(hub).whitelist["sensor"].credential for hub in ("A", "B")}) == 2
    assert list(story.found) == []


def test_a_registration_that_lets_an_owed_revoke_go_first_has_revoked_nothing_itself() -> None:
    """The hub between sends what it owed about the device and passes the registration on: the old credential stays."""
    story = Watched(three_levels(revoke_on_reregister=False, revoke_batch=1))
    credential = story.register("sensor", "A").credential
    story.feed("mid", OperatorRevoke(Revoke("other")))
    story.feed("mid", OperatorRevoke(Revoke("sensor", 0, "another")))
    new = story.connect("sensor", "A")
    story.say(new, Register("sensor"))
    story.deliver(new, Way.UP)
    story.deliver(story.connection("A"), Way.UP)
    assert "REV-22" in story.network.last[-1].step.rules
    assert credential not in story.network.revoked
    story.settle()
    assert credential not in story.network.revoked and list(story.found) == []


@pytest.mark.parametrize(
    "unsettle",
    [
        lambda network: tree.say(network, tree.connection_of(network, "sensor") or 0, Frame(GetPerms(10))),
        lambda network: changed(network, "A", announcing=(0, 10)),
        lambda network: changed(network, "mid", parent_present=False),
        lambda network: tampered(network, "mid", "links", 2, Session("hub-3", 3, False)),
        lambda network: configured(network, "B", dialect=Dialect.FLAT),
    ],
)
def test_what_takes_time_is_claimed_only_of_a_settled_tree(unsettle: Callable[[Network], Network]) -> None:
    network = settled()
    for _, _, change in TAMPERED:
        network = tampered(network, *change)
    found = {line.partition(":")[0] for line in check(network)}
    assert found >= {name for name, _, _ in TAMPERED}
    assert {line.partition(":")[0] for line in check(unsettle(network))} == found & set(ALWAYS)
