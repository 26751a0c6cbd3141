"""A hub as a process of its own, started by the real command."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hubauth.shell.addresses import Address, parse_address


class HubProcess:
    """A running hub and what it has logged."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        self.text = ""
        self.address = Address("", 0)

    async def ready(self) -> None:
        """Wait until it listens."""
        assert self.process.stderr is not None
        while not self.address.port:
            line = await asyncio.wait_for(self.process.stderr.readline(), 60)
            assert line, f"the hub did not start: {self.text}"
            self._take(line)
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self._take(line)

    def _take(self, line: bytes) -> None:
        self.text += line.decode()
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            self.lines.append(said)
            if said["event"] == "listening":
                self.address = parse_address(said["address"])

    async def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(number)
        code = await asyncio.wait_for(self.process.wait(), 60)
        await self._reading
        return code


@asynccontextmanager
async def hub_process(directory: Path, *arguments: str, level: str = "info") -> AsyncIterator[HubProcess]:
    """Run ``hubauth hub`` on any free port; killed at the end if it still runs."""
    command = ["-m", "hubauth.cli", "hub", "--listen", "127.0.0.1:0", "--data-dir", str(directory)]
    command += ["--log-format", "json", "--log-level", level, *arguments]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
    hub = HubProcess(process)
    try:
        await hub.ready()
        yield hub
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if hub.address.port:
            await hub._reading
