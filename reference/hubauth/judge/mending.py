"""How a search goes on after a difference: as if the hub had been seen to do what it should have.

What differs is put right, what was not due is left out, what is missing is not waited for. What the hub evidently did
in that step is taken over, whenever the step is tried.
"""

import msgspec
from attrs import define, field

from hubauth.core.messages import Body
from hubauth.core.outputs import Close
from hubauth.forms.events import Event, Kind
from hubauth.judge.compare import (
    ORDER,
    Difference,
    Visible,
    chooses_msg_id,
    has_free_credential,
    names_itself,
    title_of,
)
from hubauth.judge.observed import Sightings
from hubauth.judge.reasons import Found
from hubauth.wire.dialects.codec import Codec


@define
class Mends:
    """What is read otherwise than it was seen."""

    _codec: Codec
    _sightings: Sightings
    _right: dict[int, Event | None] = field(factory=dict)
    """Row -> what it should have been; None: nothing."""
    _excused: set[tuple[int, int, str]] = field(factory=set)
    """What was due because of a row, on a link, and is not waited for."""
    _forgiven: dict[int, bool] = field(factory=dict)
    """Rows because of which the hub chose what it may not; whether that can be used all the same."""

    _bent: dict[int, list[Difference]] = field(factory=dict)
    """Row -> how the step that it causes was taken otherwise."""

    def bent(self, cause: Event) -> list[Difference]:
        """How the hub took the step that a row causes otherwise, as far as it was another decision."""
        return self._bent.get(cause.sequence, [])

    def reading(self, event: Event) -> Event | None:
        """A row as it is to be read; None: not at all."""
        return self._right.get(event.sequence, event)

    def excuses(self, cause: Event, output: Visible) -> bool:
        return bool(self._excused) and (cause.sequence, output.link, title_of(output)) in self._excused

    def forgives(self, cause: Event) -> bool:
        return cause.sequence in self._forgiven

    def hides(self, cause: Event) -> bool:
        """Whether what the hub chose because of a row is of no use."""
        return self._forgiven.get(cause.sequence, True) is False

    def mend(self, found: Found) -> bool:
        """Read otherwise what was found; whether anything is changed by that."""
        first, cause = found.differences[0], found.cause
        changed = self._mend(first, cause)
        if changed and cause is not None and not found.missing:
            wrong = [each for each in found.differences if not each.of_form]
            self._bent.setdefault(cause.sequence, []).extend(wrong)
        return changed

    def _mend(self, first: Difference, cause: Event | None) -> bool:
        if first.due is None and first.done is None:
            if cause is None or self.forgives(cause):
                return False
            self._forgiven[cause.sequence] = first.of_form
            return True
        is_late = first.what.startswith(ORDER)
        if first.due is not None and first.done is not None and not is_late and not self._names_itself(first.due):
            return self._put_right(first.done, first.due)
        changed = False
        if first.due is not None and cause is not None:
            key = (cause.sequence, first.due.link, title_of(first.due))
            changed = key not in self._excused
            self._excused.add(key)
        if first.done is not None:
            changed = self._leave_out(first.done) or changed
        return changed

    @staticmethod
    def _names_itself(due: Visible) -> bool:
        return not isinstance(due, Close) and names_itself(due.frame.body)

    def _leave_out(self, done: Event) -> bool:
        if done.sequence in self._right and self._right[done.sequence] is None:
            return False
        self._sightings.forget(done)
        self._right[done.sequence] = None
        return True

    def _put_right(self, done: Event, due: Visible) -> bool:
        if done.sequence in self._right:
            return self._leave_out(done)
        right = self._as_due(done, due)
        self._sightings.put_right(done, right)
        self._right[done.sequence] = right
        return True

    def _payload(self, body: Body) -> bytes:
        return body if isinstance(body, bytes) else self._codec.encode(body)

    def _as_due(self, done: Event, due: Visible) -> Event:
        if isinstance(due, Close):
            return msgspec.structs.replace(done, kind=Kind.CLOSE)
        frame = due.frame
        return msgspec.structs.replace(
            done,
            kind=Kind.FRAME_OUT,
            header=done.header or 1,
            major=int(frame.major),
            sub_proto=frame.sub_proto,
            flags=frame.flags,
            msg_id=done.msg_id if chooses_msg_id(frame) else frame.msg_id,
            source=frame.source,
            target=frame.target,
            trace_id=frame.trace_id,
            hop_limit=frame.hop_limit,
            timestamp=frame.timestamp or done.timestamp,
            payload=done.payload if has_free_credential(frame.body) else self._payload(frame.body),
        )
