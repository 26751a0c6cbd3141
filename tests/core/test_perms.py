"""Roles and permissions: who knows them, asking for them, and holding a request until they are known."""

from typing import Any

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    NO_GRANT,
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    GetPerms,
    Grant,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.outputs import CancelTimer, Close, StartTimer
from hubauth.core.policy import Dialect, Provisioned
from hubauth.lab.hub import ADMIN, HUB, HUB_A, NODE, Hub, key, mid, question, reply, root, sent, with_hubs

REVOKER = Grant("revoker", ("auth.revoke",))
INVALIDATOR = Grant("boss", ("auth.perms_invalidate",))


def perms(node_id: int, grant: Grant = NODE, reason: Reason = Reason.OK) -> Answer:
    return Answer(Action.GET_PERMS, reason, "", node_id, grant=grant)


def with_device(**changes: Any) -> Hub:
    """A mid hub with device d, node 30, on link 1, whose role it does not know."""
    hub = mid(**changes)
    hub.admitted_from_above(1, "d", 30)
    return hub


# Who knows


def test_the_authority_knows_every_node_that_exists() -> None:
    hub = root(node_roles={77: "admin"}, provisioned=(*root().policy.provisioned, Provisioned("p", 50)))
    hub.registered(1, "d")
    admin = Grant("admin", ("auth.revoke", "auth.perms_invalidate"))
    for node_id, grant in ((2, NODE), (1, NODE), (HUB_A, HUB), (77, admin), (50, NODE)):
        done = hub.receive(1, GetPerms(node_id), trace_id=3)
        assert done.outputs == (reply(1, perms(node_id, grant), hub, trace_id=3),)
        assert {"PERM-1", "PERM-6"} <= set(done.rules)
        assert hub.unchanged


def test_a_node_that_does_not_exist_is_unknown_to_the_authority() -> None:
    hub = root()
    hub.registered(1, "d")
    for node_id in (0, 3, 99):
        done = hub.receive(1, GetPerms(node_id))
        assert done.outputs == (reply(1, perms(node_id, NO_GRANT, Reason.UNKNOWN_NODE), hub),)
        assert "PERM-3" in done.rules and "PERM-1" not in done.rules
        assert hub.unchanged


def test_a_hub_whose_configuration_names_the_role_knows_it() -> None:
    hub = with_device(node_roles={66: "node"})
    for node_id, grant in ((HUB_A, HUB), (66, NODE)):
        done = hub.receive(1, GetPerms(node_id))
        assert done.outputs == (reply(1, perms(node_id, grant), hub),)
        assert "PERM-1" in done.rules


def test_the_role_is_the_configured_one_else_the_default() -> None:
    hub = root(default_role="guest", default_perms=("look",), node_roles={2: "node", 3: "mystery"}, first_node_id=4)
    hub.registered(1, "d")
    for node_id, grant in ((2, NODE), (3, Grant("mystery", ("look",))), (4, Grant("guest", ("look",)))):
        assert sent(hub.receive(1, GetPerms(node_id)))[0].frame.body == perms(node_id, grant)


def test_a_hub_that_does_not_know_asks_towards_the_authority() -> None:
    hub = with_device()
    asked = hub.next_id
    done = hub.receive(1, GetPerms(40), trace_id=3)
    assert done.outputs == (
        question(PARENT, GetPerms(40), hub, asked, target=1, trace_id=3),
        StartTimer(asked, 5.0),
    )
    assert hub.state.pending[asked] == Pending(
        Purpose.PERMS, Action.GET_PERMS, PARENT, 1, 7, 3, node_id=40, epoch=hub.state.perms_epoch
    )
    assert "PERM-2" in done.rules and "PERM-3" not in done.rules


def test_a_question_that_cannot_go_on_is_unreachable() -> None:
    hub = with_device()
    done = hub.receive(PARENT, GetPerms(40), source=1)
    unreachable = perms(40, NO_GRANT, Reason.UNREACHABLE)
    assert done.outputs == (reply(PARENT, unreachable, hub, target=1),)
    hub.down(PARENT)
    done = hub.receive(1, GetPerms(40))
    assert done.outputs == (reply(1, unreachable, hub),)
    assert "PERM-2" not in done.rules and "AUTHY-5" in done.rules


