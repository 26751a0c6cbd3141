"""What ``target()`` steers the machines towards: rules that random walks seldom reach.

The weights come from a fixed number of walks and not from the run itself: were they to fall as rules are seen, whatever
came first would look best for ever.
"""

from collections.abc import Callable, Iterable
from functools import cache

from model_tests.exercised import Tally

SAMPLE = 40
"""Walks that the weights are taken from."""

Walk = Callable[..., None]


@cache
def weights(walk: Walk) -> dict[str, float]:
    """How much a rule counts that these walks reached: the less, the more often they did."""
    tally = Tally()
    for seed in range(SAMPLE):
        walk(seed, tally=tally)
    return {rule: 1.0 / (1 + count) for rule, count in tally.rules.items()}


def rarity(walk: Walk, rules: Iterable[str]) -> float:
    """How unusual a set of rules is; a rule that no walk reached counts most."""
    known = weights(walk)
    return sum(known.get(rule, 1.0) for rule in rules)
