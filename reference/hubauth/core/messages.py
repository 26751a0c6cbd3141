"""What hubs and devices say to each other, free of any dialect: frames, requests, answers, refusals.

A dialect (``hubauth.wire.dialects``) turns a payload into one of these values and back. The core
never sees JSON, and never sees which words a dialect uses for an action.
"""

from enum import IntEnum
from typing import ClassVar, TypeAlias

from hubauth.core.values import Choice, frozen

SUB_PROTO = 2
MAX_NODE_ID = 2**32 - 1
MAX_DEVICE_ID_BYTES = 128
MAX_JOURNAL_BYTES = 64
MAX_HANDLED = 2**31 - 1
"""What a neighbour may claim to have handled: numbers behind it must be left."""


class Major(IntEnum):
    """The kind of a frame, bits 0..1 of ``TypeFmt``."""

    OK_RESP = 0
    ERR_RESP = 1
    MSG = 2
    CMD = 3


class Action(Choice):
    """What a message asks for. The value is the word of the ``auth`` dialect."""

    REGISTER = "register"
    AUTHENTICATE = "auth"
    REVOKE = "revoke"
    OFFLINE = "offline"
    GET_PERMS = "get_perms"
    LIST_ROLES = "list_roles"
    PERMS_INVALIDATE = "perms_invalidate"
    ASSIST_REGISTER = "assist_register"
    ASSIST_AUTHENTICATE = "assist_auth"
    ASSIST_QUERY_CREDENTIAL = "assist_query_credential"
    ASSIST_OFFLINE = "assist_offline"
    HUB_ONLINE = "hub_online"
    HUB_DISMISS = "hub_dismiss"
    HUB_FENCE = "hub_fence"


class Reason(Choice):
    """Why something was answered the way it was. A dialect derives ``code`` and ``msg`` from it."""

    OK = "ok"
    INVALID_REQUEST = "invalid_request"
    FORBIDDEN = "forbidden"
    NOT_ADMITTED = "not_admitted"
    """No such binding, or the credential does not match: deliberately one reason."""
    PROTECTED = "protected"
    """The device may not be registered over."""
    UNREACHABLE = "unreachable"
    NOT_WHITELISTED = "not_whitelisted"
    CREDENTIAL_MISMATCH = "credential_mismatch"
    UNKNOWN_NODE = "unknown_node"
    INTERNAL = "internal"
    EXHAUSTED = "exhausted"
    """No node id is left."""
    BUSY = "busy"
    """Too many requests of this link are waiting."""
    OFFLINE_INTERNAL = "offline_internal"
    NOT_INDEXED = "not_indexed"


CODES: dict[Reason, int] = {
    Reason.OK: 1,
    Reason.INVALID_REQUEST: 400,
    Reason.FORBIDDEN: 403,
    Reason.NOT_ADMITTED: 4001,
    Reason.PROTECTED: 4001,
    Reason.UNREACHABLE: 4002,
    Reason.NOT_WHITELISTED: 4401,
    Reason.CREDENTIAL_MISMATCH: 4402,
    Reason.UNKNOWN_NODE: 4404,
    Reason.INTERNAL: 4500,
    Reason.EXHAUSTED: 4500,
    Reason.BUSY: 4500,
    Reason.OFFLINE_INTERNAL: 4700,
    Reason.NOT_INDEXED: 4701,
}


def _first_reason_by_code() -> dict[int, Reason]:
    first: dict[int, Reason] = {}
    for reason, code in CODES.items():
        first.setdefault(code, reason)
    return first


_REASON_BY_CODE = _first_reason_by_code()


def reason_of_code(code: int) -> Reason:
    """The reason a received code stands for; a code outside the table is an internal error of its sender."""
    return _REASON_BY_CODE.get(code, Reason.INTERNAL)


@frozen
class Grant:
    """A role and what it may do."""

    role: str
    perms: tuple[str, ...]

    def allows(self, permission: str) -> bool:
        """Whether ``permission`` is held; ``*`` holds everything except ``auth.assist``."""
        if permission in self.perms:
            return True
        return "*" in self.perms and permission != "auth.assist"


NO_GRANT = Grant("", ())


@frozen
class RoleOfNode:
    """One row of a ``list_roles`` answer."""

    node_id: int
    grant: Grant


