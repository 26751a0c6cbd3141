"""What went wrong beside a hub that speaks only the documents, one test for each thing that was seen."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.shell.harness import run
from tests.shell.plain.device import Device, connect, opaque
from tests.shell.plain.harness import CREDENTIALS, DIALECTS, PLAIN, OurHub, Pair, configuration, stories
from tests.toml import to_toml

story = stories("echo")


@pytest.mark.parametrize("second", [3, 500, 0])
@story("below", dialects=CREDENTIALS)
async def test_a_revoke_of_any_number_is_obeyed(pair: Pair, second: int) -> None:
    cam, lamp = await pair.registered("cam", "ours"), await pair.registered("lamp", "ours")
    for number, device in ((500, cam), (second, lamp)):
        await pair.plain.tell(f"number {number}")
        await pair.revoke("plain", device.name)
        await pair.settle()
        assert await pair.admitted(device, "ours") == 4001
        assert (await pair.plain.tell("status"))["heard"][0]["device_id"] == device.name


@story("above", dialects=CREDENTIALS)
async def test_a_revoke_takes_nobody_offline_at_a_plain_child_that_it_does_not_concern(pair: Pair) -> None:
    cam = await pair.registered("cam", "plain")
    await pair.revoke("ours", "cam", credential="another")
    await pair.settle()
    status = await pair.plain.tell("status")
    assert status["whitelist"]["cam"] == [cam.node_id, cam.credential]
    assert str(cam.node_id) in status["index"]
    assert [one.owed for one in (await pair.ours.status()).neighbours] == [0]


@story("below", dialects=CREDENTIALS)
async def test_a_revoke_takes_nobody_offline_at_a_plain_parent_that_it_does_not_concern(pair: Pair) -> None:
    cam = await pair.registered("cam", "ours")
    await pair.revoke("ours", "cam", credential="another")
    await pair.settle()
    assert str(cam.node_id) in (await pair.plain.tell("status"))["index"]
    assert [one.owed for one in (await pair.ours.status()).neighbours] == [0]


@pytest.mark.parametrize("by", ["operator", "registering again"])
@story("above", dialects=CREDENTIALS)
async def test_a_revoke_does_not_come_back_for_what_was_issued_after_it(pair: Pair, by: str) -> None:
    cam = await pair.registered("cam", "plain")
    if by == "operator":
        await pair.revoke("ours", "cam")
        await pair.plain.until(lambda now: "cam" not in now["whitelist"], "the plain child has obeyed")
    assert (await cam.register())["code"] == 1
    for _ in range(2):
        await pair.drop()
        await pair.join()
    assert (await pair.plain.tell("status"))["whitelist"].get("cam") == [cam.node_id, cam.credential]
    assert await pair.admitted(cam, "plain") == 1


@story("above")
async def test_devices_of_a_plain_child_reach_ours_and_are_reached(pair: Pair) -> None:
    cam, lamp = await pair.registered("cam", "plain"), await pair.registered("lamp", "ours")
    lamp.send(opaque(lamp.node_id, cam.node_id, b"down"))
    assert (await cam.hears(b"down")).source == lamp.node_id
    cam.send(opaque(cam.node_id, lamp.node_id, b"up"))
    assert (await lamp.hears(b"up")).source == cam.node_id


@story("above", dialects=CREDENTIALS)
async def test_devices_that_a_plain_child_admits_by_itself_are_reached_once_they_speak(pair: Pair) -> None:
    cam, lamp = await pair.registered("cam", "plain"), await pair.registered("lamp", "ours")
    await pair.drop()
    assert (await cam.authenticate())["code"] == 1
    await pair.join()
    cam.send(opaque(cam.node_id, lamp.node_id, b"here I am"))
    await lamp.hears(b"here I am")
    lamp.send(opaque(lamp.node_id, cam.node_id, b"found"))
    await cam.hears(b"found")


@pytest.mark.parametrize("action", ["assist_offline", "offline"])
@story("above", dialects=CREDENTIALS)
async def test_a_plain_child_takes_its_devices_offline(pair: Pair, action: str) -> None:
    await pair.drop()
    await pair.ours.away()
    child = await pair.device("", "ours")
    given = await child.ask("assist_register", PLAIN, device_id="cam")
    assert given["code"] == 1
    about = {"device_id": "cam", "node_id": given["node_id"]}
    assert (await child.ask(action, PLAIN, **about))["code"] == 1
    assert (await child.ask(action, PLAIN, **about))["code"] == 4701


@story("below", msg_id="zero")
async def test_a_parent_that_leaves_every_number_at_zero_is_understood(pair: Pair) -> None:
    cam = await pair.registered("cam", "ours")
    assert await pair.admitted(cam, "ours") == 1
    stranger = await pair.device("stranger", "ours")
    assert (await stranger.authenticate("guess"))["code"] == 4001


def plain_hub(directory: Path, dialect: str, address: str) -> None:
    """The configuration that trusts hub 10 by its address, written out."""
    tables = {"plain_hub": [{"node_id": PLAIN, "address": address}]}
    (directory / "hub.toml").write_text(configuration(dialect, None, ()) + to_toml(tables))


async def assisted(stack: AsyncExitStack, ours: OurHub, dialect: str, source: int) -> dict[str, Any]:
    """What somebody who claims to be a hub is answered, on a new connection."""
    child: Device = await connect(stack, dialect, ours.process.address, "")
    return await child.ask("assist_register", source, device_id=f"cam-{source}")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.0/8", "192.0.2.1"])
def test_a_plain_child_is_trusted_by_its_address_and_its_node(tmp_path: Path, dialect: str, address: str) -> None:
    async def scenario() -> None:
        plain_hub(tmp_path, dialect, address)
        async with AsyncExitStack() as stack:
            ours = OurHub(tmp_path)
            stack.push_async_callback(ours.close)
            await ours.start()
            is_there = address.startswith("127.")
            assert (await assisted(stack, ours, dialect, PLAIN))["code"] == (1 if is_there else 403)
            assert (await assisted(stack, ours, dialect, PLAIN + 1))["code"] == 403
            assert (await assisted(stack, ours, dialect, 0))["code"] == 403
            assert (await assisted(stack, ours, dialect, PLAIN))["code"] == (1 if is_there else 403)

    run(scenario())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_a_word_in_the_configuration_nobody_is_a_hub(tmp_path: Path, dialect: str) -> None:
    async def scenario() -> None:
        (tmp_path / "hub.toml").write_text(configuration(dialect, None, ()))
        async with AsyncExitStack() as stack:
            ours = OurHub(tmp_path)
            stack.push_async_callback(ours.close)
            await ours.start()
            assert (await assisted(stack, ours, dialect, PLAIN))["code"] == 403

    run(scenario())


async def still_there(device: Device, by: Device) -> None:
    """A device has its session yet: what another one sends arrives."""
    by.send(opaque(by.node_id, device.node_id, b"still there"))
    await device.hears(b"still there")


@story("above", dialects=CREDENTIALS)
async def test_an_empty_credential_kicks_nobody(pair: Pair) -> None:
    cam, lamp = await pair.registered("cam", "ours"), await pair.registered("lamp", "ours")
    stranger = await pair.device("cam", "plain")
    assert (await stranger.authenticate(""))["code"] == 4001
    await still_there(cam, lamp)
    assert not stranger.opaque


@story("above", dialects=CREDENTIALS)
async def test_what_a_stranger_said_to_a_plain_child_revokes_nobody(pair: Pair) -> None:
    cam, lamp = await pair.registered("cam", "ours"), await pair.registered("lamp", "ours")
    await pair.drop()
    await pair.ours.away()
    child = await pair.device("", "ours")
    assert (await child.ask("assist_register", PLAIN, device_id="other"))["code"] == 1
    child.say("revoke", 0, device_id="cam")
    assert (await child.ask("assist_register", PLAIN, device_id="another"))["code"] == 1
    await still_there(cam, lamp)
    assert await pair.admitted(cam, "ours") == 1
