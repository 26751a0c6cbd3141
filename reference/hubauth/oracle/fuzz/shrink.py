"""A sequence that shows a difference, made as short as it can be made in a while."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import define, evolve, fields, frozen

from hubauth.core.policy import Policy
from hubauth.oracle.forms import InputForm
from hubauth.oracle.fuzz.adapter import Adapter
from hubauth.oracle.fuzz.play import Beginning, Found, play_inputs

_Item = TypeVar("_Item")
_KEPT = ("dialect", "has_parent")
"""What a hub is: with another one, the inputs mean something else."""


@frozen
class Shown:
    """A sequence, and what differs after the last of its inputs."""

    beginning: Beginning
    inputs: tuple[InputForm, ...]
    found: Found


def leave_out(items: Sequence[_Item], still: Callable[[Sequence[_Item]], bool]) -> Sequence[_Item]:
    """As few of the items as will do, left out many at once and then one by one, the last ones first."""
    size = max(1, len(items) // 2)
    while size:
        at = len(items)
        while at > 0:
            fewer = [*items[: max(0, at - size)], *items[at:]]
            if still(fewer):
                items = fewer
            at -= size
        size //= 2
    return items


@define
class Tries:
    """How often something shorter is tried: so many times, the same on any machine, unless that takes far too long."""

    left: int
    until: float

    def one(self) -> bool:
        """Whether one more is allowed."""
        self.left -= 1
        return self.left >= 0 and time.monotonic() < self.until


def shrink(adapter: Adapter, shown: Shown, tries: Tries) -> Shown:
    """The shortest sequence with the same difference that was found, with the simplest policy."""
    best = shown

    def differs(beginning: Beginning, inputs: Sequence[InputForm]) -> bool:
        nonlocal best
        if not tries.one():
            return False
        taken, found = play_inputs(adapter, beginning, inputs)
        if found is None or found.cause != shown.found.cause:
            return False
        best = Shown(beginning, tuple(taken), found)
        return True

    before = None
    while before != (len(best.inputs), best.beginning):
        before = len(best.inputs), best.beginning
        leave_out(best.inputs, lambda inputs: differs(best.beginning, inputs))
        for name in _unusual(best.beginning.policy):
            policy = evolve(best.beginning.policy, **{name: getattr(_USUAL, name)})
            differs(evolve(best.beginning, policy=policy), best.inputs)
    return best


_USUAL = Policy()


def _unusual(policy: Policy) -> list[str]:
    names = [attribute.name for attribute in fields(Policy) if attribute.name not in _KEPT]
    return [name for name in names if getattr(policy, name) != getattr(_USUAL, name)]
