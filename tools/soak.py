"""The tests again and again while random processes of theirs are stopped for a while: ``python -m tools.soak``.

A machine that stalls must not turn a test red. Every run is pytest over the given paths; meanwhile one process after
the other of those it has started, hubs and commands included, is stopped (SIGSTOP) and goes on after at most
``--stop`` seconds. Ends with a row per run, and with every test that failed and the stops around it. What pytest
printed in a run that failed is kept in ``build/soak``. Needs ``/proc``.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import define, field, frozen

PATHS = ("tests/oracle", "tests/shell", "tests/trace", "tests/cli")
KEPT = Path("build/soak")
_NOTES = "HUBAUTH_SOAK_NOTES"
_AROUND = 5.0
"""Seconds before a test within which a stop may have to do with it."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """As a plugin of the runs: note which tests failed, and when. Workers report to the process that notes."""
    if report.failed and _NOTES in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[_NOTES]).open("a", encoding="utf-8") as notes:
            notes.write(json.dumps([report.nodeid, report.start, report.stop]) + "\n")


@frozen
class Process:
    """What ``/proc`` says about a process."""

    pid: int
    state: str
    parent: int
    session: int

    @property
    def name(self) -> str:
        """Its command line, short."""
        with suppress(OSError):
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            return " ".join([Path(words[0]).name, *words[1:]])[:100].strip()
        return "gone"


def processes() -> Iterator[Process]:
    """All there are."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError):
                stat = (entry / "stat").read_text(encoding="utf-8", errors="replace")
                state, parent, _, session, *_ = stat.rpartition(")")[2].split()
                yield Process(int(entry.name), state, int(parent), int(session))


def family(root: int) -> list[Process]:
    """Everything that a process has started, and that they have, itself included."""
    everything = list(processes())
    found, known = [one for one in everything if one.pid == root], {root}
    grown = True
    while grown:
        more = [one for one in everything if one.pid not in known and (one.parent in known or one.session == root)]
        grown = bool(more)
        found += more
        known |= {one.pid for one in more}
    return [one for one in found if one.state != "Z"]


@frozen
class Stop:
    """A process that was stopped for a while."""

    began: float
    seconds: float
    pid: int
    name: str


@define
class SoakRun:
    """What a run came to."""

    number: int
    seconds: float = 0.0
    code: int = 0
    last: str = ""
    stops: list[Stop] = field(factory=list)
    failures: list[tuple[str, float, float]] = field(factory=list)
    """Test, begin and end."""
    left: list[str] = field(factory=list)
    """Processes that were there after the end."""

    @property
    def is_green(self) -> bool:
        return self.code == 0 and not self.left


def stop_some(run: SoakRun, root: subprocess.Popen[bytes], choice: random.Random, most: float, limit: float) -> None:
    """Stop one process after the other until the tests are over."""
    end = time.monotonic() + limit
    while root.poll() is None:
        if time.monotonic() > end:
            run.last = f"did not end within {limit:g} s"
            return
        victims = [one for one in family(root.pid) if one.state != "T"]
        if victims:
            _stop(run, choice.choice(sorted(victims, key=lambda one: one.pid)), choice.uniform(0.0, most))
        with suppress(subprocess.TimeoutExpired):
            root.wait(choice.uniform(0.0, most / 2))


def _stop(run: SoakRun, victim: Process, seconds: float) -> None:
    name, began = victim.name, time.time()
    with suppress(ProcessLookupError, PermissionError):
        os.kill(victim.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            with suppress(ProcessLookupError):
                os.kill(victim.pid, signal.SIGCONT)
        run.stops.append(Stop(began, seconds, victim.pid, name))


def end_all(root: int) -> list[str]:
    """Kill the processes that a run has left behind, and return them."""
    left = family(root)
    for one in left:
        with suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    return [f"{one.pid} {one.name}" for one in left]


def play(number: int, chosen: argparse.Namespace) -> SoakRun:
    """One run."""
    run, began = SoakRun(number), time.monotonic()
    choice = random.Random(f"{chosen.seed} {number}")
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        notes, output = Path(directory) / "notes", Path(directory) / "output"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(chosen.workers), "-p", "tools.soak"]
        command += ["-p", "no:cacheprovider", f"--basetemp={directory}/tests", "-m", "not e2e", *chosen.paths]
        with output.open("wb") as file:
            outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
            environment = {**outside, _NOTES: str(notes)}
            root = subprocess.Popen(command, stdout=file, stderr=file, env=environment, start_new_session=True)
            try:
                stop_some(run, root, choice, chosen.stop, chosen.limit)
            finally:
                run.left = end_all(root.pid)
                run.code = root.wait()
        text = output.read_text(encoding="utf-8", errors="replace")
        run.last = run.last or (text.strip().splitlines() or ["said nothing"])[-1].strip("= ")
        if notes.exists():
            run.failures = [tuple(json.loads(line)) for line in notes.read_text(encoding="utf-8").splitlines()]
        if not run.is_green:
            KEPT.mkdir(parents=True, exist_ok=True)
            (KEPT / f"run-{number}.txt").write_text(text, encoding="utf-8")
    run.seconds = time.monotonic() - began
    return run


def told(run: SoakRun) -> Iterator[str]:
    """What went wrong in a run."""
    if not run.is_green:
        yield f"run {run.number}: {run.last} ({KEPT / f'run-{run.number}.txt'})"
    for test, begin, end in run.failures:
        yield f"  {test}, {end - begin:.1f} s"
        for stop in run.stops:
            if begin - _AROUND < stop.began + stop.seconds and stop.began < end:
                yield f"    {stop.began - begin:+6.1f} s  stopped for {stop.seconds:.1f} s: {stop.pid} {stop.name}"
    for process in run.left:
        yield f"  left behind: {process}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("paths", nargs="*", default=PATHS, help="what pytest is given")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of what is stopped, and when")
    parser.add_argument("--stop", type=float, default=2.5, help="seconds that a process is stopped at most")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds that a run may take")
    parser.add_argument("--workers", type=int, default=2, help="of pytest")
    chosen = parser.parse_args()
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda *_: sys.exit("told to stop"))  # what was started is ended on the way out
    runs = []
    for number in range(1, chosen.runs + 1):
        runs.append(run := play(number, chosen))
        print(
            f"run {number:>3} of {chosen.runs}  {run.seconds:>5.0f} s  {len(run.stops):>4} stops  {run.last}",
            flush=True,
        )
        for line in told(run):
            print(line, flush=True)
    red = sum(not run.is_green for run in runs)
    stops = sum(len(run.stops) for run in runs)
    print(f"{len(runs) - red} of {len(runs)} runs green, {stops} stops")
    return 1 if red or not runs else 0


if __name__ == "__main__":
    sys.exit(main())
