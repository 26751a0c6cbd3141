"""A turn is measured by what it costs, in time and bytes, and the cheapest connection goes first."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from hubauth.core.inputs import Link
from hubauth.core.messages import Answer, Frame, Major
from hubauth.shell.engine import Engine
from hubauth.shell.hub import Hub
from hubauth.shell.peers import PARENT_WEIGHT
from hubauth.shell.turn import Turns
from hubauth.wire.framing import RawFrame
from tests.shell.harness import config, run, running, until
from tests.shell.raw import Peer, peer, register, written

DEVICES = 50
BROADCASTS = 64
DEEP = b"[" * 65_536
NESTED = b"\x0b" + bytes(17) + len(DEEP).to_bytes(4, "big") + bytes(2) + DEEP


class Clock:
    """Stands still unless something costs time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Task:
    """A member of whom every frame costs the same."""

    weight = 1.0

    def __init__(self, name: str, clock: Clock, frames: int, seconds: float, served: list[str], size: int = 1) -> None:
        self.name, self._clock, self.frames, self.seconds = name, clock, frames, seconds
        self._served, self._size = served, size
        self.enlisted, self.cost, self.burden, self.failures = False, 0.0, 0.0, 0

    @property
    def wants_a_turn(self) -> bool:
        return self.frames > 0

    def serve(self, until: float, most: int) -> int:
        moved = 0
        while self.frames:
            self.frames -= 1
            self._served.append(self.name)
            self._clock.now += self.seconds
            moved += self._size
            if self._clock.now >= until or moved >= most:
                break
        return moved

    def fail(self, problem: Exception) -> None:  # noqa: ARG002
        self.failures += 1
        self.frames = 0


def scheduled(story: Callable[[Turns, Clock, list[str]], list[list[str]]]) -> list[list[str]]:
    """Run a story about turns of 4 seconds and 400 bytes."""
    told: list[list[list[str]]] = []

    async def whole() -> None:
        turns, clock = Turns(4.0, 400, lambda: False, lambda: None), Clock()
        turns.clock = turns._worked = clock
        told.append(story(turns, clock, []))

    run(whole())
    return told[0]


def take_turns(turns: Turns, served: list[str]) -> list[list[str]]:
    """Who was served in each turn until nobody waits."""
    every = []
    while turns.waiting:
        begun = len(served)
        turns._take_turn()
        every.append(served[begun:])
    return every


def test_a_turn_ends_when_its_time_is_up_and_everybody_has_a_slice() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        for name in "abcdef":
            turns.enlist(Task(name, clock, 2, 1.0, served))
        return take_turns(turns, served)

    assert scheduled(story) == [["a", "b", "c", "d"], ["e", "f", "a", "b"], ["c", "d", "e", "f"]]


def test_a_turn_ends_when_its_bytes_are_up() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        for name in "ab":
            turns.enlist(Task(name, clock, 4, 0.0, served, size=100))
        return take_turns(turns, served)

    first, second = scheduled(story)
    assert len(first) == len(second) == 4 and first[:2] == ["a", "b"]


def test_whoever_has_cost_least_goes_first() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        floods = [Task(f"flood-{number}", clock, 1000, 1.0, served) for number in range(20)]
        for flood in floods:
            turns.enlist(flood)
        for _ in range(10):
            turns._take_turn()
        honest = Task("honest", clock, 0, 0.01, served)
        for _ in range(50):
            honest.frames = 1
            turns.enlist(honest)
            begun = len(served)
            turns._take_turn()
            assert "honest" in served[begun:], "had to wait for another turn"
        return []

    scheduled(story)


def test_a_frame_that_costs_more_than_a_turn_costs_one_turn() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        turns.enlist(Task("slow", clock, 2, 100.0, served))
        turns.enlist(Task("quick", clock, 2, 1.0, served))
        return take_turns(turns, served)

    assert scheduled(story) == [["slow"], ["quick", "quick"], ["slow"]], "answers leave before slow goes on"


