"""Mistakes planted in a copy of the project, and which layers find each: ``python -m tools.mistakes [--only NN]``.

A mistake is a patch, ``model_tests/mistakes/NN-name.patch``, whose first line says in words what is done wrong. Each is
applied to a copy of the tree, and every layer is run there within its time: what fails has found it. A layer that is
not through in its time, or dies, has found nothing. What is found is kept in ``model_tests/mistakes/results.json``,
from which ``tools.generate`` makes ``spec/mistakes.md``. ``00-control`` changes a comment: nobody may find that.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen

from hubauth.seen import promised
from tools.catalogue import ROOT

FOLDER = ROOT / "model_tests" / "mistakes"
RESULTS = FOLDER / "results.json"
PATH = "spec/mistakes.md"
FOUND, PASSED, NOT_RUN = "found", "passed", "no verdict"
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", ".hypothesis", "site")
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider")
_EVERY_MOMENT = (*_PYTEST, "tests/shell/test_journal.py", "-k", "any_moment")
"""A journal's rotation, killed wherever it can be."""
_EQUALITY = ("MCRestart",)
_SEEDS, _SECONDS, _EXAMPLES = 400, 150.0, 60
"""Of walks, as many or for as long; and of each state machine."""


@frozen
class Layer:
    """One kind of check: how it is run beside a mistake, and whether what it looks at is chosen by chance or all."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    """Arguments to Python, in the copy; one that fails has found the mistake."""
    seconds: float
    by_chance: bool = False
    outside: bool = False
    """Run by this tree, since it would make the same mistake as the copy; ``COPY`` stands for that."""


LAYERS = (
    Layer(
        "unit tests", ((*_PYTEST, "-m", "not slow", "tests/core", "tests/wire", "tests/shell/test_journal.py"),), 300
    ),
    Layer("stories", ((*_PYTEST, "-m", "not slow", "tests/network"),), 300),
    Layer("walks", (("-m", "tools.mistakes", "--walk"),), 300, by_chance=True),
    Layer("exhaustive", ((*_PYTEST, "model_tests/test_exhaustive.py"), _EVERY_MOMENT), 120, by_chance=True),
    Layer("equality", tuple(("-m", "tools.equivalence", "graphs", "--only", name) for name in _EQUALITY), 300, True),
    Layer("vectors", (("-m", "hubauth.cli", "vectors", "run"),), 120),
    Layer("conformance", (("-m", "tools.mistakes", "--conform", "COPY"),), 300, outside=True),
)


@frozen
class Mistake:
    """A patch, and what it does wrong."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8").splitlines()[0]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()[:16]


def mistakes(only: str = "") -> list[Mistake]:
    """All of them, or those whose name begins so."""
    return [Mistake(path) for path in sorted(FOLDER.glob("*.patch")) if path.name.startswith(only)]


@contextmanager
def planted(mistake: Mistake) -> Iterator[Path]:
    """A copy of the tree in which the mistake is made. Raises SystemExit if the patch does not fit."""
    with TemporaryDirectory(prefix="hubauth-mistake-") as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=_LEFT_OUT)
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", str(mistake.path)], cwd=copy, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"{mistake.path.name} does not fit: {done.stderr.strip()}")
        yield copy


