"""What can wait leaves with few writes, what is long over many turns, and answers come behind both."""

import asyncio
from contextlib import AsyncExitStack

import pytest
import uvloop

from hubauth.core.messages import Answer, Frame, GetPerms, Major
from hubauth.shell.addresses import Address
from hubauth.shell.connection import Connection
from hubauth.shell.outgoing import Outgoing
from hubauth.shell.outlet import Outlet
from tests.shell.harness import config, run, running, until
from tests.shell.raw import Peer, peer, register, written

LONGEST = 1024 * 1024


class Pile:
    """Keeps bytes, and notes whenever it writes some."""

    def __init__(self, name: str, wrote: list[tuple[str, int]], left: int = LONGEST) -> None:
        self._name, self._wrote, self.left = name, wrote, left

    def write_kept(self, most: int) -> int:
        size = min(self.left, most)
        self.left -= size
        if size:
            self._wrote.append((self._name, size))
        return size


def test_a_turn_lets_out_little_and_who_is_preferred_goes_first() -> None:
    async def story() -> None:
        outlet, wrote = Outlet(lambda: False), list[tuple[str, int]]()
        first, second, third = piles = [Pile(name, wrote) for name in ("first", "second", "third")]
        for pile in piles:
            outlet.enlist(pile)
        await asyncio.sleep(0)
        assert third.left == second.left == LONGEST and 0 < first.left < LONGEST
        outlet.prefer(third)
        await until(lambda: not any(pile.left for pile in piles))
        assert list(dict.fromkeys(name for name, _ in reversed(wrote))) == ["second", "first", "third"], (
            "the last first"
        )

    run(story())


def test_while_the_hub_is_busy_what_is_kept_waits_a_few_turns() -> None:
    async def story() -> None:
        busy, wrote = True, list[tuple[str, int]]()
        outlet = Outlet(lambda: busy)
        outlet.enlist(Pile("first", wrote, 100))
        for _ in range(4):
            await asyncio.sleep(0)
            assert not wrote
        await asyncio.sleep(0)
        assert wrote, "a hub that is always busy lets it out, too"
        outlet.enlist(Pile("second", wrote, 100))
        await asyncio.sleep(0)
        assert len(wrote) == 1
        busy = False
        await asyncio.sleep(0)
        assert len(wrote) == 2

    run(story())


def test_a_turn_makes_few_writes() -> None:
    async def story() -> None:
        outlet, wrote = Outlet(lambda: False), list[tuple[str, int]]()
        for number in range(100):
            outlet.enlist(Pile(str(number), wrote, 100))
        await asyncio.sleep(0)
        assert 0 < len(wrote) <= 40
        await until(lambda: len(wrote) == 100)

    run(story())


async def admitted(stack: AsyncExitStack, address: Address, name: str) -> tuple[Peer, int]:
    device = await stack.enter_async_context(peer(address))
    await device.send(register(name))
    (answered,) = await device.frames(1)
    assert isinstance(answered.body, Answer)
    return device, answered.body.node_id


def test_a_broadcast_leaves_piece_by_piece_and_answers_come_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    handed: list[int] = []
    write = Outgoing.write

    def noted(self: Outgoing, transport: asyncio.Transport, data: bytes, *, closes: bool) -> None:
        handed.append(len(data))
        write(self, transport, data, closes=closes)

    monkeypatch.setattr(Outgoing, "write", noted)

    async def story() -> None:
        async with running(config()) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            readers = [await admitted(stack, hub.address, f"reader-{at}") for at in range(5)]
            handed.clear()
            await sender.send(written(Frame(bytes(LONGEST), Major.MSG, source=node, sub_proto=9)))
            for reader, own in readers:
                await until(lambda: handed, "the broadcast begins to leave")
                await reader.send(written(Frame(GetPerms(own), msg_id=7, source=own)))
                bodies = [frame.body for frame in await reader.frames(2)]
                assert isinstance(bodies[0], bytes) and isinstance(bodies[1], Answer)

    run(story())
    assert max(handed) < LONGEST / 2


def noting_writes(monkeypatch: pytest.MonkeyPatch) -> list[Outgoing]:
    """Whose bytes were written, write by write."""
    wrote: list[Outgoing] = []
    write = Outgoing.write

    def noted(self: Outgoing, transport: asyncio.Transport, data: bytes, *, closes: bool) -> None:
        wrote.append(self)
        write(self, transport, data, closes=closes)

    monkeypatch.setattr(Outgoing, "write", noted)
    return wrote


