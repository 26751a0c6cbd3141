"""With reregister = after_revoke: a registration that no hub has confirmed may be made again."""

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import Action, Answer, AssistAuthenticate, AssistRegister, Reason, Register, Revoke
from hubauth.core.model import Pending, Purpose, Registration
from hubauth.core.policy import Dialect, Reregister
from hubauth.lab.hub import HUB_A, NODE, Hub, issued, mid, question, reply, root, sent, with_hubs

STRICT = Reregister.AFTER_REVOKE


def answered(reason: Reason, device_id: str = "d") -> Answer:
    return Answer(Action.ASSIST_AUTHENTICATE, reason, device_id)


def refusal(action: Action) -> Answer:
    return Answer(action, Reason.PROTECTED, "d")


def registering() -> Hub:
    """A strict root that has just registered d for the hub on link 1."""
    hub = with_hubs(root(reregister=STRICT))
    hub.receive(1, AssistRegister("d"), trace_id=5)
    return hub


def test_behind_its_answer_the_authority_asks_whether_the_credential_was_stored() -> None:
    hub = with_hubs(root(reregister=STRICT))
    asked = hub.next_id
    done = hub.receive(1, AssistRegister("d"), trace_id=5)
    credential = issued(hub.inputs)
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 2, credential, NODE)
    assert sent(done) == [
        reply(1, answer, hub, target=HUB_A, trace_id=5),
        question(1, AssistAuthenticate("d", credential), hub, asked, target=HUB_A, trace_id=5),
    ]
    assert hub.state.registry["d"] == Registration(2, confirmed=False)
    (pending,) = [one for one in hub.state.pending.values() if one.purpose is Purpose.CONFIRM]
    assert (pending.credential, pending.asker, pending.device_id) == ("", None, "d"), "no credential is kept"
    assert "REG-16" in done.rules


def test_a_confirmed_registration_is_made_again_only_after_a_revoke() -> None:
    hub = registering()
    done = hub.answered(1, answered(Reason.OK))
    assert hub.state.registry["d"] == Registration(2) and "REG-17" in done.rules
    done = hub.receive(2, AssistRegister("d"))
    assert [send.frame.body for send in sent(done)] == [refusal(Action.ASSIST_REGISTER)]
    assert "REG-11" in done.rules
    hub.happens(OperatorRevoke(Revoke("d")))
    done = hub.receive(2, AssistRegister("d"))
    assert hub.state.registry["d"] == Registration(2, confirmed=False) and "REG-9" in done.rules


def test_an_unconfirmed_registration_may_be_made_again_and_ends_what_was_stored() -> None:
    for end in ("refused", "timer", "lost", "nothing"):
        hub = registering()
        (msg_id,) = [key for key, one in hub.state.pending.items() if one.purpose is Purpose.CONFIRM]
        if end == "refused":
            hub.answered(1, answered(Reason.NOT_ADMITTED))
        elif end == "timer":
            hub.fires(msg_id)
        elif end == "lost":
            hub.down(1)
        done = hub.receive(2, AssistRegister("d"))
        assert {"REG-9", "REG-10", "REG-16"} <= set(done.rules) and "REG-11" not in done.rules
        success = [send for send in sent(done, 2) if isinstance(send.frame.body, Answer)]
        assert success[0].frame.body.credential == issued(hub.inputs)  # type: ignore[union-attr]


def test_a_confirmation_of_an_older_credential_confirms_nothing() -> None:
    hub = registering()
    older = hub.last_question(1)
    hub.receive(2, AssistRegister("d"))
    hub.answered(1, answered(Reason.OK), msg_id=older)
    assert not hub.state.registry["d"].confirmed
    hub.answered(2, answered(Reason.OK))
    assert hub.state.registry["d"].confirmed


def test_an_announcement_confirms_nothing() -> None:
    hub = registering()
    hub.found_below("d", 2, 1)
    assert not hub.state.registry["d"].confirmed


def test_a_confirmation_about_somebody_else_confirms_nothing() -> None:
    hub = registering()
    done = hub.answered(1, answered(Reason.OK, "e"))
    assert not hub.state.registry["d"].confirmed and "REG-17" not in done.rules


def test_at_the_authority_itself_nothing_is_left_to_confirm() -> None:
    hub = root(reregister=STRICT)
    hub.registered(1, "d")
    assert hub.state.registry["d"] == Registration(2) and not hub.state.pending
    hub.up(2)
    done = hub.receive(2, Register("d"))
    assert sent(done) == [reply(2, refusal(Action.REGISTER), hub)]


def test_who_may_register_at_any_time_needs_no_confirmation() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, AssistRegister("d"))
    assert hub.state.registry["d"].confirmed and not hub.state.pending
    assert "REG-16" not in done.rules


def test_without_credentials_there_is_nothing_to_confirm() -> None:
    hub = with_hubs(root(dialect=Dialect.FLAT, reregister=STRICT))
    done = hub.receive(1, AssistRegister("d"))
    assert hub.state.registry["d"].confirmed and len(sent(done)) == 1
    done = hub.receive(1, AssistRegister("d"))
    assert "REG-11" in done.rules
    done = hub.receive(1, AssistAuthenticate("d"))
    assert sent(done)[0].frame.body.reason is Reason.OK, "whoever knows the name gets in"  # type: ignore[union-attr]


def test_a_registration_for_the_parent_is_confirmed_through_the_parent() -> None:
    hub = mid(authority=5, reregister=STRICT)
    done = hub.receive(PARENT, AssistRegister("d"), source=1)
    assert [send.link for send in sent(done)] == [PARENT, PARENT]
    hub.answered(PARENT, answered(Reason.OK))
    assert hub.state.registry["d"].confirmed


def test_the_question_is_pending_like_any_other_and_asks_for_nobody() -> None:
    hub = registering()
    (msg_id,) = [key for key, one in hub.state.pending.items() if one.purpose is Purpose.CONFIRM]
    assert hub.state.pending[msg_id] == Pending(
        Purpose.CONFIRM, Action.ASSIST_AUTHENTICATE, 1, None, 7, 5, device_id="d", node_id=2
    )
    done = hub.fires(msg_id)
    assert sent(done) == [] and not hub.state.registry["d"].confirmed


def test_an_answer_that_is_lost_on_the_own_link_of_a_device_shuts_it_out_until_a_revoke() -> None:
    """The direct hub is the authority, and has the credential; the device has not, and no message says so."""
    hub = root(reregister=STRICT)
    hub.up(1)
    hub.receive(1, Register("d"))
    hub.down(1)
    hub.up(2)
    done = hub.receive(2, Register("d"))
    assert "REG-11" in done.rules and hub.unchanged
    hub.happens(OperatorRevoke(Revoke("d")))
    assert "REG-9" in hub.receive(2, Register("d")).rules
