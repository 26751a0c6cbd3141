"""Runs what a page shows in its ``console`` blocks, and compares what comes with what is shown.

A line that begins with ``$`` is a command, what follows is its output; ``...`` stands for any text, within a line or
for whole lines. A command that ends with ``&`` goes on while the page goes on.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from attrs import field, frozen

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CREDENTIAL = re.compile(r"(?<![\w-])[\w-]{43}(?![\w-])")
_MARK = "--this-was-all--"
PATIENCE = 60.0
"""Seconds for one command."""


@frozen
class Shown:
    """A command, and the output that the page shows."""

    command: str
    output: list[str] = field(factory=list)

    @property
    def stays(self) -> bool:
        return self.command.endswith("&")


def sessions(page: Path) -> list[Shown]:
    """Every command of a page, in order."""
    found: list[Shown] = []
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Shown(line[2:]))
            else:
                found[-1].output.append(line)
    return found


def fits(shown: list[str], came: list[str]) -> bool:
    """Whether the output is what the page shows; a credential is another one every time."""
    pattern = ""
    for line in map(_without_credential, shown):
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in map(_without_credential, came))) is not None


def _without_credential(line: str) -> str:
    return _CREDENTIAL.sub("CREDENTIAL", line)


class Shell:
    """One interactive shell; what it prints is read line by line."""

    def __init__(self, directory: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            bufsize=1,
            cwd=directory,
            env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "HUBAUTH_CREDENTIAL": ""},
        )
        self._lines: Queue[str] = Queue()
        self._reader = Thread(target=self._read)
        self._reader.start()
        self._type("set -m")

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as printed:
            for line in printed:
                self._lines.put(line.rstrip("\n"))

    def _type(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def _until(self, end: str) -> Iterator[str]:
        while True:
            try:
                line = self._lines.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"still waiting for {end!r}") from None
            if line == end:
                return
            # What the shell itself says about jobs.
            if not re.match(r"\[\d+\][-+ ] ", line):
                yield line

    def run(self, shown: Shown) -> list[str]:
        """What a command prints. Of one that stays, as much as the page shows."""
        if not shown.stays:
            # The exit code is that of the command again afterwards, for a page that asks `echo $?`.
            self._type(f"{shown.command}\n_code=$?; echo {_MARK}; (exit $_code)")
            return list(self._until(_MARK))
        self._type(shown.command)
        came: list[str] = []
        while not fits(shown.output, came):
            try:
                came.append(self._lines.get(timeout=PATIENCE))
            except Empty:
                raise AssertionError(f"{shown.command}: {came}") from None
        return came

    def close(self) -> None:
        """End every job that a page has left running, then the shell."""
        self._type("kill $(jobs -p) 2>/dev/null; wait; exit")
        self._process.wait(timeout=PATIENCE)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._reader.join(PATIENCE)
