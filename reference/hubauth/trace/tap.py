"""A proxy in front of a hub, and one between the hub and its parent, that records what passes and changes nothing."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from attrs import frozen

from hubauth.trace.watching import End, Watch, show

_CHUNK = 64 * 1024


@frozen
class Crossing:
    """Whoever connects to ``listen`` is connected to ``target``; towards the parent it is the hub that connects."""

    listen: End
    target: End
    is_parent: bool = False


class Tap:
    """Proxies for one hub."""

    def __init__(self, watch: Watch, crossings: Sequence[Crossing]) -> None:
        self._watch = watch
        self._crossings = crossings
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = 0

    async def start(self) -> list[End]:
        """Where it listens, in the order of the crossings. Raises OSError."""
        for crossing in self._crossings:

            async def welcome(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, crossing: Crossing = crossing
            ) -> None:
                task = asyncio.current_task()
                assert task is not None
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                # A task that ends as cancelled would be reported as a failure.
                with contextlib.suppress(asyncio.CancelledError):
                    await self._carry(reader, writer, crossing)

            listen = crossing.listen
            self._servers.append(await asyncio.start_server(welcome, *listen))
        return [server.sockets[0].getsockname()[:2] for server in self._servers]

    async def stop(self) -> None:
        """Close everything."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._watch.end(_now())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, crossing: Crossing) -> None:
        """One connection, from its beginning to its end."""
        target = crossing.target
        try:
            far_reader, far_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        self._numbers += 1
        key = self._numbers
        # The near end has connected to us: a device or child hub, or the hub itself on its way to the parent.
        peer = show(target) if crossing.is_parent else _peer(writer)
        self._watch.opened(key, f"{_peer(writer)}-{show(target)}", peer, _now(), is_parent=crossing.is_parent)
        near_is_hub = crossing.is_parent
        ways = [
            asyncio.ensure_future(self._pump(key, reader, far_writer, to_hub=not near_is_hub)),
            asyncio.ensure_future(self._pump(key, far_reader, writer, to_hub=near_is_hub)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            self._watch.closed(key, _now(), by_hub=False)
            self._watch.gone(key)
            for end in (writer, far_writer):
                end.close()
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await end.wait_closed()

    async def _pump(
        self, key: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_hub: bool
    ) -> None:
        """Bytes of one direction, as they come; what goes to the hub is recorded before it gets there."""
        try:
            while data := await reader.read(_CHUNK):
                self._watch.passed(key, data, _now(), to_hub=to_hub)
                writer.write(data)
                await writer.drain()
            self._watch.closed(key, _now(), by_hub=not to_hub)
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            self._watch.closed(key, _now(), by_hub=not to_hub)
            writer.close()


def _peer(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return show(name[:2]) if isinstance(name, tuple) else ""


def _now() -> int:
    return time.time_ns() // 1000
