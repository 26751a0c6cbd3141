"""The documents' configuration keys, read onto a policy.

``auth.default_role`` and ``auth.default_perms`` (``p1,p2``), ``auth.node_roles`` (``1:admin;2:node``),
``auth.role_perms`` (``admin:p1,p2;node:p3``), and ``authority.node_id``. Blanks around anything and one ``;`` at the
end of a list are allowed; everything else that is odd is a problem, because a typing error in a permission must not
pass for a decision.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from attrs import evolve, frozen
from immutables import Map

from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Policy

MAX_NAME = 128
"""Characters in the name of a role or permission; what is longer could not be said on the wire."""

_NUMBER = re.compile(r"[0-9]{1,10}")
_FAMILIES = ("auth.", "authority.")


class Problem(NamedTuple):
    """What is wrong with the value of a key, or with the key."""

    key: str
    reason: str


@frozen
class Parsed:
    """The policy with the keys applied, or, if there are problems, as it was."""

    policy: Policy
    problems: tuple[Problem, ...]
    rules: tuple[str, ...]


def read_keys(keys: Mapping[str, str], base: Policy) -> Parsed:
    """Apply the keys to ``base``, all or none. Keys of other families are somebody else's. Never raises."""
    changes: dict[str, Any] = {}
    problems: list[Problem] = []
    rules: set[str] = set()
    for key in sorted(keys):
        known = _KEYS.get(key)
        if known is not None:
            rules.add(known.rule)
            try:
                changes[known.field] = known.read(keys[key])
            except _Wrong as wrong:
                problems.append(Problem(key, str(wrong)))
        elif key.startswith(_FAMILIES):
            rules.add("CFG-5")
            problems.append(Problem(key, "unknown key"))
    if problems:
        rules.add("CFG-6")
    policy = base if problems or not changes else evolve(base, **changes)
    return Parsed(policy, tuple(problems), tuple(sorted(rules)))


class _Wrong(Exception):
    """Why a value cannot be read."""


def _node_id(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise _Wrong(f"not a node id: {text[:20]!a}")
    number = int(text)
    if not 1 <= number <= MAX_NODE_ID:
        raise _Wrong(f"node id out of range: {number}")
    return number


def _name(text: str, kind: str, separators: str) -> str:
    """A name that its own syntax can express and the wire can carry."""
    if not text:
        raise _Wrong(f"empty {kind} name")
    if len(text) > MAX_NAME:
        raise _Wrong(f"{kind} name longer than {MAX_NAME} characters")
    if any(separator in text for separator in separators):
        raise _Wrong(f"separator in {kind} name {text!a}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _Wrong(f"{kind} name is not text")
    return text


def _role(text: str) -> str:
    return _name(text.strip(), "role", ",:;")


def _perms(text: str) -> tuple[str, ...]:
    if not text.strip():
        return ()
    perms = tuple(_name(part.strip(), "permission", ";") for part in text.split(","))
    if len(set(perms)) < len(perms):
        raise _Wrong("permission named twice")
    return perms


def _pairs(text: str) -> list[tuple[str, str]]:
    """The ``left:right`` parts of a ``;`` list."""
    entries = text.strip().removesuffix(";")
    if not entries.strip():
        return []
    pairs = []
    for entry in entries.split(";"):
        left, colon, right = entry.partition(":")
        if not colon:
            raise _Wrong(f"no ':' in {entry.strip()[:40]!a}")
        pairs.append((left.strip(), right.strip()))
    return pairs


def _node_roles(text: str) -> Map[int, str]:
    roles: dict[int, str] = {}
    for left, right in _pairs(text):
        node_id = _node_id(left)
        if node_id in roles:
            raise _Wrong(f"node {node_id} named twice")
        roles[node_id] = _role(right)
    return Map(roles)


def _role_perms(text: str) -> Map[str, tuple[str, ...]]:
    perms: dict[str, tuple[str, ...]] = {}
    for left, right in _pairs(text):
        role = _role(left)
        if role in perms:
            raise _Wrong(f"role {role!a} named twice")
        perms[role] = _perms(right)
    return Map(perms)


class _Key(NamedTuple):
    field: str
    """Of the policy."""
    read: Callable[[str], Any]
    rule: str


_KEYS: Mapping[str, _Key] = {
    "auth.default_role": _Key("default_role", _role, "CFG-1"),
    "auth.default_perms": _Key("default_perms", _perms, "CFG-1"),
    "auth.node_roles": _Key("node_roles", _node_roles, "CFG-2"),
    "auth.role_perms": _Key("role_perms", _role_perms, "CFG-3"),
    "authority.node_id": _Key("authority", lambda text: _node_id(text.strip()), "CFG-4"),
}
