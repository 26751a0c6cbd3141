"""The load of ``make bench-hostile``, a process of its own: peers that no honest device is like.

``python -m tests.bench.attack KIND PORT CONNECTIONS``: prints ``ready`` when all are connected and at it, goes on until
its standard input ends, and leaves the processor to others where it can.
"""

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count

import uvloop

from hubauth.core.messages import Answer, Authenticate, Body, Frame, ListRoles, Major, Register
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import FrameDecoder, encode_frame, read_frame
from hubauth.wire.header import Refused, Version

HOST = "127.0.0.2"
"""Not the address of the honest client, so that limits per address can be told apart."""
_PAYLOAD, _OPAQUE = 64 * 1024, 1024 * 1024


def written(body: Body, **header: int) -> bytes:
    major = Major.MSG if isinstance(body, bytes) else Major.CMD
    return encode_frame(Version.V1, AUTH, Frame(body, major, **header))


def payload(data: bytes) -> bytes:
    """A SubProto 2 frame around any bytes."""
    return b"\x0b" + bytes(17) + len(data).to_bytes(4, "big") + bytes(2) + data


class Attacker:
    """One hostile peer, on one connection at a time."""

    def __init__(self, port: int, number: int) -> None:
        self._port, self.number = port, number
        self._loop = asyncio.get_running_loop()
        self._socket = socket.socket()
        self._reading: asyncio.Task[None] | None = None

    async def connect(self, *, reads: bool = True) -> None:
        await self.hang_up()
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.bind((HOST, 0))
        await self._loop.sock_connect(self._socket, ("127.0.0.1", self._port))
        if reads:
            self._reading = self._loop.create_task(self._discard())

    async def hang_up(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError):
                await self._reading
            self._reading = None
        self._socket.close()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._socket, data)
        # Bytes that are taken at once let nobody else have a turn.
        await asyncio.sleep(0)

    async def register(self) -> int:
        """Become a registered stranger; the node."""
        await self.connect(reads=False)
        await self.send(written(Register(f"hostile-{os.getpid()}-{self.number}")))
        decoder = FrameDecoder(Version.V1)
        while True:
            for raw in decoder.feed(await self._loop.sock_recv(self._socket, 65536)):
                assert not isinstance(raw, Refused)
                body = read_frame(AUTH, raw).frame.body
                if isinstance(body, Answer):
                    self._reading = self._loop.create_task(self._discard())
                    return body.node_id

    async def _discard(self) -> None:
        with suppress(OSError):
            while await self._loop.sock_recv(self._socket, 1 << 18):
                pass


async def again_and_again(attacker: Attacker, data: bytes, *, reads: bool = True) -> None:
    """The same bytes for ever, on a new connection whenever the hub has closed one."""
    while True:
        with suppress(OSError):
            await attacker.connect(reads=reads)
            while True:
                await attacker.send(data)
        await asyncio.sleep(0.001)


async def nested(attacker: Attacker) -> None:
    await again_and_again(attacker, payload(b"[" * _PAYLOAD))


