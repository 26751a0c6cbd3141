"""Compare the Python core with the TLA+ models: ``python -m tools.equivalence [graphs|walks|variants] [--only NAME]``.

``tla/models.toml`` says which models are compared, and how. ``graphs``: the core's reachable graph with TLC's, state by
state and step by step. ``walks``: TLC's simulated behaviours of larger models are replayed by the core, and random
behaviours of the core are checked by TLC. Any difference is a failure, and so is a comparison of nothing. ``variants``:
the same with the deliberate mistakes of the model; here it is a failure if nothing is noticed.
``tla/ABSTRACTION.md`` says what is compared with what.
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from attrs import evolve, frozen

from model_tests.equivalence import perms_machine, tree_machine
from model_tests.equivalence.constants import as_record
from model_tests.equivalence.graph import Graph, compare_graphs, read_dump
from model_tests.equivalence.machine import Machine, SharedValues, compare
from model_tests.equivalence.report import CHANGE, side_by_side, told, told_path
from model_tests.equivalence.values import Value, parse_after
from model_tests.equivalence.walks import Walk, random_walk, read_behaviour, replay, walk_module
from tools import tlc
from tools.models import HERE, Model, read_catalogue
from tools.promised import REFINES

WORK = HERE / "build" / "equivalence"
ENOUGH = 50_000
"""States that the graphs must have together."""

BEHAVIOURS = 40
"""Walks of each model and each direction."""
LENGTH = 100
"""Steps of a walk, unless nothing more can happen."""
SEED = 20
DEPTH = 10
"""Steps within which a mistake of the model must show in its graph."""

UNNOTICED = ("The core does not do this, and the comparison does not notice.",)

KINDS = ("graph", "walks", "variant")
AnyMachine: TypeAlias = Machine[Any]
_TREE, _PERMS = tree_machine.TreeMachine, perms_machine.PermsMachine
_MACHINES: dict[str, tuple[type[AnyMachine], tuple[str, ...], tuple[str, ...]]] = {
    "MCTrees": (_TREE, tree_machine.CONSTANTS, tree_machine.ACTIONS),
    "MCPlainTrees": (_TREE, tree_machine.CONSTANTS, tree_machine.PLAIN_ACTIONS),
    "MCPermsTrees": (_PERMS, perms_machine.CONSTANTS, perms_machine.ACTIONS),
}
"""Module -> what is compared with its models, which constants that has to know, and what must have happened."""


@frozen
class ComparisonRow:
    """What was compared, and what came of it."""

    model: str
    what: str
    behaviours: int
    states: int
    steps: int
    seconds: float
    actions: tuple[tuple[str, int], ...] = ()
    difference: tuple[str, ...] = ()

    @property
    def complaint(self) -> tuple[str, ...]:
        return self.difference or (() if self.steps or self.what == "variant" else ("Nothing was compared.",))

    @property
    def verdict(self) -> str:
        if self.what == "variant":
            return "UNNOTICED" if self.complaint else "noticed"
        return "DIFFERENT" if self.complaint else "equal"


# TLC


@contextmanager
def _prepared(model: Model) -> Iterator[Path]:
    """A folder with a module that shows the model's constants.

    Each comparison has one of its own, while it lasts: several of one model may run side by side.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    shown = ", ".join(f"{name} |-> {name}" for name in _MACHINES[model.module][1])
    with TemporaryDirectory(prefix=f"{model.name}-", dir=WORK) as name:
        folder = Path(name)
        (folder / "Shown.tla").write_text(
            f"---- MODULE Shown ----\nEXTENDS {model.module}\n"
            f'ShownInit == PrintT("constants") /\\ PrintT([{shown}]) /\\ Init\nEvaluated == vars = vars\n====\n'
        )
        yield folder


