"""The connection between our hub and a plain one is lost at the worst moment of each flow, and returns."""

import pytest

from tests.shell.plain.device import opaque, word
from tests.shell.plain.harness import CREDENTIALS, Pair, stories

pytestmark = pytest.mark.slow
story = stories("echo")
lost_request_or_answer = pytest.mark.parametrize("way", ["up", "down"])


@lost_request_or_answer
@story("above", "below")
async def test_a_registration_is_lost(pair: Pair, way: str) -> None:
    device = await pair.device("cam", pair.lower)
    await pair.lose(way)
    device.say("register", 0, device_id="cam")
    await pair.lost()
    assert (await device.answer("register"))["code"] == 4002
    await pair.join()
    assert (await device.register())["code"] == 1
    other = await pair.registered("other", pair.upper)
    assert other.node_id != device.node_id
    for _ in range(2):
        await pair.drop()
        await pair.join()
    assert await pair.admitted(device, pair.lower) == 1


@lost_request_or_answer
@story("above", "below")
async def test_a_device_that_roams_is_not_heard(pair: Pair, way: str) -> None:
    home = await pair.registered("cam", pair.upper)
    device = await pair.device("cam", pair.lower, home)
    await pair.lose(way)
    known = {} if pair.dialect == "flat" else {"credential": home.credential}
    device.say(word(pair.dialect), 0, device_id="cam", **known)
    await pair.lost()
    assert (await device.answer(word(pair.dialect)))["code"] == 4002
    assert await pair.admitted(home, pair.upper) == 1
    await pair.join()
    assert (await device.authenticate())["code"] == 1
    assert device.node_id == home.node_id


@lost_request_or_answer
@story("above", "below", dialects=CREDENTIALS)
async def test_an_offline_is_lost(pair: Pair, way: str) -> None:
    device = await pair.registered("cam", pair.lower)
    await pair.lose(way)
    assert (await device.ask("offline", device_id="cam", node_id=device.node_id))["code"] == 1
    await pair.lost()
    await pair.join()
    assert (await device.authenticate())["code"] == 1
    peer = await pair.registered("peer", pair.upper)
    device.send(opaque(device.node_id, peer.node_id, b"back"))
    await peer.hears(b"back")


@pytest.mark.parametrize("restarted", [False, True])
@story("above", dialects=CREDENTIALS)
async def test_our_revoke_waits_for_a_plain_child(pair: Pair, restarted: bool) -> None:
    cam, lamp = await pair.registered("cam", "plain"), await pair.registered("lamp", "plain")
    await pair.drop()
    await pair.revoke("ours", "cam")
    if restarted:
        await pair.ours.end()
        await pair.ours.start()
    assert await pair.admitted(cam, "plain") == 1, "nobody has told it"
    await pair.join()
    assert await pair.admitted(cam, "plain") == 4001
    assert await pair.admitted(lamp, "plain") == 1


@story("above", dialects=CREDENTIALS)
async def test_our_revoke_goes_before_a_registration_at_the_return(pair: Pair) -> None:
    cam = await pair.registered("cam", "plain")
    await pair.drop()
    await pair.revoke("ours", "cam")
    await pair.plain.tell("connect")
    await pair.plain.until(lambda now: now["parent_present"], "the parent is present")
    old = cam.credential
    assert (await cam.register())["code"] == 1
    for _ in range(2):
        await pair.settle()
        assert await pair.admitted(cam, "plain") == 1
        assert await pair.admitted(cam, "plain", old) == 4001
        await pair.drop()
        await pair.join()


@pytest.mark.parametrize("by", ["ours", "plain"])
@story("above", "below", dialects=CREDENTIALS)
async def test_a_revoke_is_lost_and_locks_nobody_out(pair: Pair, by: str) -> None:
    """It may leave the old credential alive. It must not come back for the new one."""

    at = "plain" if by == "ours" else "ours"
    cam = await pair.registered("cam", at)
    await pair.lose("down" if by == pair.upper else "up")
    await pair.revoke(by, "cam")
    await pair.lost()
    await pair.join()
    assert (await cam.register())["code"] == 1
    for _ in range(2):
        await pair.drop()
        await pair.join()
    assert await pair.admitted(cam, at) == 1


@pytest.mark.parametrize("named", ["credential", "nothing"])
@story("below", dialects=CREDENTIALS)
async def test_our_revoke_for_a_plain_parent_that_is_away(pair: Pair, named: str) -> None:
    """One that names a credential is kept. One that names none could kill what is issued until then, and is not."""

    cam = await pair.registered("cam", "plain")
    await pair.plain.tell("lose in")
    await pair.drop()
    await pair.ours.away()
    await pair.revoke("ours", "cam", credential=cam.credential if named == "credential" else "")
    await pair.plain.tell("lose nothing")
    await pair.join()
    await pair.settle()
    assert await pair.admitted(cam, "plain") == (4001 if named == "credential" else 1)


@lost_request_or_answer
@story("above", "below", dialects=["auth"])
async def test_a_question_for_permissions_is_lost(pair: Pair, way: str) -> None:
    device = await pair.registered("cam", pair.lower)
    await pair.lose(way)
    device.say("get_perms", node_id=7)
    await pair.lost()
    assert (await device.answer("get_perms"))["code"] != 1
    await pair.join()
    answer = await device.ask("get_perms", node_id=7)
    assert (answer["code"], answer["role"]) == (1, "admin")
    assert (await device.ask("list_roles", node_ids=[7]))["total"] == 1


@story("below", dialects=["auth"])
async def test_a_lost_invalidation_is_made_up_for_at_the_return(pair: Pair) -> None:
    device = await pair.registered("cam", "ours")
    assert (await device.ask("get_perms", node_id=7))["code"] == 1
    await pair.lose("down")
    await pair.plain.tell("perms_invalidate 7")
    await pair.lost()
    await pair.join()
    assert (await device.ask("list_roles", node_ids=[7]))["total"] == 0


@story("above", "below")
async def test_frames_pass_again_after_the_return(pair: Pair) -> None:
    """Upwards at once; downwards to whom the upper hub has heard of since. A plain hub hears of nobody by a frame."""

    upper, lower = await pair.registered("upper", pair.upper), await pair.registered("lower", pair.lower)
    await pair.drop()
    lower.send(opaque(lower.node_id, upper.node_id, b"lost"))
    await pair.join()
    lower.send(opaque(lower.node_id, upper.node_id, b"up"))
    await upper.hears(b"up")
    if pair.upper == "ours":
        upper.send(opaque(upper.node_id, lower.node_id, b"down"))
        await lower.hears(b"down")
