"""Names that a hub chose for itself, bound to those the core chose: MsgIDs of its own requests."""

from collections.abc import Iterable

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import Input, Link, LinkDown, Received, TimerFired
from hubauth.core.messages import Answer, Revoke
from hubauth.core.model import State
from hubauth.core.outputs import Send
from hubauth.trace.compare import Difference, Visible, chooses_msg_id
from hubauth.trace.events import Event

_UNMATCHED = 0
"""No pending request has this MsgID."""


@frozen
class Aliases:
    """Per link, the MsgIDs seen -> those of the core, while the requests are pending. Equal ones are not kept."""

    of_seen: Map[tuple[Link, int], int] = field(factory=Map)
    of_core: Map[tuple[Link, int], int] = field(factory=Map)
    numbers: Map[Link, tuple[int, int]] = field(factory=Map)
    """Link -> the last revoke's number, the core's and the one seen."""

    def translate(self, happened: Input) -> "tuple[Input, Aliases]":
        """The input with the core's own name for what it answers."""
        if not self.of_seen:
            return happened, self
        if isinstance(happened, LinkDown):
            return happened, self._without([key for key in self.of_seen if key[0] == happened.link])
        if isinstance(happened, TimerFired):
            names = [core for (_, seen), core in self.of_seen.items() if seen == happened.timer]
            return TimerFired(names[0]) if names else happened, self
        if isinstance(happened, Received) and isinstance(happened.frame.body, Answer):
            key = (happened.link, happened.frame.msg_id)
            core = self.of_seen.get(key)
            if core is not None:
                return _answering(happened, core), self._without([key])
            if key in self.of_core:
                return _answering(happened, _UNMATCHED), self
        return happened, self

    def bind(self, send: Send, event: Event, state: State) -> "Aliases | Difference":
        """Learn the name in a frame that is otherwise the expected one."""
        frame, link = send.frame, send.link
        if isinstance(frame.body, Revoke):
            core, seen = self.numbers.get(link, (0, 0))
            if (frame.msg_id > core) != (event.msg_id > seen):
                return Difference("REV-15", "an increasing number per neighbour", f"MsgID {event.msg_id} after {seen}")
            return evolve(self, numbers=self.numbers.set(link, (frame.msg_id, event.msg_id)))
        if frame.msg_id == event.msg_id or not chooses_msg_id(frame) or frame.msg_id not in state.pending:
            return self
        return evolve(
            self,
            of_seen=self.of_seen.set((link, event.msg_id), frame.msg_id),
            of_core=self.of_core.set((link, frame.msg_id), event.msg_id),
        )

    def _without(self, keys: list[tuple[Link, int]]) -> "Aliases":
        of_seen, of_core = self.of_seen, self.of_core
        for link, seen in keys:
            of_core = of_core.delete((link, of_seen[link, seen]))
            of_seen = of_seen.delete((link, seen))
        return evolve(self, of_seen=of_seen, of_core=of_core)


def bind_all(aliases: Aliases, expected: list[Visible], seen: list[Event], state: State) -> Aliases | Difference:
    """Learn the names in a step's outputs, which are known to be the expected ones, link by link."""
    for output, event in zip(expected, seen, strict=True):
        if output.link != event.link:
            return _bind_each(aliases, _paired(expected, seen), state)
    return _bind_each(aliases, zip(expected, seen, strict=True), state)


def _bind_each(aliases: Aliases, pairs: Iterable[tuple[Visible, Event]], state: State) -> Aliases | Difference:
    for output, event in pairs:
        if not isinstance(output, Send):
            continue
        if output.frame.msg_id != event.msg_id or isinstance(output.frame.body, Revoke):
            bound = aliases.bind(output, event, state)
            if isinstance(bound, Difference):
                return bound
            aliases = bound
    return aliases


def _answering(received: Received, msg_id: int) -> Received:
    return Received(received.link, evolve(received.frame, msg_id=msg_id), received.fresh)


def _paired(expected: list[Visible], seen: list[Event]) -> list[tuple[Visible, Event]]:
    """Both together, in the order of each link."""
    pairs: list[tuple[Visible, Event]] = []
    for link in {output.link for output in expected}:
        due = [output for output in expected if output.link == link]
        pairs += zip(due, [event for event in seen if event.link == link], strict=True)
    return pairs
