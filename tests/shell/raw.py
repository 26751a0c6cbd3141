"""A peer that sends bytes of its own making and looks at what comes back."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hubauth.core.messages import Frame, Register
from hubauth.shell.addresses import Address
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import FrameDecoder, encode_frame, read_frame
from hubauth.wire.header import Refused, Version


def written(frame: Frame, version: Version = Version.V1) -> bytes:
    return encode_frame(version, AUTH, frame)


def register(device_id: str, msg_id: int = 1) -> bytes:
    return written(Frame(Register(device_id), msg_id=msg_id))


class Peer:
    """Reads and writes one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: Version) -> None:
        self.reader, self.writer = reader, writer
        self._decoder = FrameDecoder(version)
        self._frames: list[Frame] = []

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def frames(self, count: int) -> list[Frame]:
        """The next frames; fewer if the hub closes before."""
        while len(self._frames) < count:
            data = await asyncio.wait_for(self.reader.read(65536), 20)
            if not data:
                break
            for raw in self._decoder.feed(data):
                assert not isinstance(raw, Refused)
                self._frames.append(read_frame(AUTH, raw).frame)
        taken, self._frames = self._frames[:count], self._frames[count:]
        return taken

    async def closed(self) -> bool:
        """Wait until the hub has closed the connection."""
        try:
            while await asyncio.wait_for(self.reader.read(65536), 20):
                pass
        except ConnectionError:
            pass
        return True


@asynccontextmanager
async def peer(
    address: Address, version: Version = Version.V1, limit: int = 2**16, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection(address.host, address.port, limit=limit, ssl=tls)
    try:
        yield Peer(reader, writer, version)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)
