"""The planted mistakes fit the tree as it is, and what is known of them is about these very patches."""

import subprocess
from pathlib import Path

import pytest

from tools.catalogue import ROOT
from tools.mistakes import FOUND, LAYERS, NOT_RUN, PASSED, Layer, Mistake, ask, mistakes, planted, results

CONTROL, *MISTAKES = mistakes()


@pytest.mark.parametrize("mistake", [CONTROL, *MISTAKES], ids=lambda mistake: mistake.name)
def test_a_patch_fits_and_says_what_it_does(mistake: Mistake) -> None:
    done = subprocess.run(["git", "apply", "--check", str(mistake.path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert mistake.text.endswith(".") and not mistake.text.startswith("diff")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_two_layers_find_a_mistake_and_one_of_them_by_chance_or_among_all(mistake: Mistake) -> None:
    judged = results()[mistake.name]
    assert judged["patch"] == mistake.digest, "the patch was changed: python -m tools.mistakes --only " + mistake.name
    finders = {name for name, outcome in judged["layers"].items() if outcome["verdict"] == FOUND}
    assert len(finders) >= 2 and finders & {layer.name for layer in LAYERS if layer.by_chance}


def test_what_is_no_mistake_is_found_by_nobody() -> None:
    judged = results()[CONTROL.name]
    assert judged["patch"] == CONTROL.digest
    verdicts = {name: outcome["verdict"] for name, outcome in judged["layers"].items()}
    assert set(verdicts) == {layer.name for layer in LAYERS} and FOUND not in verdicts.values()
    assert list(verdicts.values()).count(PASSED) >= len(LAYERS) - 1, "a busy machine may keep one from being through"


def test_only_what_fails_in_time_has_found_something(tmp_path: Path) -> None:
    def said(program: str, seconds: float = 60) -> str:
        return ask(Layer("a layer", (("-c", program),), seconds), tmp_path)[0]

    assert said("pass") == PASSED
    assert said("raise SystemExit(1)") == FOUND
    assert said("raise SystemExit(3)") == NOT_RUN
    assert said("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") == NOT_RUN
    assert said("import time; time.sleep(600)", seconds=0.5) == NOT_RUN


def test_a_layer_runs_the_copy_and_not_this_tree() -> None:
    with planted(MISTAKES[0]) as copy:
        where = "import hubauth, sys; sys.exit(0 if hubauth.__file__.startswith(sys.argv[1]) else 1)"
        assert ask(Layer("a layer", (("-c", where, "COPY"),), 60), copy)[0] == PASSED
        assert ask(Layer("a layer", (("-c", where, str(ROOT)),), 60, outside=True), copy)[0] == PASSED
