"""What the source documents say (``spec/seeds.toml``), typed, and which rules answer for it."""

import re
import tomllib
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct, convert

from hubauth.specification import DECISION, SPEC, DialectName, Rule, Rules, Text

ROOT = Path(__file__).resolve().parent.parent

Kind: TypeAlias = Literal["heading", "statement", "example"]

Verdict: TypeAlias = Literal["honoured", "honoured under a setting", "decided otherwise"]

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
    dialect: DialectName
    lines: int


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """A few lines of a document that say one thing."""

    id: Text
    lines: tuple[int, int]
    section: Text
    kind: Kind
    text: Text
    setting: str = ""
    """The configuration under which a hub does this, where it does not by default."""
    otherwise: str = ""
    """The heading of ``spec/decisions.md`` that says why a hub does something else."""

    @property
    def document(self) -> str:
        return self.id.partition(":")[0]

    @property
    def span(self) -> Span:
        return Span(self.document, *self.lines)

    @property
    def needs_rule(self) -> bool:
        return self.kind != "heading"

    @property
    def verdict(self) -> Verdict:
        """What a hub does about it."""
        if self.otherwise:
            return "decided otherwise"
        return "honoured under a setting" if self.setting else "honoured"


class Seeds(Struct, frozen=True, forbid_unknown_fields=True):
    """``spec/seeds.toml``."""

    document: tuple[Document, ...]
    item: tuple[Item, ...]

    def items_of(self, document: str) -> tuple[Item, ...]:
        return tuple(item for item in self.item if item.document == document)


def spans_of(rule: Rule) -> tuple[Span, ...]:
    """The lines a rule answers for, without its decisions."""
    return tuple(parse_span(source) for source in rule.source if source != DECISION)


def citing(rules: Rules, item: Item) -> tuple[Rule, ...]:
    """The rules that answer for a line of the item, in catalogue order."""
    return tuple(rule for rule in rules.rule if any(span.overlaps(item.span) for span in spans_of(rule)))


def load_seeds(path: Path = SPEC / "seeds.toml") -> Seeds:
    return convert(tomllib.loads(path.read_text(encoding="utf-8")), Seeds)
