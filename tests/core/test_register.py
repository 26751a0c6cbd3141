"""register and assist_register."""

from hubauth.core.inputs import PARENT, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Frame,
    GetPerms,
    Grant,
    Major,
    Reason,
    Register,
)
from hubauth.core.model import Entry, Pending, Purpose, Registration, Route, Session, State
from hubauth.core.outputs import Send, StartTimer
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.lab.hub import (
    ASK,
    HUB_A,
    NODE,
    PROVISIONED,
    ROLES,
    Hub,
    issued,
    key,
    mid,
    question,
    reply,
    root,
    sent,
    with_hubs,
)

LAST = 2**32 - 1


def registered_answer(device_id: str, node_id: int, credential: str, grant: Grant = NODE) -> Answer:
    return Answer(Action.REGISTER, Reason.OK, device_id, node_id, credential, grant)


def test_the_authority_binds_an_unknown_device_to_a_new_node() -> None:
    hub = root()
    hub.up(1)
    done = hub.receive(1, Register("d"), trace_id=99)
    assert done.outputs == (reply(1, registered_answer("d", 2, issued(1)), hub, trace_id=99),)
    assert hub.state.registry["d"] == Registration(2, revoked=False)
    assert hub.state.whitelist["d"] == Entry(2, issued(1), False)
    assert hub.state.links[1] == Session("d", 2, False)
    assert hub.state.directory[2] == Route("d", 2, True)
    assert hub.state.next_node_id == 3
    assert {"REG-1", "REG-2", "REG-4", "REG-13", "AUTHY-3", "BIND-1", "AUTH-26"} <= set(done.rules)


def test_the_registry_holds_no_credential() -> None:
    hub = root()
    hub.registered(1, "d")
    assert all(issued(1) not in repr(registration) for registration in hub.state.registry.values())


def test_node_ids_increase_and_skip_what_the_configuration_names_and_the_hubs_own() -> None:
    hub = root(node_id=4, first_node_id=3, provisioned=(Provisioned("p", 6, key("p")),), node_roles={5: "admin"})
    assert [hub.registered(link, f"d{link}") for link in (1, 2, 3)] == [3, 7, 8]


def test_the_authoritys_configured_id_is_skipped() -> None:
    hub = root(node_id=3, authority=3)
    assert [hub.registered(link, f"d{link}") for link in (1, 2)] == [2, 4]


def test_the_first_node_id_is_a_lower_bound_that_may_be_raised_later() -> None:
    hub = root()
    hub.registered(1, "a")
    hub.now_with(first_node_id=100)
    assert hub.registered(2, "b") == 100
    hub.now_with(first_node_id=2)
    assert hub.registered(3, "c") == 101


def test_an_id_is_not_used_again_when_the_configuration_no_longer_names_it() -> None:
    hub = root(node_roles={2: "admin"})
    assert hub.registered(1, "a") == 3
    hub.now_with(node_roles={})
    assert hub.registered(2, "b") == 4


def test_the_last_node_id_is_given_out_and_after_it_none() -> None:
    hub = root(first_node_id=LAST)
    assert hub.registered(1, "a") == LAST
    hub.up(2)
    done = hub.receive(2, Register("b"))
    assert done.outputs == (reply(2, Answer(Action.REGISTER, Reason.EXHAUSTED, "b"), hub),)
    assert hub.unchanged
    assert "REG-3" in done.rules and "REG-1" not in done.rules


def test_an_id_whose_configured_grant_is_the_default_one_is_given_out() -> None:
    roles = {1: "admin", 2: "node", 3: "lock", 4: "guest", 5: "node"}
    hub = root(node_roles=roles, role_perms={**ROLES, "lock": ("door",)})
    assert [hub.registered(number, f"d{number}") for number in (1, 2)] == [2, 5]
    assert "REG-20" in hub.steps[-1].rules
    assert hub.state.index.named_and_registered == {2, 5}
    done = hub.receive(1, GetPerms(2))
    assert done.outputs == (reply(1, Answer(Action.GET_PERMS, Reason.OK, "", 2, grant=NODE), hub),)
    hub.receive(1, Register("d1"))
    assert hub.session(1).node_id == 2


def test_what_was_given_out_and_is_named_later_is_not_given_out_again() -> None:
    hub = root()
    assert hub.registered(1, "d") == 2
    hub.now_with(node_roles={2: "node", 3: "node"}, first_node_id=2)
    assert hub.registered(2, "e") == 3
    assert hub.registered(3, "f") == 4


