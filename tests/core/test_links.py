"""Links that come and go, this hub's own place at its parent, and timers."""

from typing import Any

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Ext,
    Frame,
    GetPerms,
    Major,
    Offline,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.outputs import CancelTimer, Close, Note, NoteKind, Send, StartTimer
from hubauth.core.policy import Dialect, Policy
from hubauth.core.recovery import after_restart, indexed
from hubauth.lab.hub import HUB_A, NODE, OWN_JOURNAL, Hub, dropped, key, mid, notes, reply, root, sent, with_hubs

OWN = Answer(Action.AUTHENTICATE, Reason.OK, "mid", 5, key("mid"))


def arriving(**changes: Any) -> Hub:
    """A mid hub whose parent link has just come up."""
    hub = mid(joined=False, **changes)
    hub.up(PARENT)
    return hub


# Links


def test_a_new_child_link_has_no_session() -> None:
    hub = root()
    done = hub.up(1)
    assert done.outputs == () and hub.is_free(1)
    assert done.rules == ("LINK-1",)


def test_a_link_that_is_up_already_does_not_come_up() -> None:
    hub = root()
    hub.registered(1, "d")
    assert dropped("FRAME-20", 1, hub.up(1))
    assert hub.unchanged and hub.session(1).device_id == "d"


def test_a_link_event_for_a_link_that_is_not_up_is_ignored_with_a_note() -> None:
    hub = root()
    assert dropped("FRAME-20", 1, hub.down(1))
    assert hub.unchanged


def test_what_a_lost_link_was_asked_is_answered_unreachable_to_whoever_waits() -> None:
    hub = with_hubs(mid())
    hub.up(3)
    hub.receive(3, Register("d"), msg_id=21, trace_id=4)
    hub.receive(1, AssistAuthenticate("e", key("e")), msg_id=22)
    hub.receive(2, GetPerms(40), msg_id=23)
    asked = sorted(hub.state.pending)
    done = hub.down(PARENT)
    unreachable = Reason.UNREACHABLE
    assert done.outputs == (
        CancelTimer(asked[0]),
        reply(3, Answer(Action.REGISTER, unreachable, "d"), hub, msg_id=21, trace_id=4),
        CancelTimer(asked[1]),
        reply(1, Answer(Action.ASSIST_AUTHENTICATE, unreachable, "e"), hub, msg_id=22, target=HUB_A),
        CancelTimer(asked[2]),
        reply(2, Answer(Action.GET_PERMS, unreachable, "", 40), hub, msg_id=23, target=11),
    )
    assert not hub.state.pending and not hub.state.parent_present
    assert "LINK-6" in done.rules


def test_what_was_asked_of_a_lost_child_hub_is_answered_too() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    hub.receive(PARENT, AssistAuthenticate("d", key("d")), source=1, msg_id=9)
    hub.receive(2, Authenticate("x", key("x")), msg_id=10)
    done = hub.down(1)
    behind, answer, itself = sent(done)
    refusal = Answer(Action.ASSIST_AUTHENTICATE, Reason.UNREACHABLE, "d")
    assert answer == reply(PARENT, refusal, hub, msg_id=9, target=1)
    assert (behind.frame.body, itself.frame.body) == (AssistOffline("d", 30), AssistOffline("hub-a", HUB_A))
    assert [pending.asker for pending in hub.state.pending.values()] == [2]


def test_what_a_lost_link_had_asked_itself_is_forgotten() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Register("d"))
    asked = hub.last_question(PARENT)
    done = hub.down(1)
    assert done.outputs == (CancelTimer(asked),)
    assert not hub.state.pending and 1 not in hub.state.links
    assert "LINK-7" in done.rules and "LINK-6" not in done.rules
    late = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"))
    assert dropped("FRAME-16", PARENT, hub.receive(PARENT, late, msg_id=asked, source=1))
    assert "d" not in hub.state.whitelist


def test_what_a_lost_link_of_a_flat_hub_had_asked_is_forgotten() -> None:
    hub = mid(dialect=Dialect.FLAT)
    hub.up(1)
    hub.receive(1, Register("d"))
    done = hub.down(1)
    assert sent(done) == [] and not hub.state.index.waiting and "LINK-7" in done.rules


def test_what_the_parent_had_asked_is_forgotten_when_it_goes() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    hub.receive(PARENT, AssistAuthenticate("d", key("d")), source=1)
    done = hub.down(PARENT)
    assert sent(done) == [] and not hub.state.pending
    assert "LINK-7" in done.rules


# Joining the parent