def test_who_costs_little_goes_before_all_who_come_back_and_cost_much() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        floods = [Task(f"flood-{number}", clock, 0, 3.0, served) for number in range(20)]
        honest = Task("honest", clock, 0, 0.01, served)
        for _ in range(20):
            for flood in floods:
                flood.frames = 3
                turns.enlist(flood)
                take_turns(turns, served)  # who goes on and on is served whenever nobody else is there
            for flood in floods:
                flood.frames = 1
                turns.enlist(flood)
            honest.frames = 1
            turns.enlist(honest)
            begun = len(served)
            take_turns(turns, served)
            assert served[begun] == "honest"
        return []

    scheduled(story)


def test_what_hundreds_wait_for_is_not_starved_by_them() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        for number in range(300):
            turns.enlist(Task(f"stranger-{number}", clock, 1000, 1.0, served))
        parent = Task("parent", clock, 1000, 1.0, served)
        parent.weight = PARENT_WEIGHT
        turns.enlist(parent)
        while parent.frames:
            turns._take_turn()
        return [list(served)]

    (served,) = scheduled(story)
    assert len(served) < 5000, "of what the hub did, at least a fifth was for the parent"


def test_a_weight_saves_no_more_than_some_turns() -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        turns.enlist(Task("quick", clock, 4000, 1.0, served))
        take_turns(turns, served)
        served.clear()
        parent = Task("parent", clock, 10_000, 1.0, served)
        parent.weight = PARENT_WEIGHT
        turns.enlist(parent)
        turns.enlist(Task("quick", clock, 1, 1.0, served))
        turns.enlist(Task("busy", clock, 10_000, 1.0, served))
        while served.count("busy") < 20:
            turns._take_turn()
        return [list(served)]

    (served,) = scheduled(story)
    assert served.index("busy") < 4 * 512


def test_a_member_that_fails_keeps_nobody_from_being_served() -> None:
    class Broken(Task):
        def serve(self, until: float, most: int) -> int:  # noqa: ARG002
            raise RuntimeError("a bug")

    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        broken = Broken("broken", clock, 1, 1.0, served)
        turns.enlist(broken)
        turns.enlist(Task("fine", clock, 1, 1.0, served))
        done = take_turns(turns, served)
        assert broken.failures == 1 and not broken.enlisted
        return done

    assert scheduled(story) == [["fine"]]


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0.01, 0.5, 1.0, 3.0])), min_size=1, max_size=8))
def test_everything_is_served_and_nobody_gets_ahead_by_more_than_a_slice(members: list[tuple[int, float]]) -> None:
    def story(turns: Turns, clock: Clock, served: list[str]) -> list[list[str]]:
        tasks = [Task(str(at), clock, frames, seconds, served) for at, (frames, seconds) in enumerate(members)]
        for task in tasks:
            turns.enlist(task)
        while turns.waiting:
            turns._take_turn()
            waiting = [task.cost for task in tasks if task.frames]
            assert not waiting or max(waiting) - min(waiting) <= 1.0 + max(seconds for _, seconds in members) + 1e-6
        return [list(served)]

    (served,) = scheduled(story)
    assert sorted(served) == sorted(str(at) for at, (frames, _) in enumerate(members) for _ in range(frames))


def costly(hub: Hub, monkeypatch: pytest.MonkeyPatch, cost: Callable[[RawFrame], float]) -> list[Link]:
    """Let every frame cost as much time as that says, and no more. The links in the order in which they were served."""
    clock, order, receive = Clock(), [], Engine.receive
    turns = hub.commons.turns
    turns.clock = turns._worked = clock
    turns.floor = 0.0
    for connection in hub._connections:
        connection.cost = 0.0

    def noted(self: Engine, link: Link, raw: RawFrame) -> None:
        order.append(link)
        clock.now += cost(raw)
        receive(self, link, raw)

    monkeypatch.setattr(Engine, "receive", noted)
    return order


