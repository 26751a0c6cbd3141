"""Our hub beside plain ones, each a process of its own, and devices that know nothing of either."""

import asyncio
import contextlib
import inspect
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hubauth.shell.addresses import Address
from hubauth.shell.doorway import AnyReply, AnyRequest, InvalidateRequest, RevokeRequest, Status, StatusRequest, call
from hubauth.shell.settings import File
from tests.shell.forest import Gate
from tests.shell.harness import run
from tests.shell.plain.device import PATIENCE, Device, connect
from tests.shell.process import HubProcess, hub_process
from tests.toml import to_toml

PROGRAM = Path(__file__).with_name("hub.py")
REQUEST_SECONDS = 20.0
"""How long our hub waits for a plain one. No test waits for it; only what is wrong ends by it."""
PLAIN = 10
"""Node id of a plain child."""
DIALECTS = ["auth", "login", "flat"]
CREDENTIALS = ["auth", "login"]
MSG_IDS = ["echo", "zero", "reordered"]
ALL = os.environ.get("HUBAUTH_PLAIN_ALL") == "1"
"""Whether every story is told with every way to number answers; else each file has one way of its own."""


async def eventually(fact: Callable[[], Any], what: str) -> None:
    """Return when an asynchronous question is answered with yes."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not await fact():
        assert asyncio.get_running_loop().time() < deadline, f"never became true: {what}"
        await asyncio.sleep(0.02)


class PlainProcess:
    """A running plain hub."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._busy = asyncio.Lock()
        self.address = Address("", 0)

    async def tell(self, command: str) -> dict[str, Any]:
        """Say one command; how things are afterwards."""
        assert self._process.stdin is not None
        async with self._busy:
            self._process.stdin.write(f"{command}\n".encode())
            return await self.hear()

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        assert line, "the plain hub has ended"
        said: dict[str, Any] = json.loads(line)
        assert "problem" not in said, said
        return said

    async def until(self, fact: Callable[[dict[str, Any]], object], what: str) -> dict[str, Any]:
        """Wait until something is true of its status; that status."""
        status: dict[str, Any] = {}

        async def holds() -> object:
            status.update(await self.tell("status"))
            return fact(status)

        try:
            await eventually(holds, what)
        except AssertionError as problem:
            raise AssertionError(f"{problem}: {status}") from None
        return status


