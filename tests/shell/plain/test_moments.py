"""The connection between our hub and a plain one is lost at the worst moment of each flow, and returns."""

from pathlib import Path

import pytest

from tests.shell.harness import run
from tests.shell.plain.harness import ALL, CREDENTIALS, DIALECTS, MSG_IDS, between, opaque, word

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("msg_id", MSG_IDS if ALL else ["echo"])]
in_every_dialect = pytest.mark.parametrize("dialect", DIALECTS)
with_credentials = pytest.mark.parametrize("dialect", CREDENTIALS)
on_both_sides = pytest.mark.parametrize("side", ["above", "below"])
lost_request_or_answer = pytest.mark.parametrize("way", ["up", "down"])


@on_both_sides
@in_every_dialect
@lost_request_or_answer
def test_a_registration_is_lost(tmp_path: Path, side: str, dialect: str, way: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
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

    run(scenario())


@on_both_sides
@in_every_dialect
@lost_request_or_answer
def test_a_device_that_roams_is_not_heard(tmp_path: Path, side: str, dialect: str, way: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            home = await pair.registered("cam", pair.upper)
            device = await pair.device("cam", pair.lower, home)
            await pair.lose(way)
            known = {} if dialect == "flat" else {"credential": home.credential}
            device.say(word(dialect), 0, device_id="cam", **known)
            await pair.lost()
            assert (await device.answer(word(dialect)))["code"] == 4002
            assert await pair.admitted(home, pair.upper) == 1
            await pair.join()
            assert (await device.authenticate())["code"] == 1
            assert device.node_id == home.node_id

    run(scenario())


@on_both_sides
@with_credentials
@lost_request_or_answer
def test_an_offline_is_lost(tmp_path: Path, side: str, dialect: str, way: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            device = await pair.registered("cam", pair.lower)
            await pair.lose(way)
            assert (await device.ask("offline", device_id="cam", node_id=device.node_id))["code"] == 1
            await pair.lost()
            await pair.join()
            assert (await device.authenticate())["code"] == 1
            peer = await pair.registered("peer", pair.upper)
            device.send(opaque(device.node_id, peer.node_id, b"back"))
            await peer.hears(b"back")

    run(scenario())


@with_credentials
@pytest.mark.parametrize("restarted", [False, True])
def test_our_revoke_waits_for_a_plain_child(tmp_path: Path, dialect: str, msg_id: str, restarted: bool) -> None:
    async def scenario() -> None:
        async with between("above", tmp_path, dialect=dialect, msg_id=msg_id) as pair:
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

    run(scenario())


@with_credentials
def test_our_revoke_goes_before_a_registration_at_the_return(tmp_path: Path, dialect: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between("above", tmp_path, dialect=dialect, msg_id=msg_id) as pair:
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

    run(scenario())


@on_both_sides
@with_credentials
@pytest.mark.parametrize("by", ["ours", "plain"])
def test_a_revoke_is_lost_and_locks_nobody_out(tmp_path: Path, side: str, dialect: str, msg_id: str, by: str) -> None:
    """It may leave the old credential alive. It must not come back for the new one."""

    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
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

    run(scenario())


@with_credentials
@pytest.mark.parametrize("named", ["credential", "nothing"])
def test_our_revoke_for_a_plain_parent_that_is_away(tmp_path: Path, dialect: str, msg_id: str, named: str) -> None:
    """One that names a credential is kept. One that names none could kill what is issued until then, and is not."""

    async def scenario() -> None:
        async with between("below", tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            cam = await pair.registered("cam", "plain")
            await pair.plain.tell("lose in")
            await pair.drop()
            await pair.ours.away()
            await pair.revoke("ours", "cam", credential=cam.credential if named == "credential" else "")
            await pair.plain.tell("lose nothing")
            await pair.join()
            await pair.settle()
            assert await pair.admitted(cam, "plain") == (4001 if named == "credential" else 1)

    run(scenario())


@on_both_sides
@lost_request_or_answer
def test_a_question_for_permissions_is_lost(tmp_path: Path, side: str, way: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, msg_id=msg_id) as pair:
            device = await pair.registered("cam", pair.lower)
            await pair.lose(way)
            device.say("get_perms", node_id=7)
            await pair.lost()
            assert (await device.answer("get_perms"))["code"] != 1
            await pair.join()
            answer = await device.ask("get_perms", node_id=7)
            assert (answer["code"], answer["role"]) == (1, "admin")
            assert (await device.ask("list_roles", node_ids=[7]))["total"] == 1

    run(scenario())


def test_a_lost_invalidation_is_made_up_for_at_the_return(tmp_path: Path, msg_id: str) -> None:
    async def scenario() -> None:
        async with between("below", tmp_path, msg_id=msg_id) as pair:
            device = await pair.registered("cam", "ours")
            assert (await device.ask("get_perms", node_id=7))["code"] == 1
            await pair.lose("down")
            await pair.plain.tell("perms_invalidate 7")
            await pair.lost()
            await pair.join()
            assert (await device.ask("list_roles", node_ids=[7]))["total"] == 0

    run(scenario())


@on_both_sides
@in_every_dialect
def test_frames_pass_again_after_the_return(tmp_path: Path, side: str, dialect: str, msg_id: str) -> None:
    """Upwards at once; downwards to whom the upper hub has heard of since. A plain hub hears of nobody by a frame."""

    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            upper, lower = await pair.registered("upper", pair.upper), await pair.registered("lower", pair.lower)
            await pair.drop()
            lower.send(opaque(lower.node_id, upper.node_id, b"lost"))
            await pair.join()
            lower.send(opaque(lower.node_id, upper.node_id, b"up"))
            await upper.hears(b"up")
            if side == "above":
                upper.send(opaque(upper.node_id, lower.node_id, b"down"))
                await lower.hears(b"down")

    run(scenario())
