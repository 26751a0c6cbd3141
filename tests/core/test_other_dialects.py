"""Rules that hold in every dialect, told in those that the other tests speak least."""

from typing import Any

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    Malformed,
    Reason,
    Register,
)
from hubauth.core.model import Purpose
from hubauth.core.outputs import Close, NoteKind
from hubauth.core.policy import Dialect, Policy, Reregister, Trust
from hubauth.lab.hub import (
    HUB_A,
    HUB_B,
    PROVISIONED,
    Hub,
    dropped,
    key,
    mid,
    notes,
    question,
    reply,
    root,
    sent,
    with_hubs,
    without_timers,
)

FLAT = Dialect.FLAT


def refused(action: Action, reason: Reason, device_id: str = "d") -> Answer:
    return Answer(action, reason, device_id)


def test_an_opaque_frame_needs_a_source_in_flat_too() -> None:
    hub = root(dialect=FLAT)
    hub.registered(1, "d")
    assert dropped("FRAME-1", 1, hub.receive(1, b"x", source=0, target=9))
    (note,) = notes(hub.receive(1, b"x", target=1))
    assert (note.kind, note.rule) == (NoteKind.DELIVERED, "FRAME-3")
    assert hub.unchanged


def test_what_flat_cannot_read_is_dropped() -> None:
    hub = root(dialect=FLAT)
    hub.up(1)
    assert dropped("FRAME-18", 1, hub.receive(1, Malformed(None, "?")))
    assert hub.unchanged


def test_open_trust_believes_an_assist_in_flat() -> None:
    hub = root(dialect=FLAT, trust=Trust.OPEN, provisioned=())
    hub.up(1)
    done = hub.receive(1, AssistRegister("d"), source=50)
    assert "TRUST-5" in done.rules
    assert hub.session(1).node_id == 50 and hub.session(1).is_hub
    hub.up(2)
    done = hub.receive(2, AssistRegister("e"), source=50)
    assert done.outputs == (reply(2, refused(Action.ASSIST_REGISTER, Reason.FORBIDDEN, "e"), hub),)


def test_a_hub_without_a_node_serves_nobody_in_any_dialect() -> None:
    for dialect in (Dialect.LOGIN, FLAT):
        hub = Hub(Policy(has_parent=True, dialect=dialect))
        hub.up(1)
        for body in (Register("d"), Authenticate("d", "c" if dialect is Dialect.LOGIN else "")):
            done = hub.receive(1, body)
            assert done.outputs == (reply(1, refused(body.action, Reason.UNREACHABLE), hub),)
            assert "TRUST-8" in done.rules and hub.unchanged


def test_without_revokes_a_known_device_stays_refused() -> None:
    hub = root(dialect=FLAT, reregister=Reregister.AFTER_REVOKE)
    hub.registered(1, "d")
    hub.up(2)
    done = hub.receive(2, Register("d"))
    assert done.outputs == (reply(2, refused(Action.REGISTER, Reason.PROTECTED), hub),)
    assert "REG-11" in done.rules and hub.unchanged


