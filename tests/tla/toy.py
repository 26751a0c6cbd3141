"""A machine of a few states, to show what a comparison notices: one number that counts, and one that it hides."""

from collections.abc import Iterator

from model_tests.equivalence.constants import as_record
from model_tests.equivalence.machine import Event, SharedValues, State
from model_tests.equivalence.values import Value


class Counter:
    """Counts up to ``last``; a ``tired`` one does not begin again after a reset, though it looks as if it might."""

    def __init__(self, last: int, *, tired: bool = False) -> None:
        self.table = SharedValues()
        self.divided: frozenset[str] = frozenset()
        self.parts: tuple[str, ...] = ("count",)
        self.history: frozenset[str] = frozenset()
        self.without_history: dict[str, str] = {}
        self._last = last
        self._tired = tired

    def start(self) -> tuple[int, int]:
        return 0, 0

    def events(self, world: tuple[int, int]) -> Iterator[Event]:
        count, rounds = world
        if count < self._last and not (self._tired and rounds):
            yield "Up", 1
        if count:
            yield ("Reset",)

    def apply(self, world: tuple[int, int], event: Event) -> tuple[int, int]:
        count, rounds = world
        return (count + 1, rounds) if event[0] == "Up" else (0, rounds + 1)

    def state(self, world: tuple[int, int]) -> State:
        return (self.table.intern(world[0]),)

    def answers(self, world: tuple[int, int]) -> list[Value]:
        return [world[0]] if world[0] == self._last else []

    def expected_answers(self, act: Value) -> list[Value]:
        log = as_record(act)["log"]
        assert isinstance(log, tuple)
        return list(log)


def dump(last: int, reset_to: int = 0) -> list[str]:
    """What TLC writes for the same."""
    nodes = [
        f'{n} [label="/\\\\ count = {n}\\n/\\\\ act = \\"x\\""{",style = filled" if n == 0 else ""}]'
        for n in range(last + 1)
    ]
    ups = [f'{n} -> {n + 1} [label="Up",color="black",fontcolor="black"];' for n in range(last)]
    resets = [f'{n} -> {reset_to} [label="Reset",color="black",fontcolor="black"];' for n in range(1, last + 1)]
    return ["strict digraph DiskGraph {", *nodes, *ups, *resets, "}"]
