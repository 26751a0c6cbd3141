"""Our hub above and below a plain one, in every dialect and whatever the plain one does with MsgIDs."""

import asyncio

import pytest

from tests.shell.plain.device import opaque
from tests.shell.plain.harness import CREDENTIALS, Pair, stories

pytestmark = pytest.mark.slow
story = stories("zero")


@story("above", "below")
async def test_devices_register_at_both_hubs(pair: Pair) -> None:
    names = [f"device-{at}" for at in range(6)]
    devices = [await pair.device(name, ("ours", "plain")[at % 2]) for at, name in enumerate(names)]
    answers = await asyncio.gather(*(device.register() for device in devices))
    assert [(answer["code"], answer["device_id"]) for answer in answers] == [(1, name) for name in names]
    assert len({answer["node_id"] for answer in answers}) == len(names)
    assert pair.dialect == "flat" or len({answer["credential"] for answer in answers}) == len(names)
    again = [(await pair.registered(device.name, pair.lower)).node_id for device in devices]
    assert again == [device.node_id for device in devices]
    status = await pair.plain.tell("status")
    kept = {name for name in names if name in status["whitelist"]}
    assert kept == set(names if pair.lower == "plain" else names[1::2]), "credentials where the devices were"


@story("above", "below")
async def test_devices_are_admitted_where_they_registered(pair: Pair) -> None:
    devices = {where: await pair.registered(f"cam-{where}", where) for where in ("ours", "plain")}
    for where, device in devices.items():
        assert await pair.admitted(device, where) == 1
        stranger = await pair.device("stranger", where)
        refused = await stranger.authenticate("guess")
        assert (refused["code"], set(refused)) == (4001, {"code", "msg"})
        assert pair.dialect == "flat" or await pair.admitted(device, where, "guess") == 4001
    await pair.drop()
    for where, device in devices.items():
        assert await pair.admitted(device, where) == 1, "also while the other hub is away"


@story("above", "below")
async def test_a_device_roams_down(pair: Pair) -> None:
    devices = [await pair.registered(f"device-{at}", pair.upper) for at in range(4)]
    if pair.dialect != "flat":
        assert await pair.admitted(devices[0], pair.lower, "guess") == 4001
        assert await pair.admitted(devices[0], pair.lower, "") == 4001
    codes = await asyncio.gather(*(pair.admitted(device, pair.lower) for device in devices))
    assert codes == [1] * len(devices)
    await pair.drop()
    assert await pair.admitted(devices[0], pair.lower) == 1, "kept for when the hub above is away"


@story("above")
async def test_a_device_roams_up_to_ours(pair: Pair) -> None:
    device = await pair.registered("cam", "plain")
    if pair.dialect != "flat":
        assert await pair.admitted(device, "ours", "guess") == 4001
    assert await pair.admitted(device, "ours") == 1
    assert await pair.admitted(device, "plain") == 1


@story("below")
async def test_a_device_that_roams_up_to_a_plain_hub_registers_again(pair: Pair) -> None:
    """The documents have nobody ask downwards: 000:10, 000:50. In flat the root knows the binding, 002:29."""

    device = await pair.registered("cam", "ours")
    assert await pair.admitted(device, "plain") == (1 if pair.dialect == "flat" else 4001)
    again = await pair.registered("cam", "plain")
    assert again.node_id == device.node_id
    assert await pair.admitted(again, "plain") == 1


@story("below", dialects=CREDENTIALS)
async def test_offline_at_ours_is_told_to_a_plain_parent(pair: Pair) -> None:
    device, lamp = await pair.registered("cam", "ours"), await pair.registered("lamp", "ours")
    node = str(device.node_id)
    assert node in (await pair.plain.tell("status"))["index"]
    answer = await device.ask("offline", device_id="cam", node_id=device.node_id, reason="tired")
    assert answer["code"] == 1
    await pair.plain.until(lambda now: node not in now["index"], "the parent has removed cam")
    lamp.close()
    await pair.plain.until(lambda now: str(lamp.node_id) not in now["index"], "and lamp, which is gone")
    assert (await device.authenticate())["code"] == 1


@story("above", dialects=CREDENTIALS)
async def test_offline_at_a_plain_child_is_understood(pair: Pair) -> None:
    cam, lamp = await pair.registered("cam", "plain"), await pair.registered("lamp", "plain")
    by = await pair.registered("by", "ours")
    by.send(opaque(by.node_id, cam.node_id, b"before"))
    await cam.hears(b"before")
    assert (await cam.ask("offline", device_id="cam", node_id=cam.node_id))["code"] == 1
    await pair.settle()
    by.send(opaque(by.node_id, cam.node_id, b"after"))
    by.send(opaque(by.node_id, lamp.node_id, b"after"))
    await lamp.hears(b"after")
    assert not any(frame.body == b"after" for frame in cam.opaque)
    assert (await cam.authenticate())["code"] == 1