def test_a_login_is_searched_for_along_the_directory_and_admitted() -> None:
    hub = with_hubs(mid(dialect=FLAT))
    hub.receive(1, AssistRegister("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert hub.state.directory[30].via == HUB_A
    msg_id = hub.next_id
    done = hub.receive(2, AssistAuthenticate("d"))
    assert sent(done) == [question(1, AssistAuthenticate("d"), hub, msg_id, target=HUB_A)]
    assert "AUTH-20" in done.rules
    hub.answered(1, Answer(None, Reason.OK, "d", 30))
    assert hub.state.directory[30].via == HUB_B
    hub.up(3)
    hub.receive(3, Authenticate("e"))
    done = hub.answered(PARENT, Answer(None, Reason.OK, "e", 31))
    assert "AUTH-12" in done.rules
    assert hub.session(3).node_id == 31


def test_a_login_that_is_refused_further_up_is_answered_so() -> None:
    hub = mid(dialect=FLAT)
    for link, reason in ((1, Reason.NOT_ADMITTED), (2, Reason.UNREACHABLE), (3, Reason.FORBIDDEN)):
        hub.up(link)
        hub.receive(link, Authenticate("d"))
        done = hub.answered(PARENT, Answer(None, reason))
        told = Reason.UNREACHABLE if reason is Reason.FORBIDDEN else reason
        assert sent(done) == [reply(link, refused(Action.AUTHENTICATE, told), hub, source=1)]
        assert "AUTH-19" in done.rules and hub.is_free(link)


def test_a_hub_on_a_newer_link_is_the_loss_of_its_old_one_in_flat() -> None:
    hub = with_hubs(mid(dialect=FLAT))
    hub.receive(1, AssistRegister("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert hub.is_online(30)
    hub.up(3)
    done = hub.receive(3, Authenticate("hub-a"))
    assert {"BIND-3", "BIND-4"} <= set(done.rules)
    assert Close(1) in done.outputs and not hub.is_online(30)


def test_what_a_lost_parent_was_asked_is_answered_in_flat() -> None:
    hub = mid(dialect=FLAT)
    hub.up(1)
    hub.receive(1, Register("d"))
    done = hub.down(PARENT)
    assert reply(1, refused(Action.REGISTER, Reason.UNREACHABLE), hub) in done.outputs
    assert "LINK-6" in done.rules and not hub.state.pending


def test_waiting_requests_are_bounded_in_flat() -> None:
    hub = mid(dialect=FLAT, pending_limit=1)
    hub.up(1)
    hub.receive(1, Register("d"))
    done = hub.receive(1, Register("e"))
    assert done.outputs == (reply(1, refused(Action.REGISTER, Reason.BUSY, "e"), hub),)
    assert "TIME-4" in done.rules and hub.unchanged


def test_strangers_leave_everybody_one_question_in_flat() -> None:
    hub = mid(dialect=FLAT, pending_limit=2)
    for link in (1, 2, 3):
        hub.up(link)
    hub.receive(1, Register("d"))
    hub.receive(2, Authenticate("e"))
    done = hub.receive(2, Authenticate("f"))
    assert done.outputs == (reply(2, refused(Action.AUTHENTICATE, Reason.BUSY, "f"), hub),)
    assert "TIME-6" in done.rules and hub.unchanged
    assert sent(hub.receive(3, Register("f")), PARENT)


# What the flat document says of itself


def known_below(**changes: Any) -> Hub:
    """A flat hub below the root that has admitted d, which has left since."""
    hub = mid(dialect=FLAT, **changes)
    hub.up(1)
    hub.receive(1, Register("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    hub.down(1)
    hub.up(2)
    return hub


def test_a_direct_hub_answers_a_known_device_that_registers_again_and_lets_routes_follow() -> None:
    hub = known_below()
    asked = hub.next_id
    done = hub.receive(2, Register("d"))
    assert without_timers(done) == [
        reply(2, Answer(Action.REGISTER, Reason.OK, "d", 30), hub),
        question(PARENT, AssistAuthenticate("d"), hub, asked, target=1),
    ]
    assert {"REG-21", "AUTH-25"} <= set(done.rules) and "REG-5" not in done.rules
    assert hub.session(2).node_id == 30
    done = hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert not sent(done) and not notes(done) and not hub.state.pending


def test_a_login_from_the_own_binding_lets_routes_follow_too() -> None:
    for ending in ("refusal", "timer", "loss"):
        hub = known_below()
        asked = hub.next_id
        done = hub.receive(2, Authenticate("d"))
        assert without_timers(done) == [
            reply(2, Answer(Action.AUTHENTICATE, Reason.OK, "d", 30), hub),
            question(PARENT, AssistAuthenticate("d"), hub, asked, target=1),
        ]
        assert "AUTH-25" in done.rules
        if ending == "refusal":
            done = hub.answered(PARENT, Answer(None, Reason.NOT_ADMITTED))
        else:
            done = hub.fires(asked) if ending == "timer" else hub.down(PARENT)
        left = [pending.purpose for pending in hub.state.pending.values()]
        assert left == ([Purpose.UNHEARD] if ending == "timer" else [])
        assert not sent(done) and hub.session(2).node_id == 30


def test_routes_do_not_follow_while_very_much_waits_for_the_parent() -> None:
    hub = known_below(hub_pending_limit=2)
    hub.receive(2, Register("d"))
    hub.receive(2, Authenticate("d"))
    done = hub.receive(2, Authenticate("d"))
    assert sent(done) == [reply(2, Answer(Action.AUTHENTICATE, Reason.OK, "d", 30), hub)]
    assert "TIME-7" in done.rules and len(hub.state.pending) == 2
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert "TIME-7" not in hub.receive(2, Authenticate("d")).rules


def test_without_its_parent_a_flat_hub_still_knows_whom_it_knows() -> None:
    hub = known_below()
    hub.down(PARENT)
    done = hub.receive(2, Register("d"))
    assert done.outputs == (reply(2, Answer(Action.REGISTER, Reason.OK, "d", 30), hub),)
    assert "REG-21" in done.rules and "AUTH-25" not in done.rules


def test_what_may_not_be_registered_over_is_left_to_the_authority() -> None:
    for changes in (
        {"reregister": Reregister.AFTER_REVOKE},
        {"node_roles": {30: "admin"}},
        {"node_roles": {30: "hub"}},
    ):
        hub = known_below(**changes)
        done = hub.receive(2, Register("d"))
        assert [type(send.frame.body) for send in sent(done)] == [AssistRegister] and "REG-21" not in done.rules
    hub = with_hubs(mid(dialect=FLAT))
    done = hub.receive(1, Register("hub-a"))
    assert "REG-12" in done.rules and "REG-21" not in done.rules


def test_with_credentials_only_the_authority_can_register_again() -> None:
    hub = mid(dialect=Dialect.LOGIN)
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(1, Register("d"))
    assert [type(send.frame.body) for send in sent(done)] == [AssistRegister]


def test_an_answer_from_above_keeps_the_hub_that_handled_it() -> None:
    hub = with_hubs(mid(dialect=FLAT))
    hub.up(3)
    for reason in (Reason.NOT_ADMITTED, Reason.OK):
        for link, message in (
            (1, AssistRegister("d")),
            (3, Register("e")),
            (3, Authenticate("f")),
            (2, AssistAuthenticate("g")),
        ):
            hub.receive(link, message)
            node_id = ord(message.device_id) if reason is Reason.OK else 0
            done = hub.answered(PARENT, Answer(None, reason, message.device_id, node_id), source=77)
            (answer,) = [send.frame for send in sent(done) if isinstance(send.frame.body, Answer)]
            assert (answer.source, answer.target) == (77, {1: HUB_A, 2: HUB_B, 3: 0}[link])
            assert "FRAME-24" in done.rules


def test_an_answer_from_below_and_a_hubs_own_admission_name_the_hub_that_sends() -> None:
    hub = with_hubs(mid(dialect=FLAT, provisioned=PROVISIONED[:2], node_roles={50: "hub"}))
    hub.receive(1, AssistRegister("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    hub.receive(2, AssistAuthenticate("d"))
    done = hub.answered(1, Answer(None, Reason.OK, "d", 30))
    assert [send.frame.source for send in sent(done)] == [5]
    hub.up(3)
    hub.receive(3, Register("hub-c"))
    done = hub.answered(PARENT, Answer(None, Reason.OK, "hub-c", 50), source=77)
    assert hub.session(3).is_hub and [send.frame.source for send in sent(done, 3)] == [5]


def test_with_credentials_an_answer_names_the_hub_that_sends_it() -> None:
    hub = with_hubs(mid(dialect=Dialect.LOGIN))
    hub.receive(1, AssistRegister("d"))
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d")), source=77)
    assert [send.frame.source for send in sent(done)] == [5] and "FRAME-24" not in done.rules
