"""What the mutation run found untested: each test kills a mutant that everything else let live."""

from attrs import evolve

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Grant,
    ListRoles,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from tests.core.harness import NODE, PROVISIONED, dropped, mid, reply, root, sent, with_hubs


def test_a_request_times_out_while_announcements_are_under_way() -> None:
    hub = with_hubs(mid(joined=False, announce_batch=1))
    hub.joined()
    assert hub.state.announcing is not None
    hub.up(3)
    asked = hub.next_id
    hub.receive(3, Register("lamp"))
    done = hub.fires(asked)
    assert sent(done) == [reply(3, Answer(Action.REGISTER, Reason.UNREACHABLE, "lamp"), hub)]


def test_a_page_ends_exactly_where_the_next_row_would_not_fit() -> None:
    """Two rows of a role cost 2 * (64 + 2 * 1 + 3 + 2 * length + 3) bytes by the hub's own count."""
    for length, rows in ((14_964, 2), (14_965, 1)):
        hub = root(provisioned=(), node_roles={30: "r", 31: "r"}, role_perms={"r": ("p" * length,)})
        hub.registered(1, "lamp")
        answer = sent(hub.receive(1, ListRoles(role="r")))[0].frame.body
        assert isinstance(answer, Answer)
        assert (answer.total, len(answer.roles)) == (2, rows)


def test_what_a_link_asked_as_a_hub_is_forgotten_when_it_is_none_any_more() -> None:
    hub = with_hubs(mid())
    asked = hub.next_id
    hub.receive(1, AssistRegister("lamp"))
    hub.now_with(provisioned=(evolve(PROVISIONED[0], role="node"), *PROVISIONED[1:]))
    assert not hub.session(1).is_hub
    late = Answer(Action.ASSIST_REGISTER, Reason.OK, "lamp", 30, "k" * 43, NODE)
    assert not sent(hub.receive(PARENT, late, msg_id=asked, source=1))


def test_an_announcement_that_names_no_node_of_a_device_nobody_knows_is_dropped() -> None:
    hub = with_hubs(mid())
    assert dropped("BIND-10", 1, hub.receive(1, AssistAuthenticate("stranger")))
    assert hub.unchanged


def test_answers_to_two_revokes_carry_the_trace_of_the_newer() -> None:
    hub = with_hubs(mid())
    hub.provisioned(3, "admin")
    for msg_id, trace_id in ((50, 500), (51, 501)):
        hub.receive(3, Revoke("lamp"), msg_id=msg_id, trace_id=trace_id)
    answer = Answer(Action.REVOKE, Reason.OK, "lamp", 30)
    done = hub.receive(PARENT, answer, msg_id=9, source=1, target=20)
    assert sent(done) == [reply(3, answer, hub, msg_id=51, trace_id=501)]


def test_a_held_invalidation_that_is_refused_names_no_node() -> None:
    hub = mid()
    hub.admitted_from_above(3, "lamp", 30)
    hub.receive(3, PermsInvalidate((31,)))
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, node_id=30, grant=Grant("node", ())))
    assert sent(done) == [reply(3, Answer(Action.PERMS_INVALIDATE, Reason.FORBIDDEN), hub)]
    hub.receive(PARENT, PermsInvalidate(()), source=1)
    hub.receive(3, PermsInvalidate((31,)))
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.UNREACHABLE, node_id=30))
    assert sent(done) == [reply(3, Answer(Action.PERMS_INVALIDATE, Reason.FORBIDDEN), hub)]
