"""A tree of three levels under kills, cuts and freezes: once all is quiet, every device is admitted at every hub.

``HUBAUTH_TREE_DEVICES``, ``HUBAUTH_TREE_FAULTS`` and ``HUBAUTH_TREE_SEED`` make it larger, or another one.
"""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from hubauth.core.messages import Answer, Authenticate, Reason, Register, Request
from tests.shell.forest import ADMINS, NODES, Forest, forest
from tests.shell.harness import run
from tests.shell.wanderers import WINDOW, Company, Device, Line, take

DEVICES = int(os.environ.get("HUBAUTH_TREE_DEVICES", "240"))
FAULTS = int(os.environ.get("HUBAUTH_TREE_FAULTS", "12"))
SEED = int(os.environ.get("HUBAUTH_TREE_SEED", "1"))
TURNS = 3
TRIES = 5
LINES = 8
SHOWN = 10
Asked: TypeAlias = list[tuple[Device, Answer | None]]


async def wander(tree: Forest, devices: list[Device], choice: random.Random) -> list[str]:
    """Devices do what they do while hubs fail; what failed."""
    over = asyncio.Event()
    count = min(len(ADMINS), len(devices))
    companies = [Company(tree, at, devices[at::count], SEED) for at in range(count)]
    wandering = [asyncio.ensure_future(company.wander(TURNS, over)) for company in companies]
    failed = []
    for _ in range(FAULTS):
        failed.append(await tree.disturb(choice))
        await asyncio.sleep(choice.uniform(0.0, 0.4))
    over.set()
    await asyncio.gather(*wandering)
    for company in companies:
        company.close()
    await tree.quiet()
    return failed


async def ask_all(tree: Forest, where: str, devices: list[Device], request: Callable[[Device], Request]) -> Asked:
    """Every device asks at one hub, many at a time; what each was answered."""
    asked: Asked = []

    async def some(part: list[Device]) -> None:
        line = Line(tree, where)
        for at in range(0, len(part), WINDOW):
            window = part[at : at + WINDOW]
            asked.extend(zip(window, await line.ask(*map(request, window)), strict=True))
        line.close()

    await asyncio.gather(*(some(devices[at::LINES]) for at in range(LINES)))
    return asked


async def register_again(tree: Forest, devices: list[Device], choice: random.Random) -> list[str]:
    """Who cannot rely on what it has registers once more, and that must succeed. Who did not."""
    left = [device for device in devices if device.uncertain or not device.credential]
    for _ in range(TRIES):
        place = {device: choice.choice(sorted(NODES)) for device in left}
        for where in NODES:
            here = [device for device in left if place[device] == where]
            for device, answer in await ask_all(tree, where, here, lambda device: Register(device.name)):
                take(device, where, answer)
                device.uncertain = not device.credential
        await tree.quiet()
        left = [device for device in left if device.uncertain]
        if not left:
            break
    return [f"{device.name} cannot register: {'; '.join(device.history)}" for device in left]


async def locked_out(tree: Forest, devices: list[Device], where: str) -> list[str]:
    """Who is not admitted at this hub with what it was given last. What could not be asked is asked again."""
    left, reasons = devices, dict[Device, object]()
    for _ in range(TRIES):
        asked = await ask_all(tree, where, left, lambda device: Authenticate(device.name, device.credential))
        reasons = {
            device: "lost" if answer is None else answer.reason.value
            for device, answer in asked
            if answer is None or answer.reason is not Reason.OK or answer.node_id != device.node_id
        }
        await tree.quiet()
        left = list(reasons)
        if not left:
            break
    return [f"{one.name} is not admitted at {where} ({reasons[one]}): {'; '.join(one.history)}" for one in left]


@pytest.mark.slow
def test_every_device_is_admitted_everywhere_once_all_is_quiet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        choice = random.Random(SEED)
        devices = [Device(f"device-{at}") for at in range(DEVICES)]
        async with forest(tmp_path) as tree:
            failed = await wander(tree, devices, choice)
            sure = sum(bool(device.credential) and not device.uncertain for device in devices)
            lost = await register_again(tree, devices, choice)
            for where in choice.sample(sorted(NODES), len(NODES)):
                lost += await locked_out(tree, [device for device in devices if device.credential], where)
        with capsys.disabled():
            sayings = f"{sure} of them sure of their credential after {len(failed)} faults, {len(lost)} lock-outs"
            print(f"\n{DEVICES} devices, {sayings}", flush=True)
        assert sure, "nobody is sure of anything"
        assert not lost, f"{len(lost)} lock-outs\n" + "\n".join(lost[:SHOWN])

    run(story(), seconds=7200)