async def sawtooth(attacker: Attacker) -> None:
    """What takes the scan for depth longest."""
    await again_and_again(attacker, payload((b"[" * 32 + b"]" * 32) * (_PAYLOAD // 64)))


async def garbage(attacker: Attacker) -> None:
    await again_and_again(attacker, os.urandom(4096))


async def unreadable(attacker: Attacker) -> None:
    await again_and_again(attacker, payload(b"{}") * 1000)


async def byte_by_byte(attacker: Attacker) -> None:
    await attacker.connect()
    while True:
        with suppress(OSError):
            for byte in payload(b" " * 1000):
                await attacker.send(bytes([byte]))
                await asyncio.sleep(0.001)
        await attacker.connect()


async def half_frames(attacker: Attacker) -> None:
    """Nearly all of the longest frame there is, then the next connection."""
    while True:
        with suppress(OSError):
            await attacker.connect()
            await attacker.send(payload(b" " * _PAYLOAD)[:-1])
            await attacker.connect()
            await attacker.send(written(bytes(_OPAQUE), sub_proto=9)[:-1])
        await asyncio.sleep(0.001)


async def failed_authentications(attacker: Attacker) -> None:
    await again_and_again(attacker, written(Authenticate("honest", "w" * 43)) * 100)


async def unread_answers(attacker: Attacker) -> None:
    await again_and_again(attacker, written(Authenticate("honest", "w" * 43)) * 100, reads=False)


async def registrations(attacker: Attacker) -> None:
    for number in count():
        with suppress(OSError):
            await attacker.connect()
            while True:
                names = (f"flood-{os.getpid()}-{attacker.number}-{number}-{at}" for at in range(100))
                await attacker.send(b"".join(written(Register(name)) for name in names))
        await asyncio.sleep(0.001)


async def lists(attacker: Attacker) -> None:
    """The most expensive thing that a device may ask for."""
    node = await attacker.register()
    await again(attacker, written(ListRoles(limit=1000), source=node) * 20)


async def small_broadcasts(attacker: Attacker) -> None:
    node = await attacker.register()
    await again(attacker, written(bytes(100), source=node, sub_proto=9) * 100)


async def large_broadcasts(attacker: Attacker) -> None:
    node = await attacker.register()
    await again(attacker, written(bytes(_OPAQUE), source=node, sub_proto=9))


async def again(attacker: Attacker, data: bytes) -> None:
    """The same bytes for ever, on the connection that there is."""
    with suppress(OSError):
        while True:
            await attacker.send(data)
    print("a registered stranger was disconnected", file=sys.stderr, flush=True)


async def churn(attacker: Attacker) -> None:
    while True:
        with suppress(OSError):
            await attacker.connect(reads=False)
        await asyncio.sleep(0)


# What 5,000 of them make the hub hold.


async def idle(attacker: Attacker) -> None:
    await attacker.connect(reads=False)


async def half_a_frame(attacker: Attacker) -> None:
    with suppress(OSError):
        await attacker.connect(reads=False)
        await attacker.send(payload(b" " * _PAYLOAD)[:-1])


async def half_a_large_frame(attacker: Attacker) -> None:
    with suppress(OSError):
        await attacker.connect(reads=False)
        await attacker.send(written(bytes(_OPAQUE), sub_proto=9)[:-1])


async def half_a_large_frame_of_a_device(attacker: Attacker) -> None:
    with suppress(OSError):
        await attacker.register()
        await attacker.send(written(bytes(_OPAQUE), sub_proto=9)[:-1])


async def answers_that_nobody_reads(attacker: Attacker) -> None:
    with suppress(OSError):
        await attacker.connect(reads=False)
        await asyncio.wait_for(attacker.send(written(Authenticate("honest", "w" * 43)) * 2000), 5)


KINDS: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    "nested brackets": nested,
    "sawtooth of brackets": sawtooth,
    "garbage": garbage,
    "unreadable requests": unreadable,
    "byte by byte": byte_by_byte,
    "half-open frames": half_frames,
    "failed authentications": failed_authentications,
    "answers not read": unread_answers,
    "registrations": registrations,
    "long lists": lists,
    "small broadcasts": small_broadcasts,
    "1 MiB broadcasts": large_broadcasts,
    "connect and close": churn,
}
HOLDING: dict[str, Callable[[Attacker], Awaitable[None]]] = {
    "idle": idle,
    "64 KiB frame, a byte missing": half_a_frame,
    "1 MiB frame, a byte missing": half_a_large_frame,
    "1 MiB frame of a registered device": half_a_large_frame_of_a_device,
    "answers that nobody reads": answers_that_nobody_reads,
}


async def main(kind: str, port: int, connections: int) -> None:
    attackers = [Attacker(port, number) for number in range(connections)]
    stopped = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    if kind in HOLDING:
        for at in range(0, connections, 50):
            await asyncio.gather(*(HOLDING[kind](each) for each in attackers[at : at + 50]))
        print("ready", flush=True)
    else:
        tasks = [asyncio.ensure_future(KINDS[kind](each)) for each in attackers]
        await asyncio.sleep(0.5)
        print("ready", flush=True)
    await stopped
    os._exit(0 if kind in HOLDING or not any(task.done() and task.exception() for task in tasks) else 1)


if __name__ == "__main__":
    os.nice(10)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
