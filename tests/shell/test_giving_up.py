"""A device that gives up has given up, at whatever moment."""

import asyncio

import pytest

from hubauth.shell.addresses import parse_address
from hubauth.shell.client import DeviceClient, Options, Unavailable
from tests.shell.harness import run

NOBODY = parse_address("127.0.0.1:1")


async def give_up(seconds: float) -> None:
    device = DeviceClient(NOBODY, "d", options=Options(timeout=seconds))
    with pytest.raises(Unavailable):
        async with device:
            await device.register()


def test_a_device_that_nobody_answers_can_always_be_closed() -> None:
    """Each gives up at another moment, some of them just when a connection is refused."""

    async def story() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(give_up(0.05 + number / 1000) for number in range(300)))

    run(story())
