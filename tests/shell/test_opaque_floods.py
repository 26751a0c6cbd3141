"""Frames of other sub-protocols, as many as one device can send: they cost it its frames, and nobody else anything."""

import asyncio
import threading
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hubauth.core.messages import Answer, Authenticate, Frame, Major, Reason
from hubauth.shell import engine
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from hubauth.shell.connection import Connection
from hubauth.wire.header import Version
from tests.shell.harness import child_config, config, joined, run, running, until
from tests.shell.raw import Peer, peer, register, written

DEVICE = {"device_id": "flood", "node_id": 7, "credential": "f" * 43}


async def admitted(one: Peer, name: str) -> int:
    await one.send(register(name))
    (frame,) = await one.frames(1)
    assert isinstance(frame.body, Answer)
    return frame.body.node_id


def test_upwards_faster_than_the_parent_reads() -> None:
    async def story() -> None:
        joins = 0

        async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal joins
            parent = Peer(reader, writer, Version.V1)
            (hello,) = await parent.frames(1)
            joins += 1
            answer = Answer(Authenticate.action, Reason.OK, "hub-2", 2, "x" * 43)
            await parent.send(written(Frame(answer, Major.OK_RESP, hello.msg_id, 1)))
            await done.wait()
            writer.transport.abort()

        done = asyncio.Event()
        server = await asyncio.start_server(slow, "127.0.0.1", 0, limit=1024)
        host, port = server.sockets[0].getsockname()
        limits = {"hub_write_buffer": 1_000_000}
        async with running(child_config(2, Address(host, port), limits=limits, provisioned=[DEVICE])) as hub:
            await joined(hub)
            async with DeviceClient(hub.address, "flood", credential="f" * 43) as flood:
                await flood.authenticate()
                for _ in range(1000):
                    await flood.send(9, bytes(60_000), target=12345)
                    await asyncio.sleep(0)
                    if (
                        hub.observer.counters["unsent", "crowded"] > 50
                        or hub.observer.counters["closed", "slow_reader"]
                    ):
                        break
            assert hub.engine.state.parent_present and joins == 1
            assert hub.observer.counters["closed", "slow_reader"] == 0
            done.set()
        server.close()
        await server.wait_closed()

    run(story())


def test_a_disk_that_hangs_does_not_gather_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_BYTES_IN_FLIGHT", 1_000_000, raising=False)
    disk = threading.Event()

    async def story() -> None:
        storage = {"data_dir": str(tmp_path), "durability": "fsync"}
        async with (
            running(config(storage=storage, limits={"write_buffer": 100_000_000})) as hub,
            peer(hub.address) as sender,
            peer(hub.address) as reader,
            peer(hub.address) as newcomer,
        ):
            source, target = await admitted(sender, "sender"), await admitted(reader, "reader")
            assert hub._journal is not None
            monkeypatch.setattr(hub._journal, "sync", lambda: disk.wait(30) and None)
            await newcomer.send(register("newcomer"))
            await until(lambda: hub.engine._syncing is not None)
            frame = written(Frame(bytes(50_000), Major.MSG, 1, source, target, 9))
            sender.writer.write(frame * 400)
            await until(lambda: hub.engine.overloaded or sender.writer.transport.get_write_buffer_size() == 0)
            assert hub.engine.overloaded, "read on, although nothing could leave"
            held = sum(len(data) for connection in hub._connections for data in connection._outgoing._put)
            assert held < 4_000_000
            disk.set()
            assert len(await reader.frames(400)) == 400

    run(story())


def test_large_broadcasts_disconnect_nobody_who_reads() -> None:
    """Not even somebody who was busy with something else for a moment."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(running(config(limits={"opaque_bytes_per_second": 100_000_000})))
            devices = [await stack.enter_async_context(peer(hub.address)) for _ in range(20)]
            for number, device in enumerate(devices):
                await admitted(device, f"device-{number}")
            stranger = await stack.enter_async_context(peer(hub.address))
            source = await admitted(stranger, "stranger")
            await stranger.send(written(Frame(bytes(1024 * 1024), Major.MSG, 1, source, 0, 9)) * 8 + register("last"))
            # Only its answer tells that all of them were handled.
            assert len(await stranger.frames(1)) == 1
            reading = [asyncio.ensure_future(read_on(device)) for device in devices]
            await until(lambda: not any(waiting(connection) for connection in hub._connections))
            assert hub.connections == 21, "devices that read were disconnected"
            assert not hub.observer.counters["closed", "slow_reader"]
            for task in reading:
                assert not task.done()
                task.cancel()

    run(story(), seconds=300)


async def read_on(one: Peer) -> None:
    """Read whatever comes until the hub hangs up."""
    while await one.reader.read(2**20):
        pass


def waiting(connection: Connection) -> int:
    """What was not written yet."""
    return connection._outgoing.unreleased + (
        connection._transport.get_write_buffer_size() if connection._transport else 0
    )


def test_who_sends_more_than_it_may_is_not_listened_to_for_a_while() -> None:
    """It loses nothing, it has to wait; and nobody else has to."""

    async def story() -> None:
        async with (
            running(config(limits={"opaque_bytes_per_second": 200_000})) as hub,
            peer(hub.address) as sender,
            peer(hub.address) as reader,
        ):
            source, target = await admitted(sender, "sender"), await admitted(reader, "reader")
            frame = written(Frame(bytes(50_000), Major.MSG, 1, source, target, 9))
            sender.writer.write(frame * 12)
            received = asyncio.ensure_future(reader.frames(12))
            await until(lambda: hub.observer.counters["rests", ""])
            async with peer(hub.address) as other:
                await admitted(other, "other")
            assert len(await received) == 12
            assert not hub.observer.counters["unsent", "crowded"]

    run(story())


def test_small_frames_count_by_their_receivers_and_not_by_their_bytes() -> None:
    """A broadcast of one byte costs the hub a write per receiver: 40 of them use up what 400,000 bytes may."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(running(config(limits={"opaque_bytes_per_second": 100_000})))
            devices = [await stack.enter_async_context(peer(hub.address)) for _ in range(10)]
            nodes = [await admitted(device, f"d{number}") for number, device in enumerate(devices)]
            await devices[0].send(written(Frame(b"x", Major.MSG, source=nodes[0], sub_proto=9)) * 40)
            assert len(await devices[1].frames(40)) == 40
            assert hub.observer.counters["rests", ""] == 1

    run(story())


def test_a_broadcast_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []
    put = Connection.put

    def noted(self: Connection, data: bytes, *, can_wait: bool) -> bool:
        sent.append(data)
        return put(self, data, can_wait=can_wait)

    async def story() -> None:
        async with (
            running(config()) as hub,
            peer(hub.address) as sender,
            peer(hub.address) as a,
            peer(hub.address) as b,
        ):
            source = await admitted(sender, "sender")
            await admitted(a, "a")
            await admitted(b, "b")
            monkeypatch.setattr(Connection, "put", noted)
            await sender.send(written(Frame(bytes(10_000), Major.MSG, 1, source, 0, 9)))
            assert len(await a.frames(1)) == len(await b.frames(1)) == 1
            assert len(sent) == 2 and sent[0] is sent[1]

    run(story())
