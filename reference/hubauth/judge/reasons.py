"""Why no order explains what was seen: of all attempts that failed, the one that came closest."""

from collections.abc import Iterable, Iterator
from itertools import islice

from attrs import evolve, frozen

from hubauth.core.messages import Answer, PermsInvalidate, Revoke
from hubauth.core.outputs import Send
from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.forms.reading import frame_of
from hubauth.judge.compare import (
    Comparing,
    Difference,
    Visible,
    same,
    show_event,
    show_output,
    unequal_field,
    unexpected,
)
from hubauth.judge.observed import Due, Sightings, Trail
from hubauth.judge.taking import Situation, Taken
from hubauth.wire.dialects.codec import Codec

_RECENT = 512
"""Steps that may have led to what is seen again."""
_UNLIKELY = 5
"""How much less an order explains in which something older was handled later."""
_OPERATOR = "whether the operator of the hub, or a changed configuration, made it do that"


@frozen
class Found:
    """Why the rows cannot be explained; ``missing`` if that may be for want of something."""

    event: Event
    differences: tuple[Difference, ...]
    rules: tuple[str, ...]
    missing: str
    cause: Event | None = None
    """The row whose step would have done what differs."""
    situation: Situation | None = None
    """In which that was."""
    is_last: bool = False
    """Nothing can be taken over: the rows after this one are not judged."""


@frozen
class _Failure:
    due: Due
    seen: Event
    explains: bool
    """The step would have explained the row in question, but for this."""
    is_early: bool = False
    """What came before its cause was not handled yet."""
    trail: Trail | None = None


