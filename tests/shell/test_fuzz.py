"""A live hub under a hundred thousand hostile byte sequences: it stays up, stays small, and serves everybody else."""

import asyncio
import contextlib
import random
import signal
from pathlib import Path

import pytest

from hubauth.core.messages import Reason
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options
from hubauth.wire.header import Version
from tests.shell.harness import run
from tests.shell.hostile import sequence
from tests.shell.process import HubProcess, hub_process

SEQUENCES = 100_000
ATTACKERS = 8
PER_CONNECTION = 40
GROWTH_BYTES = 24 * 1024 * 1024


def resident_bytes(hub: HubProcess) -> int:
    return int(Path(f"/proc/{hub.process.pid}/statm").read_text().split()[1]) * 4096


async def attack(address: Address, seed: int, count: int) -> int:
    """Send hostile sequences, on a new connection whenever the hub has closed one. How many connections it took."""
    choice = random.Random(seed)
    sent = connections = 0
    while sent < count:
        reader, writer = await asyncio.open_connection(*address)
        connections += 1
        version = choice.choice(list(Version))
        with contextlib.suppress(OSError):
            for _ in range(PER_CONNECTION):
                writer.write(sequence(choice, version))
                sent += 1
                if choice.random() < 0.2:
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        if not await asyncio.wait_for(reader.read(65536), 0.002):
                            break
                if reader.at_eof() or writer.is_closing():
                    break
            if choice.random() < 0.5:
                writer.write_eof()
        writer.transport.abort()
    return connections


async def serve(address: Address, number: int, served: list[int], stop: asyncio.Event) -> None:
    """An honest device: everything it asks for must be granted, on the one connection it has."""
    async with DeviceClient(address, f"honest-{number}", options=Options(timeout=30.0)) as device:
        await device.register()
        while not stop.is_set():
            assert (await device.get_perms()).reason is Reason.OK
            assert (await device.authenticate()).reason is Reason.OK
            served[number] += 1
            await asyncio.sleep(0.01)
        assert device.sessions == served[number] + 1


def storm(directory: Path, sequences: int) -> None:
    settings = directory / "hub.toml"
    settings.write_text('[per_address]\nexempt = ["127.0.0.1"]\n')

    async def story() -> None:
        async with hub_process(directory / "data", "--config", str(settings), "--durability", "os") as hub:
            served, stop = [0, 0, 0], asyncio.Event()
            honest = [asyncio.ensure_future(serve(hub.address, number, served, stop)) for number in range(3)]
            while min(served) < 3:
                await asyncio.sleep(0.01)
            # The first tenth warms up whatever is allocated once.
            await asyncio.gather(
                *(attack(hub.address, seed, sequences // 10 // ATTACKERS) for seed in range(ATTACKERS))
            )
            before, served_before = resident_bytes(hub), list(served)
            attackers = [attack(hub.address, 100 + seed, sequences // ATTACKERS) for seed in range(ATTACKERS)]
            connections = sum(await asyncio.gather(*attackers))
            growth = resident_bytes(hub) - before
            assert all(now > then for now, then in zip(served, served_before, strict=True)), "served throughout"
            stop.set()
            await asyncio.gather(*honest)
            assert connections > ATTACKERS
            assert growth < GROWTH_BYTES, f"grew by {growth} bytes"
            assert await hub.end(signal.SIGTERM) == 0
            assert not [line for line in hub.lines if line["event"] in ("step_failed", "task_failed", "journal_failed")]
            assert "Traceback" not in hub.text

    run(story(), seconds=900)


@pytest.mark.slow
def test_a_hundred_thousand_hostile_sequences(tmp_path: Path) -> None:
    storm(tmp_path, SEQUENCES)


def test_a_few_hostile_sequences(tmp_path: Path) -> None:
    storm(tmp_path, 2000)
