"""Every limit, exceeded on purpose, while an honest device on another connection is served."""

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Answer, Authenticate, Frame, Major, Reason, Register
from hubauth.core.model import State
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.shell import engine
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from hubauth.shell.hub import Hub
from hubauth.shell.sockets import keep_alive
from hubauth.wire.header import Version
from tests.shell.harness import child_config, config, joined, refusal, run, running, until, verified
from tests.shell.raw import Peer, peer, register, written


def with_limits(story: Callable[[Hub], Awaitable[None]], **limits: float) -> None:
    """Run a story about a hub with these limits, and look after an honest device before and after it."""

    async def whole() -> None:
        async with running(config(limits=limits)) as hub, DeviceClient(hub.address, "honest") as honest:
            await honest.register()
            await story(hub)
            assert (await honest.get_perms()).reason is Reason.OK
            assert honest.sessions == 1

    run(whole())


def closed(hub: Hub, why: str) -> int:
    return hub.observer.counters["closed", why]


def header(payload_length: int, sub_proto: int = 2) -> bytes:
    return bytes([sub_proto << 2 | 3, 0]) + bytes(16) + payload_length.to_bytes(4, "big") + bytes(2)


@pytest.mark.parametrize(("sub_proto", "limit"), [(2, 1000), (3, 2000)])
def test_payload(sub_proto: int, limit: int) -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as hostile:
            await hostile.send(header(limit + 1, sub_proto))
            assert await hostile.closed()
        assert closed(hub, "unreadable") == 1
        assert hub.observer.counters["refused", "WIRE-6"] == 1

    with_limits(story, payload=1000, opaque_payload=2000)


def test_a_wrong_second_header_closes_after_the_answers_before_it() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address, Version.V2) as hostile:
            good = written(Frame(Authenticate("nobody", "x"), msg_id=5), Version.V2)
            await hostile.send(good + b"XX" + bytes(40))
            (answer,) = await hostile.frames(2)
            assert answer.msg_id == 5
            assert await hostile.closed()

    with_limits(story)


def test_connections_beyond_the_limit_wait_until_there_is_room() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as first, peer(hub.address) as second:
            await first.send(register("one"))
            assert len(await first.frames(1)) == 1
            await second.send(register("two"))
            asked = asyncio.ensure_future(second.frames(1))
            await asyncio.sleep(0.1)
            assert not asked.done() and hub.connections == 2
            first.writer.close()
            assert len(await asked) == 1

    with_limits(story, connections=2)


def test_a_connection_without_a_session() -> None:
    async def story() -> None:
        async with running(config(limits={"unauthenticated_seconds": 0.2})) as hub, peer(hub.address) as silent:
            assert await silent.closed()
            assert closed(hub, "unauthenticated") == 1

    run(story())


def test_a_connection_that_has_asked_for_a_session_in_vain() -> None:
    """Far from its end the time goes by in leaps, so that no stall can end it before the answer."""

    async def story(hub: Hub) -> None:
        async with peer(hub.address) as chatty:
            await chatty.send(written(Frame(Authenticate("nobody", "x"))))
            assert len(await chatty.frames(1)) == 1
            (connection,) = [each for each in hub._connections if each.link == 2]
            for late, expected in ((0.0, 0), (0.1, 1)):
                for each in list(hub._connections):
                    each.check(connection.unbound_since + 600.0 + late)
                assert closed(hub, "unauthenticated") == expected
            assert await chatty.closed()

    with_limits(story, unauthenticated_seconds=600.0, idle_seconds=0.0)


def test_a_device_that_is_idle() -> None:
    async def story() -> None:
        async with running(config(limits={"idle_seconds": 0.2})) as hub, peer(hub.address) as idle:
            await idle.send(register("idle"))
            assert len(await idle.frames(1)) == 1
            assert await idle.closed()
            assert closed(hub, "idle") == 1
            await until(lambda: not hub.engine.state.links)

    run(story())


