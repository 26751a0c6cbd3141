"""What can wait, and what is long, leaves over many turns: whoever asks for little need not wait for it.

Handing a frame to the operating system takes longer than deciding where it goes, and a broadcast does it once per
recipient. So frames of other sub-protocols, and whatever is long, are kept by their connections and go out here, some
per turn, one connection after the other. While the hub has something to decide they wait a few turns more: then what
many have sent leaves with one write per connection. A connection over which something comes in goes first: its answers
have to leave behind what is kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

LONG = 64 * 1024
_BYTES_PER_TURN = 256 * 1024
_LEAST_WRITE = 8 * 1024
"""Bytes that a write counts at least: it takes as much time as so many."""
_MOST_PUT_OFF = 4
"""Turns."""


class Keeper(Protocol):
    """A connection that keeps bytes which have to be sent."""

    def write_kept(self, most: int) -> int:
        """Write so many of them, rather a piece more than less; how many it wrote, fewer only if none is left."""


class Outlet:
    """Lets out what is kept, turn by turn."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        self._is_busy = is_busy
        """Whether the hub has something to decide."""
        self._loop = asyncio.get_running_loop()
        self._waiting: OrderedDict[Keeper, None] = OrderedDict()
        self._put_off = 0

    def enlist(self, keeper: Keeper) -> None:
        """A connection begins to keep bytes."""
        if not self._waiting:
            self._put_off = 0
            self._loop.call_soon(self._take_turn)
        self._waiting[keeper] = None

    def prefer(self, keeper: Keeper) -> None:
        """Let out first what this one keeps."""
        self._waiting.move_to_end(keeper, last=False)

    def _take_turn(self) -> None:
        if self._put_off < _MOST_PUT_OFF and self._is_busy():
            self._put_off += 1
        else:
            self._put_off = _MOST_PUT_OFF
            self._let_out()
        if self._waiting:
            self._loop.call_soon(self._take_turn)

    def _let_out(self) -> None:
        left = _BYTES_PER_TURN
        while self._waiting and left > 0:
            keeper = next(iter(self._waiting))
            most, written = left, keeper.write_kept(left)
            if written < most:
                del self._waiting[keeper]
            left -= max(written, _LEAST_WRITE) if written else 0
