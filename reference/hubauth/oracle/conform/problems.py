"""How a case ends before its end."""

from collections.abc import Sequence

from hubauth.oracle.conform.compare import Difference


class Violated(Exception):
    """The hub under test did something else than the rule says."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        super().__init__("; ".join(f"{one.what}: expected {one.expected}, seen {one.seen}" for one in differences))
        self.differences = tuple(differences)


class Deviated(Exception):
    """On the way to what the case is about, the hub under test broke another rule, and the case cannot go on."""

    def __init__(self, rule: str) -> None:
        super().__init__(f"{rule} is broken on the way")


class TooSlow(Exception):
    """The exchange took so long that nothing can be said about it."""