class Reasons:
    """What went wrong while one row was to be explained."""

    def __init__(self, codec: Codec, sightings: Sightings) -> None:
        self._codec, self._sightings = codec, sightings
        self._trail: Trail | None = None
        self._frozen = False
        self._failures: list[_Failure] = []
        self._wrong: list[tuple[Event, Difference, tuple[str, ...]]] = []
        self._silent: list[tuple[Event, tuple[str, ...]]] = []

    def forget(self, trail: Trail | None) -> None:
        """Another row is to be explained, after these steps."""
        self._trail = trail
        self._frozen = False
        self._failures.clear()
        self._wrong.clear()
        self._silent.clear()

    def freeze(self) -> None:
        """What comes now are attempts to explain earlier rows otherwise: less likely, and no reason to give."""
        self._frozen = True

    def stepped(self, taken: Taken, outputs: list[Visible], cause: Event, event: Event) -> None:
        """A step was tried."""
        if self._frozen:
            return
        if taken.wrong is not None:
            self._wrong.append((cause, taken.wrong, taken.done.rules))
        if not any(output.link == event.link for output in outputs):
            self._silent.append((cause, taken.done.rules))

    def failed(
        self,
        due: Due,
        seen: Event,
        event: Event,
        outputs: Iterable[Visible] = (),
        trail: Trail | None = None,
        *,
        is_early: bool = False,
    ) -> None:
        """Something else was seen than a step after ``trail`` would have done."""
        if self._frozen:
            return
        explains = event.kind in OUTPUTS and any(same(self._codec, output, event) for output in outputs)
        self._failures.append(_Failure(due, seen, explains, is_early, trail))

    def overdue(self, due: Due, event: Event) -> None:
        """Something that is due has not been seen for too long."""
        if not self._frozen:
            self._failures.append(_Failure(due, event, False))

    def are_alike(self) -> bool:
        """Whether every order that was tried differs in the same rule."""
        near = [failure for failure in self._failures if self._distance(failure, failure.seen) < 2]
        told = {self._closest(failure, "").differences[0].rule for failure in near}
        return len(told) == 1 and not self._wrong and len(near) == len(self._failures)

    def found(self, event: Event, lacking: str) -> Found:
        """The reason that came closest."""
        if event.kind not in OUTPUTS:
            return self._never_done(event, lacking)
        best = min(self._failures, key=lambda failure: self._rank(failure, event), default=None)
        near = best is not None and self._rank(best, event) < 2
        if self._wrong and not near:
            cause, difference, rules = self._wrong[0]
            return Found(cause, (difference,), rules, lacking, cause)
        if best is not None and (best.explains or near):
            return self._closest(best, lacking)
        if isinstance(frame_of(event, self._codec).body, Revoke | PermsInvalidate) and event.kind is Kind.FRAME_OUT:
            lacking = lacking or _OPERATOR
        if best is not None and best.seen is event:
            return self._closest(best, lacking)
        rules = self._likely_rules(event)
        return Found(event, (unexpected(self._codec, event, rules),), rules, lacking)

    def _never_done(self, event: Event, lacking: str) -> Found:
        if not self._failures:
            nowhere = Difference("TRACE-2", "an order that explains the rows", "none", "order")
            return Found(event, (nowhere,), (), lacking)
        due = self._failures[0].due
        difference = Comparing(self._codec, due.step).missing(due.output)
        return Found(due.cause, (difference,), due.rules, lacking, due.cause)

    def _closest(self, failure: _Failure, lacking: str) -> Found:
        due, seen = failure.due, failure.seen
        comparing = Comparing(self._codec, due.step)
        again = self._said_again(failure)
        if again is not None:
            difference = unexpected(self._codec, seen, again.rules, show_output(self._codec, due.output))
            return Found(seen, (difference,), again.rules, lacking, again.cause)
        if self._is_passed_over(due, seen):
            later = next((each for each in self._later(seen) if same(self._codec, due.output, each)), None)
            difference = comparing.missing(due.output, show_event(seen), in_turn=later is None)
            return Found(due.cause, (evolve(difference, done=later),), due.rules, lacking, due.cause)
        if self._distance(failure, seen) < 2:
            return Found(seen, tuple(comparing.different(due.output, seen)), due.rules, lacking, due.cause)
        difference = comparing.missing(due.output, show_event(seen))
        return Found(due.cause, (difference,), due.rules, lacking, due.cause)

    def _later(self, seen: Event) -> list[Event]:
        return self._sightings.outputs_after(seen)

    def _is_passed_over(self, due: Due, seen: Event) -> bool:
        """Whether what was seen instead answers a later request."""
        asked = self._asked_otherwise(due, seen)
        return asked is not None and asked.sequence > due.cause.sequence

    def _said_again(self, failure: _Failure) -> Trail | None:
        """The step that has been answered already, if what was seen answers it once more."""
        due, seen = failure.due, failure.seen
        steps = list(islice(failure.trail.back(), _RECENT)) if failure.trail is not None else []
        asked = self._asked_otherwise(due, seen)
        if asked is not None:
            return next((step for step in steps if step.cause is asked), None)
        later = self._later(seen)[:1]
        if not later or not self._is_answer(seen) or not same(self._codec, due.output, later[0]):
            return None
        here = (step for step in steps if step.cause.link == seen.link)
        return next((step for step in here if any(same(self._codec, one, seen) for one in step.outputs)), None)

    def _asked_otherwise(self, due: Due, seen: Event) -> Event | None:
        """The request that was answered instead of the one of which the answer was due."""
        output = due.output
        if not isinstance(output, Send) or not isinstance(output.frame.body, Answer) or not self._is_answer(seen):
            return None
        asked = self._sightings.asked_by(seen)
        return None if output.frame.msg_id == seen.msg_id or asked is due.cause else asked

    def _is_answer(self, seen: Event) -> bool:
        return seen.kind is Kind.FRAME_OUT and isinstance(frame_of(seen, self._codec).body, Answer)

    def _rank(self, failure: _Failure, event: Event) -> float:
        """How little a failure explains: an order that is not the likeliest explains less than any other."""
        return self._distance(failure, event) + _UNLIKELY * failure.is_early

    def _distance(self, failure: _Failure, event: Event) -> float:
        """How far what was seen is from what was due; below 2 they are the same message with a mistake in it."""
        output, seen = failure.due.output, failure.seen
        far = 5.0 - 2 * failure.explains - (seen is event)
        if not isinstance(output, Send) or seen.kind is not Kind.FRAME_OUT:
            return far
        due, done = output.frame.body, frame_of(seen, self._codec).body
        names = {getattr(body, "device_id", "") for body in (due, done)} - {""}
        if type(due) is not type(done) or len(names) > 1:
            return far
        if isinstance(due, bytes) and due != done:
            return far
        if isinstance(due, Answer) and isinstance(done, Answer):
            if done.action not in (None, due.action):
                return far
            if output.frame.msg_id == seen.msg_id:
                return 0.5
        return 1.0 if unequal_field(self._codec, output.frame, seen) != "payload" else 1.5

    def _likely_rules(self, event: Event) -> tuple[str, ...]:
        """The rules of the step that the hub may have taken wrongly."""
        asked = self._sightings.asked_by(event) if self._is_answer(event) else None
        steps = islice(self._trail.back(), _RECENT) if self._trail is not None and asked is not None else ()
        answered = next((step.rules for step in steps if step.cause is asked), None)
        if answered is not None:
            return answered
        here = [(cause, rules) for cause, rules in self._silent if cause.link == event.link]
        asking = [rules for cause, rules in here if cause.msg_id == event.msg_id and cause.kind is Kind.FRAME_IN]
        likely = asking or [rules for _, rules in here] or list(self._about_the_same(event))
        return likely[-1] if likely else ()

    def _about_the_same(self, event: Event) -> Iterator[tuple[str, ...]]:
        """The rules of what came to nothing, about the device that a frame is about."""
        device_id = self._device_in(event)
        for cause, rules in self._silent:
            if device_id and cause.kind is Kind.FRAME_IN and self._device_in(cause) == device_id:
                yield rules

    def _device_in(self, event: Event) -> str:
        return getattr(frame_of(event, self._codec).body, "device_id", "") if event.kind is not Kind.CLOSE else ""
