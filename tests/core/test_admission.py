"""Role and permissions come with every success: a device waits for them before it is let in, and what ends the wait."""

from typing import Any

from hubauth.core.inputs import PARENT, OperatorInvalidate, OperatorRevoke
from hubauth.core.messages import (
    NO_GRANT,
    Action,
    Answer,
    AssistAuthenticate,
    Authenticate,
    GetPerms,
    Grant,
    Malformed,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Pending, Purpose, Session
from hubauth.core.outputs import CancelTimer, Close, StartTimer
from hubauth.core.policy import Dialect, Provisioned
from hubauth.core.transition import Step
from hubauth.lab.hub import ASK, HUB, HUB_A, NODE, Hub, key, mid, question, reply, root, sent, with_hubs

OTHER = Grant("other", ("p.write",))


def admitted(action: Action = Action.AUTHENTICATE, grant: Grant = NODE) -> Answer:
    return Answer(action, Reason.OK, "d", 30, key("d"), grant)


def refused(reason: Reason, action: Action = Action.AUTHENTICATE) -> Answer:
    return Answer(action, reason, "d", 30)


def perms(grant: Grant = NODE, node_id: int = 30) -> Answer:
    return Answer(Action.GET_PERMS, Reason.OK, "", node_id, grant=grant)


def registration(grant: Grant = NO_GRANT) -> Answer:
    return Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), grant)


def found(grant: Grant = NO_GRANT) -> Answer:
    return Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"), grant)


def knowing(**changes: Any) -> Hub:
    """A hub below the root with an entry of device d, which is not connected, and nothing about its role."""
    hub = mid(**changes)
    hub.admitted_from_above(1, "d", 30)
    hub.down(1)
    return hub


def returning(**changes: Any) -> Hub:
    """Device d, which this hub has an entry of, waits on link 2 to be admitted."""
    hub = knowing(**changes)
    hub.up(2)
    hub.receive(2, Authenticate("d", key("d")))
    assert hub.waits(2)
    return hub


def searched(**changes: Any) -> Hub:
    """Device d, found elsewhere, waits on link 2 to be admitted."""
    hub = mid(**changes)
    hub.up(2)
    hub.receive(2, Authenticate("d", key("d")))
    hub.answered(PARENT, found())
    assert hub.waits(2)
    return hub


def registering(**changes: Any) -> Hub:
    """Device d, registered further up, waits on link 2 to be admitted."""
    hub = mid(**changes)
    hub.up(2)
    hub.receive(2, Register("d"))
    hub.answered(PARENT, registration())
    assert hub.waits(2)
    return hub


def answers(done: Step, link: int = 2) -> list[object]:
    return [send.frame.body for send in sent(done, link)]


# Asking first


def test_a_hub_that_does_not_know_a_role_asks_before_it_binds() -> None:
    hub = knowing()
    hub.up(2)
    asked = hub.next_id
    done = hub.receive(2, Authenticate("d", key("d")), trace_id=6)
    assert done.outputs == (
        question(PARENT, GetPerms(30), hub, asked, target=1, trace_id=6),
        StartTimer(asked, 5.0),
    )
    assert "AUTH-27" in done.rules and "AUTH-26" not in done.rules
    assert hub.is_free(2) and not hub.is_online(30)
    about = {"device_id": "d", "node_id": 30, "credential": key("d"), "epoch": 1}
    waits = Pending(Purpose.ADMIT, Action.AUTHENTICATE, PARENT, 2, ASK, 6, **about, by_entry=True)  # type: ignore[arg-type]
    assert hub.state.pending[asked] == waits
    done = hub.answered(PARENT, perms())
    assert done.outputs[0] == CancelTimer(asked)
    assert sent(done, 2) == [reply(2, admitted(), hub, trace_id=6)]
    assert hub.session(2) == Session("d", 30, False)
    assert {"AUTH-26", "PERM-4", "BIND-1"} <= set(done.rules) and not {"AUTH-28", "AUTH-29"} & set(done.rules)
    assert hub.state.perms[30] == NODE


