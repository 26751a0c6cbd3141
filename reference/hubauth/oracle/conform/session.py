"""Random sequences over several connections, compared with the core after every step and shrunk when they differ.

Every sequence uses names that the hub under test has never heard, so sequences do not disturb
each other although the hub keeps its state. Hypothesis makes the sequences; leaving moves out is done here, since that
is all there is to shrink and every try costs a conversation with a live hub.
"""

from collections.abc import Sequence
from contextlib import suppress

from attrs import evolve, frozen
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from hubauth.oracle.conform.moves import MOVES, SIZE, Cast, Move
from hubauth.oracle.conform.problems import TooSlow, Violated
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.conform.world import World

_SHORTEST, _LONGEST = 12, 48
_OFTEN = ("register", "authenticate", "answer", "hub announces")
_TRIES = 200
"""Sequences played in order to find a shorter one."""


@frozen
class Failure:
    """A sequence after which the hub under test and the core differ, as short as it could be made."""

    moves: tuple[Move, ...]
    world: World
    violated: Violated
    repeats: bool = True
    """Whether it was seen again when everything had all the time it may take."""


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

    def play(self, moves: Sequence[Move]) -> None:
        """Raises Violated."""
        self.sequences += 1
        world = World(self._subject)
        cast = Cast(world)
        try:
            for move in moves:
                cast.make(move)
        except Violated as violated:
            self.failure = Failure(tuple(moves), world, violated)
            raise
        except TooSlow:
            return
        finally:
            self.steps += cast.steps
            world.close()

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
                if not self._fails(moves[:at] + moves[at + size :]):
                    at += size
            size //= 2

    def _fails(self, moves: Sequence[Move]) -> bool:
        try:
            self.play(moves)
        except Violated:
            return True
        return False

    def result(self) -> Explored:
        """What was found: shrunk, and seen once more with all the time that everything may take."""
        if self.failure is not None:
            self._subject.hurried = True
            self.shrink()
            self._subject.hurried = False
            if not self._fails(self.failure.moves):
                self.failure = evolve(self.failure, repeats=False)
        return Explored(self.sequences, self.steps, self.failure)


def explore(subject: Subject, *, number: int, examples: int) -> Explored:
    """Play ``examples`` random sequences, the same ones for the same ``number``; on a difference, shrink."""
    explorer = _Explorer(subject)
    names = [name for name, move in MOVES.items() if move.needs <= subject.profile.available]
    names += [name for name in _OFTEN if name in names] * 2
    move = st.tuples(st.sampled_from(names), st.integers(0, SIZE - 1), st.integers(0, SIZE - 1))

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(move, min_size=_SHORTEST, max_size=_LONGEST))
    def sequences(moves: list[Move]) -> None:
        explorer.play(moves)

    try:
        with suppress(Violated):
            sequences()
        return explorer.result()
    except Unreachable as problem:
        return Explored(explorer.sequences, explorer.steps, trouble=str(problem))
