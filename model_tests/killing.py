"""The tests that mutants are run against, as plain callables, each with the lines of the core that it executes.

A test that never executes a mutant's line cannot kill it, so only those that do are run, the cheapest first.
"""

import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from attrs import field, frozen
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from pytest import ParameterSet

from model_tests import mutation
from model_tests.mutation import Mutant, path_of

ROOT = Path(__file__).parent.parent
PLAIN = (
    *("tests/core/test_*", "tests/promises/test_*", "tests/wire/test_*", "tests/network/test_*"),
    *("tests/shell/test_journal*", "model_tests/test_kills*"),
)
"""Where plain test functions are."""
SEEDS = 40
EXAMPLES = 25

_FIXTURES = {"monkeypatch", "tmp_path"}

Lines = frozenset[tuple[str, int]]


@frozen
class MeasuredTest:
    """One test, and what it cost and touched when it was run on the core as it is."""

    name: str
    run: Callable[[], object] = field(eq=False)
    seconds: float = 0.0
    lines: Lines = frozenset()
    failure: str = ""

    def touches(self, mutant: Mutant) -> bool:
        return any((mutant.file, line) in self.lines for line in range(mutant.line, mutant.end_line + 1))


def quiet_hypothesis() -> None:
    """The same examples every time, none remembered from another mutant. To be called before tests are imported."""
    settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES,
        stateful_step_count=40,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")


def cases() -> Iterator[MeasuredTest]:
    """Every test, cheap kinds first."""
    for pattern in PLAIN:
        for path in sorted(ROOT.glob(f"{pattern}.py")):
            yield from _plain_cases(".".join(path.relative_to(ROOT).with_suffix("").parts))
    from model_tests import below_machine, root_machine
    from model_tests.walk import WALKS

    for seed in range(SEEDS):
        for walk in WALKS:
            yield MeasuredTest(f"{walk.__name__} {seed}", partial(walk, seed))
    for machine in (root_machine.RootMachine, below_machine.BelowMachine):
        yield MeasuredTest(machine.__name__, partial(run_state_machine_as_test, machine, settings=settings()))


def _plain_cases(module_name: str) -> Iterator[MeasuredTest]:
    module = importlib.import_module(module_name)
    for name, function in sorted(vars(module).items()):
        if not name.startswith("test_") or not inspect.isfunction(function):
            continue
        for label, arguments in _parameters(function):
            needed = set(inspect.signature(function).parameters) - set(arguments)
            if needed <= _FIXTURES or hasattr(function, "hypothesis"):
                fixtures = needed & _FIXTURES
                run = partial(_with_fixtures, function, fixtures) if fixtures else function
                yield MeasuredTest(f"{module_name}.{name}{label}", partial(run, **arguments))


def _with_fixtures(function: Callable[..., object], fixtures: set[str], **arguments: Any) -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="hubauth-") as folder:
        given = {"monkeypatch": patch, "tmp_path": Path(folder)}
        function(**arguments, **{name: given[name] for name in fixtures})


def _parameters(function: Any) -> list[tuple[str, dict[str, Any]]]:
    """The argument sets of ``pytest.mark.parametrize`` that are not slow; one empty set without it."""
    sets: list[tuple[str, dict[str, Any]]] = [("", {})]
    for mark in getattr(function, "pytestmark", []):
        if mark.name != "parametrize":
            continue
        names, rows = mark.args[0], mark.args[1]
        names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        expanded = []
        for at, row in enumerate(rows):
            if isinstance(row, ParameterSet) and any(of_row.name == "slow" for of_row in row.marks):
                continue  # traced it would take minutes
            values = row.values if isinstance(row, ParameterSet) else (row,) if len(names) == 1 else row
            expanded.append((f"[{at}]", dict(zip(names, values, strict=True))))
        sets = [(old + new, {**left, **right}) for old, left in sets for new, right in expanded]
    return sets


def measured(case: MeasuredTest) -> MeasuredTest:
    """Run a case on the core as it is, noting time, lines and whether it passes."""
    seen: set[tuple[str, int]] = set()
    files = {str(path_of(f"{module}.py").resolve()): f"{module}.py" for module in (*mutation.MODULES, *mutation.AROUND)}

    def local(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def enter(frame: FrameType, _event: str, _: object) -> Any:
        return local if frame.f_code.co_filename in files else None

    started = time.perf_counter()
    sys.settrace(enter)
    try:
        failure = failure_of(case)
    finally:
        sys.settrace(None)
    lines = frozenset((files[name], line) for name, line in seen)
    return MeasuredTest(case.name, case.run, time.perf_counter() - started, lines, failure)


def failure_of(case: MeasuredTest) -> str:
    """How a case fails; empty if it passes."""
    try:
        case.run()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # pytest's own failures are no Exceptions
        return f"{type(problem).__name__}: {str(problem)[:200]}"
    return ""