def test_after_a_search_nothing_is_stored_until_the_role_is_known() -> None:
    hub = searched()
    assert "d" not in hub.state.whitelist and 30 not in hub.state.directory
    assert answers(hub.answered(PARENT, perms())) == [admitted()]
    assert hub.state.whitelist["d"] == Entry(30, key("d"))


def test_after_a_registration_that_names_no_role_nothing_is_stored_until_it_is_known() -> None:
    hub = registering()
    assert "d" not in hub.state.whitelist and 30 not in hub.state.directory
    assert answers(hub.answered(PARENT, perms())) == [admitted(Action.REGISTER)]
    assert hub.state.whitelist["d"] == Entry(30, key("d"))


def test_what_is_learnt_decides_whether_it_is_a_hub() -> None:
    for hub in (returning(), searched(), registering()):
        hub.answered(PARENT, perms(HUB))
        assert hub.session(2).is_hub and 30 in hub.state.neighbours


def test_a_device_whose_role_is_known_does_not_wait() -> None:
    hub = knowing(node_roles={30: "node"})
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert answers(done) == [admitted()] and "AUTH-27" not in done.rules
    hub = returning()
    hub.answered(PARENT, perms())
    done = hub.receive(2, Authenticate("d", key("d")))
    assert answers(done) == [admitted()] and "AUTH-27" not in done.rules


def test_the_authority_is_asked_where_it_is_and_never_through_the_link_in_question() -> None:
    hub = with_hubs(root(authority=HUB_A))
    hub.up(3)
    hub.receive(3, Register("d"))
    hub.answered(1, registration())
    assert hub.waits(3)
    assert answers(hub.answered(1, perms()), 3) == [admitted(Action.REGISTER)]
    hub = mid(authority=50)
    hub.admitted_from_above(1, "k", 50, HUB)
    hub.receive(PARENT, PermsInvalidate(), source=1)
    done = hub.receive(1, Authenticate("k", key("k")))
    assert "AUTH-28" in done.rules and "AUTH-27" not in done.rules
    assert hub.session(1).is_hub and not hub.waits(1)


def test_other_dialects_have_no_roles_to_wait_for() -> None:
    for dialect in (Dialect.LOGIN, Dialect.FLAT):
        hub = mid(dialect=dialect)
        hub.up(2)
        hub.receive(2, Register("d"))
        credential = key("d") if dialect is Dialect.LOGIN else ""
        done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, credential))
        assert hub.session(2).node_id == 30
        assert not {"AUTH-26", "AUTH-27", "AUTH-28"} & set(done.rules)


# What is told with a success


def test_what_a_registration_is_told_is_cached_and_nobody_waits() -> None:
    hub = mid()
    hub.up(2)
    hub.receive(2, Register("d"))
    done = hub.answered(PARENT, registration(OTHER))
    assert answers(done) == [admitted(Action.REGISTER, OTHER)]
    assert "PERM-20" in done.rules and hub.state.perms[30] == OTHER
    assert "AUTH-27" not in hub.receive(2, Authenticate("d", key("d"))).rules


def test_any_invalidation_meanwhile_makes_what_is_told_worthless() -> None:
    for named in ((), (30,), (99,)):
        for request, answer in ((Register("d"), registration(OTHER)), (Authenticate("d", key("d")), found(OTHER))):
            hub = mid()
            hub.up(2)
            hub.receive(2, request)
            asked = hub.last_question(PARENT)
            hub.receive(PARENT, PermsInvalidate(named), source=1)
            done = hub.answered(PARENT, answer, msg_id=asked)
            assert {"PERM-21", "AUTH-27"} <= set(done.rules) and "PERM-20" not in done.rules
            assert 30 not in hub.state.perms
            assert answers(hub.answered(PARENT, perms())) == [admitted(request.action)]


