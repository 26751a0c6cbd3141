"""Allowances that are used up and come back with time: one number each, the moment until which it is used up."""

from attrs import frozen

_ROUNDING = 1e-6


@frozen
class Rate:
    """``at_once`` of something, and as much again every ``seconds``; nothing at all means: no limit."""

    at_once: float
    seconds: float

    def spend(self, used_until: float, now: float, amount: float = 1.0) -> float:
        """Until when the allowance is used up if this much more is taken."""
        return max(used_until, now) + (amount * self.seconds / self.at_once if self.at_once else 0.0)

    def wait(self, used_until: float, now: float) -> float:
        """How many seconds until no more is taken than is allowed; 0: it is not."""
        behind = used_until - now - self.seconds if self.at_once else 0.0
        return behind if behind > _ROUNDING else 0.0


class Room:
    """Bytes that many connections hold together."""

    def __init__(self, most: int, spared: int) -> None:
        self._most = most
        self._spared = spared
        self.held = 0

    def is_too_small_for(self, held: int) -> bool:
        """Whether a connection that holds so much has to go. Who holds little never has to."""
        return self.held > self._most and held > self._spared
