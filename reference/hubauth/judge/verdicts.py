"""What a replay says in the end: conforms, violates, or cannot tell; and everything that is wrong, each thing once."""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from attrs import evolve, field, frozen
from msgspec.structs import replace

from hubauth.forms.events import Event
from hubauth.forms.lines import encode_event
from hubauth.report.conceal import conceal, secrets_in
from hubauth.specification import Basis, basis_of, counts_under, rules

CHECKS = {
    "TRACE-1": "The rows of a hub are numbered without a gap, a repetition or a step back.",
    "TRACE-2": "The first row of a hub is a start row that names the policy and the order of its rows.",
    "TRACE-3": "A checkpoint holds exactly the state that replaying the rows before it leads to.",
    "TRACE-4": "What one end of a connection receives is what the other end sent, in that order, from the first on.",
    "TRACE-5": "A row can be read: it has the fields of its kind.",
}
"""What is asked of a trace itself, beside the rules of the protocol."""


class Outcome(Enum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    CANNOT_TELL = "cannot_tell"


_SEVERITY = {Outcome.CONFORMS: 0, Outcome.CANNOT_TELL: 1, Outcome.VIOLATES: 2}


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Violates before cannot tell before conforms; nothing at all is not conforming."""
    return max(outcomes, key=_SEVERITY.__getitem__, default=Outcome.CANNOT_TELL)


@frozen(kw_only=True)
class Finding:
    """One thing that is wrong, or cannot be told, however often it was seen."""

    outcome: Outcome
    rule: str = ""
    what: str = ""
    """What differed: a field, silence, something that was not due, the order."""
    sequence: int | None = None
    """The row at which it was first seen."""
    last: int | None = None
    times: int = 1
    consequences: int = 0
    """Later differences about the same device, node or link, which are told here and nowhere else."""
    rules: tuple[str, ...] = ()
    """Every rule that took part in the decision."""
    expected: str = ""
    seen: str = ""
    missing: str = ""
    """What would have to be known to tell."""
    leads: tuple[Event, ...] = field(default=(), repr=False)
    """The rows that lead there, as far as they have to do with it."""

    def __attrs_post_init__(self) -> None:
        """A finding is for people: whatever the trace holds, no credential gets into one."""
        texts = ("expected", "seen", "missing")
        rows = [event.payload.decode("latin-1") for event in self.leads]
        known = set().union(*map(secrets_in, [*rows, *(getattr(self, name) for name in texts)]))
        for name in texts:
            object.__setattr__(self, name, conceal(getattr(self, name), known))
        payloads = [conceal(row, known).encode("latin-1") for row in rows]
        leads = [replace(event, payload=payload) for event, payload in zip(self.leads, payloads, strict=True)]
        object.__setattr__(self, "leads", tuple(leads))
        object.__setattr__(self, "last", self.sequence if self.last is None else self.last)

    @property
    def text(self) -> str:
        """The rule, in words."""
        return rule_text(self.rule)

    @property
    def basis(self) -> str:
        """Where the rule comes from: lines of the documents, or a decision."""
        return basis_of(self.rule)

    def plain(self) -> dict[str, Any]:
        """For JSON, without the words of the rule."""
        names = ("rule", "what", "sequence", "last", "times", "consequences", "expected", "seen", "missing")
        plain = {name: getattr(self, name) for name in names}
        leads = [conceal(encode_event(event).decode().rstrip()) for event in self.leads]
        return {"outcome": self.outcome.value, **plain, "rules": list(self.rules), "leads": leads}


NOTHING = Finding(outcome=Outcome.CONFORMS)


@frozen
class Verdict:
    """About one hub: the outcome, and why, in the order of the rows."""

    outcome: Outcome
    trace: str
    hub: str
    events: int
    """Rows that were looked at."""
    findings: tuple[Finding, ...] = ()
    stopped: str = ""
    """Why nothing is said of the rows after some row; empty: all were judged."""
    apart: tuple[Finding, ...] = ()
    """What only a decision forbids, where the hub is judged by the documents alone."""
    known: tuple[Finding, ...] = ()
    """What the hub is known to do wrong."""

    @classmethod
    def of(cls, outcome: Outcome, trace: str, hub: str, events: int, **why: Any) -> "Verdict":
        """A verdict for one reason."""
        return cls(outcome, trace, hub, events, (Finding(outcome=outcome, **why),))

    def with_findings(self, more: Iterable[Finding]) -> "Verdict":
        """The verdict if these were found, too."""
        findings = (*self.findings, *more)
        outcome = worst([Outcome.CONFORMS, *(finding.outcome for finding in findings)])
        return evolve(self, outcome=outcome, findings=findings)

    def by(self, basis: Basis, failing: frozenset[str] = frozenset()) -> "Verdict":
        """The verdict by these rules alone, but for those that are known to fail."""
        known = tuple(one for one in self.findings if one.rule in failing)
        counted = {one: counts_under(basis, one.rule) for one in self.findings if one not in known}
        findings = tuple(finding for finding, counts in counted.items() if counts)
        apart = tuple(finding for finding, counts in counted.items() if not counts)
        outcome = worst([Outcome.CONFORMS, *(finding.outcome for finding in findings)])
        return evolve(self, outcome=outcome, findings=findings, apart=apart, known=known)

    @property
    def main(self) -> Finding:
        """The finding to be told first: a violation, if there is one."""
        wrong = (finding for finding in self.findings if finding.outcome is self.outcome)
        return next(wrong, NOTHING)

    @property
    def rule(self) -> str:
        return self.main.rule

    @property
    def sequence(self) -> int | None:
        return self.main.sequence

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        said = {"outcome": self.outcome.value, "trace": conceal(self.trace), "hub": conceal(self.hub)}
        first = {"rule": self.rule, "sequence": self.sequence}
        lists = {"findings": self.findings, "apart": self.apart, "known": self.known}
        told = {
            name: [{**one.plain(), "text": one.text, "basis": one.basis} for one in ones]
            for name, ones in lists.items()
        }
        return {**said, "events": self.events, **first, "stopped": self.stopped, **told}


def count_words(times: int, last: int | None, consequences: int) -> str:
    """How often something was found, if that was more than once, and what followed from it."""
    words = f", {times} times up to row {last}" if times > 1 else ""
    more = "consequence" if consequences == 1 else "consequences"
    return words + (f", {consequences} {more}" if consequences else "")


def rule_text(rule: str) -> str:
    """What a rule says; empty if there is no such rule."""
    if rule in CHECKS:
        return CHECKS[rule]
    known = rules().get(rule)
    return known.text if known is not None else ""
