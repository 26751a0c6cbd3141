"""What the two machines, over hubauth.lab and over TLA+, have in common: how a state is cut into parts."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from model_tests.equivalence.values import Value, differences, parse, split_record

Event: TypeAlias = tuple[str | int | bool | frozenset[int], ...]
"""The name of an action and its parameters, as ``act.event`` has them, without the frame that arrives."""

State: TypeAlias = tuple[Value, ...]
"""The parts of a state in the order of ``Machine.parts``, each of them interned."""

World = TypeVar("World")


class SharedValues:
    """Equal values become the same object, so that comparing states costs no walk through them."""

    def __init__(self) -> None:
        self._values: dict[Value, Value] = {}
        self._texts: dict[tuple[str, str], Value] = {}

    def intern(self, value: Value) -> Value:
        return self._values.setdefault(value, value)

    def read(self, name: str, text: str, history: frozenset[str]) -> Value:
        """The value of a text that TLC wrote; ``name`` tells apart texts that are read differently."""
        found = self._texts.get((name, text))
        if found is None:
            found = self.intern(parse(text, history))
            self._texts[name, text] = found
        return found


class Machine(Protocol[World]):
    """A model of TLA+ in which the real core takes every step."""

    table: SharedValues
    divided: frozenset[str]
    """Variables that are functions from hubs: every hub's value is a part of its own."""
    parts: tuple[str, ...]
    """``hub[A]`` for a part of a divided variable, else the variable. Variables that are in none are history."""
    history: frozenset[str]
    """Fields of records that are history, too."""
    without_history: dict[str, str]
    """Variables that have such fields, and the operator that takes them out of a part."""

    def start(self) -> World: ...

    def events(self, world: World) -> Iterator[Event]:
        """Everything that may happen next."""
        ...

    def apply(self, world: World, event: Event) -> World: ...

    def state(self, world: World) -> State:
        """What the world looks like to TLA+."""
        ...

    def answers(self, world: World) -> list[Value]:
        """What devices have received in the last event."""
        ...

    def expected_answers(self, act: Value) -> list[Value]:
        """What they receive according to ``act.log``."""
        ...


def read_state(machine: Machine[World], variables: dict[str, str]) -> State:
    """A state out of the text of its variables."""
    texts: dict[str, str] = {}
    for name, text in variables.items():
        if name in machine.divided:
            texts.update((f"{name}[{key}]", value) for key, value in split_record(text))
        else:
            texts[name] = text
    return tuple(machine.table.read(part.partition("[")[0], texts[part], machine.history) for part in machine.parts)


def compare(parts: Sequence[str], left: State, right: State) -> list[tuple[str, str, str]]:
    """Every difference between two states: where, and what each has there."""
    return [
        difference
        for part, one, other in zip(parts, left, right, strict=True)
        for difference in differences(part, one, other)
    ]
