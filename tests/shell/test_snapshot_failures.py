"""A snapshot that cannot be taken costs nothing but the snapshot; a sync that fails costs the hub."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hubauth.shell import blocks, journal
from hubauth.shell.hub import Hub
from hubauth.shell.snapshot import Snapshot
from tests.shell.harness import config, run, running, until
from tests.shell.raw import peer, register


def stored(directory: Path, durability: str = "os") -> dict[str, Any]:
    return {"storage": {"data_dir": str(directory), "durability": durability, "snapshot_records": 20}}


async def registered(hub: Hub, prefix: str, count: int) -> None:
    async with peer(hub.address) as busy:
        for number in range(count):
            await busy.send(register(f"{prefix}-{number}", number))
            assert len(await busy.frames(1)) == 1, "the hub has stopped answering"


def test_no_descriptor_for_the_next_generation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0

    def exhausted(_: Path) -> int:
        nonlocal attempts
        attempts += 1
        raise OSError(errno.EMFILE, "Too many open files")

    async def story() -> None:
        async with running(config(**stored(tmp_path))) as hub:
            with monkeypatch.context() as patched:
                patched.setattr(blocks, "create_file", exhausted)
                await registered(hub, "without", 50)
                # The old journal is synced in a thread first, which may take longer than fifty answers.
                await until(lambda: attempts > 0 and hub.engine._snapshotting is None, "a snapshot was tried")
                assert attempts <= 3, "tried again only after as many records"
            await registered(hub, "with", 50)
            await until(lambda: hub.observer.counters["snapshots", ""] > 0, "a snapshot is taken all the same")
            assert not hub.failed.is_set()
        async with running(config(**stored(tmp_path))) as again:
            assert len(again.engine.state.registry) == 100

    run(story())


def test_no_room_for_a_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(_: Snapshot) -> Iterator[bytes]:
        yield b"x" * 100_000
        raise OSError(errno.ENOSPC, "No space left on device")

    async def story() -> None:
        monkeypatch.setattr(journal, "snapshot_payloads", too_much)
        async with running(config(**stored(tmp_path))) as hub:
            await registered(hub, "device", 30)
            await until(lambda: (tmp_path / "journal-1").exists() and hub.engine._snapshotting is None)
            assert not list(tmp_path.glob("*.new")), "the room it took is given back"
            await registered(hub, "later", 5)

    run(story())


def test_a_lost_write_is_never_taken_for_a_failed_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel tells of a lost write once, to whichever sync comes first: here, to the one before a rotation."""

    def lossy() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def story() -> None:
        hub = Hub(config(**stored(tmp_path, "fsync")))
        await hub.start()
        await registered(hub, "device", 5)
        assert hub._journal is not None
        monkeypatch.setattr(hub._journal, "sync", lossy)
        await hub.engine._snapshot(hub._journal)
        assert hub.failed.is_set()
        await hub.stop()

    run(story())
