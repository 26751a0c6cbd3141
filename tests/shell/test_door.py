"""The door of a hub: who may come in, what may be said there, and when it is answered."""

import asyncio
import gc
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Reason, Revoke
from hubauth.core.outputs import Tell
from hubauth.shell import door
from hubauth.shell.doorway import (
    LINE_BYTES,
    SOCKET,
    Answered,
    AnyReply,
    AnyRequest,
    NoAnswer,
    Revoked,
    RevokeRequest,
    Status,
    StatusRequest,
    call,
    written,
)
from hubauth.shell.hub import Hub
from hubauth.shell.journal import Journal
from tests.shell.harness import PATIENCE, child_config, config, joined, run, running, until, verified

COME_IN = """
import os, socket, sys
user = int(sys.argv[2])
if user:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
door = socket.socket(socket.AF_UNIX)
try:
    door.connect(sys.argv[1])
    try:
        door.sendall(b'{"v":1,"command":"status"}\\n')
    except BrokenPipeError:
        pass  # it has hung up, but not without a word
    print(door.recv(65536).decode())
except OSError as problem:
    print(type(problem).__name__)
"""
NOBODY = 65534


def stored(directory: Path, **tables: Any) -> Any:
    return config(storage={"data_dir": str(directory), "durability": "os"}, provisioned=[verified(2)], **tables)


async def asked(directory: Path, request: AnyRequest) -> list[AnyReply]:
    """Everything that is said to a request."""
    return await asyncio.get_running_loop().run_in_executor(None, lambda: list(call(directory, request)))


async def told(directory: Path, line: bytes = b"") -> list[dict[str, Any]]:
    """What is said to a line of one's own making, until the hub hangs up."""

    def come_in() -> list[dict[str, Any]]:
        heard = b""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(directory / SOCKET))
            # It need not read all of it, nor wait for it.
            with suppress(ConnectionError):
                connection.sendall(line)
            with suppress(ConnectionError):
                while data := connection.recv(65536):
                    heard += data
        return [json.loads(said) for said in heard.splitlines()]

    return await asyncio.get_running_loop().run_in_executor(None, come_in)


@asynccontextmanager
async def away(tmp_path: Path) -> AsyncIterator[Hub]:
    """A hub that has a hub below it, which is away."""
    async with running(stored(tmp_path / "data")) as root:
        async with running(child_config(2, root.address)) as child:
            await joined(child)
        await until(lambda: not root.connections and 2 not in root.engine.state.index.link_of_node, "it has gone")
        yield root


# Who may come in


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody can reach."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def come_in(directory: Path, user: int) -> str:
    """What somebody hears who asks for the status."""
    command = [sys.executable, "-I", "-c", COME_IN, str(directory / SOCKET), str(user)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout


def test_only_the_owner_can_open_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(stored(tmp_path / "data")):
            assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
            found = (tmp_path / "data" / SOCKET).stat()
            assert stat.S_ISSOCK(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o600
        assert not (tmp_path / "data" / SOCKET).exists()

    run(story())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_others_cannot_come_in(public: Path) -> None:
    async def story() -> None:
        data = public / "data"
        async with running(stored(data)):
            loop = asyncio.get_running_loop()
            assert '"kind":"status"' in await loop.run_in_executor(None, come_in, data, 0)
            assert (await loop.run_in_executor(None, come_in, data, NOBODY)).startswith("PermissionError")
            data.chmod(0o755)
            assert (await loop.run_in_executor(None, come_in, data, NOBODY)).startswith("PermissionError")
            # Even if somebody opens the directory and the socket to everybody.
            (data / SOCKET).chmod(0o666)
            said = await loop.run_in_executor(None, come_in, data, NOBODY)
            assert "this door is for the owner of the hub" in said and "status" not in said

    run(story())


def test_what_another_hub_left_behind_is_replaced(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(data / SOCKET))

    async def story() -> None:
        async with running(stored(data)):
            assert isinstance((await asked(data, StatusRequest()))[0], Status)

    run(story())


def test_a_hub_that_cannot_have_a_door_serves_without(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / SOCKET).mkdir(parents=True)

    async def story() -> None:
        async with running(stored(data)) as hub:
            assert hub.serves

    run(story())
    assert (data / SOCKET).is_dir()


# What may be said


GARBAGE = [
    (b"garbage\n", "not a request: JSON is malformed"),
    (b"\xff\xfe\n", "not a request: "),
    (b"\n", "not a request: Input data was truncated"),
    (b"[1]\n", "not a request: Expected `object`"),
    (b"[" * 60000 + b"\n", "not a request: "),
    (b"{}\n", "missing required field `v`"),
    (b'{"v":"1","command":"status"}\n', "Expected `int`"),
    (b'{"v":2,"command":"status"}\n', "version 2 is not spoken here, but 1"),
    (b'{"v":1}\n', "missing required field `command`"),
    (b'{"v":1,"command":"fly"}\n', "Invalid value 'fly'"),
    (b'{"v":1,"command":"status","colour":"red"}\n', "unknown field `colour`"),
    (b'{"v":1,"command":"revoke"}\n', "missing required field `device_id`"),
    (b'{"v":1,"command":"revoke","device_id":""}\n', "length >= 1"),
    (b'{"v":1,"command":"revoke","device_id":"d","node_id":-1}\n', "`int` >= 0"),
    (b'{"v":1,"command":"revoke","device_id":"d","wait":1e9}\n', "<= 3600"),
    ('{"v":1,"command":"revoke","device_id":"ü"}\n'.replace("ü", "ü" * 100).encode(), "at most 128 bytes"),
    (b'{"v":1,"command":"invalidate","node_ids":[0]}\n', "`int` >= 1"),
    (b'{"v":1,"command":"invalidate","node_ids":[' + b"7," * 1000 + b"7]}\n", "length <= 1000"),
    (b'{"v":1,"command":"status"' + b" " * LINE_BYTES + b"}\n", f"longer than {LINE_BYTES} bytes"),
    (b"x" * 10 * LINE_BYTES, f"longer than {LINE_BYTES} bytes"),
]


def test_what_is_no_request_is_answered_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(stored(tmp_path / "data")) as hub:
            before = hub.engine.state
            for line, why in GARBAGE:
                (said,) = await told(tmp_path / "data", line)
                assert said["kind"] == "problem" and not said["refused"] and why in said["error"], line[:60]
            assert hub.engine.state is before

    run(story())


def test_a_line_that_does_not_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(stored(tmp_path / "data")) as hub:
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "data" / SOCKET))
            writer.write(b'{"v":1,"command":"status"}')
            writer.write_eof()
            assert b"the line does not end" in await asyncio.wait_for(reader.read(), PATIENCE)
            writer.close()
            assert hub.serves

    run(story())


