"""Which rules the machines exercised, and which they must.

A random test that never reaches a rule says nothing about it, so a run that misses one is red.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

FAMILIES = ("FRAME", "TRUST", "AUTHY", "REG", "AUTH", "BIND", "OFF", "REV", "EXT", "PERM", "LINK", "TIME")
"""The rules that ``step`` decides. The other families belong to the codec and the configuration."""

UNREACHABLE: dict[str, str] = {"EXT-15": "how the extension is written is up to the codec"}
"""Rules that none of these machines can reach, and why."""

_CATALOGUE = Path(__file__).parent.parent / "spec" / "rules.toml"


class Tally:
    """What happened in one machine."""

    def __init__(self) -> None:
        self.rules: Counter[str] = Counter()
        self.examples = 0
        self.steps = 0

    def add(self, rules: Iterable[str]) -> None:
        """One step of a hub, and the rules that decided it."""
        self.steps += 1
        self.rules.update(rules)


def required_rules() -> list[str]:
    """Every rule that must have fired at least once when all machines have run."""
    with _CATALOGUE.open("rb") as file:
        ids = [rule["id"] for rule in tomllib.load(file)["rule"]]
    return [rule for rule in ids if rule.split("-")[0] in FAMILIES and rule not in UNREACHABLE]
