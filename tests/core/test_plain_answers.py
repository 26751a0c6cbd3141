"""Answers of hubs that do not copy MsgIDs: what they must say to settle a request."""

from typing import Any

from hubauth.core.inputs import PARENT, OperatorInvalidate
from hubauth.core.messages import (
    Action,
    Answer,
    Authenticate,
    GetPerms,
    Grant,
    Major,
    PermsInvalidate,
    Reason,
    Register,
)
from hubauth.core.model import Purpose
from hubauth.core.outputs import StartTimer
from hubauth.core.policy import Assist, Dialect
from hubauth.core.transition import Step
from hubauth.lab.hub import NODE, Hub, dropped, key, mid, sent

OK, NOT_ADMITTED, UNREACHABLE = Reason.OK, Reason.NOT_ADMITTED, Reason.UNREACHABLE
REGISTER, AUTHENTICATE = Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE


def below_plain(**changes: Any) -> Hub:
    """A hub whose parent is plain, with devices on links 1 and 2 that are strangers still."""
    hub = mid(**{"extension": False, **changes})
    assert not hub.state.parent_extended
    hub.up(1)
    hub.up(2)
    return hub


def says(hub: Hub, answer: Answer, msg_id: int = 0, **header: Any) -> Step:
    """The parent answers, under a MsgID of its own."""
    major = Major.OK_RESP if answer.reason is OK else Major.ERR_RESP
    return hub.receive(PARENT, answer, msg_id=msg_id, major=major, **header)


def told(done: Step, link: int) -> list[Reason]:
    return [send.frame.body.reason for send in sent(done, link) if isinstance(send.frame.body, Answer)]


def success(action: Action, device_id: str, node_id: int = 30, credential: str | None = None) -> Answer:
    return Answer(action, OK, device_id, node_id, key(device_id) if credential is None else credential, NODE)


def test_a_plain_parent_may_leave_the_number_out() -> None:
    for msg_id in (0, 999):
        hub = below_plain()
        hub.receive(1, Register("d"))
        done = says(hub, success(REGISTER, "d"), msg_id)
        assert told(done, 1) == [OK] and "FRAME-25" in done.rules and hub.session(1).node_id == 30


def test_an_extended_parent_may_not() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Register("d"))
    assert dropped("FRAME-16", PARENT, says(hub, success(REGISTER, "d")))


def test_the_join_itself_may_be_answered_without_a_number() -> None:
    for policy, body in (({}, Authenticate), ({"node_id": 0, "credential": ""}, Register)):
        hub = mid(joined=False, **policy)
        question = sent(hub.up(PARENT), PARENT)[0].frame.body
        assert isinstance(question, body)
        assert dropped("FRAME-16", PARENT, says(hub, success(question.action, "somebody", 5)))
        says(hub, success(question.action, "mid", 5))
        assert hub.state.parent_present and hub.state.node_id == 5
    hub = mid(joined=False)
    hub.up(PARENT)
    assert "LINK-4" in says(hub, Answer(Action.AUTHENTICATE, NOT_ADMITTED)).rules


def test_every_id_that_an_answer_carries_must_agree() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    for answer in (success(REGISTER, "e"), success(AUTHENTICATE, "d"), Answer(REGISTER, NOT_ADMITTED, "e")):
        assert dropped("FRAME-16", PARENT, says(hub, answer))
    assert told(says(hub, Answer(REGISTER, Reason.PROTECTED, "d")), 1) == [Reason.PROTECTED]


def test_a_number_that_is_anothers_does_not_count_against_the_ids() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    number = hub.last_question(PARENT)
    hub.receive(2, Register("e"))
    done = says(hub, success(REGISTER, "e", 31), number)
    assert told(done, 2) == [OK] and not sent(done, 1)
    assert told(says(hub, success(REGISTER, "d"), number), 1) == [OK]


def test_an_authentication_needs_the_credential_that_was_presented() -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("guess")))
    hub.receive(2, Authenticate("d", key("d")))
    done = says(hub, success(AUTHENTICATE, "d"))
    assert told(done, 2) == [OK] and not sent(done, 1)
    assert dropped("FRAME-16", PARENT, says(hub, success(AUTHENTICATE, "d")))
    assert hub.is_free(1)


def test_an_echo_that_is_missing_or_wrong_admits_nobody_on_any_link() -> None:
    for extension in (True, False):
        for echo in ("", key("other")):
            hub = mid(extension=extension)
            hub.up(1)
            hub.receive(1, Authenticate("d", key("d")))
            done = hub.answered(PARENT, success(AUTHENTICATE, "d", credential=echo))
            assert told(done, 1) == [UNREACHABLE] and "AUTH-32" in done.rules and hub.is_free(1)


def test_a_failure_that_names_a_device_needs_to_be_about_one_request() -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("guess")))
    assert told(says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, "d")), 1) == [NOT_ADMITTED]
    hub.receive(1, Authenticate("d", key("guess")))
    hub.receive(2, Authenticate("d", key("d")))
    assert dropped("FRAME-16", PARENT, says(hub, Answer(AUTHENTICATE, NOT_ADMITTED, "d")))


def test_a_failure_that_names_nobody_settles_the_only_request_of_its_kind() -> None:
    hub = below_plain()
    hub.receive(1, Authenticate("d", key("d")))
    hub.receive(2, Register("e"))
    assert told(says(hub, Answer(AUTHENTICATE, NOT_ADMITTED)), 1) == [NOT_ADMITTED]
    hub.receive(1, Register("d"))
    assert dropped("FRAME-16", PARENT, says(hub, Answer(REGISTER, Reason.PROTECTED)))


