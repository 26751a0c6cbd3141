"""Somebody's own state machine behind a program that answers the oracle's lines on standard input and output."""

import os
import selectors
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from hubauth.forms.policies import PolicyForm
from hubauth.oracle.forms import InputForm, OutputForm
from hubauth.oracle.process import GetState, Init, Lines, Take
from hubauth.wire.header import Version

_STDERR_LINES, _LINE = 12, 500
_CHUNK = 64 * 1024
_GRACE = 1.0
"""Seconds that an adapter has to end by itself."""


class AdapterFailed(Exception):
    """The adapter itself failed, which says nothing about a rule. ``what``: "start", "died", "silent" or "babble"."""

    def __init__(self, what: str, message: str, stderr: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.what, self.stderr = what, stderr


class Refused(Struct, frozen=True, tag_field="did", tag="error"):
    """The adapter does not claim such a policy or input: nothing has changed."""

    error: str


class Begun(Struct, frozen=True, tag_field="did", tag="init"):
    digest: str = ""
    """Left out: the adapter has none."""


class Did(Struct, frozen=True, tag_field="did", tag="input"):
    outputs: tuple[OutputForm, ...]
    digest: str = ""


class Told(Struct, frozen=True, tag_field="did", tag="state"):
    state: list[Raw]


_Answer: TypeAlias = Begun | Did | Told | Refused

_decoder = msgspec.json.Decoder(_Answer)
_encode = msgspec.json.Encoder().encode


class Adapter:
    """The program, started when first asked and again after it has failed. Use as a context manager."""

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        self._command, self._seconds = tuple(command), seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._listener: threading.Thread | None = None
        self._lines = Lines()

    def __enter__(self) -> "Adapter":
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    # What it is asked. All of these raise AdapterFailed.

    def begin(self, policy: PolicyForm, version: Version, journal: str) -> Begun | Refused:
        """Begin with a hub that has never run."""
        answer = self._ask(_encode(Init(policy=policy, journal=journal, version=version)))
        return answer if isinstance(answer, Begun | Refused) else self._misunderstands("init", answer)

    def take(self, happened: InputForm) -> Did | Refused:
        """Let the hub take a step."""
        answer = self._ask(_encode(Take(input=happened)))
        return answer if isinstance(answer, Did | Refused) else self._misunderstands("input", answer)

    def state(self) -> list[bytes]:
        """The entries of the hub's state, if the adapter can tell them."""
        answer = self._ask(_encode(GetState()))
        entries = answer.state if isinstance(answer, Told) else []
        return [msgspec.json.encode(msgspec.json.decode(entry)) for entry in entries]

    def _misunderstands(self, asked: str, answer: _Answer) -> "Refused":
        raise self._failure("babble", f"the adapter answered {asked} with {_encode(answer)[:80].decode()}")

    # The process

    def _ask(self, line: bytes) -> _Answer:
        process = self._process or self._start()
        try:
            said = self._exchange(process, line + b"\n")
        except OSError:  # a pipe whose other end is gone
            raise self._death(process) from None
        if said is None:
            raise self._failure("babble", "the adapter wrote a line of more than 4 MiB")
        try:
            answer: _Answer = _decoder.decode(said)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            shown = said[:200].decode(errors="replace")
            raise self._failure("babble", f"the adapter wrote what is no answer: {shown!a} ({problem})") from None
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise AdapterFailed("start", f"cannot start the adapter {shlex.join(self._command)}: {reason}") from None
        assert process.stdin is not None and process.stdout is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._process, self._lines = process, Lines()
        self._stderr.clear()
        self._listener = threading.Thread(target=_listen, args=(process, self._stderr), daemon=True)
        self._listener.start()
        return process

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes) -> bytes | None:
        """Write a line, read a line; None: one that is too long."""
        assert process.stdin is not None and process.stdout is not None
        deadline = time.monotonic() + self._seconds
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdin, selectors.EVENT_WRITE)
            selector.register(process.stdout, selectors.EVENT_READ)
            while True:
                ready = selector.select(deadline - time.monotonic())
                if not ready:
                    words = f"the adapter has not answered for {self._seconds:g} seconds"
                    raise self._failure("silent", words)
                for key, _ in ready:
                    if key.fileobj is process.stdin:
                        line = line[os.write(process.stdin.fileno(), line) :]
                        if not line:
                            selector.unregister(process.stdin)
                        continue
                    data = os.read(process.stdout.fileno(), _CHUNK)
                    if not data:
                        raise BrokenPipeError
                    found = [one for one in self._lines.feed(data) if one is None or one.strip()]
                    if len(found) > 1 or (found and line):
                        raise self._failure("babble", "the adapter wrote a line that nobody had asked for")
                    if found:
                        return found[0]

    def _death(self, process: subprocess.Popen[bytes]) -> AdapterFailed:
        try:
            code = process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return self._failure("died", "the adapter has closed its standard output")
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return self._failure("died", f"the adapter ended {how} before it answered")

    def _failure(self, what: str, message: str) -> AdapterFailed:
        self.stop()
        return AdapterFailed(what, message, tuple(self._stderr))

    def stop(self) -> None:
        """End the process, and whatever it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if self._listener is not None:
            self._listener.join(_GRACE)
        process.stdout.close()


def _listen(process: subprocess.Popen[bytes], lines: deque[str]) -> None:
    """Keep the last lines of what the adapter writes for people."""
    assert process.stderr is not None
    with process.stderr as pipe:
        while line := pipe.readline(_LINE):
            lines.append(line.decode(errors="replace").rstrip())
