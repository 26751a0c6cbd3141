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

    ``version`` None means: as the first frame of the connection shows. What was taken in is cut when it is asked for,
    one frame at a time; of a frame that is not complete never more than a header and the larger limit is held.
    """

    def __init__(self, version: Version | None = None, limits: Limits | None = None) -> None:
        self._version = version
        self._limits = limits or Limits()
        self._first_rules: tuple[str, ...] = () if version else ("WIRE-7",)
        self._data = b""
        """Taken in and not cut yet, from ``_offset`` on."""
        self._offset = 0
        self._held = bytearray()
        """The beginning of a frame that is not complete."""
        self._needed = 0
        self._passing = 0
        """Bytes still to come of a frame that is passed over."""
        self._refused: Refused | None = None
        self.longest_opaque = self._limits.opaque
        """Frames of other sub-protocols with a longer payload are passed over: neither held nor returned."""
        self.passed_over = 0
        """How many frames were."""

    @property
    def version(self) -> Version | None:
        """The header version of this connection; None until the first two bytes have shown it."""
        return self._version

    @property
    def held(self) -> int:
        """How many bytes are held: not cut yet, or of an incomplete frame."""
        return len(self._held) + len(self._data) - self._offset

    @property
    def is_ready(self) -> bool:
        """Whether there is something that was never looked at."""
        return self._offset < len(self._data)

    @property
    def is_within_frame(self) -> bool:
        """Whether a frame has begun that is not complete, held or passed over."""
        return bool(self._held or self._passing)

    def feed(self, data: bytes) -> list[RawFrame | Refused]:
        """Every frame that ``data`` completes, in order.

        A ``Refused`` is always last, and from then on the only answer: the connection has to be closed.
        """
        self.take_in(data)
        frames: list[RawFrame | Refused] = []
        while (frame := self.next()) is not None:
            frames.append(frame)
            if self._refused is not None:
                break
        return frames

    def take_in(self, data: bytes) -> None:
        """Hold these bytes until ``next`` cuts them."""
        if self._refused is not None:
            return
        if self._passing:
            passed = min(self._passing, len(data))
            self._passing -= passed
            data = data[passed:]
        if self._held:
            # A frame costs at most three of these copies (start, header, whole), however small the reads are.
            self._held += data
            if len(self._held) >= self._needed:
                self._data, self._offset = bytes(self._held), 0
                self._held.clear()
        else:
            self._data = self._data[self._offset :] + data if self.is_ready else data
            self._offset = 0

    def next(self) -> RawFrame | Refused | None:
        """The next frame; None until more is taken in; a ``Refused`` from then on for ever."""
        while self._refused is None and self._offset < len(self._data):
            frame = self._cut()
            if frame is not None:
                return frame
        if self._refused is not None:
            self.forget()
        return self._refused

    def forget(self) -> None:
        """Let go of everything that was taken in: nobody will ask for it."""
        self._data, self._offset = b"", 0
        self._held.clear()

    def _cut(self) -> RawFrame | None:
        """The frame that starts here. None: it was passed over, refused, or put aside because it is not complete."""
        header = self._header()
        if header is None:
            return None
        size = header.payload_length
        start = self._offset + header.length
        end = start + size
        if header.sub_proto != SUB_PROTO and size > self.longest_opaque:
            self._passing = max(end - len(self._data), 0)
            self._offset = min(end, len(self._data))
            self.passed_over += 1
            return None
        if end > len(self._data):
            self._put_aside(end - self._offset)
            return None
        rules = header.rules
        if self._first_rules:
            rules, self._first_rules = rules + self._first_rules, ()
        self._offset = end
        return RawFrame(header, self._data[start:end], rules)

    def _header(self) -> Header | None:
        """The header that starts here. None: it was refused, or put aside because it is not complete."""
        data, offset = self._data, self._offset
        available = len(data) - offset
        version = self._version
        if version is None:
            if available < len(MAGIC_BYTES):
                self._put_aside(len(MAGIC_BYTES))
                return None
            version = self._version = Version.V2 if data.startswith(MAGIC_BYTES, offset) else Version.V1
        header: Header | Refused
        if version is Version.V1:
            if available < V1_LENGTH:
                self._put_aside(V1_LENGTH)
                return None
            header = decode_v1(data, offset)
        elif available < V2_LENGTH:
            # A wrong start is refused before the header is complete: the rest of it may never come.
            if available >= _V2_START_LENGTH:
                self._refused = refuse_v2(data, offset)
            self._put_aside(V2_LENGTH if available >= _V2_START_LENGTH else _V2_START_LENGTH)
            return None
        else:
            header = decode_v2(data, offset)
        if isinstance(header, Refused):
            self._refused = header
            return None
        limit = self._limits.auth if header.sub_proto == SUB_PROTO else self._limits.opaque
        if header.payload_length > limit:
            self._refused = Refused("WIRE-6", f"payload of {header.payload_length} bytes, limit {limit}")
            return None
        return header

    def _put_aside(self, needed: int) -> None:
        """Hold what is left until there are ``needed`` bytes of it."""
        self._needed = needed
        self._held += self._data[self._offset :] if self._offset else self._data
        self._data, self._offset = b"", 0


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


def encode_frame(version: Version, codec: Codec, frame: Frame, now: int = 0) -> bytes:
    """The frame's bytes. A body the dialect has no words for, or a ``Malformed`` one, raises ``NotInDialect``.

    ``now`` goes into the header of what a hub says itself, and of what came without a time.
    """
    body = frame.body
    payload = body if isinstance(body, bytes) else codec.encode(body)
    timestamp = now if now and (frame.sub_proto == SUB_PROTO or not frame.timestamp) else frame.timestamp
    encode = encode_v1 if version is Version.V1 else encode_v2
    return encode(frame, len(payload), timestamp) + payload
