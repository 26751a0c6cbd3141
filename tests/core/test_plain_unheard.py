"""What a plain hub was asked and nobody waits for any more: its answer, which may bear no number, still comes."""

import pytest

from hubauth.core.inputs import PARENT, OperatorInvalidate, OperatorRevoke
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    GetPerms,
    Major,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose
from hubauth.core.policy import Assist
from hubauth.lab.hub import HUB_A, HUB_B, NODE, Hub, dropped, key, mid, root, sent
from tests.core.test_plain_answers import below_plain, says, success, told
from tests.core.test_plain_revokes import between, returns

NOT_ADMITTED, UNREACHABLE = Reason.NOT_ADMITTED, Reason.UNREACHABLE
REGISTER, AUTHENTICATE = Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE


def unheard(hub: Hub) -> list[int]:
    return sorted(msg_id for msg_id, pending in hub.state.pending.items() if pending.purpose is Purpose.UNHEARD)


def runs_out(hub: Hub) -> None:
    """Whatever is asked for a device on link 1 is not answered in time."""
    for msg_id in list(hub.state.index.waiting[1]):
        hub.fires(msg_id)


def is_dropped(hub: Hub) -> None:
    hub.down(1)
    hub.up(1)


def is_revoked(hub: Hub) -> None:
    hub.happens(OperatorRevoke(Revoke("d")))


@pytest.mark.parametrize("number", [0, 999])
@pytest.mark.parametrize("given_up", [runs_out, is_dropped, is_revoked])
def test_a_late_success_does_not_admit_what_was_revoked_since(given_up: object, number: int) -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("d")))
    assert callable(given_up)
    given_up(hub)
    hub.happens(OperatorRevoke(Revoke("d", 0, key("d"))))
    hub.receive(2, Authenticate("d", key("d")))
    late = says(hub, success(AUTHENTICATE, "d"), number)
    assert not told(late, 2) and hub.is_free(2) and "d" not in hub.state.whitelist
    assert told(says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, "d"), number), 2) == [NOT_ADMITTED]
    assert not hub.state.pending or {one.purpose for one in hub.state.pending.values()} == {Purpose.SENT}


def test_what_was_issued_since_is_held_back_once_at_most() -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("d")))
    is_revoked(hub)
    new = success(AUTHENTICATE, "d", credential=key("new"))
    hub.receive(2, Authenticate("d", key("new")))
    assert not told(says(hub, new), 2), "whose success this is, the hub cannot tell"
    for msg_id in list(hub.state.index.waiting[2]):
        assert told(hub.fires(msg_id), 2) == [UNREACHABLE]
    hub.receive(2, Authenticate("d", key("new")))
    assert told(says(hub, new), 2) == [Reason.OK]


def test_where_nothing_was_revoked_an_answer_that_never_comes_costs_nobody_else_theirs() -> None:
    for body, action in ((Authenticate("d", key("d")), AUTHENTICATE), (Register("d"), REGISTER)):
        hub = below_plain()
        hub.receive(1, body)
        runs_out(hub)
        hub.receive(2, body)
        assert told(says(hub, success(action, "d")), 2) == [Reason.OK] and unheard(hub)
        assert not sent(says(hub, success(action, "d"))) and not unheard(hub)


def test_a_failure_may_be_the_answer_to_a_request_that_was_given_up() -> None:
    for name in ("d", ""):
        hub = below_plain()
        hub.receive(1, Authenticate("d", key("guess")))
        is_dropped(hub)
        hub.receive(2, Authenticate("d", key("d")))
        assert dropped("FRAME-16", PARENT, says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, name)))
        assert told(says(hub, success(AUTHENTICATE, "d")), 2) == [Reason.OK]
        assert "FRAME-25" in says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, name)).rules and not unheard(hub)