def test_broadcasts_of_many_turns_leave_with_few_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    wrote = noting_writes(monkeypatch)

    async def story() -> None:
        async with running(config(limits={"turn_seconds": 1e-9})) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            reader, _ = await admitted(stack, hub.address, "reader")
            wrote.clear()
            await sender.send(written(Frame(b"x", Major.MSG, source=node, sub_proto=9)) * 40)
            assert len(await reader.frames(40)) == 40

    run(story())
    assert len(wrote) <= 20, "every turn had writes of its own"


def test_an_answer_does_not_wait_for_the_rest_of_a_broadcast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broadcast is decided first. The answer takes the asker's copy along, and nobody else's leaves before."""
    wrote = noting_writes(monkeypatch)

    async def story() -> None:
        async with running(config()) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            readers = [await admitted(stack, hub.address, f"reader-{at}") for at in range(20)]
            asker, own = readers[-1]
            turns = hub.commons.turns
            monkeypatch.setattr(turns, "_is_overloaded", lambda: True)
            for connection in hub._connections:
                connection.cost = turns.floor
            await sender.send(written(Frame(b"x", Major.MSG, source=node, sub_proto=9)))
            await until(lambda: turns.waiting == 1, "the broadcast waits")
            await asker.send(written(Frame(GetPerms(own), msg_id=7, source=own)))
            await until(lambda: turns.waiting == 2, "the request waits")
            wrote.clear()
            monkeypatch.setattr(turns, "_is_overloaded", lambda: False)
            bodies = [frame.body for frame in await asker.frames(2)]
            assert isinstance(bodies[0], bytes) and isinstance(bodies[1], Answer)
            await until(lambda: len(set(wrote)) == 20)
            (answered,) = (one for one in hub._connections if one.link == hub.engine.state.index.link_of_node[own])
            assert wrote[0] is answered._outgoing

    run(story())


def nothing_leaves_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outlet, "enlist", lambda self, keeper: self._waiting.setdefault(keeper))


def test_an_answer_takes_along_what_could_have_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_leaves_by_itself(monkeypatch)

    async def story() -> None:
        async with running(config()) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            reader, own = await admitted(stack, hub.address, "reader")
            await sender.send(written(Frame(b"x", Major.MSG, source=node, sub_proto=9)))
            await until(lambda: any(one._outgoing.is_kept for one in hub._connections), "the broadcast is kept")
            await reader.send(written(Frame(GetPerms(own), msg_id=7, source=own)))
            bodies = [frame.body for frame in await reader.frames(2)]
            assert isinstance(bodies[0], bytes) and isinstance(bodies[1], Answer)
            assert not any(one._outgoing.waiting for one in hub._connections)

    run(story())


def test_no_answer_overtakes_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing_leaves_by_itself(monkeypatch)

    async def story() -> None:
        async with running(config()) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            reader, own = await admitted(stack, hub.address, "reader")
            await sender.send(written(Frame(bytes(LONGEST), Major.MSG, source=node, sub_proto=9)))
            await until(lambda: any(one._outgoing.is_kept for one in hub._connections), "the broadcast is kept")
            (keeper,) = (one for one in hub._connections if one._outgoing.is_kept)
            size = keeper._outgoing.kept_size
            await reader.send(written(Frame(GetPerms(own), msg_id=7, source=own)))
            await until(lambda: keeper._outgoing.kept_size > size, "the answer is kept behind it")
            hub.commons.outlet._take_turn()
            bodies = [frame.body for frame in await reader.frames(2)]
            assert isinstance(bodies[0], bytes) and isinstance(bodies[1], Answer)

    run(story())


def test_a_long_frame_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a loop that reads on and on within one turn, as long as there is something."""
    read, take_in = [0], Connection.data_received

    def noted(self: Connection, data: bytes) -> None:
        read[-1] += len(data)
        take_in(self, data)

    monkeypatch.setattr(Connection, "data_received", noted)

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def next_turn() -> None:
            read.append(0)
            loop.call_soon(next_turn)

        async with running(config()) as hub, AsyncExitStack() as stack:
            sender, node = await admitted(stack, hub.address, "sender")
            reader, _ = await admitted(stack, hub.address, "reader")
            next_turn()
            await sender.send(written(Frame(bytes(LONGEST), Major.MSG, source=node, sub_proto=9)))
            assert [frame.body for frame in await reader.frames(1)] == [bytes(LONGEST)]

    uvloop.run(asyncio.wait_for(story(), 60))
    assert sum(read) > LONGEST and max(read) <= 128 * 1024
