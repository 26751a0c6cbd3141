"""Between the tool and a hub: what comes on two connections before the hub has read it, is read in the wrong order.

What the tool does on a connection (sending, ending it) is held for a moment. If something comes on another one
meanwhile, that goes first. What the hub sends passes at once. So who waits for a proof that the hub has handled the
first before doing the second sees a slow hub; who does not sees another story than it meant to tell.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from attrs import define, evolve, field

from hubauth.shell.addresses import Address, parse_address
from tests.oracle.conform.hubs import Described

HOLD = 0.005


@define(eq=False)
class Way:
    """What was read on one connection and is not with the hub yet; an empty piece: nothing more comes, None: gone."""

    to_hub: asyncio.StreamWriter
    pieces: list[bytes | None] = field(factory=list)


class Reordering:
    """Passes connections on, from the tool to the hub under test or the other way round."""

    def __init__(self) -> None:
        self._held: list[Way] = []
        self._came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()

    async def listen(self, to: Address, *, hub_is_there: bool) -> Address:
        """``hub_is_there``: whether the hub is at the address ``to``, or the one that connects."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                far_reader, far_writer = await asyncio.open_connection(*to)
            except OSError:
                writer.close()
                return
            if hub_is_there:
                self._connect(reader, writer, far_reader, far_writer)
            else:
                self._connect(far_reader, far_writer, reader, writer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._servers.append(server)
        return Address(*server.sockets[0].getsockname()[:2])

    def _connect(
        self,
        from_tool: asyncio.StreamReader,
        to_tool: asyncio.StreamWriter,
        from_hub: asyncio.StreamReader,
        to_hub: asyncio.StreamWriter,
    ) -> None:
        self._writers |= {to_tool, to_hub}
        self._begin(self._hold(from_tool, Way(to_hub)))
        self._begin(self._pass(from_hub, to_tool))

    def start(self) -> None:
        self._begin(self._deliver())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        _pass_on(b"", writer)

    async def _hold(self, reader: asyncio.StreamReader, way: Way) -> None:
        data: bytes | None = b"begun"
        while data:
            try:
                data = await reader.read(65536)
            except OSError:
                data = None
            way.pieces.append(data)
            if way in self._held:
                self._held.remove(way)
            self._held.append(way)
            self._came.set()

    async def _deliver(self) -> None:
        """The last that came goes first."""
        while True:
            await self._came.wait()
            self._came.clear()
            while self._held:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._came.wait(), HOLD)
                    self._came.clear()
                way = self._held.pop()
                for piece in way.pieces:
                    _pass_on(piece, way.to_hub)
                way.pieces.clear()

    async def stop(self) -> None:
        """End everything."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers), return_exceptions=True)


def _pass_on(piece: bytes | None, writer: asyncio.StreamWriter) -> None:
    """Do on the other side what was done on this one."""
    with suppress(OSError, RuntimeError):
        if piece is None:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        elif piece:
            writer.write(piece)
        elif not writer.is_closing():
            writer.write_eof()


class Between:
    """A hub to be judged through a ``Reordering``."""

    def __init__(self, described: Described, loop: asyncio.AbstractEventLoop, order: Reordering) -> None:
        self._loop, self._order = loop, order
        parent = described.profile.parent
        if parent is not None:
            above = {**described.tables["parent"], "address": str(self._listen(parse_address(parent.listen), False))}
            described = evolve(described, tables={**described.tables, "parent": above})
        self.described = described

    def before(self, hub: Address) -> Address:
        """Where the tool finds this hub."""
        return self._listen(hub, True)

    def _listen(self, to: Address, hub_is_there: bool) -> Address:
        listening = self._order.listen(to, hub_is_there=hub_is_there)
        return asyncio.run_coroutine_threadsafe(listening, self._loop).result(30)


@contextmanager
def reordered(described: Described) -> Iterator[Between]:
    """The way between the tool and this hub, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> Reordering:
        order = Reordering()
        order.start()
        return order

    order = asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
    try:
        yield Between(described, loop, order)
    finally:
        asyncio.run_coroutine_threadsafe(order.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
