"""What one address may do, and what somebody who does more is told: nothing it could use, and nobody else suffers."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubauth.core.messages import Answer, Authenticate, Frame, Major, Reason
from hubauth.shell import neighbourhood
from hubauth.shell.addresses import Address
from hubauth.shell.allowance import Rate
from hubauth.shell.client import DeviceClient
from hubauth.shell.hub import Hub
from hubauth.shell.neighbourhood import Neighbourhood
from hubauth.shell.settings import PerAddressTable
from hubauth.shell.status import count_pending
from hubauth.wire.header import Version
from tests.shell.harness import child_config, config, joined, refusal, run, running, until, verified
from tests.shell.raw import Peer, peer, register, written

KNOWN = {"device_id": "known", "node_id": 7, "credential": "k" * 43}


def with_allowances(story: Callable[[Hub], Awaitable[None]], **allowances: object) -> None:
    async def whole() -> None:
        async with running(config(per_address={"exempt": [], **allowances}, provisioned=[KNOWN, verified(2)])) as hub:
            await story(hub)

    run(whole())


def limited(hub: Hub) -> int:
    return hub.observer.counters["alarms", "limited"]


async def connected_from(host: str, address: Address) -> Peer:
    reader, writer = await asyncio.open_connection(*address, local_addr=(host, 0))
    return Peer(reader, writer, Version.V1)


def guess(number: int = 1) -> bytes:
    return written(Frame(Authenticate("known", "wrong"), msg_id=number))


def test_connections_at_the_same_time() -> None:
    async def story(hub: Hub) -> None:
        first = [await connected_from("127.0.0.2", hub.address) for _ in range(3)]
        await until(lambda: hub.connections == 3)
        refused = await connected_from("127.0.0.2", hub.address)
        assert await refused.closed() and limited(hub) == 1 and hub.connections == 3
        # Another address has slots of its own.
        other = await connected_from("127.0.0.3", hub.address)
        await other.send(register("other"))
        assert len(await other.frames(1)) == 1
        # Whoever goes makes room.
        first[0].writer.close()
        await until(lambda: hub.connections == 3)
        again = await connected_from("127.0.0.2", hub.address)
        await again.send(register("again"))
        assert len(await again.frames(1)) == 1
        for one in (*first, refused, other, again):
            one.writer.transport.abort()
        await until(lambda: hub.connections == 0)
        assert not hub._neighbourhood._connections

    with_allowances(story, connections=3)


def test_connecting_again_and_again() -> None:
    async def story(hub: Hub) -> None:
        for _ in range(10):
            socket.create_connection(hub.address, source_address=("127.0.0.2", 0)).close()
        await until(lambda: hub.observer.counters["accepted", ""] + limited(hub) == 10)
        assert hub.observer.counters["accepted", ""] == 5

    with_allowances(story, connects_per_minute=5)


def many_wait(hub: Hub, requests: int) -> bool:
    return count_pending(hub.engine.state) == requests


@pytest.mark.parametrize("how", ["resets", "is closed for nonsense"])
def test_what_is_asked_of_other_hubs_and_left_behind_counts_as_connections(how: str) -> None:
    """Else a stranger who closes and connects again would keep the parent at work without a bound."""

    async def story() -> None:
        ended = asyncio.Event()

        async def silent_parent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            above = Peer(reader, writer, Version.V1)
            (hello,) = await above.frames(1)
            answer = Answer(Authenticate.action, Reason.OK, "hub-2", 2, "x" * 43)
            await above.send(written(Frame(answer, Major.OK_RESP, hello.msg_id, 1)))
            await ended.wait()
            writer.transport.abort()

        server = await asyncio.start_server(silent_parent, "127.0.0.1", 0)
        above = Address(*server.sockets[0].getsockname())
        allowed = {"exempt": [], "connects_per_minute": 10}
        limits = {"request_seconds": 300}
        async with running(child_config(2, above, listen={"header": 2}, per_address=allowed, limits=limits)) as hub:
            await joined(hub)
            for requests in (1, 40):
                stranger = await connected_from("127.0.0.2", hub.address)
                asked = [Frame(Authenticate(f"d{number}", "w" * 43), msg_id=number) for number in range(requests)]
                await stranger.send(b"".join(written(frame, Version.V2) for frame in asked))
                await until(partial(many_wait, hub, requests), "all wait for the parent")
                if how != "resets":
                    await stranger.send(bytes(32))
                else:
                    linger = struct.pack("ii", 1, 0)  # else it would only have said its last word
                    stranger.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    stranger.writer.transport.abort()
                await until(lambda: not hub.connections and many_wait(hub, 0), "nobody waits any more")
                stranger.writer.transport.abort()
            # Two connections, and 39 requests more than one of each: that is used up for minutes.
            refused = await connected_from("127.0.0.2", hub.address)
            assert await refused.closed() and limited(hub) == 1
            refused.writer.transport.abort()
            ended.set()
        server.close()
        await server.wait_closed()

    run(story())


def test_failed_authentications() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as guesser, peer(hub.address) as honest:
            await guesser.send(b"".join(guess(number) for number in range(1, 9)))
            # Every guess that was handled is answered; the first one too many is the last.
            frames = await guesser.frames(9)
            assert [frame.msg_id for frame in frames] == [1, 2, 3, 4]
            assert await guesser.closed() and hub.observer.counters["closed", "failures"] == 1
            # At the same address the right credential is as good as ever.
            await honest.send(written(Frame(Authenticate("known", "k" * 43))))
            (answer,) = await honest.frames(1)
            assert isinstance(answer.body, Answer) and answer.body.reason is Reason.OK
        assert hub.observer.counters["alarms", "failed_authentication"] == 4

    with_allowances(story, failures_per_minute=3)


def test_registrations() -> None:
    async def story(hub: Hub) -> None:
        async with peer(hub.address) as greedy, DeviceClient(hub.address, "known", credential="k" * 43) as known:
            await known.authenticate()
            await greedy.send(b"".join(register(f"d{number}", number) for number in range(1, 6)))
            assert [frame.msg_id for frame in await greedy.frames(5)] == [1, 2, 3]
            assert await greedy.closed() and hub.observer.counters["closed", "registrations"] == 1
            assert sorted(hub.engine.state.registry) == ["d1", "d2", "d3"]
            assert (await known.get_perms()).reason is Reason.OK

    with_allowances(story, registrations_per_hour=3)


def test_exempt_addresses_and_networks() -> None:
    async def story(hub: Hub) -> None:
        for host in ("127.0.0.2", "127.0.0.99"):
            listed = await connected_from(host, hub.address)
            await listed.send(b"".join(guess(number) for number in range(9)))
            assert len(await listed.frames(9)) == 9
            listed.writer.transport.abort()
        async with peer(hub.address) as other:
            await other.send(b"".join(guess(number) for number in range(9)))
            assert len(await other.frames(9)) == 2

    with_allowances(story, failures_per_minute=1, exempt=["127.0.0.2", "127.0.0.64/26"])


def test_a_child_hub_is_not_counted_for_what_its_devices_do() -> None:
    async def story(root: Hub) -> None:
        async with running(child_config(2, root.address)) as child:
            await joined(child)
            for number in range(10):
                async with DeviceClient(child.address, "known", credential=f"guess-{number}") as guesser:
                    assert await refusal(guesser.authenticate()) is Reason.NOT_ADMITTED
                async with DeviceClient(child.address, f"device-{number}") as device:
                    await device.register()
            assert child.engine.state.parent_present and limited(root) == 0

    with_allowances(story, failures_per_minute=1, registrations_per_hour=1)


def test_sites() -> None:
    hood = Neighbourhood(PerAddressTable(exempt=("10.1.0.0/16", "fd00::/8")))
    assert hood.site_of("192.0.2.7") == hood.site_of("::ffff:192.0.2.7") == "192.0.2.7"
    assert hood.site_of("2001:db8:1:2::1") == hood.site_of("2001:db8:1:2:ffff::") == "2001:db8:1:2::/64"
    assert hood.site_of("fe80::1%eth0") == "fe80::/64"
    assert [hood.site_of(host) for host in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "", "a socket")] == [""] * 5


def test_the_table_of_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbourhood, "_REMEMBERED", 100)
    hood = Neighbourhood(PerAddressTable(failures_per_minute=2))
    for number in range(1000):
        assert hood.takes("failures", f"site-{number}", 0.0)
        assert len(hood._used_until) <= 101
    assert [hood.takes("failures", "site-999", 0.0) for _ in range(2)] == [True, False], "the latest is remembered"
    assert hood.takes("failures", "site-0", 60.0)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.integers(1, 10))
def test_no_more_is_taken_than_is_allowed(pauses: list[float], at_once: int) -> None:
    """In any stretch of time: what may be used at once, and what comes back meanwhile."""
    rate, used_until, now = Rate(at_once, 60.0), 0.0, 1000.0
    taken: list[float] = []
    for pause in pauses:
        now += pause
        after = rate.spend(used_until, now)
        if not rate.wait(after, now):
            used_until = after
            taken.append(now)
        else:
            assert len(taken) >= at_once
    for at, begun in enumerate(taken):
        for many, ended in enumerate(taken[at:], 1):
            assert many <= at_once + (ended - begun) * at_once / 60.0 + 1 + 1e-6