def test_a_hub_authenticates_to_its_parent_like_a_device() -> None:
    hub = mid(joined=False)
    done = hub.up(PARENT)
    body = Authenticate("mid", key("mid"), Ext(OWN_JOURNAL))
    assert done.outputs == (Send(PARENT, Frame(body, Major.CMD, 1, 0, 0)), StartTimer(1, 5.0))
    assert hub.state.pending[1] == Pending(Purpose.SELF_AUTHENTICATE, Action.AUTHENTICATE, PARENT, device_id="mid")
    assert not hub.state.parent_present
    assert {"LINK-2", "TIME-1"} <= set(done.rules) and "LINK-1" not in done.rules


def test_a_hub_without_a_node_or_without_a_credential_registers() -> None:
    for changes in ({"node_id": 0}, {"credential": ""}, {"node_id": 0, "dialect": Dialect.FLAT}):
        hub = mid(joined=False, **changes)
        done = hub.up(PARENT)
        ext = None if "dialect" in changes else Ext(OWN_JOURNAL)
        assert sent(done) == [Send(PARENT, Frame(Register("mid", ext), Major.CMD, 1, 0, 0))]
        assert hub.state.pending[1].purpose is Purpose.SELF_REGISTER


def test_without_credentials_a_node_is_enough_to_authenticate() -> None:
    hub = mid(joined=False, credential="", dialect=Dialect.FLAT)
    assert sent(hub.up(PARENT))[0].frame.body == Authenticate("mid", "")


def test_the_parent_is_present_once_it_answered_with_success() -> None:
    hub = arriving()
    done = hub.answered(PARENT, OWN, source=77)
    assert hub.state.parent_present and hub.state.parent_node == 77
    assert done.outputs == (CancelTimer(1),) and "LINK-3" in done.rules
    hub.up(1)
    assert sent(hub.receive(1, Register("d")))[0].frame.target == 77


def test_a_hub_keeps_the_node_and_credential_it_was_given() -> None:
    hub = arriving(node_id=0, credential="")
    hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 8, key("new")))
    assert (hub.state.node_id, hub.state.credential) == (8, key("new"))
    hub.down(PARENT)
    assert sent(hub.up(PARENT))[0].frame.body == Authenticate("mid", key("new"), Ext(OWN_JOURNAL))
    hub.answered(PARENT, Answer(Action.AUTHENTICATE, Reason.OK, "mid", 8, key("other")))
    assert hub.state.parent_present and hub.state.credential == key("new")


def test_a_hub_with_a_node_of_its_own_may_register_for_a_credential() -> None:
    hub = arriving(credential="")
    hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 5, key("new")))
    assert hub.state.parent_present and hub.state.credential == key("new")


def test_a_hub_that_its_parent_refuses_stays_away() -> None:
    refusals = (Reason.NOT_ADMITTED, Reason.PROTECTED, Reason.FORBIDDEN, Reason.INVALID_REQUEST)
    for reason in refusals:
        hub = arriving()
        done = hub.answered(PARENT, Answer(Action.AUTHENTICATE, reason))
        detail = f"the parent refuses this hub: {reason.value}"
        assert done.outputs == (CancelTimer(1), Note(NoteKind.REFUSED_BY_PARENT, "LINK-4", detail, PARENT))
        assert not hub.state.parent_present and PARENT in hub.state.links
        assert not hub.state.pending


def test_an_answer_with_another_node_or_none_counts_as_a_refusal() -> None:
    for node_id in (0, 6):
        hub = arriving()
        done = hub.answered(PARENT, Answer(Action.AUTHENTICATE, Reason.OK, "mid", node_id))
        assert [(note.rule, note.detail) for note in notes(done)] == [
            ("LINK-4", "the parent refuses this hub: answered another node id")
        ]
        assert not hub.state.parent_present and hub.state.node_id == 5
    hub = arriving(node_id=0)
    done = hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 0, key("x")))
    assert "LINK-4" in done.rules and hub.state.credential == key("mid")


def test_if_the_parent_cannot_say_the_link_is_closed_to_try_again() -> None:
    for reason in (Reason.UNREACHABLE, Reason.INTERNAL):
        hub = arriving()
        done = hub.answered(PARENT, Answer(Action.AUTHENTICATE, reason))
        assert done.outputs == (CancelTimer(1), Close(PARENT))
        assert PARENT not in hub.state.links and not hub.state.parent_present
        assert "LINK-5" in done.rules and "LINK-4" not in done.rules


