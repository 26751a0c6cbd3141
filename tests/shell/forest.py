"""A tree of hub processes that can be disturbed: killed and started again, frozen, and cut off from each other."""

import asyncio
import contextlib
import random
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from hubauth.shell.addresses import Address, parse_address
from tests.shell.harness import ADMIN, ROLES, hub_credential, listed, verified
from tests.shell.process import HubProcess, hub_process
from tests.toml import to_toml

SHAPE = {"root": "", "mid-a": "root", "mid-b": "root", "leaf-1": "mid-a", "leaf-2": "mid-a", "leaf-3": "mid-b"}
"""Every hub and the one above it."""
NODES = {name: at for at, name in enumerate(SHAPE, 1)}
ADMINS: list[dict[str, Any]] = [{**ADMIN, "device_id": f"admin-{at}", "node_id": 1_000_000 + at} for at in range(48)]
PATIENCE = 120.0


class Gate:
    """Where the hubs below find a hub, whatever port it has in this life; their connections can be cut."""

    def __init__(self) -> None:
        self.target: Address | None = None
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = Address(*self._server.sockets[0].getsockname()[:2])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.target is None:
                return
            far_reader, far_writer = await asyncio.open_connection(*self.target)
            self._writers.add(far_writer)
            pair = [asyncio.ensure_future(self._pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]
            await asyncio.wait(pair, return_when=asyncio.FIRST_COMPLETED)
            for task in pair:
                task.cancel()
            far_writer.transport.abort()
            self._writers.discard(far_writer)
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._writers.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()

    def cut(self) -> None:
        """End every connection, with whatever was under way on it."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()


class Site:
    """One place of the tree: its configuration, its data, and the process that runs there now."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name, self._directory = name, directory / name
        self.gate = Gate()
        self.lives = 0
        self.busy = asyncio.Lock()
        """Held by whoever disturbs it."""
        self._life = AsyncExitStack()
        self._hub: HubProcess | None = None

    async def prepare(self, above: Address | None) -> None:
        """Write its configuration."""
        self._directory.mkdir()
        await self.gate.open()
        below = [NODES[name] for name, parent in SHAPE.items() if parent == self.name]
        provisioned = [verified(node) for node in below]
        if above is None:
            provisioned += [listed(node) for node in NODES.values() if node not in (1, *below)] + ADMINS
        node = NODES[self.name]
        identity = {"device_id": f"hub-{node}", "node_id": node, "first_node_id": 10}
        tables = {
            "hub": identity if above is None else {**identity, "credential": hub_credential(node)},
            "auth": {"role_perms": ROLES},
            "limits": {"request_seconds": 10.0, "revoke_memory_seconds": 1.0},
            "per_address": {"exempt": ["127.0.0.1"]},
            "storage": {"durability": "os", "snapshot_records": 2000},
            "metrics": {"address": "127.0.0.1:0"},
            "provisioned": provisioned,
        }
        if above is not None:
            tables["parent"] = {"address": str(above), "retry_first": 0.05, "retry_most": 0.5}
        (self._directory / "hub.toml").write_text(to_toml(tables))

    async def start(self) -> None:
        """Begin another life."""
        self.lives += 1
        config = str(self._directory / "hub.toml")
        running = hub_process(self._directory / "data", "--config", config, level="info")
        self._hub = await self._life.enter_async_context(running)
        self.gate.target = self._hub.address

    async def end(self) -> None:
        """End this life without a word."""
        if self._hub is not None and self._hub.process.returncode is None:
            self._hub.process.kill()
        await self._life.aclose()
        self._hub = self.gate.target = None

    @property
    def address(self) -> Address | None:
        """Where devices find it; None while there is no hub."""
        return None if self._hub is None else self._hub.address

    def freeze(self, frozen: bool) -> None:
        assert self._hub is not None
        self._hub.process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    async def gauges(self) -> dict[str, float]:
        """What the hub counts, now. Raises OSError if it does not say."""
        said = [line["address"] for line in self._hub.lines if line["event"] == "metrics"] if self._hub else []
        if not said:
            raise ConnectionRefusedError
        reader, writer = await asyncio.open_connection(*parse_address(said[0]))
        try:
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            text = (await asyncio.wait_for(reader.read(), PATIENCE)).decode()
        finally:
            writer.transport.abort()
        return {name: float(value) for name, value in re.findall(r"^hubauth_(\w+) (\S+)$", text, re.MULTILINE)}

    async def is_quiet(self) -> bool:
        """Whether its parent is present and it waits for nobody, owes nobody, and has nothing to announce."""
        with contextlib.suppress(OSError, KeyError):
            now = await self.gauges()
            present = now["parent_present"] == 1 or not SHAPE[self.name]
            return present and not (now["pending"] or now["owed"] or now["announcing"])
        return False


class Forest:
    """The tree."""

    def __init__(self, directory: Path) -> None:
        self.sites = {name: Site(name, directory) for name in SHAPE}

    async def start(self) -> None:
        for name, site in self.sites.items():
            await site.prepare(self.sites[SHAPE[name]].gate.address if SHAPE[name] else None)
        async with asyncio.TaskGroup() as starting:
            for site in self.sites.values():
                starting.create_task(site.start())

    async def stop(self) -> None:
        for site in self.sites.values():
            await site.end()
            await site.gate.close()

    async def quiet(self) -> None:
        """Wait until no hub has anything left to do."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not all([await site.is_quiet() for site in self.sites.values()]):
            assert asyncio.get_running_loop().time() < deadline, await self._state()
            await asyncio.sleep(0.05)

    async def _state(self) -> dict[str, dict[str, float]]:
        return {name: await site.gauges() for name, site in self.sites.items()}

    async def disturb(self, choice: random.Random) -> str:
        """One fault, from beginning to end; what it was."""
        site = self.sites[choice.choice(sorted(self.sites))]
        what = choice.choice(["kill", "cut", "freeze"])
        pause = choice.uniform(0.05, 1.0)
        async with site.busy:
            if what == "kill":
                await site.end()
                await asyncio.sleep(pause / 4)
                await site.start()
            elif what == "cut":
                site.gate.cut()
            else:
                site.freeze(True)
                await asyncio.sleep(pause)
                site.freeze(False)
        return f"{what} {site.name}"


@asynccontextmanager
async def forest(directory: Path) -> AsyncIterator[Forest]:
    """A tree that runs, and is stopped in any case."""
    tree = Forest(directory)
    try:
        await tree.start()
        await tree.quiet()
        yield tree
    finally:
        await tree.stop()
