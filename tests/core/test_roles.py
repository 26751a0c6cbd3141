"""list_roles and perms_invalidate."""

from immutables import Map

from hubauth.core.inputs import PARENT, OperatorInvalidate
from hubauth.core.messages import (
    NO_GRANT,
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    GetPerms,
    Grant,
    ListRoles,
    PermsInvalidate,
    Reason,
    RoleOfNode,
)
from hubauth.core.model import Pending, Purpose, State
from hubauth.core.ordered import OrderedIds
from hubauth.core.outputs import StartTimer
from hubauth.core.perms import select_page
from hubauth.core.policy import Dialect, Policy, Trust
from hubauth.lab.hub import (
    ADMIN,
    HUB,
    HUB_A,
    HUB_B,
    NODE,
    ROLES,
    Hub,
    admission,
    key,
    mid,
    question,
    reply,
    root,
    sent,
    with_hubs,
)

BOSS = Grant("admin", ROLES["admin"])


def page(hub: Hub, message: ListRoles, link: int = 1) -> tuple[int, list[int]]:
    """What a list_roles answers: total and nodes."""
    body = sent(hub.receive(link, message))[0].frame.body
    assert isinstance(body, Answer) and body.action is Action.LIST_ROLES and body.reason is Reason.OK
    assert hub.unchanged
    return body.total, [row.node_id for row in body.roles]


def learn(hub: Hub, link: int, *nodes: int, grant: Grant = NODE) -> None:
    for node_id in nodes:
        hub.receive(link, GetPerms(node_id))
        hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", node_id, grant=grant))


# list_roles


def test_the_authority_lists_every_existing_node_in_order() -> None:
    hub = root(node_roles={15: "admin"})
    hub.registered(1, "d")
    done = hub.receive(1, ListRoles(), trace_id=3)
    rows = [(1, NODE), (2, NODE), (HUB_A, HUB), (HUB_B, HUB), (15, BOSS), (ADMIN, BOSS)]
    answer = Answer(Action.LIST_ROLES, Reason.OK, total=6, roles=tuple(RoleOfNode(*row) for row in rows))
    assert done.outputs == (reply(1, answer, hub, trace_id=3),)
    assert {"PERM-19", "PERM-9", "PERM-10"} <= set(done.rules) and "PERM-17" not in done.rules


def knowing() -> Hub:
    """A mid hub with a device on link 1, a hub on link 2 and a device behind it, having asked about two more nodes."""
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.provisioned(2, "hub-a")
    hub.found_below("e", 45, 2)
    learn(hub, 1, 60, 40)
    return hub


def test_every_hub_lists_whom_it_knows_by_directory_cache_or_configuration() -> None:
    hub = knowing()
    done = hub.receive(1, ListRoles())
    known = [
        (5, NO_GRANT),
        (HUB_A, HUB),
        (HUB_B, HUB),
        (ADMIN, BOSS),
        (30, NO_GRANT),
        (40, NODE),
        (45, NO_GRANT),
        (60, NODE),
    ]
    answer = Answer(Action.LIST_ROLES, Reason.OK, total=8, roles=tuple(RoleOfNode(*row) for row in known))
    assert done.outputs == (reply(1, answer, hub),) and "PERM-19" in done.rules
    hub.down(1)
    hub.down(2)
    hub.up(3)
    hub.receive(3, Authenticate("d", key("d")))
    hub.told_nothing(30)
    assert page(hub, ListRoles(), link=3) == (8, [5, HUB_A, HUB_B, ADMIN, 30, 40, 45, 60])


def test_an_unknown_role_is_empty_and_matches_no_filter() -> None:
    hub = knowing()
    assert page(hub, ListRoles(role="node")) == (2, [40, 60])
    learn(hub, 1, 30)
    assert page(hub, ListRoles(role="node")) == (3, [30, 40, 60])
    assert page(hub, ListRoles(role="hub")) == (2, [HUB_A, HUB_B])
    hub.receive(PARENT, PermsInvalidate(), source=1)
    assert page(hub, ListRoles(role="node")) == (0, [])
    answer = sent(hub.receive(1, ListRoles()))[0].frame.body
    rows = [(5, NO_GRANT), (HUB_A, HUB), (HUB_B, HUB), (ADMIN, BOSS), (30, NO_GRANT), (45, NO_GRANT)]
    assert isinstance(answer, Answer) and answer.roles == tuple(RoleOfNode(*row) for row in rows)


