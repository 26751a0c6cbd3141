"""The two frame headers, between bytes and values. Pure; nothing here knows about streams or payloads.

Both are big-endian. ``TypeFmt`` packs ``Major`` (bits 0..1) and ``SubProto`` (bits 2..7).
"""

from enum import IntEnum
from struct import Struct as Layout
from typing import Protocol

import msgspec

from hubauth.core.messages import Major

V1_LENGTH = 24
V2_LENGTH = 32
MAGIC = 0x4D48
MAGIC_BYTES = b"MH"
FLAG_COMPRESSED = 0b10

_V1 = Layout(">BBIIIIIH")
_V2 = Layout(">HBBBBBBIIIIII")
_V2_START = Layout(">HBB")

_MAJORS = tuple(Major)
"""By value: indexing is several times cheaper than calling the enum."""

_V1_RULES = ("WIRE-1",)
_V2_RULES = ("WIRE-2",)
_V2_LONGER_RULES = (*_V2_RULES, "WIRE-3")
_RESERVED_RULES = ("WIRE-4",)


class Version(IntEnum):
    """Which header the frames of a connection carry."""

    V1 = 1
    V2 = 2


class Refused(msgspec.Struct, frozen=True):
    """The stream cannot be read any further: close the connection. ``rule`` says why."""

    rule: str
    detail: str


class Header(msgspec.Struct, frozen=True, gc=False):
    """One header as read. ``length`` is its own size in bytes, extra bytes of a longer version 2 header included."""

    rules: tuple[str, ...]
    length: int
    payload_length: int
    major: Major
    sub_proto: int
    flags: int
    msg_id: int
    source: int
    target: int
    timestamp: int
    trace_id: int = 0
    hop_limit: int = 0


class HeaderFields(Protocol):
    """What a header is written from; ``hubauth.core.messages.Frame`` and ``Header`` both are."""

    @property
    def major(self) -> Major: ...
    @property
    def sub_proto(self) -> int: ...
    @property
    def flags(self) -> int: ...
    @property
    def msg_id(self) -> int: ...
    @property
    def source(self) -> int: ...
    @property
    def target(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def trace_id(self) -> int: ...
    @property
    def hop_limit(self) -> int: ...


def decode_v1(data: bytes, offset: int = 0) -> Header:
    """The version 1 header at ``offset``; 24 bytes must be there. Every 24 bytes are one."""
    type_fmt, flags, msg_id, source, target, timestamp, payload_length, reserved = _V1.unpack_from(data, offset)
    return Header(
        _V1_RULES if not reserved else _V1_RULES + _RESERVED_RULES,
        V1_LENGTH,
        payload_length,
        _MAJORS[type_fmt & 0b11],
        type_fmt >> 2,
        flags,
        msg_id,
        source,
        target,
        timestamp,
    )


def refuse_v2(data: bytes, offset: int = 0) -> Refused | None:
    """What is wrong with the first four bytes of a version 2 header, if anything; four bytes must be there."""
    magic, version, length = _V2_START.unpack_from(data, offset)
    if magic != MAGIC:
        return Refused("WIRE-5", f"magic {magic:#06x}")
    if version != Version.V2:
        return Refused("WIRE-5", f"header version {version}")
    if length < V2_LENGTH:
        return Refused("WIRE-5", f"header length {length}")
    return None


def decode_v2(data: bytes, offset: int = 0) -> Header | Refused:
    """The version 2 header at ``offset``; 32 bytes must be there, extra ones of a longer header need not."""
    (
        magic,
        version,
        length,
        type_fmt,
        flags,
        hop_limit,
        route_flags,
        msg_id,
        source,
        target,
        trace_id,
        timestamp,
        payload_length,
    ) = _V2.unpack_from(data, offset)
    if magic != MAGIC or version != Version.V2 or length != V2_LENGTH:
        refused = refuse_v2(data, offset)
        if refused is not None:
            return refused
    rules = _V2_RULES if length == V2_LENGTH else _V2_LONGER_RULES
    return Header(
        rules if not route_flags else rules + _RESERVED_RULES,
        length,
        payload_length,
        _MAJORS[type_fmt & 0b11],
        type_fmt >> 2,
        flags,
        msg_id,
        source,
        target,
        timestamp,
        trace_id,
        hop_limit,
    )


def encode_v1(fields: HeaderFields, payload_length: int, timestamp: int | None = None) -> bytes:
    """24 bytes. Version 1 has no place for ``trace_id`` and ``hop_limit``: they are lost."""
    return _V1.pack(
        fields.sub_proto << 2 | fields.major,
        fields.flags,
        fields.msg_id,
        fields.source,
        fields.target,
        fields.timestamp if timestamp is None else timestamp,
        payload_length,
        0,
    )


def encode_v2(fields: HeaderFields, payload_length: int, timestamp: int | None = None) -> bytes:
    """32 bytes. ``hop_limit`` is written as it is: what 0 means, and counting down, is the router's business."""
    return _V2.pack(
        MAGIC,
        Version.V2,
        V2_LENGTH,
        fields.sub_proto << 2 | fields.major,
        fields.flags,
        fields.hop_limit,
        0,
        fields.msg_id,
        fields.source,
        fields.target,
        fields.trace_id,
        fields.timestamp if timestamp is None else timestamp,
        payload_length,
    )
