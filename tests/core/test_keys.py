"""The documents' configuration keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from immutables import Map

from hubauth.core.keys import Parsed, Problem, read_keys
from hubauth.core.policy import Policy

BASE = Policy(node_id=1, default_role="guest")
KNOWN = ("auth.default_role", "auth.default_perms", "auth.node_roles", "auth.role_perms", "authority.node_id")


def test_the_documents_examples() -> None:
    parsed = read_keys(
        {
            "auth.default_role": "node",
            "auth.default_perms": "p3",
            "auth.node_roles": "1:admin;2:node",
            "auth.role_perms": "admin:p1,p2;node:p3",
            "authority.node_id": "1",
        },
        BASE,
    )
    assert parsed.problems == ()
    assert parsed.rules == ("CFG-1", "CFG-2", "CFG-3", "CFG-4")
    policy = parsed.policy
    assert (policy.default_role, policy.default_perms, policy.authority) == ("node", ("p3",), 1)
    assert policy.node_roles == Map({1: "admin", 2: "node"})
    assert policy.role_perms == Map({"admin": ("p1", "p2"), "node": ("p3",)})
    assert policy.node_id == BASE.node_id
    assert (Policy().default_role, Policy().default_perms) == ("node", ())


def test_blanks_and_a_last_semicolon_are_no_problem() -> None:
    parsed = read_keys(
        {
            "auth.default_role": " node ",
            "auth.default_perms": " p1 , p2 ",
            "auth.node_roles": " 1 : admin ;\n 2 : node ; ",
            "auth.role_perms": "admin : * , auth.assist ; node: ;",
            "authority.node_id": " 4294967295 ",
        },
        BASE,
    )
    assert parsed.problems == ()
    policy = parsed.policy
    assert (policy.default_role, policy.default_perms) == ("node", ("p1", "p2"))
    assert policy.node_roles == Map({1: "admin", 2: "node"})
    assert policy.role_perms == Map({"admin": ("*", "auth.assist"), "node": ()})
    assert policy.authority == 2**32 - 1


@pytest.mark.parametrize("key", ["auth.default_perms", "auth.node_roles", "auth.role_perms"])
@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_list_is_a_list(key: str, value: str) -> None:
    assert read_keys({key: value}, BASE).problems == ()


def test_a_permission_may_hold_a_colon() -> None:
    assert read_keys({"auth.role_perms": "admin:file:read"}, BASE).policy.role_perms == Map({"admin": ("file:read",)})


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("auth.default_role", " ", "empty role name"),
        ("auth.default_role", "a;b", "separator in role name 'a;b'"),
        ("auth.default_role", "x" * 129, "role name longer than 128 characters"),
        ("auth.default_role", "\udcff", "role name is not text"),
        ("auth.default_perms", "p1,,p2", "empty permission name"),
        ("auth.default_perms", "p1,p1", "permission named twice"),
        ("auth.default_perms", "p1;p2", "separator in permission name 'p1;p2'"),
        ("auth.node_roles", "0:admin", "node id out of range: 0"),
        ("auth.node_roles", "4294967296:admin", "node id out of range: 4294967296"),
        ("auth.node_roles", "one:admin", "not a node id: 'one'"),
        ("auth.node_roles", "-1:admin", "not a node id: '-1'"),
        ("auth.node_roles", "1_0:admin", "not a node id: '1_0'"),
        ("auth.node_roles", "٣:admin", "not a node id: '\\u0663'"),
        ("auth.node_roles", "9" * 5000 + ":admin", "not a node id: '99999999999999999999'"),
        ("auth.node_roles", "1:admin;01:node", "node 1 named twice"),
        ("auth.node_roles", "1:", "empty role name"),
        ("auth.node_roles", "1", "no ':' in '1'"),
        ("auth.node_roles", "1:admin;;2:node", "no ':' in ''"),
        ("auth.node_roles", "1:a:b", "separator in role name 'a:b'"),
        ("auth.role_perms", "admin:p1;admin:p2", "role 'admin' named twice"),
        ("auth.role_perms", ":p1", "empty role name"),
        ("auth.role_perms", "admin:p1,", "empty permission name"),
        ("authority.node_id", "", "not a node id: ''"),
        ("authority.node_id", "0", "node id out of range: 0"),
        ("auth.defaultrole", "node", "unknown key"),
        ("auth.default_role ", "node", "unknown key"),
        ("authority.id", "1", "unknown key"),
    ],
)
def test_problems(key: str, value: str, reason: str) -> None:
    parsed = read_keys({key: value}, BASE)
    assert parsed.problems == (Problem(key, reason),)
    assert parsed.policy is BASE
    assert "CFG-6" in parsed.rules


def test_one_problem_leaves_everything_as_it_was() -> None:
    parsed = read_keys({"auth.default_role": "node", "authority.node_id": "x", "auth.unknown": ""}, BASE)
    assert parsed.policy is BASE
    assert [problem.key for problem in parsed.problems] == ["auth.unknown", "authority.node_id"]
    assert parsed.rules == ("CFG-1", "CFG-4", "CFG-5", "CFG-6")


def test_other_families_are_not_looked_at() -> None:
    assert read_keys({"listen.port": "x"}, BASE) == Parsed(BASE, (), ())


@given(st.dictionaries(st.sampled_from(KNOWN), st.text(alphabet="019:;, ap*\ud800é", max_size=12) | st.text()))
def test_any_text_is_read_or_reported(keys: dict[str, str]) -> None:
    parsed = read_keys(keys, BASE)
    assert parsed == read_keys(dict(reversed(keys.items())), BASE)
    if parsed.problems:
        assert parsed.policy is BASE
    assert {problem.key for problem in parsed.problems} <= set(keys)