def test_pages_go_through_all_that_is_known_in_one_order() -> None:
    hub = knowing()
    everyone = page(hub, ListRoles())[1]
    for offset in range(10):
        assert page(hub, ListRoles(offset=offset, limit=3)) == (8, everyone[offset : offset + 3])
    assert page(hub, ListRoles(node_ids=(60, 5, 99, 30))) == (3, [5, 30, 60])


def test_whom_a_hub_met_and_asked_about_is_listed_once() -> None:
    hub = knowing()
    hub.found_below("f", 40, 2)
    assert page(hub, ListRoles(node_ids=(40,))) == (1, [40])
    hub.receive(PARENT, PermsInvalidate((40,)), source=1)
    assert page(hub, ListRoles(node_ids=(40,))) == (1, [40])
    hub.receive(PARENT, PermsInvalidate((60,)), source=1)
    assert page(hub, ListRoles(node_ids=(60,))) == (0, [])


def test_the_authority_forgets_routes_against_a_binding_and_lists_the_binding() -> None:
    hub = with_hubs(root(trust=Trust.OPEN))
    hub.up(3)
    hub.receive(3, AssistRegister("x"), source=30)
    assert hub.session(3).node_id == 30
    assert page(hub, ListRoles(node_ids=(30,))) == (1, [30])
    assert page(hub, ListRoles(role="node", node_ids=(30,))) == (0, [])


def test_other_hubs_list_what_they_have_cached() -> None:
    hub = mid(provisioned=())
    hub.admitted_from_above(1, "d", 30)
    assert page(hub, ListRoles()) == (2, [5, 30])
    learn(hub, 1, 60, 50, 40)
    assert page(hub, ListRoles()) == (5, [5, 30, 40, 50, 60])
    done = hub.receive(1, ListRoles(node_ids=(50,)))
    assert sent(done)[0].frame.body.roles == (RoleOfNode(50, NODE),)  # type: ignore[union-attr]


def test_both_filters_apply_and_total_counts_what_is_left_before_paging() -> None:
    hub = root()
    hub.registered(1, "d")
    assert page(hub, ListRoles(role="hub")) == (2, [HUB_A, HUB_B])
    assert page(hub, ListRoles(role="hub", limit=1)) == (2, [HUB_A])
    assert page(hub, ListRoles(role="hub", offset=1)) == (2, [HUB_B])
    assert page(hub, ListRoles(node_ids=(ADMIN, 2, 99, 2))) == (2, [2, ADMIN])
    assert page(hub, ListRoles(node_ids=(ADMIN, 2, 99), offset=1, limit=5)) == (2, [ADMIN])
    assert page(hub, ListRoles(role="admin", node_ids=(ADMIN, 2))) == (1, [ADMIN])
    assert page(hub, ListRoles(role="nothing")) == (0, [])
    assert page(hub, ListRoles(offset=99)) == (5, [])
    assert page(hub, ListRoles(limit=0)) == (5, [])


def test_the_cache_can_be_filtered_by_role_too() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    learn(hub, 1, 40, 41)
    learn(hub, 1, 42, grant=HUB)
    assert page(hub, ListRoles(role="node")) == (2, [40, 41])
    assert page(hub, ListRoles(role="hub")) == (3, [HUB_A, HUB_B, 42])
    hub.receive(PARENT, PermsInvalidate((40, 42)), source=1)
    assert page(hub, ListRoles(role="node")) == (1, [41])
    assert page(hub, ListRoles(role="hub")) == (2, [HUB_A, HUB_B])


def test_defaults_are_offset_zero_and_a_hundred_rows() -> None:
    hub = Hub(Policy(node_roles=Map(dict.fromkeys(range(1000, 1150), "r"))))
    hub.registered(1, "d")
    total, nodes = page(hub, ListRoles())
    assert (total, len(nodes), nodes[0]) == (152, 100, 1)


def test_a_limit_above_a_thousand_counts_as_a_thousand() -> None:
    listed = OrderedIds.of(range(1, 1501))
    for limit, size in ((999, 999), (1000, 1000), (1001, 1000), (5000, 1000)):
        total, nodes = select_page((listed,), (), 3, limit)
        assert total == 1500 and nodes == list(range(4, 4 + size))
        total, nodes = select_page((listed,), tuple(range(2000, 0, -1)), 3, limit)
        assert total == 1500 and nodes == list(range(4, 4 + size))


