"""The stories of ``hubauth demo``, with their real processes; what Spark says of them is tested in tests/spark."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.cli.demo.story import Say, tell_of_a_revoke, tell_of_everything
from hubauth.cli.demo.tree import DemoTree

CONFORMS, VIOLATES, USAGE = 0, 1, 2


def play(
    directory: Path, modules: dict[str, str], story: Callable[[DemoTree, Say], Awaitable[None]]
) -> tuple[Path, str]:
    """Where the trace is, and what was told."""
    told: list[str] = []

    async def bounded() -> None:
        tree = DemoTree(directory / "hubs", directory / "trace", modules)
        try:
            await asyncio.wait_for(story(tree, told.append), 300)
        finally:
            await tree.stop_all()

    asyncio.run(bounded())
    return directory / "trace", "\n".join(told)


def test_the_story_of_hubs_that_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, told = play(tmp_path, {}, tell_of_everything)
    assert "camera authenticates at B: refused, 4001 not_admitted" in told
    assert "pump authenticates at A: admitted, by A alone" in told
    assert "pump authenticates at A: refused, 4001 not_admitted" in told
    assert main(["trace", "replay", str(trace)]) == CONFORMS
    assert "conforms: 4 hubs" in capsys.readouterr().out


def test_the_broken_hub_is_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, told = play(tmp_path, {"A": "hubauth.cli.demo.broken"}, tell_of_a_revoke)
    assert "admitted, with the revoked credential" in told
    assert main(["trace", "replay", str(trace)]) == VIOLATES
    said = capsys.readouterr().out
    assert "A: VIOLATES AUTH-" in said and "root: conforms" in said


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == USAGE
    assert "exists already" in capsys.readouterr().err
