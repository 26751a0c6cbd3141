"""Replay in one process beside Spark on one and two cores, over many hubs and over one hot hub.

``python -m tests.bench.spark [EVENTS ...]``, 1,000,000 and 10,000,000 unless said otherwise. Traces are generated once
and kept in ``build/bench/traces``. Starting Spark is not counted: each session judges a small trace first.
"""

import argparse
import gc
import io
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen
from pyspark.sql import SparkSession

from hubauth.judge.verdicts import Outcome
from hubauth.spark.results import Summary
from hubauth.spark.run import run_job
from hubauth.spark.session import open_session
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.judge import judge
from hubauth.trace.storage import TraceWriter
from tests.bench.report import BENCH, save, show

EVENTS = (1_000_000, 10_000_000)
GOAL_MANY, GOAL_HOT, GOAL_CPU, GOAL_GROWTH, GOAL_RATE, GOAL_MEGABYTES = 1.7, 1.6, 1.2, 10.5, 125_000, 300
WARM_UP = Blueprint(8, 50, 20_000, 9, trace="warm-up", checkpoint_events=5_000)
SHAPES = {"many hubs": (64, 5_000), "one hot hub": (1, 2_000)}
"""Hubs and devices."""


@frozen
class Run:
    """One measurement."""

    shape: str
    events: int
    way: str
    cores: int
    seconds: float
    replay_seconds: float
    cpu_seconds: float
    """Of all processes together: what counts where others use the machine, too."""
    megabytes: float
    """The largest Python process that replayed."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds


def trace_of(shape: str, events: int) -> Path:
    """The trace to be judged, generated if it is not there yet."""
    directory = BENCH / "traces" / f"{shape.replace(' ', '-')}-{events}"
    if not directory.exists():
        print(f"generating {events:,} events, {shape} ...", file=sys.stderr, flush=True)
        hubs, devices = SHAPES[shape]
        unfinished = directory.with_name(f"{directory.name}.unfinished-{time.time_ns()}")
        blueprint = Blueprint(hubs, devices, events, 1, checkpoint_events=events // 40, trace=directory.name)
        with TraceWriter(unfinished, "parquet") as writer:
            generate(blueprint, writer.event, writer.checkpoint)
        unfinished.rename(directory)
    return directory


def alone(shape: str, events: int) -> Run:
    """In this process, without Spark."""
    directory = trace_of(shape, events)
    gc.collect()
    begun, used = time.monotonic(), cpu_seconds()
    with largest_process() as largest:
        judgement = judge([directory])
    seconds, used = time.monotonic() - begun, cpu_seconds() - used
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    rows = sum(verdict.events for verdict in judgement.verdicts)
    return Run(shape, rows, "one process", 1, seconds, seconds, used, largest[0])


def on_spark(spark: SparkSession, cores: int, shape: str, events: int) -> Run:
    directory = trace_of(shape, events)
    begun, used = time.monotonic(), cpu_seconds()
    with largest_process() as largest:
        summary = judged(spark, directory)
    seconds, used = time.monotonic() - begun, cpu_seconds() - used
    assert summary.outcome is Outcome.CONFORMS, summary.not_conforming
    replaying = summary.rows / summary.rows_per_second
    return Run(shape, summary.rows, "Spark", cores, seconds, replaying, used, largest[0])


def judged(spark: SparkSession, directory: Path) -> Summary:
    with tempfile.TemporaryDirectory() as report:
        return run_job(spark, str(directory.resolve()), report, io.StringIO())


@contextmanager
def largest_process() -> Iterator[list[float]]:
    """The largest resident size, in megabytes, of a Python process of ours while the block runs."""
    largest, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            largest[0] = max(largest[0], *sizes())

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield largest
    finally:
        done.set()
        watching.join()


def sizes() -> Iterator[float]:
    """Of the workers of PySpark, or of this process if there are none."""
    yield 0.0
    for path in [path for path in _ours() if b"pyspark.daemon" in _read(path / "cmdline")] or [Path("/proc/self")]:
        pages = _read(path / "statm").split()
        if len(pages) > 1:
            yield int(pages[1]) * 4096 / 1e6


def cpu_seconds() -> float:
    """Used so far by this process, by Spark's and by the workers of PySpark, also those that have ended."""
    ticks = 0
    for path in (Path("/proc/self"), *_ours()):
        # Own time, and that of children that were waited for: user and system of both.
        ticks += sum(map(int, _status(path)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _ours() -> list[Path]:
    """The processes that this one has started, and those that they have: others may run Spark here, too."""
    children: dict[int, list[Path]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        status = _status(path)
        if status:
            children.setdefault(int(status[1]), []).append(path)
    found, parents = list[Path](), [os.getpid()]
    while parents:
        born = children.get(parents.pop(), [])
        found += born
        parents += [int(path.name) for path in born]
    return found


def _status(path: Path) -> list[bytes]:
    """What stands after the name of a process, which may hold anything."""
    return _read(path / "stat").rpartition(b")")[2].split()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def measure(events: Sequence[int]) -> list[Run]:
    runs = [alone(shape, size) for size in events for shape in SHAPES]
    for cores in (1, 2):
        with tempfile.TemporaryDirectory() as directory:
            with TraceWriter(Path(directory) / "warm-up", "parquet") as writer:
                generate(WARM_UP, writer.event, writer.checkpoint)
            with open_session(f"local[{cores}]", Path(directory) / "log", {}) as spark:
                judged(spark, Path(directory) / "warm-up")
                for size in events:
                    for shape in SHAPES:
                        print(f"Spark, {cores} cores, {size:,} events, {shape} ...", file=sys.stderr, flush=True)
                        runs.append(on_spark(spark, cores, shape, size))
    return runs


def compare(runs: list[Run]) -> list[list[str]]:
    """Each goal, and what was reached."""
    reached = {(run.shape, run.events, run.way, run.cores): run for run in runs}
    rows = []
    for (shape, events, way, cores), run in reached.items():
        plain = reached[shape, events, "one process", 1]
        if way == "Spark" and cores == 2:
            goal = GOAL_MANY if shape == "many hubs" else GOAL_HOT
            name = f"{shape}, {events:,}: 2 cores against one process"
            rows.append([name, f"{plain.seconds / run.seconds:.2f} x", f"at least {goal} x"])
            whole = f"{shape}, {events:,}: processor time of the whole job against one process"
            rows.append([whole, f"{run.cpu_seconds / plain.cpu_seconds:.2f} x", f"at most {GOAL_CPU} x"])
            spread = f"{shape}, {events:,}: the same if both cores were ours"
            rows.append([spread, f"{plain.cpu_seconds / (run.cpu_seconds / cores):.2f} x", f"at least {goal} x"])
        small = min(
            (other for other in runs if (other.shape, other.way, other.cores) == (shape, way, cores)), key=_size
        )
        if run is not small:
            name = f"{shape}, {way}, {cores} cores: processor time for {run.events / small.events:.1f} x the events"
            goal_text = f"at most {GOAL_GROWTH * run.events / small.events / 10:.1f} x"
            rows.append([name, f"{run.cpu_seconds / small.cpu_seconds:.1f} x", goal_text])
        name = f"{shape}, {way}, {cores} cores, {events:,}: memory of the largest process"
        rows.append([name, f"{run.megabytes:.0f} MB", f"at most {GOAL_MEGABYTES} MB"])
    best = max(run.events / run.replay_seconds / run.cores for run in runs)
    return [*rows, ["events/s per core, replay alone, best", f"{best:,.0f}", f"at least {GOAL_RATE:,}"]]


def _size(run: Run) -> int:
    return run.events


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.spark", description="Replay beside Spark.")
    parser.add_argument("events", type=int, nargs="*", default=EVENTS, help="sizes of the traces")
    runs = measure(parser.parse_args(arguments).events)
    show(
        "Replay of recorded traces, decoding and comparison included",
        ["way", "events", "cores", "s", "events/s", "CPU s", "replay alone, s", "events/s per core", "MB"],
        [
            [
                f"{run.shape}, {run.way}",
                f"{run.events:,}",
                str(run.cores),
                f"{run.seconds:.1f}",
                f"{run.rate:,.0f}",
                f"{run.cpu_seconds:.1f}",
                f"{run.replay_seconds:.1f}",
                f"{run.events / run.replay_seconds / run.cores:,.0f}",
                f"{run.megabytes:.0f}",
            ]
            for run in runs
        ],
    )
    show("Goals", ["what", "reached", "goal"], compare(runs))
    keys = ("shape", "events", "way", "cores", "seconds", "replay_seconds", "cpu_seconds", "megabytes")
    print(f"\nwrote {save('spark', {'runs': [{key: getattr(run, key) for key in keys} for run in runs]})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
