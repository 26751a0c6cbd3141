"""A raw framed echo server: what moving frames costs when nothing is done with them. Prints its port, then serves."""

import asyncio
from struct import Struct as Layout

import uvloop

_LENGTH = Layout(">I")
_HEADER = 24


class Echo(asyncio.Protocol):
    """Cuts version 1 frames out of what comes, and sends all whole ones back in one write."""

    def __init__(self) -> None:
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._held:
            data = self._held + data
        offset, size = 0, len(data)
        frames: list[bytes] = []
        while size - offset >= _HEADER:
            end = offset + _HEADER + _LENGTH.unpack_from(data, offset + 18)[0]
            if end > size:
                break
            frames.append(data[offset:end])
            offset = end
        self._held = data[offset:]
        if frames:
            self._transport.write(b"".join(frames))  # type: ignore[attr-defined]


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
