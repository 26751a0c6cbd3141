"""The load of ``make bench-hub``, a process of its own: one job as JSON in, one result as JSON out.

Requests are written as bytes before the clock starts; answers are only cut and counted, and every one must say ``ok``.
"""

import asyncio
import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from struct import Struct as Layout

import msgspec
import uvloop

from hubauth.core.messages import Authenticate, Frame, Register, Request
from hubauth.lab.tree import credential
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import encode_frame
from hubauth.wire.header import Version

_LENGTH = Layout(">I")
_HEADER = 24


class Job(msgspec.Struct):
    """``window`` requests are on their way on each connection. ``seconds`` of them count, after a short beginning."""

    port: int
    kind: str
    connections: int
    window: int
    seconds: float
    devices: int = 0
    """Known to the hub as ``device-000000002`` and so on."""
    prefix: str = "new"


class Result(msgspec.Struct):
    """Latencies in microseconds."""

    done: int
    seconds: float
    p50: float
    p99: float
    failures: int


def requests(job: Job, at: int) -> Iterator[bytes]:
    """What one connection sends, for ever."""
    msg_id = 0
    while True:
        msg_id += 1
        body: Request
        if job.kind == "register":
            body = Register(f"{job.prefix}-{at:04d}-{msg_id:08d}")
        else:
            # Each connection has devices of its own, spread over all of them.
            node = 2 + (at + (msg_id * 7919 % max(job.devices // job.connections, 1)) * job.connections)
            body = Authenticate(f"device-{node:09d}", credential(node))
        yield encode_frame(Version.V1, AUTH, Frame(body, msg_id=msg_id))


class Caller(asyncio.Protocol):
    """One connection."""

    def __init__(self, job: Job, prepared: list[bytes], latencies: list[float]) -> None:
        self._job, self._prepared, self._latencies = job, prepared, latencies
        self._next = 0
        self._sent: deque[float] = deque()
        self._held = b""
        self.done = self.failures = 0
        self.measuring = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def go(self) -> None:
        self._send(self._job.window)

    def _send(self, count: int) -> None:
        frames = self._prepared[self._next : self._next + count]
        if len(frames) < count:
            self._next = 0
            frames = self._prepared[:count]
        self._next += count
        self._sent.extend([time.perf_counter()] * count)
        self._transport.write(b"".join(frames))  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        data = self._held + data
        offset, size, count = 0, len(data), 0
        is_echo = self._job.kind == "echo"
        while size - offset >= _HEADER:
            end = offset + _HEADER + _LENGTH.unpack_from(data, offset + 18)[0]
            if end > size:
                break
            if not is_echo and data[offset] != 0x08:
                self.failures += 1
            offset, count = end, count + 1
        self._held = data[offset:]
        if not count:
            return
        now = time.perf_counter()
        popped = [self._sent.popleft() for _ in range(count)]
        if self.measuring:
            self.done += count
            self._latencies.extend(now - sent for sent in popped)
        self._send(count)


async def drive(job: Job) -> Result:
    latencies: list[float] = []
    loop = asyncio.get_running_loop()
    total = 100_000 if job.kind == "register" else 20_000
    callers = []
    for at in range(job.connections):
        source = requests(job, at)
        prepared = [next(source) for _ in range(max(total // job.connections, job.window))]
        calling = partial(Caller, job, prepared, latencies)
        _, caller = await loop.create_connection(calling, "127.0.0.1", job.port)
        callers.append(caller)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    for caller in callers:
        caller.go()
    await asyncio.sleep(0.3)
    print("measuring", flush=True)
    started = time.perf_counter()
    for caller in callers:
        caller.measuring = True
    await asyncio.sleep(job.seconds)
    for caller in callers:
        caller.measuring = False
    elapsed = time.perf_counter() - started
    print("measured", flush=True)
    latencies.sort()
    done = sum(caller.done for caller in callers)
    p50, p99 = (latencies[int(len(latencies) * share)] * 1e6 if latencies else 0.0 for share in (0.5, 0.99))
    return Result(done, elapsed, p50, p99, sum(caller.failures for caller in callers))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(drive(msgspec.json.decode(sys.argv[1], type=Job)))
    print(json.dumps(msgspec.to_builtins(result)), flush=True)
