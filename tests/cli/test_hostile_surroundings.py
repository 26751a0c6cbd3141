"""Full disks, broken disks and bytes that are no text: a message and an exit code, never a traceback."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.shell import blocks
from hubauth.shell.hub import Hub
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot
from tests.shell.harness import config, run
from tests.shell.raw import peer, register


@pytest.mark.parametrize(
    "arguments",
    [
        ["provision", "\udcff", "5"],
        ["hub", "--device-id", "\udcff", "--durability", "none", "--listen", "127.0.0.1:0"],
        ["hub", "init", "new.toml", "--device-id", "\udcff"],
        ["device", "register", "--device-id", "\udcff"],
        ["device", "auth", "--device-id", "x", "--credential", "\udcff"],
    ],
)
def test_arguments_that_are_no_text(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert "not UTF-8" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_no_room_for_the_first_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int, data: bytes) -> None:  # noqa: ARG001
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(blocks, "write_all", full)
    assert main(["hub", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")]) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_a_disk_that_fails_for_good_can_still_be_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    journal, _ = Journal.open(tmp_path, "fsync")
    journal.begin(Snapshot(Policy(), initial_state(Policy())))
    monkeypatch.setattr(os, "fsync", broken)
    journal.close()
    Journal.open(tmp_path, "fsync")[0].close()


def test_a_refused_configuration_does_not_look_like_a_broken_disk(tmp_path: Path) -> None:
    async def live() -> None:
        storage = {"data_dir": str(tmp_path), "durability": "os"}
        hub = Hub(config(storage=storage))
        await hub.start()
        async with peer(hub.address) as device:
            await device.send(register("device"))
            assert len(await device.frames(1)) == 1
            await hub.stop()  # with the link up: the next start takes it down

    run(live())
    command = ["hub", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path), "--dialect", "login"]
    done = subprocess.run([sys.executable, "-m", "hubauth.cli", *command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "dialect and parent cannot change" in done.stderr
    assert "journal_failed" not in done.stderr
