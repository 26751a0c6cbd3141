"""All state machines in one process, so that the rules they exercised can be counted together.

The figures are printed and written to ``build/model-test.json``. A rule that no machine reached is a failure.
"""

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from model_tests import below_machine, root_machine
from model_tests.event_machines import (
    FlatNetworkMachine,
    LiarsMachine,
    NetworkMachine,
    SteeredLiarsMachine,
    SteeredNetworkMachine,
)
from model_tests.exercised import FAMILIES, UNREACHABLE, Tally, required_rules
from model_tests.walk import WALKS

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
MACHINES: dict[str, tuple[type[RuleBasedStateMachine], Tally]] = {
    "root against a naive model": (root_machine.RootMachine, root_machine.TALLY),
    "hub below a parent against a naive model": (below_machine.BelowMachine, below_machine.TALLY),
    "networks": (NetworkMachine, NetworkMachine.TALLY),
    "networks of flat": (FlatNetworkMachine, FlatNetworkMachine.TALLY),
    "one hub among liars": (LiarsMachine, LiarsMachine.TALLY),
    "networks, steered": (SteeredNetworkMachine, SteeredNetworkMachine.TALLY),
    "one hub among liars, steered": (SteeredLiarsMachine, SteeredLiarsMachine.TALLY),
}
SHARE = {"networks of flat": 0.4, "networks, steered": 0.15, "one hub among liars, steered": 0.15}
"""Machines that get less than their equal part of the examples."""
SEEDS = {"dev": 50, "ci": 400, "long": 10_000}
"""Of walks over the same events as the machines of networks and liars; they cost a tenth of an example."""
_REPORT = Path(__file__).parent.parent / "build" / "model-test.json"


def test_machines_and_the_rules_they_exercise(capsys: pytest.CaptureFixture[str]) -> None:
    tallies: dict[str, Tally] = {}
    seconds: dict[str, float] = {}
    for name, (machine, tally) in MACHINES.items():
        started = time.monotonic()
        examples = max(1, int(settings().max_examples * SHARE.get(name, 1.0)))
        run_state_machine_as_test(machine, settings=settings(max_examples=examples))
        tallies[name], seconds[name] = tally, time.monotonic() - started
    started = time.monotonic()
    tallies["seeded walks"] = walks = Tally()
    for seed in range(SEEDS[PROFILE]):
        for walk in WALKS:
            walk(seed, tally=walks)
            walks.examples += 1
    seconds["seeded walks"] = time.monotonic() - started

    fired = sum((tally.rules for tally in tallies.values()), start=Tally().rules)
    never = [rule for rule in required_rules() if not fired[rule]]
    with capsys.disabled():
        print()
        for name, tally in tallies.items():
            found = len([rule for rule in tally.rules if rule.split("-")[0] in FAMILIES])
            print(f"  {name}: {tally.examples} examples, {tally.steps} steps, {found} rules, {seconds[name]:.0f} s")
        print(f"  rules exercised: {len(required_rules()) - len(never)} of {len(required_rules())}")
        print("  rarest: " + ", ".join(f"{rule} {count}" for rule, count in fired.most_common()[:-9:-1]))
    _REPORT.parent.mkdir(exist_ok=True)
    _REPORT.write_text(json.dumps({"profile": PROFILE, "rules": dict(sorted(fired.items()))}, indent=1) + "\n")
    assert not [rule for rule in UNREACHABLE if fired[rule]], "listed as unreachable, but reached"
    assert PROFILE == "dev" or not never, f"never exercised: {never}"