def test_whoever_says_nothing_is_sent_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 0.05)

    async def story() -> None:
        async with running(stored(tmp_path / "data")):
            (said,) = await told(tmp_path / "data")
            assert said["error"] == "not a request: it takes too long"

    run(story())


def test_only_so_many_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(stored(tmp_path / "data")) as hub:
            path = str(tmp_path / "data" / SOCKET)
            inside = [await asyncio.open_unix_connection(path) for _ in range(door._CALLERS)]
            assert hub._door is not None
            callers = hub._door._callers
            await until(lambda: len(callers) == door._CALLERS, "all are inside")
            for _ in range(50):
                (said,) = await told(tmp_path / "data", written(StatusRequest()))
                assert said["error"] == "16 others are being served"
            for _, writer in inside:
                writer.close()
            await until(lambda: not callers, "all have left")
            for _ in range(50):
                (said,) = await told(tmp_path / "data", written(StatusRequest()))
                assert said["kind"] == "status"

    run(story())


# When it is answered


def test_nobody_hears_of_what_is_not_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_sync = threading.Event()
    sync = Journal.sync

    def slow(journal: Journal) -> None:
        assert may_sync.wait(PATIENCE)
        sync(journal)

    async def story() -> None:
        storage = {"data_dir": str(tmp_path / "data"), "durability": "fsync"}
        async with running(config(storage=storage, provisioned=[{**verified(9), "device_id": "thief"}])) as hub:
            monkeypatch.setattr(Journal, "sync", slow)
            asking = asyncio.ensure_future(asked(tmp_path / "data", RevokeRequest(device_id="thief")))
            await until(lambda: "thief" not in hub.engine.state.whitelist, "it is decided")
            later = asyncio.ensure_future(asked(tmp_path / "data", StatusRequest()))
            assert hub._door is not None
            callers = hub._door._callers
            await until(lambda: len(callers) == 2 and all(one.has_asked for one in callers), "both have asked")
            assert not asking.done() and not later.done()
            may_sync.set()
            answer, outcome = await asking
            assert answer == Answered(hub=1, node_id=9, code=1, reason="ok")
            assert outcome == Revoked(ended="acknowledged", neighbours=(), unsaid=0)
            assert isinstance((await later)[0], Status)
            assert not hub.engine.listeners

    run(story())


def test_a_journal_that_fails_answers_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async def story() -> None:
        hub = Hub(stored(tmp_path / "data"))
        await hub.start()
        monkeypatch.setattr(Journal, "append", full)
        asking = asyncio.ensure_future(asked(tmp_path / "data", RevokeRequest(device_id="hub-2", wait=600)))
        await asyncio.wait_for(hub.failed.wait(), PATIENCE)
        await hub.stop()
        with pytest.raises(NoAnswer, match="the hub has hung up"):
            await asking
        assert not (tmp_path / "data" / SOCKET).exists()

    run(story())


