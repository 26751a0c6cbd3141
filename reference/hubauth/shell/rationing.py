"""How many lines about peers are written: so many per peer and event, so that no noise hides another's warning."""

import logging
from collections import Counter

LINES_PER_SECOND = 50
"""Below a warning, for all peers together."""
LINES_PER_PEER, LINES_PER_HOST = 5, 50
"""Of one event, within a window. A host can be many peers, and a site behind one address is one host."""
WINDOW_SECONDS = 10
_COUNTED = 20_000
"""Peers and hosts that are counted in a window; beyond, warnings share one ration, too."""


class Rations:
    """Decides which lines are written, and counts the others."""

    def __init__(self) -> None:
        self._written: Counter[tuple[str, str]] = Counter()
        self._left = self._warnings_left = LINES_PER_SECOND
        self._suppressed: Counter[str] = Counter()
        self._seconds = 0

    def allow(self, event: str, level: int, peer: str) -> bool:
        """Whether a line may be written; an error always may."""
        if level >= logging.ERROR or (self._fits_peer(event, peer) and self._fits_all(level, peer)):
            return True
        self._suppressed[event] += 1
        return False

    def _fits_peer(self, event: str, peer: str) -> bool:
        for name, most in ((peer, LINES_PER_PEER), (peer.rpartition(":")[0], LINES_PER_HOST)):
            if name:
                key = event, name
                if self._written[key] >= most:
                    return False
                if len(self._written) < _COUNTED or key in self._written:
                    self._written[key] += 1
        return True

    def _fits_all(self, level: int, peer: str) -> bool:
        if level < logging.WARNING:
            self._left -= 1
            return self._left >= 0
        if peer and len(self._written) >= _COUNTED:
            self._warnings_left -= 1
            return self._warnings_left >= 0
        return True

    def second(self) -> dict[str, int]:
        """A second has passed; which events were left out since this was last asked, and how often."""
        self._left = self._warnings_left = LINES_PER_SECOND
        self._seconds += 1
        if self._seconds % WINDOW_SECONDS == 0:
            self._written.clear()
        suppressed, self._suppressed = dict(self._suppressed), Counter()
        return suppressed
