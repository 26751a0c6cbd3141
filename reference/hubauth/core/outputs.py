"""What a step asks the world to do, in this order."""

from enum import Enum
from typing import TypeAlias

from hubauth.core.inputs import Link
from hubauth.core.messages import Frame, Reason
from hubauth.core.values import frozen


class NoteKind(Enum):
    """Why a note was written for the audit log."""

    DROPPED = "dropped"
    """A frame went nowhere."""
    DELIVERED = "delivered"
    """A frame of another sub-protocol has reached this hub."""
    REFUSED_BY_PARENT = "refused_by_parent"
    POLICY_REFUSED = "policy_refused"
    COMMAND_REFUSED = "command_refused"
    """What this hub's own operator wanted cannot be done."""
    UNCONFIRMED = "unconfirmed"
    """A neighbouring hub cannot say whether it has heard of a revoke, or was not told."""


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


@frozen
class Tell:
    """Tell this hub's own operator what ``hub`` has answered to a revoke. Holds no credential."""

    hub: int
    device_id: str
    node_id: int
    reason: Reason


Output: TypeAlias = Send | Close | StartTimer | CancelTimer | Note | Tell
