"""Random sequences over several connections, compared with the core after every step and shrunk when they differ.

Every sequence uses names that the hub under test has never heard, so sequences do not disturb
each other although the hub keeps its state. A hub is no function: what it did once it need not do again, so a sequence
that failed is played again to say how often it does.
"""

from collections.abc import Sequence
from random import Random

from attrs import evolve, frozen

from hubauth.oracle.conform.moves import MOVES, SIZE, Cast, Move
from hubauth.oracle.conform.problems import TooSlow, Violated
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.conform.world import World

_SHORTEST, _LONGEST = 12, 48
_OFTEN = ("register", "authenticate", "answer", "hub announces")
AGAIN = 3
_TRIES = 200
"""Sequences played in order to find a shorter one."""


@frozen
class Failure:
    """A sequence after which the hub under test and the core differ, as short as it could be made."""

    moves: tuple[Move, ...]
    world: World
    violated: Violated
    again: int = 0
    """How often the same sequence failed, of ``AGAIN`` times that it was played with all the time it may take."""


@frozen
class Explored:
    """What random sequences have shown."""

    sequences: int
    steps: int
    failure: Failure | None = None
    trouble: str = ""
    """Why it ended early."""


class _Explorer:
    """Plays sequences and keeps the last one that failed."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.sequences = self.steps = 0
        self.failure: Failure | None = None

    def fails(self, moves: Sequence[Move]) -> bool:
        """Play a sequence; whether the hub differs. Raises Unreachable."""
        self.sequences += 1
        world = World(self._subject)
        cast = Cast(world)
        try:
            for move in moves:
                cast.make(move)
        except Violated as violated:
            self.failure = Failure(tuple(moves), world, violated)
            return True
        except TooSlow:
            return False
        finally:
            self.steps += cast.steps
            world.close()
        return False

    def shrink(self) -> None:
        """Leave moves out, many at once and then one by one, as long as the rest still fails."""
        assert self.failure is not None
        last = self.sequences + _TRIES
        size = len(self.failure.moves)
        while size > 0:
            size = min(size, len(self.failure.moves))
            at = 0
            while at < len(self.failure.moves) and self.sequences < last:
                moves = self.failure.moves
                if not self.fails(moves[:at] + moves[at + size :]):
                    at += size
            size //= 2

    def make_short(self) -> None:
        """Shrink what failed, and count how often it does when everything has all the time that it may take."""
        self._subject.hurried = True
        self.shrink()
        self._subject.hurried = False
        shortest = self.failure
        assert shortest is not None
        again = sum(self.fails(shortest.moves) for _ in range(AGAIN))
        self.failure = evolve(shortest, again=again)


def explore(subject: Subject, *, number: int, examples: int) -> Explored:
    """Play ``examples`` random sequences, the same ones for the same ``number``; on a difference, shrink."""
    explorer, draw = _Explorer(subject), Random(number)
    names = [name for name, move in MOVES.items() if move.needs <= subject.profile.available]
    names += [name for name in _OFTEN if name in names] * 2
    trouble = ""
    try:
        for _ in range(examples):
            length = draw.randint(_SHORTEST, _LONGEST)
            moves = [(draw.choice(names), draw.randrange(SIZE), draw.randrange(SIZE)) for _ in range(length)]
            if explorer.fails(moves):
                explorer.make_short()
                break
    except Unreachable as problem:
        trouble = str(problem)
    return Explored(explorer.sequences, explorer.steps, explorer.failure, trouble)