def test_a_page_ends_where_the_next_row_would_not_fit_one_frame() -> None:
    long_role = "r" * 128
    perms = tuple(f"{number:0128d}" for number in range(20))
    policy = Policy(node_roles=Map(dict.fromkeys(range(2, 30), long_role)), role_perms={long_role: perms})
    hub = Hub(policy)
    hub.registered(1, "d")
    total, nodes = page(hub, ListRoles(offset=1))
    assert total == 30 and 5 < len(nodes) < 20
    assert "PERM-17" in hub.receive(1, ListRoles(offset=1)).rules
    rest = page(hub, ListRoles(offset=1 + len(nodes)))[1]
    assert rest[0] == nodes[-1] + 1


def test_a_page_holds_at_least_one_row_however_long() -> None:
    perms = tuple(f"{number:0128d}" for number in range(400))
    hub = Hub(Policy(default_perms=perms))
    hub.registered(1, "d")
    assert page(hub, ListRoles()) == (2, [1])


# perms_invalidate


def cached() -> Hub:
    """A mid hub with hubs on links 1 and 2, the administrator on link 3, and three cached nodes."""
    hub = with_hubs(mid())
    hub.provisioned(3, "admin")
    learn(hub, 1, 40, 41, 42)
    return hub


def test_named_nodes_are_forgotten_and_no_others() -> None:
    hub = cached()
    epoch = hub.state.perms_epoch
    done = hub.receive(3, PermsInvalidate((42, 40, 99)))
    assert sorted(hub.state.perms) == [41] and hub.state.perms_epoch == epoch
    assert {"PERM-11", "PERM-12", "PERM-15"} <= set(done.rules)


def test_no_name_means_all() -> None:
    hub = cached()
    epoch = hub.state.perms_epoch
    hub.receive(3, PermsInvalidate())
    assert not hub.state.perms and hub.state.perms_epoch == epoch + 1
    assert page(hub, ListRoles(), link=3) == (4, [5, HUB_A, HUB_B, ADMIN])


def test_it_is_passed_on_to_child_hubs_and_never_up_or_to_devices_or_back() -> None:
    message = PermsInvalidate((40,), "why", refresh=False)
    hub = cached()
    asked = hub.next_id
    done = hub.receive(3, message, msg_id=9)
    assert done.outputs == (
        question(1, message, hub, asked, target=0),
        question(2, message, hub, asked + 1, target=0),
    )
    assert "PERM-18" in done.rules
    done = hub.receive(PARENT, message, source=1)
    assert [send.link for send in sent(done)] == [1, 2]
    hub.down(1)
    done = hub.happens(OperatorInvalidate(message))
    assert [send.link for send in sent(done)] == [2]
    assert "PERM-11" in done.rules


def test_without_the_permission_it_is_forbidden_and_nothing_is_forgotten() -> None:
    hub = cached()
    hub.admitted_from_above(4, "d", 40)
    for link, target in ((1, HUB_A), (4, 0)):
        done = hub.receive(link, PermsInvalidate())
        assert done.outputs == (reply(link, Answer(Action.PERMS_INVALIDATE, Reason.FORBIDDEN), hub, target=target),)
        assert "PERM-11" in done.rules and "PERM-12" not in done.rules
        assert hub.unchanged


def test_a_hub_with_the_permission_may_invalidate_and_is_not_told_its_own_words() -> None:
    hub = with_hubs(root(role_perms={"hub": ("auth.assist", "auth.perms_invalidate")}))
    done = hub.receive(1, PermsInvalidate())
    assert [send.link for send in sent(done)] == [2]


def test_refresh_asks_for_every_named_node_that_was_cached() -> None:
    hub = cached()
    asked = hub.next_id
    done = hub.receive(PARENT, PermsInvalidate((42, 99, 40), refresh=True), source=1)
    assert done.outputs[2:] == (
        question(PARENT, GetPerms(40), hub, asked + 2, target=1),
        StartTimer(asked + 2, 5.0),
        question(PARENT, GetPerms(42), hub, asked + 3, target=1),
        StartTimer(asked + 3, 5.0),
    )
    assert hub.state.pending[asked + 2] == Pending(
        Purpose.PERMS, Action.GET_PERMS, PARENT, node_id=40, epoch=hub.state.perms_epoch
    )
    assert "PERM-14" in done.rules
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 42, grant=HUB))
    assert sent(done) == [] and hub.state.perms[42] == HUB
    done = hub.fires(asked + 2)
    assert done.outputs == () and not hub.state.pending


