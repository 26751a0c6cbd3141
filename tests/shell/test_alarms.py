"""What an operator must hear of is counted and said, whatever noise others make."""

import io
import re
from contextlib import AsyncExitStack

import pytest

from hubauth.core.messages import Answer, AssistRegister, Authenticate, Frame, Reason, Register, Request
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from tests.shell.harness import child_config, config, refusal, run, running, three_levels
from tests.shell.raw import peer, register, written
from tests.shell.test_observe import lines, log

__all__ = ["log"]


def test_failed_authentications_takeovers_and_refused_hubs(log: io.StringIO) -> None:
    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as stranger:
            async with DeviceClient(hub.address, "sensor") as sensor:
                await sensor.register()
                await stranger.send(written(Frame(Authenticate("sensor", "wrong"), msg_id=1)))
                await stranger.send(written(Frame(Authenticate("s" * 43, "wrong"), msg_id=2)))
                await stranger.send(written(Frame(AssistRegister("sensor"), msg_id=3)))
                await stranger.send(written(Frame(Register("sensor"), msg_id=4)))
                answers = [frame.body for frame in await stranger.frames(4)]
                assert [answer.reason for answer in answers if isinstance(answer, Answer)] == [
                    Reason.NOT_ADMITTED,
                    Reason.NOT_ADMITTED,
                    Reason.FORBIDDEN,
                    Reason.OK,
                ]
            alarms = {name: count for (kind, name), count in hub.observer.counters.items() if kind == "alarms"}
            assert alarms == {"failed_authentication": 2, "refused_hub": 1, "reregistered": 1}

    run(story())
    failed = lines(log, "failed_authentication")
    assert [line["device"] for line in failed] == ["sensor", "unknown, a name of 43 characters"]
    assert [line["device"] for line in lines(log, "refused_hub") + lines(log, "reregistered")] == ["sensor"] * 2
    assert all(line["level"] == "warning" and re.match(r"127\.0\.0\.1:\d+$", line["peer"]) for line in failed)


def test_a_takeover_shows_at_the_authority_and_a_failed_search_where_the_device_is() -> None:
    async def story() -> None:
        async with three_levels() as tree:
            device = await tree.device("sensor", "A")
            await device.register()
            guesser = await tree.device("sensor", "B", credential="wrong")
            assert await refusal(guesser.authenticate()) is Reason.NOT_ADMITTED
            assert [hub.observer.counters["alarms", "failed_authentication"] for hub in tree.hubs.values()] == [
                0,
                0,
                0,
                1,
            ]
            await guesser.register()
            assert tree.hubs["root"].observer.counters["alarms", "reregistered"] == 1

    run(story())


@pytest.mark.parametrize("noise", [Register("loud"), Authenticate("nobody", "x")])
def test_noise_does_not_hide_what_happens_to_others(log: io.StringIO, noise: Request) -> None:
    """A peer is wrong hundreds of times; three devices that are taken over meanwhile still leave their three lines."""

    async def story() -> None:
        async with running(config()) as hub, peer(hub.address) as loud, peer(hub.address) as thief:
            for number in range(3):
                await thief.send(register(f"victim-{number}"))
            await loud.send(register("loud") + written(Frame(noise)) * 300)
            assert len(await loud.frames(301)) == 301
            for number in range(3):
                await thief.send(register(f"victim-{number}"))
            assert len(await thief.frames(6)) == 6

    run(story())
    taken = [line["device"] for line in lines(log, "reregistered")]
    assert [device for device in taken if device.startswith("victim")] == ["victim-0", "victim-1", "victim-2"]
    assert len(lines(log, "reregistered") + lines(log, "failed_authentication")) < 100


@pytest.mark.parametrize("connections", [1, 60])
@pytest.mark.parametrize(
    ("deed", "event"),
    [(Register("victim"), "reregistered"), (Authenticate("victim", "guess"), "failed_authentication")],
)
def test_nobody_hides_a_deed_behind_noise_of_its_own(
    log: io.StringIO, deed: Request, event: str, connections: int
) -> None:
    """Whoever makes noise first, over one connection or many of its address, is still heard of when it does harm."""
    loud = Register("loud") if isinstance(deed, Register) else Authenticate("nobody", "guess")

    async def story() -> None:
        async with running(config()) as hub, AsyncExitStack() as stack:
            peers = [await stack.enter_async_context(peer(hub.address)) for _ in range(connections)]
            await peers[0].send(register("victim") + register("loud"))
            assert len(await peers[0].frames(2)) == 2
            for each in peers:
                await each.send(written(Frame(loud)) * 10)
                assert len(await each.frames(10)) == 10
            await peers[-1].send(written(Frame(deed)) * 3)
            assert len(await peers[-1].frames(3)) == 3

    run(story())
    assert "victim" in [line["device"] for line in lines(log, event)]
    assert len(lines(log, event)) < 100


def test_an_outage_is_no_failed_authentication() -> None:
    """4002 and 4500 say that nobody could tell: neither an alarm, nor anything against the address."""

    async def story() -> None:
        nowhere = Address("127.0.0.1", 1)
        limits = {"exempt": [], "failures_per_minute": 1}
        async with running(child_config(2, nowhere, per_address=limits)) as hub, peer(hub.address) as device:
            await device.send(written(Frame(Authenticate("sensor", "s" * 43))) * 20)
            answers = [frame.body for frame in await device.frames(20)]
            assert {answer.reason for answer in answers if isinstance(answer, Answer)} == {Reason.UNREACHABLE}
            assert len(answers) == 20 and not hub.observer.counters["alarms", "failed_authentication"]

    run(story())
