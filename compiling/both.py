"""The sources beside what is compiled from them, on the same traces: ``python -m compiling.both [--events N]``.

For every shape of trace each of the two, in a process of its own, generates it, judges it and says what it has found:
verdicts, findings, facts, how often each rule decided, and the digest of every hub's last state. Both must say the
same, word for word. The last line says what was compared, and the processor time of each.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

SHAPES: dict[str, tuple[str, ...]] = {
    "many hubs": ("--hubs", "16", "--devices", "500"),
    "one hot hub": ("--hubs", "1", "--devices", "200"),
    "login": ("--dialect", "login", "--hubs", "4"),
    "flat": ("--dialect", "flat", "--hubs", "4"),
    "a session stays": ("--fault", "keeps_link", "--hubs", "4"),
    "wrong permissions": ("--fault", "wrong_perms", "--hubs", "4"),
    "a frame is lost": ("--fault", "frame_lost", "--hubs", "4"),
    "a wrong code": ("--fault", "wrong_code", "--hubs", "4"),
    "a revoke stops": ("--fault", "revoke_stops", "--hubs", "4"),
    "rows are swapped": ("--fault", "rows_swapped", "--hubs", "4"),
}


def judged(shape: str, events: int, directory: Path) -> dict[str, Any]:
    """Generate a trace, judge it hub by hub and as a whole, and say everything that was found."""
    from hubauth.cli.main import main as command
    from hubauth.compiled import running
    from hubauth.core.canonical import digest_of
    from hubauth.judge.replay import Replay
    from hubauth.trace.judge import judge
    from hubauth.trace.storage import events_files, read_events

    trace = directory / "trace"
    given = ["trace", "generate", *SHAPES[shape], "--events", str(events), "--seed", "7", "--out", str(trace)]
    if command([*given, "--checkpoints", str(max(events // 20, 100))]) != 0:
        raise SystemExit(f"{shape}: the trace could not be generated")
    begun = time.process_time()
    judgement = judge([trace])
    used = time.process_time() - begun
    rows = sha256()
    hubs: dict[str, Replay] = {}
    for file in events_files(trace):
        for event in read_events(file):
            rows.update(repr(event).encode())
            hubs.setdefault(event.hub, Replay()).feed(event)
    verdicts = {hub: replay.finish().plain() for hub, replay in hubs.items()}
    said = {
        "rows": rows.hexdigest(),
        "verdicts": [verdict.plain() for verdict in judgement.verdicts],
        "breaches": [repr(breach) for breach in judgement.breaches],
        "unreadable": list(judgement.unreadable),
        "rules": dict(sorted(judgement.rules.items())),
        "hubs": verdicts,
        "facts": {hub: [repr(fact) for fact in replay.take_facts()] for hub, replay in hubs.items()},
        "last": {hub: sorted(map(repr, replay.take_last_facts())) for hub, replay in hubs.items()},
        "states": {hub: digest_of(replay.state).hex() for hub, replay in hubs.items() if replay.state is not None},
    }
    count = sum(verdict.events for verdict in judgement.verdicts)
    # The last facts are a set: the order of a map depends on the process.
    return {"said": said, "count": count, "seconds": used, "compiled": bool(running().modules)}


def compare(shape: str, events: int, place: Path) -> tuple[list[str], dict[str, float]]:
    """What differs between the two, and what each took."""
    found = {}
    for name, pure in (("pure", "1"), ("compiled", "")):
        directory = place / shape.replace(" ", "-") / name
        directory.mkdir(parents=True)
        program = [sys.executable, "-m", "compiling.both", "--one", str(directory / "said.json")]
        program += ["--shape", shape, "--events", str(events), "--out", str(directory)]
        subprocess.run(program, check=True, env={**os.environ, "HUBAUTH_PURE": pure}, stdout=subprocess.DEVNULL)
        found[name] = json.loads((directory / "said.json").read_text())
    if found["pure"]["compiled"] or not found["compiled"]["compiled"]:
        raise SystemExit("nothing is compiled here: run make compiled")
    one, other = (found[name]["said"] for name in found)
    times = {name: each["seconds"] for name, each in found.items()}
    return [part for part in one if one[part] != other[part]], {**times, "rows": found["pure"]["count"]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compiling.both", description="The sources beside the compiled.")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    shapes = chosen.shape or list(SHAPES)
    if chosen.one is not None:
        chosen.one.write_text(json.dumps(judged(shapes[0], chosen.events, chosen.out)))
        return 0
    differ: list[str] = []
    totals = {"rows": 0.0, "pure": 0.0, "compiled": 0.0}
    for shape in shapes:
        with tempfile.TemporaryDirectory(dir=chosen.out) as place:
            parts, measured = compare(shape, chosen.events, Path(place))
        differ += [f"{shape}: {part}" for part in parts]
        totals = {name: totals[name] + measured[name] for name in totals}
        ratio = measured["pure"] / measured["compiled"]
        print(f"{shape}: {measured['rows']:,.0f} rows, {'differ' if parts else 'the same'}, {ratio:.2f} x", flush=True)
    print(json.dumps({"differ": differ, **{name: round(value, 2) for name, value in totals.items()}}))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
