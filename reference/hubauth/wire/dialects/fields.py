"""The fields of every message, typed: msgspec reads and checks them, and writes them in the order given here.

Reading ignores fields that are not listed and takes the last of a repeated one. A list may be ``null``, which is how
some encoders write an empty one; no other field may.
"""

from typing import Annotated, Self, TypeAlias

from msgspec import UNSET, Meta, Struct

from hubauth.core.keys import MAX_NAME
from hubauth.core.messages import MAX_DEVICE_ID_BYTES, MAX_NODE_ID, Action, Answer, Grant, Reason, RoleOfNode
from hubauth.wire.dialects.extension import ReadExt, read_ext, write_ext

MAX_CREDENTIAL = 256
MAX_TEXT = 1024

_DEVICE_ID = "At most 128 bytes of UTF-8."
DeviceId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID_BYTES, description=_DEVICE_ID)]
AnsweredDeviceId: TypeAlias = Annotated[str, Meta(max_length=MAX_DEVICE_ID_BYTES, description=_DEVICE_ID)]
NodeId: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NODE_ID)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NODE_ID)]
Code: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Credential: TypeAlias = Annotated[str, Meta(max_length=MAX_CREDENTIAL)]
Name: TypeAlias = Annotated[str, Meta(max_length=MAX_NAME)]
Text: TypeAlias = Annotated[str, Meta(max_length=MAX_TEXT)]


def device_id_fits(device_id: str) -> bool:
    """Whether it is at most 128 bytes of UTF-8; msgspec has only counted characters, of at most four bytes each."""
    return len(device_id) <= MAX_DEVICE_ID_BYTES // 4 or len(device_id.encode()) <= MAX_DEVICE_ID_BYTES


class Fields(Struct):
    """The fields of a request, or of an answer."""


class RequestFields(Fields, omit_defaults=True):
    """Named, ordered and defaulted as in the core message they stand for. Empty optional ones are not written."""


class Device(RequestFields):
    device_id: DeviceId


class DeviceAndCredential(Device):
    credential: Credential = ""


class Registration(Device):
    ext: ReadExt = UNSET


class Authentication(DeviceAndCredential):
    ext: ReadExt = UNSET


class Nothing(RequestFields):
    pass


class Place(Device):
    node_id: NodeId


class DeviceAndNode(Device):
    node_id: NodeId = 0


class Revocation(DeviceAndNode):
    credential: Credential = ""
    seq: Count = 0


class Departure(DeviceAndNode):
    reason: Text = ""


class Node(RequestFields):
    node_id: NodeId


class Page(RequestFields):
    offset: Count = 0
    limit: Count = 100
    role: Name = ""
    node_ids: tuple[NodeId, ...] | None = ()

    def __post_init__(self) -> None:
        self.node_ids = self.node_ids or ()


class Invalidation(RequestFields):
    node_ids: tuple[NodeId, ...] | None = ()
    reason: Text = ""
    refresh: bool = False

    def __post_init__(self) -> None:
        self.node_ids = self.node_ids or ()


class Outcome(Fields):
    """What every answer holds. ``msg`` is for people and never looked at."""

    code: Code
    msg: Text = ""

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        return Answer(action, reason)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:  # noqa: ARG003
        return cls(code, msg)


class Subject(Outcome):
    device_id: AnsweredDeviceId = ""
    node_id: NodeId = 0

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        return Answer(action, reason, self.device_id, self.node_id)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        return cls(code, msg, answer.device_id, answer.node_id)


class KnownSubject(Subject, omit_defaults=True):
    """Only what is known of the subject."""


class Admission(Subject):
    credential: Credential = ""

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        return Answer(action, reason, self.device_id, self.node_id, self.credential)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        return cls(code, msg, answer.device_id, answer.node_id, answer.credential)


class AdmissionAndGrant(Admission):
    role: Name = ""
    perms: tuple[Name, ...] | None = ()

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        grant = Grant(self.role, self.perms or ())
        return Answer(action, reason, self.device_id, self.node_id, self.credential, grant)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        grant = answer.grant
        return cls(code, msg, answer.device_id, answer.node_id, answer.credential, grant.role, grant.perms)


class Entrance(Admission):
    """The answer to whoever enters itself, which may be a hub."""

    ext: ReadExt = UNSET

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        ext = read_ext(self.ext, answer=True)
        return Answer(action, reason, self.device_id, self.node_id, self.credential, ext=ext)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        return cls(code, msg, answer.device_id, answer.node_id, answer.credential, write_ext(answer.ext))  # type: ignore[arg-type]


class EntranceAndGrant(AdmissionAndGrant):
    ext: ReadExt = UNSET

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        grant, ext = Grant(self.role, self.perms or ()), read_ext(self.ext, answer=True)
        return Answer(action, reason, self.device_id, self.node_id, self.credential, grant, ext=ext)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        grant, ext = answer.grant, write_ext(answer.ext)
        about = answer.device_id, answer.node_id, answer.credential
        return cls(code, msg, *about, grant.role, grant.perms, ext)  # type: ignore[arg-type]


class NodeGrant(Outcome):
    node_id: NodeId = 0
    role: Name = ""
    perms: tuple[Name, ...] | None = ()

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        return Answer(action, reason, node_id=self.node_id, grant=Grant(self.role, self.perms or ()))

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        return cls(code, msg, answer.node_id, answer.grant.role, answer.grant.perms)


class Row(Struct):
    """One node of a listing."""

    node_id: NodeId
    role: Name = ""
    perms: tuple[Name, ...] | None = ()


class Listing(Outcome):
    total: Count = 0
    roles: tuple[Row, ...] | None = ()

    def to_answer(self, action: Action | None, reason: Reason) -> Answer:
        rows = tuple(RoleOfNode(row.node_id, Grant(row.role, row.perms or ())) for row in self.roles or ())
        return Answer(action, reason, total=self.total, roles=rows)

    @classmethod
    def of(cls, code: int, msg: str, answer: Answer) -> Self:
        rows = tuple(Row(row.node_id, row.grant.role, row.grant.perms) for row in answer.roles)
        return cls(code, msg, answer.total, rows)
