"""auth (login): a device with an entry, and a device that must be searched for."""

from typing import Any

from attrs import evolve

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Ext,
    Grant,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Pending, Purpose, Route, Session
from hubauth.core.outputs import CancelTimer, Close, StartTimer
from hubauth.core.policy import Assist, Dialect, Policy
from hubauth.lab.hub import (
    ASK,
    HUB,
    HUB_A,
    HUB_B,
    NODE,
    OWN_JOURNAL,
    Hub,
    credentials,
    issued,
    key,
    listing,
    mid,
    question,
    reply,
    root,
    sent,
)

WRONG = "w" * 43


def admitted(device_id: str, node_id: int, credential: str, grant: Grant = NODE) -> Answer:
    return Answer(Action.AUTHENTICATE, Reason.OK, device_id, node_id, credential, grant)


def refused(reason: Reason, device_id: str = "d") -> Answer:
    return Answer(Action.AUTHENTICATE, reason, device_id)


def returning(**changes: Any) -> Hub:
    """A hub where device d has been, and has left."""
    hub = root(**changes)
    hub.registered(1, "d")
    hub.down(1)
    hub.up(2)
    return hub


def test_an_equal_credential_is_admitted_and_the_link_bound() -> None:
    hub = returning()
    done = hub.receive(2, Authenticate("d", issued(1)), msg_id=13, trace_id=4)
    assert done.outputs == (reply(2, admitted("d", 2, issued(1)), hub, msg_id=13, trace_id=4),)
    assert hub.session(2) == Session("d", 2, False)
    assert hub.state.directory[2] == Route("d", 2, True)
    assert {"AUTH-1", "BIND-1", "AUTH-26"} <= set(done.rules)
    assert "AUTH-18" not in done.rules


def test_a_different_credential_is_refused_and_nothing_changes() -> None:
    for presented in (WRONG, issued(1)[:-1], issued(1) + "x", issued(1).upper(), "é"):
        hub = returning()
        done = hub.receive(2, Authenticate("d", presented))
        assert done.outputs == (reply(2, refused(Reason.NOT_ADMITTED), hub),)
        assert "AUTH-2" in done.rules and "AUTH-1" not in done.rules
        assert hub.unchanged


def test_a_wrong_credential_leaves_the_session_of_that_link_alone() -> None:
    hub = returning()
    hub.receive(2, Authenticate("d", issued(1)))
    hub.receive(2, Authenticate("d", WRONG))
    assert hub.unchanged and hub.session(2).device_id == "d"


def test_an_empty_credential_is_refused_at_the_direct_hub() -> None:
    for hub in (returning(), mid()):
        hub.up(9)
        done = hub.receive(9, Authenticate("d", ""))
        assert done.outputs == (reply(9, refused(Reason.NOT_ADMITTED), hub),)
        assert "AUTH-3" in done.rules and "AUTH-2" not in done.rules
        assert hub.unchanged


def test_a_hub_that_does_not_know_its_own_node_admits_nobody() -> None:
    hub = Hub(Policy(has_parent=True))
    hub.up(1)
    done = hub.receive(1, Authenticate("d", WRONG))
    assert done.outputs == (reply(1, refused(Reason.UNREACHABLE), hub),)
    assert "TRUST-8" in done.rules
    assert hub.unchanged


def test_assist_none_refuses_a_device_without_an_entry() -> None:
    hub = mid(assist=Assist.NONE)
    hub.up(1)
    done = hub.receive(1, Authenticate("d", WRONG))
    assert done.outputs == (reply(1, refused(Reason.NOT_ADMITTED), hub),)
    assert "AUTH-4" in done.rules
    assert hub.unchanged


def test_assist_auth_searches_with_what_the_device_presented() -> None:
    hub = mid()
    hub.up(1)
    asked = hub.next_id
    done = hub.receive(1, Authenticate("d", key("d")), trace_id=6)
    assert done.outputs == (
        question(PARENT, AssistAuthenticate("d", key("d")), hub, asked, target=1, trace_id=6),
        StartTimer(asked, 5.0),
    )
    assert hub.state.pending[asked] == Pending(
        Purpose.AUTHENTICATE, Action.AUTHENTICATE, PARENT, 1, ASK, 6, device_id="d", credential=key("d"), epoch=1
    )
    assert "AUTH-5" in done.rules and "AUTH-6" not in done.rules


def test_assist_query_asks_for_the_credential_and_does_not_show_what_was_presented() -> None:
    hub = mid(assist=Assist.QUERY)
    hub.up(1)
    asked = hub.next_id
    done = hub.receive(1, Authenticate("d", key("d")), trace_id=6)
    assert sent(done) == [question(PARENT, AssistQueryCredential("d"), hub, asked, target=1, trace_id=6)]
    assert hub.state.pending[asked].purpose is Purpose.QUERY
    assert hub.state.pending[asked].credential == key("d")
    assert "AUTH-6" in done.rules and "AUTH-5" not in done.rules


