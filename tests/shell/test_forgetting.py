"""A credential that only a revoke has named is kept until everybody has heard of it, and not for ever."""

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Revoke
from hubauth.shell import forgetting, journal
from hubauth.shell.hub import Hub
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot, snapshot_payloads
from tests.shell.harness import child_config, config, joined, run, running, until, verified

NAMED = "n" * 43


def stored(directory: Path) -> dict[str, Any]:
    return {"storage": {"data_dir": str(directory), "durability": "os"}}


def is_kept(directory: Path) -> bool:
    """Whether any file names it."""
    for path in filter(Path.is_file, directory.iterdir()):
        with suppress(FileNotFoundError):  # removed meanwhile
            if NAMED.encode() in path.read_bytes():
                return True
    return False


def root_in(directory: Path) -> Hub:
    return Hub(config(**stored(directory), provisioned=[verified(2)]))


async def owing(root: Hub) -> None:
    """Let the hub have a child that is away, and owe it the revoke of a credential that is nobody's here."""
    async with running(child_config(2, root.address)) as child:
        await joined(child)
    await until(lambda: not root.engine.state.index.link_of_node)
    root.engine.feed(OperatorRevoke(Revoke("elsewhere", 0, NAMED)))
    await root.engine.settle()


def is_owed(root: Hub) -> bool:
    return bool(root.engine.state.owed)


async def acknowledged(root: Hub) -> None:
    async with running(child_config(2, root.address)) as child:
        await joined(child)
        await until(lambda: not is_owed(root))


def test_it_is_kept_while_it_is_owed_and_forgotten_then(tmp_path: Path) -> None:
    async def story() -> None:
        root = root_in(tmp_path)
        await root.start()
        await owing(root)
        assert is_kept(tmp_path), "nothing else would tell the child after a restart"
        await acknowledged(root)
        await until(lambda: root.observer.counters["snapshots", ""] > 0, "a generation without it has begun")
        await until(lambda: not is_kept(tmp_path), "no file names it any more")
        await root.stop()

    run(story())


def test_a_hub_that_is_stopped_before_forgets_when_it_runs_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        root = root_in(tmp_path)
        await root.start()
        await owing(root)
        with monkeypatch.context() as patched:
            patched.setattr(forgetting, "FORGET_SECONDS", 3600.0)
            await acknowledged(root)
            await root.stop()
        assert is_kept(tmp_path)
        opened, recovered = Journal.open(tmp_path, "os")
        opened.close()
        assert recovered.forgets
        again = root_in(tmp_path)
        await again.start()
        await until(lambda: not is_kept(tmp_path), "no file names it any more")
        await again.stop()
        opened, recovered = Journal.open(tmp_path, "os")
        opened.close()
        assert not recovered.forgets

    run(story())


def test_a_snapshot_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0

    def fails_once(hub: Snapshot) -> Iterator[bytes]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        yield from snapshot_payloads(hub)

    async def story() -> None:
        root = root_in(tmp_path)
        await root.start()
        await owing(root)
        await acknowledged(root)
        await until(lambda: attempts >= 2 and not is_kept(tmp_path), "no file names it any more")
        await root.stop()

    monkeypatch.setattr(journal, "snapshot_payloads", fails_once)
    run(story())


def test_nothing_is_forced_by_a_revoke_that_names_none(tmp_path: Path) -> None:
    async def story() -> None:
        root = root_in(tmp_path)
        await root.start()
        async with running(child_config(2, root.address)) as child:
            await joined(child)
            root.engine.feed(OperatorRevoke(Revoke("elsewhere")))
            await until(lambda: root.engine.state.neighbours[2].sent == 1 and not is_owed(root))
        assert not root.engine.forgetting.is_due
        await root.stop()

    run(story())
