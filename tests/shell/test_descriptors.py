"""Connections never take the descriptors that the journal needs."""

import asyncio
import os
import resource
import signal
import socket
import sys
from pathlib import Path

from tests.shell.harness import run
from tests.shell.process import HubProcess
from tests.shell.raw import peer, register

DESCRIPTORS = 128


def test_more_connections_than_descriptors(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "hub.toml").write_text('[storage]\nsnapshot_records = 20\ndurability = "os"\n')
        command = ["-m", "hubauth.cli", "hub", "--config", str(tmp_path / "hub.toml"), "--log-format", "json"]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            *("--listen", "127.0.0.1:0", "--data-dir", str(tmp_path / "data")),
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)),
        )
        hub = HubProcess(process)
        await hub.ready()
        many: list[socket.socket] = []
        try:
            async with peer(hub.address) as honest:
                await honest.send(register("honest"))
                assert len(await honest.frames(1)) == 1
                many += [socket.create_connection(hub.address) for _ in range(2 * DESCRIPTORS)]
                for number in range(60):
                    await honest.send(register(f"device-{number}", number))
                    assert len(await honest.frames(1)) == 1, hub.text
            assert await hub.end(signal.SIGTERM) == 0
            assert "few_descriptors" in hub.text and "accept_failed" not in hub.text
            assert "snapshot_failed" not in hub.text and "journal_failed" not in hub.text
        finally:
            for sock in many:
                sock.close()
            if process.returncode is None:
                os.kill(process.pid, signal.SIGKILL)
                await process.wait()

    run(story())