def test_a_hub_link_may_be_idle() -> None:
    async def story() -> None:
        limits = {"idle_seconds": 0.05, "unauthenticated_seconds": 5.0}
        async with (
            running(config(limits=limits, provisioned=[verified(2)])) as root,
            running(child_config(2, root.address, limits=limits)) as child,
        ):
            await joined(child)
            await asyncio.sleep(0.3)
            assert child.engine.state.parent_present and root.connections == 1
            assert closed(root, "idle") == 0

    run(story())


def test_a_frame_that_never_ends() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as slow:
            await slow.send(register("slow"))
            await slow.frames(1)
            await slow.send(register("slow", 2)[:-1])
            assert await slow.closed()
        assert closed(hub, "frame_timeout") == 1

    with_limits(story, frame_seconds=0.2)


def test_who_does_not_read_loses_what_others_send_it_and_the_buffer_stays_bounded() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address, limit=1024) as slow, DeviceClient(hub.address, "sender") as sender:
            await slow.send(register("sloth"))
            (answer,) = await slow.frames(1)
            assert isinstance(answer.body, Answer)
            await sender.register()
            (sloth,) = [each for each in hub._connections if each.link == 2]
            for _ in range(1000):
                await sender.send(9, bytes(60_000), target=answer.body.node_id)
                assert (await sender.get_perms()).reason is Reason.OK
                assert (
                    sloth._outgoing.unreleased + (sloth._transport.get_write_buffer_size() if sloth._transport else 0)
                    < 200_000
                )
                if hub.observer.counters["unsent", "crowded"] > 20:
                    break
            else:
                raise AssertionError("everything was kept for a peer that does not read")
            assert closed(hub, "slow_reader") == 0
            # It is still served as soon as it reads again.
            await slow.send(register("sloth", 77))
            while (await slow.frames(1))[0].msg_id != 77:
                pass

    with_limits(story, write_buffer=200_000)


def test_who_does_not_read_its_answers_is_not_read_from_either() -> None:
    async def story(hub: Hub) -> None:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(hub.address)
        slow.setblocking(False)
        body = json.dumps({"action": "auth", "data": {"device_id": "n", "credential": "x", "unknown": "x" * 4000}})
        request = header(len(body)) + body.encode()
        await until(lambda: len(hub._connections) == 2)
        (connection,) = [each for each in hub._connections if each.link is None]
        sent, is_full = 0, False
        while not (is_full and connection.congested and not connection._reading):
            assert sent < 200_000_000, "the hub has read on and on"
            try:
                at = sent % len(request)
                sent += slow.send(request[at:] + request * 20)
                is_full = False
            except BlockingIOError:
                is_full = True
            await asyncio.sleep(0)
        assert closed(hub, "slow_reader") == 0
        # As soon as the answers are read, the rest is answered too.
        reader, writer = await asyncio.open_connection(sock=slow)
        expected = sent // len(request)
        assert len(await Peer(reader, writer, Version.V1).frames(expected)) == expected
        writer.transport.abort()

    with_limits(story, write_buffer=10_000_000, unauthenticated_seconds=0.0)


