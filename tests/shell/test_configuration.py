"""A configuration is taken whole, or refused with the key and the reason."""

from pathlib import Path
from typing import Any

import pytest
from immutables import Map

from hubauth.cli.template import template
from hubauth.core.policy import Assist, Dialect, Provisioned
from hubauth.shell.addresses import Address, parse_address
from hubauth.shell.configuration import ConfigurationError, configure, load
from hubauth.shell.policies import decode_policy, encode_policy
from hubauth.wire.header import Version

NOWHERE: dict[str, Any] = {"storage": {"durability": "none"}}

FULL = """
[hub]
device_id = "hub-2"
node_id = 2
credential = "secret"
dialect = "login"
assist = "query"
[listen]
address = "[::1]:7000"
header = 2
[parent]
address = "example.org:7001"
[auth]
default_role = "guest"
default_perms = "p1,p2"
node_roles = "1:admin;2:hub"
role_perms = "admin:*;hub:auth.assist"
[authority]
node_id = 1
[storage]
data_dir = "somewhere"
durability = "os"
[[provisioned]]
device_id = "hub-3"
node_id = 3
credential = "other"
role = "hub"
"""


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "hub.toml"
    path.write_text(FULL)
    config = load(path, {"storage": {"durability": "fsync"}})
    policy = config.policy
    assert (config.listen, config.parent) == (Address("::1", 7000), Address("example.org", 7001))
    assert config.header is Version.V2 and config.storage.durability == "fsync"
    assert (policy.dialect, policy.assist, policy.has_parent, policy.authority) == (
        Dialect.LOGIN,
        Assist.QUERY,
        True,
        1,
    )
    assert policy.node_roles == Map({1: "admin", 2: "hub"})
    assert policy.role_perms == Map({"admin": ("*",), "hub": ("auth.assist",)})
    assert (policy.default_role, policy.default_perms) == ("guest", ("p1", "p2"))
    assert policy.provisioned == (Provisioned("hub-3", 3, "other", "hub"),)
    assert decode_policy(encode_policy(policy)) == policy


def test_the_documents_keys_may_be_dotted(tmp_path: Path) -> None:
    path = tmp_path / "hub.toml"
    path.write_text('auth.node_roles = "1:admin;2:node"\nauthority.node_id = "7"\nstorage.durability = "none"\n')
    policy = load(path).policy
    assert policy.node_roles == Map({1: "admin", 2: "node"}) and policy.authority == 7


WRONG = [
    ({}, "storage.data_dir", "is missing"),
    ({"listen": {"adress": "x"}}, "listen.adress", "unknown key"),
    ({"listen": {"address": "x"}}, "listen.address", "not host:port: 'x'"),
    ({"listen": {"address": "x:99999"}}, "listen.address", "not a port: '99999'"),
    ({"listen": {"address": "::1:80"}}, "listen.address", "an IPv6 address needs brackets: '::1:80'"),
    ({"listen": {"header": 3}}, "listen.header", "invalid enum value 3"),
    ({"nonsense": 1}, "nonsense", "unknown key"),
    ({"hub": 3}, "hub", "expected table, got int"),
    ({"hub": {"dialect": "foo"}}, "hub.dialect", "invalid enum value 'foo'"),
    ({"hub": {"node_id": -1}}, "hub.node_id", "expected int >= 0"),
    ({"hub": {"device_id": ""}}, "hub.device_id", "expected text of length >= 1"),
    ({"parent": {}}, "parent.address", "is missing"),
    ({"parent": {"address": "x:0"}}, "parent.address", "port 0 cannot be connected to"),
    ({"parent": {"address": "x:1", "ca": "y"}}, "parent.tls", "is not on, but its other keys are set"),
    ({"parent": {"address": "x:1"}, "hub": {"credential": "c"}}, "hub.node_id", "is missing, although"),
    ({"tls": {"certificate": "none.crt", "key": "none.key"}}, "tls.certificate", "no such file: none.crt"),
    ({"limits": {"payload": "x"}}, "limits.payload", "expected int, got text"),
    ({"limits": {"connections": 0}}, "limits.connections", "expected int >= 1"),
    ({"limits": {"opaque_bytes_per_second": -1}}, "limits.opaque_bytes_per_second", "expected int >= 0"),
    ({"per_address": {"exempt": "::1"}}, "per_address.exempt", "expected array, got text"),
    ({"per_address": {"exempt": ["::1", "10.0.0.300"]}}, "per_address.exempt[1]", "does not appear to be an IPv4 or"),
    ({"per_address": {"exempt": ["10.0.0.5/24"]}}, "per_address.exempt[0]", "has host bits set"),
    ({"auth": {"node_roles": "1-admin"}}, "auth.node_roles", "no ':' in '1-admin'"),
    ({"auth": {"colour": "red"}}, "auth.colour", "unknown key"),
    ({"authority": {"node_id": 0}}, "authority.node_id", "node id out of range: 0"),
    ({"provisioned": [{"device_id": "a"}]}, "provisioned[0].node_id", "is missing"),
    (
        {"provisioned": [{"device_id": "a", "node_id": 2}, {"device_id": "a", "node_id": 3}]},
        "provisioned[1].device_id",
        "'a' is provisioned twice",
    ),
    (
        {"provisioned": [{"device_id": "a", "node_id": 2}, {"device_id": "b", "node_id": 2}]},
        "provisioned[1].node_id",
        "node 2 is taken already",
    ),
    ({"provisioned": [{"device_id": "a", "node_id": 1}]}, "hub.node_id", "node 1 is provisioned for a device"),
    (
        {"provisioned": [{"device_id": "a", "node_id": 2, "role": "hubb"}], "auth": {"role_perms": "hub:auth.assist"}},
        "provisioned[0].role",
        "role 'hubb' has no permissions",
    ),
]


@pytest.mark.parametrize(("tables", "key", "reason"), WRONG, ids=[key for _, key, _ in WRONG])
def test_what_is_wrong_is_named(tables: dict[str, Any], key: str, reason: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configure(tables if key == "storage.data_dir" else {**NOWHERE, **tables})
    assert caught.value.key == key
    assert reason in caught.value.reason


def test_a_file_that_is_none(tmp_path: Path) -> None:
    for content in (b"\xff", b"[hub", b"hub = "):
        path = tmp_path / "hub.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError):
            load(path)
    with pytest.raises(ConfigurationError, match="cannot read"):
        load(tmp_path / "missing")


@pytest.mark.parametrize("parent", ["", "10.0.0.1:7080"])
def test_the_template_is_a_configuration(tmp_path: Path, parent: str) -> None:
    path = tmp_path / "hub.toml"
    path.write_text(template("hub", "auth", "127.0.0.1:7080", parent, "data"))
    assert load(path).policy.has_parent == bool(parent)


def test_addresses_are_shown_as_they_are_read() -> None:
    for text in ("127.0.0.1:80", "[::1]:0", "example.org:65535"):
        assert str(parse_address(text)) == text
