"""Policies and the small values around them."""

from immutables import Map

from hubauth.core.credentials import is_well_formed, same_credential
from hubauth.core.indexes import initial_state
from hubauth.core.messages import CODES, Answer, Grant, Reason, Register, reason_of_code
from hubauth.core.model import Entry, State
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister, Trust
from hubauth.lab.hub import HUB, PROVISIONED, ROLES, key


def test_a_root_is_node_one_unless_it_says_otherwise() -> None:
    assert Policy().node_id == 1
    assert Policy(node_id=7).node_id == 7
    assert Policy(has_parent=True).node_id == 0
    assert Policy(has_parent=True, node_id=7).node_id == 7


def test_the_defaults_are_what_the_documents_say() -> None:
    policy = Policy()
    assert (policy.dialect, policy.assist, policy.reregister, policy.trust) == (
        Dialect.AUTH,
        Assist.AUTH,
        Reregister.OPEN,
        Trust.LINKS,
    )
    assert (policy.first_node_id, policy.default_role, policy.default_perms, policy.authority) == (2, "node", (), 0)
    assert policy.revoke_on_reregister and policy.close_superseded and policy.close_on_revoke
    assert policy.answer_offline and policy.answer_mismatch
    assert (policy.pending_limit, policy.hub_pending_limit, policy.announce_batch) == (256, 4096, 256)
    assert (policy.request_seconds, policy.revoke_memory_seconds) == (5.0, 30.0)


def test_what_each_dialect_has() -> None:
    has = {
        dialect: (policy.has_credentials, policy.has_presence, policy.has_perms)
        for dialect in Dialect
        for policy in (Policy(dialect=dialect),)
    }
    assert has == {
        Dialect.AUTH: (True, True, True),
        Dialect.LOGIN: (True, True, False),
        Dialect.FLAT: (False, False, False),
    }


def test_maps_may_be_given_as_dicts() -> None:
    assert Policy(node_roles={2: "x"}) == Policy(node_roles=Map({2: "x"}))
    given = Map({2: "x"})
    assert Policy(node_roles=given).node_roles is given


def test_named_nodes_are_all_that_configuration_names_and_never_zero() -> None:
    policy = Policy(node_id=3, authority=4, node_roles={5: "x"}, provisioned=(Provisioned("p", 6),))
    assert policy.named_nodes == {3, 4, 5, 6}
    assert Policy(has_parent=True).named_nodes == frozenset()


def test_a_provisioned_role_goes_before_node_roles_before_the_default() -> None:
    provisioned = (Provisioned("p", 6, role="a"), Provisioned("q", 7), Provisioned("r", 8))
    policy = Policy(node_roles={6: "b", 7: "b"}, provisioned=provisioned, default_role="c")
    assert [policy.role_of(node_id) for node_id in (6, 7, 8, 9)] == ["a", "b", "c", "c"]
    assert [policy.names_role(node_id) for node_id in (6, 7, 8, 9)] == [True, True, False, False]


def test_a_role_without_permissions_of_its_own_has_the_default_ones() -> None:
    policy = Policy(role_perms={"a": ("p",), "empty": ()}, default_perms=("q",), node_roles={2: "a"})
    assert policy.grant_of_role("a") == Grant("a", ("p",))
    assert policy.grant_of_role("empty") == Grant("empty", ())
    assert policy.grant_of_role("b") == Grant("b", ("q",))
    assert policy.resolve(2) == Grant("a", ("p",))


def test_bindings_are_found_by_device_and_by_node() -> None:
    policy = Policy(provisioned=PROVISIONED)
    assert policy.provisioned_by_device["hub-a"] is PROVISIONED[0]
    assert policy.provisioned_by_node[11] is PROVISIONED[1]


def test_a_hub_verifies_the_bindings_whose_credential_it_has() -> None:
    provisioned = (Provisioned("p", 6), Provisioned("q", 7, key("q")))
    assert Policy(provisioned=provisioned).verified_here == provisioned[1:]
    assert Policy(provisioned=provisioned, dialect=Dialect.FLAT).verified_here == provisioned


def test_a_first_state_knows_the_hub_and_what_is_provisioned() -> None:
    state = initial_state(Policy(node_id=4, credential="c", provisioned=PROVISIONED, role_perms=ROLES))
    assert (state.node_id, state.credential) == (4, "c")
    assert state.whitelist == Map(
        {
            "hub-a": Entry(10, key("hub-a"), True),
            "hub-b": Entry(11, key("hub-b"), True),
            "admin": Entry(20, key("admin"), False),
        }
    )
    assert list(state.index.roster) == [4, 10, 11, 20]
    assert (state.next_msg_id, state.parent_present, state.registry) == (1, False, Map())


def test_permissions_and_the_wildcard() -> None:
    assert Grant("a", ("p",)).allows("p") and not Grant("a", ("p",)).allows("q")
    assert Grant("a", ("*",)).allows("p") and Grant("a", ("*",)).allows("auth.revoke")
    assert not Grant("a", ("*",)).allows("auth.assist")
    assert HUB.allows("auth.assist") and Grant("a", ("*", "auth.assist")).allows("auth.assist")


def test_a_received_code_stands_for_the_first_reason_with_it() -> None:
    firsts = {1: Reason.OK, 4001: Reason.NOT_ADMITTED, 4500: Reason.INTERNAL, 4701: Reason.NOT_INDEXED}
    assert all(reason_of_code(code) is reason for code, reason in firsts.items())
    assert reason_of_code(12345) is Reason.INTERNAL
    assert {CODES[reason_of_code(code)] for code in CODES.values()} == set(CODES.values())
    assert set(CODES) == set(Reason)


def test_an_empty_credential_equals_nothing() -> None:
    assert same_credential("a", "a") and not same_credential("a", "b")
    assert not same_credential("", "") and not same_credential("", "a") and not same_credential("a", "")
    assert same_credential("é", "é")


def test_the_shape_of_a_credential() -> None:
    assert is_well_formed("-_AZaz09" + "x" * 35)
    for wrong in ("", "x" * 42, "x" * 44, "x" * 42 + "+", "x" * 42 + "/", "x" * 43 + "\n", "x" * 42 + "é"):
        assert not is_well_formed(wrong)


def test_values_cannot_be_changed() -> None:
    for value in (Register("d"), Answer(None, Reason.OK), State(), Grant("r", ())):
        try:
            value.anything = 1  # type: ignore[union-attr]
        except AttributeError:
            continue
        raise AssertionError(f"{value!r} can be changed")
