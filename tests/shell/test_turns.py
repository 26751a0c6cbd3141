"""A turn is measured by what it costs, not only by how many frames came."""

from contextlib import AsyncExitStack

import pytest

from hubauth.core.inputs import Link
from hubauth.core.messages import Answer, Frame, Major
from hubauth.shell.engine import Engine
from hubauth.wire.framing import RawFrame
from tests.shell.harness import config, run, running
from tests.shell.raw import Peer, peer, register, written

DEVICES = 50
BROADCASTS = 64


def test_broadcasts_end_a_turn_early(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[Link] = []
    receive = Engine.receive

    def noted(self: Engine, link: Link, raw: RawFrame) -> int:
        order.append(link)
        return receive(self, link, raw)

    async def story() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(running(config(limits={"frames_per_turn": 32})))
            peers: list[Peer] = []
            for number in range(DEVICES):
                peers.append(await stack.enter_async_context(peer(hub.address)))
                await peers[-1].send(register(f"device-{number}"))
                (answer,) = await peers[-1].frames(1)
            assert isinstance(answer.body, Answer)
            monkeypatch.setattr(Engine, "receive", noted)
            loud, patient = peers[-1], peers[0]
            loud.writer.write(written(Frame(b"", Major.MSG, 1, answer.body.node_id, 0, 9)) * BROADCASTS)
            patient.writer.write(register("patient"))
            assert len(await peers[1].frames(BROADCASTS)) == BROADCASTS
            assert len(await patient.frames(BROADCASTS + 1)) == BROADCASTS + 1
            assert len(order) == BROADCASTS + 1
            waited = next(at for at, link in enumerate(order) if link != order[0])
            assert waited <= 8, f"another device had to wait for {waited} broadcasts"

    run(story())
