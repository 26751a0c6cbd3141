"""A data directory that goes away under a running hub: nothing is answered that no restart would remember."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from hubauth.core.messages import Answer, Authenticate, Frame, Reason
from tests.shell.harness import run
from tests.shell.process import HubProcess, hub_process
from tests.shell.raw import Peer, peer, register, written


async def registered(device: Peer, name: str) -> str:
    await device.send(register(name))
    (frame,) = await device.frames(1)
    assert isinstance(frame.body, Answer) and frame.body.reason is Reason.OK
    return frame.body.credential


async def falls_silent(hub: HubProcess, device: Peer, request: bytes) -> None:
    """The request is not answered, the connection goes, and so does the process, which says why."""
    await device.send(request)
    assert await device.frames(1) == []
    assert await asyncio.wait_for(hub.process.wait(), 60) == 1
    await hub._reading
    assert [line["level"] for line in hub.lines if line["event"] == "journal_failed"] == ["critical"]


def delete(directory: Path) -> None:
    shutil.rmtree(directory)


def move(directory: Path) -> None:
    directory.rename(directory.with_name("elsewhere"))


def replace(directory: Path) -> None:
    """As a backup that is played back: everything is there, and nothing of it is what the hub writes to."""
    move(directory)
    shutil.copytree(directory.with_name("elsewhere"), directory, ignore=_sockets)


def _sockets(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(directory) / name).is_socket()]


def empty(directory: Path) -> None:
    delete(directory)
    directory.mkdir()


def journal_in(directory: Path) -> Path:
    return directory / "journal-0"


def cut_off(directory: Path) -> None:
    """The same file, without its end."""
    os.truncate(journal_in(directory), journal_in(directory).stat().st_size - 1)


def lengthen(directory: Path) -> None:
    """As a second writer would, who knows of no lock."""
    with journal_in(directory).open("ab") as file:
        file.write(b"more")


def overwrite(directory: Path) -> None:
    """As an editor or a backup that writes into the file that there is: as long as before, and something else."""
    size = journal_in(directory).stat().st_size
    with journal_in(directory).open("r+b") as file:
        file.write(bytes(size))


@pytest.mark.parametrize("durability", ["fsync", "os"])
@pytest.mark.parametrize("lose", [delete, move, replace, empty, cut_off, lengthen, overwrite])
@pytest.mark.parametrize("request_kind", ["register", "authenticate"])
def test_nothing_is_answered_any_more(lose: object, durability: str, request_kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_process(tmp_path / "data", "--durability", durability) as hub, peer(hub.address) as device:
            credential = await registered(device, "before")
            assert callable(lose)
            lose(tmp_path / "data")
            known = written(Frame(Authenticate("before", credential)))
            await falls_silent(hub, device, register("after") if request_kind == "register" else known)

    run(story())


def test_a_directory_that_comes_and_goes_between_two_answers_does_no_harm(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_process(tmp_path / "data") as hub, peer(hub.address) as device:
            await registered(device, "before")
            move(tmp_path / "data")
            (tmp_path / "elsewhere").rename(tmp_path / "data")
            await registered(device, "after")

    run(story())


def test_a_snapshot_saves_nobody_who_lost_the_directory(tmp_path: Path) -> None:
    """An empty directory in its place would take the next generation: only half of what the hub must remember."""

    async def story() -> None:
        config = tmp_path / "hub.toml"
        config.write_text("[storage]\nsnapshot_records = 3\n")
        async with (
            hub_process(tmp_path / "data", "--config", str(config)) as hub,
            peer(hub.address) as device,
        ):
            await registered(device, "1")
            await registered(device, "2")
            empty(tmp_path / "data")
            await falls_silent(hub, device, register("3"))
            assert list((tmp_path / "data").iterdir()) == []

    run(story())
