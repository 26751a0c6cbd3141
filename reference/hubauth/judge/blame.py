"""Which rule a difference is about: of those that led to an output, the last one of the message's own family.

A step cites rules in the order in which it decides: first what holds for every such request, last what decided this
one. So no list says which rule belongs to which message: the families of rules do, and the order.
"""

from collections.abc import Iterable

from hubauth.core.messages import Action, Answer, Body, PermsInvalidate, Revoke

_ANYWHERE = frozenset({"FRAME-10", "FRAME-12", "FRAME-13", "FRAME-14", "FRAME-15", "FRAME-16", "TIME-1", "TRUST-6"})
"""Cited by most steps: how frames look, whatever was decided."""
_ASIDE = _ANYWHERE | {
    *("AUTHY-1", "AUTHY-2", "AUTHY-3", "AUTH-26", "AUTH-33", "REG-15", "PERM-18", "PERM-20", "PERM-21"),
    *("REV-19", "REV-21", "EXT-10", "EXT-12", "FRAME-8"),
}
"""What is told, remembered or counted beside a decision."""

_FAMILIES: dict[Action | None, tuple[str, ...]] = {
    Action.REGISTER: ("AUTHY", "REG"),
    Action.ASSIST_REGISTER: ("AUTHY", "REG"),
    Action.AUTHENTICATE: ("AUTH", "REV"),
    Action.ASSIST_AUTHENTICATE: ("AUTH", "REG", "EXT"),
    Action.ASSIST_QUERY_CREDENTIAL: ("AUTH",),
    Action.REVOKE: ("REV", "REG"),
    Action.OFFLINE: ("OFF", "BIND"),
    Action.ASSIST_OFFLINE: ("OFF", "BIND", "REV"),
    Action.HUB_ONLINE: ("EXT", "BIND"),
    Action.HUB_DISMISS: ("EXT", "BIND"),
    Action.HUB_FENCE: ("EXT",),
    Action.GET_PERMS: ("PERM", "TRUST", "AUTH"),
    Action.LIST_ROLES: ("PERM",),
    Action.PERMS_INVALIDATE: ("PERM",),
}
"""The families of rules that decide about a message."""
_OPAQUE = ("FRAME",)
_CLOSING = ("EXT", "LINK", "REV", "BIND")


def blame_for(body: Body, behind: Iterable[str]) -> str:
    """The rule behind a frame that should have been sent; ``behind`` are its rules, the last one first."""
    behind = list(behind)
    if isinstance(body, Revoke):
        # It is sent because of what is said of revokes as such; what was found and answered here is another matter.
        return next((rule for rule in ("REG-10", "REV-3", "REV-2", "EXT-12") if rule in behind), "") or _first(
            ("REV",), behind
        )
    return _first(_families(body), behind)


def blame_unasked(body: Body, cited: tuple[str, ...]) -> str:
    """The rule of a step that forbids a frame which was not due; ``cited`` are its rules in order."""
    if isinstance(body, Revoke):
        return "REV-3" if "REV-3" in cited else "REV-2"
    for family in _families(body):
        rule = _first((family,), cited[::-1])
        if rule.startswith(f"{family}-"):
            return rule
    return _first((), cited[::-1])


def blame_for_close(behind: Iterable[str]) -> str:
    """The rule behind a link that should have been closed, or should not have been."""
    behind = list(behind)
    return "LINK-11" if "LINK-11" in behind else _first(_CLOSING, behind)


def blame_for_header(name: str, body: Body) -> str:
    """The rule about a header field of a frame."""
    if isinstance(body, bytes):
        return "FRAME-8" if name == "hop_limit" else "FRAME-4"
    if isinstance(body, Answer):
        return {"major": "FRAME-13", "target": "FRAME-14"}.get(name, "FRAME-12")
    if isinstance(body, Revoke):
        return "REV-2"
    if isinstance(body, PermsInvalidate) and name == "target":
        return "PERM-18"
    return "FRAME-15"


def _families(body: Body) -> tuple[str, ...]:
    return _OPAQUE if isinstance(body, bytes) else _FAMILIES.get(body.action, ())


def _first(families: tuple[str, ...], rules: Iterable[str]) -> str:
    """The first rule of these families; else the first that says anything particular."""
    rules = list(rules)
    telling = [rule for rule in rules if rule not in _ASIDE]
    own = [rule for rule in telling if rule.partition("-")[0] in families]
    return (own or telling or [rule for rule in rules if rule not in _ANYWHERE] or ["FRAME-18"])[0]