def test_an_answer_is_cached_and_relayed() -> None:
    hub = with_hubs(mid())
    hub.receive(1, GetPerms(40), msg_id=9, trace_id=3)
    asked = hub.last_question(PARENT)
    done = hub.answered(PARENT, perms(40))
    assert done.outputs == (
        CancelTimer(asked),
        reply(1, perms(40), hub, msg_id=9, target=HUB_A, trace_id=3),
    )
    assert hub.state.perms[40] == NODE and list(hub.state.index.others.cached) == [40]
    assert "PERM-4" in done.rules
    done = hub.receive(2, GetPerms(40))
    assert [send.link for send in sent(done)] == [2] and "PERM-1" in done.rules


def test_a_failure_is_relayed_without_a_grant_and_not_cached() -> None:
    for reason in (Reason.UNKNOWN_NODE, Reason.UNREACHABLE):
        hub = with_device()
        hub.receive(1, GetPerms(40))
        done = hub.answered(PARENT, perms(40, NODE, reason))
        assert sent(done) == [reply(1, perms(40, NO_GRANT, reason), hub)]
        assert 40 not in hub.state.perms and "PERM-4" not in done.rules


def test_a_newer_grant_replaces_the_cached_one() -> None:
    hub = with_device()
    hub.receive(1, GetPerms(40), msg_id=1)
    first = hub.last_question(PARENT)
    hub.receive(1, GetPerms(40), msg_id=2)
    hub.answered(PARENT, perms(40), msg_id=first)
    hub.answered(PARENT, perms(40, HUB))
    assert hub.state.perms[40] == HUB
    assert sorted(hub.state.index.others.of_role) == ["hub"]


def test_what_the_own_configuration_names_meanwhile_is_not_cached() -> None:
    hub = with_device()
    hub.receive(1, GetPerms(40))
    hub.now_with(node_roles={40: "node"})
    done = hub.answered(PARENT, perms(40))
    assert sent(done) == [reply(1, perms(40), hub)]
    assert 40 not in hub.state.perms


def test_an_answer_asked_for_before_an_invalidation_is_relayed_but_not_cached() -> None:
    for named, cached in (((40,), False), ((), False), ((41, 40), False), ((41,), True)):
        hub = with_device()
        hub.receive(1, GetPerms(40))
        hub.receive(PARENT, PermsInvalidate(named), source=1)
        done = hub.answered(PARENT, perms(40))
        assert sent(done) == [reply(1, perms(40), hub)]
        assert (40 in hub.state.perms) is cached
        assert ("PERM-5" in done.rules) is not cached
        assert ("PERM-4" in done.rules) is cached


def test_an_answer_asked_for_after_an_invalidation_is_cached() -> None:
    hub = with_device()
    for named in ((40,), ()):
        hub.receive(PARENT, PermsInvalidate(named), source=1)
        hub.receive(1, GetPerms(40))
        hub.answered(PARENT, perms(40))
        assert 40 in hub.state.perms


# Permission to do something


def test_a_request_is_held_until_its_originators_permissions_are_known() -> None:
    hub = with_device()
    before = hub.state
    asked = hub.next_id
    done = hub.receive(1, Revoke("x"), msg_id=9, trace_id=3)
    assert done.outputs == (
        question(PARENT, GetPerms(30), hub, asked, target=1, trace_id=3),
        StartTimer(asked, 5.0),
    )
    held = hub.state.pending[asked]
    assert (held.purpose, held.action, held.node_id, held.asker) == (Purpose.HELD, Action.REVOKE, 30, 1)
    assert held.held is not None and held.held.body == Revoke("x") and held.held.msg_id == 9
    assert {"TRUST-6", "TRUST-7"} <= set(done.rules) and "REV-1" not in done.rules
    assert hub.state.neighbours == before.neighbours
    done = hub.answered(PARENT, perms(30, REVOKER))
    assert (sent(done)[0].link, sent(done)[0].frame.body) == (PARENT, Revoke("x", seq=1))
    assert sent(done)[0].frame.trace_id == 3
    assert hub.state.perms[30] == REVOKER
    assert {"REV-1", "REV-2", "PERM-4"} <= set(done.rules)


def test_a_held_request_that_is_not_allowed_is_forbidden() -> None:
    for answer in (
        perms(30),
        perms(30, INVALIDATOR),
        perms(30, REVOKER, Reason.UNKNOWN_NODE),
        perms(30, REVOKER, Reason.UNREACHABLE),
    ):
        hub = with_device()
        hub.receive(1, Revoke("x", 8), msg_id=9)
        done = hub.answered(PARENT, answer)
        assert sent(done) == [reply(1, Answer(Action.REVOKE, Reason.FORBIDDEN, "x", 8), hub, msg_id=9)]
        assert not hub.state.pending


