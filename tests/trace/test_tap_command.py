"""``hubauth trace tap``: what it says, and how it ends."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubauth.forms.events import Kind
from hubauth.trace.storage import events_files, read_events
from tests.shell.raw import register


@contextmanager
def tap(directory: Path) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket, socket.socket]]:
    """A tap with one connection through it: the process, the near end and the far end."""
    with socket.create_server(("127.0.0.1", 0)) as hub:
        target = f"127.0.0.1:{hub.getsockname()[1]}"
        command = [sys.executable, "-m", "hubauth.cli", "trace", "tap", "127.0.0.1:0", target, "--out", str(directory)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                assert process.stdout is not None
                port = int(process.stdout.readline().decode().rpartition(":")[2])
                with socket.create_connection(("127.0.0.1", port), timeout=30) as near:
                    far, _ = hub.accept()
                    far.settimeout(30)
                    with far:
                        yield process, near, far
            finally:
                process.kill()


def passed(near: socket.socket, far: socket.socket, data: bytes) -> None:
    """Something has gone through, and so been looked at."""
    near.sendall(data)
    while data:
        data = data[len(far.recv(len(data))) :]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_and_without_a_word(number: signal.Signals, tmp_path: Path) -> None:
    with tap(tmp_path / "t") as (process, near, far):
        passed(near, far, register("sensor"))
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None and process.stderr.read() == b""
        assert near.recv(1) == far.recv(1) == b""
    rows = [event for file in events_files(tmp_path / "t") for event in read_events(file)]
    assert rows[-1].kind is Kind.END and any(event.kind is Kind.FRAME_IN for event in rows)


def test_that_nothing_more_is_recorded_is_said_once(tmp_path: Path) -> None:
    with tap(tmp_path / "t") as (process, near, far):
        for _ in range(50):
            passed(near, far, b"x" * 100)
        for _ in range(50):
            passed(far, near, b"y" * 100)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr is not None
        lines = process.stderr.read().decode().splitlines()
    assert len(lines) == 2 and "to the hub, not recorded any further" in lines[0] and "from the hub" in lines[1]
