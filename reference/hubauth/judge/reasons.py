"""Why no order explains what was seen: of all attempts that failed, the one that came closest."""

from attrs import frozen

from hubauth.core.messages import Answer, PermsInvalidate, Revoke
from hubauth.core.outputs import Send
from hubauth.forms.events import OUTPUTS, Event, Kind
from hubauth.forms.reading import frame_of
from hubauth.judge.compare import Comparing, Difference, Visible, same, show_event, unequal_field, unexpected
from hubauth.judge.observed import Due
from hubauth.judge.taking import Situation, Taken
from hubauth.wire.dialects.codec import Codec

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


class Reasons:
    """What went wrong while one row was to be explained."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._frozen = False
        self._failures: list[_Failure] = []
        self._wrong: list[tuple[Event, Difference, tuple[str, ...]]] = []
        self._silent: list[tuple[Event, tuple[str, ...]]] = []

    def forget(self) -> None:
        """Another row is to be explained."""
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

    def failed(self, due: Due, seen: Event, outputs: list[Visible], event: Event) -> None:
        """Something else was seen than a step would have done."""
        if self._frozen:
            return
        explains = event.kind in OUTPUTS and any(same(self._codec, output, event) for output in outputs)
        self._failures.append(_Failure(due, seen, explains))

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
        best = min(self._failures, key=lambda failure: self._distance(failure, event), default=None)
        near = best is not None and self._distance(best, event) < 2
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
        if self._distance(failure, seen) < 2:
            differences = comparing.different(due.output, seen)
        else:
            differences = [comparing.missing(due.output, show_event(seen))]
        return Found(seen, tuple(differences), due.rules, lacking, due.cause)

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
        here = [(cause, rules) for cause, rules in self._silent if cause.link == event.link]
        asking = [rules for cause, rules in here if cause.msg_id == event.msg_id and cause.kind is Kind.FRAME_IN]
        return asking[-1] if asking else here[-1][1] if here else ()
