"""Random walks next to a hub that speaks the documents alone."""

from collections.abc import Callable

import pytest

from hubauth.core import authenticate, once, plain
from hubauth.core.policy import Dialect
from model_tests.mixed import walk

SEEDS = range(8)


@pytest.mark.parametrize("msg_id", ["echo", "zero", "reordered"])
@pytest.mark.parametrize("ours_above", [True, False])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_promised_next_to_a_plain_hub(dialect: Dialect, ours_above: bool, msg_id: str) -> None:
    for seed in SEEDS:
        try:
            walk(seed, dialect, ours_above, msg_id)
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from problem


def _nothing(*_: object, **__: object) -> None:
    return None


def _never(*_: object, **__: object) -> bool:
    return False


@pytest.mark.parametrize(
    ("module", "name", "instead", "ours_above", "msg_id"),
    [
        (once, "send", _nothing, True, "echo"),
        (plain, "find_asked", _nothing, False, "zero"),
        (plain, "may_be", _never, True, "echo"),
        (authenticate, "same_credential", _never, False, "echo"),
    ],
)
def test_a_mistake_is_found(
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
    instead: Callable[..., object],
    ours_above: bool,
    msg_id: str,
) -> None:
    monkeypatch.setattr(module, name, instead)
    with pytest.raises(AssertionError):
        for seed in SEEDS:
            tree = walk(seed, Dialect.AUTH, ours_above, msg_id)
            assert tree.nodes, "nobody was ever registered"
