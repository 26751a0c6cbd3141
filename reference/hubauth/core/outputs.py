"""What a step asks the world to do, in this order."""

from enum import Enum
from typing import TypeAlias

from hubauth.core.inputs import Link
from hubauth.core.messages import Frame
from hubauth.core.values import frozen


class NoteKind(Enum):
    """Why a note was written for the audit log."""

    DROPPED = "dropped"
    """A frame went nowhere."""
    DELIVERED = "delivered"
    """A frame of another sub-protocol has reached this hub."""
    REFUSED_BY_PARENT = "refused_by_parent"
    POLICY_REFUSED = "policy_refused"
    OPERATOR_ANSWER = "operator_answer"
    """An answer to this hub's own operator."""


@frozen
class Send:
    """Write a frame to a link."""

    link: Link
    frame: Frame


@frozen
class Close:
    """Close a link after what was sent before. The hub has forgotten it already."""

    link: Link


@frozen
class StartTimer:
    """Feed ``TimerFired(timer)`` after ``seconds``, unless cancelled."""

    timer: int
    seconds: float


@frozen
class CancelTimer:
    timer: int


@frozen
class Note:
    """A line for the audit log. ``rule`` says which rule made the decision. Never holds a credential."""

    kind: NoteKind
    rule: str
    detail: str
    link: Link | None = None


Output: TypeAlias = Send | Close | StartTimer | CancelTimer | Note
