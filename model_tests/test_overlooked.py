"""Random walks find what was once overlooked: each mistake, planted in the core, within the seeds that CI walks."""

import pytest

from hubauth.lab.overlooked import OVERLOOKED
from hubauth.lab.planted import Planted
from model_tests.walk import walk

SEEDS = 400


@pytest.mark.parametrize("planted", OVERLOOKED, ids=lambda planted: planted.what.strip("_"))
def test_a_walk_finds_the_mistake(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert any(planted.name in found_on_walk(seed) for seed in range(SEEDS)), f"no walk breaks {planted.name}"


def found_on_walk(seed: int) -> str:
    """What is found where the walk ends early; empty if it does not."""
    try:
        walk(seed)
    except AssertionError as found:
        return str(found)
    return ""
