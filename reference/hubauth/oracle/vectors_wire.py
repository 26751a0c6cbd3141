"""Vectors below the protocol: streams cut into frames, frames read as messages, configuration keys.

``answered`` answers a case's question anew, as the reference does: a case holds if that is what it says already.
"""

from enum import Enum
from typing import Any, TypeAlias

import msgspec
from attrs import fields
from msgspec import UNSET, Raw, UnsetType, field

from hubauth.core.keys import read_keys
from hubauth.core.messages import Action, Answer, Body, Grant, Malformed, Reason
from hubauth.core.policy import Dialect, Policy
from hubauth.forms.policies import PolicyForm
from hubauth.oracle.forms import (
    Form,
    HeaderForm,
    Hex,
    header_form,
    payload_bytes,
    payload_values,
    policy_form,
    raw_frame,
)
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.extension import write_ext
from hubauth.wire.framing import FrameDecoder, Limits, RawFrame, read_frame
from hubauth.wire.header import V1_LENGTH, Refused, Version, encode_v1, encode_v2


class CutFrame(Form, frozen=True, kw_only=True):
    """A frame as it stands in a stream."""

    header: HeaderForm = HeaderForm()
    payload: Raw | UnsetType = UNSET
    payload_hex: Hex | UnsetType = UNSET


class StreamCase(Form, frozen=True, kw_only=True, tag_field="kind", tag="stream"):
    """The bytes of one connection, and what they are cut into, however they arrive."""

    id: str
    version: int = 0
    """Which header is expected; 0: the one that the first frame shows."""
    limit: int = Limits().auth
    """The largest payload of SubProto 2."""
    opaque_limit: int = Limits().opaque
    """The largest payload of any other."""
    hex: Hex
    frames: tuple[CutFrame, ...] = ()
    refused: str = ""
    """The rule by which the connection is closed after these frames."""
    held: int = 0
    """Bytes at the end that are the beginning of a frame."""
    written: bool = False
    """Whether writing the frames gives these very bytes."""
    rules: tuple[str, ...]


class Reading(Enum):
    """What a frame is taken for."""

    REQUEST = "request"
    ANSWER = "answer"
    MALFORMED = "malformed"
    OPAQUE = "opaque"


class FrameCase(Form, frozen=True, kw_only=True, tag_field="kind", tag="reading"):
    """A frame, and what a dialect reads in it."""

    id: str
    dialect: Dialect
    header: HeaderForm = HeaderForm()
    payload: Raw | UnsetType = UNSET
    payload_hex: Hex | UnsetType = UNSET
    reads: Reading
    action: Action | None = None
    """In the words of the dialect ``auth``; null: not known, as in every answer of ``flat``."""
    reason: Reason | UnsetType = UNSET
    """Of an answer."""
    fields: dict[str, Any] = field(default_factory=dict)
    """Those that are not empty."""
    written: bool = False
    """Whether the reference writes the message as these very bytes; the order of fields is no rule."""
    rules: tuple[str, ...]


class KeysCase(Form, frozen=True, kw_only=True, tag_field="kind", tag="keys"):
    """Configuration keys, and the policy that they make of the defaults, or the keys at fault."""

    id: str
    keys: dict[str, str]
    policy: PolicyForm | UnsetType = UNSET
    problems: tuple[str, ...] = ()
    rules: tuple[str, ...]


WireCase: TypeAlias = StreamCase | FrameCase | KeysCase


def answered(case: WireCase) -> WireCase:
    """The case with the reference's answer in it."""
    match case:
        case StreamCase():
            return cut(case)
        case FrameCase():
            return _read(case)
        case KeysCase():
            return _applied(case)


def cut(case: StreamCase, size: int = 0) -> StreamCase:
    """The answer for a stream that arrives in pieces of ``size`` bytes (0: in one)."""
    data = bytes.fromhex(case.hex)
    decoder = FrameDecoder(Version(case.version) if case.version else None, Limits(case.limit, case.opaque_limit))
    frames: list[RawFrame] = []
    refused = ""
    size = size or max(1, len(data))
    for start in range(0, len(data), size):
        for item in decoder.feed(data[start : start + size]):
            if isinstance(item, Refused):
                refused = item.rule
            else:
                frames.append(item)
    decided = [rule for frame in frames for rule in frame.rules] + [refused] * bool(refused)
    return msgspec.structs.replace(
        case,
        frames=tuple(CutFrame(header=header_form(frame.header), **payload_values(frame.payload)) for frame in frames),
        refused=refused,
        held=0 if refused else decoder.held,
        written=bool(frames) and b"".join(map(_write, frames)) == data,
        rules=tuple(dict.fromkeys(decided)),
    )


def _write(frame: RawFrame) -> bytes:
    write = encode_v1 if frame.header.length == V1_LENGTH else encode_v2
    return write(frame.header, len(frame.payload)) + frame.payload


def _read(case: FrameCase) -> FrameCase:
    payload = payload_bytes(case.payload, case.payload_hex)
    codec = CODECS[case.dialect]
    done = read_frame(codec, raw_frame(case.header, payload))
    body = done.frame.body
    return msgspec.structs.replace(
        case,
        reads=_reading(body),
        action=None if isinstance(body, bytes) else body.action,
        reason=body.reason if isinstance(body, Answer) else UNSET,
        fields={} if isinstance(body, bytes | Malformed) else _filled(body),
        written=not isinstance(body, bytes | Malformed) and codec.encode(body) == payload,
        rules=done.rules,
    )


def _reading(body: Body) -> Reading:
    match body:
        case bytes():
            return Reading.OPAQUE
        case Malformed():
            return Reading.MALFORMED
        case Answer():
            return Reading.ANSWER
        case _:
            return Reading.REQUEST


def _filled(body: Any) -> dict[str, Any]:
    """The fields of a message that are not at their default, as plain values by their names on the wire."""
    values: dict[str, Any] = {}
    for attribute in fields(type(body)):
        value = getattr(body, attribute.name)
        if attribute.name in ("action", "reason") and isinstance(body, Answer):
            continue
        if value == attribute.default:
            continue
        values |= _plain_grant(value) if isinstance(value, Grant) else {attribute.name: value}
    if "roles" in values:
        values["roles"] = [{"node_id": row.node_id, **_plain_grant(row.grant)} for row in values["roles"]]
    if "ext" in values:
        values["ext"] = msgspec.to_builtins(write_ext(values["ext"]))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _plain_grant(grant: Grant) -> dict[str, Any]:
    return {"role": grant.role, "perms": list(grant.perms)}


def _applied(case: KeysCase) -> KeysCase:
    done = read_keys(case.keys, Policy())
    return msgspec.structs.replace(
        case,
        policy=UNSET if done.problems else policy_form(done.policy),
        problems=tuple(problem.key for problem in done.problems),
        rules=done.rules,
    )
