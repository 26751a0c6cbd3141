"""Rules that hold in every dialect, told in those that the other tests speak least."""

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
from hubauth.core.outputs import Close, NoteKind
from hubauth.core.policy import Dialect, Policy, Reregister, Trust
from tests.core.harness import HUB_A, HUB_B, Hub, dropped, mid, notes, question, reply, root, sent, with_hubs

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
        assert sent(done) == [reply(link, refused(Action.AUTHENTICATE, told), hub)]
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
    assert "TIME-3" in done.rules and hub.unchanged