def test_a_stale_answer_decides_no_permission() -> None:
    for named in ((30,), ()):
        hub = with_device()
        hub.receive(1, Revoke("x"))
        hub.receive(PARENT, PermsInvalidate(named), source=1)
        done = hub.answered(PARENT, perms(30, REVOKER))
        assert sent(done) == [reply(1, Answer(Action.REVOKE, Reason.FORBIDDEN, "x"), hub)]
        assert {"PERM-5", "TRUST-7"} <= set(done.rules)
        assert 30 not in hub.state.perms


def test_a_held_request_of_a_device_that_left_its_link_is_not_carried_out() -> None:
    hub = with_device()
    hub.receive(1, Revoke("x"))
    asked = hub.last_question(PARENT)
    hub.admitted_from_above(1, "e", 31)
    done = hub.answered(PARENT, perms(30, REVOKER), msg_id=asked)
    assert sent(done) == [] and "LINK-7" not in done.rules
    assert hub.state.neighbours[0].sent == 0


def test_who_asks_and_leaves_before_the_answer_is_refused() -> None:
    hub = with_device()
    hub.receive(1, GetPerms(44), msg_id=2)
    asked = hub.last_question(PARENT)
    done = hub.receive(1, Offline("d", 30), msg_id=3)
    refusal = reply(1, Answer(Action.GET_PERMS, Reason.FORBIDDEN, "", 44), hub, msg_id=2)
    assert refusal in sent(done, 1) and CancelTimer(asked) in done.outputs
    assert {"LINK-10", "OFF-1"} <= set(done.rules) and not hub.state.pending
    assert sent(hub.answered(PARENT, perms(44), msg_id=asked)) == []


def test_a_held_request_is_refused_when_its_session_ends() -> None:
    hub = with_device()
    hub.receive(1, Revoke("x"), msg_id=2)
    done = hub.receive(1, Offline("d", 30), msg_id=3)
    assert reply(1, Answer(Action.REVOKE, Reason.FORBIDDEN, "x"), hub, msg_id=2) in sent(done, 1)
    assert "LINK-10" in done.rules and hub.state.neighbours[0].sent == 0


def test_a_revoke_that_has_gone_on_is_not_refused_when_its_session_ends() -> None:
    hub = with_device()
    hub.receive(1, Revoke("x"), msg_id=2)
    hub.answered(PARENT, perms(30, REVOKER))
    assert hub.state.neighbours[0].sent == 1
    done = hub.receive(1, Offline("d", 30), msg_id=3)
    assert [send.msg_id for send in (one.frame for one in sent(done, 1))] == [3]
    assert "LINK-10" in done.rules


def test_what_a_hub_had_asked_is_refused_when_it_is_a_hub_no_longer() -> None:
    hub = with_hubs(mid())
    hub.receive(1, AssistRegister("far"), source=HUB_A, msg_id=8)
    done = hub.receive(1, Register("d"), msg_id=9)
    assert "LINK-10" not in done.rules
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))
    refusal = Answer(Action.ASSIST_REGISTER, Reason.FORBIDDEN, "far")
    assert [send.frame.body for send in sent(done, 1)][:1] == [refusal]
    assert {"LINK-10", "BIND-2"} <= set(done.rules)


def test_what_a_flat_hub_had_asked_is_refused_when_it_is_a_hub_no_longer() -> None:
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    hub.receive(1, AssistRegister("far"), source=HUB_A, msg_id=8)
    hub.receive(1, Register("d"), msg_id=9)
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30))
    assert [send.frame.body for send in sent(done, 1)][:1] == [Answer(Action.ASSIST_REGISTER, Reason.FORBIDDEN, "far")]
    assert {"LINK-10", "BIND-2"} <= set(done.rules)


def test_what_is_asked_on_a_link_that_closes_is_forgotten() -> None:
    hub = with_device(close_superseded=True)
    hub.receive(1, GetPerms(44), msg_id=2)
    hub.up(2)
    hub.receive(2, Authenticate("d", key("d")))
    done = hub.told_nothing(30)
    assert sent(done, 1) == [] and Close(1) in done.outputs
    assert "LINK-7" in done.rules and "LINK-10" not in done.rules


def test_a_held_request_whose_time_is_up_or_whose_way_is_lost_is_forbidden() -> None:
    refusal = Answer(Action.REVOKE, Reason.FORBIDDEN, "x")
    hub = with_device()
    hub.receive(1, Revoke("x"))
    done = hub.fires(hub.last_question(PARENT))
    assert done.outputs == (reply(1, refusal, hub),)
    assert {"TIME-2", "TRUST-7"} <= set(done.rules)
    hub.receive(1, Revoke("x"))
    done = hub.down(PARENT)
    assert sent(done) == [reply(1, refusal, hub)]
    assert {"LINK-6", "TRUST-7"} <= set(done.rules)


