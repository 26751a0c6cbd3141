"""Plain hubs over TCP among themselves: what the other tests put beside our hub works alone."""

from contextlib import AsyncExitStack

import pytest

from tests.shell.harness import run
from tests.shell.plain.device import connect, opaque
from tests.shell.plain.harness import CREDENTIALS, DIALECTS, MSG_IDS, PLAIN, PlainProcess, plain_process


async def two(stack: AsyncExitStack, dialect: str, msg_id: str, *options: str) -> tuple[PlainProcess, PlainProcess]:
    """A root and its child, both plain."""
    common = ("--dialect", dialect, "--msg-id", msg_id)
    root = await stack.enter_async_context(plain_process(*common, "--hub-device", "plain"))
    below = ("--node-id", str(PLAIN), "--parent", str(root.address), *options)
    child = await stack.enter_async_context(plain_process(*common, *below))
    await child.until(lambda now: now["parent_present"], "the parent is present")
    return root, child


@pytest.mark.parametrize("msg_id", MSG_IDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_devices_register_roam_and_reach_each_other(dialect: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            root, child = await two(stack, dialect, msg_id)
            cam = await connect(stack, dialect, child.address, "cam")
            lamp = await connect(stack, dialect, root.address, "lamp")
            assert (await cam.register())["code"] == (await lamp.register())["code"] == 1
            cam.send(opaque(cam.node_id, lamp.node_id, b"up"))
            lamp.send(opaque(lamp.node_id, cam.node_id, b"down"))
            assert (await lamp.hears(b"up")).source == cam.node_id
            assert (await cam.hears(b"down")).source == lamp.node_id
            roaming = await connect(stack, dialect, child.address, "lamp")
            roaming.credential = lamp.credential
            assert (await roaming.authenticate())["code"] == 1
            assert "lamp" in (await child.tell("status"))["whitelist"]

    run(scenario())


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_an_operator_revokes_and_hears_of_it(dialect: str) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            root, child = await two(stack, dialect, "echo", "--joins")
            cam = await connect(stack, dialect, child.address, "cam")
            await cam.register()
            await root.tell("revoke cam")
            told = await root.until(lambda now: now["heard"], "the child has answered")
            assert told["heard"][0]["code"] == 1
            assert (await cam.authenticate())["code"] == 4001

    run(scenario())


def test_a_link_drops_when_told_and_loses_what_it_is_told_to_lose() -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            root, child = await two(stack, "auth", "echo", "--joins")
            cam = await connect(stack, "auth", child.address, "cam")
            await root.tell("lose in")
            cam.say("register", 0, device_id="cam")
            await root.until(lambda now: now["lost"] == 1, "the request is lost")
            await child.tell("drop parent")
            assert (await cam.answer("register"))["code"] == 4002
            assert not (await child.tell("status"))["parent_present"]
            await root.tell("lose nothing")
            await child.tell("connect")
            await child.until(lambda now: now["parent_present"], "the parent is back")
            assert (await cam.register())["code"] == 1
            status = await root.tell("status")
            await root.tell(f"drop {status['hubs'][0]}")
            await root.until(lambda now: now["hubs"], "the child is back by itself")

    run(scenario())
