"""What only a history shows: requests and answers, permissions and revokes over several steps, each mistake found."""

import pytest
from attrs import evolve
from immutables import Map

from hubauth.core import owed, perms, revoke
from hubauth.core.inputs import PARENT, Input, LinkDown, OperatorInvalidate, OperatorRevoke, Received, TimerFired
from hubauth.core.messages import (
    Action,
    Answer,
    Frame,
    GetPerms,
    Grant,
    HubOnline,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE
from hubauth.core.outputs import Close, Send
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.network.history import HubHistory, follow
from hubauth.network.tree import Connection, Network, Way
from tests.core.harness import NODE, Hub, mid, root
from tests.network.harness import Story, three_level_story, two_levels


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
            done = Step(evolve(done.state, **changes), outputs, done.rules, done.changes)  # type: ignore[arg-type]
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


# Requests and their answers


def test_a_question_that_was_forgotten() -> None:
    watched = below()
    assert watched.receive(1, GetPerms(40)) == []
    assert len(watched.history.unanswered()) == 1
    (timer,) = watched.hub.state.pending
    assert watched.happens(TimerFired(timer), tamper=True, outputs=()) == []
    assert len(watched.history.unanswered()) == 1, "the hub has forgotten it, whoever asked has not"
    assert watched.happens(LinkDown(1)) == []
    assert watched.history.unanswered() == []


def test_a_question_that_was_answered_ends_it() -> None:
    watched = below()
    watched.receive(1, GetPerms(40))
    (asked,) = watched.hub.state.pending
    assert watched.receive(PARENT, about(40), asked) == []
    assert watched.history.unanswered() == []


def test_an_answer_once_too_often() -> None:
    watched = below()
    watched.receive(1, GetPerms(40))
    (asked,) = watched.hub.state.pending
    watched.receive(PARENT, about(40), asked)
    again = (Send(1, Frame(about(40), msg_id=7)),)
    assert watched.happens(LinkDown(99), tamper=True, outputs=again) == ["NoAnswerWithoutRequest"]
    assert watched.happens(LinkDown(99)) == []


def test_what_need_not_be_answered() -> None:
    watched = below()
    for body, source in ((GetPerms(40), 77), (PermsInvalidate(), 30), (Revoke("x"), 30), (about(40), 30)):
        request = watched.received(1, body, source=source)
        assert watched.happens(request, tamper=True, outputs=()) == []
    announcement = HubOnline("x", 40)
    assert watched.happens(watched.received(PARENT, announcement), tamper=True, outputs=()) == []
    assert watched.history.unanswered() == []
    assert watched.happens(watched.received(1, announcement, source=30), tamper=True, outputs=()) == []
    for said in (GetPerms(40), Register("d"), Offline("x")):
        watched.happens(watched.received(1, said, source=30), tamper=True, outputs=())
    assert len(watched.history.unanswered()) == 1, "one MsgID"
    assert watched.history.due[1][7] == (3, 5)
    watched.happens(LinkDown(99), tamper=True, outputs=(Close(1),))
    assert watched.history.unanswered() == []


def test_an_offline_is_answered_as_the_policy_says() -> None:
    for answer_offline in (True, False):
        hub = root(answer_offline=answer_offline)
        hub.registered(1, "d")
        watched = Watched(hub)
        assert watched.happens(watched.received(1, Offline("d")), tamper=True, outputs=()) == []
        assert bool(watched.history.unanswered()) is answer_offline


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
    with pytest.raises(AssertionError, match="NoLockOut: A no longer admits sensor"):
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
    with pytest.raises(AssertionError, match="NoLockOut: root no longer admits sensor"):
        story.hubs_join("A")


def test_of_two_equal_revokes_that_are_owed_as_one_each_excuses_what_it_meant() -> None:
    story = three_level_story()
    story.register("sensor", "A")
    story.drop("A")
    story.feed("mid", OperatorRevoke(Revoke("sensor")))
    story.feed("root", OperatorRevoke(Revoke("sensor")))
    story.settle()
    assert [owed.turn for (key, _), owed in story.state("mid").owed.items() if key == 3] == [FIRST_PLACE]
    meant = story.network.history.revokes
    assert meant.carried["mid", "A", FIRST_PLACE] == meant.carried["mid", "root", 1] | meant.carried["root", "mid", 1]
    story.hubs_join("A")
    assert "sensor" not in story.state("A").whitelist and "sensor" not in story.network.admitted


def test_what_is_owed_excuses_nothing_under_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    story = revoked_and_registered_anew()

    def renumbered(device_id: str, node_id: int, credential: str, number: int) -> Revoke:
        return Revoke(device_id, node_id, credential, number + 1)

    monkeypatch.setattr(owed, "Revoke", renumbered)
    with pytest.raises(AssertionError, match="NoLockOut: root no longer admits sensor"):
        story.hubs_join("A")


@pytest.mark.parametrize("where", ["root", "A"])
def test_a_revoke_that_goes_nowhere_was_said_all_the_same(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    story = three_level_story()
    story.register("sensor", "B")
    monkeypatch.setattr(revoke, "_pass_on", lambda *_: None)
    with pytest.raises(AssertionError, match="RevokedStaysOut: B still has the revoked credential of sensor"):
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
    with pytest.raises(AssertionError, match="NoLockOut: B no longer admits sensor"):
        story.settle()


def _waiting(network: Network) -> list[tuple[int, Way]]:
    return [(number, way) for number, connection in network.connections.items() for way in _ways(connection)]


def _ways(connection: Connection) -> list[Way]:
    return [way for way, queue in ((Way.UP, connection.up), (Way.DOWN, connection.down)) if queue]


def _is_answer(item: object) -> bool:
    return isinstance(item, Frame) and isinstance(item.body, Answer)