def test_every_answer_of_code_4500_is_a_reason_to_try_again() -> None:
    for reason in (Reason.BUSY, Reason.EXHAUSTED):
        done = arriving().answered(PARENT, Answer(Action.AUTHENTICATE, reason))
        assert "LINK-5" in done.rules


def test_if_the_parents_answer_does_not_come_the_link_is_closed() -> None:
    for changes in ({}, {"node_id": 0}):
        hub = arriving(**changes)
        done = hub.fires(1)
        assert done.outputs == (Close(PARENT),)
        assert PARENT not in hub.state.links and not hub.state.pending
        assert "LINK-5" in done.rules


def test_trying_again_forgets_what_the_parent_had_asked_meanwhile() -> None:
    hub = with_hubs(arriving())
    hub.found_below("d", 30, 1)
    hub.receive(PARENT, AssistAuthenticate("d", key("d")), source=1)
    hub.fires(1)
    assert not hub.state.pending
    hub.up(PARENT)
    assert hub.answered(PARENT, OWN) and hub.state.parent_present


def test_joining_again_ends_with_the_newer_link() -> None:
    hub = arriving()
    hub.down(PARENT)
    assert not hub.state.pending
    hub.up(PARENT)
    assert dropped("FRAME-16", PARENT, hub.receive(PARENT, evolve(OWN, device_id="d"), msg_id=1, source=1))
    hub.answered(PARENT, OWN)
    assert hub.state.parent_present


# Timers and bounds


def test_a_request_to_another_hub_has_a_timer_that_its_answer_cancels() -> None:
    hub = mid(request_seconds=2.5)
    hub.admitted_from_above(1, "d", 30)
    asked = hub.next_id
    done = hub.receive(1, GetPerms(40))
    assert done.outputs[-1] == StartTimer(asked, 2.5) and "TIME-1" in done.rules
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 40, grant=NODE))
    assert done.outputs[0] == CancelTimer(asked)


def test_when_the_timer_fires_the_asker_is_answered_and_the_question_forgotten() -> None:
    cases = (
        (1, Register("d"), Answer(Action.REGISTER, Reason.UNREACHABLE, "d"), 0),
        (1, Authenticate("d", key("d")), Answer(Action.AUTHENTICATE, Reason.UNREACHABLE, "d"), 0),
        (2, AssistRegister("d"), Answer(Action.ASSIST_REGISTER, Reason.UNREACHABLE, "d"), HUB_A),
        (2, GetPerms(40), Answer(Action.GET_PERMS, Reason.UNREACHABLE, "", 40), HUB_A),
    )
    for link, message, answer, target in cases:
        hub = mid()
        hub.up(1)
        hub.provisioned(2, "hub-a")
        hub.receive(link, message, msg_id=9, trace_id=3)
        done = hub.fires(hub.last_question(PARENT))
        assert done.outputs == (reply(link, answer, hub, msg_id=9, target=target, trace_id=3),)
        assert not hub.state.pending and "TIME-2" in done.rules
        assert "d" not in hub.state.whitelist


def test_a_timer_that_nobody_started_does_nothing() -> None:
    hub = mid()
    done = hub.fires(12345)
    assert done.outputs == () and done.rules == () and hub.unchanged


def test_the_requests_of_one_link_are_bounded() -> None:
    hub = with_hubs(mid(pending_limit=2))
    hub.up(3)
    hub.up(4)
    hub.receive(3, Authenticate("a", key("a")))
    hub.receive(3, Authenticate("b", key("b")))
    for message, action in (
        (Authenticate("c", key("c")), Action.AUTHENTICATE),
        (Register("c"), Action.REGISTER),
    ):
        done = hub.receive(3, message)
        assert done.outputs == (reply(3, Answer(action, Reason.BUSY, "c"), hub),)
        assert "TIME-4" in done.rules and hub.unchanged
    assert "TIME-4" not in hub.receive(4, Authenticate("c", key("c"))).rules
    hub.answered(PARENT, Answer(None, Reason.NOT_ADMITTED), msg_id=min(hub.state.pending))
    assert "TIME-4" not in hub.receive(3, Authenticate("c", key("c"))).rules


def test_the_requests_of_a_hub_are_bounded_for_each_neighbour() -> None:
    hub = with_hubs(mid(hub_pending_limit=1, pending_limit=1))
    hub.receive(1, AssistRegister("a"))
    done = hub.receive(1, AssistRegister("b"))
    assert done.outputs == (reply(1, Answer(Action.ASSIST_REGISTER, Reason.BUSY, "b"), hub, target=HUB_A),)
    assert "TIME-5" in done.rules and hub.unchanged


