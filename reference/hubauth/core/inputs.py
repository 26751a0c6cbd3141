"""Everything that can happen to a hub. One of these at a time goes through ``step``."""

from typing import TypeAlias

from hubauth.core.messages import Frame, PermsInvalidate, Revoke
from hubauth.core.policy import Policy
from hubauth.core.values import frozen

Link: TypeAlias = int
PARENT: Link = 0
"""The link to the parent. Child links have positive numbers, never used twice while the hub lives."""


@frozen
class LinkUp:
    """A connection is open. The link must not be up already."""

    link: Link
    hubs: tuple[int, ...] = ()
    """The hubs that never authenticate as which whoever has connected may name itself: the shell knows by ``peer``."""
    peer: str = ""
    """Where the connection comes from: the same text for the same address or certificate."""


@frozen
class LinkDown:
    """A connection is gone, noticed by this end."""

    link: Link


@frozen
class Received:
    """A frame came in. ``fresh`` is a new credential, used only if this very frame makes the hub issue one."""

    link: Link
    frame: Frame
    fresh: str = ""


@frozen
class TimerFired:
    """A timer started by an earlier step has run out."""

    timer: int


@frozen
class OperatorRevoke:
    """The operator of this hub revokes; ``target`` as in the header: 0 is everywhere."""

    revoke: Revoke
    target: int = 0


@frozen
class OperatorInvalidate:
    """The operator of this hub invalidates cached permissions."""

    invalidate: PermsInvalidate


@frozen
class PolicyChanged:
    """The configuration is replaced. If it is accepted, the step returns ``policy``, and later steps are given it."""

    policy: Policy


Input: TypeAlias = LinkUp | LinkDown | Received | TimerFired | OperatorRevoke | OperatorInvalidate | PolicyChanged
