"""Numbers of the revokes that this tool sends as a neighbouring hub.

A hub acts only on numbers above the last that it has handled from that neighbour, and remembers that one from run to
run. So every run must number higher than all before it, however short they were and however soon it follows. What
all runs share is the clock, counted in ticks since 2025: a run takes only ticks that had not come when it began and
have come when it takes them, each once. Whatever an earlier run took had come before this one began.

A clock that was set back between two runs breaks this, and nothing in the protocol tells what the hub has handled.
``run`` finds out before it blames a hub.
"""

import time
from collections.abc import Callable

_EPOCH = 1_735_689_600
PER_SECOND = 16
"""32 bits of them last until 2033."""
_SIZE = 2**32


class Numbers:
    """The numbers of one run, in ascending order. Takes the time from outside: of day, since whenever, and to wait."""

    def __init__(
        self,
        time_of_day: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._elapsed, self._wait = elapsed, wait
        now = (time_of_day() - _EPOCH) * PER_SECOND
        self._last = int(now)
        self._began = now - elapsed() * PER_SECOND  # read later: held up in between, ticks only seem to come later

    def _tick(self) -> int:
        """The last tick that has come. A clock that is set while the run lasts makes no difference to it."""
        return int(self._began + self._elapsed() * PER_SECOND)

    def take(self) -> int:
        """The next number; waits until its tick has come, which is so at once in a run that has lasted a while."""
        self._last += 1
        while self._tick() < self._last:
            self._wait(1 / PER_SECOND)
        return self._last % _SIZE or self.take()
