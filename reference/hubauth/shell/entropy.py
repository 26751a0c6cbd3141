"""Fresh credentials: 32 random bytes each, as unpadded base64url; and the journal of a new data directory."""

import os
from base64 import urlsafe_b64encode

_BYTES = 32
_AT_ONCE = 64
_JOURNAL_BYTES = 16
_LENGTH = 43
"""What 32 bytes make in base64url, without the padding."""


def draw_journal() -> str:
    """What tells this data directory from every other one."""
    return urlsafe_b64encode(os.urandom(_JOURNAL_BYTES)).decode("ascii").rstrip("=")


class Credentials:
    """Draws from the operating system for many credentials at once: asking it costs more than everything else here."""

    def __init__(self) -> None:
        self._drawn = b""
        self._at = 0

    def draw(self) -> str:
        """A credential that nobody has seen before."""
        if self._at == len(self._drawn):
            self._drawn, self._at = os.urandom(_BYTES * _AT_ONCE), 0
        start, self._at = self._at, self._at + _BYTES
        return urlsafe_b64encode(self._drawn[start : self._at])[:_LENGTH].decode("ascii")
