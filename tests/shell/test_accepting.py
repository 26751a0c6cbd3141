"""After a restart everybody comes at once: who waits to be accepted is taken in many at a time."""

import asyncio
import socket
from itertools import pairwise

from hubauth.shell.hub import Hub
from tests.shell.harness import config, run, running, until
from tests.shell.raw import peer, register

MANY = 50


async def all_gone(hub: Hub, connected: list[socket.socket]) -> None:
    for sock in connected:
        sock.close()
    await until(lambda: hub.connections == 0)


def test_many_are_accepted_in_few_turns() -> None:
    async def story() -> None:
        async with running(config()) as hub:
            waiting = [socket.create_connection(hub.address) for _ in range(MANY)]
            turns = 0
            while hub.observer.counters["accepted", ""] < MANY:
                turns += 1
                await asyncio.sleep(0)
                assert turns < 10_000
            assert turns < MANY, f"{turns} turns for {MANY} connections"
            await all_gone(hub, waiting)

    run(story())


def test_a_crowd_does_not_keep_everybody_else_waiting() -> None:
    async def story() -> None:
        async with running(config()) as hub:
            waiting = [socket.create_connection(hub.address) for _ in range(10 * MANY)]
            accepted = [0]
            while accepted[-1] < len(waiting):
                await asyncio.sleep(0)
                accepted.append(hub.observer.counters["accepted", ""])
            assert max(later - sooner for sooner, later in pairwise(accepted)) < 2 * MANY
            await all_gone(hub, waiting)

    run(story())


def test_never_more_than_there_is_room_for() -> None:
    async def story() -> None:
        async with running(config(limits={"connections": 3})) as hub:
            waiting = [socket.create_connection(hub.address) for _ in range(MANY)]
            await until(lambda: hub.connections == 3)
            for _ in range(MANY):
                await asyncio.sleep(0)
            assert hub.connections == 3 and hub.observer.counters["accepted", ""] == 3
            for sock in waiting:
                sock.close()
            async with peer(hub.address) as late:
                await late.send(register("late"))
                assert len(await late.frames(1)) == 1

    run(story())
