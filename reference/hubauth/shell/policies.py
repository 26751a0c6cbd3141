"""A policy as JSON: a journal must be replayed under the policy it was written under."""

from typing import Any

import msgspec
from attrs import fields

from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister, Trust

_ENUMS = {"dialect": Dialect, "assist": Assist, "reregister": Reregister, "trust": Trust}


def encode_policy(policy: Policy) -> bytes:
    """Every field of the policy."""
    plain: dict[str, Any] = {}
    for attribute in fields(Policy):
        value = getattr(policy, attribute.name)
        if attribute.name in _ENUMS:
            value = value.value
        elif attribute.name in ("node_roles", "role_perms"):
            value = sorted(value.items())
        elif attribute.name == "provisioned":
            value = [[binding.device_id, binding.node_id, binding.credential, binding.role] for binding in value]
        plain[attribute.name] = value
    return msgspec.json.encode(plain)


def decode_policy(encoded: bytes) -> Policy:
    """The policy of an encoding. Raises ValueError if it is not one, or one of another version of this program."""
    try:
        plain: dict[str, Any] = msgspec.json.decode(encoded)
        for name, kind in _ENUMS.items():
            plain[name] = kind(plain[name])
        for name in ("default_perms", "plain_hubs"):
            plain[name] = tuple(plain[name])
        plain["node_roles"] = dict(plain["node_roles"])
        plain["role_perms"] = {role: tuple(perms) for role, perms in plain["role_perms"]}
        plain["provisioned"] = tuple(Provisioned(*binding) for binding in plain["provisioned"])
        return Policy(**plain)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, ValueError) as problem:
        raise ValueError(f"not an encoded policy: {problem}") from problem
