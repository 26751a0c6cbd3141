"""Which rule a difference is about: of the rules that decided a step, the one behind the frame that differs."""

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Malformed,
    Offline,
    PermsInvalidate,
    Register,
    Revoke,
)

_GENERAL = ("FRAME-10", "FRAME-12", "FRAME-13", "FRAME-14", "FRAME-15", "FRAME-16", "TIME-1", "TRUST-6", "AUTH-26")
"""Cited by most steps; the last resort."""

_LIMITS = ("TIME-4", "TIME-5", "TIME-6")
_SEARCH = ("AUTH-7", "AUTH-13", "AUTH-10", "AUTH-9", "AUTH-20", "AUTH-11", "AUTH-33", "AUTH-15")
_OFFLINE = ("OFF-10", "OFF-11", "OFF-2", "OFF-7", "BIND-12", "OFF-12", "OFF-6")
_ENTRY = ("TRUST-8", "FRAME-23", "FRAME-17", "FRAME-19", "TRUST-3")

_ANSWERS: dict[Action | None, tuple[str, ...]] = {
    Action.REGISTER: (
        "REG-12",
        "REG-11",
        "REG-3",
        "AUTHY-5",
        "AUTHY-6",
        "REG-14",
        *_LIMITS,
        "REG-6",
        "REG-13",
        "REG-21",
    ),
    Action.ASSIST_REGISTER: ("REG-12", "REG-11", "REG-3", "AUTHY-5", "AUTHY-6", *_LIMITS, "REG-7", "REG-8"),
    Action.AUTHENTICATE: (
        *("REV-11", "AUTH-3", "AUTH-2", "AUTH-4", "AUTH-10", "AUTH-9", "AUTH-14", "AUTH-19", *_LIMITS),
        *("AUTH-12", "AUTH-1", "AUTH-15"),
    ),
    Action.ASSIST_AUTHENTICATE: ("EXT-14", *_SEARCH),
    Action.ASSIST_QUERY_CREDENTIAL: _SEARCH,
    Action.REVOKE: ("REV-1", "REV-20", "TIME-4", "REV-9", "REV-10", "REV-8", "REV-5", "REV-18", "REV-17"),
    Action.OFFLINE: _OFFLINE,
    Action.ASSIST_OFFLINE: _OFFLINE,
    Action.HUB_DISMISS: ("EXT-1", "EXT-9", "BIND-12"),
    Action.HUB_FENCE: ("EXT-1", "EXT-11"),
}
"""What decides an answer, the most particular first."""

_REQUESTS: dict[type[Body], tuple[str, ...]] = {
    Register: ("LINK-2",),
    Authenticate: ("LINK-2",),
    AssistRegister: ("AUTHY-1", "REG-8", "REG-5"),
    AssistAuthenticate: ("REG-16", "AUTH-25", "AUTH-21", "AUTH-20", "AUTH-9", "AUTH-5"),
    AssistQueryCredential: ("AUTH-6", "AUTH-21", "AUTH-20", "AUTH-9"),
    Revoke: ("REG-10", "REV-3", "REV-2", "EXT-12", "REV-23"),
    Offline: ("BIND-8", "BIND-3"),
    AssistOffline: ("BIND-12", "OFF-8", "OFF-6", "REV-6", "OFF-1", "OFF-4", "BIND-2", "OFF-13", "OFF-5"),
    HubOnline: ("BIND-11", "BIND-10", "BIND-9", "BIND-6", "EXT-8"),
    HubDismiss: ("EXT-9",),
    HubFence: ("EXT-11",),
    GetPerms: ("TRUST-7",),
    ListRoles: (),
    PermsInvalidate: ("PERM-16", "PERM-7", "PERM-12"),
    bytes: ("FRAME-1", "FRAME-2", "FRAME-3", "FRAME-8", "FRAME-7", "FRAME-6", "FRAME-5", "FRAME-4"),
}
_CLOSE = ("EXT-7", "LINK-5", "LINK-11", "REV-7", "BIND-8", "BIND-12", "BIND-3", "LINK-9")

_UNASKED: dict[Action | None, tuple[str, ...]] = {
    Action.ASSIST_REGISTER: ("AUTHY-4",),
    Action.REGISTER: ("REG-5",),
    Action.HUB_ONLINE: ("EXT-8", "BIND-6"),
}
"""What forbids an answer that is not due; before ``_ANSWERS``."""


def blame_for(body: Body, cited: tuple[str, ...], *, unexpected: bool = False) -> str:
    """The rule behind a frame that should have been sent, or (``unexpected``) should not have been."""
    preferred = _preferred(body)
    if unexpected and isinstance(body, Answer):
        preferred = _UNASKED.get(body.action, ()) + preferred
    elif unexpected and isinstance(body, Revoke):
        preferred = ("REV-3", "REV-2")
    return _first(preferred, cited)


def blame_for_close(cited: tuple[str, ...]) -> str:
    """The rule behind a link that should have been closed, or should not have been."""
    return _first(_CLOSE, cited)


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


def _preferred(body: Body) -> tuple[str, ...]:
    if isinstance(body, Answer):
        return _ENTRY + _ANSWERS.get(body.action, ())
    if isinstance(body, Malformed):
        return ()
    return _REQUESTS[type(body)]


def _first(preferred: tuple[str, ...], cited: tuple[str, ...]) -> str:
    for rule in preferred:
        if rule in cited:
            return rule
    particular = [rule for rule in cited if rule not in _GENERAL]
    return (particular or list(cited) or ["FRAME-18"])[-1]
