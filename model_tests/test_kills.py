"""What the mutation run found untested: each test kills a mutant that everything else let live."""

import pytest
from attrs import evolve
from immutables import Map

from hubauth.core import messages
from hubauth.core.canonical import Digest, advance, digest_of, digest_of_encoding, encode_state
from hubauth.core.indexes import initial_state, rosters
from hubauth.core.inputs import PARENT
from hubauth.core.keys import MAX_NAME, read_keys
from hubauth.core.messages import (
    CODES,
    Action,
    Answer,
    AssistOffline,
    AssistRegister,
    Authenticate,
    GetPerms,
    Grant,
    HubOnline,
    ListRoles,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Registration, Session, State, bound_node, online_group
from hubauth.core.policy import Policy, Provisioned, Trust
from hubauth.core.transition import Transition
from hubauth.lab.hub import NODE, PROVISIONED, dropped, key, mid, reply, root, sent, with_hubs


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
    assert 1 not in hub.state.links
    late = Answer(Action.ASSIST_REGISTER, Reason.OK, "lamp", 30, "k" * 43, NODE)
    assert not sent(hub.receive(PARENT, late, msg_id=asked, source=1))


def test_an_announcement_that_names_no_node_of_a_device_nobody_knows_is_dropped() -> None:
    hub = with_hubs(mid())
    assert dropped("BIND-10", 1, hub.receive(1, HubOnline("stranger", 0)))
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


def test_a_hub_taken_on_trust_leaves_after_a_device_has_taken_its_made_up_name() -> None:
    """The registration is the better word for that name, so the hub's route goes; its link may still end in peace."""
    hub = root(trust=Trust.OPEN, provisioned=())
    hub.up(1)
    hub.receive(1, AssistOffline("q"), source=50)
    assert hub.session(1) == Session("hub:50", 50, True)
    hub.up(2)
    hub.receive(2, Register("hub:50"))
    assert not sent(hub.down(1))
    assert 1 not in hub.state.links and 50 not in hub.state.index.link_of_node


def test_a_link_that_changes_its_node_is_found_under_the_new_one_only() -> None:
    t = Transition(Policy(), initial_state(Policy()))
    t.open_link(1)
    t.set_session(1, Session("d", 2, False))
    t.set_session(1, Session("e", 3, False))
    assert t.finish().state.index.link_of_node == Map({3: 1})


def test_a_device_is_bound_by_either_table_and_first_by_the_whitelist() -> None:
    registry, whitelist = Map({"d": Registration(2)}), Map({"d": Entry(3, "c")})
    assert bound_node(State(registry=registry), "d") == 2
    assert bound_node(State(whitelist=whitelist), "d") == 3
    assert bound_node(State(registry=registry, whitelist=whitelist), "d") == 3
    assert bound_node(State(), "d") == 0


def test_the_authority_lists_itself_also_where_the_configuration_gives_it_another_node() -> None:
    assert list(rosters(Policy(node_id=7), State(node_id=1)).roster) == [1, 7]
    assert list(rosters(Policy(node_id=7), State()).roster) == [7]


def test_every_code_has_a_reason() -> None:
    """Called again, because the table that it makes was there before any mutant."""
    assert set(messages._first_reason_by_code()) == set(CODES.values())


def test_names_are_as_long_as_they_may_be_and_text_up_to_the_edges() -> None:
    longest = "r" * MAX_NAME
    assert read_keys({"auth.default_role": longest}, Policy()).policy.default_role == longest
    for name, is_text in (("\ud7ff", True), ("\ud800", False), ("\udfff", False), ("\ue000", True)):
        assert (not read_keys({"auth.default_role": name}, Policy()).problems) == is_text


def test_the_digest_of_an_encoding_is_that_of_the_state() -> None:
    hub = with_hubs(root())
    hub.registered(3, "lamp")
    encoded = encode_state(hub.state)
    assert digest_of_encoding(encoded) == digest_of(hub.state)
    with pytest.raises(ValueError, match="no such table"):
        digest_of_encoding(encoded + b'\n["other",1,2]')


def test_a_digest_of_other_tables_is_not_advanced() -> None:
    hub = root()
    done = hub.up(1)
    with pytest.raises(ValueError, match="longer"):
        advance(Digest((*hub.digest.sums, 0)), done)


def test_the_digest_does_not_take_a_device_for_a_whole_table() -> None:
    hub = root()
    hub.registered(1, "lamp")
    hub.registered(2, "*")
    assert hub.digest == digest_of(hub.state)


def test_what_was_cached_and_forgotten_in_one_step_is_not_in_the_digest() -> None:
    policy = Policy(has_parent=True, node_id=5)
    state = initial_state(policy)
    t = Transition(policy, state)
    t.put_perms(30, Grant("node", ()))
    t.clear_perms()
    done = t.finish()
    assert advance(digest_of(state), done) == digest_of(done.state)


def test_what_a_hub_asked_is_refused_when_it_binds_again_as_a_device() -> None:
    hub = mid(provisioned=(Provisioned("k", 50, key("k")),))
    hub.up(1)
    hub.receive(1, Authenticate("k", key("k")))
    hub.told_nothing(50)
    for role in ("hub", "node"):
        hub.receive(PARENT, PermsInvalidate(()), source=1)
        hub.receive(1, GetPerms(50))
        grant = Grant(role, ("auth.assist",) if role == "hub" else ())
        hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 50, grant=grant))
        if role == "node":
            hub.receive(1, AssistRegister("lamp"))
        done = hub.receive(1, Authenticate("k", key("k")))
        assert hub.session(1).is_hub is (role == "hub")
    assert Answer(Action.ASSIST_REGISTER, Reason.FORBIDDEN, "lamp") in [send.frame.body for send in sent(done, 1)]


def test_nodes_here_are_announced_as_a_group_of_their_own() -> None:
    """No child hub is node 0, whereas one may well be node 1."""
    assert online_group(Policy(has_parent=True), 30, 30) == 0
    assert online_group(Policy(), 30, 30) is None
    assert online_group(Policy(), 2, 30) == 2
