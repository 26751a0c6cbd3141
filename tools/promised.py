"""The promises of ``tla/Promises.tla``: which of them a variant breaks, and in which models each says something.

Every tree model checks that ``HubAuth.tla`` refines ``Promises.tla``. A deliberate mistake that breaks an invariant
must break a promise, too: ``models.toml`` names it (``breaks``), or says why none forbids the mistake (``unpromised``).
About each promise TLC prints whether a model reaches a step that the promise could forbid.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

TLA = Path(__file__).resolve().parent.parent / "tla"
TREES = ("MCTrees", "MCPlainTrees")
"""Modules whose models refine ``Promises.tla``."""

REFINES = "Refines"
TEMPORAL = ("RevokeArrives", "Settles")
"""About whole behaviours: checked on the model of liveness."""

STATES = ("AdmittedAnywhere",)
"""About states; all others are about steps."""

STRUCTURE = ("Replacement", "Settles")
"""Parts of the machine that are promised under no name of their own."""

_KEEPS = re.compile(r"^Keeps(\w+) ==", re.MULTILINE)
_NOTE = re.compile(r'Note\(\d+, "(\w+)", "(\w+)", P!(\w+)\)')
_REACHED = re.compile(r'<<"reached", "(\w+)", "(\w+)">>')


def mapping() -> str:
    """The module that maps the tree to the promises."""
    return (TLA / "Refinement.tla").read_text()


def promises() -> list[str]:
    """Every promise, by its name."""
    return _KEEPS.findall(mapping())


def kinds_of_steps() -> list[tuple[str, str]]:
    """Each promise with a kind of steps that it says something about."""
    return [(promise, what) for promise, what, _ in _NOTE.findall(mapping())]


def definition(name: str) -> str:
    """The text of ``Promises.tla`` that says it, with the comment before it."""
    found = re.search(rf"(?:^\\\*.*\n)*^{name} ==.*\n(?:[ \t]+.*\n)*", (TLA / "Promises.tla").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"Promises.tla does not define {name}")
    return found[0].rstrip()


def read_reached(lines: Iterable[str]) -> frozenset[tuple[str, str]]:
    """What TLC says has been reached."""
    return frozenset((found[1], found[2]) for line in lines if (found := _REACHED.match(line)))


def unreached(reached: Mapping[str, frozenset[tuple[str, str]]]) -> list[str]:
    """Promises about which no model says anything."""
    everywhere = {each for model in reached.values() for each in model}
    missing = [step for step in kinds_of_steps() if step not in everywhere]
    noted = {promise for promise, _ in kinds_of_steps()}
    unnoted = [promise for promise in promises() if promise not in noted and promise not in STRUCTURE]
    return [f"{promise}: no model reaches {what}" for promise, what in missing] + [
        f"{promise}: nothing says when it is reached" for promise in unnoted
    ]


def reached_table(reached: Mapping[str, frozenset[tuple[str, str]]]) -> str:
    """For each promise and kind of steps, in which models TLC reached such a step."""
    where: dict[tuple[str, str], list[str]] = defaultdict(list)
    for model, each in reached.items():
        for step in each:
            where[step].append(model)
    rows = [f"{'promise':<30}  {'steps it could forbid':<20}  models"]
    for step in kinds_of_steps():
        names = where[step]
        rows.append(f"{step[0]:<30}  {step[1]:<20}  {len(names):>2}: {', '.join(names) or 'NONE'}")
    return "\n".join(rows)
