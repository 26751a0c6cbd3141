"""The catalogues of ``spec/``, typed: the rules, and what the source documents say."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, convert

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "spec"

DECISION = "decision"
"""The source of a rule that no document states."""

Level: TypeAlias = Literal["MUST", "SHOULD", "MAY"]
Dialect: TypeAlias = Literal["auth", "login", "flat"]
Kind: TypeAlias = Literal["heading", "statement", "example"]
Text: TypeAlias = Annotated[str, Meta(min_length=1)]

_SPAN = re.compile(r"(?P<document>[0-9]{3}):(?P<first>[0-9]+)(?:-(?P<last>[0-9]+))?")


class Span(Struct, frozen=True):
    """A run of lines of one document, both ends included."""

    document: str
    first: int
    last: int

    def overlaps(self, other: "Span") -> bool:
        return self.document == other.document and self.first <= other.last and other.first <= self.last


def parse_span(text: str) -> Span:
    """Read ``document:line`` or ``document:first-last``; anything else is a ValueError."""
    match = _SPAN.fullmatch(text)
    if match is None:
        raise ValueError(f"not document:line or document:first-last: {text!r}")
    first = int(match["first"])
    last = int(match["last"] or first)
    if not 1 <= first <= last:
        raise ValueError(f"lines out of order: {text!r}")
    return Span(match["document"], first, last)


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """One source document and the dialect it describes."""

    id: Text
    title: Text
    dialect: Dialect
    lines: int


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """A few lines of a document that say one thing."""

    id: Text
    lines: tuple[int, int]
    section: Text
    kind: Kind
    text: Text

    @property
    def document(self) -> str:
        return self.id.partition(":")[0]

    @property
    def span(self) -> Span:
        return Span(self.document, *self.lines)

    @property
    def needs_rule(self) -> bool:
        return self.kind != "heading"


class Seeds(Struct, frozen=True, forbid_unknown_fields=True):
    """``spec/seeds.toml``."""

    document: tuple[Document, ...]
    item: tuple[Item, ...]

    def items_of(self, document: str) -> tuple[Item, ...]:
        return tuple(item for item in self.item if item.document == document)


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One normative sentence."""

    id: Text
    level: Level
    text: Text
    dialects: Annotated[tuple[Dialect, ...], Meta(min_length=1)]
    source: Annotated[tuple[str, ...], Meta(min_length=1)]

    @property
    def spans(self) -> tuple[Span, ...]:
        """The lines this rule answers for, without its decisions."""
        return tuple(parse_span(source) for source in self.source if source != DECISION)

    def cites(self, item: Item) -> bool:
        return any(span.overlaps(item.span) for span in self.spans)


class Rules(Struct, frozen=True, forbid_unknown_fields=True):
    """``spec/rules.toml``."""

    rule: tuple[Rule, ...]

    def citing(self, item: Item) -> tuple[Rule, ...]:
        """The rules that answer for a line of the item, in catalogue order."""
        return tuple(rule for rule in self.rule if rule.cites(item))


def load_seeds(path: Path = SPEC / "seeds.toml") -> Seeds:
    return convert(tomllib.loads(path.read_text(encoding="utf-8")), Seeds)


def load_rules(path: Path = SPEC / "rules.toml") -> Rules:
    return convert(tomllib.loads(path.read_text(encoding="utf-8")), Rules)