def test_without_names_or_the_wish_or_a_way_nothing_is_refreshed() -> None:
    for message in (PermsInvalidate((), refresh=True), PermsInvalidate((40,)), PermsInvalidate((99,), refresh=True)):
        done = cached().happens(OperatorInvalidate(message))
        assert "PERM-14" not in done.rules and PARENT not in [send.link for send in sent(done)]
    hub = cached()
    hub.down(PARENT)
    done = hub.happens(OperatorInvalidate(PermsInvalidate((40,), refresh=True)))
    assert "PERM-14" not in done.rules and not hub.state.pending


def test_at_the_authority_an_invalidation_forgets_no_node() -> None:
    hub = with_hubs(root())
    hub.registered(3, "d")
    for message in (PermsInvalidate(), PermsInvalidate((2, 1), refresh=True)):
        done = hub.happens(OperatorInvalidate(message))
        assert [send.link for send in sent(done)] == [1, 2]
        assert page(hub, ListRoles(), link=3)[0] == 5
    assert hub.state.perms_epoch == 1


def test_where_roles_are_not_on_the_wire_an_operator_tells_nobody() -> None:
    hub = with_hubs(root(dialect=Dialect.LOGIN))
    assert sent(hub.happens(OperatorInvalidate(PermsInvalidate()))) == []


# A changed policy


def test_a_policy_change_at_the_authority_invalidates_the_nodes_that_changed() -> None:
    hub = with_hubs(root(node_roles={30: "admin", 31: "admin", 32: "node"}))
    asked = hub.next_id
    done = hub.now_with(node_roles={30: "admin", 31: "node", 33: "admin"})
    message = PermsInvalidate((31, 33), "policy changed")
    assert sent(done) == [
        question(1, message, hub, asked, target=0),
        question(2, message, hub, asked + 1, target=0),
    ]
    assert "PERM-16" in done.rules
    hub.registered(3, "d")
    assert page(hub, ListRoles(role="node"), link=3)[1] == [1, 2, 31]


def test_a_policy_change_that_changes_no_role_invalidates_nothing() -> None:
    hub = with_hubs(root())
    done = hub.now_with(pending_limit=3)
    assert sent(done) == [] and "PERM-16" not in done.rules


def test_a_changed_default_invalidates_everything() -> None:
    for change in ({"default_role": "other"}, {"role_perms": {**ROLES, "node": ("p.write",)}}):
        hub = with_hubs(root())
        done = hub.now_with(**change)
        assert {send.frame.body for send in sent(done)} == {PermsInvalidate((), "policy changed")}


def test_too_many_changed_nodes_for_one_frame_invalidate_everything() -> None:
    for count, named in ((4000, 4000), (4001, 0)):
        hub = with_hubs(root())
        done = hub.now_with(node_roles=dict.fromkeys(range(100, 100 + count), "admin"))
        body = sent(done)[0].frame.body
        assert isinstance(body, PermsInvalidate) and len(body.node_ids) == named


def test_only_the_authority_and_only_with_roles_on_the_wire() -> None:
    for hub in (with_hubs(mid()), with_hubs(root(dialect=Dialect.LOGIN))):
        done = hub.now_with(node_roles={77: "admin"})
        assert sent(done) == [] and "PERM-16" not in done.rules


def test_the_cache_is_emptied_when_the_parent_becomes_present() -> None:
    hub = cached()
    hub.receive(3, GetPerms(43))
    hub.down(PARENT)
    assert len(hub.state.perms) == 3
    epoch = hub.state.perms_epoch
    hub.up(PARENT)
    done = hub.answered(PARENT, admission())
    assert not hub.state.perms and hub.state.perms_epoch == epoch + 1
    assert "PERM-7" in done.rules


def test_an_authority_with_a_parent_keeps_its_list_when_that_returns() -> None:
    hub = mid(joined=False, authority=5)
    assert hub.joined().state.perms_epoch == 0
    assert list(hub.state.index.roster) == [5, HUB_A, HUB_B, ADMIN]
    assert "PERM-7" not in mid(dialect=Dialect.LOGIN).up(9).rules
    assert mid(dialect=Dialect.LOGIN).state.perms_epoch == 0


def test_a_recovered_state_lists_the_same() -> None:
    state = State(node_id=5, perms=Map({40: NODE, 41: HUB}))
    hub = Hub(Policy(node_id=5, has_parent=True), state)
    assert sorted(hub.state.index.others.of_role) == ["hub", "node"]
