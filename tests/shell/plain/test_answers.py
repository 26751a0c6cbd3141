"""Which request an answer of a plain parent belongs to, when its MsgID says nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hubauth.shell.addresses import Address
from tests.shell.harness import run
from tests.shell.plain.device import PATIENCE, Device, connect, word
from tests.shell.plain.harness import CREDENTIALS, DIALECTS, REQUEST_SECONDS, OurHub, configuration
from tests.shell.plain.hub import pack, plain, unpack


class Parent:
    """A parent that lets our hub join, and answers nothing else unless the test does; then it leaves MsgID at 0."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._writer: asyncio.StreamWriter

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer, data = writer, bytearray()
        try:
            while received := await reader.read(65536):
                data += received
                while (frame := unpack(data)) is not None:
                    self._take(frame)
        finally:
            writer.transport.abort()

    def _take(self, frame: Any) -> None:
        fields = frame.body if self._dialect == "flat" else frame.body["data"]
        if fields.get("device_id") == "ours":
            self.answer(frame.body["action"], 1, frame.msg_id, **success("ours", 50))
        elif frame.body["action"].startswith("assist_") and frame.body["action"] != "assist_offline":
            self._asked.put_nowait({"action": frame.body["action"], **fields})

    def answer(self, action: str, code: int, msg_id: int = 0, **fields: Any) -> None:
        """Send an answer; in flat only what that dialect has."""
        told = {"code": code, "msg": "as the test says", **fields}
        if self._dialect == "flat":
            told.pop("credential", None)
        body = told if self._dialect == "flat" else {"action": f"{action}_resp", "data": told}
        self._writer.write(pack(plain.PlainFrame(body, 1, 0, msg_id, 0 if code == 1 else 1)))

    async def asked(self, device_id: str) -> dict[str, Any]:
        """The next request, which must be about this device."""
        request = await asyncio.wait_for(self._asked.get(), PATIENCE)
        assert request["device_id"] == device_id, request
        return request


class Place:
    """Our hub below such a parent."""

    def __init__(self, stack: AsyncExitStack, dialect: str, parent: Parent, ours: OurHub) -> None:
        self._stack, self._dialect, self.parent, self._ours = stack, dialect, parent, ours

    async def asks(self, action: str, name: str, **data: Any) -> Device:
        """A device that has asked something that is now with the parent."""
        device = await connect(self._stack, self._dialect, self._ours.process.address, name)
        device.say(action, 0, device_id=name, **data)
        await self.parent.asked(name)
        return device


@asynccontextmanager
async def place(directory: Path, dialect: str, seconds: float = REQUEST_SECONDS) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        parent = Parent(dialect)
        server = await asyncio.start_server(parent.serve, "127.0.0.1", 0)
        stack.callback(server.close)
        limits = {"request_seconds": seconds}
        address = Address(*server.sockets[0].getsockname()[:2])
        (directory / "hub.toml").write_text(configuration(dialect, address, (), limits=limits))
        ours = OurHub(directory)
        stack.push_async_callback(ours.close)
        await ours.start()
        await ours.present(parent=True)
        yield Place(stack, dialect, parent, ours)


def success(name: str, node_id: int, credential: str = "c" * 43) -> dict[str, Any]:
    return {"device_id": name, "node_id": node_id, "credential": credential, "role": "node", "perms": []}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_successes_go_to_whom_they_name(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect) as here:
            cam, lamp = await here.asks("register", "cam"), await here.asks("register", "lamp")
            here.parent.answer("assist_register", 1, **success("nobody", 99))
            here.parent.answer("assist_register", 1, node_id=98, credential="c" * 43)
            for device, node_id in ((lamp, 102), (cam, 101)):
                here.parent.answer("assist_register", 1, **success(device.name, node_id))
                answer = await device.answer("register")
                assert (answer["code"], answer.get("node_id")) == (1, node_id), answer

    run(scenario())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_failure_that_names_nobody_is_for_the_only_one_who_asked(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect) as here:
            cam = await here.asks(word(dialect), "cam", credential="guess")
            here.parent.answer(f"assist_{word(dialect)}", 4001)
            assert (await cam.answer(word(dialect)))["code"] == 4001

    run(scenario())


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_a_failure_that_names_nobody_is_for_nobody_if_two_have_asked(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect) as here:
            action = word(dialect)
            cam = await here.asks(action, "cam", credential="a" * 43)
            lamp = await here.asks(action, "lamp", credential="b" * 43)
            here.parent.answer(f"assist_{action}", 4001)
            here.parent.answer(f"assist_{action}", 1, **success("cam", 101, "a" * 43))
            here.parent.answer(f"assist_{action}", 4001, device_id="lamp")
            assert (await cam.answer(action))["code"] == 1
            assert (await lamp.answer(action))["code"] == 4001

    run(scenario())


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_a_late_failure_that_names_nobody_refuses_nobody_else(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect, seconds=1.0) as here:
            action = word(dialect)
            cam = await here.asks(action, "cam", credential="a" * 43)
            assert (await cam.answer(action))["code"] == 4002, "nobody has answered in time"
            lamp = await here.asks(action, "lamp", credential="b" * 43)
            here.parent.answer(f"assist_{action}", 4001)
            assert (await lamp.answer(action))["code"] == 4002, "the refusal may have been cam's"

    run(scenario())


@pytest.mark.parametrize("dialect", CREDENTIALS)
@pytest.mark.parametrize("echo", ["", "another credential"])
def test_a_success_that_does_not_echo_the_credential_admits_nobody(tmp_path: Path, dialect: str, echo: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect) as here:
            action = word(dialect)
            cam = await here.asks(action, "cam", credential="guess")
            told = success("cam", 101, echo)
            here.parent.answer(f"assist_{action}", 1, **{name: value for name, value in told.items() if value})
            # Whatever of it was dropped: a failure that names cam ends the request.
            here.parent.answer(f"assist_{action}", 4002, device_id="cam")
            assert (await cam.answer(action))["code"] == 4002
            again = await here.asks(action, "cam", credential="guess")
            here.parent.answer(f"assist_{action}", 4001, device_id="cam")
            assert (await again.answer(action))["code"] == 4001, "nothing was kept"

    run(scenario())


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_of_two_who_claim_one_name_only_the_one_with_the_credential_is_admitted(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        async with place(tmp_path, dialect) as here:
            action = word(dialect)
            thief = await here.asks(action, "cam", credential="guess")
            owner = await here.asks(action, "cam", credential="c" * 43)
            here.parent.answer(f"assist_{action}", 1, **success("cam", 101, "c" * 43))
            assert (await owner.answer(action))["code"] == 1
            here.parent.answer(f"assist_{action}", 4001, device_id="cam")
            assert (await thief.answer(action))["code"] == 4001

    run(scenario())