def test_pending_requests_of_one_connection() -> None:
    """An upstream that never answers: 3 wait, the others are told that the hub is busy."""

    async def story() -> None:
        async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            parent = Peer(reader, writer, Version.V1)
            (hello,) = await parent.frames(1)
            answer = Answer(Authenticate.action, Reason.OK, "hub-2", 2, "x" * 43)
            await parent.send(written(Frame(answer, Major.OK_RESP, hello.msg_id, 1)))
            await parent.closed()
            writer.close()

        server = await asyncio.start_server(deaf, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        limits = {"pending": 3, "request_seconds": 1.0}
        async with running(child_config(2, Address(host, port), limits=limits)) as hub, peer(hub.address) as asker:
            await joined(hub)
            await asker.send(b"".join(register(f"d{number}", number) for number in range(1, 11)))
            frames = await asker.frames(10)
            reasons = {frame.msg_id: frame.body.reason for frame in frames if isinstance(frame.body, Answer)}
            assert [reasons[number] for number in range(4, 11)] == [Reason.INTERNAL] * 7, "4500 busy"
            assert [reasons[number] for number in range(1, 4)] == [Reason.UNREACHABLE] * 3
        server.close()
        await server.wait_closed()

    run(story())


def test_one_flooding_peer_does_not_keep_the_others_waiting() -> None:
    async def story(hub: Hub) -> None:
        request = written(Frame(Authenticate("nobody", "x"), msg_id=1))
        async with peer(hub.address) as flood, DeviceClient(hub.address, "patient") as patient:
            await patient.register()
            answered = asyncio.ensure_future(flood.frames(3000))
            flood.writer.write(request * 3000)
            turns = 0
            while not answered.done():
                assert (await patient.get_perms()).reason is Reason.OK
                turns += 1
            assert turns > 10, "the patient device had to wait for the whole flood"

    with_limits(story)


def test_pipelined_requests_are_answered_in_order_also_after_half_a_close() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as eager:
            await eager.send(b"".join(register(f"e{number}", number) for number in range(1, 501)))
            eager.writer.write_eof()
            frames = await eager.frames(501)
            assert [frame.msg_id for frame in frames] == list(range(1, 501))
            assert await eager.closed()

    with_limits(story)


def test_malformed_requests_are_answered_and_cost_nothing() -> None:
    async def story(hub: Hub) -> None:
        before = hub.engine.state.registry
        async with peer(hub.address) as hostile:
            for payload in (b"", b"{", b"[]", json.dumps({"action": "register", "data": 5}).encode(), b"\xff" * 99):
                await hostile.send(header(len(payload)) + payload)
            (answer,) = await hostile.frames(1)
            assert isinstance(answer.body, Answer) and answer.body.reason is Reason.INVALID_REQUEST
        assert hub.engine.state.registry == before

    with_limits(story)


def test_an_unauthenticated_peer_gets_nothing_but_403() -> None:
    async def story(hub: Hub) -> None:
        async with DeviceClient(hub.address, "stranger") as stranger:
            assert await refusal(stranger.get_perms(9)) is Reason.FORBIDDEN

    with_limits(story)


def test_a_disk_that_hangs_stops_the_reading_not_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_RECORDS_IN_FLIGHT", 100)
    disk = threading.Event()

    async def story() -> None:
        async with running(config(storage={"data_dir": str(tmp_path), "durability": "fsync"})) as hub:
            assert hub._journal is not None
            monkeypatch.setattr(hub._journal, "sync", lambda: disk.wait(30) and None)
            async with peer(hub.address) as eager:
                await eager.send(b"".join(register(f"d{number}", number) for number in range(1000)))
                await until(lambda: hub.engine.overloaded)
                await asyncio.sleep(0.05)
                assert len(hub.engine.state.registry) < 300, "read on, although nothing could be answered"
                disk.set()
                assert [frame.msg_id for frame in await eager.frames(1000)] == list(range(1000))

    run(story())


def test_a_step_that_fails_costs_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(policy: Policy, state: State, happened: Input) -> Step:
        if isinstance(happened, Received) and happened.frame.body == Register("bad luck"):
            raise RuntimeError("a bug")
        return step(policy, state, happened)

    async def story(hub: Hub) -> None:
        monkeypatch.setattr(engine, "step", failing)
        async with peer(hub.address) as unlucky:
            await unlucky.send(register("fine", 1) + register("bad luck", 2) + register("never", 3))
            assert [frame.msg_id for frame in await unlucky.frames(3)] == [1]
        assert closed(hub, "step_failed") == 1 and hub.observer.counters["step_failures", ""] == 1
        assert "never" not in hub.engine.state.registry

    with_limits(story)


def test_tcp_watches_over_silent_peers() -> None:
    with socket.socket() as watched:
        keep_alive(watched, 60.0)
        assert watched.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert watched.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
        assert watched.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 120_000
    with socket.socket() as unwatched:
        keep_alive(unwatched, 0)
        assert not unwatched.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