def test_what_a_search_is_told_is_used_and_not_cached() -> None:
    hub = mid()
    hub.up(2)
    hub.receive(2, Authenticate("d", key("d")))
    done = hub.answered(PARENT, found(OTHER))
    assert answers(done) == [admitted(grant=OTHER)]
    assert not {"PERM-20", "AUTH-27"} & set(done.rules) and 30 not in hub.state.perms


def test_a_role_of_its_own_configuration_is_not_cached() -> None:
    hub = mid(node_roles={30: "node"})
    hub.admitted_from_above(1, "d", 30, OTHER)
    assert 30 not in hub.state.perms


# Without a usable answer


def test_a_node_that_is_not_found_is_admitted_with_nothing() -> None:
    for hub in (returning(), searched(), registering()):
        done = hub.told_nothing(30)
        body = answers(done)[0]
        assert isinstance(body, Answer) and body.reason is Reason.OK and body.grant == NO_GRANT
        assert {"AUTH-26", "AUTH-28"} <= set(done.rules) and 30 not in hub.state.perms


def test_any_other_failure_admits_just_the_same() -> None:
    for reason in (Reason.UNREACHABLE, Reason.BUSY, Reason.FORBIDDEN, Reason.INTERNAL):
        hub = returning()
        done = hub.answered(PARENT, Answer(Action.GET_PERMS, reason, "", 30))
        assert answers(done) == [admitted(grant=NO_GRANT)] and "AUTH-28" in done.rules


def test_time_that_is_up_admits_just_the_same() -> None:
    hub = returning()
    done = hub.fires(hub.last_question(PARENT))
    assert answers(done) == [admitted(grant=NO_GRANT)]
    assert {"TIME-2", "AUTH-28", "AUTH-26"} <= set(done.rules) and not hub.state.pending


def test_a_lost_parent_admits_just_the_same() -> None:
    hub = searched()
    done = hub.down(PARENT)
    assert answers(done) == [admitted(grant=NO_GRANT)]
    assert {"LINK-6", "AUTH-28"} <= set(done.rules) and hub.state.whitelist["d"] == Entry(30, key("d"))


def test_a_lost_child_hub_that_leads_to_the_authority_admits_just_the_same() -> None:
    hub = with_hubs(root(authority=HUB_A))
    hub.up(3)
    hub.receive(3, Register("d"))
    hub.answered(1, registration())
    done = hub.down(1)
    assert answers(done, 3) == [admitted(Action.REGISTER, NO_GRANT)]


def test_a_hub_that_waits_for_itself_is_admitted_when_its_old_link_is_lost() -> None:
    """The loss of the old link must not meet the new session halfway."""
    hub = mid(authority=50)
    hub.admitted_from_above(1, "k", 50, HUB)
    hub.receive(PARENT, PermsInvalidate(), source=1)
    hub.up(2)
    hub.receive(2, Authenticate("k", key("k")))
    assert hub.waits(2) and hub.last_question(1)
    hub.down(1)
    assert hub.session(2).is_hub and 1 not in hub.state.links


def test_an_answer_older_than_an_invalidation_admits_with_what_is_cached_by_then() -> None:
    for named in ((30,), ()):
        hub = returning()
        hub.receive(PARENT, PermsInvalidate(named), source=1)
        done = hub.answered(PARENT, perms())
        assert answers(done) == [admitted(grant=NO_GRANT)]
        assert {"PERM-5", "AUTH-28"} <= set(done.rules) and 30 not in hub.state.perms
    hub = returning()
    asked = hub.last_question(PARENT)
    hub.receive(PARENT, PermsInvalidate((30,)), source=1)
    hub.provisioned(3, "admin")
    hub.receive(3, GetPerms(30))
    hub.answered(PARENT, perms(OTHER))
    done = hub.answered(PARENT, perms(), msg_id=asked)
    assert answers(done) == [admitted(grant=OTHER)]


