"""What compiling gains: a step, a replay, and a hub under load, interpreted and compiled, taking turns.

Processor time, of processes of their own; the median of the rounds counts. ``python -m tests.bench.compiled``.
"""

import argparse
import contextlib
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from hubauth.compiled import BUILT, PACKAGE, PURE, fits, running
from tests.bench.hub import WINDOWS, compare, echo_server, hub_server
from tests.bench.load import Job
from tests.bench.report import BENCH, save, show

WAYS = {"pure": "1", "compiled": ""}
"""What runs, and ``HUBAUTH_PURE`` for it."""
CONNECTIONS = 16


def replayed(trace: Path) -> float:
    """Microseconds per row of a whole trace, ends of connections compared."""
    from hubauth.trace.judge import judge

    begun = time.process_time()
    judgement = judge([trace])
    used = time.process_time() - begun
    return used / sum(verdict.events for verdict in judgement.verdicts) * 1e6


def stepped() -> float:
    """Microseconds per step: the mean of the scenarios of ``tests.bench.core``, at a small hub."""
    import random

    from tests.bench.core import SCENARIOS, SMALL, measure, populate

    hub = populate(SMALL)
    gc.collect()
    gc.freeze()
    gc.disable()
    taken = []
    for at, scenario in enumerate(SCENARIOS, 1):
        choice = random.Random(at)
        rounds = [measure(*scenario(hub, choice)) for _ in range(15)]
        taken.append(median(rounds) * 1e6)
    return sum(taken) / len(taken)


def in_turns(rounds: int, *arguments: str) -> dict[str, float]:
    """The median of each way."""
    taken: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, pure in WAYS.items():
            command = [sys.executable, "-m", "tests.bench.compiled", *arguments]
            environment = {**os.environ, PURE: pure}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            said = json.loads(done.stdout.splitlines()[-1])
            assert said["compiled"] == (way == "compiled"), f"{way} is asked for, and {said} runs"
            taken[way].append(said["us"])
    return {way: median(each) for way, each in taken.items()}


def generated(events: int) -> Path:
    """A trace of many hubs, kept for the next time."""
    trace = BENCH / "traces" / f"compiled-{events}"
    if not trace.exists():
        command = [sys.executable, "-m", "hubauth.cli", "trace", "generate", "--hubs", "64", "--devices", "5000"]
        command += ["--events", str(events), "--checkpoints", str(events // 40), "--out", str(trace)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return trace


def loaded(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """CPU per request of a hub of each way, and of an echo server, in turns."""
    found = []
    with tempfile.TemporaryDirectory() as temporary, contextlib.ExitStack() as servers:
        echo = servers.enter_context(echo_server())
        hubs = []
        for way, pure in WAYS.items():
            directory = Path(temporary) / way
            subprocess.run([sys.executable, "-m", "tests.bench.prepare", str(directory), "1000"], check=True)
            hubs.append(servers.enter_context(hub_server(directory, 1000, "os", "auto", **{PURE: pure})))
        for mode, window in WINDOWS.items():
            for kind in ("register", "auth"):
                print(f"a hub, {mode}, {kind}", file=sys.stderr, flush=True)
                echoed, pure_hub, compiled = compare(echo, hubs, Job(0, kind, CONNECTIONS, window, seconds), rounds)
                cpu = {"pure": pure_hub.cpu, "compiled": compiled.cpu, "echo": echoed.cpu}
                found.append({"kind": kind, "mode": mode, **cpu})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.compiled", description="What compiling gains.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--one", choices=["step", "replay"], help=argparse.SUPPRESS)
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one is not None:
        used = stepped() if chosen.one == "step" else replayed(chosen.trace)
        print(json.dumps({"us": used, "compiled": bool(running().modules)}))
        return 0
    there = fits(PACKAGE, BUILT)
    if not there.modules:
        print(f"nothing to compare: {there.why}")
        return 0
    print("a step", file=sys.stderr, flush=True)
    step = in_turns(chosen.rounds, "--one", "step")
    trace = generated(chosen.events)
    print("a replay", file=sys.stderr, flush=True)
    replay = in_turns(chosen.rounds, "--one", "replay", "--trace", str(trace))
    hub = loaded(chosen.seconds, chosen.rounds)
    rows = [("a step of the core", step), ("a row of a trace", replay)]
    rows += [(f"a hub, {case['kind']}, {case['mode']}, {CONNECTIONS} connections", case) for case in hub]
    show(
        f"Processor time, interpreted and compiled (median of {chosen.rounds} rounds, taken in turns)",
        ["what", "pure us", "compiled us", "ratio"],
        [[name, f"{m['pure']:.1f}", f"{m['compiled']:.1f}", f"{m['pure'] / m['compiled']:.2f} x"] for name, m in rows],
    )
    print(f"\nwrote {save('compiled', {'step': step, 'replay': replay, 'hub': hub})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