def ask(layer: Layer, copy: Path) -> tuple[str, str]:
    """What a layer says of a copy of the tree, and its first words about that."""
    end = time.monotonic() + layer.seconds
    for command in layer.commands:
        words = [str(copy) if word == "COPY" else word for word in command]
        here = ROOT if layer.outside else copy
        paths = os.pathsep.join([str(here / "reference"), str(here)])
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=here,
            env={**os.environ, "PYTHONPATH": paths, "HYPOTHESIS_PROFILE": "ci"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=max(end - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return NOT_RUN, "not through in its time"
        if process.returncode == 1:
            return FOUND, _gist(said)
        if process.returncode:
            return NOT_RUN, f"exit code {process.returncode}: {_gist(said)}"
    return PASSED, ""


def _gist(said: str) -> str:
    """Of what a layer has printed, the line that says what was found."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"(FAILED|ERROR) |found: |[a-z-]+/\S+:|.*: mismatch", line)]
    line = (telling or lines[-1:] or [""])[0]
    return re.sub(r"/tmp/\S*?/tree/", "", line)[:160]


def judge(mistake: Mistake, layers: Sequence[Layer]) -> dict[str, Any]:
    """Which of these layers find a mistake."""
    outcomes: dict[str, dict[str, str]] = {}
    with planted(mistake) as copy:
        for layer in layers:
            started = time.monotonic()
            verdict, gist = ask(layer, copy)
            outcomes[layer.name] = {"verdict": verdict, "gist": gist}
            print(f"{mistake.name}: {layer.name}: {verdict}, {time.monotonic() - started:.0f} s  {gist}", flush=True)
    return {"patch": mistake.digest, "text": mistake.text, "layers": outcomes}


def results() -> dict[str, dict[str, Any]]:
    """What is known, by the name of the mistake."""
    kept: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return kept


def keep(name: str, judged: dict[str, Any]) -> None:
    """Put down what was found; layers that were not asked this time keep what they said of the same patch."""
    known = results()
    before = known.get(name, {})
    if before.get("patch") == judged["patch"]:
        judged["layers"] = {**before["layers"], **judged["layers"]}
    names = {mistake.name for mistake in mistakes()}
    kept = {key: value for key, value in sorted({**known, name: judged}.items()) if key in names}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


# What runs beside a mistake


def walk_until_found() -> int:
    """Random walks, then the state machines, in the tree that this is run in; 1 if something is found."""
    from hypothesis import HealthCheck, settings
    from hypothesis.stateful import run_state_machine_as_test

    from model_tests import below_machine, root_machine
    from model_tests.mixed_walk import walk_mixed
    from model_tests.walk import WALKS

    machines = (root_machine.RootMachine, below_machine.BelowMachine)
    chosen = settings(
        max_examples=_EXAMPLES, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    try:
        where, end = "", time.monotonic() + _SECONDS
        for seed in range(_SEEDS):
            if time.monotonic() > end:
                break
            for walk in (*WALKS, walk_mixed):
                where = f"{walk.__name__} {seed}"
                walk(seed)
        for machine in machines:
            where = machine.__name__
            run_state_machine_as_test(machine, settings=chosen)
    except Exception as problem:
        first = (str(problem) or type(problem).__name__).splitlines()[0]
        print(f"found: {where}: {first}")
        return 1
    return 0


def conform_until_found(copy: Path) -> int:
    """A hub of the copy in each role, judged by the conformance of this tree; 1 if a rule or a promise is broken."""
    from hubauth.oracle.conform.results import VIOLATIONS
    from tests.oracle.conform.hubs import as_process, describe, judge

    ours = os.environ["PYTHONPATH"]
    for role in ("root", "middle", "child"):
        described = describe(role)
        os.environ["PYTHONPATH"] = str(copy / "reference")
        with TemporaryDirectory(prefix="hubauth-") as folder, as_process(described, Path(folder)) as address:
            os.environ["PYTHONPATH"] = ours
            judged = judge(address, described.profile, sequences=25)
        failed = [result.id for result in judged.results if result.verdict in VIOLATIONS]
        if failed:
            broken = [name for name in failed if name.startswith("promise/")]
            print(f"found: {role}: {', '.join([*broken, *failed][:3])}")
            return 1
    return 0


# The page

HEAD = """\
<!-- Generated by tools/mistakes.py from model_tests/mistakes/. Rewrite it with `make generate`. -->

# Mistakes, and who finds them

Each mistake is a [patch](../model_tests/mistakes), applied to a copy of the project; every layer is then run there in
bounded time (`python -m tools.mistakes`). A layer that fails has found it; one that was not through in its time has
not (`?`). Layers marked by a star look at what chance, or every possibility within bounds, puts before them.
*Promises* says whether what was found is a [promise](promises.md) that the monitor saw broken.

- unit tests: `tests/core`, `tests/wire` and the journal, each with an expectation of its own; stories: `tests/network`
- walks: random trees, one hub among liars, trees with plain hubs, and state machines against naive models; after every
  step the promises, the invariants, and what a step must have come to (`model_tests/outcomes.py`)
- exhaustive: decisions over all small tables, a journal killed at every moment
- equality: a sample of the graphs that TLA+ and the core must share
- vectors: the cases of `spec/vectors`; conformance: a real hub judged from outside, with random sequences
"""
_SIGNS = {FOUND: "found", PASSED: "-", NOT_RUN: "?"}


def render() -> dict[str, str]:
    """The page, by its path."""
    known = results()
    titles = [f"{layer.name}{'*' if layer.by_chance else ''}" for layer in LAYERS]
    lines = [HEAD, f"| mistake | {' | '.join(titles)} | promises |", f"|---|{'---|' * (len(titles) + 1)}"]
    for mistake in mistakes():
        of_layers = known.get(mistake.name, {}).get("layers", {})
        cells = [_SIGNS.get(of_layers.get(layer.name, {}).get("verdict", ""), "not run") for layer in LAYERS]
        named = [name for name in promised() if any(name in outcome["gist"] for outcome in of_layers.values())]
        lines.append(f"| [{mistake.name}](#{mistake.name}) | {' | '.join(cells)} | {', '.join(named) or '-'} |")
    for mistake in mistakes():
        lines += [f"\n## {mistake.name}\n", mistake.text, ""]
        for layer, outcome in known.get(mistake.name, {}).get("layers", {}).items():
            if outcome["verdict"] == FOUND:
                lines.append(f"- {layer}: `{outcome['gist'].replace('|', '/').replace('`', '')}`")
    return {PATH: "\n".join(lines) + "\n"}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NN", help="mistakes whose name begins so")
    parser.add_argument("--layer", action="append", choices=[layer.name for layer in LAYERS], help="may be repeated")
    parser.add_argument("--walk", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--conform", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.walk:
        return walk_until_found()
    if options.conform is not None:
        return conform_until_found(options.conform)
    chosen = mistakes(options.only)
    if not chosen:
        parser.error(f"no patch in {FOLDER.relative_to(ROOT)} begins with {options.only!r}")
    layers = [layer for layer in LAYERS if not options.layer or layer.name in options.layer]
    missed = []
    for mistake in chosen:
        keep(mistake.name, judge(mistake, layers))
        found = [outcome for outcome in results()[mistake.name]["layers"].values() if outcome["verdict"] == FOUND]
        missed += [] if found else [mistake.name]
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} mistakes found"
        + "".join(f"; not found: {one}" for one in missed)
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
