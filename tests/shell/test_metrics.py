"""The endpoint for counters among strangers."""

import asyncio
import contextlib
import socket
import struct
import threading

import pytest

from hubauth.shell.addresses import Address
from hubauth.shell.metrics import serve_metrics
from tests.shell.harness import config, run, running, until


async def get(address: Address, request: bytes = b"GET /metrics HTTP/1.1\r\n\r\n") -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


def test_strangers_take_neither_threads_nor_places_for_ever(capfd: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with running(config()) as hub:
            endpoint = await serve_metrics(Address("127.0.0.1", 0), hub)
            threads = threading.active_count()
            idle = [socket.create_connection(endpoint.address) for _ in range(50)]
            for request in (b"GET /met", b"GET /metrics HTTP/1.1\r\n\r\n"):
                rude = socket.create_connection(endpoint.address)
                rude.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                rude.sendall(request)
                rude.close()
            await asyncio.sleep(0.1)
            assert threading.active_count() <= threads
            for sock in idle:
                sock.close()
            answer = b""

            async def served() -> None:
                nonlocal answer
                while b"hubauth_connections 0.0" not in answer:
                    with contextlib.suppress(OSError):
                        answer = await get(endpoint.address)
                    await asyncio.sleep(0.01)

            await asyncio.wait_for(served(), 20)
            assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
            assert (await get(endpoint.address, b"POST / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.0 405")
            with contextlib.suppress(OSError):
                assert await get(endpoint.address, b"GET /" + b"x" * 100_000) == b""
            endpoint.stop()
            await until(lambda: hub.connections == 0)

    run(story())
    assert "Traceback" not in capfd.readouterr().err
