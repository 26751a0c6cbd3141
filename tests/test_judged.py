"""What is said of how rules are judged is about the code as it is: no digest is stale, and a sample is found again."""

import os
import random
import subprocess
import sys

import pytest

from tools.catalogue import ROOT
from tools.judged import results, sites, stale

KNOWN = results()
CHEAP = [rule for rule, entry in sorted(KNOWN.items()) if entry.get("found by", "").startswith("walk")]


def test_what_was_measured_is_not_stale() -> None:
    changed = sorted(set(stale(KNOWN)) & set(KNOWN))
    assert not changed, f"their code has changed: python -m tools.judged --stale ({', '.join(changed)})"


def test_a_rule_that_nothing_judges_has_a_reason_and_there_are_few() -> None:
    unjudged = {rule: entry for rule, entry in KNOWN.items() if "found by" not in entry}
    assert all(entry["reason"] for entry in unjudged.values())
    cited = [rule for rule in unjudged if rule in sites()]
    assert len(cited) <= len(KNOWN) // 5, cited


FOUND_AGAIN = """
import sys
from model_tests.killing import quiet_hypothesis
from tools.judged import WALKS, judge_named, mutant_of, results
from tools.mutants import run

quiet_hypothesis()
entry = results()[sys.argv[1]]
kind, _, named = entry["found by"].partition(" ")  # what a number leads to changes with what may happen on walks
seeds = [int(named), *(seed for seed in range(WALKS) if seed != int(named))]
(verdict,) = run([mutant_of(entry)], [judge_named(f"{kind} {seed}") for seed in seeds], 1, None)
sys.exit(None if verdict.killer.startswith(kind) else f"not found: {entry}")
"""


@pytest.mark.parametrize("rule", random.Random(7).sample(CHEAP, min(5, len(CHEAP))))
def test_a_mistake_is_found_again(rule: str) -> None:
    # In a process of its own: mutants are forked, and what a long test run has open and mapped is not theirs.
    done = subprocess.run([sys.executable, "-c", FOUND_AGAIN, rule], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_changed_function_makes_its_rules_stale() -> None:
    rule = CHEAP[0]
    module, function, _ = KNOWN[rule]["code"].split(":")
    assert rule in stale({**KNOWN, rule: {**KNOWN[rule], "code": f"{module}:{function}:{os.urandom(4).hex()}"}})
    assert rule in stale({name: entry for name, entry in KNOWN.items() if name != rule})
