"""A fault that waits for its moment in a generated trace, and is then planted in a hub, on a wire or in a log."""

from collections.abc import Callable
from random import Random

from attrs import frozen

from hubauth.core.inputs import PARENT, Input, Received
from hubauth.core.messages import Answer, AssistRegister, Register
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.transition import Step
from hubauth.forms.events import Checkpoint, Event
from hubauth.trace.world import Node, Wire, World

INNER_HUB = "hub-1"
"""Has a parent, and children in a tree of ten hubs or more."""

Outputs = tuple[Output, ...]
Rows = Callable[[Event], None]


@frozen
class Moment:
    """A step that a hub takes, before it does anything."""

    node: Node
    happened: Input
    done: Step


Bend = Callable[[Moment], Outputs | None]


@frozen
class Fault:
    """One kind of mistake."""

    about: str
    rule: str
    """The rule that a replay must name."""
    bend: Bend | None = None
    """What the hub does instead; None: not the moment."""
    tamper: Callable[[Event, Event], tuple[Event, ...] | None] | None = None
    """What stands in the log instead of two consecutive rows of a hub."""
    keep: Callable[[Checkpoint], Checkpoint | None] | None = None
    """What is kept instead of a checkpoint."""
    kept: Callable[[Node], State | None] | None = None
    """What a hub begins with that it should not have."""
    reuses_credential: bool = False
    loses_frame: bool = False
    unrecorded: bool = False
    """``INNER_HUB`` does it, again and again, and has no log: it shows at other hubs only."""
    spans: str = ""
    """The check between hubs that finds it, where every log is right in itself."""

    def plan(self, random: Random, events: int) -> "Plan":
        """To be planted somewhere in the first half of a trace."""
        return Plan(self, random.randrange(events // 8, max(events // 2, events // 8 + 1)))


class Plan:
    """A fault that waits for its moment; where it was planted, once ``done``."""

    def __init__(self, fault: Fault, after: int) -> None:
        self.fault = fault
        self.done = False
        self.hub = ""
        """The hub that the replay must accuse."""
        self.sequence = 0
        """The row around which it happens."""
        self._after = after
        self._seen = 0
        self._held: Event | None = None
        self._issued: dict[str, str] = {}

    def attach(self, world: World) -> None:
        if self.fault.bend is not None:
            world.bend = self._bend
        if self.fault.reuses_credential:
            world.bend = self._watch
            world.reuse_credential = self._issued.get
        if self.fault.loses_frame:
            world.lose = self._lose

    def kept(self, node: Node) -> State | None:
        """What a hub begins with, if that is not an empty state."""
        state = self.fault.kept(node) if self.fault.kept is not None else None
        if state is not None:
            self._planted(node.name, 0)
        return state

    def tampering(self, rows: Rows) -> Rows:
        """Between the world and whoever writes the rows."""
        if self.fault.unrecorded:
            return lambda event: None if event.hub == INNER_HUB else rows(event)
        if self.fault.tamper is None:
            return rows

        def tampered(event: Event) -> None:
            self._seen += 1
            held, tamper = self._held, self.fault.tamper
            assert tamper is not None
            if held is not None and held.hub == event.hub:
                self._held = None
                instead = tamper(held, event)
                if instead is not None:
                    self._planted(event.hub, event.sequence)
                for row in (held, event) if instead is None else instead:
                    rows(row)
                return
            if held is None and not self.done and self._seen > self._after:
                self._held = event
                return
            rows(event)

        return tampered

    def tampering_checkpoints(self, keep: Callable[[Checkpoint], None] | None) -> Callable[[Checkpoint], None] | None:
        if keep is None or (self.fault.keep is None and not self.fault.unrecorded):
            return keep
        change, write = self.fault.keep, keep
        if change is None:
            return lambda checkpoint: None if checkpoint.hub == INNER_HUB else write(checkpoint)

        def tampered(checkpoint: Checkpoint) -> None:
            if self.done:
                write(checkpoint)
                return
            self._planted(checkpoint.hub, checkpoint.sequence)
            changed = change(checkpoint)
            if changed is not None:
                write(changed)

        return tampered

    def _planted(self, hub: str, sequence: int) -> None:
        self.done, self.hub, self.sequence = True, hub, sequence

    def _bend(self, world: World, node: Node, happened: Input, done: Step) -> Outputs | None:
        assert self.fault.bend is not None
        again = self.fault.unrecorded and self.done
        if (self.done and not again) or world.count < self._after:
            return None
        instead = self.fault.bend(Moment(node, happened, done))
        if instead is not None and not again:
            self._planted(node.name, node.sequence - 1)
        return instead

    def _watch(self, world: World, node: Node, happened: Input, done: Step) -> Outputs | None:
        """See which credentials are issued; the second one for a device is the first once more."""
        if self.done or not isinstance(happened, Received) or "REG-4" not in done.rules:
            return None
        body = happened.frame.body
        if isinstance(body, Register | AssistRegister) and any(
            isinstance(sent, Answer) and sent.credential == happened.fresh for sent in sent_by(done.outputs)
        ):
            if self._issued.get(body.device_id) == happened.fresh:
                self._planted(node.name, node.sequence - 1)
                world.reuse_credential = lambda _: None
            self._issued[body.device_id] = happened.fresh
        return None

    def _lose(self, wire: Wire, event: Event) -> bool:
        self._seen += 1
        between_hubs = isinstance(wire.child, Node) and event.hub != ""
        if self.done or not between_hubs or self._seen < self._after // 8:
            return False
        receiver = wire.parent if event.link == PARENT else wire.child
        assert isinstance(receiver, Node)
        self._planted(receiver.name, receiver.sequence)
        return True


def sent_by(outputs: Outputs) -> list[object]:
    return [output.frame.body for output in outputs if isinstance(output, Send)]
