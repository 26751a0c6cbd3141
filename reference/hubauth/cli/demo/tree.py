"""A three-level tree of real hub processes on loopback: root - mid - A, and root - B."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from hubauth.shell.addresses import Address, parse_address

ROLES = "hub:auth.assist;admin:auth.revoke,auth.perms_invalidate;operator:pump.start,pump.stop"
ADMIN = "a" * 43
_PATIENCE = 60.0


@frozen
class DemoPlace:
    """A hub's place. ``below``: the hubs it verifies; ``listed``: further hubs that the authority knows of."""

    name: str
    node_id: int
    parent: str = ""
    below: tuple[int, ...] = ()
    listed: tuple[int, ...] = ()


PLACES = (
    DemoPlace("root", 1, below=(2, 4), listed=(3,)),
    DemoPlace("mid", 2, "root", below=(3,)),
    DemoPlace("A", 3, "mid"),
    DemoPlace("B", 4, "root"),
)


class DemoFailed(Exception):
    """The demonstration could not go on."""


class DemoHub:
    """One hub, started by the same command that a user would type."""

    def __init__(self, place: DemoPlace, directory: Path, trace: Path, module: str) -> None:
        self.place = place
        self._directory, self._trace = directory, trace
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self.address = Address("127.0.0.1", 0)
        self.events: list[dict[str, Any]] = []
        self._said = asyncio.Condition()

    @property
    def config(self) -> Path:
        return self._directory / f"{self.place.name}.toml"

    async def start(self, above: Address | None, roles: Mapping[int, str]) -> None:
        """Run it, and return when it listens."""
        self.configure(above, roles)
        command = ["-m", self._module, "hub", "--config", str(self.config), "--log-format", "json"]
        command += ["--trace", str(self._trace), "--trace-key", str(self._directory / "trace.key")]
        self._process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
        self.events.clear()
        self._reading = asyncio.create_task(self._read(self._process))
        self.address = parse_address((await self.event("listening"))["address"])

    def configure(self, above: Address | None, roles: Mapping[int, str]) -> None:
        """Write its configuration."""
        place = self.place
        lines = ["[hub]", f'device_id = "{_name(place.node_id)}"', "first_node_id = 10"]
        if above is not None:
            lines += [f"node_id = {place.node_id}", f'credential = "{_credential(place.node_id)}"']
            lines += ["[parent]", f'address = "{above}"', "retry_first = 0.02", "retry_most = 0.2"]
        lines += ["[listen]", f'address = "{self.address}"']
        lines += ["[storage]", f'data_dir = "{self._directory / place.name}"', 'durability = "os"']
        given = ";".join(f"{node_id}:{role}" for node_id, role in roles.items())
        lines += ["[auth]", f'role_perms = "{ROLES}"', f'node_roles = "{given}"']
        bindings = [(_name(node), node, _credential(node), "hub") for node in place.below]
        bindings += [(_name(node), node, "", "hub") for node in place.listed]
        bindings += [("admin", 9, ADMIN, "admin")] if above is None else []
        for device_id, node_id, credential, role in bindings:
            lines += ["[[provisioned]]", f'device_id = "{device_id}"', f"node_id = {node_id}"]
            lines += [f'credential = "{credential}"', f'role = "{role}"']
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            with contextlib.suppress(ValueError):
                self.events.append(json.loads(line))
            async with self._said:
                self._said.notify_all()

    async def event(self, name: str, count: int = 1) -> dict[str, Any]:
        """Wait until the hub has logged an event so many times."""

        def seen() -> list[dict[str, Any]]:
            return [event for event in self.events if event.get("event") == name]

        async with self._said:
            try:
                await asyncio.wait_for(self._said.wait_for(lambda: len(seen()) >= count), _PATIENCE)
            except TimeoutError:
                raise DemoFailed(f"hub {self.place.name} never came to {name!r}: {self.events[-3:]}") from None
        return seen()[count - 1]

    def send_signal(self, number: signal.Signals) -> None:
        """Send a real signal."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal that ends it, and wait for the end."""
        if self._process is None:
            return
        self.send_signal(number)
        try:
            await asyncio.wait_for(self._process.wait(), _PATIENCE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading
        self._process = None


class DemoTree:
    """The hubs, and how to get at them by name. ``modules`` says which command runs a hub, if not the usual one."""

    def __init__(self, directory: Path, trace: Path, modules: Mapping[str, str]) -> None:
        directory.mkdir(parents=True)
        self.roles: dict[int, str] = {}
        self.hubs = {
            place.name: DemoHub(place, directory, trace, modules.get(place.name, "hubauth.cli")) for place in PLACES
        }

    async def start(self, name: str) -> None:
        """Start one hub; return when its parent has admitted it."""
        hub = self.hubs[name]
        above = self.hubs[hub.place.parent].address if hub.place.parent else None
        await hub.start(above, self.roles if above is None else {})
        if above is not None:
            await hub.event("parent_present")

    async def start_all(self) -> None:
        for name in self.hubs:
            await self.start(name)

    async def stop_all(self) -> None:
        for hub in reversed(self.hubs.values()):
            await hub.end()


def _name(node_id: int) -> str:
    return next(place.name for place in PLACES if place.node_id == node_id)


def _credential(node_id: int) -> str:
    return f"h{node_id:042d}"
