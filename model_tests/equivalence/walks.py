"""Behaviours of models too large to compare whole: TLC's are replayed by the core, and the core's checked by TLC."""

import re
from collections.abc import Iterable, Sequence
from random import Random

from attrs import frozen

from model_tests.equivalence.machine import Event, Machine, State, World, read_state
from model_tests.equivalence.report import CHANGE, side_by_side, told, told_path
from model_tests.equivalence.values import Function, Value, parse, show

# TLC's behaviours


@frozen
class Moment:
    """A state of a simulated behaviour, and the event that led to it."""

    state: State
    event: Event
    act: Value


def read_behaviour(machine: Machine[World], text: str) -> list[Moment]:
    """A file that ``-simulate file=`` wrote."""
    return [_moment(machine, block) for block in re.split(r"^STATE_\d+ == *\n", text, flags=re.MULTILINE)[1:]]


def _moment(machine: Machine[World], block: str) -> Moment:
    conjuncts = re.split(r"^/\\ ", block.partition("\n\n")[0], flags=re.MULTILINE)[1:]
    plain = (re.sub(r"\s+", "", conjunct).partition("=") for conjunct in conjuncts)
    variables = {name: text for name, _, text in plain}
    act = parse(variables["act"], machine.history)
    assert isinstance(act, Function)
    event = dict(act)["event"]
    assert isinstance(event, tuple)
    known = tuple(item for item in event if isinstance(item, str | int | frozenset) and not isinstance(item, Function))
    return Moment(read_state(machine, variables), known, act)  # type: ignore[arg-type]


def replay(machine: Machine[World], behaviour: Sequence[Moment]) -> tuple[str, ...]:
    """Let the core take the same steps; where it first does something else, or nothing if it never does."""
    world = machine.start()
    if machine.state(world) != behaviour[0].state:
        return ("The initial states differ.", *side_by_side(machine.parts, behaviour[0].state, machine.state(world)))
    for number, moment in enumerate(behaviour[1:], 1):
        path = [earlier.event for earlier in behaviour[1:number]]
        if moment.event not in set(machine.events(world)):
            change = side_by_side(machine.parts, machine.state(world), moment.state, CHANGE)
            return (*told_path(path), f"{told(moment.event)} is possible in TLA+ only. It changes:", *change)
        world = machine.apply(world, moment.event)
        if machine.state(world) != moment.state:
            difference = side_by_side(machine.parts, moment.state, machine.state(world))
            return (*told_path(path), f"{told(moment.event)} leads elsewhere:", *difference)
        expected, answers = machine.expected_answers(moment.act), machine.answers(world)
        if sorted(map(show, expected)) != sorted(map(show, answers)):
            said = [f"  TLA+    {show(answer)}" for answer in expected] + [
                f"  Python  {show(answer)}" for answer in answers
            ]
            return (*told_path(path), f"{told(moment.event)} is answered otherwise:", *said)
    return ()


# The core's behaviours


@frozen
class Walk:
    """A random behaviour of the core: the states, and the events between them."""

    states: tuple[State, ...]
    events: tuple[Event, ...]


def random_walk(machine: Machine[World], random: Random, steps: int) -> Walk:
    """At most so many steps, fewer if nothing more can happen."""
    world = machine.start()
    states, events = [machine.state(world)], []
    for _ in range(steps):
        possible = list(machine.events(world))
        if not possible:
            break
        event = random.choice(possible)
        world = machine.apply(world, event)
        states.append(machine.state(world))
        events.append(event)
    return Walk(tuple(states), tuple(events))


def walk_module(machine: Machine[World], extends: str, walks: Sequence[Walk], *, free: bool = False) -> str:
    """A specification whose behaviours are these walks, as far as they are behaviours of the model.

    It has a deadlock where a walk takes a step that the model does not have. With ``free`` the last step of each walk
    may lead anywhere.
    """
    numbers: dict[Value, int] = {}
    rows = [
        [tuple(numbers.setdefault(part, len(numbers) + 1) for part in state) for state in walk.states] for walk in walks
    ]
    looks = "\n".join(
        f"    /\\ {_expression(machine, part)} = Values[s[{number}]]" for number, part in enumerate(machine.parts, 1)
    )
    there = "(Last \\/ Here)'" if free else "Here'"
    return "\n".join(
        [
            f"---- MODULE Walks ----\nEXTENDS {extends}\nVARIABLES walk, at\n",
            f"Values == <<\n{_lines(map(show, numbers))}>>\n",
            f"Steps == <<\n{_lines(show(tuple(row)) for row in rows)}>>\n",
            f"Looks(s) ==\n{looks}\n",
            "Last == at = Len(Steps[walk])",
            "Here == Looks(Steps[walk][at])",
            "WalkInit == Init /\\ walk \\in 1 .. Len(Steps) /\\ at = 1 /\\ Here",
            "WalkNext ==",
            f"    \\/ ~Last /\\ at' = at + 1 /\\ walk' = walk /\\ Next /\\ {there}",
            "    \\/ Last /\\ UNCHANGED <<vars, walk, at>>",
            "====\n",
        ]
    )


def _lines(texts: Iterable[str]) -> str:
    return ",\n".join(texts)


def _expression(machine: Machine[World], part: str) -> str:
    """How the model names a part, without its history."""
    variable, _, key = part.rstrip("]").partition("[")
    value = f'{variable}["{key}"]' if key else variable
    return f"{machine.without_history[variable]}({value})" if variable in machine.without_history else value
