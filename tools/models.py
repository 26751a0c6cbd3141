"""The models of ``tla/models.toml`` as TLC reads them: ``python -m tools.models`` writes ``build/tla/*.cfg``.

A model says what differs from its tree and from the defaults of its family. TLC checks all that its module claims, or
the one thing that a variant violates.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from attrs import field, frozen

from tools import promised

HERE = Path(__file__).resolve().parent.parent
TLA = HERE / "tla"
WRITTEN = HERE / "build" / "tla"
CATALOGUE = TLA / "models.toml"

KINDS = ("ci", "long", "bug", "limit", "sim")
REFUTED = ("bug", "limit")
"""What must violate the invariant it names: a deliberate mistake; the protocol as it is, where it promises less."""

EQUALITIES = ("", "graph", "walks")
HOLDS = ""
"""The expected violation of a model that is right."""

Value: TypeAlias = bool | int | str | list[str] | list[int] | list[bool]


@frozen
class Family:
    """What models of the same modules have in common."""

    modules: tuple[str, ...]
    constants: Mapping[str, Value]
    operators: tuple[str, ...]
    """Constants that are given as the name of a definition in the module."""


@frozen
class Catalogue:
    """What ``models.toml`` says."""

    states: tuple[str, ...]
    """Invariants: said of each state."""
    steps: tuple[str, ...]
    """Said of each step."""
    behaviours: tuple[str, ...]
    """Said of whole behaviours, with fairness."""
    models: tuple["Model", ...]

    @property
    def invariants(self) -> tuple[str, ...]:
        return (*self.states, *self.steps, *self.behaviours)


@frozen
class Configuration:
    """What TLC is told beside the module."""

    constants: Mapping[str, str]
    """How each is written: ``= 1``, or ``<- TwoParents``."""
    claims: tuple[str, ...]
    states: frozenset[str]
    """Which claims are about states; the others are about steps or whole behaviours."""
    symmetry: str = ""

    @property
    def of_behaviours(self) -> bool:
        """Whether whole behaviours are claimed, which TLC checks with fairness and without a view."""
        return any(claim in _of_behaviours() for claim in self.claims)

    def constants_text(self, *, recording: bool) -> str:
        """The constants; ``Recording`` says whether the last event is kept, which graphs and fairness do not bear."""
        known = (
            self.constants if "Recording" not in self.constants else {**self.constants, "Recording": _told(recording)}
        )
        return "".join(["CONSTANTS\n", *(f"    {name} {value}\n" for name, value in known.items())])

    def claims_text(self) -> str:
        """What is checked."""
        states = [claim for claim in self.claims if claim in self.states]
        others = [claim for claim in self.claims if claim not in self.states]
        parts = (("INVARIANTS", states), ("PROPERTIES", others))
        return "".join(f"{what}\n    {' '.join(names)}\n" for what, names in parts if names)

    @property
    def text(self) -> str:
        """The .cfg file. Which steps the promises speak about (`Reaching`) is printed where they are checked."""
        how = "SPECIFICATION FairSpec\n" if self.of_behaviours else "SPECIFICATION Spec\nVIEW View\n"
        how += f"SYMMETRY {self.symmetry}\n" if self.symmetry else ""
        how += "ACTION_CONSTRAINT Reaching\n" if promised.REFINES in self.claims else ""
        return self.constants_text(recording=not self.of_behaviours) + how + self.claims_text()


@frozen
class Model:
    """One run of TLC."""

    name: str
    module: str
    kind: str
    note: str
    violates: str = HOLDS
    equality: str = ""
    """How the Python core is compared with it (tools/equivalence.py): its whole ``graph``, or by random ``walks``."""
    states: int = 0
    """Distinct states when last measured: for orientation, not checked."""
    seconds: int = 0
    """Time when last measured, two workers."""
    breaks: str = ""
    """The promise of Promises.tla that a bug variant breaks."""
    unpromised: str = ""
    """Why it breaks none."""
    asks_promise: bool = False
    """Whether this run of a variant shows the promise that it breaks, and not the invariant."""
    tree: str = ""
    constants: Mapping[str, Value] = field(factory=dict)
    """Those that differ from the tree's and the family's."""
    values: Sequence[str] = ()
    """Constants that stand for nothing but themselves."""
    redefined: Mapping[str, str] = field(factory=dict)
    """Definitions of the module, and those that replace them."""
    symmetry: str = ""
    claims: Sequence[str] = ()
    """What it checks instead of what its module claims."""
    also: Sequence[str] = ()
    unclaimed: Sequence[str] = ()
    """What it checks beside that, and what of it it does not."""

    @property
    def checked(self) -> tuple[str, ...]:
        """What this run checks. A variant checks the one thing that it violates."""
        if self.violates:
            return (self.violates,)
        if self.claims:
            return tuple(self.claims)
        claimed = {*claims_of(self.module), *self.also} - set(self.unclaimed)
        refines = (promised.REFINES,) if self.kind == "ci" and self.module in promised.TREES else ()
        return (*(name for name in read_catalogue().invariants if name in claimed), *refines)

    @property
    def configuration(self) -> Configuration:
        known = {**defaults(self.module, self.tree), **self.constants}
        if self.kind == "bug":
            known["Bug"] = self.constants.get("Bug", self.name.removeprefix("Bug"))
        operators = family_of(self.module).operators
        written = {
            name: f"<- {value}" if name in operators else _told(value, self.values) for name, value in known.items()
        }
        written |= {name: f"<- {other}" for name, other in self.redefined.items()}
        written |= {name: f"= {name}" for name in self.values}
        states = {*read_catalogue().states, *(f"Keeps{promise}" for promise in promised.STATES)}
        return Configuration(written, self.checked, frozenset(states), self.symmetry)


def _told(value: Value, values: Sequence[str] = ()) -> str:
    return f"= {_written(value, values)}"


def _written(value: Value, values: Sequence[str]) -> str:
    match value:
        case bool():
            return str(value).upper()
        case list():
            return f"{{{', '.join(_written(each, values) for each in value)}}}"
        case str() if value not in values:
            return f'"{value}"'
        case _:
            return str(value)


# The file


@cache
def _raw() -> dict[str, Any]:
    return tomllib.loads(CATALOGUE.read_text())


@cache
def read_catalogue() -> Catalogue:
    """Every run and every invariant."""
    raw = _raw()
    said = raw["invariants"]
    models = tuple(Model(**entry) for entry in raw["model"])
    return Catalogue(tuple(said["states"]), tuple(said["steps"]), tuple(said["behaviours"]), models)


@cache
def family_of(module: str) -> Family:
    """The family that a module's models belong to."""
    for entry in _raw()["family"]:
        if module in entry["modules"]:
            return Family(**entry)
    raise ValueError(f"models.toml has no family of {module}")