def test_an_invalidation_of_somebody_else_does_not_spoil_the_answer() -> None:
    hub = returning()
    hub.receive(PARENT, PermsInvalidate((99,)), source=1)
    assert answers(hub.answered(PARENT, perms())) == [admitted()]


def test_too_much_that_waits_already_admits_just_the_same() -> None:
    hub = mid(pending_limit=1)
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, GetPerms(44), msg_id=2)
    done = hub.receive(1, Authenticate("d", key("d")))
    assert answers(done, 1) == [admitted(grant=NO_GRANT)]
    assert "AUTH-28" in done.rules and "TIME-3" not in done.rules


def test_without_the_parent_nobody_waits() -> None:
    hub = knowing()
    hub.down(PARENT)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert answers(done) == [admitted(grant=NO_GRANT)]
    assert {"AUTH-18", "AUTH-28"} <= set(done.rules) and "AUTHY-5" not in done.rules


def test_who_hangs_up_is_not_admitted() -> None:
    hub = returning()
    done = hub.down(2)
    assert "LINK-7" in done.rules and not hub.state.pending
    hub = returning()
    hub.down(2)
    assert not sent(hub.down(PARENT)) and not hub.is_online(30)


# What ends the wait


def test_a_revoke_refuses_who_waits() -> None:
    for hub in (returning(), searched(), registering()):
        action = next(iter(hub.state.pending.values())).action
        asked = hub.last_question(PARENT)
        done = hub.receive(PARENT, Revoke("d", 30), msg_id=1, source=1)
        assert answers(done) == [refused(Reason.NOT_ADMITTED, action)]
        assert "REV-11" in done.rules and "d" not in hub.state.whitelist and hub.is_free(2)
        assert not sent(hub.answered(PARENT, perms(), msg_id=asked)) and hub.is_free(2)


def test_a_revoke_of_another_credential_refuses_nobody() -> None:
    for hub in (returning(), searched(), registering()):
        asked = hub.last_question(PARENT)
        hub.happens(OperatorRevoke(Revoke("d", 30, "another")))
        hub.answered(PARENT, perms(), msg_id=asked)
        assert hub.session(2).node_id == 30


def test_a_revoke_of_another_node_refuses_nobody() -> None:
    for hub in (returning(), searched(), registering()):
        asked = hub.last_question(PARENT)
        hub.happens(OperatorRevoke(Revoke("d", 77, key("d"))))
        hub.happens(OperatorRevoke(Revoke("d", 77)))
        hub.answered(PARENT, perms(), msg_id=asked)
        assert hub.session(2).node_id == 30


def test_a_later_register_or_auth_on_the_link_ends_the_wait() -> None:
    for later in (Register("e"), Authenticate("e", key("e")), Authenticate("d", "wrong")):
        hub = returning()
        asked = hub.last_question(PARENT)
        done = hub.receive(2, later, msg_id=8)
        assert sent(done, 2)[0] == reply(2, refused(Reason.UNREACHABLE), hub)
        assert "AUTH-30" in done.rules and CancelTimer(asked) in done.outputs and not hub.waits(2)


def test_a_malformed_one_or_another_request_ends_nothing() -> None:
    hub = returning()
    for body in (Malformed(Action.AUTHENTICATE, "?"), GetPerms(30)):
        hub.receive(2, body, msg_id=8)
        assert hub.waits(2)


def test_a_later_admission_of_the_device_ends_the_wait() -> None:
    hub = returning()
    hub.up(3)
    done = hub.receive(3, Authenticate("d", key("d")))
    assert answers(done) == [refused(Reason.UNREACHABLE)] and "AUTH-30" in done.rules
    hub.answered(PARENT, perms())
    assert hub.session(3).node_id == 30 and hub.is_free(2)


