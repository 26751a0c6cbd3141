"""Long answers and broadcasts leave over many turns of the event loop: whoever asks for little need not wait for them.

Handing a megabyte to the operating system takes longer than deciding a request, and a broadcast does it once per
recipient. So what is long is kept by its connection and goes out here, some of it per turn, one connection after the
other. A connection over which something comes in goes first: its answers have to leave behind what is kept.
"""

import asyncio
from collections import deque
from typing import Protocol

LONG = 64 * 1024
_BYTES_PER_TURN = 256 * 1024


class Keeper(Protocol):
    """Somebody who keeps bytes that have to leave."""

    def write_kept(self, most: int) -> int:
        """Write so many of them, rather a piece more than less; how many it wrote, fewer only if none is left."""


class Outlet:
    """Lets out what is kept, turn by turn."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Keeper] = deque()

    def enlist(self, keeper: Keeper) -> None:
        """Somebody keeps something who did not before."""
        if not self._waiting:
            self._loop.call_soon(self._take_turn)
        self._waiting.append(keeper)

    def prefer(self, keeper: Keeper) -> None:
        """Let out first what this one keeps."""
        self._waiting.remove(keeper)
        self._waiting.appendleft(keeper)

    def _take_turn(self) -> None:
        left = _BYTES_PER_TURN
        while self._waiting and left > 0:
            written = self._waiting[0].write_kept(left)
            left -= written
            if left > 0:
                self._waiting.popleft()
        if self._waiting:
            self._loop.call_soon(self._take_turn)