@asynccontextmanager
async def plain_process(*options: str) -> AsyncIterator[PlainProcess]:
    """Run a plain hub on any free port; ended in any case."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), *options, stdin=pipe, stdout=pipe)
    try:
        hub = PlainProcess(process)
        hub.address = Address("127.0.0.1", (await hub.hear())["port"])
        yield hub
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def trusted(nodes: tuple[int, ...]) -> dict[str, Any]:
    """The tables by which our hub takes plain children for hubs. A hub that cannot trust by address trusts anybody."""
    if not nodes:
        return {}
    if "plain_hub" in File.__struct_fields__:
        return {"plain_hub": [{"node_id": node, "address": "127.0.0.1"} for node in nodes]}
    return {"hub": {"trust": "open"}}


def configuration(dialect: str, parent: Address | None, children: tuple[int, ...], **tables: Any) -> str:
    """The hub.toml of our hub: below a plain parent, or above plain children."""
    trust = trusted(children)
    identity: dict[str, Any] = {"device_id": "ours", "dialect": dialect, "first_node_id": 100}
    all_tables: dict[str, Any] = {
        "hub": {**identity, **trust.pop("hub", {})},
        "limits": {"request_seconds": REQUEST_SECONDS, "unauthenticated_seconds": 0},
        "per_address": {"exempt": ["127.0.0.1"]},
        "storage": {"durability": "os"},
        "auth": {"role_perms": "admin:p1,p2;hub:auth.assist", "node_roles": "7:admin"},
    }
    if parent is not None:
        all_tables["parent"] = {"address": str(parent), "retry_first": 0.05, "retry_most": 0.2}
        del all_tables["auth"]
    for name, table in tables.items():
        all_tables[name] = {**all_tables.get(name, {}), **table}
    return to_toml({**all_tables, **trust})


class OurHub:
    """Our hub, which can be ended and started again; ``address`` stays the same."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._data = directory, directory / "data"
        self._life, self._lives = AsyncExitStack(), 0
        self.gate = Gate()
        self.process: HubProcess

    async def start(self) -> None:
        """Begin another life."""
        config = str(self._directory / "hub.toml")
        self._lives += 1
        trace = self._directory / "trace" / str(self._lives)
        options = ("--config", config, "--trace", str(trace))
        self.process = await self._life.enter_async_context(hub_process(self._data, *options))
        self.gate.target = self.process.address

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        await self.process.end(number)
        self.gate.target = None
        self.gate.cut()
        await self._life.aclose()

    async def conforms(self) -> None:
        """Every life of it is replayed by the command, and nothing is found."""
        lives = sorted((self._directory / "trace").iterdir())
        command = [sys.executable, "-m", "hubauth.cli", "trace", "replay", "--json", *map(str, lives)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
        told, complaint = await process.communicate()
        assert process.returncode == 0, (told.decode()[-2000:], complaint.decode()[-2000:])
        assert len(json.loads(told)["verdicts"]) == len(lives)

    async def close(self) -> None:
        """End for good."""
        await self._life.aclose()
        await self.gate.close()

    async def call(self, request: AnyRequest) -> list[AnyReply]:
        """What an operator is told."""
        return await asyncio.to_thread(lambda: list(call(self._data, request)))

    async def status(self) -> Status:
        [status] = await self.call(StatusRequest())
        assert isinstance(status, Status)
        return status

    async def until(self, fact: Callable[[Status], object], what: str) -> None:
        """Wait until something is true of its status."""

        async def holds() -> object:
            return fact(await self.status())

        await eventually(holds, what)

    async def present(self, parent: bool = False) -> None:
        """Wait until a plain neighbour is there."""
        fact = "the parent is present" if parent else "the child is present"
        await self.until(lambda now: any(one.present and one.parent == parent for one in now.neighbours), fact)

    async def away(self) -> None:
        await self.until(lambda now: not any(one.present for one in now.neighbours), "no neighbour is present")

    async def revoke(self, device_id: str, node_id: int = 0, credential: str = "") -> None:
        """Revoke and do not wait for anybody."""
        await self.call(RevokeRequest(device_id=device_id, node_id=node_id, credential=credential, wait=0))

    async def invalidate(self, *nodes: int) -> None:
        await self.call(InvalidateRequest(node_ids=nodes))


class Pair:
    """Our hub and a plain one, one above the other, and the devices of both."""

    def __init__(
        self, stack: AsyncExitStack, dialect: str, msg_id: str, ours: OurHub, plain: PlainProcess, above: bool
    ) -> None:
        self._stack, self.dialect, self.msg_id, self.ours, self.plain = stack, dialect, msg_id, ours, plain
        self._above, self._numbers = above, count()
        self.upper, self.lower = ("ours", "plain") if above else ("plain", "ours")
        self.has_revoke = dialect != "flat"

    async def device(self, name: str, where: str, like: Device | None = None) -> Device:
        """A device that is connected, and may know what another connection of it was given."""
        address = self.ours.process.address if where == "ours" else self.plain.address
        device = await connect(self._stack, self.dialect, address, name)
        if like is not None:
            device.node_id, device.credential = like.node_id, like.credential
        return device

    async def registered(self, name: str, where: str) -> Device:
        device = await self.device(name, where)
        answer = await device.register()
        assert answer["code"] == 1, answer
        return device

    async def admitted(self, device: Device, where: str, credential: str | None = None) -> int:
        """The code that the device gets there over a new connection."""
        fresh = await self.device(device.name, where, device)
        try:
            return int((await fresh.authenticate(credential))["code"])
        finally:
            fresh.close()

    async def drop(self) -> None:
        """End the connection between the hubs; a plain child stays away until ``join``."""
        if self._above:
            await self.plain.tell("drop parent")
            await self.ours.away()
        else:
            for node in (await self.plain.tell("status"))["hubs"]:
                await self.plain.tell(f"drop {node}")

    async def lose(self, what: str) -> None:
        """From now on lose what goes ``up`` or ``down`` between the hubs, or ``nothing``."""
        words = {"up": "out", "down": "in"} if self._above else {"up": "in", "down": "out"}
        await self.plain.tell(f"lose {words.get(what, what)}")

    async def lost(self) -> None:
        """Wait until something is lost, end the connection, and lose nothing any more."""
        await self.plain.until(lambda now: now["lost"], "something is lost")
        await self.drop()
        await self.plain.tell("lose nothing")

    async def revoke(self, where: str, name: str, node_id: int = 0, credential: str = "") -> None:
        """The operator of a hub revokes."""
        if where == "ours":
            await self.ours.revoke(name, node_id, credential)
        else:
            await self.plain.tell(f"revoke {name} {node_id} {credential}")

    async def join(self) -> None:
        """Let the hubs meet again, and wait until they have."""
        if self._above:
            # It may not have noticed yet that its parent was gone, or that nobody was behind the gate.
            await self.plain.tell("connect")
            await eventually(self._passes, "a registration passes between the hubs")
        else:
            # Who is back has noticed that it was gone.
            await self.plain.until(lambda now: now["hubs"], "our hub is back")
            await self.ours.present(parent=True)

    async def settle(self) -> None:
        """Wait until each hub has handled what the other one has sent so far: a registration goes up and comes back.

        It also makes a plain child say an assist_*: before the first, a hub that names itself by SourceID is nobody.
        """
        assert await self._passes(), "nothing passes between the hubs"

    async def _passes(self) -> bool:
        device = await self.device(f"settling-{next(self._numbers)}", self.lower)
        answer = await device.register()
        device.close()
        return bool(answer["code"] == 1)


@asynccontextmanager
async def ours_above(
    directory: Path, *options: str, dialect: str = "auth", msg_id: str = "echo", **tables: Any
) -> AsyncIterator[Pair]:
    """Our hub (node 1) with a plain child (node 10) that names itself by its SourceID."""
    async with AsyncExitStack() as stack:
        (directory / "hub.toml").write_text(configuration(dialect, None, (PLAIN,), **tables))
        ours = OurHub(directory)
        stack.push_async_callback(ours.close)
        await ours.gate.open()
        await ours.start()
        names = ("--dialect", dialect, "--msg-id", msg_id, "--node-id", str(PLAIN), "--parent", str(ours.gate.address))
        child = await stack.enter_async_context(plain_process(*names, *options))
        pair = Pair(stack, dialect, msg_id, ours, child, above=True)
        await child.until(lambda now: now["parent_present"], "the plain child has its parent")
        await pair.settle()
        yield pair


@asynccontextmanager
async def ours_below(
    directory: Path, *options: str, dialect: str = "auth", msg_id: str = "echo", **tables: Any
) -> AsyncIterator[Pair]:
    """Our hub under a plain root (node 1), at which it registers like a device."""
    async with AsyncExitStack() as stack:
        names = ("--dialect", dialect, "--msg-id", msg_id, "--hub-device", "ours", "--grant", "7:admin:p1,p2")
        root = await stack.enter_async_context(plain_process(*names, *options))
        (directory / "hub.toml").write_text(configuration(dialect, root.address, (), **tables))
        ours = OurHub(directory)
        stack.push_async_callback(ours.close)
        await ours.start()
        pair = Pair(stack, dialect, msg_id, ours, root, above=False)
        await ours.present(parent=True)
        yield pair


@contextlib.asynccontextmanager
async def between(
    side: str, directory: Path, *options: str, dialect: str = "auth", msg_id: str = "echo"
) -> AsyncIterator[Pair]:
    """Our hub on one side of a plain one: ``above`` or ``below``."""
    making = ours_above if side == "above" else ours_below
    async with making(directory, *options, dialect=dialect, msg_id=msg_id) as pair:
        yield pair


def stories(msg_id: str) -> Callable[..., Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]]:
    """How a file makes its tests: ``@story(side, ...)`` before a body that is given a pair, and what else it names.

    The plain hub numbers its answers in this way, or in all ways.
    """

    def story(*sides: str, dialects: Sequence[str] = DIALECTS, msg_id: str = msg_id) -> Any:
        def test_of(body: Callable[..., Awaitable[None]]) -> Callable[..., None]:
            def test(tmp_path: Path, side: str, dialect: str, msg_id: str, **more: Any) -> None:
                async def scenario() -> None:
                    async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
                        await body(pair, **more)

                run(scenario())

            _, *more = inspect.signature(body).parameters.values()
            own = list(inspect.signature(test).parameters.values())[:-1]
            test.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
            test.__name__, test.__doc__ = body.__name__, body.__doc__
            for name, values in (("msg_id", MSG_IDS if ALL else [msg_id]), ("dialect", dialects), ("side", sides)):
                test = pytest.mark.parametrize(name, values)(test)
            return test

        return test_of

    return story
