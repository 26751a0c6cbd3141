"""What a real hub costs over TCP, next to a raw framed echo server in the same run, each in a process of its own.

CPU is what the kernel says the server's threads have used between the same two moments. Echo and hub take turns, so a
busy machine slows both alike.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from hubauth.shell.configuration import configure
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot
from tests.bench.core import populate
from tests.bench.load import Job, Result
from tests.bench.report import save, show

SMALL, LARGE = 1_000, 1_000_000
CONNECTIONS = (1, 16, 64)
WINDOWS = {"closed loop": 1, "pipelined": 16}
GOAL_CPU, GOAL_SIZE, GOAL_RSS = 12.0, 1.3, 1024.0


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
def echo_server() -> Iterator[tuple[int, int]]:
    """pid and port."""
    with subprocess.Popen([sys.executable, "-m", "tests.bench.echo"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.terminate()


@contextlib.contextmanager
def hub_server(directory: Path, durability: str, loop: str) -> Iterator[tuple[int, int, float]]:
    """pid, port and seconds to start."""
    started = time.monotonic()
    command = [sys.executable, "-m", "hubauth.cli", "hub", "--listen", "127.0.0.1:0", "--log-format", "json"]
    command += ["--data-dir", str(directory), "--durability", durability, "--loop", loop]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                said = json.loads(line)
                if said["event"] == "listening":
                    yield process.pid, int(said["address"].rpartition(":")[2]), time.monotonic() - started
                    break
            else:
                raise SystemExit("the hub did not start")
        finally:
            process.terminate()
            process.stderr.read()


def prepare(directory: Path, count: int) -> None:
    """A data directory that holds ``count`` devices."""
    policy = configure({"storage": {"durability": "none"}}).policy
    hub = Snapshot(policy, populate(count).state, 1)
    journal, _ = Journal.open(directory, "os")
    journal.begin(hub)
    journal.begin(hub)
    for _ in journal.write_snapshot(hub):
        pass
    journal.finish_snapshot()
    journal.close()


def compare(echo: tuple[int, int], hub: tuple[int, int, float], job: Job, rounds: int) -> tuple[Measured, Measured]:
    """Median rounds of echo and hub, taken in turns."""
    pairs = []
    for number in range(rounds):
        echoed = measure(echo[0], evolve_job(job, port=echo[1], kind="echo"))
        pairs.append((echoed, measure(hub[0], evolve_job(job, port=hub[1], prefix=f"{time.time_ns():x}-{number}"))))
    return median_of([pair[0] for pair in pairs]), median_of([pair[1] for pair in pairs])


def evolve_job(job: Job, **changes: object) -> Job:
    return msgspec.structs.replace(job, **changes)


def median_of(rounds: list[Measured]) -> Measured:
    return Measured(*(median(getattr(r, name) for r in rounds) for name in Measured.__struct_fields__))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[SMALL, LARGE])
    parser.add_argument("--connections", type=int, nargs="*", default=list(CONNECTIONS))
    parser.add_argument("--durability", default="os", choices=["fsync", "os", "none"])
    parser.add_argument("--loop", default="auto")
    chosen = parser.parse_args()
    rows: list[list[str]] = []
    results: list[dict[str, object]] = []
    starts: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as temporary, echo_server() as echo:
        for size in chosen.sizes:
            print(f"preparing {size:,} devices ...", file=sys.stderr, flush=True)
            directory = Path(temporary) / str(size)
            prepare(directory, size)
            with hub_server(directory, chosen.durability, chosen.loop) as hub:
                resident = resident_bytes(hub[0])
                starts[f"{size}"] = {
                    "seconds": hub[2],
                    "cpu_seconds": cpu_seconds(hub[0]),
                    "resident_bytes": resident,
                    "per_device": resident / size,
                }
                for mode, window in WINDOWS.items():
                    for connections in chosen.connections:
                        for kind in ("register", "auth"):
                            print(f"{size:,} {mode} {connections} {kind}", file=sys.stderr, flush=True)
                            job = Job(0, kind, connections, window, chosen.seconds, size)
                            echoed, measured = compare(echo, hub, job, chosen.rounds)
                            ratio = measured.cpu / echoed.cpu
                            about = {"devices": size, "mode": mode, "connections": connections, "kind": kind}
                            results.append(
                                {**about, "ratio": ratio}
                                | {"echo": msgspec.to_builtins(echoed), "hub": msgspec.to_builtins(measured)}
                            )
                            rows.append(
                                [
                                    f"{kind}, {mode}",
                                    f"{size:,}",
                                    f"{connections}",
                                    f"{measured.rate:,.0f}",
                                    f"{measured.p50:,.0f}",
                                    f"{measured.p99:,.0f}",
                                    f"{measured.cpu:.1f}",
                                    f"{echoed.cpu:.1f}",
                                    f"{ratio:.1f}" + ("" if ratio <= GOAL_CPU else f"  above {GOAL_CPU:.0f}"),
                                ]
                            )
    header = ["operation", "devices", "conns", "ops/s", "p50 us", "p99 us", "CPU us/op", "echo CPU", "ratio"]
    show(f"A hub over loopback, durability {chosen.durability} (median of {chosen.rounds} rounds)", header, rows)
    for size_text, start in starts.items():
        print(
            f"\n{int(size_text):,} devices: started in {start['seconds']:.1f} s ({start['cpu_seconds']:.1f} s CPU), "
            f"resident {start['resident_bytes'] / 1e6:.0f} MB, {start['per_device']:,.0f} bytes per device"
        )
    report = {"durability": chosen.durability, "goal_cpu_ratio": GOAL_CPU, "starts": starts, "results": results}
    print(f"\nwrote {save('hub', report)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