def test_broadcasts_end_a_turn_early(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(running(config(limits={"turn_bytes": 4 * 24 * DEVICES})))
            peers: list[Peer] = []
            for number in range(DEVICES):
                peers.append(await stack.enter_async_context(peer(hub.address)))
                await peers[-1].send(register(f"device-{number}"))
                (answer,) = await peers[-1].frames(1)
            assert isinstance(answer.body, Answer)
            order = costly(hub, monkeypatch, lambda _: 0.00005)
            loud, patient = peers[-1], peers[0]
            loud.writer.write(written(Frame(b"", Major.MSG, 1, answer.body.node_id, 0, 9)) * BROADCASTS)
            patient.writer.write(register("patient"))
            assert len(await peers[1].frames(BROADCASTS)) == BROADCASTS
            assert len(await patient.frames(BROADCASTS + 1)) == BROADCASTS + 1
            assert len(order) == BROADCASTS + 1
            waited = next(at for at, link in enumerate(order) if link != order[0])
            assert waited <= 8, f"another device had to wait for {waited} broadcasts"

    run(story())


def test_who_asks_goes_before_who_floods_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it has cost more time to decide: what is written because of a broadcast counts."""

    async def story() -> None:
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(running(config()))
            peers, nodes = [], []
            for number in range(11):
                peers.append(await stack.enter_async_context(peer(hub.address)))
                await peers[-1].send(register(f"device-{number}"))
                (answer,) = await peers[-1].frames(1)
                assert isinstance(answer.body, Answer)
                nodes.append(answer.body.node_id)
            order = costly(hub, monkeypatch, lambda _: 0.00005)
            asker, *loud = peers
            turns, heard = hub.commons.turns, 0
            for number in range(5):
                for each, node in zip(loud, nodes[1:], strict=True):
                    await each.send(written(Frame(b"", Major.MSG, 1, node, 0, 9)))
                for at in range(4):
                    await asker.send(register("device-0", 4 * number + at))
                    while (await asker.frames(1))[0].sub_proto != 2:
                        heard += 1
            assert len(await asker.frames(50 - heard)) == 50 - heard, "all broadcasts were handled"
            monkeypatch.setattr(turns, "_is_overloaded", lambda: True)
            for each, node in zip(loud, nodes[1:], strict=True):
                await each.send(written(Frame(b"", Major.MSG, 1, node, 0, 9)))
            await until(lambda: turns.waiting == 10, "ten broadcasts wait")
            await asker.send(register("device-0", 100))
            await until(lambda: turns.waiting == 11, "the request waits")
            begun = len(order)
            monkeypatch.setattr(turns, "_is_overloaded", lambda: False)
            await until(lambda: len(order) == begun + 11)
            assert order.index(hub.engine.state.index.link_of_node[nodes[0]], begun) == begun

    run(story())


def test_five_strangers_do_not_stall_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they have sent is there to be read many times per turn; no more of it is handled than a turn's worth."""

    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as honest:
            await honest.send(register("honest"))
            assert len(await honest.frames(1)) == 1
            strangers = [socket.create_connection(hub.address) for _ in range(5)]
            await until(lambda: hub.connections == 6)
            order = costly(hub, monkeypatch, lambda raw: 0.007 if len(raw.payload) > 1000 else 0.00005)
            for stranger in strangers:
                stranger.setblocking(False)
                pile(stranger, NESTED * 40)
            for number in range(20):
                begun = len(order)
                await honest.send(register("honest", number))
                assert len(await honest.frames(1)) == 1
                waited = len(order) - begun
                assert waited <= 20, f"{waited} frames of others were handled meanwhile"
            for stranger in strangers:
                stranger.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(story(), 120))


def pile(stranger: socket.socket, data: bytes) -> None:
    """Send as much of it as the sockets take at once."""
    try:
        for at in range(0, len(data), 4096):
            stranger.send(data[at : at + 4096])
    except BlockingIOError:
        pass