def _tlc(
    folder: Path, model: Model, module: str, config: str, *options: str, recording: bool = True
) -> tuple[int, str]:
    """Run TLC in a folder with a model's constants; its exit code, and what it said."""
    configuration = model.configuration
    constants = configuration.constants_text(recording=recording and not configuration.of_behaviours)
    (folder / f"{module}.cfg").write_text(constants + config)
    (folder / "meta").mkdir()
    command = [*tlc.start_tlc("3g", 1, folder / "meta"), *options, "-config", f"{module}.cfg", f"{module}.tla"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    shutil.rmtree(folder / "meta")
    return done.returncode, done.stdout + done.stderr


def _failure(code: int, said: str) -> tuple[str, ...]:
    return (f"TLC ended with {code}:", *said.splitlines()[-20:])


def _machine(model: Model, said: str) -> AnyMachine:
    constants: dict[str, Value] = as_record(parse_after('"constants"\n', said))
    machine: Any = _MACHINES[model.module][0]
    return machine(constants, SharedValues())  # type: ignore[no-any-return]


# Graphs


def check_graph(model: Model, depth: int | None = None) -> ComparisonRow:
    """Compare the whole graph of a model with the core's, or that of its first so many steps."""
    started = time.monotonic()
    try:
        machine, graph = read_graph(model, depth)
    except ValueError as error:
        return ComparisonRow(model.name, "graph", 0, 0, 0, 0.0, difference=tuple(str(error).splitlines()))
    found = compare_graphs(machine, graph, depth)
    actions = tuple(sorted(found.actions.items()))
    seconds = time.monotonic() - started
    return ComparisonRow(model.name, "graph", 1, found.states, found.steps, seconds, actions, found.difference)


def read_graph(model: Model, depth: int | None = None) -> tuple[AnyMachine, Graph]:
    """What is compared with a model, and the graph that TLC finds; a ValueError says why there is none."""
    with _prepared(model) as folder:
        return _read_graph(folder, model, depth)


def _read_graph(folder: Path, model: Model, depth: int | None) -> tuple[AnyMachine, Graph]:
    dump = ("-deadlock", "-dump", "dot,actionlabels", "graph.dot")
    config = "INIT ShownInit\nNEXT Next\nVIEW View\n"
    if depth is not None:
        module = folder / "Shown.tla"
        # One level more for the targets of the last steps, one for those of TLC's own counting.
        module.write_text(module.read_text().replace("====\n", f'Shallow == TLCGet("level") < {depth + 3}\n====\n'))
        config += "CONSTRAINT Shallow\n"
    code, said = _tlc(folder, model, "Shown", config, *dump, recording=False)
    if code != 0:
        raise ValueError("\n".join(_failure(code, said)))
    machine = _machine(model, said)
    with (folder / "graph.dot").open() as lines:
        return machine, read_dump(machine, lines, cut=depth is not None)


def check_variant(model: Model) -> ComparisonRow:
    """A deliberate mistake of the model shows: in its graph or, if only devices are told wrong things, in its walks."""
    row = check_graph(model, DEPTH)
    if not row.difference:
        replayed = check_walks(model)[0]
        row = evolve(replayed, seconds=row.seconds + replayed.seconds)
    if not row.states:  # TLC failed, or the two sides do not even begin alike
        return evolve(row, what="variant", difference=row.difference or UNNOTICED)
    return evolve(row, what="variant", difference=() if row.difference else UNNOTICED)


# Walks


def check_walks(model: Model, behaviours: int = BEHAVIOURS) -> list[ComparisonRow]:
    """Compare random behaviours of a model, both ways."""
    with _prepared(model) as folder:
        return _check_walks(folder, model, behaviours)


def _check_walks(folder: Path, model: Model, behaviours: int) -> list[ComparisonRow]:
    (folder / "traces").mkdir()
    started = time.monotonic()
    options = ("-simulate", f"file=traces/walk,num={behaviours}", "-depth", str(LENGTH), "-seed", str(SEED))
    # TLC simulates lazily and would write functions as the text that defines them; comparing a state makes it evaluate.
    # That the model refines the promises is checked on whole graphs (tools/tlc.py), not on simulated ones.
    claims = () if model.violates else tuple(name for name in model.checked if name != REFINES)
    checks = evolve(model.configuration, claims=claims).claims_text()
    config = f"INIT ShownInit\nNEXT Next\nINVARIANT Evaluated\n{checks}"
    code, said = _tlc(folder, model, "Shown", config, "-deadlock", *options)
    if code != 0:
        return [ComparisonRow(model.name, "replay", 0, 0, 0, 0.0, difference=_failure(code, said))]
    machine = _machine(model, said)
    replayed = _replay(folder, model, machine, started)
    return [replayed, _walk(folder, model, machine, behaviours)]


def _replay(folder: Path, model: Model, machine: AnyMachine, started: float) -> ComparisonRow:
    """Let the core take the steps of the behaviours that TLC has simulated."""
    behaviours = [read_behaviour(machine, path.read_text()) for path in sorted((folder / "traces").iterdir())]
    difference = next(filter(None, (replay(machine, behaviour) for behaviour in behaviours)), ())
    states = {moment.state for behaviour in behaviours for moment in behaviour}
    steps = sum(len(behaviour) - 1 for behaviour in behaviours)
    seconds = time.monotonic() - started
    return ComparisonRow(model.name, "replay", len(behaviours), len(states), steps, seconds, difference=difference)


def _walk(folder: Path, model: Model, machine: AnyMachine, behaviours: int) -> ComparisonRow:
    """Let TLC say whether random behaviours of the core are behaviours of the model."""
    started = time.monotonic()
    random = Random(SEED)
    walks = [random_walk(machine, random, LENGTH) for _ in range(behaviours)]
    difference = _refused(folder, model, machine, walks)
    states = {state for walk in walks for state in walk.states}
    steps = sum(len(walk.events) for walk in walks)
    seconds = time.monotonic() - started
    return ComparisonRow(model.name, "walks", len(walks), len(states), steps, seconds, difference=difference)


_WALK_CONFIG = "INIT WalkInit\nNEXT WalkNext\n"


def _refused(folder: Path, model: Model, machine: AnyMachine, walks: Sequence[Walk]) -> tuple[str, ...]:
    """The first step of a walk that TLC refuses; empty if it accepts all of them."""
    (folder / "Walks.tla").write_text(walk_module(machine, model.module, walks))
    code, said = _tlc(folder, model, "Walks", _WALK_CONFIG)
    counts = re.findall(r"(\d+) distinct states found", said)
    if code == 0 and counts and int(counts[-1]) >= sum(len(walk.states) for walk in walks):
        return ()
    if "Deadlock reached" not in said:
        return _failure(code, said)
    walk, at = (walks[_last(said, "walk") - 1], _last(said, "at"))
    before, after, event = walk.states[at - 1], walk.states[at], walk.events[at - 1]
    lines = told_path(list(walk.events[: at - 1]))
    cut = Walk(walk.states[: at + 1], walk.events[:at])
    (folder / "Walks.tla").write_text(walk_module(machine, model.module, [cut], free=True))
    _tlc(folder, model, "Walks", _WALK_CONFIG, "-dump", "dot,actionlabels", "walks.dot", recording=False)
    with (folder / "walks.dot").open() as dump:
        allowed = {target for _, target in read_dump(machine, dump).steps[before]} - {before}
    lines += [f"{told(event)} is no step of TLA+. It changes:", *side_by_side(machine.parts, before, after, CHANGE)]
    if allowed:
        closest = min(allowed, key=lambda target: len(compare(machine.parts, target, after)))
        lines += ["The closest step that there is leads elsewhere:", *side_by_side(machine.parts, closest, after)]
    return tuple(lines)


def _last(said: str, variable: str) -> int:
    return int(re.findall(rf"^/\\ {variable} = (\d+)$", said, flags=re.MULTILINE)[-1])


# All together


def _comparison(model: Model) -> str:
    """How a model is compared, if it is: there must be a machine, and a limit is no mistake."""
    if model.module not in _MACHINES or model.kind == "limit":
        return ""
    return "variant" if model.violates else model.equality


def _check(model: Model) -> list[ComparisonRow]:
    if model.violates:
        return [check_variant(model)]
    return [check_graph(model)] if model.equality == "graph" else check_walks(model)


def run_all(models: Sequence[Model]) -> list[ComparisonRow]:
    """Side by side on all cores, the large ones first."""
    ordered = sorted(models, key=lambda model: (model.equality, -model.states))
    rows: list[ComparisonRow] = []
    with ProcessPoolExecutor(tlc.CORES) as pool:
        for found in pool.map(_check, ordered):
            for row in found:
                tlc.say(f"{row.model}, {row.what}: {row.verdict}, {row.seconds:.0f} s")
            rows += found
    return rows


def table(rows: Sequence[ComparisonRow]) -> str:
    """One line per comparison."""
    width = max(len(row.model) for row in rows)
    lines = [f"{'model':<{width}}  {'what':<6}  behaviours   states  transitions  seconds  verdict"]
    for row in rows:
        count = {"graph": "all", "variant": ""}.get(row.what, str(row.behaviours))
        lines.append(
            f"{row.model:<{width}}  {row.what:<6}  {count:>10}  {row.states:>7,}  {row.steps:>11,}  "
            f"{row.seconds:>7.1f}  {row.verdict}"
        )
    return "\n".join(lines)


def summary(rows: Sequence[ComparisonRow]) -> str:
    """How much was compared in all."""

    def total(what: str) -> tuple[int, int, int]:
        chosen = [row for row in rows if row.what == what]
        return (
            sum(row.behaviours for row in chosen),
            sum(row.states for row in chosen),
            sum(row.steps for row in chosen),
        )

    (_, states, transitions), (replayed, _, taken), (walked, _, checked) = map(total, ("graph", "replay", "walks"))
    return (
        f"graphs: {states:,} states and {transitions:,} transitions compared; "
        f"TLC's behaviours replayed in Python: {replayed:,} of {taken:,} steps; "
        f"Python's checked by TLC: {walked:,} of {checked:,} steps; "
        f"mistakes of the model noticed: {sum(row.verdict == 'noticed' for row in rows)}"
    )


def gaps(rows: Sequence[ComparisonRow]) -> list[str]:
    """What a run over everything should have compared and did not."""
    graphs = [row for row in rows if row.what == "graph"]
    states = sum(row.states for row in graphs)
    modules = {model.name: model.module for model in read_catalogue().models}
    taken = {(modules[row.model], name) for row in graphs for name, _ in row.actions}
    wanted = {(module, name) for module, (_, _, actions) in _MACHINES.items() for name in actions}
    found = [f"{name} of {module} was never compared" for module, name in sorted(wanted - taken)] if graphs else []
    if graphs and states < ENOUGH:
        found.append(f"only {states:,} states were compared, not {ENOUGH:,}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.equivalence", description=__doc__.splitlines()[0])
    parser.add_argument(
        "what", nargs="?", choices=("graphs", "walks", "variants"), help="one kind of comparison; all if not given"
    )
    parser.add_argument("--only", default="", metavar="NAME", help="one model by its name")
    options = parser.parse_args(arguments)
    kinds = {"graphs": ("graph",), "walks": ("walks",), "variants": ("variant",)}.get(options.what or "", KINDS)
    models = [
        model for model in read_catalogue().models if _comparison(model) in kinds and options.only in ("", model.name)
    ]
    if not models:
        tlc.say("no models selected")
        return 1
    rows = run_all(models)
    print(table(rows))
    print(summary(rows))
    for row in rows:
        if row.complaint:
            print("\n".join([f"\n{row.model}, {row.what}:", *row.complaint]))
    missing = [] if options.only else gaps(rows)
    for line in missing:
        print(line)
    return 1 if missing or any(row.complaint for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
