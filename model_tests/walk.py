"""Random walks over the events of ``world`` and ``among_liars``, by a seed and without Hypothesis: fast enough."""

import random
from collections.abc import Sequence
from typing import Any

from hubauth.core.policy import Dialect
from model_tests import among_liars, races
from model_tests.among_liars import Liars
from model_tests.exercised import Tally
from model_tests.trees import SHAPES, T
from model_tests.world import FLAT_EVENTS, World

DIALECTS = (Dialect.AUTH, Dialect.AUTH, Dialect.LOGIN, Dialect.FLAT)
_OFTEN = {
    "deliver": 14,
    "connect": 3,
    "register": 4,
    "authenticate": 6,
    "revoke": 2,
    "bounce": 2,
    "bounce_and_leave": 3,
    "revoke_while_searching": 3,
    "miss_an_invalidation": 2,
    "speak": 3,
    "answer": 3,
    "enter": 2,
    "disturb_who_waits": 2,
}


class RandomPick:
    """Choices by a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, options: Sequence[T]) -> T:
        return options[int(self._random.random() * len(options))]


def _weighted(names: set[str]) -> list[str]:
    return [name for name in sorted(names) for _ in range(_OFTEN.get(name, 1))]


def walk(seed: int, steps: int = 60, tally: Tally | None = None) -> None:
    """One walk of a network to its end; raises AssertionError where something does not hold."""
    pick = RandomPick(seed)
    dialect = DIALECTS[seed % len(DIALECTS)]
    names = _weighted(FLAT_EVENTS if dialect is Dialect.FLAT else set(races.EVENTS))
    subject = World(pick(SHAPES), dialect, pick, tally or Tally())
    for _ in range(steps):
        races.EVENTS[pick(names)](subject, pick)
    subject.finish()


def walk_among_liars(seed: int, steps: int = 60, tally: Tally | None = None) -> None:
    """The same for one hub that anything is said to."""
    pick = RandomPick(seed)
    names = _weighted(set(among_liars.EVENTS))
    subject = Liars(pick, tally or Tally())
    for _ in range(steps):
        among_liars.EVENTS[pick(names)](subject, pick)
    subject.finish()


WALKS: tuple[Any, ...] = (walk, walk_among_liars)
