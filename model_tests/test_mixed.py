"""Random walks through trees with hubs that speak the documents alone, judged by the promises."""

import os
from collections import Counter

import pytest

from hubauth.core.policy import Dialect
from model_tests.mixed_mistakes import MISTAKES, MixedMistake
from model_tests.mixed_walk import MSG_IDS, SHAPES, walk

SEEDS = {"dev": 1, "ci": 6, "long": 300}[os.environ.get("HYPOTHESIS_PROFILE", "dev")]
"""Walks in each shape and dialect; how answers are numbered takes turns."""
TRIES = 80
"""Walks within which a mistake must be found."""
FOUND = (
    (9, "plain above and below", "echo"),
    (11, "plain above and below", "reordered"),
    (501, "plain above and below", "zero"),
    (506, "plain above plain above ours", "reordered"),
    (8, "plain below plain", "reordered"),
)
"""Walks that once ended badly, in ``auth``."""
PLAIN_RULES = {
    "FRAME-25",
    "FRAME-26",
    "AUTH-32",
    "AUTH-33",
    "REV-11",
    "REV-22",
    "REV-23",
    "REV-24",
    "REV-25",
    "TRUST-9",
}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_promised_beside_plain_hubs(dialect: Dialect) -> None:
    rules, seen = set[str](), Counter[str]()
    for at, shape in enumerate(SHAPES):
        for seed in range(SEEDS):
            msg_id = MSG_IDS[(seed + at) % 3]
            try:
                world = walk(seed, shape, dialect, msg_id)
            except AssertionError as problem:
                raise AssertionError(f"walk({seed}, {shape!r}, {dialect}, {msg_id!r}): {problem}") from problem
            rules |= world.rules
            known = list(world.monitor.credentials.values())
            seen["admitted"] += sum(len(one.admitted) for one in known) + len(world.monitor.welcome)
            seen["dead"] += sum(one.doomed is not None for one in known)
    assert seen["admitted"] > 10 * SEEDS, seen
    assert dialect is Dialect.FLAT or seen["dead"] > SEEDS, seen
    assert dialect is Dialect.FLAT or SEEDS < 6 or not PLAIN_RULES - rules, PLAIN_RULES - rules


@pytest.mark.parametrize(("seed", "shape", "msg_id"), FOUND)
def test_a_walk_that_ended_badly_once(seed: int, shape: str, msg_id: str) -> None:
    walk(seed, shape, Dialect.AUTH, msg_id)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_mistake_is_found(mistake: MixedMistake) -> None:
    shape, dialect, msg_id, first = mistake.where
    for seed in range(first, first + TRIES):
        with pytest.MonkeyPatch.context() as patch:
            mistake.plant(patch)
            try:
                walk(seed, shape, dialect, msg_id)
            except AssertionError as problem:
                found = str(problem)
                if mistake.breaks in found:
                    return
    pytest.fail("it was not found")