def test_named_ids_at_the_very_end_leave_nothing() -> None:
    hub = root(first_node_id=LAST, node_roles={LAST: "admin"})
    hub.up(1)
    done = hub.receive(1, Register("a"))
    assert sent(done)[0].frame.body == Answer(Action.REGISTER, Reason.EXHAUSTED, "a")
    assert hub.unchanged


def test_exhaustion_is_answered_to_another_hub_too() -> None:
    hub = with_hubs(root(first_node_id=LAST + 1))
    done = hub.receive(1, AssistRegister("a"))
    assert done.outputs == (reply(1, Answer(Action.ASSIST_REGISTER, Reason.EXHAUSTED, "a"), hub, target=HUB_A),)
    assert hub.unchanged


def test_without_a_well_formed_fresh_value_nothing_is_issued() -> None:
    for fresh in ("", "c" * 42, "c" * 44, "c" * 42 + "=", "c" * 42 + "\n", "c" * 42 + "é"):
        hub = root()
        hub.up(1)
        done = hub.receive(1, Register("d"), fresh=fresh)
        assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.INTERNAL, "d"), hub),)
        assert hub.unchanged
        assert "REG-4" in done.rules


def test_every_character_of_base64url_is_well_formed() -> None:
    hub = root()
    hub.up(1)
    hub.receive(1, Register("d"), fresh="-_AZaz09" + "x" * 35)
    assert hub.state.whitelist["d"].credential.startswith("-_AZaz09")


def test_without_credentials_no_fresh_value_is_needed_and_none_is_issued() -> None:
    hub = root(dialect=Dialect.FLAT)
    hub.up(1)
    done = hub.receive(1, Register("d"), fresh="")
    assert sent(done)[0].frame.body == registered_answer("d", 2, "")
    assert hub.state.whitelist["d"] == Entry(2, "", False)
    assert "REG-4" not in done.rules and "AUTH-26" not in done.rules
    hub.up(2)
    done = hub.receive(2, Register("e"), fresh=issued(5))
    assert sent(done)[0].frame.body == registered_answer("e", 3, "")


def test_a_hub_that_does_not_know_its_own_node_serves_nobody() -> None:
    hub = Hub(Policy(has_parent=True))
    hub.up(1)
    done = hub.receive(1, Register("d"))
    assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.UNREACHABLE, "d"), hub),)
    assert "TRUST-8" in done.rules
    assert hub.unchanged


def test_a_direct_hub_below_passes_a_registration_on_with_its_own_header() -> None:
    hub = mid()
    hub.up(1)
    asked = hub.next_id
    done = hub.receive(1, Register("d"), trace_id=42)
    assert done.outputs == (
        question(PARENT, AssistRegister("d"), hub, asked, target=1, trace_id=42),
        StartTimer(asked, 5.0),
    )
    assert hub.state.pending[asked] == Pending(
        Purpose.REGISTER, Action.REGISTER, asked=PARENT, asker=1, msg_id=ASK, trace_id=42, device_id="d", epoch=1
    )
    assert {"REG-5", "AUTHY-2", "FRAME-15", "TIME-1"} <= set(done.rules)
    assert hub.is_free(1) and "d" not in hub.state.whitelist


def test_on_success_the_direct_hub_stores_binds_and_answers() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Register("d"), msg_id=31, trace_id=42)
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))
    assert reply(1, registered_answer("d", 30, key("d")), hub, msg_id=31, trace_id=42) in done.outputs
    assert hub.state.whitelist["d"] == Entry(30, key("d"), False)
    assert hub.session(1) == Session("d", 30, False)
    assert "d" not in hub.state.registry
    assert not hub.state.pending
    assert "REG-6" in done.rules


def test_a_new_credential_replaces_the_older_entry() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Register("d"))
    hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("other"), NODE))
    assert hub.state.whitelist["d"] == Entry(30, key("other"), False)


def test_the_authority_answers_another_hub_and_keeps_no_credential() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, AssistRegister("d"), trace_id=8)
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 2, issued(3), NODE)
    assert done.outputs == (reply(1, answer, hub, target=HUB_A, trace_id=8),)
    assert hub.state.registry["d"] == Registration(2)
    assert "d" not in hub.state.whitelist
    assert 2 not in hub.state.directory
    assert {"REG-7", "AUTHY-4", "AUTHY-3"} <= set(done.rules)


