"""One connection of this tool: blocking, with patience, every frame kept as it came."""

import json
import socket
import struct
import time
from contextlib import suppress
from typing import Any, Self

from attrs import field, frozen

from hubauth.core.messages import SUB_PROTO, Frame
from hubauth.oracle.conform.witness import Line, Witness
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.framing import FrameDecoder, Limits, RawFrame, read_frame
from hubauth.wire.header import Refused, Version, encode_v1, encode_v2

_LIMITS = Limits(16 * 1024 * 1024, 16 * 1024 * 1024)
"""Not the hub's limits: whatever it sends is looked at."""
_AT_ONCE = struct.pack("ii", 1, 0)


_SLICE = 0.05


class Patience:
    """Seconds to wait for the hub under test. They pass only while this tool runs, not while it is stopped itself."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    @property
    def is_over(self) -> bool:
        return self._left <= 0

    @property
    def slice(self) -> float:
        """For how long to wait next."""
        return max(min(self._left, _SLICE), 0.0001)

    def spend(self, seconds: float) -> None:
        """So much was waited; more than a slice only if this tool was held up."""
        self._left -= min(seconds, _SLICE)


class Unreachable(Exception):
    """The hub under test cannot be connected to: no verdict about any rule."""


def write_frame(version: Version, fields: Frame, payload: bytes) -> bytes:
    """A frame with any payload at all."""
    return (encode_v1 if version is Version.V1 else encode_v2)(fields, len(payload)) + payload


@frozen
class Seen:
    """A frame that the hub under test sent."""

    frame: Frame
    payload: bytes
    version: Version = Version.V1
    rules: tuple[str, ...] = ()
    """By which it was read."""
    reserved: int = 0
    """What stood in Reserved (version 1) or RouteFlags (version 2)."""

    @property
    def json(self) -> Any:
        """The payload as JSON; None if it is none, or of another sub-protocol."""
        if self.frame.sub_proto != SUB_PROTO:
            return None
        try:
            return json.loads(self.payload)
        except ValueError:
            return None


@frozen
class Closed:
    """The hub under test has closed the connection; ``garbage``: what it sent before could not be read."""

    garbage: str = field(default="")


class Wire:
    """One connection. ``read`` gives what came, in order; after the end always the same ``Closed``."""

    def __init__(self, connected: socket.socket, version: Version, codec: Codec, line: Line | None = None) -> None:
        self._socket = connected
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.version = version
        self._codec = codec
        self._decoder = FrameDecoder(version, _LIMITS)
        self._frames: list[Seen] = []
        self._line = line
        """Whoever watches over the promises hears what passes; nobody does once it is None."""
        self._is_finished = False
        self.closed: Closed | None = None
        self.extended = False
        """Whether both ends speak the extension on it."""
        self.behind_late = False
        """Whether the last revoke that came was a late consequence of an earlier case."""

    @classmethod
    def connect(
        cls, host: str, port: int, version: Version, codec: Codec, seconds: float, witness: Witness | None = None
    ) -> Self:
        """Raises Unreachable. A ``witness`` is shown all that is said."""
        try:
            connected = socket.create_connection((host, port), timeout=seconds)
        except OSError as problem:
            raise Unreachable(f"cannot connect to {host}:{port}: {problem.strerror or problem}") from problem
        return cls(connected, version, codec, None if witness is None else witness.meet(version))

    def write(self, data: bytes) -> None:
        """Send bytes; a connection that is gone shows when it is read."""
        self._socket.settimeout(10.0)
        if self._line is not None:
            self._line.told(data)
        try:
            self._socket.sendall(data)
        except OSError:
            return

    def read(self, patience: Patience) -> Seen | Closed | None:
        """The next frame; None if there is none while the patience lasts."""
        while not self._frames:
            if self.closed is not None:
                return self.closed
            began = time.monotonic()
            self._socket.settimeout(patience.slice)
            try:
                data = self._socket.recv(65536)
            except (TimeoutError, BlockingIOError):
                patience.spend(max(patience.slice, time.monotonic() - began))
                if patience.is_over:
                    return None
                continue
            except OSError:
                data = b""
            patience.spend(time.monotonic() - began)
            if not data:
                self.closed = Closed()
                self._end(by_hub=not self._is_finished)
            else:
                self._take(data)
        return self._frames.pop(0)

    def peek(self, seconds: float) -> Seen | Closed | None:
        """What ``read`` would give; None if nothing comes in this time."""
        got = self.read(Patience(seconds))
        if isinstance(got, Seen):
            self._frames.insert(0, got)
        return got

    def fileno(self) -> int:
        """For ``select``."""
        return self._socket.fileno()

    def is_gone(self) -> bool:
        """Whether the connection is closed and everything from before that was taken."""
        if self.closed is not None:
            return True
        self._socket.setblocking(False)
        try:
            return not self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _take(self, data: bytes) -> None:
        for raw in self._decoder.feed(data):
            if isinstance(raw, Refused):
                self.closed = Closed(f"not a frame: {raw.detail}")
                return
            self._frames.append(_seen(self._codec, self.version, raw))
            if self._line is not None:
                self._line.said(self._frames[-1].frame)

    def _end(self, *, by_hub: bool) -> None:
        if self._line is not None:
            self._line.ended(by_hub=by_hub)
            self._line = None

    def finish(self) -> None:
        """Say that nothing more comes."""
        self._is_finished = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def is_ended(self, patience: Patience) -> bool:
        """Whether the other side ends the connection while the patience lasts; what it says until then is lost."""
        got: Seen | Closed | None = None
        while not isinstance(got, Closed):
            got = self.read(patience)
            if got is None:
                return False
        return True

    def close(self) -> None:
        """End the connection at once: a hub may keep one alive that only says that nothing more comes."""
        if self._socket.fileno() >= 0:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        self._socket.close()
        self._end(by_hub=False)
        self.closed = self.closed or Closed()


def _seen(codec: Codec, version: Version, raw: RawFrame) -> Seen:
    read = read_frame(codec, raw)
    reserved = 1 if "WIRE-4" in raw.rules else 0
    return Seen(read.frame, raw.payload, version, raw.rules + read.rules, reserved)
