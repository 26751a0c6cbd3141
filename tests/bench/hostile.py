"""What hostile peers cost everybody else: the latency of an honest client alone and beside 20 hostile connections of
each kind, and the memory that 5,000 of them make a hub hold.

Hub, honest client and hostile peers are processes of their own. The hostile ones are niced, so that what is
measured is how fair the hub is and not how fair the machine's scheduler is. Alone and beside take turns. Each kind is
measured twice: with the limits per address switched off for the hostile peers, as if each had an address of its own,
and with them as they are by default. Beside the time that an answer took stands how much of it the hub itself was at
work, for whomever: on a machine that has other things to do, too, only that says something about the hub.
"""

import argparse
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from hubauth.core.messages import Authenticate, Frame, Major, Register
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import FrameDecoder, encode_frame, read_frame
from hubauth.wire.header import Refused, Version
from tests.bench.attack import HOLDING, HOST, KINDS
from tests.bench.hub import Server, resident_bytes
from tests.bench.report import save, show

HOSTILE, MANY = 20, 5_000
GOAL = 5.0
PAUSE = 0.005
"""Between an answer and the honest client's next request."""


class Latencies(msgspec.Struct):
    """The p99 of many answers, in microseconds: how long they took, and how long the hub was at work meanwhile."""

    taken: float
    worked: float


