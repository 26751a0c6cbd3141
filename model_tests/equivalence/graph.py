"""The reachable graph of the core, compared with TLC's dump of the same model, state by state and step by step."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic

from attrs import frozen

from model_tests.equivalence.machine import Event, Machine, State, World, read_state
from model_tests.equivalence.report import explain, side_by_side

RECHECKED = 20
"""One in so many of the other ways to a state is followed, too."""


@frozen
class Graph:
    """What TLC found: states, and the actions that lead from one to another."""

    initial: frozenset[State]
    steps: dict[State, set[tuple[str, State]]]


@frozen
class GraphComparison:
    """How much was compared, and the first difference; empty if there is none."""

    states: int
    steps: int
    actions: dict[str, int]
    """How many steps each action has."""
    difference: tuple[str, ...] = ()


# TLC's dump

_EDGE = re.compile(r'(-?\d+) -> (-?\d+) \[label="(\w+)"')
_NODE = re.compile(r'(-?\d+) \[label="(.*)"(,style = filled)?\]')


def read_dump(machine: Machine[World], lines: Iterable[str], *, cut: bool = False) -> Graph:
    """The graph that ``-dump dot,actionlabels`` wrote. States that differ in their history only are one.

    ``cut``: TLC stopped at some depth, so that steps may be missing from any but the first such state.
    """
    states: dict[str, State] = {}
    initial: set[State] = set()
    edges: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        if edge := _EDGE.match(line):
            edges.setdefault(edge[1], []).append((edge[3], edge[2]))
        elif node := _NODE.match(line):
            states[node[1]] = state = read_state(machine, dict(_variables(node[2])))
            if node[3]:
                initial.add(state)
    steps: dict[State, set[tuple[str, State]]] = {}
    for node_id, state in states.items():
        found = {(action, states[target]) for action, target in edges.pop(node_id, ())}
        if cut:
            steps.setdefault(state, set()).update(found)
        elif steps.setdefault(state, found) != found:
            raise ValueError("TLC's graph cannot be used: what happens next depends on history")
    return Graph(frozenset(initial), steps)


def _variables(label: str) -> Iterator[tuple[str, str]]:
    plain = label.replace("\\n", "").replace(" ", "").replace('\\"', '"')
    for conjunct in plain.split("/\\\\")[1:]:
        name, _, value = conjunct.partition("=")
        yield name, value


# The comparison


@frozen
class _Reached(Generic[World]):
    """How the core came to a state: in how many steps, by which event, from which state."""

    world: World
    depth: int = 0
    event: Event | None = None
    before: State | None = None


def compare_graphs(machine: Machine[World], graph: Graph, depth: int | None = None) -> GraphComparison:
    """Walk both graphs at once, breadth first, and stop where they part, or after so many steps.

    Both begin in the same state and agree about every step from every state that is reached; so what is reached is
    all of both, and the first difference is one that no shorter behaviour shows. Several worlds look like one state,
    and only the first is followed everywhere; a sample of the others must go on in the same way.
    """
    first = machine.start()
    begin = machine.state(first)
    if graph.initial != {begin}:
        lines = [line for state in graph.initial for line in side_by_side(machine.parts, state, begin)]
        return GraphComparison(0, 0, {}, ("The initial states differ.", *lines))
    reached: dict[State, _Reached[World]] = {begin: _Reached(first)}
    queue = deque([begin])
    others = steps = 0
    actions: dict[str, int] = {}
    while queue and (depth is None or reached[queue[0]].depth < depth):
        state = queue.popleft()
        ours: dict[tuple[str, State], Event] = {}
        for event, after, target in _steps(machine, reached[state].world):
            ours.setdefault((str(event[0]), target), event)
            if target not in reached:
                reached[target] = _Reached(after, reached[state].depth + 1, event, state)
                queue.append(target)
            elif target in graph.steps and depth is None:
                others += 1
                if others % RECHECKED == 0 and (
                    difference := _differ(machine, graph, after, [*_path(reached, state), event])
                ):
                    return GraphComparison(len(reached), steps, actions, difference)
        theirs = graph.steps[state]
        if ours.keys() != theirs:
            difference = explain(machine.parts, state, _path(reached, state), ours, theirs)
            return GraphComparison(len(reached), steps, actions, difference)
        steps += len(theirs)
        for name, _ in theirs:
            actions[name] = actions.get(name, 0) + 1
    assert queue or reached.keys() == graph.steps.keys()
    return GraphComparison(len(reached), steps, actions)


def _steps(machine: Machine[World], world: World) -> Iterator[tuple[Event, World, State]]:
    for event in machine.events(world):
        after = machine.apply(world, event)
        yield event, after, machine.state(after)


def _differ(machine: Machine[World], graph: Graph, world: World, path: list[Event]) -> tuple[str, ...]:
    """Why this world does not go on as its state does; empty if it does."""
    ours = {(str(event[0]), target): event for event, _, target in _steps(machine, world)}
    state = machine.state(world)
    theirs = graph.steps[state]
    return () if ours.keys() == theirs else explain(machine.parts, state, path, ours, theirs)


def _path(reached: dict[State, _Reached[World]], state: State) -> list[Event]:
    path: list[Event] = []
    at: State | None = state
    while at is not None:
        step = reached[at]
        if step.event is not None:
            path.append(step.event)
        at = step.before
    return path[::-1]