@frozen
class Ext:
    """By this two hubs that meet find out that both speak the extension, and where the numbers between them stand."""

    journal: str
    """The sender's own: drawn when its data directory was made."""
    peer: str = ""
    """The journal of the hub it is said to, as the sender remembers it; "" if it does not."""
    handled: int = 0
    """The number of the last revoke handled from ``peer``."""
    hub: bool = True
    """False in an answer, which then says nothing else: the asker was admitted as a device, not as a hub."""


NOT_A_HUB = Ext("", hub=False)


@frozen
class Register:
    action: ClassVar[Action] = Action.REGISTER
    device_id: str
    ext: Ext | None = None


@frozen
class Authenticate:
    action: ClassVar[Action] = Action.AUTHENTICATE
    device_id: str
    credential: str = ""
    ext: Ext | None = None


@frozen
class AssistRegister:
    action: ClassVar[Action] = Action.ASSIST_REGISTER
    device_id: str


@frozen
class AssistAuthenticate:
    """A search for somebody who can verify."""

    action: ClassVar[Action] = Action.ASSIST_AUTHENTICATE
    device_id: str
    credential: str = ""


@frozen
class AssistQueryCredential:
    action: ClassVar[Action] = Action.ASSIST_QUERY_CREDENTIAL
    device_id: str
    node_id: int = 0


@frozen
class Revoke:
    """``node_id`` 0 and ``credential`` "" mean: not given. ``seq`` numbers it on an extended link; 0: it has none."""

    action: ClassVar[Action] = Action.REVOKE
    device_id: str
    node_id: int = 0
    credential: str = ""
    seq: int = 0


@frozen
class Offline:
    action: ClassVar[Action] = Action.OFFLINE
    device_id: str
    node_id: int = 0
    reason: str = ""


@frozen
class AssistOffline:
    """A child hub's report that a node is gone."""

    action: ClassVar[Action] = Action.ASSIST_OFFLINE
    device_id: str
    node_id: int = 0
    reason: str = ""


@frozen
class HubOnline:
    """A child hub's announcement that a node is with it; never answered."""

    action: ClassVar[Action] = Action.HUB_ONLINE
    device_id: str
    node_id: int


@frozen
class HubDismiss:
    """A parent's order to let go of a node that is elsewhere now."""

    action: ClassVar[Action] = Action.HUB_DISMISS
    device_id: str
    node_id: int


@frozen
class HubFence:
    """Its answer says that everything before it on the link has been handled."""

    action: ClassVar[Action] = Action.HUB_FENCE


@frozen
class GetPerms:
    action: ClassVar[Action] = Action.GET_PERMS
    node_id: int


@frozen
class ListRoles:
    action: ClassVar[Action] = Action.LIST_ROLES
    offset: int = 0
    limit: int = 100
    role: str = ""
    node_ids: tuple[int, ...] = ()


@frozen
class PermsInvalidate:
    """An empty ``node_ids`` means all nodes."""

    action: ClassVar[Action] = Action.PERMS_INVALIDATE
    node_ids: tuple[int, ...] = ()
    reason: str = ""
    refresh: bool = False


Request: TypeAlias = (
    Register
    | Authenticate
    | AssistRegister
    | AssistAuthenticate
    | AssistQueryCredential
    | Revoke
    | Offline
    | AssistOffline
    | HubOnline
    | HubDismiss
    | HubFence
    | GetPerms
    | ListRoles
    | PermsInvalidate
)


@frozen
class Answer:
    """An answer to the request ``action``; a dialect writes only the fields that belong there.

    ``action`` is None where the dialect's answers do not name one (``flat``).
    """

    action: Action | None
    reason: Reason
    device_id: str = ""
    node_id: int = 0
    credential: str = ""
    grant: Grant = NO_GRANT
    total: int = 0
    roles: tuple[RoleOfNode, ...] = ()
    ext: Ext | None = None


@frozen
class Malformed:
    """A payload that could not be read. ``action`` is what it asked for, if that much was readable."""

    action: Action | None
    detail: str
    is_answer: bool = False


Body: TypeAlias = Request | Answer | Malformed | bytes
"""``bytes`` is the payload of another sub-protocol: opaque."""


@frozen
class Frame:
    """A header and what it carries. ``hop_limit``, ``trace_id`` exist in header version 2 only; 0 is "not set"."""

    body: Body
    major: Major = Major.CMD
    msg_id: int = 0
    source: int = 0
    target: int = 0
    sub_proto: int = SUB_PROTO
    trace_id: int = 0
    hop_limit: int = 0
    flags: int = 0
    timestamp: int = 0
