"""revoke: what it does at a hub, and who may ask for it."""

from typing import Any

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Pending, Purpose, Registration
from hubauth.core.outputs import CancelTimer, Close, Note, NoteKind, StartTimer, Tell
from hubauth.core.policy import Assist, Dialect
from hubauth.core.revoke import agrees
from hubauth.lab.hub import (
    ADMIN,
    HUB_A,
    NODE,
    PROVISIONED,
    Hub,
    credentials,
    issued,
    key,
    mid,
    notes,
    question,
    reply,
    root,
    sent,
    with_hubs,
)

WRONG = "w" * 43


def told(reason: Reason, device_id: str = "d", node_id: int = 0) -> Answer:
    return Answer(Action.REVOKE, reason, device_id, node_id)


def with_admin(**changes: Any) -> Hub:
    """A root with device d (node 2) on link 1 and the administrator on link 2."""
    hub = root(**changes)
    hub.registered(1, "d")
    hub.provisioned(2, "admin")
    return hub


# Permission


def test_without_the_permission_a_device_may_not_revoke() -> None:
    hub = with_admin()
    hub.provisioned(3, "hub-a")
    done = hub.receive(1, Revoke("admin", ADMIN), trace_id=5)
    assert done.outputs == (reply(1, told(Reason.FORBIDDEN, "admin", ADMIN), hub, trace_id=5),)
    assert hub.unchanged
    assert {"REV-1", "TRUST-6"} <= set(done.rules)


def test_the_wildcard_is_enough_to_revoke() -> None:
    hub = with_admin(role_perms={"node": ("*",)})
    hub.receive(1, Revoke("admin"))
    assert "admin" not in hub.state.whitelist


def test_other_dialects_read_roles_from_the_configuration_only() -> None:
    hub = mid(dialect=Dialect.LOGIN)
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(1, Revoke("x"))
    assert done.outputs == (reply(1, told(Reason.FORBIDDEN, "x"), hub),)
    assert "TRUST-7" not in done.rules
    hub.provisioned(2, "admin")
    hub.receive(2, Revoke("d"))
    assert "d" not in hub.state.whitelist


# What a revoke does


def test_an_entry_that_agrees_is_deleted_and_answered_and_the_session_ends() -> None:
    for message in (Revoke("d"), Revoke("d", 2), Revoke("d", 0, issued(1)), Revoke("d", 2, issued(1))):
        hub = with_admin()
        done = hub.receive(2, message, msg_id=40, trace_id=5)
        assert done.outputs == (
            StartTimer(1, 30.0),
            reply(2, told(Reason.OK, "d", 2), hub, msg_id=40, trace_id=5),
            Close(1),
        )
        assert "d" not in hub.state.whitelist and 1 not in hub.state.links
        assert not hub.is_online(2)
        assert hub.state.registry["d"] == Registration(2, revoked=True)
        assert {"REV-1", "REV-2", "REV-5", "REV-6", "REV-7", "REV-12", "REV-18"} <= set(done.rules)


def test_a_revoked_device_is_reported_offline() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    report = hub.next_id
    done = hub.receive(PARENT, Revoke("d", 30), msg_id=1, source=1)
    assert sent(done) == [
        reply(PARENT, told(Reason.OK, "d", 30), hub, msg_id=1, target=1),
        question(PARENT, AssistOffline("d", 30), hub, report, target=1),
    ]
    assert done.outputs[-1] == Close(1)


def test_a_device_that_is_not_connected_is_revoked_all_the_same() -> None:
    hub = with_admin()
    hub.down(1)
    done = hub.receive(2, Revoke("d"))
    assert "d" not in hub.state.whitelist
    assert "REV-5" in done.rules and "REV-6" not in done.rules
    hub.up(3)
    done = hub.receive(3, Authenticate("d", issued(1)))
    assert sent(done)[0].frame.body == Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED, "d")


def test_the_link_of_a_revoked_device_may_stay_open() -> None:
    hub = with_admin(close_on_revoke=False)
    done = hub.receive(2, Revoke("d"))
    assert hub.is_free(1)
    assert "REV-6" in done.rules and "REV-7" not in done.rules


def test_the_link_of_a_revoked_hub_is_closed_all_the_same() -> None:
    hub = with_hubs(root(close_on_revoke=False))
    done = hub.happens(OperatorRevoke(Revoke("hub-a")))
    assert Close(1) in done.outputs and 1 not in hub.state.links
    assert {"REV-6", "REV-7", "LINK-11"} <= set(done.rules)


def test_a_link_on_which_a_registration_waits_is_not_closed() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Register("d"))
    done = hub.receive(PARENT, Revoke("d", 30), msg_id=1, source=1)
    assert hub.is_free(1) and "d" not in hub.state.whitelist
    assert "REV-7" not in done.rules
    hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("new"), NODE))
    assert hub.session(1).node_id == 30


