"""What a replay says in the end: conforms, violates, or cannot tell; and why."""

from enum import Enum
from typing import Any

from attrs import field, frozen
from msgspec.structs import replace

from hubauth.report.conceal import conceal, secrets_in
from hubauth.specification import rules
from hubauth.trace.events import Event
from hubauth.trace.jsonl import encode_event

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


@frozen(kw_only=True)
class Verdict:
    """About one hub. All but the first four fields say why it does not conform."""

    outcome: Outcome
    trace: str
    hub: str
    events: int
    """Rows that were looked at."""
    sequence: int | None = None
    """The row at which it was decided."""
    rule: str = ""
    rules: tuple[str, ...] = ()
    """Every rule that took part in the decision."""
    expected: str = ""
    seen: str = ""
    missing: str = ""
    """What would have to be known to tell."""
    leads: tuple[Event, ...] = field(default=(), repr=False)
    """The rows that lead there, as far as they have to do with it."""

    def __attrs_post_init__(self) -> None:
        """A verdict is for people: whatever the trace holds, no credential gets into one."""
        texts = ("expected", "seen", "missing")
        rows = [event.payload.decode("latin-1") for event in self.leads]
        known = set().union(*map(secrets_in, [*rows, *(getattr(self, name) for name in texts)]))
        for name in texts:
            object.__setattr__(self, name, conceal(getattr(self, name), known))
        payloads = [conceal(row, known).encode("latin-1") for row in rows]
        leads = [replace(event, payload=payload) for event, payload in zip(self.leads, payloads, strict=True)]
        object.__setattr__(self, "leads", tuple(leads))

    @property
    def text(self) -> str:
        """The rule, in words."""
        return rule_text(self.rule)

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "outcome": self.outcome.value,
            "trace": conceal(self.trace),
            "hub": conceal(self.hub),
            "events": self.events,
            "sequence": self.sequence,
            "rule": self.rule,
            "text": self.text,
            "rules": list(self.rules),
            "expected": self.expected,
            "seen": self.seen,
            "missing": self.missing,
            "leads": [conceal(encode_event(event).decode().rstrip()) for event in self.leads],
        }


def rule_text(rule: str) -> str:
    """What a rule says; empty if there is no such rule."""
    if rule in CHECKS:
        return CHECKS[rule]
    known = rules().get(rule)
    return known.text if known is not None else ""
