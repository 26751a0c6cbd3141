"""Rows and checkpoints as lines of JSON: for people, and for every other language. Text where the payload is text."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from hubauth.forms.events import VERSION, Checkpoint, Event, Kind, TraceError
from hubauth.report.conceal import conceal

Name: TypeAlias = Annotated[str, Meta(description="A name.")]
Sequence: TypeAlias = Annotated[
    int, Meta(ge=0, le=2**63 - 1, description="Numbers the rows of a hub in a trace from 0, without a gap.")
]
Time: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1, description="Microseconds since 1970-01-01 UTC; 0: unknown.")]
Link: TypeAlias = Annotated[int, Meta(ge=0, le=2**63 - 1, description="0: the link to the parent.")]
Connection: TypeAlias = Annotated[str, Meta(description="The same text at both ends of a connection.")]
Peer: TypeAlias = Annotated[str, Meta(description="Who is at the other end, for people.")]
HeaderVersion: TypeAlias = Annotated[int, Meta(ge=0, le=2, description="Of the frame's header; 0: no frame.")]
MajorNumber: TypeAlias = Annotated[int, Meta(ge=0, le=3, description="0 OKResp, 1 ErrResp, 2 Msg, 3 Cmd.")]
SubProto: TypeAlias = Annotated[int, Meta(ge=0, le=63)]
Byte: TypeAlias = Annotated[int, Meta(ge=0, le=255)]
Uint32: TypeAlias = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Payload: TypeAlias = Annotated[str, Meta(description="The payload, where it is UTF-8.")]
Payload64: TypeAlias = Annotated[bytes, Meta(description="The payload in base64, where it is not UTF-8.")]
FormatVersion: TypeAlias = Annotated[int, Meta(ge=1, description="Of this format: 1.")]


class Line(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An ``Event`` as it is written: an absent field has its default, an absent link is no link."""

    trace: Name
    hub: Name
    sequence: Sequence
    kind: Kind
    time: Time = 0
    link: Link | None = None
    connection: Connection = ""
    peer: Peer = ""
    header: HeaderVersion = 0
    major: MajorNumber = 0
    sub_proto: SubProto = 0
    flags: Byte = 0
    msg_id: Uint32 = 0
    source: Uint32 = 0
    target: Uint32 = 0
    trace_id: Uint32 = 0
    hop_limit: Byte = 0
    timestamp: Uint32 = 0
    payload: Payload = ""
    payload_base64: Payload64 = b""
    version: FormatVersion = VERSION


class CheckpointLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A ``Checkpoint`` as it is written."""

    trace: Name
    hub: Name
    sequence: Sequence
    digest: Annotated[str, Meta(description="SHA-256 of the state, as hubauth.core.canonical defines it.")]
    policy: Annotated[str, Meta(description="The policy in force, as JSON.")]
    state: Annotated[str, Meta(description="The state before row `sequence`, in the canonical encoding.")]
    version: FormatVersion = VERSION


_encode = msgspec.json.Encoder().encode
_decode_line = msgspec.json.Decoder(Line).decode
_decode_checkpoint = msgspec.json.Decoder(CheckpointLine).decode


def encode_event(event: Event) -> bytes:
    """One line, with its line break."""
    payload = event.payload
    try:
        text, raw = payload.decode(), b""
    except UnicodeDecodeError:
        text, raw = "", payload
    line = Line(
        event.trace,
        event.hub,
        event.sequence,
        event.kind,
        event.time,
        event.link,
        event.connection,
        event.peer,
        event.header,
        event.major,
        event.sub_proto,
        event.flags,
        event.msg_id,
        event.source,
        event.target,
        event.trace_id,
        event.hop_limit,
        event.timestamp,
        text,
        raw,
        event.version,
    )
    return _encode(line) + b"\n"


def decode_event(encoded: bytes) -> Event:
    """The row of a line. Raises TraceError."""
    try:
        line = _decode_line(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise TraceError(conceal(str(problem))) from problem
    check_version(line.version)
    return Event(
        line.trace,
        line.hub,
        line.sequence,
        line.kind,
        line.time,
        line.link,
        line.connection,
        line.peer,
        line.header,
        line.major,
        line.sub_proto,
        line.flags,
        line.msg_id,
        line.source,
        line.target,
        line.trace_id,
        line.hop_limit,
        line.timestamp,
        line.payload_base64 or line.payload.encode(),
        line.version,
    )


def check_version(version: int) -> None:
    """Raises TraceError for a format that this program does not know."""
    if version != VERSION:
        raise TraceError(f"format version {version}; this program reads version {VERSION}")


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """One line, with its line break."""
    line = CheckpointLine(
        checkpoint.trace,
        checkpoint.hub,
        checkpoint.sequence,
        checkpoint.digest,
        checkpoint.policy.decode(),
        checkpoint.state.decode(),
        checkpoint.version,
    )
    return _encode(line) + b"\n"


def decode_checkpoint(encoded: bytes) -> Checkpoint:
    """The checkpoint of a line. Raises TraceError."""
    try:
        line = _decode_checkpoint(encoded)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise TraceError(conceal(str(problem))) from problem
    check_version(line.version)
    policy, state = line.policy.encode(), line.state.encode()
    return Checkpoint(line.trace, line.hub, line.sequence, line.digest, policy, state, line.version)