def test_any_other_request_that_waits_does_not_keep_the_link_open() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Authenticate("x", key("x")))
    done = hub.receive(PARENT, Revoke("d", 30), msg_id=1, source=1)
    assert Close(1) in done.outputs and not hub.state.pending
    assert {"REV-7", "LINK-7"} <= set(done.rules)


def test_an_entry_that_disagrees_stays_and_is_answered() -> None:
    for message in (Revoke("d", 3), Revoke("d", 2, WRONG), Revoke("d", 3, issued(1)), Revoke("d", 0, WRONG)):
        hub = with_admin()
        before = hub.state
        done = hub.receive(2, message)
        assert sent(done) == [reply(2, told(Reason.CREDENTIAL_MISMATCH, "d", message.node_id), hub)]
        assert (hub.state.whitelist, hub.state.links) == (before.whitelist, before.links)
        assert hub.state.registry["d"].revoked is False
        assert "REV-8" in done.rules and "REV-5" not in done.rules


def test_a_disagreement_may_be_passed_over_in_silence() -> None:
    hub = with_admin(answer_mismatch=False)
    done = hub.receive(2, Revoke("d", 3))
    assert sent(done) == [] and "d" in hub.state.whitelist
    assert "REV-8" in done.rules


def test_what_agreeing_means() -> None:
    assert agrees(Revoke("d"), 2, "c")
    assert agrees(Revoke("d", 2, "c"), 2, "c")
    assert not agrees(Revoke("d", 3, "c"), 2, "c")
    assert not agrees(Revoke("d", 2, "x"), 2, "c")
    assert not agrees(Revoke("d", 0, "c"), 2, "")


def test_a_broadcast_that_finds_nothing_is_not_answered() -> None:
    hub = with_admin()
    done = hub.receive(2, Revoke("x"))
    assert sent(done) == []
    assert "REV-9" in done.rules and "REV-10" not in done.rules


def test_an_addressed_revoke_that_finds_nothing_is_answered_and_not_passed_on() -> None:
    hub = with_admin()
    hub.provisioned(3, "hub-a")
    done = hub.receive(2, Revoke("x", 9), target=1)
    assert sent(done) == [reply(2, told(Reason.NOT_WHITELISTED, "x", 9), hub)]
    assert {"REV-10", "REV-4"} <= set(done.rules)
    assert not {"REV-9", "REV-2"} & set(done.rules)
    done = hub.receive(2, Revoke("d"), target=1)
    assert sent(done) == [reply(2, told(Reason.OK, "d", 2), hub)]
    assert hub.state.neighbours[HUB_A].sent == 0


def test_a_device_that_revokes_itself_still_hears_the_answer() -> None:
    hub = with_admin()
    done = hub.receive(2, Revoke("admin"))
    assert done.outputs == (
        StartTimer(1, 30.0),
        reply(2, told(Reason.OK, "admin", ADMIN), hub),
        CancelTimer(1),
        Close(2),
    )
    assert not hub.state.pending


def test_the_registration_stays_and_says_whether_the_device_was_revoked() -> None:
    for message, revoked in (
        (Revoke("d"), True),
        (Revoke("d", 2), True),
        (Revoke("d", 9), False),
        (Revoke("d", 0, WRONG), False),
        (Revoke("d", 2, WRONG), False),
    ):
        hub = root()
        hub.provisioned(1, "hub-a")
        hub.provisioned(2, "admin")
        hub.receive(1, AssistRegister("d"))
        done = hub.receive(2, message)
        assert hub.state.registry["d"] == Registration(2, revoked)
        assert "REV-12" in done.rules
    hub = with_admin()
    hub.receive(2, Revoke("d", 0, issued(1)))
    assert hub.state.registry["d"].revoked
    hub = with_admin()
    assert "REV-12" not in hub.receive(2, Revoke("x")).rules
    for _ in range(2):
        hub.happens(OperatorRevoke(Revoke("d")))
    assert hub.unchanged


def test_the_revoke_of_a_provisioned_binding_beats_the_configuration() -> None:
    hub = with_admin()
    hub.provisioned(3, "hub-b")
    done = hub.receive(2, Revoke("hub-b"))
    assert hub.state.beaten["hub-b"] == key("hub-b")
    assert "TRUST-4" in done.rules
    hub.now_with(announce_batch=9)
    assert "hub-b" not in hub.state.whitelist
    hub.up(4)
    done = hub.receive(4, credentials("hub-b"))
    assert sent(done)[0].frame.body == Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED, "hub-b")