def test_without_credentials_there_is_nothing_to_query() -> None:
    hub = mid(assist=Assist.QUERY, dialect=Dialect.FLAT)
    hub.up(1)
    asked = hub.next_id
    done = hub.receive(1, Authenticate("d"))
    assert sent(done) == [question(PARENT, AssistAuthenticate("d"), hub, asked, target=1)]
    assert hub.state.pending[asked].purpose is Purpose.AUTHENTICATE


def test_nobody_is_left_to_ask_at_the_root() -> None:
    hub = root()
    hub.up(1)
    done = hub.receive(1, Authenticate("d", WRONG))
    assert done.outputs == (reply(1, refused(Reason.NOT_ADMITTED), hub),)
    assert "AUTH-9" in done.rules and "AUTH-10" not in done.rules
    assert hub.unchanged


def test_a_search_needs_a_parent_that_is_present() -> None:
    hub = mid(joined=False)
    hub.up(1)
    done = hub.receive(1, Authenticate("d", WRONG))
    assert done.outputs == (reply(1, refused(Reason.UNREACHABLE), hub),)
    assert "AUTH-10" in done.rules and "AUTH-9" not in done.rules


def test_a_search_follows_the_directory_online_or_not() -> None:
    hub = mid()
    hub.provisioned(1, "hub-a")
    hub.found_below("d", 30, 1)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert sent(done)[0].link == 1 and sent(done)[0].frame.target == HUB_A
    assert "AUTH-20" in done.rules and "AUTH-9" not in done.rules
    hub.down(1)
    hub.provisioned(3, "hub-a")
    assert not hub.is_online(30)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert sent(done)[0].link == 3


def test_where_the_child_hub_is_down_and_there_is_no_parent_a_device_may_ask_again_later() -> None:
    hub = root()
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("d"))
    hub.down(1)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert done.outputs == (reply(2, refused(Reason.UNREACHABLE), hub),)
    assert "AUTH-10" in done.rules


def test_a_device_that_was_here_itself_and_was_revoked_is_searched_upwards() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(PARENT, Revoke("d", 30), msg_id=1, source=1)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert [send.link for send in sent(done)] == [PARENT]
    assert "AUTH-9" in done.rules and "AUTH-20" not in done.rules


def test_on_success_the_asking_hub_stores_what_the_device_presented() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")), msg_id=13, trace_id=6)
    asked = hub.last_question(PARENT)
    done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"), NODE))
    assert done.outputs[0] == CancelTimer(asked)
    assert sent(done, 1) == [reply(1, admitted("d", 30, key("d")), hub, msg_id=13, trace_id=6)]
    assert hub.state.whitelist["d"] == Entry(30, key("d"), False)
    assert hub.session(1) == Session("d", 30, False)
    assert "AUTH-12" in done.rules and "AUTH-14" not in done.rules


def test_a_search_that_came_back_refused_keeps_its_code_or_counts_as_failed() -> None:
    for came, answered in (
        (Reason.NOT_ADMITTED, Reason.NOT_ADMITTED),
        (Reason.UNREACHABLE, Reason.UNREACHABLE),
        (Reason.INTERNAL, Reason.INTERNAL),
        (Reason.FORBIDDEN, Reason.UNREACHABLE),
        (Reason.INVALID_REQUEST, Reason.UNREACHABLE),
        (Reason.NOT_INDEXED, Reason.UNREACHABLE),
    ):
        hub = mid()
        hub.up(1)
        before = hub.state
        hub.receive(1, Authenticate("d", key("d")))
        done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, came))
        assert sent(done) == [reply(1, refused(answered), hub)]
        assert "AUTH-19" in done.rules and "AUTH-12" not in done.rules
        assert (hub.state.whitelist, hub.state.links) == (before.whitelist, before.links)


def test_a_busy_hub_further_up_is_answered_4500_as_it_came_back() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")))
    done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.BUSY, "d"))
    body = sent(done)[0].frame.body
    assert isinstance(body, Answer) and body.reason in (Reason.BUSY, Reason.INTERNAL)


def test_a_success_about_another_device_or_without_a_node_counts_as_failed() -> None:
    for answer in (
        Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "e", 30, key("d")),
        Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 0, key("d")),
    ):
        hub = mid()
        hub.up(1)
        hub.receive(1, Authenticate("d", key("d")))
        done = hub.answered(PARENT, answer)
        assert sent(done) == [reply(1, refused(Reason.UNREACHABLE), hub)]
        assert "AUTH-19" in done.rules
        assert hub.is_free(1) and "d" not in hub.state.whitelist


def test_the_authority_admits_through_a_search_only_what_it_has_bound() -> None:
    found = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"), NODE)
    for known, is_admitted in ((listing(d=30), True), ({}, False)):
        hub = root(**known)
        hub.provisioned(1, "hub-a")
        hub.found_below("d", 30, 1)
        hub.up(2)
        hub.receive(2, Authenticate("d", key("d")))
        done = hub.answered(1, found)
        assert (2 in [link for link, session in hub.state.links.items() if session]) is is_admitted
        assert ("AUTH-12" in done.rules) is is_admitted and ("AUTH-19" in done.rules) is not is_admitted


