"""A hub and its parent: refused, silent, slow, or back again."""

import asyncio
from typing import Any

import pytest

from hubauth.core.messages import Answer, Authenticate, Frame, Major, Reason
from hubauth.core.outputs import NoteKind
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from hubauth.shell.hub import Hub
from hubauth.wire.header import Version
from tests.shell.harness import child_config, config, joined, refusal, run, running, until, verified
from tests.shell.raw import Peer, peer, register, written


def test_a_refused_hub_stays_away_but_serves() -> None:
    async def story() -> None:
        async with (
            running(config(provisioned=[verified(2)])) as root,
            running(child_config(2, root.address, hub={"credential": "w" * 43})) as child,
        ):
            await until(lambda: child.observer.counters["notes", NoteKind.REFUSED_BY_PARENT.value])
            assert not child.engine.state.parent_present
            async with DeviceClient(child.address, "device") as device:
                assert await refusal(device.register()) is Reason.UNREACHABLE

    run(story())


def test_a_hub_without_a_parent_to_reach_keeps_trying() -> None:
    async def story() -> None:
        probe = Hub(config())
        await probe.start()
        address = probe.address
        await probe.stop()
        async with running(child_config(2, address)) as child:
            await until(lambda: child.observer.counters["parent_failures", ""] >= 3)
            async with running(config(provisioned=[verified(2)], listen={"address": str(address)})):
                await joined(child)

    run(story())


def test_a_connection_that_is_given_up_while_it_is_made_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        connect = loop.create_connection
        made: list[object] = []

        async def too_slow(*arguments: Any, **options: Any) -> Any:
            transport, connection = await connect(*arguments, **options)
            made.append(connection)
            if len(made) == 1:
                # As uvloop does it: closed, and the protocol hears nothing of it.
                transport.set_protocol(asyncio.Protocol())
                transport.abort()
                raise TimeoutError
            return transport, connection

        monkeypatch.setattr(loop, "create_connection", too_slow)
        async with running(config(provisioned=[verified(2)])) as root, running(child_config(2, root.address)) as child:
            await joined(child)
            assert len(made) == 2

    run(story())


def test_everything_online_is_announced_to_a_parent_that_returns() -> None:
    async def story() -> None:
        count = 60
        root = Hub(config(provisioned=[verified(2)]))
        await root.start()
        address = root.address
        async with running(child_config(2, address, limits={"announce_batch": 7})) as child:
            await joined(child)
            devices = [DeviceClient(child.address, f"d{number}") for number in range(count)]
            for device in devices:
                await device.__aenter__()
                await device.register()
            await root.stop()
            await until(lambda: not child.engine.state.parent_present)
            async with running(config(provisioned=[verified(2)], listen={"address": str(address)})) as again:
                await joined(child)
                await until(lambda: len(again.engine.state.index.online_via.get(2, ())) == count, "all announced")
            for device in devices:
                await device.close()

    run(story())


@pytest.mark.parametrize("tears", ["silence", "garbage", "hang up"])
def test_a_parent_that_misbehaves(tears: str) -> None:
    """Whatever a parent does, the hub answers its own devices and comes back when the parent is sane."""

    async def story() -> None:
        meetings = 0

        async def parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal meetings
            meetings += 1
            other = Peer(reader, writer, Version.V1)
            frames = await other.frames(1)
            if meetings >= 3 and frames:
                answer = Answer(Authenticate.action, Reason.OK, "hub-2", 2, "x" * 43)
                await other.send(written(Frame(answer, Major.OK_RESP, frames[0].msg_id, 1)))
                await other.closed()
            elif tears == "garbage":
                await other.send(b"\xff" * 100)
            elif tears == "silence":
                await other.closed()
            writer.close()

        server = await asyncio.start_server(parent, "127.0.0.1", 0)
        address = Address(*server.sockets[0].getsockname())
        async with running(child_config(2, address, limits={"request_seconds": 0.1})) as child:
            await joined(child)
            assert meetings == 3
            async with peer(child.address) as asker:
                await asker.send(register("device"))
                (frame,) = await asker.frames(1)
                assert isinstance(frame.body, Answer) and frame.body.reason is Reason.UNREACHABLE
        server.close()
        await server.wait_closed()

    run(story())
