"""A tree of real hub processes, and a search of every byte that they leave behind for every credential."""

import asyncio
import base64
import json
import re
import secrets
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from hubauth.core.messages import Answer, Reason, Revoke
from hubauth.core.policy import Assist, Dialect
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options, Refused, Unavailable
from tests.shell.harness import PATIENCE, ROLES, refusal
from tests.shell.process import HubProcess, hub_process
from tests.shell.test_metrics import get

NAMES = ("root", "mid", "leaf")
NODES = {"root": 1, "mid": 2, "leaf": 3}
WELL_FORMED = re.compile(rb"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")

Result = TypeVar("Result")


def forms(credential: str) -> list[bytes]:
    """A credential as it may stand in a file: itself, escaped, in base64 at any offset, in hexadecimal, in UTF-16."""
    raw = credential.encode()
    shifted = [base64.b64encode(bytes(offset) + raw)[8 if offset else 0 : 48] for offset in range(3)]
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in credential).encode()
    return [raw, escaped, raw.hex().encode(), raw.hex().upper().encode(), credential.encode("utf-16-le"), *shifted]


async def eventually(ask: Callable[[], Awaitable[Result]]) -> Result:
    """What a request is answered with once the tree has come to rest."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            return await ask()
        except (Refused, Unavailable):
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(0.02)


class Forest:
    """root - mid - leaf, each a process that is killed and comes back at its own address.

    ``allowed`` says which credentials a hub may keep: those it was provisioned with, and those that a device was
    admitted with on one of its own links.
    """

    def __init__(self, directory: Path, dialect: Dialect, assist: Assist, stack: AsyncExitStack) -> None:
        self.directory, self.dialect = directory, dialect
        self._assist, self._stack = assist, stack
        self._own = {name: secrets.token_urlsafe(32) for name in NAMES}
        self.admin = secrets.token_urlsafe(32)
        self.allowed: dict[str, set[str]] = defaultdict(set)
        self.credentials: set[str] = {*self._own.values(), self.admin}
        self.named: set[str] = set()
        """By a revoke: hubs may keep it for each other until all have heard of it."""
        self.addresses: dict[str, Address] = {}
        self._running: dict[str, tuple[HubProcess, AsyncExitStack]] = {}
        self.logs: dict[str, str] = defaultdict(str)
        self.metrics: dict[str, bytes] = defaultdict(bytes)
        self.allowed["root"] |= {self._own["mid"], self.admin}
        self.allowed["mid"] |= {self._own["mid"], self._own["leaf"]}
        self.allowed["leaf"] |= {self._own["leaf"]}

    # Hubs

    def _configuration(self, name: str) -> str:
        node = NODES[name]
        tables: dict[str, dict[str, Any]] = {
            "hub": {"dialect": self.dialect.value, "assist": self._assist.value, "device_id": name, "node_id": node},
            "storage": {"snapshot_records": 40},
            "auth": {"role_perms": ROLES},
        }
        provisioned: list[dict[str, Any]] = []
        if name == "root":
            tables["hub"]["first_node_id"] = 10
            provisioned.append({"device_id": "leaf", "node_id": 3, "role": "hub"})
            provisioned.append({"device_id": "admin", "node_id": 9, "credential": self.admin, "role": "admin"})
        else:
            above = NAMES[NAMES.index(name) - 1]
            tables["hub"]["credential"] = self._own[name]
            tables["parent"] = {"address": str(self.addresses[above]), "retry_first": 0.02, "retry_most": 0.1}
        for below in NAMES[NAMES.index(name) + 1 :][:1]:
            provisioned.append(
                {"device_id": below, "node_id": NODES[below], "credential": self._own[below], "role": "hub"}
            )
        lines = [f"[{table}]\n" + "".join(_pairs(values)) for table, values in tables.items()]
        lines += ["[[provisioned]]\n" + "".join(_pairs(values)) for values in provisioned]
        return "\n".join(lines)

    async def start(self, name: str) -> None:
        home = self.directory / name
        home.mkdir(exist_ok=True)
        config = self.directory / f"{name}.toml"
        config.write_text(self._configuration(name))
        stack = AsyncExitStack()
        self._stack.push_async_callback(stack.aclose)
        arguments = ["--config", str(config), "--trace", str(home / "trace"), "--metrics", "127.0.0.1:0"]
        arguments += ["--trace-key", str(self.directory / "key")]
        if name in self.addresses:
            arguments += ["--listen", str(self.addresses[name])]
        process = await stack.enter_async_context(hub_process(home / "data", *arguments, level="debug"))
        self.addresses[name] = process.address
        self._running[name] = process, stack

    async def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        process, stack = self._running.pop(name)
        await process.end(number)
        self.logs[name] += process.text
        await stack.aclose()
        wrong = [found for found in self.found() if found[2] not in self.named]
        assert not wrong, f"found where it has no business: {wrong}"

    async def count(self, name: str) -> None:
        """Take what the hub's endpoint for counters says."""
        process, _ = self._running[name]
        said = next(line for line in process.lines if line["event"] == "metrics")
        host, _, port = said["address"].rpartition(":")
        self.metrics[name] += await get(Address(host, int(port)))

    async def at_rest(self) -> None:
        """Wait until every hub has its parent: only then a stranger at the leaf is refused by everybody."""
        guess = secrets.token_urlsafe(32)
        self.credentials.add(guess)
        for name in NAMES:
            async with self.device(name, f"stranger-{guess[:8]}", credential=guess) as stranger:
                deadline = asyncio.get_running_loop().time() + PATIENCE
                while await refusal(stranger.authenticate()) is not Reason.NOT_ADMITTED:
                    assert asyncio.get_running_loop().time() < deadline, "the tree never came together"
                    await asyncio.sleep(0.02)

    # Devices

    def device(self, hub: str, device_id: str, credential: str = "", timeout: float = 10.0) -> DeviceClient:
        options = Options(self.dialect, timeout=timeout, retry_first=0.02)
        return DeviceClient(self.addresses[hub], device_id, credential=credential, options=options)

    def _keep(self, hub: str, client: DeviceClient, answer: Answer) -> Answer:
        self.allowed[hub].add(client.credential)
        self.credentials.add(client.credential)
        return answer

    async def register(self, hub: str, client: DeviceClient) -> Answer:
        return self._keep(hub, client, await eventually(client.register))

    async def authenticate(self, hub: str, client: DeviceClient) -> Answer:
        return self._keep(hub, client, await eventually(client.authenticate))

    async def revoke(self, admin: DeviceClient, device_id: str, credential: str = "") -> None:
        """Everywhere; where the device is known, somebody answers."""
        self.named |= {credential} - {""}
        await admin.revoke(Revoke(device_id, 0, credential), wait=10)

    # What they leave behind

    def remains(self, name: str) -> dict[str, bytes]:
        """Every file of a hub but its configuration, its log, and what its counters said."""
        files: dict[str, bytes] = {"log": self.logs[name].encode(), "metrics": self.metrics[name]}
        for path in filter(Path.is_file, (self.directory / name).rglob("*")):
            with suppress(FileNotFoundError):  # a running hub removes files
                files[str(path.relative_to(self.directory))] = path.read_bytes()
        return files

    def found(self) -> list[tuple[str, str, str]]:
        """Hub, file and credential wherever one is found that has no business there."""
        wrong = []
        for name in NAMES:
            remains = self.remains(name)
            for credential in self.credentials - self.allowed[name]:
                for form in forms(credential):
                    wrong += [(name, file, credential) for file, content in remains.items() if form in content]
            for file, content in remains.items():
                if "/data/" in file and name != "leaf":
                    # Also those whose answer was lost with somebody's life, so that nobody else knows them.
                    unknown = {match.decode() for match in WELL_FORMED.findall(content)} - self.credentials
                    wrong += [(name, file, credential) for credential in unknown]
        return sorted(set(wrong))


def _pairs(values: dict[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]


@asynccontextmanager
async def forest(directory: Path, dialect: Dialect, assist: Assist) -> AsyncIterator[Forest]:
    """The three hubs, running and joined; killed at the end whatever happens."""
    async with AsyncExitStack() as stack:
        trees = Forest(directory, dialect, assist, stack)
        for name in NAMES:
            await trees.start(name)
        await trees.at_rest()
        yield trees
