"""How a case is declared: ``@case("REG-9", needs=...)`` over a small function that plays it."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from attrs import frozen

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.world import World
from hubauth.specification import Rule, rules

Play: TypeAlias = Callable[[World], None]

CASES: dict[str, "Case"] = {}
"""Every declared case by its id, in the order in which they run."""


@frozen
class Case:
    """One case: the rule it is about, what the hub under test must have for it, and what must hold before it."""

    id: str
    rule: Rule
    title: str
    play: Play
    needs: tuple[str, ...]
    depends_on: tuple[str, ...]
    informational: bool
    """Never counts as a violation: it only says which way the hub does it."""
    spoils: bool
    """A hub that does what the documents say gives a device of the profile to somebody else by it, for good."""

    @property
    def level(self) -> str:
        return "INFO" if self.informational else self.rule.level

    def in_dialect(self, dialect: Dialect) -> bool:
        return dialect.value in self.rule.dialects


def case(
    identity: str,
    *,
    needs: Iterable[str] = (),
    depends_on: Iterable[str] = (),
    informational: bool = False,
    spoils: bool = False,
) -> Callable[[Play], Play]:
    """Declare a case. Its id is the id of a rule, or that and a word: ``REG-9/twice``; its title the docstring."""

    def declare(play: Play) -> Play:
        assert identity not in CASES and play.__doc__, identity
        depends = tuple(depends_on)
        assert all(name in CASES for name in depends), f"{identity} depends on what is not declared before it"
        rule = rules()[identity.partition("/")[0]]
        CASES[identity] = Case(identity, rule, play.__doc__.strip(), play, tuple(needs), depends, informational, spoils)
        return play

    return declare
