"""What leaves over one connection: put by the engine, sealed and released with its batch, written at once or kept.

What can wait or is long is kept and leaves little by little (``hubauth.shell.outlet``); nothing overtakes what is kept.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from hubauth.shell.observe import Observer
from hubauth.shell.outlet import LONG, Outlet

CLOSE = b""
"""In the place of a frame: close after what was put before. No frame is empty."""


class Outgoing:
    """The bytes of one connection that have not been handed to its transport."""

    def __init__(self, outlet: Outlet, observer: Observer, on_written: Callable[[], None]) -> None:
        self._outlet, self._observer, self._on_written = outlet, observer, on_written
        self.transport: asyncio.Transport | None = None
        self._put: list[bytes] = []
        self._sealed: list[bytes] = []
        self._put_can_wait = self._sealed_can_wait = True
        """Whether all of it can."""
        self.unreleased = 0
        """Bytes that were put and not released."""
        self._kept: deque[bytes | memoryview] = deque()
        self.kept_size = 0
        """Bytes that were released and have to leave little by little."""

    @property
    def is_kept(self) -> bool:
        """Whether something was released that has to leave little by little."""
        return bool(self._kept)

    @property
    def is_unreleased(self) -> bool:
        """Whether something was put that is not released."""
        return bool(self._put or self._sealed)

    @property
    def waiting(self) -> int:
        """Bytes that were released and that the operating system has not taken."""
        return self.kept_size + (0 if self.transport is None else self.transport.get_write_buffer_size())

    def put(self, data: bytes, *, can_wait: bool) -> bool:
        """Add to the batch; whether that is its first."""
        self._put.append(data)
        self._put_can_wait &= can_wait
        self.unreleased += len(data)
        return len(self._put) == 1

    def seal(self) -> None:
        self._sealed, self._put = self._put, []
        self._sealed_can_wait, self._put_can_wait = self._put_can_wait, True

    def release(self) -> bool:
        """Send the sealed batch. Returns whether it held anything and the connection is still open."""
        frames, self._sealed = self._sealed, []
        size = sum(map(len, frames))
        self.unreleased -= size
        if self.transport is None or not frames:
            return False
        if self._sealed_can_wait or self.kept_size + size > LONG:
            self._keep(frames, size)
        elif self._kept:
            self._keep(frames, size)
            self.write_kept(self.kept_size)
        else:
            data = frames[0] if len(frames) == 1 else b"".join(frames)
            self.write(self.transport, data, closes=frames[-1] == CLOSE)
        return True

    def _keep(self, frames: list[bytes], size: int) -> None:
        if not self._kept:
            self._outlet.enlist(self)
        for frame in frames:
            if len(frame) > LONG:
                whole = memoryview(frame)
                self._kept.extend(whole[at : at + LONG] for at in range(0, len(frame), LONG))
            else:
                self._kept.append(frame)
        self.kept_size += size

    def prefer(self) -> None:
        """Let what is kept leave before what others keep."""
        if self._kept:
            self._outlet.prefer(self)

    def close_after_kept(self) -> None:
        """Close when all that is kept has left."""
        self._kept.append(CLOSE)

    def write_kept(self, most: int) -> int:
        """Write about so many bytes of what is kept, and close if that is the end; how many bytes that was."""
        pieces, written = [], 0
        while self._kept and (written < most or self._kept[0] == CLOSE):
            piece = self._kept.popleft()
            pieces.append(piece)
            written += len(piece)
        self.kept_size -= written
        if self.transport is None:
            self._kept.clear()
            return 0
        if pieces:
            self.write(self.transport, b"".join(pieces), closes=not pieces[-1])
        return written

    def write(self, transport: asyncio.Transport, data: bytes, *, closes: bool) -> None:
        """Hand bytes to the transport, and close it if these are the last."""
        transport.write(data)
        self._observer.count("bytes_sent", by=len(data))
        if closes:
            transport.close()
        else:
            self._on_written()
