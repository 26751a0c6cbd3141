"""The whole command against a live hub: a real process, told what to do by real commands."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.shell.configuration import configure
from tests.shell.harness import run, until
from tests.shell.process import hub_process

ADMIN_TABLES = """
[auth]
role_perms = "admin:auth.revoke,auth.perms_invalidate"
[[provisioned]]
device_id = "admin"
node_id = 9
credential = "secret-of-admin"
role = "admin"
"""


def hubauth(*arguments: str, **variables: str) -> tuple[int, str]:
    """Run one command; exit code and output."""
    done = subprocess.run(
        [sys.executable, "-m", "hubauth.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **variables},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def in_process(*arguments: str, **variables: str) -> tuple[int, str]:
    """The same without a process of its own."""
    with redirect_stdout(StringIO()) as said, redirect_stderr(said), pytest.MonkeyPatch.context() as patched:
        for name, value in variables.items():
            patched.setenv(name, value)
        code = main(arguments)
    return code, said.getvalue()


def test_a_device_from_the_shell(tmp_path: Path) -> None:
    config = tmp_path / "hub.toml"
    config.write_text(ADMIN_TABLES)

    async def story() -> None:
        async with hub_process(tmp_path / "data", "--config", str(config)) as hub:
            where = ["--hub", str(hub.address)]
            mine = [*where, "--identity", str(tmp_path / "id.json")]

            async def told(*arguments: str, **variables: str) -> tuple[int, str]:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(None, lambda: in_process("device", *arguments, **variables))

            code, said = await told("register", *mine, "--device-id", "mac-1", "--json")
            assert code == 0 and json.loads(said)["node_id"] == 2
            assert stat.S_IMODE((tmp_path / "id.json").stat().st_mode) == 0o600
            code, said = await told("auth", *mine)
            assert code == 0 and "role        node" in said
            code, said = await told("auth", *where, "--device-id", "mac-1", "--credential", "wrong")
            assert (code, said) == (1, "refused: 4001 invalid credential\n")
            admin = [*where, "--device-id", "admin"]
            secret = {"HUBAUTH_CREDENTIAL": "secret-of-admin"}
            code, said = await told("list-roles", *admin, "--role", "admin", "--json", **secret)
            assert code == 0 and [row["node_id"] for row in json.loads(said)["roles"]] == [9]
            code, said = await told("get-perms", "9", *mine)
            assert code == 0 and "perms       auth.revoke auth.perms_invalidate" in said
            assert await told("perms-invalidate", *admin, **secret) == (0, "done\n")
            code, said = await told("offline", *mine, "--reason", "bye")
            assert code == 0 and "node_id     2" in said
            code, said = await told("revoke", "mac-1", *admin, **secret)
            assert code == 0 and "device_id   mac-1" in said
            code, said = await told("revoke", "mac-1", *admin, "--wait", "0.2", **secret)
            assert (code, said) == (0, "no hub with an entry has answered\n")
            code, said = await told("auth", *mine, "--json")
            assert code == 1 and json.loads(said)["code"] == 4001
            code, said = await told("auth", *mine, "--dialect", "login", "--timeout", "1")
            assert code == 2 and "hint: is a hub listening" in said
            assert await hub.end(signal.SIGTERM) == 0
            assert "secret-of-admin" not in hub.text

    run(story())


def test_a_configuration_is_reloaded_on_sighup(tmp_path: Path) -> None:
    config = tmp_path / "hub.toml"
    config.write_text('[auth]\ndefault_role = "before"\n')

    async def story() -> None:
        async with hub_process(tmp_path / "data", "--config", str(config)) as hub:
            config.write_text('[auth]\ndefault_role = "after"\n')
            hub.process.send_signal(signal.SIGHUP)
            await until(lambda: "reloaded" in hub.text)
            register = ["device", "register", "--hub", str(hub.address), "--device-id", "x", "--json"]
            _, said = await asyncio.get_running_loop().run_in_executor(None, lambda: hubauth(*register))
            assert json.loads(said)["role"] == "after"
            config.write_text("[auth]\ncolour = 'red'\n")
            hub.process.send_signal(signal.SIGHUP)
            await until(lambda: "auth.colour: unknown key" in hub.text)
            assert await hub.end(signal.SIGTERM) == 0

    run(story())


def test_init_writes_what_hub_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hub.toml"
    assert main(["hub", "init", str(path), "--listen", "127.0.0.1:0"]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert main(["hub", "--config", str(path), "--check"]) == 0
    assert main(["hub", "init", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err


def test_provisioning_fits_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provision", "hub-2", "2", "--parent", "127.0.0.1:7080"]) == 0
    verifying, listing, own = capsys.readouterr().out.split("# In the configuration of ")[1:]
    tables = [tomllib.loads(part.partition("\n")[2]) for part in (verifying, listing, own)]
    nowhere = {"storage": {"durability": "none"}}
    parent = configure({**tables[0], **nowhere, "auth": {"role_perms": "hub:auth.assist"}})
    child = configure({**tables[2], **nowhere})
    assert parent.policy.provisioned[0].credential == child.policy.credential
    assert len(child.policy.credential) == 43 and child.policy.node_id == 2
    assert configure({**tables[1], **nowhere}).policy.provisioned[0].credential == ""
    assert main(["provision", "hub-2", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["parent"]["credential"] == said["child"]["credential"]


def test_a_second_hub_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_process(tmp_path) as hub:
            command = ["hub", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
            code, said = await asyncio.get_running_loop().run_in_executor(None, lambda: hubauth(*command))
            assert code == 2 and "in use by another hub" in said
            assert await hub.end(signal.SIGTERM) == 0

    run(story())


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal-0").write_bytes(b"hubauth journal 3\n" + b"x" * 100)
    code, said = hubauth("hub", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path))
    assert code == 2 and "damaged at byte 18" in said and "hint: nothing was changed" in said