def test_at_the_authority_a_device_registered_elsewhere_is_searched_where_it_is() -> None:
    hub = root()
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("d"))
    hub.found_below("d", 2, 1)
    hub.up(2)
    asked = hub.next_id
    done = hub.receive(2, Authenticate("d", key("d")))
    assert sent(done) == [question(1, AssistAuthenticate("d", key("d")), hub, asked, target=HUB_A)]
    hub.answered(1, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 2, key("d")))
    assert hub.session(2) == Session("d", 2, False)


def test_a_success_that_contradicts_a_known_binding_counts_as_failed() -> None:
    for node_id in (5, 20):
        hub = mid()
        hub.up(1)
        hub.receive(1, Authenticate("d", key("d")))
        done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", node_id, key("d")))
        assert sent(done) == [reply(1, refused(Reason.UNREACHABLE), hub)]
        assert "AUTH-19" in done.rules and hub.is_free(1)


def test_a_queried_credential_is_stored_only_if_it_is_what_the_device_presented() -> None:
    for came, is_admitted in ((key("d"), True), (WRONG, False), ("", False)):
        hub = mid(assist=Assist.QUERY, node_roles={30: "node"})
        hub.up(1)
        hub.receive(1, Authenticate("d", key("d")))
        done = hub.answered(PARENT, Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.OK, "d", 30, came))
        assert "AUTH-14" in done.rules
        assert ("AUTH-12" in done.rules) is is_admitted
        assert ("d" in hub.state.whitelist) is is_admitted
        expected = admitted("d", 30, key("d")) if is_admitted else refused(Reason.NOT_ADMITTED)
        assert sent(done, 1) == [reply(1, expected, hub)]


def test_what_this_hub_knows_of_a_role_goes_before_what_it_is_told() -> None:
    hub = mid(node_roles={30: "node"})
    hub.admitted_from_above(1, "d", 30, HUB)
    assert not hub.session(1).is_hub
    hub = mid()
    hub.admitted_from_above(1, "d", 30, HUB)
    assert hub.session(1).is_hub and hub.state.whitelist["d"].is_hub


def test_other_dialects_do_not_speak_of_roles() -> None:
    hub = returning(dialect=Dialect.LOGIN)
    done = hub.receive(2, Authenticate("d", issued(1)))
    assert "AUTH-26" not in done.rules and "AUTH-1" in done.rules


def test_while_the_parent_is_away_entries_still_admit() -> None:
    hub = mid()
    credential = hub.admitted_from_above(1, "d", 30)
    hub.down(PARENT)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", credential))
    assert hub.session(2).node_id == 30
    assert "AUTH-18" in done.rules
    assert [output for output in done.outputs if isinstance(output, Close)] == [Close(1)]
    assert [send.link for send in sent(done)] == [2]


def test_while_the_parent_is_present_admission_is_not_offline() -> None:
    hub = mid()
    credential = hub.admitted_from_above(1, "d", 30)
    assert "AUTH-18" not in hub.receive(1, Authenticate("d", credential)).rules


def test_without_credentials_an_entry_or_a_registration_is_the_proof() -> None:
    hub = root(dialect=Dialect.FLAT)
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("d"))
    assert "d" not in hub.state.whitelist
    hub.up(2)
    done = hub.receive(2, Authenticate("d"))
    assert sent(done) == [reply(2, admitted("d", 2, ""), hub)]
    assert hub.state.whitelist["d"] == Entry(2, "", False)
    assert "AUTH-15" in done.rules and "AUTH-1" not in done.rules
    hub.down(2)
    hub.up(3)
    assert "AUTH-15" in hub.receive(3, Authenticate("d", "whatever")).rules
    hub.up(4)
    done = hub.receive(4, Authenticate("e"))
    assert sent(done) == [reply(4, refused(Reason.NOT_ADMITTED, "e"), hub)]


def test_with_credentials_a_registration_alone_proves_nothing() -> None:
    hub = root()
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("d"))
    hub.up(2)
    hub.receive(2, Authenticate("d", issued(2)))
    done = hub.answered(1, Answer(Action.ASSIST_AUTHENTICATE, Reason.NOT_ADMITTED, "d"))
    assert sent(done) == [reply(2, refused(Reason.NOT_ADMITTED), hub)]


def test_registering_on_a_link_that_authenticates_answers_both() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")), msg_id=1)
    search = hub.last_question(PARENT)
    hub.receive(1, Register("d"), msg_id=2)
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("new"), NODE))
    assert sent(done, 1)[0].frame.msg_id == 2
    done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.NOT_ADMITTED), msg_id=search)
    assert sent(done, 1)[0].frame.msg_id == 1
    assert hub.session(1) == Session("d", 30, False)


def test_a_hub_is_told_what_it_is_as_a_device_and_then_as_a_hub() -> None:
    hub = root()
    hub.up(1)
    done = hub.receive(1, credentials("hub-b"))
    answer = evolve(admitted("hub-b", HUB_B, key("hub-b"), HUB), ext=Ext(OWN_JOURNAL, "journal of hub-b"))
    assert done.outputs == (reply(1, answer, hub),)
    assert hub.session(1).is_hub
    assert HUB_B in hub.state.neighbours
