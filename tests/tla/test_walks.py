"""Random behaviours: TLC's as they are read and replayed, the core's as they are written down for TLC."""

from random import Random

from model_tests.equivalence.walks import random_walk, read_behaviour, replay, walk_module
from tests.tla.toy import Counter

TEXT = """---------------- MODULE traces/walk_0_0 -----------------
STATE_1 ==\x20
/\\ count = 0
/\\ act = [event |-> <<"Init">>, log |-> <<>>]


STATE_2 ==\x20
/\\ count =
     1
/\\ act = [event |-> <<"Up", 1, [t |-> "a frame"]>>, log |-> <<1>>]

=================================================
"""


def test_reading_a_simulated_behaviour() -> None:
    machine = Counter(1)
    behaviour = read_behaviour(machine, TEXT)
    assert [moment.event for moment in behaviour] == [("Init",), ("Up", 1)]
    assert [moment.state for moment in behaviour] == [(0,), (1,)]
    assert replay(machine, behaviour) == ()


def test_replaying_notices_another_state() -> None:
    machine = Counter(1)
    other = read_behaviour(machine, TEXT.replace("     1\n", "     5\n"))
    assert replay(machine, other)[1] == "Up(1) leads elsewhere:"


def test_replaying_notices_an_impossible_event() -> None:
    machine = Counter(0)
    assert replay(machine, read_behaviour(machine, TEXT))[1] == "Up(1) is possible in TLA+ only. It changes:"


def test_replaying_notices_another_answer() -> None:
    machine = Counter(1)
    silent = read_behaviour(machine, TEXT.replace("log |-> <<1>>", "log |-> <<>>"))
    assert replay(machine, silent)[1:] == ("Up(1) is answered otherwise:", "  Python  1")


def test_replaying_notices_another_beginning() -> None:
    machine = Counter(1)
    assert replay(machine, read_behaviour(machine, TEXT)[1:])[0] == "The initial states differ."


def test_a_walk_is_reproducible_and_ends_where_nothing_can_happen() -> None:
    machine = Counter(3)
    walk = random_walk(machine, Random(1), 20)
    assert walk == random_walk(machine, Random(1), 20)
    assert len(walk.events) == 20 and len(walk.states) == 21
    assert random_walk(Counter(0), Random(1), 20).events == ()


def test_walks_as_a_module() -> None:
    machine = Counter(1)
    machine.without_history = {"count": "Plain"}
    module = walk_module(machine, "MCToy", [random_walk(machine, Random(1), 2)])
    assert "EXTENDS MCToy" in module
    assert "Values == <<\n0,\n1>>" in module
    assert "Steps == <<\n<<<<1>>, <<2>>, <<1>>>>>>" in module
    assert "    /\\ Plain(count) = Values[s[1]]" in module
