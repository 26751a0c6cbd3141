"""What happens to the tree: devices come, move, are revoked; hubs are cut off, killed, and come back."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from hubauth.cli.demo.tree import ADMIN, DemoFailed, DemoTree
from hubauth.core.messages import Answer, PermsInvalidate, Revoke
from hubauth.shell.client import ClientError, DeviceClient, Options, Refused, Unavailable

Say = Callable[[str], None]
_QUICK = Options(retry_first=0.02, retry_most=0.2)
_PATIENCE = 30.0


class DemoCast:
    """The devices of the story. They keep their credentials between two appearances."""

    def __init__(self, tree: DemoTree, say: Say) -> None:
        self.tree, self.say = tree, say
        self.known: dict[str, tuple[int, str]] = {"admin": (9, ADMIN)}

    @asynccontextmanager
    async def at(self, hub: str, name: str) -> AsyncIterator[DeviceClient]:
        """A device that connects to a hub."""
        node_id, credential = self.known.get(name, (0, ""))
        address = self.tree.hubs[hub].address
        async with DeviceClient(address, name, credential=credential, node_id=node_id, options=_QUICK) as device:
            yield device

    async def register(self, hub: str, name: str) -> None:
        async with self.at(hub, name) as device:
            answer = await device.register()
            self.known[name] = (answer.node_id, answer.credential)
            self.say(f"{name} registers at {hub}: node {answer.node_id}")

    async def authenticate(self, hub: str, name: str, note: str = "") -> bool:
        async with self.at(hub, name) as device:
            try:
                await device.authenticate()
            except Refused as refused:
                self.say(f"{name} authenticates at {hub}: refused, {refused}{note}")
                return False
        self.say(f"{name} authenticates at {hub}: admitted{note}")
        return True

    async def revoke(self, name: str) -> None:
        async with self.at("root", "admin") as admin:
            await admin.authenticate()
            answer = await admin.revoke(Revoke(name))
        self.say(f"admin revokes {name} at the root" + ("" if answer is None else ": answered by a hub that had it"))


async def tell_of_everything(tree: DemoTree, say: Say) -> None:
    """Everything that the protocol has to offer, on a tree whose hubs are right."""
    cast = DemoCast(tree, say)
    await tree.start_all()
    say("four hubs are up: root - mid - A, root - B")
    await cast.register("A", "sensor")
    await cast.register("B", "camera")
    await cast.authenticate("A", "sensor", ", the credential never leaves A")
    await cast.authenticate("B", "sensor", ": it has roamed, B asked upwards")
    await _permissions(cast)
    await _offline(cast)
    await cast.revoke("camera")
    await cast.authenticate("B", "camera")
    await cast.register("A", "pump")
    await _cut_off(cast)
    await _killed(cast)
    await tree.stop_all()
    say("all hubs stopped by SIGTERM")


async def tell_of_a_revoke(tree: DemoTree, say: Say) -> None:
    """A short story in which a hub must obey a revoke."""
    cast = DemoCast(tree, say)
    await tree.start_all()
    say("four hubs are up; A has a bug")
    await cast.register("A", "sensor")
    await cast.revoke("sensor")
    await cast.authenticate("A", "sensor", ", with the revoked credential")
    await tree.stop_all()


async def _permissions(cast: DemoCast) -> None:
    """The operator gives a device another role; caches on the way are told."""
    tree, (node_id, _) = cast.tree, cast.known["sensor"]
    async with cast.at("A", "sensor") as sensor:
        await sensor.authenticate()
        before = await sensor.get_perms()
        tree.roles[node_id] = "operator"
        root = tree.hubs["root"]
        root.configure(None, tree.roles)
        root.send_signal(signal.SIGHUP)
        await root.event("reloaded")
        async with cast.at("root", "admin") as admin:
            await admin.authenticate()
            await admin.perms_invalidate(PermsInvalidate((node_id,)))

        async def changed() -> bool:
            return (await sensor.get_perms()).grant.role == "operator"

        await _eventually(changed, "the new role has come through")
        after = await sensor.get_perms()
    cast.say(f"permissions of the sensor change: {_role(before)} becomes {_role(after)}")


def _role(answer: Answer) -> str:
    return f"{answer.grant.role}({', '.join(answer.grant.perms)})"


async def _offline(cast: DemoCast) -> None:
    async with cast.at("A", "sensor") as sensor:
        await sensor.authenticate()
        await sensor.offline("night")
    cast.say("the sensor goes offline in good order")


async def _cut_off(cast: DemoCast) -> None:
    """The way up is gone: who is known stays welcome, and what was missed is made good."""
    tree, mid, below = cast.tree, cast.tree.hubs["mid"], cast.tree.hubs["A"]
    returned = sum(event["event"] == "parent_present" for event in below.events) + 1
    await mid.end()
    cast.say("mid stops: A is cut off")
    await cast.authenticate("A", "pump", ", by A alone")
    await cast.revoke("pump")
    await tree.start("mid")
    await below.event("parent_present", returned)
    cast.say("mid is back: the root still owed it the revoke")

    async def out() -> bool:
        async with cast.at("A", "pump") as pump:
            try:
                await pump.authenticate()
            except Refused:
                return True
        return False

    await _eventually(out, "A has heard of the revoke")
    await cast.authenticate("A", "pump")


async def _killed(cast: DemoCast) -> None:
    """SIGKILL under load: what was answered is still known afterwards."""
    tree, hub = cast.tree, cast.tree.hubs["B"]
    answered: list[str] = []

    async def load() -> None:
        async with AsyncExitStack() as stack:
            for number in range(10_000):
                device = await stack.enter_async_context(cast.at("B", f"meter-{number}"))
                try:
                    answer = await device.register()
                except ClientError:
                    return
                cast.known[device.device_id] = (answer.node_id, answer.credential)
                answered.append(device.device_id)
                await device.close()

    busy = asyncio.ensure_future(load())
    await _eventually(lambda: _now(len(answered) >= 20), "twenty meters are registered")
    await hub.end(signal.SIGKILL)
    await busy
    cast.say(f"B is killed by SIGKILL while meters register: {len(answered)} were answered")
    await tree.start("B")
    found = (await hub.event("recovered"))["records"]
    cast.say(f"B recovers from its journal ({found} records)")
    admitted = [name for name in answered if await _quietly_admitted(cast, name)]
    if admitted != answered:
        raise DemoFailed(f"B has forgotten {sorted(set(answered) - set(admitted))}")
    cast.say(f"all {len(admitted)} meters are admitted again with what they were given")


async def _quietly_admitted(cast: DemoCast, name: str) -> bool:
    async with cast.at("B", name) as device:
        try:
            await device.authenticate()
        except (Refused, Unavailable):
            return False
    return True


async def _now(value: bool) -> bool:
    return value


async def _eventually(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + _PATIENCE
    while not await condition():
        if asyncio.get_running_loop().time() > deadline:
            raise DemoFailed(f"never happened: {what}")
        await asyncio.sleep(0.02)
