"""``hubauth hub ctl`` against hubs that are processes of their own: a root, and a hub below it that comes and goes."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hubauth.cli import main
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from hubauth.shell.doorway import SOCKET
from tests.shell.harness import PATIENCE, hub_credential, refusal, run, until
from tests.shell.process import HubProcess, hub_process

ROOT = f"""
[hub]
first_node_id = 10
dialect = "DIALECT"
[auth]
role_perms = "hub:auth.assist"
[storage]
data_dir = "DIRECTORY"
[[provisioned]]
device_id = "hub-2"
node_id = 2
credential = "{hub_credential(2)}"
role = "hub"
"""
CHILD = f"""
[hub]
device_id = "hub-2"
node_id = 2
dialect = "DIALECT"
credential = "{hub_credential(2)}"
[parent]
address = "127.0.0.1:1"
retry_first = 0.02
retry_most = 0.1
[storage]
data_dir = "DIRECTORY"
"""


async def ctl(*arguments: str) -> tuple[int, str]:
    """Exit code and output of a command."""

    def command() -> tuple[int, str]:
        with redirect_stdout(StringIO()) as said, redirect_stderr(said):
            return main(["hub", "ctl", *arguments]), said.getvalue()

    return await asyncio.get_running_loop().run_in_executor(None, command)


async def begin(*arguments: str) -> asyncio.subprocess.Process:
    """Begin a command, in a process of its own."""
    command = [sys.executable, "-m", "hubauth.cli", "hub", "ctl", *arguments]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def end(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """Its exit code, and what it has said."""
    said, complained = await asyncio.wait_for(process.communicate(), 60)
    assert b"Traceback" not in complained, complained.decode()
    assert process.returncode is not None
    return process.returncode, (said + complained).decode()


class Place:
    """Where a hub runs, or will run again."""

    def __init__(self, directory: Path, text: str, dialect: str) -> None:
        self.config = directory / "hub.toml"
        self.data = directory / "data"
        directory.mkdir(parents=True)
        self.config.write_text(text.replace("DIRECTORY", str(self.data)).replace("DIALECT", dialect))

    @asynccontextmanager
    async def running(self, *arguments: str, level: str = "info") -> AsyncIterator[HubProcess]:
        async with hub_process(self.data, "--config", str(self.config), *arguments, level=level) as hub:
            yield hub

    @asynccontextmanager
    async def below(self, parent: Address, level: str = "info") -> AsyncIterator[HubProcess]:
        """As a child that has joined."""
        async with self.running("--parent", str(parent), level=level) as hub:
            await until(lambda: "parent_present" in hub.text, "the child has joined")
            yield hub

    async def ctl(self, *arguments: str) -> tuple[int, str]:
        return await ctl(*arguments, "--config", str(self.config))

    async def status(self) -> dict[str, Any]:
        code, said = await self.ctl("status", "--json")
        assert code == 0, said
        status: dict[str, Any] = json.loads(said)
        return status

    async def neighbour(self, **facts: object) -> dict[str, Any]:
        """The one neighbour, once it is like that."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while True:
            (neighbour,) = (await self.status())["neighbours"]
            if all(neighbour[name] == value for name, value in facts.items()):
                return dict(neighbour)
            assert asyncio.get_running_loop().time() < deadline, f"never became {facts}: {neighbour}"


@pytest.fixture
def root(tmp_path: Path) -> Place:
    return Place(tmp_path / "root", ROOT, "auth")


@pytest.fixture
def child(tmp_path: Path) -> Place:
    return Place(tmp_path / "child", CHILD, "auth")


def test_a_revoke_while_the_hub_below_is_present(root: Place, child: Place) -> None:
    async def story() -> None:
        async with root.running() as above, child.below(above.address) as below:
            async with DeviceClient(below.address, "sensor") as device:
                await device.register()
                while not (status := await root.status())["below"]:
                    pass  # it is announced, not awaited
                assert (status["node_id"], status["device_id"], status["dialect"]) == (1, "hub", "auth")
                assert status["authority"] and (status["online"], status["below"], status["generation"]) == (0, 1, 0)
                (neighbour,) = status["neighbours"]
                assert (neighbour["hub"], neighbour["name"], neighbour["parent"]) == (2, "hub-2", False)
                assert neighbour["present"] and 0 <= neighbour["seconds"] <= status["uptime"]
                code, said = await root.ctl("revoke", "sensor", "--wait", "60")
                assert (code, said) == (0, "hub 2: sensor (node 10): 1 ok\nacknowledged by hub 2\n")
                async with DeviceClient(below.address, "sensor", credential=device.credential) as again:
                    assert (await refusal(again.authenticate())).value == "not_admitted"
            code, said = await root.ctl("revoke", "sensor", "--wait", "60")
            assert (code, said) == (0, "no hub with an entry has answered\nacknowledged by hub 2\n")
            code, said = await child.ctl("revoke", "sensor", "--wait", "60", "--json")
            parent = {"hub": 1, "parent": True, "present": True, "standing": "acknowledged"}
            assert code == 0 and json.loads(said)["neighbours"] == [parent] and json.loads(said)["answers"] == []
            (above_it,) = (await child.status())["neighbours"]
            assert (above_it["hub"], above_it["name"], above_it["parent"]) == (1, str(above.address), True)

    run(story())


