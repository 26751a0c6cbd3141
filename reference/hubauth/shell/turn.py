"""Who is served when: one budget per turn of the event loop, and the cheapest connection first.

A connection only keeps what it has read and enlists. Once per turn the connections that wait are served, a slice at a
time, until the turn's milliseconds or bytes are spent; the rest goes on in the next turn, after the event loop has
looked at everybody's sockets again. First comes whoever has cost the hub least. So a peer that asks for little is
served at once, however much others ask for. Who is likely to cost more than is left of the turn waits until the
answers of those before it have left. Nobody who waits is passed over for good: who comes back has saved at most two
turns, times its weight, and few if that is large.
"""

import asyncio
import logging
from collections.abc import Callable
from heapq import heappop, heappush
from time import perf_counter, thread_time
from typing import Protocol

from hubauth.shell.observe import say

_SLICES = 4
"""A turn is worth so many slices: the last slice may overrun it by a part, not by a whole turn."""
_SAVED, _MOST_SAVED = 2, 512
"""Turns that a member can save. Times its weight that is more than a frame costs: else all who come back would be
counted alike, whatever they cost. But nobody is served for more turns than the second number says because of that."""
_SECONDS_PER_BYTE = 1e-9
"""What a byte costs that is written later, when nobody measures it."""
_OVERLOAD_PAUSE = 0.005


class Member(Protocol):
    """A connection that can be served."""

    enlisted: bool
    cost: float
    """Seconds of the hub's time that this member has had."""
    burden: float
    """How many it is likely to have next: the most that it has had lately."""

    @property
    def weight(self) -> float:
        """How many times its fair share it gets."""

    @property
    def wants_a_turn(self) -> bool:
        """Whether something waits that can be handled now."""

    def serve(self, until: float, most: int) -> int:
        """Handle what waits until the clock says so, or so many bytes, at least one frame; how many bytes it moved."""

    def fail(self, problem: Exception) -> None:
        """Close the connection, because serving it has raised, which is a bug."""


class Turns:
    """Serves those who are enlisted, turn by turn."""

    def __init__(
        self, seconds: float, most: int, is_overloaded: Callable[[], bool], at_end: Callable[[], None]
    ) -> None:
        self._seconds, self._most = seconds, most
        self._is_overloaded, self._at_end = is_overloaded, at_end
        self.clock = perf_counter
        self._worked = thread_time
        """For the account: what the machine does meanwhile for others is nobody's fault. Too dear to ask often."""
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[float, int, Member]] = []
        self._number = 0
        """Among those who have cost the same, whoever came first."""
        self.floor = 0.0
        """What those who are served now have cost before; never falls."""
        self._scheduled = False

    @property
    def waiting(self) -> int:
        """How many wait to be served."""
        return len(self._waiting)

    def enlist(self, member: Member) -> None:
        """Serve a member soon; once, however often it is enlisted before."""
        if not member.enlisted:
            member.enlisted = True
            saved = self._seconds * min(_SAVED * member.weight, _MOST_SAVED / member.weight)
            member.cost = max(member.cost, self.floor - saved)
            self._push(member)
            if not self._scheduled:
                self._scheduled = True
                self._loop.call_soon(self._take_turn)

    def _push(self, member: Member) -> None:
        self._number += 1
        heappush(self._waiting, (member.cost, self._number, member))

    def _take_turn(self) -> None:
        try:
            self._serve_some()
            self._at_end()
        finally:
            self._scheduled = bool(self._waiting)
            if self._scheduled:
                self._loop.call_later(_OVERLOAD_PAUSE if self._is_overloaded() else 0, self._take_turn)

    def _serve_some(self) -> None:
        now = self._worked()
        end, left = now + self._seconds, self._most
        some = False
        while self._waiting and now < end and left > 0 and not self._is_overloaded():
            if some and self._waiting[0][2].burden > end - now:
                break  # the answers of those who were served leave before this one is begun
            cost, _, member = heappop(self._waiting)
            self.floor = max(self.floor, cost)
            moved = self._serve(member)
            left -= moved
            begun, now, some = now, self._worked(), True
            member.burden = max(member.burden / 2, now - begun)
            member.cost += (now - begun + moved * _SECONDS_PER_BYTE) / member.weight
            member.enlisted = member.wants_a_turn
            if member.enlisted:
                self._push(member)

    def _serve(self, member: Member) -> int:
        try:
            return member.serve(self.clock() + self._seconds / _SLICES, self._most // _SLICES)
        except Exception as problem:
            say(logging.CRITICAL, "turn_failed", error=problem)
            member.fail(problem)
            return 0
