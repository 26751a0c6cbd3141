"""Hubs and devices on loopback, each test with its own. Tests wait for something to become true, never for time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from hubauth.core.canonical import digest_of
from hubauth.core.messages import Answer, Reason
from hubauth.core.policy import Dialect
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options, Refused
from hubauth.shell.configuration import HubConfig, configure, merge
from hubauth.shell.hub import Hub

ANYWHERE = "127.0.0.1:0"
PATIENCE = 20.0
ROLES = "hub:auth.assist;admin:auth.revoke,auth.perms_invalidate"
ADMIN = {"device_id": "admin", "node_id": 9, "credential": "a" * 43, "role": "admin"}


def run(test: Coroutine[Any, Any, None], seconds: float = 120) -> None:
    """Run a test to its end, or fail after a while."""

    async def bounded() -> None:
        await asyncio.wait_for(test, seconds)

    asyncio.run(bounded())


async def until(condition: Callable[[], object], what: str = "") -> None:
    """Return when the condition holds."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"never became true: {what or condition}")
        await asyncio.sleep(0.005)


def hub_credential(node_id: int) -> str:
    return f"h{node_id:042d}"


def verified(node_id: int) -> dict[str, Any]:
    """A child hub, provisioned at the hub that verifies it."""
    return {"device_id": f"hub-{node_id}", "node_id": node_id, "credential": hub_credential(node_id), "role": "hub"}


def listed(node_id: int) -> dict[str, Any]:
    """A hub further down, as the authority lists it."""
    return {"device_id": f"hub-{node_id}", "node_id": node_id, "role": "hub"}


def config(**tables: Any) -> HubConfig:
    """A hub on any port that keeps nothing on disk, unless told otherwise."""
    base: dict[str, Any] = {
        "hub": {"first_node_id": 10},
        "listen": {"address": ANYWHERE},
        "storage": {"durability": "none"},
        "auth": {"role_perms": ROLES},
        "per_address": {"exempt": ["127.0.0.1"]},
    }
    lists = {name: value for name, value in tables.items() if isinstance(value, list)}
    return configure({**merge(base, {name: table for name, table in tables.items() if name not in lists}), **lists})


def child_config(node_id: int, above: Address, **tables: Any) -> HubConfig:
    """A provisioned hub below another one."""
    identity = {"device_id": f"hub-{node_id}", "node_id": node_id, "credential": hub_credential(node_id)}
    return config(
        **{
            **tables,
            "hub": {"first_node_id": 10, **identity, **tables.get("hub", {})},
            "parent": {"address": str(above), "retry_first": 0.02, "retry_most": 0.1, **tables.get("parent", {})},
        }
    )


@asynccontextmanager
async def running(config: HubConfig, breaks: frozenset[str] = frozenset()) -> AsyncIterator[Hub]:
    """A hub that is stopped in any case, and breaks none of its promises but those named."""
    hub = Hub(config, watches=True)
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()
    assert set(hub.broken_promises) == breaks


async def joined(hub: Hub) -> None:
    """Wait until the hub's parent is present."""
    await until(lambda: hub.engine.state.parent_present, "the parent is present")


class Tree:
    """root - mid (2) - A (3), and root - B (4)."""

    def __init__(self, stack: AsyncExitStack, dialect: Dialect, tables: dict[str, Any]) -> None:
        self._stack = stack
        self.dialect = dialect
        self._tables = tables
        self.hubs: dict[str, Hub] = {}

    def _tables_for(self, provisioned: list[dict[str, Any]]) -> dict[str, Any]:
        hub = {"dialect": self.dialect.value, **self._tables.get("hub", {})}
        return {**self._tables, "hub": hub, "provisioned": provisioned}

    async def start(self) -> None:
        root = await self._run("root", config(**self._tables_for([verified(2), listed(3), verified(4), ADMIN])))
        mid = await self._run("mid", child_config(2, root.address, **self._tables_for([verified(3)])))
        await joined(mid)
        for name, node_id, parent in (("A", 3, mid), ("B", 4, root)):
            await joined(await self._run(name, child_config(node_id, parent.address, **self._tables_for([]))))

    async def _run(self, name: str, configuration: HubConfig) -> Hub:
        self.hubs[name] = await self._stack.enter_async_context(running(configuration))
        return self.hubs[name]

    async def device(self, device_id: str, hub: str, **known: Any) -> DeviceClient:
        """A device connected to a hub, not registered yet."""
        return await self._stack.enter_async_context(
            DeviceClient(self.hubs[hub].address, device_id, options=Options(self.dialect, retry_first=0.02), **known)
        )

    def online(self, hub: str, node_id: int) -> bool:
        route = self.hubs[hub].engine.state.directory.get(node_id)
        return route is not None and route.online


@asynccontextmanager
async def three_levels(dialect: Dialect = Dialect.AUTH, **tables: Any) -> AsyncIterator[Tree]:
    """The tree with every hub joined."""
    async with AsyncExitStack() as stack:
        tree = Tree(stack, dialect, tables)
        await tree.start()
        yield tree


async def refusal(asked: Awaitable[Answer | None]) -> Reason:
    """Why a request was refused."""
    try:
        answer = await asked
    except Refused as refused:
        return refused.reason
    raise AssertionError(f"was not refused: {answer}")


def digest(hub: Hub) -> str:
    return digest_of(hub.engine.state).hex()