def test_a_revoke_while_the_hub_below_is_away(root: Place, child: Place) -> None:
    async def story() -> None:
        async with root.running() as above:
            async with child.below(above.address) as below:
                async with DeviceClient(below.address, "sensor") as device:
                    await device.register()
                assert await below.end(signal.SIGTERM) == 0
            await root.neighbour(present=False)
            code, said = await root.ctl("revoke", "sensor", "--wait", "0.1")
            assert (code, said) == (1, "no hub with an entry has answered\nowed to hub 2 (away)\n")
            neighbour = await root.neighbour(owed=1)
            assert not neighbour["present"] and neighbour["oldest"] == "sensor"
            code, said = await root.ctl("status")
            *_, last = said.splitlines()
            assert code == 0 and last.startswith("hub 2") and " away " in last and last.endswith("1     sensor")
            # Somebody waits, and the hub comes back: the answer reaches whoever asked.
            waiting = await begin("revoke", "sensor", "--wait", "600", "--config", str(root.config))
            await until(lambda: above.text.count("operator_revokes") == 2)
            async with child.below(above.address):
                code, said = await end(waiting)
                assert (code, said) == (0, "hub 2: sensor (node 10): 1 ok\nacknowledged by hub 2\n")
                await root.neighbour(present=True, owed=0)

    run(story())


def test_what_a_plain_hub_has_not_confirmed_is_no_success(root: Place, child: Place) -> None:
    child.config.write_text(child.config.read_text().replace("[hub]", "[hub]\nextension = false"))

    async def story() -> None:
        async with root.running() as above, child.below(above.address):
            nobody = "no hub with an entry has answered\n"
            assert await root.ctl("revoke", "ghost", "--wait", "0.1") == (1, f"{nobody}not confirmed by hub 2\n")
            assert await above.end(signal.SIGTERM) == 0
            await child.neighbour(present=False)
            assert await child.ctl("revoke", "spectre") == (1, f"{nobody}not sent to hub 1 (parent, away)\n")

    run(story())


def test_a_hub_that_stops_says_what_it_leaves_owed(root: Place, child: Place) -> None:
    async def story() -> None:
        async with root.running() as above:
            async with child.below(above.address) as below:
                assert await below.end(signal.SIGTERM) == 0
            await root.neighbour(present=False)
            waiting = await begin("revoke", "sensor", "--wait", "600", "--config", str(root.config))
            await until(lambda: "operator_revokes" in above.text)
            assert await above.end(signal.SIGTERM) == 0
            code, said = await end(waiting)
            assert code == 1 and "owed to hub 2 (away)\nthe hub is stopping" in said
        assert not (root.data / SOCKET).exists()
        async with root.running():
            assert (await root.neighbour(owed=1))["oldest"] == "sensor"

    run(story())


def test_a_named_credential_alone_dies_and_is_never_shown(root: Place, tmp_path: Path) -> None:
    async def story() -> None:
        async with root.running(level="debug") as hub, DeviceClient(hub.address, "sensor") as device:
            await device.register()
            secret = tmp_path / "credential"
            secret.touch(0o600)
            secret.write_text("not-the-credential-of-sensor\n")
            code, said = await root.ctl("revoke", "sensor", "--credential-file", str(secret))
            assert (code, said) == (1, "hub 1: sensor: 4402 credential_mismatch\nthere is no other hub to tell\n")
            code, said = await root.ctl("revoke", "sensor", "--node", "11")
            assert (code, said) == (
                1,
                "hub 1: sensor (node 11): 4402 credential_mismatch\nthere is no other hub to tell\n",
            )
            secret.write_text(device.credential + "\n")
            code, said = await root.ctl("revoke", "sensor", "--node", "10", "--credential-file", str(secret), "--json")
            assert code == 0 and json.loads(said)["answers"][0]["code"] == 1
            assert device.credential not in said + hub.text and "not-the-credential" not in hub.text
            for content, why in ((b"\xff", "not UTF-8"), (b"\n", "1 to 256"), (b"x" * 257, "1 to 256")):
                secret.write_bytes(content)
                code, said = await root.ctl("revoke", "sensor", "--credential-file", str(secret))
                assert code == 2 and why in said

    run(story())