@pytest.mark.parametrize("named", ["nothing", "node", "credential"])
@story("above", "below", dialects=CREDENTIALS)
async def test_revokes_go_down_and_up(pair: Pair, named: str) -> None:
    for by, at in (("ours", "plain"), ("plain", "ours")):
        device, other = await pair.registered(f"cam-{at}", at), await pair.registered(f"other-{at}", at)
        node_id = 0 if named == "nothing" else device.node_id
        await pair.revoke(by, other.name, node_id=4_000_000)
        await pair.revoke(by, device.name, node_id, device.credential if named == "credential" else "")
        await pair.settle()
        assert await pair.admitted(device, at) == 4001
        assert await pair.admitted(other, at) == 1, "4402: another node"
        assert (await (await pair.device(device.name, at)).register())["code"] == 1
    # The refusal of the revoke before may have come late.
    heard = [one for one in (await pair.plain.tell("status"))["heard"] if one["device_id"] == "cam-ours"]
    assert heard == [{"code": 1, "msg": "ok", "device_id": "cam-ours", "node_id": device.node_id}]


@story("above", "below", dialects=["auth"])
async def test_permissions_are_asked_for_and_listed(pair: Pair) -> None:
    row = {"node_id": 7, "role": "admin", "perms": ["p1", "p2"]}
    for where in (pair.upper, pair.lower):
        device = await pair.registered(f"cam-{where}", where)
        assert await device.ask("get_perms", node_id=7) == {"code": 1, "msg": "ok", **row}
        unknown = await device.ask("get_perms", node_id=4_000_000)
        assert (unknown["code"], unknown["role"], unknown["perms"]) == (4404, "", [])
        listed = await device.ask("list_roles", node_ids=[7, device.node_id])
        assert (listed["code"], listed["total"]) == (1, 2)
        assert row in listed["roles"]
        assert (await device.ask("list_roles", role="admin"))["roles"] == [row]


@story("above", "below", dialects=["auth"])
async def test_a_success_tells_role_and_permissions(pair: Pair) -> None:
    above = await pair.registered("cam", pair.upper)
    device = await pair.device("cam", pair.lower, above)
    answer = await device.authenticate()
    assert (answer["code"], answer["role"], answer["perms"]) == (1, "node", [])


@story("below", dialects=["auth"])
async def test_a_plain_parent_has_our_permissions_forgotten(pair: Pair) -> None:
    device = await pair.registered("cam", "ours")

    async def known() -> int:
        return int((await device.ask("list_roles", node_ids=[7]))["total"])

    # Without numbers an answer may be older than an invalidation: after the first one none is cached.
    cached = 0 if pair.msg_id == "zero" else 1
    for words, before, after in (("7", 1, 0), ("", cached, 0), ("7 refresh", cached, cached)):
        assert (await device.ask("get_perms", node_id=7))["code"] == 1
        assert await known() == before
        await pair.plain.tell(f"perms_invalidate {words}")
        # Twice: what is refreshed is asked for only once the notice is there.
        await pair.settle()
        await pair.settle()
        assert await known() == after


@story("above", dialects=["auth"])
async def test_we_have_the_permissions_of_a_plain_child_forgotten(pair: Pair) -> None:
    device = await pair.registered("cam", "plain")
    for nodes in ([7], []):
        assert (await device.ask("get_perms", node_id=7))["code"] == 1
        assert "7" in (await pair.plain.tell("status"))["cache"]
        await pair.ours.invalidate(*nodes)
        await pair.plain.until(lambda now: "7" not in now["cache"], "the plain child has forgotten")


@story("above", "below")
async def test_other_frames_pass_both_ways(pair: Pair) -> None:
    here, there = await pair.registered("here", "ours"), await pair.registered("there", "plain")
    for at in range(3):
        here.send(opaque(here.node_id, there.node_id, b"to %d" % at))
        await there.hears(b"to %d" % at)
        there.send(opaque(there.node_id, here.node_id, b"fro %d" % at))
        await here.hears(b"fro %d" % at)
    here.send(opaque(0, there.node_id, b"from nobody"))
    here.send(opaque(here.node_id, there.node_id, b"last"))
    await there.hears(b"last")
    assert not any(frame.body == b"from nobody" for frame in there.opaque)
    upper, lower = (here, there) if pair.upper == "ours" else (there, here)
    upper.send(opaque(upper.node_id, 0, b"to everybody"))
    await lower.hears(b"to everybody")
