"""The mutation run fails where it should, shown on a toy in place of the core."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve

from model_tests.killing import _parameters
from model_tests.mutation import AROUND, CORE, MODULES, WITHOUT_DECISIONS, Mutant, mutants_of
from tools.catalogue import ROOT
from tools.mutants import Explanation, MutantVerdict, explanations, problems

TOY = '''
def is_adult(age: int) -> bool:
    """Whether somebody is old enough."""
    if age < 0:
        return False
    return age >= 18
'''
DRIVER = """
import sys
from pathlib import Path

here = Path(sys.argv[1])
sys.path.insert(0, str(here))

from model_tests import killing, mutation
from tools import mutants
from toys import toy

mutation.CORE = here / "toys"
mutation.PACKAGE = "toys"
mutation.MODULES = mutants.MODULES = ("toy",)
mutation.AROUND = mutants.AROUND = ()
mutants.EXPLANATIONS = here / "survivors.toml"
mutants.RESULTS = here / "results.json"
mutants.REPORT = here / "report.md"
mutants.REQUIRED_SCORE = float(sys.argv[3])


def ages() -> None:
    for age in eval(sys.argv[2]):
        assert toy.is_adult(age) == (age >= 18)


mutants.cases = lambda: iter([killing.MeasuredTest("ages", ages)])
sys.exit(mutants.main(sys.argv[4:]))
"""
BELOW_ZERO = [(operator, "if age < 0:") for operator in ("never", "Lt to LtE", "0 to 1")]
"""Who is less than nothing years old is less than eighteen: these change nothing."""


def entry(operator: str, source: str) -> str:
    fields = {
        "file": "toy.py",
        "function": "is_adult",
        "operator": operator,
        "source": source,
        "because": "Equivalent.",
    }
    return "\n".join(["[[survivor]]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items()), ""])


def run(
    folder: Path, ages: str, explained: list[tuple[str, str]], *arguments: str, required: float = 0.4
) -> tuple[int, str]:
    """Exit code and output of a run over the toy."""
    toys = folder / "toys"
    toys.mkdir()
    (toys / "__init__.py").touch()
    (toys / "toy.py").write_text(TOY)
    (folder / "survivors.toml").write_text("".join(entry(*each) for each in explained))
    command = [sys.executable, "-c", DRIVER, str(folder), ages, str(required), *arguments]
    path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'reference'}"}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("selection", ["--all", "--only=toy.py", "--sample=99"])
def test_survivors_that_are_explained_are_no_failure(tmp_path: Path, selection: str) -> None:
    code, output = run(tmp_path, "(-1, 0, 17, 18)", BELOW_ZERO, selection)
    assert code == 0, output
    assert output.count("survived, explained: toy.py") == 3
    report = tmp_path / "report.md"
    assert report.exists() == (selection == "--all")
    assert selection != "--all" or "not explained" not in report.read_text()


@pytest.mark.parametrize("selection", ["--all", "--only=toy", "--sample=99"])
def test_a_survivor_that_is_not_explained_fails_the_run_and_is_named(tmp_path: Path, selection: str) -> None:
    code, output = run(tmp_path, "(-1, 0, 17, 20)", BELOW_ZERO, selection)
    assert code == 1, output
    assert "survived, not explained: toy.py:6 [GtE to Gt] return age >= 18" in output


def test_a_worker_that_dies_has_killed_nothing(tmp_path: Path) -> None:
    """A test that never ends, or ends its process, on the mutant alone says nothing about what it would notice."""
    for at, way in enumerate(("while True: pass", "import os; os.kill(os.getpid(), 9)")):
        folder = tmp_path / str(at)
        folder.mkdir()
        dies = f"[exec({way!r}) if not toy.is_adult(18) else 0]"
        code, output = run(folder, dies, BELOW_ZERO, "--only=toy", required=0.0)
        assert code != 2 and "no verdict: toy.py:6 [GtE to Gt] return age >= 18: " in output, output


def test_an_explanation_of_what_is_killed_or_is_gone_fails_the_run(tmp_path: Path) -> None:
    killed, gone = ("GtE to Gt", "return age >= 18"), ("GtE to Gt", "return age >= 21")
    code, output = run(tmp_path, "(-1, 0, 17, 18)", [*BELOW_ZERO, killed, gone], "--all")
    assert code == 1, output
    assert "explained, but killed: toy.py:6 [GtE to Gt] return age >= 18" in output
    assert "explained, does not exist: toy.py is_adult [GtE to Gt] return age >= 21" in output
    assert "not explained" not in output


@pytest.mark.parametrize(("selection", "expected"), [("--all", 1), ("--sample=99", 1), ("--only=toy.py", 0)])
def test_explanations_do_not_make_up_for_a_low_score_except_of_one_file(
    tmp_path: Path, selection: str, expected: int
) -> None:
    code, output = run(tmp_path, "(-1, 0, 17, 18)", BELOW_ZERO, selection, required=0.6)
    assert code == expected, output
    assert ("the score is below 60%" in output) == bool(expected)


def test_a_run_over_nothing_is_wrong_use(tmp_path: Path) -> None:
    code, output = run(tmp_path, "(18,)", [], "--only=missing.py")
    assert code == 2 and "no mutants selected" in output


# What fails a run, as a function


MUTANT = Mutant("toy.py", "is_adult", 4, 4, "never", "if age < 0:", 0)
EXPLANATION = Explanation("toy.py", "is_adult", "never", "if age < 0:", "Equivalent.")


def test_an_explanation_is_about_one_function() -> None:
    """The same line in another function may well matter."""
    elsewhere = evolve(MUTANT, qualname="is_child")
    assert problems([MutantVerdict(MUTANT)], [EXPLANATION], [MUTANT]) == []
    found = problems([MutantVerdict(MUTANT), MutantVerdict(elsewhere)], [EXPLANATION], [MUTANT, elsewhere])
    assert found == [f"survived, not explained: {elsewhere.name}"]


def test_what_a_sample_left_out_is_not_judged() -> None:
    assert problems([], [EXPLANATION], [MUTANT]) == []
    assert problems([], [EXPLANATION], []) == [f"explained, does not exist: {EXPLANATION.name}"]


def test_a_mutant_that_is_killed_needs_no_explanation() -> None:
    assert problems([MutantVerdict(MUTANT, "ages")], [], [MUTANT]) == []
    assert problems([MutantVerdict(MUTANT, "ages")], [EXPLANATION], [MUTANT]) == [
        f"explained, but killed: {MUTANT.name}"
    ]


# The core


def test_every_module_of_the_core_is_mutated_or_has_nothing_to_change() -> None:
    assert sorted((*MODULES, *WITHOUT_DECISIONS)) == sorted(path.stem for path in CORE.glob("*.py"))
    assert all(any(mutants_of(module)) for module in MODULES)
    assert not any(mutant for module in WITHOUT_DECISIONS for mutant in mutants_of(module))


def test_what_judges_and_what_surrounds_the_core_is_mutated_too() -> None:
    assert all(any(mutants_of(module)) for module in AROUND)
    for folder in ("promises", "wire", "wire/dialects"):
        modules = {f"{folder}/{path.stem}" for path in (CORE.parent / folder).glob("*.py")}
        assert not any(mutant for module in modules - set(AROUND) for mutant in mutants_of(module))


def test_every_explanation_is_about_a_mutant_that_exists() -> None:
    existing = [mutant for module in (*MODULES, *AROUND) for mutant in mutants_of(module)]
    assert problems([], explanations(), existing) == []


def test_parameters_reach_a_test_as_they_are() -> None:
    @pytest.mark.parametrize("value", [abs, {"a": 1}, pytest.param(3, id="three")])
    @pytest.mark.parametrize(("left", "right"), [(1, 2), pytest.param(3, 4)])
    def function(value: object, left: int, right: int) -> None: ...

    found = [tuple(arguments[name] for name in ("value", "left", "right")) for _, arguments in _parameters(function)]
    assert found == [(value, *pair) for pair in ((1, 2), (3, 4)) for value in (abs, {"a": 1}, 3)]
