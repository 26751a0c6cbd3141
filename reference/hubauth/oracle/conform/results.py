"""What a run found, as values that every report is made from."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from hubauth.specification import counts_under

Verdict: TypeAlias = Literal["pass", "fail", "known", "fixed", "info", "skipped", "blocked", "error", "apart"]
"""``known``: fails, and the known-failing file says so. ``fixed``: passes although that file says it fails.
``skipped``: a feature is not declared. ``blocked``: a case it depends on did not pass. ``error``: the tool or the
connection failed, which is no verdict about a rule. ``apart``: fails, but only by a decision, where the documents alone
count."""

LEVELS = ("MUST", "SHOULD", "MAY", "INFO")
VIOLATIONS: tuple[Verdict, ...] = ("fail", "fixed")
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "known", "fixed", "info")
"""Those that say something about the hub under test."""


class Finding(Struct, frozen=True):
    """One difference, for people."""

    what: str
    expected: str
    seen: str
    rule: str
    informational: bool = False
    case: str = ""
    """In which case it was seen, if not in this one."""
    behind: str = ""
    """The rule that decided what differs, where the case is about another one."""


class Arrow(Struct, frozen=True):
    """One frame or event of an exchange."""

    sender: str
    receiver: str
    label: str
    detail: str = ""
    wrong: bool = False


class Result(Struct, frozen=True):
    """One case and its verdict."""

    id: str
    rule: str
    level: str
    title: str
    text: str
    """Of the rule."""
    header: int
    verdict: Verdict
    reason: str = ""
    """Why it was skipped, blocked or broken off."""
    findings: tuple[Finding, ...] = ()
    exchange: tuple[Arrow, ...] = ()
    rules: tuple[str, ...] = ()
    """That decided something in it."""
    basis: str = ""
    """Where the rule comes from: lines of the documents, or a decision."""
    seconds: float = 0.0
    command: str = ""
    """Repeats just this case."""


CONFORMS, VIOLATES, USAGE, FAILED, UNREADABLE = range(5)
"""Exit codes. FAILED: the job itself, which says nothing about a rule. UNREADABLE: a file that was given."""


def by_documents(result: Result) -> Result:
    """The result where only what the documents say counts: what only a decision forbids stands apart."""
    told = [one for one in result.findings if not one.informational]
    counted = [counts_under("documents", one.rule) and counts_under("documents", one.behind) for one in told]
    if result.verdict != "fail" or any(counted or [counts_under("documents", result.rule)]):
        return result
    return replace(result, verdict="apart")


def exit_code(results: Sequence[Result]) -> int:
    """What a run comes to. A run that checked nothing does not conform."""
    verdicts = {result.verdict for result in results}
    if "error" in verdicts:
        return FAILED
    if verdicts & set(VIOLATIONS):
        return VIOLATES
    return CONFORMS if verdicts & {"pass", "known"} else FAILED
