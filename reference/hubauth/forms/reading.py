"""What a row means to the core: the other way round of ``hubauth.forms.events``."""

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
from hubauth.core.messages import Frame, Major, PermsInvalidate, Revoke
from hubauth.forms.events import Event, Kind, OperatorCommand, Origin, TraceError
from hubauth.forms.policies import decode_policy
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header

_MAJORS = tuple(Major)
_FRAME_IN = Kind.FRAME_IN
_command = msgspec.json.Decoder(OperatorCommand)
_origin = msgspec.json.Decoder(Origin)


def _decode_link_up(link: Link, payload: bytes) -> LinkUp:
    if not payload:
        return LinkUp(link)
    origin = _origin.decode(payload)
    return LinkUp(link, origin.hubs, origin.peer)


def _decode_command(payload: bytes) -> Input:
    command = _command.decode(payload)
    if command.revoke is not None:
        revoke = command.revoke
        return OperatorRevoke(Revoke(revoke.device_id, revoke.node_id, revoke.credential), revoke.target)
    if command.invalidate is not None:
        message = command.invalidate
        return OperatorInvalidate(PermsInvalidate(message.node_ids, message.reason, message.refresh))
    raise TraceError("an operator row without a command")


def frame_of(event: Event, codec: Codec) -> Frame:
    """The frame of a ``frame_in`` or ``frame_out`` row, read as a hub would read it."""
    header = Header(
        (),
        0,
        len(event.payload),
        _MAJORS[event.major],
        event.sub_proto,
        event.flags,
        event.msg_id,
        event.source,
        event.target,
        event.timestamp,
        event.trace_id,
        event.hop_limit,
    )
    return read_frame(codec, RawFrame(header, event.payload, ())).frame


def input_of(event: Event, codec: Codec, fresh: str = "") -> Input:
    """What a row means to the core; ``fresh`` is the credential that was issued because of it. Raises TraceError."""
    kind, link = event.kind, event.link
    try:
        if kind is _FRAME_IN and link is not None:
            return Received(link, frame_of(event, codec), fresh)
        if kind is Kind.LINK_UP and link is not None:
            return _decode_link_up(link, event.payload)
        if kind is Kind.LINK_DOWN and link is not None:
            return LinkDown(link)
        if kind is Kind.TIMER:
            return TimerFired(event.msg_id)
        if kind is Kind.OPERATOR:
            return _decode_command(event.payload)
        if kind is Kind.POLICY:
            return PolicyChanged(decode_policy(event.payload))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, IndexError) as problem:
        raise TraceError(f"row {event.sequence} cannot be read: {problem}") from problem
    raise TraceError(f"row {event.sequence}: {kind.value} without a link")