def test_a_configuration_is_reloaded_or_refused_with_the_reason(root: Place) -> None:
    async def story() -> None:
        async with root.running() as hub:
            good = root.config.read_text()
            root.config.write_text(good.replace("[auth]", '[auth]\ndefault_role = "after"'))
            assert await root.ctl("reload") == (0, "done\n")
            async with DeviceClient(hub.address, "sensor") as device:
                assert (await device.register()).grant.role == "after"
            root.config.write_text(good.replace("[auth]", '[auth]\ncolour = "red"'))
            code, said = await root.ctl("reload")
            assert code == 1 and said.startswith("hubauth: auth.colour: unknown key\n  hint: ")
            root.config.write_text(good.replace('dialect = "auth"', 'dialect = "login"'))
            code, said = await root.ctl("reload", "--json")
            assert code == 1 and json.loads(said)["error"] == "dialect and parent cannot change while the hub lives"
            root.config.write_text("not TOML")
            code, said = await ctl("reload", "--data-dir", str(root.data))
            assert code == 1 and "is not TOML" in said
            code, said = await root.ctl("reload")
            assert code == 2 and "is not TOML" in said and "--data-dir" in said
            assert hub.text.count("reload_refused") == 3

    run(story())


def test_a_hub_without_a_file_has_nothing_to_reload(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_process(tmp_path / "data"):
            code, said = await ctl("reload", "--data-dir", str(tmp_path / "data"))
            assert code == 1 and "there is no file to reload" in said

    run(story())


def test_permissions_are_invalidated_below(root: Place, child: Place) -> None:
    async def story() -> None:
        async with root.running() as above, child.below(above.address, level="debug") as below:
            assert await root.ctl("invalidate", "2", "10", "--refresh") == (0, "done\n")
            await until(lambda: below.text.count('"body": "PermsInvalidate"') == 1, "the hub below was told")
            assert await root.ctl("invalidate", "--json") == (0, '{"kind": "done"}\n')
            await until(lambda: below.text.count('"body": "PermsInvalidate"') == 2, "and again")
            assert [line["nodes"] for line in above.lines if line["event"] == "operator_invalidates"] == ["2,10", "all"]

    run(story())


@pytest.mark.parametrize("dialect", ["login", "flat"])
def test_other_dialects(dialect: str, tmp_path: Path) -> None:
    root, child = Place(tmp_path / "root", ROOT, dialect), Place(tmp_path / "child", CHILD, dialect)

    async def story() -> None:
        async with root.running() as above, child.below(above.address):
            neighbour = await root.neighbour(present=True)
            assert (neighbour["hub"], neighbour["name"]) == (2, "hub-2")
            code, said = await root.ctl("revoke", "sensor", "--wait", "60")
            if dialect == "login":
                assert (code, said) == (0, "no hub with an entry has answered\nacknowledged by hub 2\n")
            else:
                assert code == 1 and said.startswith("hubauth: this dialect has no revoke\n")

    run(story())


def test_a_hub_that_does_not_run_and_one_that_was_killed(root: Place) -> None:
    async def story() -> None:
        for _ in range(2):
            code, said = await root.ctl("status")
            assert code == 2 and said.startswith(f"hubauth: no hub runs on {root.data}\n  hint: ")
            async with root.running() as hub:
                assert (await root.status())["pending"] == 0
                assert await hub.end(signal.SIGKILL) == -signal.SIGKILL
            assert (root.data / SOCKET).exists()

    run(story())


def test_a_second_hub_on_the_same_directory_leaves_the_door_alone(root: Place) -> None:
    async def story() -> None:
        async with root.running():
            with pytest.raises(AssertionError, match="did not start"):
                async with root.running():
                    pass
            assert (await root.status())["node_id"] == 1

    run(story())


def test_a_directory_whose_name_is_longer_than_a_sockets_may_be(tmp_path: Path) -> None:
    place = Place(tmp_path / ("long" * 40) / ("name" * 40), ROOT, "auth")

    async def story() -> None:
        async with place.running() as hub:
            assert (await place.status())["node_id"] == 1
            assert await hub.end(signal.SIGTERM) == 0
        assert not (place.data / SOCKET).exists()
        code, said = await place.ctl("status")
        assert code == 2 and "no hub runs on" in said

    run(story())
