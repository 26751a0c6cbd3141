"""To which rule a difference belongs, and what it means for the case in which it was seen.

A case is about one rule. What goes wrong where the case looks is a violation of that rule. What goes wrong elsewhere
belongs to the rule that decides it: header fields, the shape of payloads, frames that accompany others, and everything
that happens while the scene is set. So one mistake of a hub is told once, and under its own name.
"""

from attrs import evolve, frozen

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Answer, AssistOffline, Body, Frame, HubDismiss, HubFence, HubOnline, Revoke
from hubauth.core.model import State
from hubauth.judge.blame import blame_for, blame_for_close, blame_unasked
from hubauth.oracle.conform.compare import NOTHING, Difference, compare, describe, describe_seen
from hubauth.oracle.conform.mirror import show_free
from hubauth.oracle.conform.profile import ChoicesTable
from hubauth.oracle.conform.wire import Seen
from hubauth.wire.dialects.codec import Codec

_ABOUT_PRESENCE = ("BIND", "OFF", "REV", "LINK", "MSG", "EXT")
"""Families whose cases look at announcements and reports too."""


@frozen
class Scene:
    """One exchange, as far as judging needs it."""

    rule: str
    """That the case is about."""
    setting: bool
    """Whether this only sets the scene."""
    cited: tuple[str, ...]
    """The rules that decided, according to the core."""
    before: State
    after: State
    sender: Link | None


@frozen
class Judged:
    """A difference under its rule. ``fatal``: the case cannot go on, since hub and mirror have parted."""

    difference: Difference
    fatal: bool

    @property
    def rule(self) -> str:
        return self.difference.rule


class Judge:
    """Finds the rule of every difference of one exchange."""

    def __init__(self, codec: Codec, choices: ChoicesTable, scene: Scene) -> None:
        self._codec, self._choices, self._scene = codec, choices, scene
        self.found: list[Judged] = []
        self._lacks_revoke = False

    def missing(self, name: str, expected: Frame) -> None:
        """Something that was due did not come."""
        body = expected.body
        if isinstance(body, HubFence) and self._lacks_revoke:
            return  # no fence without what it stands behind
        self._lacks_revoke = self._lacks_revoke or isinstance(body, Revoke)
        wanted = show_free(describe(self._codec, expected))
        rule, fatal = self._companion(body)
        self._add(Difference(f"to {name}", wanted, NOTHING, rule), body, fatal=fatal)

    def unexpected(self, name: str, link: Link, seen: Seen) -> None:
        """Something came that was not due."""
        rule = self._never(link, seen)
        self._add(Difference(f"to {name}", NOTHING, describe_seen(seen), rule), seen.frame.body, unexpected=True)

    def different(self, expected: Frame, seen: Seen) -> bool:
        """Compare two frames; whether anything is wrong."""
        differences = compare(self._codec, expected, seen, self._choices)
        for one in differences:
            self._add(one, expected.body, fatal=not one.rule or one.what == "ext")
        return any(not one.informational for one in differences)

    def order(self, name: str, expected: list[Frame], seen: list[Seen]) -> None:
        """Everything came, but not in this order."""
        wanted = "; ".join(describe(self._codec, one) for one in expected)
        got = "; ".join(describe_seen(one) for one in seen)
        self._add(Difference(f"order to {name}", wanted, got), expected[0].body)

    def other(self, difference: Difference, *, fatal: bool = False) -> None:
        """A difference whose rule is known."""
        self._add(difference, None, fatal=fatal)

    def closing(self, name: str, *, expected: bool) -> None:
        """A connection that should have been closed, or should not have been."""
        words = ("closed by the hub", "still open") if expected else ("stays open", "closed by the hub")
        difference = Difference(f"connection of {name}", *words)
        if self._scene.setting:
            difference = evolve(difference, rule=blame_for_close(self._scene.cited[::-1]))
        self._add(difference, None, fatal=True)

    def _add(self, one: Difference, body: Body | None, *, unexpected: bool = False, fatal: bool = True) -> None:
        scene = self._scene
        if body is None:
            behind = one.rule or blame_for_close(scene.cited[::-1])
        elif unexpected:
            behind = blame_unasked(body, scene.cited)
        else:
            behind = blame_for(body, scene.cited[::-1])
        if not one.rule:
            one = evolve(one, rule=behind if scene.setting and body is not None else scene.rule, behind=behind)
        self.found.append(Judged(one, fatal and not one.informational))

    def _companion(self, body: Body) -> tuple[str, bool]:
        """The rule of a frame that accompanies others, if it is one; and whether the case must end without it."""
        scene = self._scene
        if isinstance(body, HubFence):
            return "EXT-11", False
        if not isinstance(body, HubOnline | HubDismiss | AssistOffline):
            return "", True
        if scene.rule.partition("-")[0] in _ABOUT_PRESENCE and scene.rule in scene.cited:
            return "", True
        return blame_for(body, scene.cited[::-1]), False

    def _never(self, link: Link, seen: Seen) -> str:
        """What no frame may ever do, whatever the case is about."""
        body, session = seen.frame.body, self._scene.before.links.get(link)
        session = session or self._scene.after.links.get(link)
        if link == PARENT:
            return ""
        if isinstance(body, bytes):
            if link == self._scene.sender:
                return "FRAME-7"
            return "FRAME-6" if session is None and seen.frame.target == 0 else ""
        if isinstance(body, Revoke) and (session is None or not session.is_hub):
            return "REV-2"
        return ""


def is_answer(frame: Frame) -> bool:
    """Whether the MsgID is the asker's, not this hub's choice."""
    return isinstance(frame.body, Answer | bytes)