def test_without_a_way_to_ask_a_permission_is_not_given() -> None:
    hub = with_device()
    hub.down(PARENT)
    done = hub.receive(1, Revoke("x"))
    assert sent(done) == [reply(1, Answer(Action.REVOKE, Reason.FORBIDDEN, "x"), hub)]
    assert hub.unchanged


def test_a_held_invalidation_is_carried_out_when_it_is_allowed() -> None:
    hub = with_device()
    hub.provisioned(2, "hub-a")
    hub.receive(1, PermsInvalidate((44,)), msg_id=9)
    asked = hub.next_id
    done = hub.answered(PARENT, perms(30, INVALIDATOR))
    assert sent(done) == [question(2, PermsInvalidate((44,)), hub, asked, target=0)]
    assert {"PERM-11", "PERM-15"} <= set(done.rules)
    hub = with_device()
    hub.receive(1, PermsInvalidate((44,)), msg_id=9)
    done = hub.answered(PARENT, perms(30, REVOKER))
    assert sent(done) == [reply(1, Answer(Action.PERMS_INVALIDATE, Reason.FORBIDDEN), hub, msg_id=9)]
    assert "PERM-11" in done.rules


def test_a_known_permission_is_used_at_once() -> None:
    hub = with_device()
    hub.receive(1, GetPerms(30))
    hub.answered(PARENT, perms(30, REVOKER))
    done = hub.receive(1, Revoke("x"))
    assert "TRUST-7" not in done.rules and sent(done)[0].frame.body == Revoke("x", seq=1)


def test_where_roles_are_not_on_the_wire_nobody_is_asked() -> None:
    hub = with_device(dialect=Dialect.LOGIN)
    done = hub.receive(1, Revoke("x"))
    assert sent(done) == [reply(1, Answer(Action.REVOKE, Reason.FORBIDDEN, "x"), hub)]
    assert hub.unchanged


# Who counts as a hub


def test_a_hub_is_who_holds_the_literal_permission() -> None:
    for granted, is_hub in ((("auth.assist",), True), (("*",), False), (("auth.assistant",), False), ((), False)):
        hub = root(role_perms={"special": granted}, provisioned=(Provisioned("k", 50, key("k"), "special"),))
        assert hub.state.whitelist["k"].is_hub is is_hub
        hub.up(1)
        done = hub.receive(1, Authenticate("k", key("k")))
        assert hub.session(1).is_hub is is_hub and hub.state.whitelist["k"].is_hub is is_hub
        assert "TRUST-1" in done.rules and "TRUST-2" not in done.rules


def test_being_a_hub_is_decided_at_binding_and_kept_when_the_cache_is_emptied() -> None:
    hub = mid()
    hub.admitted_from_above(1, "k", 50, HUB)
    assert hub.session(1).is_hub
    hub.receive(PARENT, PermsInvalidate(), source=1)
    assert hub.session(1).is_hub
    hub.down(1)
    hub.up(2)
    hub.receive(2, Authenticate("k", key("k")))
    done = hub.told_nothing(50)
    assert hub.session(2).is_hub and hub.state.whitelist["k"].is_hub
    assert "TRUST-2" in done.rules and "TRUST-1" not in done.rules


def test_a_binding_with_known_permissions_decides_anew() -> None:
    hub = mid()
    hub.admitted_from_above(1, "k", 50, HUB)
    hub.receive(PARENT, PermsInvalidate((50,), refresh=True), source=1)
    hub.answered(PARENT, perms(50, NODE))
    assert hub.session(1).is_hub
    hub.down(1)
    hub.provisioned(2, "k")
    assert not hub.session(2).is_hub and not hub.state.whitelist["k"].is_hub


def test_a_hub_that_binds_again_as_a_device_loses_what_is_behind_it() -> None:
    hub = mid()
    hub.admitted_from_above(1, "k", 50, HUB)
    hub.found_below("leaf", 60, 1)
    hub.receive(PARENT, PermsInvalidate((50,), refresh=True), source=1)
    hub.answered(PARENT, perms(50, NODE))
    hub.admitted_from_above(1, "k", 50)
    assert not hub.session(1).is_hub and not hub.is_online(60)


def test_the_permissions_of_the_administrator_are_those_of_its_role() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    body = sent(hub.receive(1, GetPerms(ADMIN)))[0].frame.body
    assert body == perms(ADMIN, Grant("admin", ("auth.revoke", "auth.perms_invalidate")))
