"""When a generation of the journal ends only because it names credentials that were revoked everywhere."""

import asyncio
from collections.abc import Callable

FORGET_SECONDS = 1.0
PAUSES = 20
"""A snapshot that is taken only to forget comes after a pause of so many times the last one's duration."""


class Forgetting:
    """Asks for a snapshot after a short wait, since revokes seldom come alone, and a pause after the last one."""

    def __init__(self, loop: asyncio.AbstractEventLoop, forget: Callable[[], None]) -> None:
        self._loop = loop
        self._forget = forget
        self._not_before = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_due(self) -> bool:
        """Whether something is to be forgotten."""
        return self._timer is not None

    def soon(self) -> None:
        """The journal names a credential only because a revoke did, and that is acknowledged."""
        if self._timer is None:
            self._timer = self._loop.call_at(max(self._loop.time() + FORGET_SECONDS, self._not_before), self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._forget()

    def rest(self, seconds: float) -> None:
        """A snapshot has taken so long."""
        self._not_before = self._loop.time() + PAUSES * seconds

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
