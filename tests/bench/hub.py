"""What a real hub costs over TCP, next to a raw framed echo server in the same run, each in a process of its own.

CPU is what the kernel says the server's threads have used between the same two moments. Echo server, small hub and
large hub take turns, so a busy machine slows all alike.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from tests.bench.load import Job, Result
from tests.bench.report import save, show

SMALL, LARGE = 1_000, 1_000_000
CONNECTIONS = (1, 16, 64)
WINDOWS = {"closed loop": 1, "pipelined": 16}
GOAL_CPU, GOAL_GROWTH, GOAL_RSS = 12.0, 1.3, 1024.0
MANY = 100_000
"""Below that, what a process takes anyhow outweighs its devices."""


class Server(msgspec.Struct):
    """A server under load, and what it took to start it."""

    pid: int
    port: int
    devices: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    resident: int = 0


class Measured(msgspec.Struct):
    """One round: what the load saw, and what the server used."""

    rate: float
    p50: float
    p99: float
    cpu: float
    """Microseconds per operation."""


def cpu_seconds(pid: int) -> float:
    """What all threads of a process have used."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def measure(pid: int, job: Job) -> Measured:
    """Run one job against a server."""
    load = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.load", msgspec.json.encode(job).decode()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with load:
        assert load.stdin is not None and load.stdout is not None
        load.stdout.readline()
        load.stdin.write("go\n")
        load.stdin.flush()
        load.stdout.readline()
        before = cpu_seconds(pid)
        load.stdout.readline()
        used = cpu_seconds(pid) - before
        result = msgspec.json.decode(load.stdout.readline(), type=Result)
    if result.failures or not result.done:
        raise SystemExit(f"{job.kind}: {result.failures} of {result.done} answers were not ok")
    return Measured(result.done / result.seconds, result.p50, result.p99, used / result.done * 1e6)


@contextlib.contextmanager
def echo_server() -> Iterator[Server]:
    with subprocess.Popen([sys.executable, "-m", "tests.bench.echo"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.pid, int(process.stdout.readline()))
        finally:
            process.terminate()


@contextlib.contextmanager
def hub_server(directory: Path, devices: int, durability: str, loop: str, **variables: str) -> Iterator[Server]:
    started = time.monotonic()
    command = [sys.executable, "-m", "hubauth.cli", "hub", "--listen", "127.0.0.1:0", "--log-format", "json"]
    command += ["--data-dir", str(directory), "--durability", durability, "--loop", loop]
    settings = directory.with_suffix(".toml")
    settings.write_text('[per_address]\nexempt = ["127.0.0.1"]\n')
    command += ["--config", str(settings)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables}) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                said = json.loads(line)
                if said["event"] == "listening":
                    seconds, pid = time.monotonic() - started, process.pid
                    port = int(said["address"].rpartition(":")[2])
                    yield Server(pid, port, devices, seconds, cpu_seconds(pid), resident_bytes(pid))
                    break
            else:
                raise SystemExit("the hub did not start")
        finally:
            process.terminate()
            process.stderr.read()


def compare(echo: Server, hubs: list[Server], job: Job, rounds: int) -> list[Measured]:
    """Median rounds of the echo server and of every hub, all taken in turns."""
    taken: list[list[Measured]] = []
    for number in range(rounds):
        unused = f"{time.time_ns():x}-{number}"
        jobs = [evolve_job(job, port=hub.port, devices=hub.devices, prefix=unused) for hub in hubs]
        measured = [measure(hub.pid, each) for hub, each in zip(hubs, jobs, strict=True)]
        taken.append([measure(echo.pid, evolve_job(job, port=echo.port, kind="echo")), *measured])
    return [median_of(list(column)) for column in zip(*taken, strict=True)]


def evolve_job(job: Job, **changes: object) -> Job:
    return msgspec.structs.replace(job, **changes)


def median_of(rounds: list[Measured]) -> Measured:
    return Measured(*(median(getattr(r, name) for r in rounds) for name in Measured.__struct_fields__))


