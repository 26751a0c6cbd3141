"""Many requests at once, whose answers are much longer than they are, to a peer that reads them in its own time."""

import asyncio

from hubauth.core.messages import Answer, Authenticate, Body, Frame, GetPerms, ListRoles, Offline
from hubauth.shell.hub import Hub
from tests.shell.harness import config, run, running, three_levels, until
from tests.shell.raw import Peer, peer, register, written

DEVICES = 400
REQUESTS = 600


async def populated(hub: Hub, busy: Peer) -> int:
    """Fill the hub; the node of the peer's session."""
    await busy.send(b"".join(register(f"device-{number}", number) for number in range(DEVICES)))
    frames = await busy.frames(DEVICES)
    assert len(frames) == DEVICES == len(hub.engine.state.registry)
    last = frames[-1].body
    assert isinstance(last, Answer)
    return last.node_id


def test_requests_that_were_read_wait_until_their_peer_reads() -> None:
    async def story() -> None:
        perms = ",".join(f"permission-number-{number}" for number in range(4))
        async with running(config(auth={"default_perms": perms})) as hub, peer(hub.address) as eager:
            node_id = await populated(hub, eager)
            (connection,) = hub._connections
            ask = [Frame(ListRoles(limit=1000), msg_id=number, source=node_id) for number in range(REQUESTS)]
            eager.writer.transport.pause_reading()  # type: ignore[attr-defined]
            eager.writer.write(b"".join(map(written, ask)))
            await until(lambda: connection.congested, "more answers than the network takes")
            for _ in range(REQUESTS):
                await asyncio.sleep(0)
            assert hub.observer.counters["closed", "slow_reader"] == 0, "closed for what the hub itself did too early"
            eager.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert [frame.msg_id for frame in await eager.frames(REQUESTS)] == list(range(REQUESTS))

    run(story())


def test_who_goes_before_reading_is_gone() -> None:
    async def story() -> None:
        perms = ",".join(f"permission-number-{number}" for number in range(4))
        async with running(config(auth={"default_perms": perms})) as hub:
            async with peer(hub.address) as eager:
                node_id = await populated(hub, eager)
                (connection,) = hub._connections
                eager.writer.transport.pause_reading()  # type: ignore[attr-defined]
                eager.writer.write(written(Frame(ListRoles(limit=1000), source=node_id)) * REQUESTS)
                await until(lambda: connection.congested)
            await until(lambda: not hub.engine.state.links, "its link is down")

    run(story())


def test_who_leaves_in_the_same_breath_still_gets_every_answer() -> None:
    async def story() -> None:
        async with three_levels() as tree, peer(tree.hubs["A"].address) as device:
            await device.send(register("hasty", 1))
            (admitted,) = await device.frames(1)
            answer = admitted.body
            assert isinstance(answer, Answer)
            me = answer.node_id
            asked: tuple[Body, ...] = (GetPerms(me), Offline("hasty", me), Authenticate("hasty", answer.credential))
            frames = [Frame(body, msg_id=number, source=me) for number, body in enumerate(asked, 2)]
            await device.send(b"".join(map(written, frames)))
            assert {frame.msg_id for frame in await device.frames(3)} == {2, 3, 4}

    run(story())