def test_a_step_that_fails_is_admitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    async def story() -> None:
        async with running(stored(tmp_path / "data")) as hub:
            monkeypatch.setattr("hubauth.shell.engine.step", fails)
            for request in (b'{"v":1,"command":"revoke","device_id":"d"}\n', b'{"v":1,"command":"invalidate"}\n'):
                (said,) = await told(tmp_path / "data", request)
                assert "the hub has failed at this" in said["error"]
            monkeypatch.undo()
            assert not hub.engine.listeners

    run(story())


def test_whoever_hangs_up_waits_no_longer(tmp_path: Path) -> None:
    async def story() -> None:
        async with away(tmp_path) as root:
            _, writer = await asyncio.open_unix_connection(str(tmp_path / "data" / SOCKET))
            writer.write(written(RevokeRequest(device_id="sensor", wait=600)))
            await until(lambda: root.engine.listeners, "it waits")
            writer.close()
            await until(lambda: not root.engine.listeners, "nobody waits")
            # One that has said all it wants to say still hears how things are.
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "data" / SOCKET))
            writer.write(written(RevokeRequest(device_id="sensor", wait=600)))
            writer.write_eof()
            assert json.loads(await asyncio.wait_for(reader.read(), PATIENCE))["ended"] == "waited"
            writer.close()

    run(story())


def test_whoever_hangs_up_without_having_listened_is_no_trouble(tmp_path: Path) -> None:
    trouble: list[dict[str, Any]] = []

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
        async with away(tmp_path) as root:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(tmp_path / "data" / SOCKET))
                connection.sendall(written(RevokeRequest(device_id="sensor", wait=600)))
                await until(lambda: root.engine.listeners, "it waits")
                root.engine._perform((Tell(1, "sensor", 10, Reason.OK),))
                root.engine._turn()
                await root.engine.settle()
            await until(lambda: not root.engine.listeners, "nobody waits")
        gc.collect()

    run(story())
    assert not trouble


def test_answers_go_to_whoever_asked_about_that_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_ANSWERS", 3)

    async def story() -> None:
        async with away(tmp_path) as root:
            data = tmp_path / "data"
            asking = [
                asyncio.ensure_future(asked(data, RevokeRequest(device_id=name, wait=600)))
                for name in ("sensor", "sensor", "other")
            ]
            await until(lambda: len(root.engine.listeners) == 3, "all wait")
            for hub in range(5):
                root.engine._perform((Tell(hub, "sensor", 10, Reason.OK), Tell(hub, "nobody", 10, Reason.OK)))
            root.engine._turn()
            async with running(child_config(2, root.address)):
                first, second, third = await asyncio.gather(*asking)
            assert first == second and [one.hub for one in first if isinstance(one, Answered)] == [0, 1, 2]
            assert isinstance(first[-1], Revoked) and first[-1].unsaid == 2
            assert [type(one) for one in third] == [Revoked]

    run(story())


def test_an_idle_caller_does_not_keep_a_hub_from_stopping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_REQUEST_SECONDS", 600.0)

    async def story() -> None:
        hub = Hub(stored(tmp_path / "data", limits={"close_seconds": 600.0}))
        await hub.start()
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "data" / SOCKET))
        assert hub._door is not None
        callers = hub._door._callers
        await until(lambda: callers, "it is inside")
        await asyncio.wait_for(hub.stop(), PATIENCE)
        assert await reader.read() == b""
        writer.close()

    run(story())


# How things are


def test_how_long_a_neighbour_has_been_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("hubauth.shell.status.monotonic", lambda: clock[0])

    async def seconds() -> tuple[float, bool, float]:
        (status,) = await asked(tmp_path / "data", StatusRequest())
        assert isinstance(status, Status)
        (neighbour,) = status.neighbours
        return status.uptime, neighbour.present, neighbour.seconds

    async def story() -> None:
        async with running(stored(tmp_path / "data")) as root:
            clock[0] += 5
            async with running(child_config(2, root.address)) as child:
                await joined(child)
                clock[0] += 7
                assert await seconds() == (12.0, True, 7.0)
            await until(lambda: 2 not in root.engine.state.index.link_of_node, "it has gone")
            clock[0] += 60
            assert await seconds() == (72.0, False, 60.0)
        clock[0] += 1000
        async with running(stored(tmp_path / "data")):
            clock[0] += 1
            assert await seconds() == (1.0, False, 1.0)

    run(story())


def test_what_is_owed_is_counted(tmp_path: Path) -> None:
    async def story() -> None:
        async with away(tmp_path) as root:
            for name in ("b", "a", "c"):
                root.engine.feed(OperatorRevoke(Revoke(name)))
            (status,) = await asked(tmp_path / "data", StatusRequest())
            assert isinstance(status, Status)
            (neighbour,) = status.neighbours
            assert (neighbour.owed, neighbour.oldest, neighbour.present) == (3, "b", False)
            assert 0 <= neighbour.seconds <= status.uptime and status.records == root.engine.records

    run(story())
