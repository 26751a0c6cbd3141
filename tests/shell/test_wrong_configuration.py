"""What cannot work is refused at start, with the key and the reason, not found out later."""

from pathlib import Path
from typing import Any

import pytest

from hubauth.cli import main
from hubauth.core.policy import Policy
from hubauth.shell.addresses import parse_address
from hubauth.shell.configuration import ConfigurationError, configure
from hubauth.shell.policies import decode_policy, encode_policy
from tests.shell.certificates import Authority

NOWHERE = {"storage": {"durability": "none"}}
HUB = {"device_id": "hub-2", "node_id": 2, "credential": "c" * 43, "role": "hub"}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"limits": {"keepalive_seconds": 40000.0}}, "limits.keepalive_seconds: "),
        ({"limits": {"request_seconds": float("inf")}}, "limits.request_seconds: "),
        ({"limits": {"idle_seconds": float("nan")}}, "limits.idle_seconds: "),
        ({"listen": {"backlog": 2**40}}, "listen.backlog: "),
        ({"listen": {"address": "a..b:80"}}, "listen.address: not a host: 'a..b'"),
        ({"parent": {"address": "a..b:80"}}, "parent.address: not a host"),
        ({"metrics": {"address": "\udcff:80"}}, "metrics.address: not a host"),
        ({"hub": {"device_id": "é" * 128}}, "hub.device_id: longer than 128 bytes"),
        ({"storage": {"data_dir": "a\0b"}}, "storage.data_dir: "),
        ({"storage": {"durability": "strong"}}, "storage.durability: invalid enum value 'strong'"),
        ({"log": {"level": 5}}, "log.level: expected text, got int"),
        ({"auth": {"default_perms": ["a", "b"]}}, "auth.default_perms: must be a text"),
        ({"auth": {"node_roles": {"1": "admin"}}}, "auth.node_roles: must be a text"),
        ({"authority": {"node_id": 1.5}}, "authority.node_id: must be a text"),
        ({"authority": {"node_id": True}}, "authority.node_id: must be a text"),
        ({"tls": {"certificate": "x" * 300, "key": "y"}}, "tls.certificate: no such file"),
        ({"provisioned": [HUB]}, "provisioned[0].role: role 'hub' has no permissions in auth.role_perms"),
    ],
)
def test_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as problem:
        configure({**NOWHERE, **tables})
    assert str(problem.value).startswith(said)


def test_a_provisioned_binding_that_is_only_listed_needs_no_role_here() -> None:
    listed = {key: value for key, value in HUB.items() if key != "credential"}
    assert configure({**NOWHERE, "provisioned": [listed]}).policy.provisioned


def test_a_policy_that_was_accepted_survives_the_journal() -> None:
    policy = configure({**NOWHERE, "limits": {"request_seconds": 1e9, "revoke_memory_seconds": 0.5}}).policy
    assert decode_policy(encode_policy(policy)) == policy != Policy()


def test_ordinary_hosts() -> None:
    for text in ("localhost:1", "10.0.0.1:2", "[::1]:3", "hub-1.example.org:4", "bücher.example:5"):
        assert str(parse_address(text)) == text


def test_check_looks_into_certificates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, key = Authority(tmp_path).issue("hub")
    path = tmp_path / "hub.toml"
    path.write_text(f'[storage]\ndurability = "none"\n[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n')
    assert main(["hub", "--config", str(path), "--check"]) == 0
    Path(key).write_text("nonsense")
    assert main(["hub", "--config", str(path), "--check"]) == 2
    assert "tls.certificate: cannot be used" in capsys.readouterr().err
