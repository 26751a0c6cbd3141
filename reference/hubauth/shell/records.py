"""Inputs as bytes: what the journal keeps of each input that changed the state.

A frame is kept as it came, header fields and payload, and read again by the same codec on replay. All integers are
big-endian; every record says its own length, so records simply follow each other.
"""

from collections.abc import Callable, Iterator
from struct import Struct as Layout
from struct import error as LayoutError

import msgspec

from hubauth.core.inputs import (
    Input,
    Link,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    Received,
    TimerFired,
)
from hubauth.core.messages import Major, PermsInvalidate, Revoke
from hubauth.shell.policies import decode_policy, encode_policy
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header

_LINK_UP, _LINK_DOWN, _RECEIVED, _TIMER, _REVOKE, _INVALIDATE, _POLICY = range(1, 8)

_NUMBERED = Layout(">BQ")
_FRAME = Layout(">BQBBBBBIIIIII")
_TEXT = Layout(">BI")
_MAJORS = tuple(Major)


def encode_received(link: Link, raw: RawFrame, fresh: str) -> bytes:
    """A frame that came in, and the credential that was drawn for it."""
    header, payload = raw.header, raw.payload
    return (
        _FRAME.pack(
            _RECEIVED,
            link,
            header.major,
            header.sub_proto,
            header.flags,
            header.hop_limit,
            len(fresh),
            header.msg_id,
            header.source,
            header.target,
            header.timestamp,
            header.trace_id,
            len(payload),
        )
        + fresh.encode()
        + payload
    )


def encode_input(happened: Input) -> bytes:
    """Every other input."""
    match happened:
        case LinkUp(link):
            return _NUMBERED.pack(_LINK_UP, link)
        case LinkDown(link):
            return _NUMBERED.pack(_LINK_DOWN, link)
        case TimerFired(timer):
            return _NUMBERED.pack(_TIMER, timer)
        case OperatorRevoke(revoke, target):
            return _text(_REVOKE, [revoke.device_id, revoke.node_id, revoke.credential, target])
        case OperatorInvalidate(message):
            return _text(_INVALIDATE, [message.node_ids, message.reason, message.refresh])
        case PolicyChanged(policy):
            encoded = encode_policy(policy)
            return _TEXT.pack(_POLICY, len(encoded)) + encoded
        case Received():
            raise TypeError("a frame is kept as it came: encode_received")


def _text(kind: int, values: list[object]) -> bytes:
    encoded = msgspec.json.encode(values)
    return _TEXT.pack(kind, len(encoded)) + encoded


_NUMBERED_INPUTS: dict[int, Callable[[int], Input]] = {_LINK_UP: LinkUp, _LINK_DOWN: LinkDown, _TIMER: TimerFired}


def decode_inputs(data: bytes, codec: Codec) -> Iterator[Input]:
    """The inputs of one batch, in order. Raises ValueError where the bytes are no record."""
    offset, size = 0, len(data)
    try:
        while offset < size:
            kind = data[offset]
            if kind == _RECEIVED:
                received, offset = _decode_received(data, offset, codec)
                yield received
            elif kind in _NUMBERED_INPUTS:
                _, number = _NUMBERED.unpack_from(data, offset)
                offset += _NUMBERED.size
                yield _NUMBERED_INPUTS[kind](number)
            else:
                _, length = _TEXT.unpack_from(data, offset)
                offset += _TEXT.size
                yield _decode_text(kind, data[offset : offset + length])
                offset += length
    except (LayoutError, msgspec.DecodeError, UnicodeDecodeError, TypeError) as problem:
        raise ValueError(f"not a record: {problem}") from problem


def _decode_received(data: bytes, offset: int, codec: Codec) -> tuple[Received, int]:
    (
        _,
        link,
        major,
        sub_proto,
        flags,
        hop_limit,
        fresh_length,
        msg_id,
        source,
        target,
        timestamp,
        trace_id,
        payload_length,
    ) = _FRAME.unpack_from(data, offset)
    start = offset + _FRAME.size
    middle = start + fresh_length
    end = middle + payload_length
    if end > len(data):
        raise ValueError("a frame longer than its batch")
    header = Header(
        (), 0, payload_length, _MAJORS[major], sub_proto, flags, msg_id, source, target, timestamp, trace_id, hop_limit
    )
    frame = read_frame(codec, RawFrame(header, data[middle:end], ())).frame
    return Received(link, frame, data[start:middle].decode()), end


def _decode_text(kind: int, encoded: bytes) -> Input:
    if kind == _POLICY:
        return PolicyChanged(decode_policy(encoded))
    values = msgspec.json.decode(encoded)
    if kind == _REVOKE:
        device_id, node_id, credential, target = values
        return OperatorRevoke(Revoke(device_id, node_id, credential), target)
    if kind == _INVALIDATE:
        node_ids, reason, refresh = values
        return OperatorInvalidate(PermsInvalidate(tuple(node_ids), reason, refresh))
    raise ValueError(f"unknown kind of record: {kind}")
