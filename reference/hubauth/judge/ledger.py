"""What was found about one hub so far: each thing once, and what follows from it under it."""

from collections.abc import Iterable
from typing import TypeAlias

from attrs import evolve

from hubauth.judge.verdicts import Finding

Subject: TypeAlias = tuple[str, str | int]
"""A device, node or link."""


class Ledger:
    """Distinct findings in the order in which they were made, and whom they concern."""

    def __init__(self) -> None:
        self._findings: dict[tuple[str, str], Finding] = {}
        self._marks: dict[Subject, tuple[str, str]] = {}
        """Whoever the hub treated otherwise than the rules say -> the finding that was about that first."""
        self._parted: tuple[str, str] | None = None
        """The first finding after which the hub's state was another one."""

    def __bool__(self) -> bool:
        return bool(self._findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._findings.values())

    @property
    def has_marks(self) -> bool:
        return bool(self._marks)

    def add(self, finding: Finding, subjects: Iterable[Subject], *, touches: Iterable[Subject] = ()) -> None:
        """Note a difference that concerns these subjects, and others that it only ``touches``.

        Where there are none, nothing follows from it.
        """
        key, subjects = (finding.rule, finding.what), list(subjects)
        cause = next((self._marks[each] for each in [*subjects, *touches] if each in self._marks), None)
        known = self._findings.get(key)
        if known is not None:
            self._findings[key] = evolve(known, times=known.times + 1, last=finding.sequence)
        elif cause is not None:
            first = self._findings[cause]
            self._findings[cause] = evolve(first, consequences=first.consequences + 1)
            key = cause
        else:
            self._findings[key] = finding
        for subject in subjects:
            self._marks.setdefault(subject, key)
            self._parted = self._parted or key

    def knows(self, rule: str, what: str) -> bool:
        return (rule, what) in self._findings

    def follows(self) -> bool:
        """Note that the whole state is otherwise, too; whether that follows from a finding."""
        if self._parted is None:
            return False
        first = self._findings[self._parted]
        self._findings[self._parted] = evolve(first, consequences=first.consequences + 1)
        return True

    def clear(self, subjects: Iterable[Subject]) -> None:
        """Hub and core agree about these again."""
        for subject in subjects:
            self._marks.pop(subject, None)