def test_nobody_is_believed_once_a_request_of_its_kind_has_run_out() -> None:
    hub = below_plain()
    done = hub.receive(1, Authenticate("d", key("guess")))
    [timer] = [output.timer for output in done.outputs if isinstance(output, StartTimer)]
    assert told(hub.fires(timer), 1) == [UNREACHABLE]
    assert hub.state.pending[timer].purpose is Purpose.UNHEARD
    hub.receive(2, Authenticate("d", key("d")))
    assert dropped("FRAME-16", PARENT, says(hub, Answer(AUTHENTICATE, NOT_ADMITTED)))
    hub.receive(1, Register("e"))
    assert told(says(hub, Answer(REGISTER, Reason.PROTECTED)), 1) == [Reason.PROTECTED]
    assert told(says(hub, success(AUTHENTICATE, "d")), 2) == [OK]
    hub.down(PARENT)
    assert not hub.state.pending


def test_permissions_are_about_a_node() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    says(hub, Answer(REGISTER, OK, "d", 30, key("d"), Grant("node", ())))
    hub.receive(1, GetPerms(40))
    assert dropped("FRAME-16", PARENT, says(hub, Answer(Action.GET_PERMS, OK, node_id=41, grant=NODE)))
    done = says(hub, Answer(Action.GET_PERMS, OK, node_id=40, grant=NODE))
    assert told(done, 1) == [OK] and hub.state.perms[40] == NODE
    hub.receive(1, GetPerms(41))
    assert told(says(hub, Answer(Action.GET_PERMS, Reason.UNKNOWN_NODE, node_id=41)), 1) == [Reason.UNKNOWN_NODE]


def test_a_query_is_settled_by_what_the_hub_that_knows_says() -> None:
    hub = below_plain(assist=Assist.QUERY)
    hub.receive(1, Authenticate("d", key("d")))
    assert told(says(hub, success(Action.ASSIST_QUERY_CREDENTIAL, "d")), 1) == [OK]


def test_where_answers_name_no_action_any_may_be_meant() -> None:
    hub = below_plain(dialect=Dialect.FLAT)
    hub.receive(1, Register("d"))
    assert told(says(hub, Answer(None, OK, "d", 30)), 1) == [OK]
    hub.receive(2, Authenticate("e"))
    assert told(says(hub, Answer(None, NOT_ADMITTED)), 2) == [NOT_ADMITTED]
    done = hub.receive(2, Authenticate("e"))
    [timer] = [output.timer for output in done.outputs if isinstance(output, StartTimer)]
    hub.fires(timer)
    hub.receive(2, Register("e"))
    assert dropped("FRAME-16", PARENT, says(hub, Answer(None, NOT_ADMITTED)))


def test_permissions_in_an_answer_without_a_number_may_be_older_than_an_invalidation() -> None:
    hub = below_plain()
    hub.receive(1, Register("d"))
    says(hub, success(REGISTER, "d"))
    hub.receive(1, GetPerms(40), source=30)
    about = Answer(Action.GET_PERMS, OK, "", 40, grant=NODE)
    says(hub, about)
    assert hub.state.perms[40] == NODE, "nothing was invalidated on this link"
    hub.happens(OperatorInvalidate(PermsInvalidate((41,))))
    hub.happens(OperatorInvalidate(PermsInvalidate((40,))))
    hub.receive(1, GetPerms(40), source=30)
    done = says(hub, about)
    assert told(done, 1) == [OK] and 40 not in hub.state.perms, "this may be the answer to an earlier question"
    hub.receive(1, GetPerms(40), source=30)
    (asked,) = hub.state.pending
    says(hub, about, asked)
    assert hub.state.perms[40] == NODE, "the number says which question it answers"


def test_permissions_that_come_with_a_registration_without_a_number_may_be_older_than_an_invalidation() -> None:
    hub = below_plain()
    hub.happens(OperatorInvalidate(PermsInvalidate((30,))))
    hub.receive(1, Register("d"))
    done = says(hub, success(REGISTER, "d"))
    assert "PERM-21" in done.rules and 30 not in hub.state.perms, "this may be the answer to an earlier registration"
    (asked,) = [send.frame for send in sent(done, PARENT)]
    assert asked.body == GetPerms(30), "so the hub asks"
    hub.receive(2, Register("e"))
    (number,) = [msg_id for msg_id, pending in hub.state.pending.items() if pending.device_id == "e"]
    says(hub, success(REGISTER, "e", 31), number)
    assert hub.state.perms[31] == NODE, "the number says which registration it answers"


def test_a_search_that_ends_after_a_registration_does_not_bring_an_older_credential_back() -> None:
    for assist, action in ((Assist.AUTH, AUTHENTICATE), (Assist.QUERY, Action.ASSIST_QUERY_CREDENTIAL)):
        hub = below_plain(assist=assist)
        hub.receive(1, Authenticate("d", key("older")))
        hub.receive(2, Register("d"))
        says(hub, success(REGISTER, "d"))
        done = says(hub, success(action, "d", credential=key("older")))
        assert told(done, 1) == [NOT_ADMITTED] and "AUTH-2" in done.rules
        assert hub.state.whitelist["d"].credential == key("d") and hub.session(2).node_id == 30