def test_a_later_registration_is_not_undone_by_an_earlier_one() -> None:
    hub = registering(revoke_on_reregister=False)
    hub.up(3)
    hub.receive(3, Register("d"))
    newer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("new"), NODE)
    done = hub.answered(PARENT, newer)
    assert answers(done) == [refused(Reason.UNREACHABLE, Action.REGISTER)]
    assert hub.state.whitelist["d"].credential == key("new") and not hub.state.pending


def test_a_link_on_which_a_registration_waits_for_its_role_is_not_closed() -> None:
    hub = mid()
    hub.admitted_from_above(2, "e", 31)
    hub.receive(2, Register("d"))
    hub.answered(PARENT, registration())
    hub.receive(PARENT, Revoke("e"), msg_id=1, source=1)
    assert hub.is_free(2)
    assert answers(hub.answered(PARENT, perms())) == [admitted(Action.REGISTER)]


# The entry is read again


def test_an_entry_that_the_configuration_has_taken_away_admits_nobody() -> None:
    binding = Provisioned("d", 30, key("d"))
    for after in ((), (Provisioned("d", 30, key("new")),)):
        hub = mid(provisioned=(binding,))
        hub.up(2)
        hub.receive(2, Authenticate("d", key("d")))
        assert hub.waits(2)
        hub.now_with(provisioned=after)
        done = hub.answered(PARENT, perms())
        assert answers(done) == [refused(Reason.NOT_ADMITTED)] and "AUTH-29" in done.rules
        assert hub.is_free(2)


def test_an_entry_that_has_come_meanwhile_must_agree() -> None:
    for credential, is_admitted in ((key("d"), True), (key("new"), False)):
        hub = searched()
        hub.now_with(provisioned=(Provisioned("d", 30, credential),))
        done = hub.answered(PARENT, perms())
        assert answers(done) == [admitted() if is_admitted else refused(Reason.NOT_ADMITTED)]
        assert ("AUTH-29" in done.rules) is not is_admitted


def test_a_device_that_is_provisioned_meanwhile_is_not_registered_over() -> None:
    hub = registering()
    hub.now_with(provisioned=(Provisioned("d", 30, key("new")),))
    done = hub.answered(PARENT, perms())
    assert answers(done) == [refused(Reason.PROTECTED, Action.REGISTER)]
    assert hub.state.whitelist["d"].credential == key("new")


def test_a_binding_that_contradicts_what_has_been_heard_meanwhile_is_not_made() -> None:
    for hub, action in ((searched(), Action.AUTHENTICATE), (registering(), Action.REGISTER)):
        hub.provisioned(1, "hub-a")
        hub.found_below("d", 40, 1)
        done = hub.answered(PARENT, perms())
        assert answers(done) == [refused(Reason.UNREACHABLE, action)] and "AUTH-29" in done.rules
        assert hub.is_free(2) and "d" not in hub.state.whitelist


def test_an_older_entry_does_not_keep_a_registration_from_replacing_it() -> None:
    hub = knowing()
    hub.up(2)
    hub.receive(2, Register("d"))
    hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("new")))
    assert hub.waits(2) and hub.state.whitelist["d"].credential == key("d")
    hub.answered(PARENT, perms())
    assert hub.state.whitelist["d"].credential == key("new")


def test_the_old_session_stays_until_the_new_one_is_there() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.up(2)
    assert Close(1) not in hub.receive(2, Authenticate("d", key("d"))).outputs
    assert hub.session(1).node_id == 30
    assert Close(1) in hub.answered(PARENT, perms()).outputs


def test_an_operators_invalidation_counts_like_any_other() -> None:
    hub = returning()
    hub.happens(OperatorInvalidate(PermsInvalidate((30,))))
    assert answers(hub.answered(PARENT, perms())) == [admitted(grant=NO_GRANT)]


def test_a_search_from_another_hub_does_not_find_who_waits() -> None:
    hub = registering()
    done = hub.receive(PARENT, AssistAuthenticate("d", key("d")), source=1)
    body = sent(done, PARENT)[0].frame.body
    assert isinstance(body, Answer) and body.reason is Reason.NOT_ADMITTED
