"""Bytes to frames and back, without I/O.

``FrameDecoder`` cuts a stream into raw frames; ``read_frame`` turns a raw frame into the ``Frame`` the core knows;
``encode_frame`` is the way back. All three are pure apart from the decoder's own buffer.
"""

import msgspec

from hubauth.core.messages import SUB_PROTO, Body, Frame, Malformed
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.header import (
    FLAG_COMPRESSED,
    MAGIC_BYTES,
    V1_LENGTH,
    V2_LENGTH,
    Header,
    Refused,
    Version,
    decode_v1,
    decode_v2,
    encode_v1,
    encode_v2,
    refuse_v2,
)

DEFAULT_LIMIT = 64 * 1024
DEFAULT_OPAQUE_LIMIT = 1024 * 1024

_V2_START_LENGTH = 4
_COMPRESSED = Malformed(None, "compressed payload")


class Limits(msgspec.Struct, frozen=True):
    """The largest payloads accepted, in bytes: of SubProto 2, and of every other sub-protocol."""

    auth: int = DEFAULT_LIMIT
    opaque: int = DEFAULT_OPAQUE_LIMIT


class RawFrame(msgspec.Struct, frozen=True):
    """A header and its payload, not looked into. ``rules`` are those that cut it out of the stream."""

    header: Header
    payload: bytes
    rules: tuple[str, ...]


class FrameDecoder:
    """Cuts one connection's bytes into frames; the cuts between reads make no difference.

    ``version`` None means: as the first frame of the connection shows. Between two calls at most one incomplete frame
    is held, so never more than a header and the larger limit.
    """

    def __init__(self, version: Version | None = None, limits: Limits | None = None) -> None:
        self._version = version
        self._limits = limits or Limits()
        self._first_rules: tuple[str, ...] = () if version else ("WIRE-7",)
        self._held = bytearray()
        self._needed = 0
        self._refused: Refused | None = None

    @property
    def version(self) -> Version | None:
        """The header version of this connection; None until the first two bytes have shown it."""
        return self._version

    @property
    def held(self) -> int:
        """How many bytes of an incomplete frame are held."""
        return len(self._held)

    def feed(self, data: bytes) -> list[RawFrame | Refused]:
        """Every frame that ``data`` completes, in order.

        A ``Refused`` is always last, and from then on the only answer: the connection has to be closed.
        """
        if self._refused is not None:
            return [self._refused]
        if self._held:
            # A frame costs at most three of these copies (start, header, whole), however small the reads are.
            self._held += data
            if len(self._held) < self._needed:
                return []
            data = bytes(self._held)
            self._held.clear()
        frames: list[RawFrame | Refused] = []
        offset = self._cut(data, frames)
        if self._refused is not None:
            frames.append(self._refused)
        elif offset < len(data):
            self._held += data[offset:] if offset else data
        return frames

    def _cut(self, data: bytes, frames: list[RawFrame | Refused]) -> int:
        """Append the frames of ``data``; returns where the first incomplete one starts, with ``_needed`` set for it."""
        size = len(data)
        offset = 0
        if self._version is None:
            if size < len(MAGIC_BYTES):
                self._needed = len(MAGIC_BYTES)
                return 0
            self._version = Version.V2 if data.startswith(MAGIC_BYTES) else Version.V1
        is_v1 = self._version is Version.V1
        header_length = V1_LENGTH if is_v1 else V2_LENGTH
        limits = self._limits
        while True:
            available = size - offset
            if available < header_length:
                self._needed = header_length
                if not is_v1:
                    self._check_start(data, offset, available)
                return offset
            header = decode_v1(data, offset) if is_v1 else decode_v2(data, offset)
            if isinstance(header, Refused):
                self._refused = header
                return offset
            limit = limits.auth if header.sub_proto == SUB_PROTO else limits.opaque
            if header.payload_length > limit:
                self._refused = Refused("WIRE-6", f"payload of {header.payload_length} bytes, limit {limit}")
                return offset
            start = offset + header.length
            end = start + header.payload_length
            if end > size:
                self._needed = end - offset
                return offset
            rules = header.rules
            if self._first_rules:
                rules, self._first_rules = rules + self._first_rules, ()
            frames.append(RawFrame(header, data[start:end], rules))
            offset = end

    def _check_start(self, data: bytes, offset: int, available: int) -> None:
        """Refuse a wrong version 2 header by its first four bytes: the rest of it may never come."""
        if available >= _V2_START_LENGTH:
            self._refused = refuse_v2(data, offset)
        else:
            self._needed = _V2_START_LENGTH


class ReadFrame(msgspec.Struct, frozen=True):
    """A frame as the core takes it, and the rules that read its payload."""

    frame: Frame
    rules: tuple[str, ...]


def read_frame(codec: Codec, raw: RawFrame) -> ReadFrame:
    """The frame with its payload read by ``codec`` if it is SubProto 2, else left opaque. Never raises."""
    header = raw.header
    if header.sub_proto != SUB_PROTO:
        return ReadFrame(_frame(header, raw.payload), ("WIRE-8",))
    if header.flags & FLAG_COMPRESSED:
        return ReadFrame(_frame(header, _COMPRESSED), ("WIRE-9",))
    decoded = codec.decode(raw.payload, header.major)
    return ReadFrame(_frame(header, decoded.body), decoded.rules)


def _frame(header: Header, body: Body) -> Frame:
    return Frame(
        body,
        header.major,
        header.msg_id,
        header.source,
        header.target,
        header.sub_proto,
        header.trace_id,
        header.hop_limit,
        header.flags,
        header.timestamp,
    )


def encode_frame(version: Version, codec: Codec, frame: Frame) -> bytes:
    """The frame's bytes. A body the dialect has no words for, or a ``Malformed`` one, raises ``NotInDialect``."""
    body = frame.body
    payload = body if isinstance(body, bytes) else codec.encode(body)
    header = encode_v1(frame, len(payload)) if version is Version.V1 else encode_v2(frame, len(payload))
    return header + payload