def test_a_hub_in_between_relays_and_keeps_only_the_question() -> None:
    hub = with_hubs(mid())
    asked = hub.next_id
    done = hub.receive(1, AssistRegister("d"), msg_id=55, trace_id=3)
    assert done.outputs == (
        question(PARENT, AssistRegister("d"), hub, asked, target=1, trace_id=3),
        StartTimer(asked, 5.0),
    )
    assert hub.state.pending[asked] == Pending(
        Purpose.RELAY, Action.ASSIST_REGISTER, asked=PARENT, asker=1, msg_id=55, trace_id=3, device_id="d", epoch=1
    )
    assert {"REG-8", "AUTHY-4"} <= set(done.rules) and "REG-5" not in done.rules
    before = hub.state
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE)
    assert sent(done) == [reply(1, answer, hub, msg_id=55, target=HUB_A, trace_id=3)]
    assert "REG-8" in done.rules and "AUTH-11" not in done.rules
    assert (hub.state.whitelist, hub.state.directory) == (before.whitelist, before.directory)
    assert not hub.state.pending


def test_a_relayed_failure_goes_back_with_what_the_hub_asked_about() -> None:
    hub = with_hubs(mid())
    hub.receive(1, AssistRegister("d"), msg_id=55)
    done = hub.answered(PARENT, Answer(None, Reason.PROTECTED))
    assert sent(done) == [reply(1, Answer(Action.ASSIST_REGISTER, Reason.PROTECTED, "d"), hub, msg_id=55, target=HUB_A)]


def test_a_first_registration_is_not_held_back_by_default_permissions() -> None:
    hub = root(role_perms={"node": ("auth.assist",)}, provisioned=())
    assert hub.registered(1, "d") == 2
    assert hub.session(1).is_hub


def test_a_refusal_from_above_is_answered_with_its_code_and_changes_nothing() -> None:
    for reason in (Reason.PROTECTED, Reason.NOT_ADMITTED, Reason.UNREACHABLE, Reason.INTERNAL, Reason.FORBIDDEN):
        hub = mid()
        hub.up(1)
        before = hub.state
        hub.receive(1, Register("d"))
        done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, reason, "d"))
        assert sent(done) == [reply(1, Answer(Action.REGISTER, reason, "d"), hub)]
        assert "REG-14" in done.rules and "REG-6" not in done.rules
        assert (hub.state.whitelist, hub.state.links, hub.state.pending) == (
            before.whitelist,
            before.links,
            before.pending,
        )


def test_a_success_that_is_not_complete_counts_as_unreachable() -> None:
    for answer in (
        Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 0, key("d")),
        Answer(Action.ASSIST_REGISTER, Reason.OK, "e", 30, key("d")),
        Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, ""),
    ):
        hub = mid()
        hub.up(1)
        hub.receive(1, Register("d"))
        done = hub.answered(PARENT, answer)
        assert sent(done) == [reply(1, Answer(Action.REGISTER, Reason.UNREACHABLE, "d"), hub)]
        assert "REG-14" in done.rules
        assert hub.is_free(1)


def test_without_credentials_a_success_has_none() -> None:
    hub = mid(dialect=Dialect.FLAT)
    hub.up(1)
    hub.receive(1, Register("d"))
    done = hub.answered(PARENT, Answer(None, Reason.OK, "d", 30, ""))
    assert sent(done) == [reply(1, Answer(Action.REGISTER, Reason.OK, "d", 30), hub, source=1)]
    assert hub.session(1).node_id == 30


def test_what_a_step_refuses_is_told_to_the_link_that_asked() -> None:
    hub = root(provisioned=PROVISIONED)
    hub.up(1)
    hub.up(2)
    done = hub.receive(2, Register("hub-a"), msg_id=0)
    assert done.outputs == (
        Send(2, Frame(Answer(Action.REGISTER, Reason.PROTECTED, "hub-a"), Major.ERR_RESP, 0, 1, 0)),
    )


def test_a_fresh_credential_is_used_only_by_the_frame_it_came_with() -> None:
    hub = root()
    hub.up(1)
    hub.happens(Received(1, Frame(Register("d")), "A" * 43))
    hub.receive(1, Register("e"), fresh="B" * 43)
    assert (hub.state.whitelist["d"].credential, hub.state.whitelist["e"].credential) == ("A" * 43, "B" * 43)


def test_an_allocator_that_is_ahead_stays_ahead() -> None:
    hub = Hub(Policy(), State(node_id=1, next_node_id=50))
    assert hub.registered(1, "d") == 50
