"""One hub's rows through the core: what it did must be what the rules say.

A fold over rows in sequence order that keeps the hub's state, the rows of the step under way, and a short memory of
what came before. After a difference it goes on with what the hub evidently did (``hubauth.judge.takeover``). Where rows
are in the order in which the hub handled them, a step's outputs follow its cause; where they are only in the order in
which somebody saw them, ``hubauth.judge.search`` finds an order that explains them.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen
from msgspec.structs import replace

from hubauth.core.canonical import decode_state, digest_of, digest_of_encoding
from hubauth.core.indexes import initial_state
from hubauth.core.messages import ENTRANCE, Answer, Frame, Reason
from hubauth.core.model import State
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.forms.events import (
    CAUSES,
    OUTPUTS,
    Checkpoint,
    Event,
    Kind,
    Opening,
    Order,
    TraceError,
    decode_opening,
)
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.forms.policies import decode_policy, encode_policy
from hubauth.judge.aliases import Aliases, bind_all
from hubauth.judge.compare import UNKNOWN_JOURNAL, Difference, Visible, compare, has_free_credential, visible
from hubauth.judge.declared import Reading, spoken
from hubauth.judge.ended import as_disobeyed
from hubauth.judge.facts import Fact, first_facts, last_facts
from hubauth.judge.leads import leads_to
from hubauth.judge.ledger import Ledger, Subject
from hubauth.judge.reasons import Found
from hubauth.judge.search import EFFORT, LOOKAHEAD, WINDOW, Search
from hubauth.judge.takeover import subjects_of, take_over, touched_by
from hubauth.judge.taking import Situation, Taken, answered_as, take
from hubauth.judge.verdicts import Finding, Outcome, Verdict, worst
from hubauth.judge.witness import Witness

REMEMBERED = 64
"""Rows kept to show what led to a violation."""


@frozen
class Seal:
    """What a checkpoint says, without the state itself."""

    digest: str
    policy: bytes


def seal_of(checkpoint: Checkpoint) -> Seal:
    """What a checkpoint really holds, whatever digest it claims; a damaged one has no digest at all."""
    try:
        policy = encode_policy(decode_policy(checkpoint.policy))
        digest = digest_of_encoding(checkpoint.state).hex()
    except ValueError:
        return Seal("", checkpoint.policy)
    return Seal(digest if digest == checkpoint.digest else "", policy)


class Replay:
    """Feed it every row of one hub in order, then ask for the verdict.

    ``policy`` is needed only where the trace does not name it. ``checkpoints`` are compared where the rows
    mark one. ``begins`` is the state of a hub whose trace does not begin with its life: it has to be believed.
    ``habits`` are what the hub is declared to do otherwise, where the trace does not say.
    ``effort`` bounds the search for an order that explains rows which are in observed order.
    Only after a row that cannot be read, or rows that are missing, further ones change nothing.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        checkpoints: Mapping[int, Seal] | None = None,
        begins: Checkpoint | None = None,
        effort: int = EFFORT,
        habits: Habits = AS_THE_RULES_SAY,
    ) -> None:
        self._given = policy
        self._effort = effort
        self._habits = habits
        self._reading: Reading | None = None
        self._checkpoints = checkpoints
        self._begins = begins
        self._next: int | None = None
        self._cause: Event | None = None
        self._frame: Frame | None = None
        """What the cause holds, if it is a frame that the witness has read."""
        self._outputs: list[Event] = []
        self._recent: deque[Event] = deque(maxlen=REMEMBERED)
        self._ended = False
        self._ledger = Ledger()
        self._stopped: Finding | None = None
        """Why nothing more can be said."""
        self._stopped_at: int | None = None
        self._place = ("", "")
        self._situation: Situation | None = None
        self._search: Search | None = None
        self._facts: list[Fact] = []
        self._witness: Witness | None = None
        self.events = 0
        self._cited: dict[tuple[str, ...], int] = {}
        """Rules that decided a step together -> how many steps."""

    @classmethod
    def resume(cls, checkpoint: Checkpoint, checkpoints: Mapping[int, Seal] | None = None) -> "Replay":
        """Begin at the row that a checkpoint marks. Raises ValueError if it is damaged."""
        replay = cls(None, checkpoints)
        replay._next = checkpoint.sequence
        replay._place = (checkpoint.trace, checkpoint.hub)
        policy = decode_policy(checkpoint.policy)
        state = decode_state(policy, checkpoint.state)
        replay._situation = Situation(policy, state, Aliases.of_state(state))
        replay._witness = Witness.resumed(policy, state, replay._situation.codec)
        return replay

    @property
    def state(self) -> State | None:
        """After the last complete step; None before the first row."""
        return self._situation.state if self._situation is not None else None

    @property
    def rules(self) -> Counter[str]:
        """Rule -> in how many steps it decided."""
        counted: Counter[str] = Counter()
        for rules, times in self._cited.items():
            for rule in rules:
                counted[rule] += times
        return counted

    @property
    def policy(self) -> Policy | None:
        """In force after the last complete step."""
        return self._situation.policy if self._situation is not None else None

    # Rows

    def feed(self, event: Event) -> None:
        """Take the next row."""
        self.events += 1
        if self._stopped is not None:
            return
        if event.sequence != self._next:
            self._check_sequence(event)
            if self._has_stopped():
                return
        self._next = event.sequence + 1
        self._recent.append(event)
        if self._reading is not None:
            if (read := self._reading.read(event)) is None:
                return
            event = read
        frame = None if self._witness is None else self._witness.feed(event)
        if self._search is not None:
            self._look(self._search.feed(event))
            return
        kind = event.kind
        if kind in OUTPUTS:
            if self._cause is None:
                self._add(event, Difference("TRACE-2", "a cause before what the hub does", "none", "cause"))
            else:
                self._outputs.append(event)
            return
        if self._cause is not None:
            # A hub that begins again in the middle of a step was killed, or could write no more.
            self._settle(last=kind is Kind.START)
            if self._has_stopped():
                return
        if kind in CAUSES:
            self._ended = False
            self._cause, self._frame = event, frame
        elif kind is Kind.START:
            self._start(event)
        elif kind is Kind.CHECKPOINT:
            self._compare_checkpoint(event)
        else:
            self._ended = True

    def finish(self) -> Verdict:
        """The verdict, after the last row."""
        if self._stopped is None and self._search is not None:
            self._look(self._search.finish())
            self._cited = {(rule,): times for rule, times in self._search.rules.items()}
        if self._stopped is None and self._cause is not None:
            self._settle(last=True)
        if self._stopped is None and self._situation is None and self._search is None:
            self._stopped = Finding(outcome=Outcome.CANNOT_TELL, missing="any row at all")
        return self._verdict()

    def take_facts(self) -> list[Fact]:
        """The facts since they were taken last."""
        facts, self._facts = self._facts, []
        return facts + (self._witness.take() if self._witness is not None else [])

    def take_last_facts(self) -> list[Fact]:
        """What the last state says; nothing, if that is not known for certain. To be asked after the verdict."""
        situation = self._situation
        certain = self._stopped is None and self._search is None and not self._ledger.findings
        if not certain or situation is None or self._next is None:
            return []
        return list(last_facts(self._next - 1, situation.policy, situation.state))

    def seal(self) -> Seal:
        """The state and policy as a checkpoint here would have to hold them. Settles the step under way."""
        if self._cause is not None and self._stopped is None:
            self._settle()
        assert self._situation is not None
        return _seal(self._situation)

    def _has_stopped(self) -> bool:
        """Asked after a method that may have stopped it: mypy believes that an attribute stays what it was."""
        return self._stopped is not None

    # Rows that are no steps

    def _check_sequence(self, event: Event) -> None:
        if self._next is None:
            self._place = (event.trace, event.hub)
            if event.kind is not Kind.START:
                self._stop(
                    Outcome.CANNOT_TELL, event, rule="TRACE-2", missing=f"everything before row {event.sequence}"
                )
        elif event.sequence < self._next:
            seen = f"row {event.sequence} after row {self._next - 1}"
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-1", seen=seen, missing="the order of the rows")
        else:
            last = event.sequence - 1
            rows = f"row {last}" if last == self._next else f"rows {self._next} to {last}"
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-1", missing=rows)

    def _start(self, event: Event) -> None:
        try:
            opening = decode_opening(event.payload)
            policy = opening.read_policy() or self._given
        except (TraceError, ValueError) as problem:
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-5", seen=str(problem), missing="a readable start row")
            return
        if policy is None:
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-2", missing="the policy of the hub")
        elif self._situation is None:
            self._begin(event, opening, policy)
        else:
            self._begin_again(event, opening, policy)

    def _begin(self, event: Event, opening: Opening, policy: Policy) -> None:
        state = self._kept_state(event, opening, policy) if opening.state else _first_state(policy, opening)
        if state is None:
            missing = f"the checkpoint of row {event.sequence}: the hub begins with a state that no row leads to"
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-3", missing=missing)
            return
        habits = opening.habits or self._habits
        policy = spoken(policy, habits)
        self._situation = Situation(policy, state, Aliases.of_state(state), habits=habits)
        if habits != AS_THE_RULES_SAY:
            self._reading = Reading(habits, self._situation.codec, state.node_id)
        self._facts += first_facts(state)
        self._witness = Witness(policy, self._situation.codec, habits, in_order=opening.order is Order.HANDLED)
        if opening.order is Order.OBSERVED:
            self._search = Search(self._situation, self._effort, self._reading)
            self._recent = deque(self._recent, maxlen=LOOKAHEAD + WINDOW + REMEMBERED)

    def _kept_state(self, event: Event, opening: Opening, policy: Policy) -> State | None:
        begins = self._begins
        if begins is None or begins.sequence != event.sequence or seal_of(begins).digest != opening.state:
            return None
        try:
            return decode_state(policy, begins.state)
        except ValueError:
            return None

    def _begin_again(self, event: Event, opening: Opening, policy: Policy) -> None:
        assert self._situation is not None
        self._situation = self._situation.begun_again()
        begun = Seal(opening.state or digest_of(_first_state(policy, opening)).hex(), encode_policy(policy))
        if begun == _seal(self._situation):
            return
        seen = "the hub begins again with another state than is left of the one it had"
        if self._ended:
            expected = "what outlives the state before it stopped"
            self._stop(Outcome.VIOLATES, event, rule="TRACE-3", expected=expected, seen=seen)
        else:
            missing = "what happened between the last row and the new start"
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-3", seen=seen, missing=missing)

    def _compare_checkpoint(self, event: Event) -> None:
        if self._checkpoints is None or self._situation is None:
            return
        kept, here = self._checkpoints.get(event.sequence), _seal(self._situation)
        if kept is None:
            missing = f"the checkpoint of row {event.sequence}"
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-3", missing=missing)
        elif kept != here and not self._ledger.follows():
            seen = f"a state with digest {kept.digest or 'that is not its own'}"
            expected = f"a state with digest {here.digest}"
            self._add(event, Difference("TRACE-3", expected, seen, "state"))

    # Steps

    def _settle(self, *, last: bool = False) -> None:
        """The step under way is complete: let the core take it, and compare."""
        event, seen, before = self._cause, self._outputs, self._situation
        assert event is not None and before is not None
        self._cause, self._outputs = None, []
        try:
            read = self._frame if self._witness is not None and self._witness.codec is before.codec else None
            taken = take(before, event, seen, read)
        except TraceError as problem:
            self._stop(Outcome.CANNOT_TELL, event, rule="TRACE-5", seen=str(problem), missing="a readable row")
            return
        done, after = taken.done, taken.after
        expected = visible(done.outputs)
        if expected and not seen and self._reading is not None and self._reading.may_drop(event):
            return
        compared = compare(before.codec, done, expected, seen)
        if taken.wrong is not None or compared.differences:
            self._differ(event, before, taken, seen, last=last)
            return
        if expected:
            aliases = bind_all(after.aliases, expected, seen, before.codec, done.state)
            if isinstance(aliases, Difference):
                self._note(event, before, done.rules, [aliases])
            elif aliases is not after.aliases:
                after = evolve(after, aliases=aliases)
            if self._ledger.has_marks:
                self._ledger.clear(_agreed(expected))
        cited = done.rules
        self._cited[cited] = self._cited.get(cited, 0) + 1
        self._situation = after

    def _differ(self, event: Event, before: Situation, taken: Taken, seen: list[Event], *, last: bool) -> None:
        """The hub took a step otherwise: say how, and go on with what it evidently did."""
        rules, wrong = taken.done.rules, taken.wrong
        expected = visible(taken.done.outputs)
        if last and not self._ended and len(seen) < len(expected):
            missing = "the end of the trace"
            difference = compare(before.codec, taken.done, expected, seen).differences[0]
            self._note(event, before, rules, [difference], missing)
            return
        if wrong is not None and not wrong.of_form:
            taken = take(before, event, ())  # what was issued is no credential, so the core would issue nothing
        compared = compare(before.codec, taken.done, visible(taken.done.outputs), seen)
        issued = next((done for due, done in compared.pairs if isinstance(due, Send) and _is_free(due)), None)
        if issued is not None and wrong is None:  # the answer looks otherwise, so the credential in it was not found
            taken = take(before, event, [replace(issued, msg_id=answered_as(before, event), link=event.link)])
            compared = compare(before.codec, taken.done, visible(taken.done.outputs), seen)
        told = [one for one in compared.differences if wrong is None or not one.what.startswith("credential")]
        self._note(event, before, rules, [*([wrong] if wrong is not None else []), *told])
        self._situation = take_over(before, taken, compared)

    def _note(
        self, event: Event, before: Situation, rules: tuple[str, ...], differences: list[Difference], missing: str = ""
    ) -> None:
        """What is wrong with one step. The most telling difference comes first; what else it makes differ follows."""
        for one in differences:
            told = as_disobeyed(one, before.ended, before.state, before.codec)
            self._add(event, told, rules, missing, subjects_of(before, one))

    def _add(
        self,
        event: Event,
        one: Difference,
        rules: tuple[str, ...] = (),
        missing: str = "",
        subjects: Iterable[Subject] = (),
    ) -> None:
        finding = Finding(
            outcome=Outcome.CANNOT_TELL if missing else Outcome.VIOLATES,
            rule=one.rule,
            what=one.what,
            sequence=event.sequence,
            rules=rules,
            expected=one.expected,
            seen=one.seen,
            missing=missing,
            leads=() if self._ledger.knows(one.rule, one.what) else self._leads(event, one),
        )
        self._ledger.add(finding, subjects, touches=touched_by(one))

    # Verdicts

    def _look(self, found: list[Found]) -> None:
        """What a search has found since the last row."""
        for one in found:
            for difference in one.differences:
                subjects = subjects_of(one.situation, difference) if one.situation is not None else ()
                self._add(one.event, difference, one.rules, one.missing, subjects)
            if one.is_last:
                self._stopped_at = one.event.sequence

    def _stop(self, outcome: Outcome, event: Event, **why: object) -> None:
        """Nothing can be taken over: what comes after is not judged."""
        sequence = self._stopped_at = event.sequence
        self._stopped = Finding(outcome=outcome, sequence=sequence, leads=self._leads(event), **why)  # type: ignore[arg-type]

    def _leads(self, event: Event, one: Difference | None = None) -> tuple[Event, ...]:
        return leads_to(event, self._recent, one, in_order=self._search is None)

    def _verdict(self) -> Verdict:
        trace, hub = self._place
        findings = self._ledger.findings + ((self._stopped,) if self._stopped is not None else ())
        outcome = worst([Outcome.CONFORMS, *(finding.outcome for finding in findings)])
        stopped = "" if self._stopped_at is None else f"nothing after row {self._stopped_at} was judged"
        return Verdict(outcome, trace, hub, self.events, findings, stopped)


def _is_free(due: Send) -> bool:
    return has_free_credential(due.frame.body)


def _agreed(expected: list[Visible]) -> Iterator[Subject]:
    """Whom a hub has admitted as it should."""
    for output in expected:
        body = output.frame.body if isinstance(output, Send) else None
        if isinstance(body, Answer) and body.reason is Reason.OK and body.action in ENTRANCE:
            yield from (("device", body.device_id), ("node", body.node_id), ("link", output.link))


def _first_state(policy: Policy, opening: Opening) -> State:
    return initial_state(policy, opening.journal or UNKNOWN_JOURNAL)


def _seal(situation: Situation) -> Seal:
    return Seal(digest_of(situation.state).hex(), encode_policy(situation.policy))