def test_what_a_hub_asks_about_permissions_counts_too() -> None:
    hub = with_hubs(mid(hub_pending_limit=1))
    hub.receive(1, AssistRegister("a"))
    done = hub.receive(1, GetPerms(40))
    assert done.outputs == (reply(1, Answer(Action.GET_PERMS, Reason.BUSY, node_id=40), hub, target=HUB_A),)
    assert "TIME-5" in done.rules and hub.unchanged


def test_a_child_hub_that_hangs_takes_no_room_from_what_others_are_asked() -> None:
    hub = with_hubs(mid(hub_pending_limit=2))
    for name, node_id in (("x", 41), ("y", 42), ("z", 43)):
        hub.receive(2, AssistRegister(name))
        hub.answered(PARENT, Answer(None, Reason.OK, name, node_id, key(name)))
    assert sent(hub.receive(1, AssistAuthenticate("x", key("x"))), 2)
    assert sent(hub.receive(1, AssistAuthenticate("y", key("y"))), 2)
    done = hub.receive(1, AssistAuthenticate("z", key("z")))
    assert "TIME-5" in done.rules and hub.unchanged
    done = hub.receive(1, AssistAuthenticate("elsewhere", key("e")))
    assert sent(done, PARENT) and "TIME-5" not in done.rules
    # What the parent asks is counted like any hub's.
    hub.receive(PARENT, AssistAuthenticate("x", key("x")))
    hub.receive(PARENT, AssistAuthenticate("y", key("y")))
    assert "TIME-5" in hub.receive(PARENT, AssistAuthenticate("z", key("z"))).rules


def test_strangers_leave_everybody_one_question() -> None:
    hub = mid(pending_limit=3)
    for link in (3, 4, 5, 6):
        hub.up(link)
    hub.receive(3, Authenticate("a", key("a")))
    hub.receive(3, Authenticate("b", key("b")))
    hub.receive(4, Register("c"))
    for link, message, action in (
        (3, Authenticate("d", key("d")), Action.AUTHENTICATE),
        (4, Register("d"), Action.REGISTER),
    ):
        done = hub.receive(link, message)
        assert done.outputs == (reply(link, Answer(action, Reason.BUSY, "d"), hub),)
        assert "TIME-6" in done.rules and hub.unchanged
    for link in (5, 6):
        done = hub.receive(link, Authenticate("d", key("d")))
        assert "TIME-6" not in done.rules and sent(done, PARENT)
    hub.down(3)
    assert "TIME-6" in hub.receive(4, Authenticate("e", key("e"))).rules, "4, 5 and 6 wait"
    hub.down(5)
    assert "TIME-6" not in hub.receive(4, Authenticate("e", key("e"))).rules


def test_strangers_take_no_room_from_devices_with_a_session() -> None:
    hub = mid(pending_limit=2)
    hub.admitted_from_above(1, "d", 30)
    for link in (3, 4, 5):
        hub.up(link)
        hub.receive(link, Authenticate("a", key("a")))
    for node_id in (41, 42):
        done = hub.receive(1, GetPerms(node_id))
        assert sent(done, PARENT) and not {"TIME-4", "TIME-6"} & set(done.rules)
    assert "TIME-4" in hub.receive(1, GetPerms(43)).rules


def test_a_held_request_counts_and_names_its_subject_when_there_is_no_room() -> None:
    hub = mid(pending_limit=1)
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Revoke("x"))
    done = hub.receive(1, Revoke("y", 9))
    assert done.outputs == (reply(1, Answer(Action.REVOKE, Reason.BUSY, "y", 9), hub),)
    assert hub.unchanged


def test_a_restart_is_the_loss_of_every_link() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    hub.receive(3, GetPerms(40))
    left = after_restart(hub.policy, hub.state)
    for link in sorted(hub.state.links):
        hub.down(link)
    assert not left.links and not left.pending and not left.parent_present and not left.perms
    assert not any(route.online for route in left.directory.values())
    learnt: dict[str, Any] = {"next_msg_id": 1, "parent_node": 0, "perms": Map()}
    learnt |= {"perms_epoch": 0, "invalidations": 0}
    assert left == indexed(hub.policy, evolve(hub.state, **learnt)), "but for what it learnt from others"
    assert after_restart(hub.policy, left) == left


def test_an_offline_before_the_parent_is_present_is_not_lost_on_the_device() -> None:
    hub = Hub(Policy())
    hub.registered(1, "d")
    hub.receive(1, Offline("d"))
    assert hub.is_free(1)
