"""A clock that is wrong costs a timestamp, never the hub."""

import time

import pytest

from hubauth.core.messages import Frame, Register
from hubauth.shell import engine
from tests.shell.harness import config, run, running
from tests.shell.raw import peer, register, written


@pytest.mark.parametrize("now", [-1.0, -(2.0**40), 2.0**32, 2.0**32 + 7.5, 2.0**60])
def test_before_1970_and_after_2106(monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as device:
            monkeypatch.setattr(engine, "wall_clock", lambda: now)
            await device.send(register("sensor"))
            (answer,) = await device.frames(1)
            assert answer.timestamp == int(now) % 2**32
            monkeypatch.setattr(engine, "wall_clock", time.time)
            await device.send(written(Frame(Register("sensor"), msg_id=2)))
            assert (await device.frames(1))[0].msg_id == 2

    run(story())


def test_a_turn_that_begins_badly_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> float:
        raise OSError("no clock")

    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as device, peer(hub.address) as other:
            monkeypatch.setattr(engine, "wall_clock", broken)
            await device.send(register("sensor"))
            assert await device.closed()
            monkeypatch.setattr(engine, "wall_clock", time.time)
            await other.send(register("other"))
            assert len(await other.frames(1)) == 1

    run(story())
