"""Every invariant of trees bites: one mistake in the core, or one wrong entry in a table, and it is found by its name.

The same story without the mistake finds nothing.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from attrs import evolve, fields
from immutables import Map

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Action, Frame, GetPerms, Grant, Register, Revoke
from hubauth.core.model import Entry, Owed, Pending, Purpose, Registration, Route, Session, State
from hubauth.core.policy import Dialect
from hubauth.lab import tree
from hubauth.lab.invariants import ALWAYS, SETTLED, check
from hubauth.lab.observed import at_rest
from hubauth.lab.overlooked import OVERLOOKED
from hubauth.lab.planted import PLANTED, Planted, Watched, registers_twice, two_register
from hubauth.lab.story import configured, three_levels
from hubauth.lab.tree import Network, Way, is_settled
from tools.promises import promises


def assert_found(found: dict[str, Network], name: str, text: str) -> None:
    """The invariant of the tree with this name has found it, not one of a hub that is called the same."""
    lines = [line for line in found if re.match(f"{name}: .*{text}", line)]
    assert lines, "\n".join(found)
    for line in lines if name not in promises() else ():
        assert line.removeprefix(f"{name}: ") in (ALWAYS | SETTLED)[name](found[line])


def told(planted: Planted) -> Watched:
    story = Watched(three_levels(announce_batch=1, revoke_batch=1))
    planted.story(story)
    return story


@pytest.mark.parametrize("planted", PLANTED + OVERLOOKED, ids=lambda planted: f"{planted.name}-{planted.what}")
def test_a_mistake_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    right = told(planted)
    assert is_settled(right.network) and list(right.found) == []
    planted.plant(monkeypatch)
    assert_found(told(planted).found, planted.name, planted.text)


def test_a_mistake_is_planted_for_every_invariant() -> None:
    assert {planted.name for planted in PLANTED} == {*ALWAYS, *SETTLED, *promises()}


# Tables

Change: TypeAlias = tuple[str, str, Any, Any]
"""Hub, table, key, value."""

RELAYED = Pending(Purpose.RELAY, Action.ASSIST_AUTHENTICATE, 2, device_id="sensor", credential="c")
HELD = Pending(Purpose.HELD, Action.REVOKE, 2, device_id="sensor", held=Frame(Revoke("sensor", 0, "c")))

TAMPERED: list[tuple[str, str, Change]] = [
    ("UniqueNodeIds", "B rests thief 10; .* sensor 10", ("B", "registry", "thief", Registration(10))),
    ("UniqueNodeIds", "B rests thief 10; .* sensor 10", ("B", "whitelist", "thief", Entry(10, "c"))),
    ("UniqueNodeIds", "B rests thief 10; .* sensor 10", ("B", "directory", 10, Route("thief", 10, False))),
    ("OneToOneBinding", "B rests sensor 99; .* sensor 10", ("B", "registry", "sensor", Registration(99))),
    ("OneToOneBinding", "B rests sensor 99; .* sensor 10", ("B", "whitelist", "sensor", Entry(99, "c"))),
    ("OneToOneBinding", "B rests sensor 99; .* sensor 10", ("B", "directory", 99, Route("sensor", 99, False))),
    ("CredentialsNeverCachedUpstream", "root rests sensor", ("root", "whitelist", "sensor", Entry(10, "c"))),
    ("CredentialsNeverCachedUpstream", "root rests hub-3", ("root", "whitelist", "hub-3", Entry(3, "c", True))),
    ("CredentialsNeverCachedUpstream", "A rests sensor", ("A", "owed", (0, Revoke("sensor", 0, "c")), Owed(1, 1))),
    ("CredentialsNeverCachedUpstream", "B rests other", ("B", "beaten", "other", "c")),
    ("CredentialsNeverCachedUpstream", "mid rests somebody", ("mid", "pending", 9, RELAYED)),
    ("CredentialsNeverCachedUpstream", "mid rests somebody", ("mid", "pending", 9, HELD)),
    ("AtMostOneSession", "node 10 ", ("B", "links", 99, Session("sensor", 10, False))),
    ("RoutesLeadToSessions", "root .* 10 .* via 4", ("root", "directory", 10, Route("sensor", 4, True))),
    ("RoutesLeadToSessions", "root .* 10 .* via 2", ("mid", "directory", 10, Route("sensor", 3, False))),
    ("RoutesLeadToSessions", "mid .* 10 .* via 3", ("A", "directory", 10, Route("sensor", 10, False))),
    ("RoutesLeadToSessions", "B .* 10 .* via 10", ("B", "directory", 10, Route("sensor", 10, True))),
    ("RoutesLeadToSessions", "B .* 10 .* via 3", ("B", "directory", 10, Route("sensor", 3, True))),
    ("RoutesLeadToSessions", "B .* 10 .* via 11", ("B", "directory", 10, Route("sensor", 11, True))),
    ("SessionsAreRouted", "10 .* at A .* at root", ("root", "directory", 10, Route("sensor", 2, False))),
    (
        "AdmittedAnywhere",
        "root sent Answer other .* sent Answer other 11",
        ("root", "directory", 11, Route("other", 2, True)),
    ),
    (
        "NoLockOut",
        "A sent Answer .*NOT_ADMITTED; .* A sent Answer sensor 10",
        ("A", "whitelist", "sensor", Entry(10, "d")),
    ),
]


def settled() -> Network:
    story = Watched(three_levels())
    two_register(story)
    assert check(story.network) == []
    return story.network


def changed(network: Network, hub: str, **changes: Any) -> Network:
    return evolve(network, states=network.states.set(hub, evolve(network.states[hub], **changes)))


def tampered(network: Network, hub: str, table: str, key: Any, value: Any) -> Network:
    """A wrong entry, which the monitor is shown like every other."""
    assert network.monitor is not None
    seen = network.monitor.watch(at_rest(hub, [(table, key, None, value)]))
    network = evolve(network, monitor=seen)
    return changed(network, hub, **{table: getattr(network.states[hub], table).set(key, value)})


@pytest.mark.parametrize(("name", "text", "change"), TAMPERED)
def test_a_wrong_entry_is_found(name: str, text: str, change: Change) -> None:
    network = tampered(settled(), *change)
    assert_found(dict.fromkeys(check(network), network), name, text)


AT_REST = ("whitelist", "registry", "directory", "owed", "beaten", "pending")
"""The tables that the monitor is shown."""


class Searched(Watched):
    """A story in which every other table of every hub is searched for credentials that were issued."""

    def become(self, network: Network) -> None:
        super().become(network)
        for name, state in network.states.items():
            for table in (each.name for each in fields(State) if each.name not in (*AT_REST, "index", "credential")):
                assert not re.search("c[0-9]{42}", repr(getattr(state, table))), f"{table} of {name}"


@pytest.mark.parametrize("planted", PLANTED + OVERLOOKED, ids=lambda planted: f"{planted.name}-{planted.what}")
def test_no_table_that_is_not_watched_holds_a_credential(planted: Planted) -> None:
    planted.story(Searched(three_levels(announce_batch=1, revoke_batch=1)))


@pytest.mark.parametrize(("table", "value"), [("perms", Grant(tree.credential(7), ())), ("homes", tree.credential(7))])
def test_a_credential_in_another_table_would_be_found(table: str, value: object) -> None:
    story = Searched(three_levels())
    with pytest.raises(AssertionError, match=f"{table} of A"):
        story.become(changed(story.network, "A", **{table: Map({10: value})}))


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
    story.settle()
    assert story.state("A").whitelist["sensor"].credential != credential
    assert story.network.monitor is not None and story.network.monitor.credentials[credential].doomed is None
    assert list(story.found) == []


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
    after = {line.partition(":")[0] for line in check(unsettle(network))}
    always = {*ALWAYS, "UniqueNodeIds", "OneToOneBinding", "CredentialsNeverCachedUpstream"}
    assert after - {"NoLockOut"} == found & always