def judged(ratio: float, goal: float) -> str:
    return f"{ratio:.1f}" + ("" if ratio <= goal else f"  above {goal:g}")


class Case(msgspec.Struct):
    """One operation in one mode: the echo server, and each hub."""

    kind: str
    mode: str
    connections: int
    echo: Measured
    hubs: list[Measured]

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.mode}"

    @property
    def growth(self) -> float:
        """CPU of the largest hub over that of the smallest."""
        return self.hubs[-1].cpu / self.hubs[0].cpu

    def rows(self, hubs: list[Server]) -> Iterator[list[str]]:
        for hub, measured in zip(hubs, self.hubs, strict=True):
            numbers = [f"{measured.rate:,.0f}", f"{measured.p50:,.0f}", f"{measured.p99:,.0f}", f"{measured.cpu:.1f}"]
            ratio = judged(measured.cpu / self.echo.cpu, GOAL_CPU)
            yield [self.name, f"{hub.devices:,}", f"{self.connections}", *numbers, f"{self.echo.cpu:.1f}", ratio]


def run(echo: Server, hubs: list[Server], connections: list[int], seconds: float, rounds: int) -> Iterator[Case]:
    for mode, window in WINDOWS.items():
        for count in connections:
            for kind in ("register", "auth"):
                print(f"{mode}, {count} connections, {kind}", file=sys.stderr, flush=True)
                echoed, *measured = compare(echo, hubs, Job(0, kind, count, window, seconds), rounds)
                yield Case(kind, mode, count, echoed, measured)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[SMALL, LARGE])
    parser.add_argument("--connections", type=int, nargs="*", default=list(CONNECTIONS))
    parser.add_argument("--durability", default="os", choices=["fsync", "os", "none"])
    parser.add_argument("--loop", default="auto")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as servers:
        echo = servers.enter_context(echo_server())
        hubs: list[Server] = []
        for size in chosen.sizes:
            print(f"preparing {size:,} devices ...", file=sys.stderr, flush=True)
            directory = Path(temporary) / str(size)
            # In a process of its own, so that what it takes to make the hub is gone when the hub is measured.
            subprocess.run([sys.executable, "-m", "tests.bench.prepare", str(directory), str(size)], check=True)
            hubs.append(servers.enter_context(hub_server(directory, size, chosen.durability, chosen.loop)))
        cases = list(run(echo, hubs, chosen.connections, chosen.seconds, chosen.rounds))
    title = f"A hub over loopback, durability {chosen.durability} (median of {chosen.rounds} rounds, taken in turns)"
    header = ["operation", "devices", "conns", "ops/s", "p50 us", "p99 us", "CPU us/op", "echo CPU", "ratio"]
    show(title, header, [row for case in cases for row in case.rows(hubs)])
    if len(hubs) > 1:
        grown = f"CPU per operation at {hubs[-1].devices:,} devices over that at {hubs[0].devices:,}"
        show(grown, ["operation", "conns", "ratio"], [[c.name, f"{c.connections}", _growth(c)] for c in cases])
    print()
    for hub in hubs:
        per_device = f", {hub.resident / hub.devices:,.0f} bytes per device (goal {GOAL_RSS:,.0f})"
        print(
            f"{hub.devices:,} devices: started in {hub.seconds:.1f} s ({hub.cpu:.1f} s CPU), "
            f"resident {hub.resident / 1e6:.0f} MB" + (per_device if hub.devices >= MANY else "")
        )
    report = {"durability": chosen.durability, "goal_cpu_ratio": GOAL_CPU, "goal_growth": GOAL_GROWTH}
    content = {"hubs": msgspec.to_builtins(hubs), "cases": msgspec.to_builtins(cases)}
    print(f"\nwrote {save('hub', {**report, **content})}")
    return 0


def _growth(case: Case) -> str:
    return f"{case.growth:.2f}" + ("" if case.growth <= GOAL_GROWTH else f"  above {GOAL_GROWTH}")


if __name__ == "__main__":
    sys.exit(main())
