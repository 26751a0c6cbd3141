"""What was seen of a hub, link by link, and guesses about how it came about."""

from bisect import bisect_left
from collections.abc import Iterator

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import Link
from hubauth.core.transition import Step
from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.judge.compare import Visible
from hubauth.judge.taking import Situation, take

_NOWHERE = -1
"""The queue of what happens on no link."""


@frozen
class Due:
    """Something the hub must be seen to do, and why."""

    output: Visible
    rules: tuple[str, ...]
    cause: Event
    step: Step = field(eq=False, repr=False)


@frozen
class Trail:
    """The steps that led here, the last first."""

    rules: tuple[str, ...]
    before: "Trail | None"
    cause: Event
    outputs: tuple[Visible, ...] = field(eq=False, repr=False)

    def back(self) -> "Iterator[Trail]":
        """This step and those before it."""
        trail: Trail | None = self
        while trail is not None:
            yield trail
            trail = trail.before


@frozen
class Guess:
    """How far the rows are explained, in one order."""

    situation: Situation
    taken: Map[Link, int] = field(factory=Map)
    """How many inputs of each link were handled."""
    matched: Map[Link, int] = field(factory=Map)
    """How many outputs on each link were explained."""
    due: Map[Link, tuple[Due, ...]] = field(factory=Map)
    asked: Map[int, int] = field(factory=Map)
    """Pending request -> when it was made."""
    trail: Trail | None = None

    def is_like(self, other: "Guess") -> bool:
        """Whether both, having handled the same inputs, expect the same of the hub from now on."""
        return self.situation.state == other.situation.state and self.due == other.due

    def having_taken(self, link: Link) -> "Guess":
        return evolve(self, taken=self.taken.set(link, self.taken.get(link, 0) + 1))

    def without_due(self, link: Link) -> "Guess":
        return evolve(self, due=self.due.delete(link)) if link in self.due else self

    def having_seen(self, link: Link) -> "Guess":
        """One more output on the link is explained; it was the first that is due, if anything is."""
        due = self.due.get(link, ())
        rest = self.due.set(link, due[1:]) if len(due) > 1 else self.due.delete(link) if due else self.due
        return evolve(self, due=rest, matched=self.matched.set(link, self.matched.get(link, 0) + 1))


class Sightings:
    """Inputs and outputs of each link, in the order in which they were seen there."""

    def __init__(self, lookahead: int) -> None:
        self._lookahead = lookahead
        self._inputs: dict[Link, list[Event]] = {}
        self._outputs: dict[Link, list[Event]] = {}
        self._ups: dict[Link, list[tuple[int, bool]]] = {}
        """Link -> the rows at which it came up (True) or went down."""

    def add(self, event: Event) -> None:
        link = _NOWHERE if event.link is None else event.link
        if event.kind in OUTPUTS:
            self._outputs.setdefault(link, []).append(event)
        elif event.kind not in (Kind.CHECKPOINT, Kind.END):
            self._inputs.setdefault(link, []).append(event)
        if event.kind in (Kind.LINK_UP, Kind.LINK_DOWN, Kind.CLOSE):
            self._ups.setdefault(link, []).append((event.sequence, event.kind is Kind.LINK_UP))

    def next_input(self, guess: Guess, link: Link, now: int) -> Event | None:
        """The first input of a link that is not handled, if it was seen before row ``now``."""
        inputs, at = self._inputs[link], guess.taken.get(link, 0)
        return inputs[at] if at < len(inputs) and inputs[at].sequence < now else None

    def waiting(self, guess: Guess, now: int) -> list[tuple[Link, Event]]:
        """The first such input of each link, the oldest first."""
        heads = [(link, self.next_input(guess, link, now)) for link in self._inputs]
        return sorted(((link, head) for link, head in heads if head is not None), key=lambda pair: pair[1].sequence)

    def unexplained(self, guess: Guess, link: Link) -> list[Event]:
        """What was seen of the hub on a link and is not explained."""
        first = guess.matched.get(link, 0)
        return self._outputs.get(link, [])[first : first + self._lookahead]

    def output_at(self, link: Link, index: int, now: int) -> Event | None:
        """The output of that number on a link; None if it was not seen, or what is due may have been lost before."""
        outputs = self._outputs.get(link, [])
        if index >= len(outputs):
            return None
        seen = outputs[index]
        lost = any(not up and now < sequence < seen.sequence for sequence, up in self._ups.get(link, ()))
        return None if lost else seen

    def outputs_after(self, event: Event) -> list[Event]:
        """What was seen of the hub on the link of an output after it, as far as that was read."""
        outputs = self._outputs.get(event.link or 0, [])
        at = next((at for at, seen in enumerate(outputs) if seen.sequence > event.sequence), len(outputs))
        return outputs[at : at + self._lookahead]

    def asked_by(self, answer: Event) -> Event | None:
        """The request that an answer names by its MsgID: the last one of its link before it."""
        asked = (
            each
            for each in reversed(self._inputs.get(answer.link or 0, []))
            if each.kind is Kind.FRAME_IN and each.sequence < answer.sequence and each.msg_id == answer.msg_id
        )
        return next(asked, None) if answer.msg_id else None

    def forget(self, event: Event) -> None:
        """Nothing explains this output, in whatever reading: nothing is to be explained by it."""
        link = event.link or 0
        self._outputs[link] = [seen for seen in self._outputs[link] if seen.sequence != event.sequence]

    def put_right(self, event: Event, due: Event) -> None:
        """What was seen was meant to be what was due."""
        link = event.link or 0
        self._outputs[link] = [due if seen.sequence == event.sequence else seen for seen in self._outputs[link]]

    def is_down(self, link: Link, now: int) -> bool:
        """Whether the link was last seen to go down, so that nothing more can be seen on it."""
        ups = self._ups.get(link, [])
        at = bisect_left(ups, (now, False))
        return at > 0 and not ups[at - 1][1]

    def all_handled(self, guess: Guess, now: int) -> Situation:
        """Where a guess leads if all that waits is handled in the order in which it came, whatever was seen."""
        while waiting := self.waiting(guess, now):
            link, cause = waiting[0]
            taken = take(guess.situation, cause, self.unexplained(guess, link))
            guess = evolve(guess, situation=taken.after).having_taken(link)
        return guess.situation