class Honest:
    """A device that authenticates again and again, one request at a time, and waits for each answer."""

    def __init__(self, hub: Server) -> None:
        self._hub_clock = ~hub.pid << 3 | 2  # what Linux calls the processor time of that process
        self._socket = socket.create_connection(("127.0.0.1", hub.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.settimeout(60)
        self._decoder = FrameDecoder(Version.V1)
        self._number = 0
        registered = self._ask(encode_frame(Version.V1, AUTH, Frame(Register("honest"), msg_id=1)), 1)
        self._request = Authenticate("honest", registered.body.credential)  # type: ignore[union-attr]

    def _ask(self, request: bytes, msg_id: int) -> Frame:
        self._socket.sendall(request)
        while True:
            data = self._socket.recv(1 << 18)
            if not data:
                raise SystemExit("the hub has disconnected the honest client")
            for raw in self._decoder.feed(data):
                assert not isinstance(raw, Refused)
                if raw.header.sub_proto == 2 and raw.header.msg_id == msg_id:
                    return read_frame(AUTH, raw).frame

    def latencies(self, seconds: float) -> "Latencies":
        """How long the answers took."""
        taken: list[float] = []
        worked: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self._number += 1
            msg_id = 10 + self._number
            request = encode_frame(Version.V1, AUTH, Frame(self._request, msg_id=msg_id))
            worked_before, begun = time.clock_gettime(self._hub_clock), time.perf_counter()
            answer = self._ask(request, msg_id)
            taken.append((time.perf_counter() - begun) * 1e6)
            worked.append((time.clock_gettime(self._hub_clock) - worked_before) * 1e6)
            if answer.major is not Major.OK_RESP:
                raise SystemExit("the honest client was refused")
            time.sleep(PAUSE)
        return Latencies(p99(taken), p99(worked))

    def close(self) -> None:
        self._socket.close()


class Case(msgspec.Struct):
    """One kind of hostility; the median of all rounds."""

    kind: str
    limits: str
    alone: Latencies
    beside: Latencies

    @property
    def row(self) -> list[str]:
        cells = [self.kind, self.limits]
        for alone, beside in ((self.alone.taken, self.beside.taken), (self.alone.worked, self.beside.worked)):
            cells += [f"{alone:,.0f}", f"{beside:,.0f}", _judged(beside / alone)]
        return cells


class Held(msgspec.Struct):
    """What many connections of one kind make the hub hold, in bytes."""

    kind: str
    connections: int
    """Still open when it was measured."""
    resident: int


@contextlib.contextmanager
def hub_server(directory: Path, *, exempt: bool) -> Iterator[Server]:
    """A hub with its defaults, apart from the limits per address and what 5,000 connections need."""
    networks = f'["{HOST}"]' if exempt else "[]"
    settings = directory / "hub.toml"
    settings.write_text(
        f"[per_address]\nexempt = {networks}\n[limits]\nunauthenticated_seconds = 0\nframe_seconds = 0\n"
    )
    command = [sys.executable, "-m", "hubauth.cli", "hub", "--config", str(settings), "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(directory / "data"), "--durability", "os", "--log-format", "json"]
    with (directory / "log").open("w+") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            port = 0
            while not port:
                if process.poll() is not None:
                    raise SystemExit(f"the hub did not start: {(directory / 'log').read_text()}")
                time.sleep(0.05)
                for line in (directory / "log").read_text().splitlines():
                    with contextlib.suppress(ValueError):
                        said = json.loads(line)
                        port = int(said["address"].rpartition(":")[2]) if said["event"] == "listening" else port
            yield Server(process.pid, port)
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def attack(kind: str, port: int, connections: int) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.bench.attack", kind, str(port), str(connections)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{kind}: the attack failed")
        yield
        process.stdin.close()


def p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


def compare(kind: str, *, exempt: bool, seconds: float, rounds: int) -> Case:
    """One kind, alone and beside it in turns."""
    alone, beside = [], []
    for _ in range(rounds):
        # A hub of its own for every round: what hostile peers have left behind keeps one busy for a long time.
        with tempfile.TemporaryDirectory() as directory, hub_server(Path(directory), exempt=exempt) as hub:
            honest = Honest(hub)
            honest.latencies(0.3)
            alone.append(honest.latencies(seconds))
            with attack(kind, hub.port, HOSTILE):
                beside.append(honest.latencies(seconds))
            honest.close()
    return Case(kind, "off" if exempt else "on", _median(alone), _median(beside))


def _median(rounds: list[Latencies]) -> Latencies:
    return Latencies(median(each.taken for each in rounds), median(each.worked for each in rounds))


def hold(kind: str, connections: int) -> Held:
    with tempfile.TemporaryDirectory() as directory, hub_server(Path(directory), exempt=True) as hub:
        honest = Honest(hub)
        before = resident_bytes(hub.pid)
        with attack(kind, hub.port, connections):
            honest.latencies(2.0)
            open_connections = len(list(Path(f"/proc/{hub.pid}/fd").iterdir()))
            held = resident_bytes(hub.pid) - before
        honest.close()
    return Held(kind, min(open_connections, connections), held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--connections", type=int, default=MANY)
    chosen = parser.parse_args()
    cases: list[Case] = []
    for kind in chosen.kinds:
        for exempt in (True, False):
            print(f"{kind}, limits per address {'off' if exempt else 'on'} ...", file=sys.stderr, flush=True)
            cases.append(compare(kind, exempt=exempt, seconds=chosen.seconds, rounds=chosen.rounds))
            print("  ".join(cases[-1].row), file=sys.stderr, flush=True)
    held = []
    for kind in HOLDING if chosen.connections else ():
        print(f"{chosen.connections:,} connections, {kind} ...", file=sys.stderr, flush=True)
        held.append(hold(kind, chosen.connections))
    title = f"p99 of an honest client in us, alone and beside {HOSTILE} hostile connections (median of {chosen.rounds})"
    header = ["hostile peers", "limits per address", "alone", "beside", "ratio", "hub alone", "hub beside", "ratio"]
    show(title, header, [case.row for case in cases])
    if held:
        title = f"Memory that {chosen.connections:,} hostile connections make a hub hold"
        rows = [
            [h.kind, f"{h.connections:,}", f"{h.resident / 1e6:.0f}", f"{h.resident / chosen.connections / 1e3:.1f}"]
            for h in held
        ]
        show(title, ["hostile peers", "open", "MB", "KB per connection"], rows)
    content = {"cases": msgspec.to_builtins(cases), "held": msgspec.to_builtins(held)}
    print(f"\nwrote {save('hostile', {'goal_ratio': GOAL, 'hostile': HOSTILE, **content})}")
    return 0


def _judged(ratio: float) -> str:
    return f"{ratio:.1f}" + ("" if ratio <= GOAL else f"  above {GOAL:g}")


if __name__ == "__main__":
    sys.exit(main())
