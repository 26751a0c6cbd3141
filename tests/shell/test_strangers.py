"""What peers without a session can make a hub hold: little each, and bounded together."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hubauth.core.messages import Frame, Major, Reason
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options
from hubauth.shell.hub import Hub
from tests.shell.harness import config, run, running, until
from tests.shell.process import hub_process
from tests.shell.raw import peer, register, written
from tests.shell.test_fuzz import resident_bytes
from tests.shell.test_limits import header

LARGE = 1024 * 1024
EXEMPT = '[per_address]\nexempt = ["127.0.0.1"]\n'


@contextmanager
def strangers(address: Address, count: int) -> Iterator[list[socket.socket]]:
    connected = [socket.create_connection(address) for _ in range(count)]
    try:
        yield connected
    finally:
        for stranger in connected:
            stranger.close()


async def send_all(stranger: socket.socket, data: bytes) -> None:
    """As much of it as the hub reads, until it hangs up."""
    stranger.setblocking(False)
    with suppress(OSError):
        await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(stranger, data), 60)


def test_large_frames_are_not_held(tmp_path: Path) -> None:
    """A hundred strangers, each nearly a megabyte into a frame that would be dropped anyhow."""
    settings = tmp_path / "hub.toml"
    settings.write_text(EXEMPT)

    async def story() -> None:
        async with (
            hub_process(tmp_path / "data", "--config", str(settings)) as hub,
            DeviceClient(hub.address, "honest", options=Options(timeout=60.0)) as honest,
        ):
            await honest.register()
            before = resident_bytes(hub)
            with strangers(hub.address, 100) as many:
                await asyncio.gather(*(send_all(one, header(LARGE, 9) + bytes(LARGE - 1)) for one in many))
                assert (await honest.get_perms()).reason is Reason.OK
                grown = resident_bytes(hub) - before
            assert grown < 50_000_000, f"a hundred strangers made the hub hold {grown} bytes"

    run(story(), seconds=300)


def test_a_frame_that_is_passed_over_is_followed_by_others() -> None:
    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as stranger:
            large = written(Frame(bytes(LARGE), Major.MSG, 1, 10, 0, 9))
            await stranger.send(large + register("device", 7))
            (answer,) = await stranger.frames(1)
            assert answer.msg_id == 7 and hub.observer.counters["passed_over", ""] == 1
            # With a session it is a frame like any other.
            async with peer(hub.address) as other:
                await other.send(register("other"))
                assert len(await other.frames(1)) == 1
                await stranger.send(written(Frame(bytes(LARGE), Major.MSG, 1, answer.body.node_id, 0, 9)))  # type: ignore[union-attr]
                (frame,) = await other.frames(1)
                assert len(frame.body) == LARGE  # type: ignore[arg-type]

    run(story())


def test_a_device_need_not_wait_for_its_session_before_it_sends() -> None:
    """Admission and a large frame in one breath: the second is looked at after the first was handled."""

    async def story() -> None:
        device = {"device_id": "known", "node_id": 7, "credential": "k" * 43}
        async with (
            running(config(provisioned=[device])) as hub,
            peer(hub.address) as reader,
            peer(hub.address) as eager,
        ):
            await reader.send(register("reader"))
            assert len(await reader.frames(1)) == 1
            payload = b'{"action":"auth","data":{"device_id":"known","credential":"' + b"k" * 43 + b'"}}'
            large = written(Frame(bytes(LARGE), Major.MSG, 1, 7, 0, 9))
            await eager.send(header(len(payload)) + payload + large)
            assert [len(frame.body) for frame in await reader.frames(1)] == [LARGE]  # type: ignore[arg-type]

    run(story())


def test_all_together_hold_no_more_than_their_room() -> None:
    """Each holds no more than it may alone; those who go on when all together hold too much are closed."""

    async def story() -> None:
        room = 2_000_000
        async with running(config(limits={"unauthenticated_bytes": room})) as hub:
            with strangers(hub.address, 100) as many:
                most = 0
                for one in many:
                    await send_all(one, header(60_000) + bytes(59_000))
                    most = max(most, hub.commons.strangers.held)
                await until(lambda: hub.observer.counters["closed", "no_room"])
                assert most <= room + 300_000
                # Who asks for little is served all the same.
                async with DeviceClient(hub.address, "honest") as honest:
                    await honest.register()
                await all_gone(hub, many)
            assert hub.commons.strangers.held == 0

    run(story())


def test_devices_together_hold_no_more_than_their_room() -> None:
    async def story() -> None:
        room = 3_000_000
        async with running(config(limits={"device_bytes": room})) as hub:
            with strangers(hub.address, 20) as many:
                for number, one in enumerate(many):
                    await send_all(one, register(f"device-{number}") + header(LARGE, 9) + bytes(LARGE - 10_000))
                await until(lambda: hub.observer.counters["closed", "no_room"] > 10)
                assert hub.commons.devices.held <= room + 300_000
                await all_gone(hub, many)
            assert hub.commons.devices.held == hub.commons.strangers.held == 0

    run(story())


async def all_gone(hub: Hub, connected: list[socket.socket]) -> None:
    for one in connected:
        one.close()
    await until(lambda: hub.connections == 0)
