"""Plain neighbours in the cases that a mutation run found untested: each test kills a change that all others missed."""

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import Action, Answer, AssistOffline, AssistRegister, GetPerms, Reason, Register, Revoke
from hubauth.core.model import Route
from hubauth.lab.hub import HUB_A, NODE, dropped, mid, sent
from tests.core.test_plain_answers import below_plain, says, success, told
from tests.core.test_plain_routes import above_plain, plainly


def test_permissions_under_the_right_number_are_about_the_node_that_was_asked_about_or_name_none() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    says(hub, success(Action.ASSIST_REGISTER, "d"))
    hub.receive(1, GetPerms(40))
    (number,) = hub.state.pending
    other = Answer(Action.GET_PERMS, Reason.OK, node_id=41, grant=NODE)
    assert dropped("FRAME-16", PARENT, says(hub, other, number)) and not hub.state.perms.get(40)
    assert told(says(hub, Answer(Action.GET_PERMS, Reason.OK, grant=NODE), number), 1) == [Reason.OK]
    assert hub.state.perms[40] == NODE


def test_a_refusal_on_its_way_to_a_plain_child_shows_nothing_even_if_it_names_a_node() -> None:
    hub = mid()
    plainly(hub, 1, "hub-a")
    hub.receive(1, AssistRegister("leaf"))
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.PROTECTED, "leaf", 30))
    assert told(done, 1) == [Reason.PROTECTED]
    assert 30 not in hub.state.directory and "AUTH-33" not in done.rules


def test_who_has_left_a_plain_child_is_not_looked_for_there() -> None:
    hub = above_plain()
    for source in (30, 31):
        hub.receive(1, b"x", source=source, target=2)
    hub.receive(2, AssistOffline("somebody", 30))
    assert set(hub.state.learnt) == {30, 31}, "another hub has no say in that"
    done = hub.receive(1, AssistOffline("somebody", 30))
    assert set(hub.state.learnt) == {31} and "FRAME-26" in done.rules
    assert told(done, 1) == [Reason.NOT_INDEXED]


def test_an_addressed_revoke_finds_who_speaks_through_a_plain_child() -> None:
    hub = above_plain()
    hub.receive(2, b"x", source=30, target=2)
    done = hub.happens(OperatorRevoke(Revoke("x"), target=30))
    assert [send.link for send in sent(done)] == [2] and "FRAME-26" in done.rules
    hub.receive(1, AssistRegister("leaf"))
    assert hub.state.directory[3] == Route("leaf", HUB_A, online=True)
    assert [send.link for send in sent(hub.happens(OperatorRevoke(Revoke("x"), target=3)))] == [1]
    hub.receive(1, AssistOffline("leaf", 3))
    hub.receive(2, b"x", source=3, target=2)
    assert [send.link for send in sent(hub.happens(OperatorRevoke(Revoke("x"), target=3)))] == [2]


def test_who_was_learnt_goes_on_being_heard() -> None:
    hub = above_plain()
    for _ in range(2):
        assert [send.link for send in sent(hub.receive(1, b"x", source=30, target=2))] == [3]