def test_the_revoke_of_a_registered_device_beats_nothing() -> None:
    hub = with_admin()
    done = hub.receive(2, Revoke("d"))
    assert not hub.state.beaten and "TRUST-4" not in done.rules


# Authentications under way


def searching(**changes: Any) -> Hub:
    """A hub where devices on links 1 and 2 present themselves as d, and hub A asks about d too."""
    hub = mid(**changes)
    hub.provisioned(3, "hub-a")
    for link, credential in ((1, "a" * 43), (2, "b" * 43)):
        hub.up(link)
        hub.receive(link, Authenticate("d", credential), msg_id=60 + link)
    hub.receive(3, AssistAuthenticate("d", "c" * 43))
    return hub


def test_a_revoke_refuses_its_own_devices_pending_authentications_and_no_relayed_one() -> None:
    for changes in ({}, {"assist": Assist.QUERY}):
        hub = searching(**changes)
        done = hub.receive(PARENT, Revoke("d"), msg_id=1, source=1)
        refusal = Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED, "d")
        assert sent(done)[:2] == [reply(1, refusal, hub, msg_id=61), reply(2, refusal, hub, msg_id=62)]
        left = [pending.purpose for pending in hub.state.pending.values()]
        assert sorted(left, key=str) == [Purpose.FENCE, Purpose.RELAY]
        assert "REV-11" in done.rules


def test_a_revoke_with_a_credential_refuses_those_that_present_it() -> None:
    hub = searching()
    done = hub.receive(PARENT, Revoke("d", 0, "b" * 43), msg_id=1, source=1)
    assert [send.link for send in sent(done)] == [2, 3, 3]
    assert "REV-11" in done.rules
    hub = searching()
    done = hub.receive(PARENT, Revoke("d", 0, WRONG), msg_id=1, source=1)
    assert [send.link for send in sent(done)] == [3, 3] and "REV-11" not in done.rules


def test_a_revoke_of_another_device_refuses_nothing() -> None:
    hub = searching()
    done = hub.receive(PARENT, Revoke("e"), msg_id=1, source=1)
    assert "REV-11" not in done.rules


def test_an_answer_sent_just_before_the_revoke_lets_nobody_in() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")))
    search = hub.last_question(PARENT)
    hub.receive(PARENT, Revoke("d"), msg_id=1, source=1)
    late = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"))
    done = hub.receive(PARENT, late, msg_id=search, source=1)
    assert [note.rule for note in notes(done)] == ["FRAME-16"]
    assert hub.unchanged and hub.is_free(1)


# The operator


def test_an_operator_needs_no_permission_and_is_answered() -> None:
    hub = with_admin()
    done = hub.happens(OperatorRevoke(Revoke("d")))
    assert done.outputs == (
        Tell(1, "d", 2, Reason.OK),
        Close(1),
    )
    assert {"REV-19", "REV-2", "REV-17"} <= set(done.rules) and not {"REV-1", "REV-18"} & set(done.rules)
    assert not hub.state.pending
    done = hub.happens(OperatorRevoke(Revoke("x"), target=1))
    assert done.outputs == (Tell(1, "x", 0, Reason.NOT_WHITELISTED),)


def test_an_operator_where_revoke_does_not_exist_sends_none() -> None:
    hub = mid(dialect=Dialect.FLAT)
    done = hub.happens(OperatorRevoke(Revoke("d")))
    assert done.outputs == (Note(NoteKind.COMMAND_REFUSED, "REV-19", "this dialect has no revoke"),)
    assert hub.unchanged


# What the originator's hub remembers


def test_the_request_is_remembered_until_its_timer() -> None:
    hub = with_admin(revoke_memory_seconds=12.5)
    done = hub.receive(2, Revoke("x"), msg_id=40, trace_id=5)
    assert done.outputs == (StartTimer(1, 12.5),)
    assert hub.state.pending[1] == Pending(Purpose.REVOKE, Action.REVOKE, None, 2, 40, 5, device_id="x", node_id=ADMIN)
    done = hub.fires(1)
    assert done.outputs == () and not hub.state.pending
    assert "REV-18" in done.rules and "TIME-2" not in done.rules


def test_remembered_revokes_count_as_waiting() -> None:
    hub = with_admin(pending_limit=2)
    hub.receive(2, Revoke("x"))
    hub.receive(2, Revoke("y"))
    done = hub.receive(2, Revoke("d"))
    assert done.outputs == (reply(2, told(Reason.BUSY), hub),)
    assert "TIME-4" in done.rules
    assert hub.unchanged
    hub.fires(1)
    assert "TIME-4" not in hub.receive(2, Revoke("d")).rules


def test_the_provisioned_of_the_tests_are_what_they_claim() -> None:
    assert [binding.device_id for binding in PROVISIONED] == ["hub-a", "hub-b", "admin"]
