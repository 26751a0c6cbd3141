"""The comparison of two graphs: equal ones are equal, and every kind of difference is told in words."""

import pytest

from model_tests.equivalence import graph
from model_tests.equivalence.graph import compare_graphs, read_dump
from tests.tla.toy import Counter, dump


def test_equal_graphs() -> None:
    machine = Counter(3)
    found = compare_graphs(machine, read_dump(machine, dump(3)))
    assert found.difference == ()
    assert (found.states, found.steps, found.actions) == (4, 6, {"Up": 3, "Reset": 3})


def test_a_step_that_python_lacks() -> None:
    machine = Counter(2)
    found = compare_graphs(machine, read_dump(machine, dump(3)))
    assert found.difference == (
        "After 2 steps:",
        "  Up(1)",
        "  Up(1)",
        "Up is possible in TLA+ only. It changes:",
        "         before  after",
        "  count  2       3",
    )


def test_a_step_that_tla_lacks() -> None:
    machine = Counter(1)
    assert compare_graphs(machine, read_dump(machine, dump(0))).difference[:2] == (
        "In the initial state:",
        "Up(1) is possible in Python only. It changes:",
    )


def test_a_step_that_leads_elsewhere() -> None:
    machine = Counter(3)
    found = compare_graphs(machine, read_dump(machine, dump(3, reset_to=1)))
    assert found.difference == (
        "After 1 steps:",
        "  Up(1)",
        "Reset() leads elsewhere:",
        "         TLA+  Python",
        "  count  1     0",
    )


def test_what_lies_deeper_than_asked_for_is_not_compared() -> None:
    machine = Counter(2)
    shallow = compare_graphs(machine, read_dump(machine, dump(3), cut=True), depth=2)
    assert shallow.difference == ()
    assert shallow.states == 3
    assert compare_graphs(machine, read_dump(machine, dump(3), cut=True), depth=3).difference != ()


def test_another_beginning() -> None:
    machine = Counter(1)
    lines = [line.replace(",style = filled", "") for line in dump(1)]
    lines[2] = lines[2].replace('""]', '"",style = filled]')
    assert compare_graphs(machine, read_dump(machine, lines)).difference[0] == "The initial states differ."


def test_worlds_that_look_alike_must_go_on_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "RECHECKED", 1)
    machine = Counter(2, tired=True)
    assert compare_graphs(machine, read_dump(machine, dump(2))).difference[:4] == (
        "After 2 steps:",
        "  Up(1)",
        "  Reset()",
        "Up is possible in TLA+ only. It changes:",
    )


def test_history_must_not_decide() -> None:
    machine = Counter(1)
    lines = [*dump(1), '7 [label="/\\\\ count = 1\\n/\\\\ act = \\"y\\""]']
    with pytest.raises(ValueError, match="depends on history"):
        read_dump(machine, lines)