def claims_of(module: str) -> list[str]:
    """What the models of a module check unless they say otherwise."""
    claims: list[str] = _raw()["claims"][module]
    return claims


def defaults(module: str, tree: str) -> dict[str, Value]:
    """What the constants of a model are unless it says otherwise."""
    trees: dict[str, dict[str, Value]] = _raw()["trees"]
    return {**family_of(module).constants, **(trees[tree] if tree else {})}


def misfits(model: Model) -> list[str]:
    """What a model says in vain: a constant that its family does not have, or what is so if it says nothing."""
    if model.tree and model.tree not in _raw()["trees"]:
        return [f"{model.name} has the unknown tree {model.tree}"]
    known, said = defaults(model.module, model.tree), model.constants
    claimed = claims_of(model.module)
    found = [f"{model.name}: {model.module} has no constant {name}" for name in said if name not in known]
    found += [
        f"{model.name}: {name} is so anyway" for name, value in model.constants.items() if known.get(name) == value
    ]
    found += [f"{model.name}: {name} is claimed anyway" for name in model.also if name in claimed]
    found += [f"{model.name}: {name} would not be claimed" for name in model.unclaimed if name not in claimed]
    return found


def _of_behaviours() -> set[str]:
    return {*read_catalogue().behaviours, *(f"Keeps{promise}" for promise in promised.TEMPORAL)}


def write(folder: Path) -> None:
    """Write every model as a .cfg file, for TLC started by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    for model in read_catalogue().models:
        (folder / f"{model.name}.cfg").write_text(f"\\* {model.note}\n{model.configuration.text}")


if __name__ == "__main__":
    write(WRITTEN)
