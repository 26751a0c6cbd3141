"""What only a history shows: permissions and revokes over several steps, each mistake found."""

import pytest
from attrs import evolve
from immutables import Map

from hubauth.core import owed, perms, revoke
from hubauth.core.inputs import PARENT, Input, OperatorInvalidate, OperatorRevoke, Received
from hubauth.core.messages import (
    Action,
    Answer,
    Frame,
    GetPerms,
    Grant,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.lab.history import HubHistory, follow
from hubauth.lab.hub import NODE, Hub, mid
from hubauth.lab.story import Story, three_level_story, two_levels
from hubauth.lab.tree import Network, TreeConnection, Way


class Watched:
    """A hub with its history, whose next step can be replaced."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.history = HubHistory()
        self.now = 0

    def happens(self, happened: Input, *, tamper: bool = False, **changes: object) -> list[str]:
        """What is found about the hub's own step, or about one with other outputs or another state."""
        done = step(self.hub.policy, self.hub.state, happened)
        if tamper:
            outputs = changes.pop("outputs", done.outputs)
            done = Step(done.policy, evolve(done.state, **changes), outputs, done.rules, done.changes)  # type: ignore[arg-type]
        self.now += 1
        self.history = follow(self.history, self.now, self.hub.policy, self.hub.state, happened, done)
        self.hub.state = done.state
        return [line.partition(":")[0] for line in self.history.wrong]

    def receive(self, link: int, body: object, msg_id: int = 7, source: int | None = None) -> list[str]:
        return self.happens(self.received(link, body, msg_id, source))

    def received(self, link: int, body: object, msg_id: int = 7, source: int | None = None) -> Received:
        session = self.hub.state.links.get(link)
        own = session.node_id if session is not None else 1
        frame = Frame(body, msg_id=msg_id, source=own if source is None else source)  # type: ignore[arg-type]
        return Received(link, frame, "c" * 43)


def below() -> Watched:
    """A hub below a parent, with a device (node 30) on link 1."""
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    return Watched(hub)


def about(node_id: int, grant: Grant = NODE) -> Answer:
    return Answer(Action.GET_PERMS, Reason.OK, "", node_id, grant=grant)


# Permissions


def test_an_answer_that_is_older_than_an_invalidation_is_not_cached() -> None:
    old = ["InvalidatedPermsNotServed"]
    for told in (PermsInvalidate(), PermsInvalidate((40,)), PermsInvalidate((41,))):
        watched = below()
        watched.receive(1, GetPerms(40))
        (asked,) = watched.hub.state.pending
        watched.happens(OperatorInvalidate(told))
        answer = watched.received(PARENT, about(40), asked)
        found = watched.happens(answer, tamper=True, perms=Map({40: NODE}))
        assert found == (old if told.node_ids != (41,) else [])


def test_what_nobody_asked_for_is_not_cached() -> None:
    watched = below()
    answer = watched.received(PARENT, about(40), 99)
    assert watched.happens(answer, tamper=True, perms=Map({40: NODE})) == ["InvalidatedPermsNotServed"]


def test_a_held_request_does_not_go_on_with_old_permissions() -> None:
    watched = below()
    watched.receive(1, Revoke("x"))
    (asked,) = watched.hub.state.pending
    watched.receive(PARENT, PermsInvalidate())
    answer = watched.received(PARENT, about(30), asked)
    before = watched.hub.state, watched.history
    assert watched.happens(answer) == []
    watched.hub.state, watched.history = before
    assert watched.happens(answer, tamper=True, outputs=()) == ["InvalidatedPermsNotServed"]


def test_a_hub_below_is_told_what_the_hub_above_has_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    story = three_level_story()
    node_id = story.register("sensor", "A").node_id
    story.say(story.connection("sensor"), GetPerms(node_id), node_id)
    story.settle()
    story.drop("mid")
    monkeypatch.setattr(perms, "pass_down", lambda *_: None)
    with pytest.raises(AssertionError, match=f"SettledPermsAreCurrent: A has node {node_id} "):
        story.hubs_join("mid")


# Revokes


def test_a_revoke_of_one_credential_excuses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    story = three_level_story()
    first = story.register("sensor", "A").credential
    story.register("sensor", "A")
    monkeypatch.setattr(revoke, "agrees", lambda *_: True)
    with pytest.raises(AssertionError, match=r"NoLockOut: .* A sent Answer sensor"):
        story.feed("root", OperatorRevoke(Revoke("sensor", 0, first)))
        story.settle()


def revoked_and_registered_anew() -> Story:
    """A's revoke has arrived at the root, its acknowledgement was lost, and the sensor has a newer credential there."""
    story = Story(two_levels())
    story.hubs_join()
    story.register("sensor", "root")
    story.feed("A", OperatorRevoke(Revoke("sensor")))
    story.deliver(story.connection("A"), Way.UP, times=2)
    story.drop("A")
    story.register("sensor", "root")
    return story


def test_a_revoke_excuses_nothing_when_it_comes_again() -> None:
    story = revoked_and_registered_anew()
    state = story.state("root")
    unnumbered = state.neighbours.set(2, evolve(state.neighbours[2], handled=0))
    forgetful = evolve(state, neighbours=unnumbered)
    story.network = evolve(story.network, states=story.network.states.set("root", forgetful))
    with pytest.raises(AssertionError, match=r"NoLockOut: .* root sent Answer sensor"):
        story.hubs_join("A")


def test_two_equal_revokes_that_are_owed_as_one_have_both_arrived() -> None:
    story = three_level_story()
    story.register("sensor", "A")
    story.drop("A")
    story.feed("mid", OperatorRevoke(Revoke("sensor")))
    story.feed("root", OperatorRevoke(Revoke("sensor")))
    story.settle()
    assert [owed.turn for (key, _), owed in story.state("mid").owed.items() if key == 3] == [FIRST_PLACE]
    story.hubs_join("A")
    assert "sensor" not in story.state("A").whitelist


def test_what_is_owed_excuses_nothing_under_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    story = revoked_and_registered_anew()

    def renumbered(device_id: str, node_id: int, credential: str, number: int) -> Revoke:
        return Revoke(device_id, node_id, credential, number + 1)

    monkeypatch.setattr(owed, "Revoke", renumbered)
    with pytest.raises(AssertionError, match=r"NoLockOut: .* root sent Answer sensor"):
        story.hubs_join("A")


@pytest.mark.parametrize("where", ["root", "A"])
def test_a_revoke_that_goes_nowhere_was_said_all_the_same(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    story = three_level_story()
    story.register("sensor", "B")
    monkeypatch.setattr(revoke, "_pass_on", lambda *_: None)
    with pytest.raises(AssertionError, match=r"RevokedStaysOut: .* B rests sensor"):
        story.feed(where, OperatorRevoke(Revoke("sensor")))
        story.settle()


def test_a_registrations_own_revoke_excuses_only_what_was_issued_before() -> None:
    story = three_level_story()
    story.register("sensor", "B")
    story.say(story.connect("sensor", "B"), Register("sensor"))
    number = story.connection("B")
    while not any(_is_answer(item) for item in story.network.connections[number].down):
        story.deliver(*next(item for item in _waiting(story.network) if item != (number, Way.DOWN)))
    connection = story.network.connections[number]
    hurried = evolve(connection, down=tuple(sorted(connection.down, key=_is_answer, reverse=True)))
    story.network = evolve(story.network, connections=story.network.connections.set(number, hurried))
    with pytest.raises(AssertionError, match=r"NoLockOut: .* B sent Answer sensor"):
        story.settle()


def _waiting(network: Network) -> list[tuple[int, Way]]:
    return [(number, way) for number, connection in network.connections.items() for way in _ways(connection)]


def _ways(connection: TreeConnection) -> list[Way]:
    return [way for way, queue in ((Way.UP, connection.up), (Way.DOWN, connection.down)) if queue]


def _is_answer(item: object) -> bool:
    return isinstance(item, Frame) and isinstance(item.body, Answer)