def test_the_number_tells_which_is_meant() -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("d")))
    first = hub.last_question(PARENT)
    is_revoked(hub)
    hub.receive(2, Authenticate("d", key("d")))
    assert told(says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, "d"), hub.last_question(PARENT)), 2) == [NOT_ADMITTED]
    assert unheard(hub) == [first]
    assert not sent(says(hub, success(AUTHENTICATE, "d"), first)) and not unheard(hub)


def test_permissions_are_remembered_likewise_and_all_of_it_goes_with_the_link() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    says(hub, success(REGISTER, "d"))
    hub.receive(1, GetPerms(40), source=30)
    runs_out(hub)
    hub.receive(1, GetPerms(41), source=30)
    assert dropped("FRAME-16", PARENT, says(hub, Answer(Action.GET_PERMS, Reason.UNKNOWN_NODE)))
    hub.down(PARENT)
    assert not hub.state.pending


def test_of_what_was_given_up_so_much_is_remembered() -> None:
    hub = below_plain(pending_limit=2)
    for name in ("a", "b", "c"):
        hub.receive(1, Authenticate(name, key(name)))
        is_dropped(hub)
    assert [hub.state.pending[msg_id].device_id for msg_id in unheard(hub)] == ["b", "c"]


def test_an_extended_neighbour_answers_by_number_and_nothing_is_remembered() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")))
    hub.down(1)
    assert not hub.state.pending


# What a plain hub waits for


@pytest.mark.parametrize("body", [AssistAuthenticate("d", key("d")), AssistQueryCredential("d")])
def test_a_revoke_refuses_the_search_that_a_plain_child_waits_for(
    body: AssistAuthenticate | AssistQueryCredential,
) -> None:
    hub = between(assist=Assist.QUERY)
    hub.receive(1, body, source=HUB_A)
    asked = hub.last_question(PARENT)
    done = hub.happens(OperatorRevoke(Revoke("d")))
    assert told(done, 1) == [NOT_ADMITTED] and "REV-11" in done.rules
    late = Answer(body.action, Reason.OK, "d", 30, key("d"), NODE)
    assert not sent(hub.receive(PARENT, late, msg_id=asked, major=Major.OK_RESP), 1)


def test_a_revoke_of_another_device_or_to_an_extended_child_refuses_none() -> None:
    hub = between()
    hub.receive(1, AssistAuthenticate("d", key("d")), source=HUB_A)
    hub.receive(2, AssistAuthenticate("e", key("e")), source=11)
    hub.receive(1, AssistRegister("e"), source=HUB_A)
    done = hub.happens(OperatorRevoke(Revoke("e")))
    assert not told(done, 1) and not told(done, 2)


# Permissions


def test_a_child_link_counts_invalidations_from_its_join() -> None:
    hub = root(authority=HUB_A)
    hub.happens(OperatorInvalidate(PermsInvalidate((40,))))
    returns(hub, 1)
    hub.provisioned(2, "admin")
    about = Answer(Action.GET_PERMS, Reason.OK, node_id=40, grant=NODE)
    for expected in (NODE, None):
        hub.receive(2, GetPerms(40))
        done = hub.receive(1, about, msg_id=0, major=Major.OK_RESP)
        assert told(done, 2) == [Reason.OK] and hub.state.perms.get(40) == expected
        hub.happens(OperatorInvalidate(PermsInvalidate((40,))))


def test_a_success_is_for_what_was_given_up_before_a_revoke_though_a_relayed_search_was_asked_earlier() -> None:
    hub = between()
    hub.up(3)
    hub.receive(2, AssistAuthenticate("d", key("d")), source=HUB_B)
    hub.receive(3, Authenticate("d", key("d")))
    hub.down(3)
    hub.happens(OperatorRevoke(Revoke("d")))
    assert not told(says(hub, success(AUTHENTICATE, "d")), 2), "it may be older than the revoke"
    assert told(says(hub, success(AUTHENTICATE, "d")), 2) == [Reason.OK]
