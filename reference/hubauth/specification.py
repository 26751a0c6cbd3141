"""The specification as data: the catalogue of rules, wherever hubauth is installed.

In a checkout ``spec/`` lies beside the package; a wheel carries what is needed of it inside.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, convert

_HERE = Path(__file__).resolve().parent
SPEC = next((path for path in (_HERE / "spec", _HERE.parents[1] / "spec") if path.is_dir()), _HERE / "spec")
"""Where the files of the specification are."""

DECISION = "decision"
"""The source of a rule that no document states."""

Level: TypeAlias = Literal["MUST", "SHOULD", "MAY"]
DialectName: TypeAlias = Literal["auth", "login", "flat"]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One normative sentence."""

    id: Text
    level: Level
    text: Text
    dialects: Annotated[tuple[DialectName, ...], Meta(min_length=1)]
    source: Annotated[tuple[str, ...], Meta(min_length=1)]
    decision: str = ""
    """The heading in ``spec/decisions.md``, if not all of the rule is in the documents."""

    @property
    def is_documented(self) -> bool:
        """Whether the documents alone say all of it."""
        return not self.decision

    @property
    def basis(self) -> str:
        """Where the rule comes from, in words."""
        lines = " ".join(source for source in self.source if source != DECISION)
        decided = f"decision: {self.decision}" if self.decision else ""
        return "; ".join(part for part in (f"documents {lines}" if lines else "", decided) if part)


Basis: TypeAlias = Literal["all", "documents"]
"""By which rules a hub is judged: by all, or by those that the documents alone state."""
BASES: tuple[Basis, ...] = ("all", "documents")


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """``spec/rules.toml``."""

    rule: tuple[Rule, ...]
    dropped: tuple[Text, ...] = ()
    """Numbers that meant something else once."""


def load_rules(path: Path = SPEC / "rules.toml") -> Rules:
    """Read a catalogue of rules."""
    return convert(tomllib.loads(path.read_text(encoding="utf-8")), Rules)


def counts_under(basis: Basis, rule: str) -> bool:
    """Whether a difference under a rule spoils a verdict; what is no rule of the catalogue always does."""
    known = rules().get(rule)
    return basis == "all" or known is None or known.is_documented


def basis_of(rule: str) -> str:
    """Where a rule comes from, in words; empty for what is no rule of the catalogue."""
    known = rules().get(rule)
    return known.basis if known is not None else ""


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule by its id, in catalogue order."""
    return MappingProxyType({rule.id: rule for rule in load_rules().rule})
