"""A frame that arrives byte by byte has no more time than one that stops."""

import asyncio
from functools import partial

from hubauth.core.messages import Frame
from hubauth.shell.hub import Hub
from tests.shell.harness import config, run, running, until
from tests.shell.raw import peer, register, written


def test_a_frame_that_comes_byte_by_byte() -> None:
    async def story() -> None:
        async with running(config(limits={"frame_seconds": 0.2})) as hub, peer(hub.address) as slow:
            await slow.send(register("slow"))
            assert len(await slow.frames(1)) == 1
            for byte in register("slow", 2)[:-1]:
                if slow.reader.at_eof():
                    break
                slow.writer.write(bytes([byte]))
                await asyncio.sleep(0.05)
            await until(lambda: hub.observer.counters["closed", "frame_timeout"] == 1, "it is closed")

    run(story())


def has_its_own_time(hub: Hub, since: float) -> bool:
    """Whether the time of the frame that is not complete yet, on the only connection, began after this."""
    (connection,) = hub._connections
    return connection._frame_since is not None and connection._frame_since >= since


def test_many_whole_frames_that_are_cut_anyhow() -> None:
    """The time of each frame begins with that frame, although there is always one that is not complete."""

    async def story() -> None:
        async with running(config(limits={"frame_seconds": 600.0})) as hub, peer(hub.address) as steady:
            requests = [register("steady", number) for number in range(25)]
            data, end, sent = b"".join(requests), 0, 0
            now = asyncio.get_running_loop().time
            for number, request in enumerate(requests[:-1]):
                end += len(request)
                upto, begun = end + 1 + 5 * number % (len(request) - 1), now()
                await steady.send(data[sent:upto])
                sent = upto
                assert [frame.msg_id for frame in await steady.frames(1)] == [number]
                await until(partial(has_its_own_time, hub, begun), f"frame {number + 1} has its own time")
            assert hub.observer.counters["closed", "frame_timeout"] == 0

    run(story())


def test_a_frame_that_was_passed_over_to_its_end_is_not_waited_for() -> None:
    """Who sent it says nothing more; whoever begins a frame after that and stops is closed, and the first is not."""

    async def story() -> None:
        limits = {"frame_seconds": 0.3, "payload": 1024}
        async with running(config(limits=limits)) as hub, peer(hub.address) as first, peer(hub.address) as second:
            large = written(Frame(b"x" * 5000, sub_proto=5))
            await first.send(large[:100])
            await until(lambda: hub.observer.counters["passed_over", ""] == 1)
            await first.send(large[100:])
            await until(lambda: not any(connection._decoder._passing for connection in hub._connections))
            await second.send(register("second")[:-1])
            assert await second.closed()
            await first.send(register("first"))
            assert len(await first.frames(1)) == 1

    run(story())
