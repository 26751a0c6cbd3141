"""Values made native mean what their declarations mean. Run interpreted: what is written is Python, too."""

import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import attrs
import pytest
from immutables import Map

from compiling.build import STRUCTS, compiled_files
from compiling.natives import NotCompilable, rewrite, values_in
from tools.catalogue import ROOT

SOURCE = '''
"""Some values."""
from functools import cached_property
from typing import ClassVar
import msgspec
from attrs import define, evolve, field
from attrs import frozen as of_attrs
from immutables import Map
from hubauth.core.values import frozen

@frozen
class Point:
    """Where."""
    kind: ClassVar[str] = "point"
    x: int
    y: "int" = 2
    """Up."""
    _hidden: tuple[int, ...] = ()

    def moved(self, by: int) -> "Point":
        return evolve(self, x=self.x + by)

@frozen(eq=False)
class Same:
    x: int = 0

@of_attrs(slots=False)
class Settings:
    roles: Map[int, str] = field(factory=Map, converter=Map)
    note: str = field(default="", eq=False, repr=False)
    size: int = 0

    def __attrs_post_init__(self) -> None:
        if self.size == 0:
            object.__setattr__(self, "size", 7)

    @cached_property
    def names(self) -> frozenset[str]:
        COUNTED.append(1)
        return frozenset(self.roles.values())

@define
class Heap:
    items: list[int] = field(factory=list)

class Cut(msgspec.Struct, frozen=True, gc=False):
    at: int
    rules: tuple[str, ...] = ()

COUNTED: list[int] = []
'''


def made_of(source: str) -> ModuleType:
    module = ModuleType("natives_under_test")
    exec(source, module.__dict__)
    return module


PLAIN = made_of(SOURCE)
NATIVE = made_of(rewrite(SOURCE, frozenset({"Cut"})))


def test_every_value_is_written_out() -> None:
    assert values_in(SOURCE, frozenset({"Cut"})) == ["Point", "Same", "Settings", "Heap", "Cut"]
    assert not hasattr(NATIVE.Point, "__slots__") and not hasattr(NATIVE.Cut, "__struct_fields__")


SHOWN: list[Callable[[Any], object]] = [
    lambda m: repr(m.Point(1)),
    lambda m: repr(m.Point(1, hidden=(2,))),
    lambda m: repr(m.Settings({1: "a"}, note="n")),
    lambda m: repr(m.Cut(1)),
    lambda m: m.Point(1) == m.Point(x=1, y=2) and hash(m.Point(1)) == hash(m.Point(1, 2)),
    lambda m: m.Point(1) != m.Point(1, 3) and m.Point(1) != m.Cut(1) and m.Point(1) != 1,
    lambda m: m.Same() == m.Same(),
    lambda m: m.Settings(note="a") == m.Settings(note="b"),
    lambda m: m.Settings().size,
    lambda m: m.Settings([(1, "a")]).roles == Map({1: "a"}),
    lambda m: m.Settings({1: "a"}).names,
    lambda m: m.Heap() == m.Heap([]) and m.Heap().items is not m.Heap().items,
    lambda m: m.Point(1).moved(2) == m.Point(3),
    lambda m: m.Point.kind,
    lambda m: m.Point.__doc__,
    lambda m: m.Point.__match_args__,
    lambda m: attrs.astuple(m.Point(1)),
    lambda m: [(each.name, each.default) for each in attrs.fields(m.Point)],
    lambda m: [(each.name, each.default) for each in attrs.fields(m.Settings)],
    lambda m: attrs.evolve(m.Point(1), hidden=(4,)) == m.Point(1, 2, (4,)),
]


@pytest.mark.parametrize("shown", SHOWN)
def test_it_means_the_same(shown: Callable[[Any], object]) -> None:
    assert shown(NATIVE) == shown(PLAIN)


def test_what_is_found_once_is_kept() -> None:
    settings = NATIVE.Settings({1: "a"})
    NATIVE.COUNTED.clear()
    assert settings.names is settings.names and NATIVE.COUNTED == [1]


def test_a_value_is_pickled_by_what_it_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "natives_under_test", NATIVE)
    NATIVE.Point.__module__ = "natives_under_test"
    assert pickle.loads(pickle.dumps(NATIVE.Point(1, hidden=(3,)))) == NATIVE.Point(1, hidden=(3,))


def test_a_class_that_is_not_understood_stays_as_it_is() -> None:
    source = "from attrs import frozen\n@frozen(order=True)\nclass A:\n    x: int = 0\n"
    assert values_in(source) == [] and "@frozen(order=True)" in rewrite(source)


def test_options_that_mypyc_would_drop_are_refused() -> None:
    with pytest.raises(NotCompilable, match="class Row"):
        rewrite("import msgspec\nclass Row(msgspec.Struct, omit_defaults=True):\n    x: int = 0\n")


@pytest.mark.parametrize("file", compiled_files())
def test_every_value_of_a_compiled_module_becomes_native(file: str) -> None:
    source = (ROOT / "reference" / "hubauth" / file).read_text(encoding="utf-8")
    declared = source.count("\n@frozen") + source.count("\n@define") + source.count("(msgspec.Struct, frozen=True")
    structs = sum(f"class {name}(msgspec" in source for name in STRUCTS)
    assert len(values_in(source, STRUCTS)) >= source.count("\n@frozen") + source.count("\n@define") + structs
    assert declared == 0 or rewrite(source, STRUCTS).count("@_final") == len(values_in(source, STRUCTS))
