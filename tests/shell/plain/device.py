"""Devices in plain sockets, which know nothing of the kinds of hubs."""

import asyncio
import os
from contextlib import AsyncExitStack
from typing import Any

from hubauth.shell.addresses import Address
from tests.shell.plain.hub import pack, plain, unpack

PATIENCE = float(os.environ.get("HUBAUTH_PLAIN_PATIENCE", "60"))
"""Seconds after which what has not become true never will."""


def word(dialect: str) -> str:
    """What the dialect calls an authentication."""
    return "auth" if dialect == "auth" else "login"


class Refused(Exception):
    """The connection ended before the answer came."""


class Device:
    """A device in plain sockets. Answers are taken in the order in which they come, whatever their MsgID."""

    def __init__(self, name: str, dialect: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.name, self._dialect, self._reader, self._writer = name, dialect, reader, writer
        self.node_id, self.credential = 0, ""
        self.opaque: list[Any] = []
        self._data, self._msg_id = bytearray(), 0

    def send(self, frame: Any) -> None:
        self._writer.write(pack(frame))

    def say(self, action: str, source: int | None = None, **data: Any) -> None:
        """Send a request without waiting for anything."""
        self._msg_id += 1
        body = {"action": action, **data} if self._dialect == "flat" else {"action": action, "data": data}
        self.send(plain.PlainFrame(body, self.node_id if source is None else source, 0, self._msg_id))

    async def frame(self) -> Any:
        """The next frame. Raises Refused at the end of the connection."""
        while (frame := unpack(self._data)) is None:
            try:
                data = await asyncio.wait_for(self._reader.read(65536), PATIENCE)
            except TimeoutError:
                raise AssertionError(f"{self.name} hears nothing") from None
            except OSError:
                data = b""
            if not data:
                raise Refused(self.name)
            self._data += data
        return frame

    async def answer(self, action: str) -> dict[str, Any]:
        """The next answer to such a request."""
        while True:
            frame = await self.frame()
            if frame.sub_proto != 2:
                self.opaque.append(frame)
            elif self._dialect == "flat" or frame.body["action"] == f"{action}_resp":
                fields: dict[str, Any] = frame.body if self._dialect == "flat" else frame.body["data"]
                return fields

    async def ask(self, action: str, source: int | None = None, **data: Any) -> dict[str, Any]:
        self.say(action, source, **data)
        return await self.answer(action)

    async def register(self) -> dict[str, Any]:
        return self._take(await self.ask("register", 0, device_id=self.name))

    async def authenticate(self, credential: str | None = None) -> dict[str, Any]:
        presented = self.credential if credential is None else credential
        known = {} if self._dialect == "flat" else {"credential": presented}
        return self._take(await self.ask(word(self._dialect), 0, device_id=self.name, **known))

    def _take(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer["code"] == 1:
            self.node_id, self.credential = answer["node_id"], answer.get("credential", self.credential)
        return answer

    async def hears(self, body: bytes) -> Any:
        """Wait for a frame of another sub-protocol."""
        while not any(frame.body == body for frame in self.opaque):
            frame = await self.frame()
            if frame.sub_proto != 2:
                self.opaque.append(frame)
        return next(frame for frame in self.opaque if frame.body == body)

    def close(self) -> None:
        self._writer.transport.abort()


async def connect(stack: AsyncExitStack, dialect: str, address: Address, name: str) -> Device:
    """A device that is connected, until the stack ends."""
    device = Device(name, dialect, *await asyncio.open_connection(*address))
    stack.callback(device.close)
    return device


def opaque(source: int, target: int, body: bytes) -> Any:
    """A frame of another sub-protocol."""
    return plain.PlainFrame(body, source, target, 1, 2, 5)
