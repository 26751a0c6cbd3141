"""How many lines about peers are written: so many per peer and event, so that no noise hides another's warning.

What happens to a known device is said once in any case, so that nobody hides a deed behind noise of its own.
"""

import logging
from collections import Counter

LINES_PER_SECOND = 50
"""Below a warning, for all peers together."""
LINES_PER_PEER, LINES_PER_HOST = 5, 50
"""Of one event, within a window. A host can be many peers, and a site behind one address is one host."""
WINDOW_SECONDS = 10
_SUBJECTS = 1000
"""Of one event, devices that have a line of their own within a window, whoever was how loud before."""
_COUNTED = 20_000
"""Peers and hosts that are counted in a window; beyond, warnings share one ration, too."""


class Rations:
    """Decides which lines are written, and counts the others."""

    def __init__(self) -> None:
        self._written: Counter[tuple[str, str]] = Counter()
        self._said_of: dict[str, set[str]] = {}
        """Event -> the devices that had their line."""
        self._left = self._warnings_left = LINES_PER_SECOND
        self._suppressed: Counter[str] = Counter()
        self._seconds = 0

    def allow(self, event: str, level: int, peer: str, subject: str = "") -> bool:
        """Whether a line may be written. An error always may, and the first about a known device, the ``subject``."""
        if level >= logging.ERROR or self._is_first(event, subject):
            return True
        if self._fits_peer(event, peer) and self._fits_all(level, peer):
            return True
        self._suppressed[event] += 1
        return False

    def _is_first(self, event: str, subject: str) -> bool:
        said_of = self._said_of.setdefault(event, set()) if subject else set()
        if not subject or subject in said_of or len(said_of) >= _SUBJECTS:
            return False
        said_of.add(subject)
        return True

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
            self._said_of.clear()
        suppressed, self._suppressed = dict(self._suppressed), Counter()
        return suppressed
