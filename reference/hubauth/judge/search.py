"""An order that explains what was seen, where the rows do not say in which order the hub handled them.

Somebody outside saw frames on several links. On each link the order is certain; between links only this is: what the
hub did was caused by something that was seen before. So an order is looked for, depth first: whenever the hub is seen
to do something that is not due yet, some waiting input must have been handled, the oldest tried first. A choice that
leads to something else than was seen is taken back. The search is bounded; where it has to give up, or where something
that nobody recorded would explain what was seen, it says what is missing instead of guessing.

Two assumptions keep it finite. A hub handles what it got within ``PATIENCE``. What was decided ``WINDOW`` rows ago is
not taken back; if that could matter, the verdict is "cannot tell". A third keeps it small, and is given up before
anything is called wrong: an input that does nothing at once, and would do nothing after everything else that had been
seen by then, did nothing.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec
from attrs import define, evolve, field
from immutables import Map

from hubauth.core.inputs import PARENT, Link
from hubauth.core.model import TIMELESS, State
from hubauth.core.outputs import Send
from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.judge.compare import IN_ANY_ORDER, Compared, Difference, same, visible
from hubauth.judge.declared import Reading
from hubauth.judge.ended import as_disobeyed
from hubauth.judge.mending import Mends
from hubauth.judge.observed import Due, Guess, Sightings, Trail
from hubauth.judge.reasons import Found, Reasons
from hubauth.judge.takeover import take_over
from hubauth.judge.taking import Situation, Taken, take, take_timer

PATIENCE = 250_000
"""Microseconds within which a hub handles what it got."""
ROWS_OF_PATIENCE = 256
"""The same in rows, where they have no time."""
LOOKAHEAD = 1024
WINDOW = 256
EFFORT = 20_000
"""Steps that may be tried for one row, unless told otherwise."""
EXHAUSTIONS = 2
"""How often that may be in vain before the rows that follow are not judged."""
MENDS = 8
"""Differences that are looked for behind one row."""
_SECOND_LOOK = 50
"""Steps to find out whether a row could have been explained otherwise."""
_CHANGEABLE = frozenset(
    {
        "FRAME-2",
        "FRAME-5",
        "FRAME-7",
        "FRAME-22",
        "FRAME-27",
        "BIND-9",
        "BIND-10",
        "EXT-1",
        "EXT-10",
        "REV-23",
        "REV-9",
        "REV-17",
        "REV-18",
    }
)
"""Rules by which an input does nothing now, but might do something at another time."""


Plan: TypeAlias = Callable[[Guess], Iterator[Guess]]
"""All ways to explain one row, given those before."""
Wanted: TypeAlias = Callable[[Guess], Guess | bool]
"""A guess that explains a row; else whether it is worth going on from there."""


@define
class Row:
    """A row that is explained, and how far the other explanations have been tried."""

    event: Event
    plan: Plan
    ways: Iterator[Guess]
    """Those that were not tried yet."""
    guess: Guess | None = None
    """The explanation that is believed."""
    dead: dict[Map[Link, int], list[Guess]] = field(factory=dict)
    """Explanations that lead nowhere, by what they have handled."""

    def next_way(self) -> Guess | None:
        """Another explanation, unless it is known to lead nowhere."""
        return next((guess for guess in self.ways if not self._is_dead(guess)), None)

    def bury(self) -> None:
        """What was believed leads nowhere."""
        assert self.guess is not None
        self.dead.setdefault(self.guess.taken, []).append(self.guess)

    def _is_dead(self, guess: Guess) -> bool:
        return any(guess.is_like(other) for other in self.dead.get(guess.taken, ()))


class _Exhausted(Exception):
    """The budget is used up."""


class Search:
    """Feed it the rows after ``start``, then finish; either says why when there is no explanation."""

    def __init__(self, situation: Situation, effort: int = EFFORT, reading: Reading | None = None) -> None:
        self._codec = situation.codec
        self._effort = effort
        self._reading = reading
        self._ahead: deque[Event] = deque()
        self._sightings = Sightings(LOOKAHEAD)
        self._mends = Mends(situation.codec, self._sightings)
        self._exhausted = 0
        self._stopped = False
        self._proved: set[tuple[str, str]] = set()
        """What the hub is known to do otherwise, whatever the order."""
        self._guess = Guess(situation)
        self._base = self._guess
        """The guess before the oldest of the rows that can still be explained otherwise."""
        self._rows: deque[Row] = deque()
        self._eager = True
        """What does nothing is handled at once."""
        self._assumed = False
        """That has been done although it might have done something at another time."""
        self._horizon: Situation | None = None
        self._steps = 0
        self._forgotten = False
        """A choice that might have been made otherwise is too old to be taken back."""
        self._reasons = Reasons(situation.codec, self._sightings)
        self._last: Event | None = None

    @property
    def rules(self) -> Counter[str]:
        """In the order that was found."""
        trail = self._guess.trail
        return Counter(rule for step in (trail.back() if trail is not None else ()) for rule in step.rules)

    def feed(self, event: Event) -> list[Found]:
        """What is found to be wrong, now that there is one more row."""
        if self._stopped:
            return []
        self._sightings.add(event)
        self._last = event
        self._ahead.append(event)
        return self._explain(self._ahead.popleft()) if len(self._ahead) > LOOKAHEAD else []

    def finish(self) -> list[Found]:
        found: list[Found] = []
        while self._ahead and not self._stopped:
            found += self._explain(self._ahead.popleft())
        if self._last is None or self._stopped:
            return found
        later = msgspec.structs.replace(self._last, sequence=self._last.sequence + 1, kind=Kind.END)
        return found + self._catch_up(later)

    # Row by row, and back

    def _explain(self, event: Event) -> list[Found]:
        if event.kind in OUTPUTS:
            return self._choose(event, lambda guess: self._ways_to_do(guess, event))
        if event.kind is Kind.LINK_DOWN:
            return self._choose(event, lambda guess: iter((self._with_lost(guess, event),)))
        return self._catch_up(event)

    def _with_lost(self, guess: Guess, event: Event) -> Guess:
        """What was due on a link that went down may have been lost with it; what was seen later was not."""
        link = event.link or 0
        kept: tuple[Due, ...] = ()
        for at, due in enumerate(guess.due.get(link, ())):
            seen = self._sightings.output_at(link, guess.matched.get(link, 0) + at, event.sequence)
            if seen is None or not same(self._codec, due.output, seen):
                break
            kept = (*kept, due)
        return evolve(guess.without_due(link), due=guess.due.set(link, kept)) if kept else guess.without_due(link)

    def _catch_up(self, event: Event) -> list[Found]:
        if not self._is_late(self._guess, event):
            return []
        return self._choose(event, lambda guess: self._ways_to_catch_up(guess, event))

    def _choose(self, event: Event, plan: Plan) -> list[Found]:
        """Explain one more row, if need be by explaining earlier ones otherwise; else say what is wrong, and go on."""
        found: list[Found] = []
        if self._mends.reading(event) is None:
            return found
        one = self._glance(event, plan)
        if one is None:
            self._rows.append(Row(event, plan, plan(self._guess)))
            one = self._attempt(event, lambda: self._backtrack(len(self._rows) - 1))
        while one is not None:
            is_known = one.cause is not None and self._mends.forgives(one.cause) and self._is_about_choice(one)
            goes_on = self._exhausted <= EXHAUSTIONS and len(found) < MENDS and self._mends.mend(one)
            found += [] if is_known else [self._as_told(one, is_last=not goes_on)]
            self._proved |= {(each.rule, each.what) for each in one.differences if not one.missing}
            if not goes_on:
                self._stopped = True
                break
            one = self._again(event, plan)
        return found

    def _as_told(self, one: Found, *, is_last: bool) -> Found:
        now = self._guess.situation
        differences = [as_disobeyed(each, now.ended, now.state, self._codec) for each in one.differences]
        return evolve(one, differences=tuple(differences), situation=now, is_last=is_last)

    def _glance(self, event: Event, plan: Plan) -> Found | None:
        """What is wrong with a row in every order, or as it was before: that needs no search."""
        if event.kind not in OUTPUTS:
            return None
        self._begin()
        try:
            if next(plan(self._guess), None) is not None:
                return None
        except _Exhausted:
            return None
        found = self._reasons.found(event, "")
        if found.event is not event or found.cause is None:
            return None
        names = {(each.rule, each.what) for each in found.differences}
        in_any_order = all(each.what in IN_ANY_ORDER for each in found.differences)
        return found if in_any_order or names <= self._proved else None

    def _again(self, event: Event, plan: Plan) -> Found | None:
        """Explain a row anew, after something is read otherwise."""
        if self._rows and self._rows[-1].event is event:
            self._rows.pop()
        if self._mends.reading(event) is None:
            return None if all(row.guess is not None for row in self._rows) else self._attempt(event, self._retry)
        self._rows.append(Row(event, plan, plan(self._guess)))
        if all(row.guess is not None for row in list(self._rows)[:-1]):
            return self._attempt(event, lambda: self._backtrack(len(self._rows) - 1))
        return self._attempt(event, self._retry)

    @staticmethod
    def _is_about_choice(one: Found) -> bool:
        """Whether this only says once more that the hub chose what it may not."""
        return all(difference.what.startswith("credential") for difference in one.differences)

    def _attempt(self, event: Event, look: Callable[[], bool]) -> Found | None:
        """Whether a look finds an explanation of all rows; else why not."""
        self._begin()
        try:
            if look() or (self._assumed and self._begin_again()):
                return None
        except _Exhausted:
            self._exhausted += 1
            order = f"the order in which the hub handled what came before row {event.sequence}"
            return self._reasons.found(event, f"{order}: {self._effort} steps explain nothing")
        older = self._forgotten and not self._reasons.are_alike()
        return self._reasons.found(event, f"the order of what is older than {WINDOW} rows" if older else "")

    def _begin(self) -> None:
        """Another row is to be explained."""
        self._steps = 0
        self._horizon = None
        self._reasons.forget(self._guess.trail)

    def _retry(self) -> bool:
        """Likewise, after something is read otherwise: every row again."""
        for row in self._rows:
            row.dead.clear()
        if not self._rows:
            return True
        self._rows[0].ways = self._rows[0].plan(self._base)
        return self._backtrack(0)

    def _backtrack(self, at: int) -> bool:
        """Whether all rows can be explained, those before ``at`` as they are or otherwise."""
        rows = self._rows
        while at >= 0:
            row = rows[at]
            row.guess = row.next_way()
            if row.guess is None:
                self._reasons.freeze()
                at -= 1
                if at >= 0:
                    rows[at].bury()
            elif at < len(rows) - 1:
                at += 1
                rows[at].ways = rows[at].plan(row.guess)
            else:
                self._guess = row.guess
                self._forget_oldest()
                return True
        return False

    def _begin_again(self) -> bool:
        """Likewise, with nothing assumed about what does nothing."""
        self._eager = self._assumed = False
        self._steps = 0
        try:
            return self._retry()
        finally:
            self._eager = True

    def _forget_oldest(self) -> None:
        if len(self._rows) <= WINDOW:
            return
        row, self._steps = self._rows.popleft(), self._effort - _SECOND_LOOK
        assert row.guess is not None
        self._base = row.guess
        try:
            other = row.next_way()
        except _Exhausted:
            return
        if other is not None and not self._forgotten:
            here, there = (self._sightings.all_handled(guess, row.event.sequence) for guess in (row.guess, other))
            self._forgotten = here.state != there.state

    # Ways to explain a row

    def _ways_to_do(self, guess: Guess, event: Event) -> Iterator[Guess]:
        """Ways in which the hub came to do what was seen."""
        link = event.link or 0

        def wanted(guess: Guess) -> Guess | bool:
            return self._having_done(guess, link, event) if link in guess.due else True

        read = self._mends.reading(event)
        if read is None:
            yield guess
            return
        event = read
        yield from self._look(guess, event, wanted)
        yield from self._look(guess, event, wanted, timers=True)
        if event.kind is Kind.CLOSE:
            # A hub may close a connection for reasons that are no matter of the protocol.
            ended = msgspec.structs.replace(event, kind=Kind.LINK_DOWN)
            closed = self._after(guess, take(guess.situation, ended, ()), event, event)
            if closed is not None:
                yield closed.without_due(link).having_seen(link)

    def _having_done(self, guess: Guess, link: Link, event: Event) -> Guess | bool:
        first, situation = guess.due[link][0], guess.situation
        if not same(self._codec, first.output, event):
            self._reasons.failed(first, event, event, trail=guess.trail)
            return False
        if isinstance(first.output, Send):
            aliases = situation.aliases.bind(first.output, event, self._codec, situation.state)
            if isinstance(aliases, Difference):
                return False
            guess = evolve(guess, situation=evolve(situation, aliases=aliases))
        return guess.having_seen(link)

    def _ways_to_catch_up(self, guess: Guess, event: Event) -> Iterator[Guess]:
        """Ways in which the hub handled all it should have by now, and did what it had to."""

        def wanted(guess: Guess) -> Guess | bool:
            if self._waits_long(guess, event):
                return True
            for due in guess.due.values():
                if _is_old(due[0].cause, event, 2):
                    self._reasons.overdue(due[0], event)
                    return False
            return guess

        yield from self._look(guess, event, wanted)

    def _waits_long(self, guess: Guess, event: Event) -> bool:
        return any(_is_old(cause, event) for _, cause in self._sightings.waiting(guess, event.sequence))

    def _is_late(self, guess: Guess, event: Event) -> bool:
        return self._waits_long(guess, event) or any(_is_old(due[0].cause, event, 2) for due in guess.due.values())

    def _look(self, guess: Guess, event: Event, wanted: Wanted, *, timers: bool = False) -> Iterator[Guess]:
        """Depth first, the oldest input first; two ways to the same situation are one."""
        known: dict[Map[Link, int], list[State]] = {}
        stack = [guess]
        while stack:
            guess = self._settled(stack.pop(), event)
            answer = wanted(guess)
            if isinstance(answer, Guess):
                yield answer
            if answer is not True:
                continue
            for other in reversed(list(self._moves(guess, event, timers))):
                states = known.setdefault(other.taken, [])
                if timers or not any(other.situation.state == state for state in states):
                    states.append(other.situation.state)
                    stack.append(other)

    def _settled(self, guess: Guess, event: Event) -> Guess:
        """The guess with everything handled that need not be a choice: new child links, and what does nothing."""
        settled = True
        while settled:
            settled = False
            for link, cause in self._sightings.waiting(guess, event.sequence):
                taken = take(guess.situation, cause, ())
                is_new = cause.kind is Kind.LINK_UP and link != PARENT
                if is_new or (_is_inert(guess.situation, taken) and self._does_nothing(taken, cause, event)):
                    after = self._after(guess, taken, cause, event)
                    if after is not None:
                        guess, settled = after.having_taken(link), True
        return guess

    def _does_nothing(self, taken: Taken, cause: Event, event: Event) -> bool:
        """Whether an input that does nothing now is believed to have done nothing."""
        if _CHANGEABLE.isdisjoint(taken.done.rules):
            return True
        if not self._eager:
            return False
        if self._horizon is None:
            self._horizon = self._sightings.all_handled(self._guess, event.sequence)
        if not _is_inert(self._horizon, take(self._horizon, cause, ())):
            return False
        self._assumed = True
        return True

    def _moves(self, guess: Guess, event: Event, timers: bool) -> Iterator[Guess]:
        """What the hub may have done next."""
        unlikely: list[Guess] = []
        for link, cause in self._sightings.waiting(guess, event.sequence):
            self._spend()
            seen = () if self._mends.hides(cause) else self._sightings.unexplained(guess, link)
            taken = take(guess.situation, cause, seen)
            bent = self._mends.bent(cause)
            if bent:
                taken = evolve(taken, after=take_over(guess.situation, taken, Compared(bent)))
            after = self._after(guess, taken, cause, event)
            if after is not None and taken.skips:
                unlikely.append(after.having_taken(link))
            elif after is not None:
                yield after.having_taken(link)
            if self._reading is not None and self._reading.may_drop(cause):
                unlikely.append(guess.having_taken(link))
        for timer in self._timers(guess, event, timers):
            self._spend()
            fired = self._after(guess, take_timer(guess.situation, timer), event, event)
            if fired is not None:
                yield fired
        yield from unlikely

    def _timers(self, guess: Guess, event: Event, timers: bool) -> list[int]:
        """Timers that may have run out: that for announcing at once, others only if nothing else explains a row."""
        policy, state = guess.situation.policy, guess.situation.state
        fired = [state.announce_timer] if state.announcing is not None else []
        if timers:
            least = policy.request_seconds * 500_000
            for msg_id, pending in sorted(state.pending.items()):
                waited = event.time - guess.asked.get(msg_id, 0)
                if pending.purpose not in TIMELESS and (not event.time or waited >= least):
                    fired.append(msg_id)
        return fired

    def _is_early(self, guess: Guess, cause: Event, event: Event) -> bool:
        """Whether something waits that came before this cause: not the likeliest order."""
        return any(head.sequence < cause.sequence for _, head in self._sightings.waiting(guess, event.sequence))

    def _spend(self) -> None:
        self._steps += 1
        if self._steps > self._effort:
            raise _Exhausted

    def _after(self, guess: Guess, taken: Taken, cause: Event, event: Event) -> Guess | None:
        """The guess after a step; None if that would do something else than was seen later."""
        due, rules = guess.due, taken.done.rules
        outputs = visible(taken.done.outputs)
        self._reasons.stepped(taken, outputs, cause, event)
        if taken.wrong is not None and not self._mends.forgives(cause):
            return None
        for output in outputs:
            if self._mends.excuses(cause, output):
                continue
            link = output.link
            queue = due.get(link, ())
            item = Due(output, rules, cause, taken.done)
            seen = self._sightings.output_at(link, guess.matched.get(link, 0) + len(queue), event.sequence)
            if seen is None and self._sightings.is_down(link, event.sequence):
                continue
            if seen is not None and not same(self._codec, output, seen):
                if seen.kind is Kind.CLOSE and isinstance(output, Send):
                    continue
                early = self._is_early(guess, cause, event)
                self._reasons.failed(item, seen, event, outputs, guess.trail, is_early=early)
                return None
            due = due.set(link, (*queue, item))
        asked = guess.asked
        for table, key, old, _ in taken.done.changes:
            if table == "pending":
                asked = asked.set(key, cause.time) if old is None else asked.delete(key) if key in asked else asked
        return Guess(
            taken.after, guess.taken, guess.matched, due, asked, Trail(rules, guess.trail, cause, tuple(outputs))
        )


def _is_inert(before: Situation, taken: Taken) -> bool:
    return taken.done.state is before.state and not visible(taken.done.outputs)


def _is_old(cause: Event, event: Event, times: int = 1) -> bool:
    if cause.time and event.time:
        return event.time - cause.time > times * PATIENCE
    return event.sequence - cause.sequence > times * ROWS_OF_PATIENCE
