"""Names that a hub chose for itself, bound to those the core chose: MsgIDs, numbers of revokes, its journal."""

from collections.abc import Iterable
from itertools import takewhile

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import PARENT, Input, Link, Received, TimerFired
from hubauth.core.messages import Action, Answer, Authenticate, Body, Register, Revoke
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, State
from hubauth.core.ordered import EMPTY
from hubauth.core.outputs import Send
from hubauth.core.transition import Change
from hubauth.forms.events import Event
from hubauth.forms.reading import frame_of
from hubauth.judge.compare import UNKNOWN_JOURNAL, Difference, Visible, chooses_msg_id, names_itself
from hubauth.wire.dialects.codec import Codec

_UNMATCHED = 0
"""No pending request has this MsgID."""
_NUMBERS: Map[int, int] = Map()


@frozen
class Aliases:
    """The MsgIDs seen on each link -> those of the core, while the requests are pending. Equal ones are not kept."""

    of_seen: Map[tuple[Link, int], int] = field(factory=Map)
    of_core: Map[int, tuple[Link, int]] = field(factory=Map)
    numbers: Map[int, Map[int, int]] = field(factory=Map)
    """Neighbour -> the last revoke's number and those that may come again, the core's -> the one seen."""
    journal: str = ""
    """What the hub calls its own, where the core could not know it; "": it has not said."""

    @classmethod
    def of_state(cls, state: State) -> "Aliases":
        """Where a kept state says what was sent before: its numbers are those that were seen."""
        numbers = {}
        for key, neighbour in state.neighbours.items():
            sent = [neighbour.sent, *_numbers_owed(state, key)]
            numbers[key] = Map({number: number for number in sent if number})
        return cls(numbers=Map(numbers))

    def translate(self, happened: Input) -> Input:
        """The input with the core's own names for what it answers and for the hub's journal."""
        if self.journal and isinstance(happened, Received):
            happened = self._with_own_journal(happened)
        if not self.of_seen:
            return happened
        if isinstance(happened, TimerFired):
            names = [core for core, (_, seen) in self.of_core.items() if seen == happened.timer]
            if names:
                return TimerFired(names[0])
            return TimerFired(_UNMATCHED) if happened.timer in self.of_core else happened
        if isinstance(happened, Received) and isinstance(happened.frame.body, Answer):
            if happened.frame.body.action is Action.REVOKE:
                return happened  # it is passed on with the number it has
            msg_id = happened.frame.msg_id
            core = self.of_seen.get((happened.link, msg_id))
            if core is not None:
                return _answering(happened, core)
            if msg_id in self.of_core:
                return _answering(happened, _UNMATCHED)
        return happened

    def _with_own_journal(self, received: Received) -> Received:
        """Whoever names the hub's journal names what the core has as its own."""
        body = received.frame.body
        if not isinstance(body, Register | Authenticate | Answer) or body.ext is None:
            return received
        names = body.ext.journal, body.ext.peer
        journal, peer = (UNKNOWN_JOURNAL if name == self.journal else name for name in names)
        body = evolve(body, ext=evolve(body.ext, journal=journal, peer=peer))
        return Received(received.link, evolve(received.frame, body=body), received.fresh)

    def after(self, changes: Iterable[Change]) -> "Aliases":
        """Forget the names of what a step has settled, and the numbers towards a hub that begins anew."""
        of_seen, of_core, numbers = self.of_seen, self.of_core, self.numbers
        settled: dict[int, bool] = {}
        for table, key, old, new in changes:
            if table == "neighbours" and key in numbers and (new is None or old.journal != new.journal):
                numbers = numbers.delete(key)
            if table == "pending" and key in of_core:
                settled[key] = new is None  # a request that is given up is taken out and put back: the last one counts
        for core in (core for core, gone in settled.items() if gone):
            seen = of_core[core]
            of_core = of_core.delete(core)
            if of_seen.get(seen) == core:
                of_seen = of_seen.delete(seen)
        if of_core is self.of_core and numbers is self.numbers:
            return self
        return Aliases(of_seen, of_core, numbers, self.journal)

    def bind(self, send: Send, event: Event, codec: Codec, state: State) -> "Aliases | Difference":
        """Learn the names in a frame that is otherwise the expected one."""
        frame, link = send.frame, send.link
        if is_numbered(send):
            return self._bind_number(link, frame.body, frame_of(event, codec).body, state)
        bound = self
        if names_itself(frame.body):
            said = frame_of(event, codec).body
            assert isinstance(said, Register | Authenticate | Answer) and said.ext is not None
            journal = said.ext.journal
            if self.journal not in ("", journal):
                return Difference("EXT-2", f"journal {self.journal}, as before", f"journal {journal}", "journal")
            bound = evolve(self, journal=journal)
        if frame.msg_id == event.msg_id or not chooses_msg_id(frame) or frame.msg_id not in state.pending:
            return bound
        return evolve(
            bound,
            of_seen=self.of_seen.set((link, event.msg_id), frame.msg_id),
            of_core=self.of_core.set(frame.msg_id, (link, event.msg_id)),
        )

    def _bind_number(self, link: Link, due: Body, said: Body, state: State) -> "Aliases | Difference":
        """A neighbour's numbers go on wherever it connects next; what is sent again has the number it had."""
        assert isinstance(due, Revoke) and isinstance(said, Revoke)
        core, seen = due.seq, said.seq
        session = state.links.get(link)
        if session is None and link != PARENT:
            return self  # it has left since, and nothing tells who it was
        key = PARENT_NEIGHBOUR if session is None else session.node_id
        known = self.numbers.get(key, _NUMBERS)
        again, last = known.get(core), max(known.values(), default=0)
        if core - 1 > max(known, default=0):
            last = max(last, core - 1)  # the neighbour has said that it handled this one
        if again is not None and again != seen:
            return Difference("EXT-10", f"seq {again}, as before", f"seq {seen}", "seq")
        if again is None and seen <= last:
            return Difference("EXT-10", "an increasing number per neighbour", f"seq {seen} after {last}", "seq")
        owed = set(_numbers_owed(state, key))
        kept = {number: name for number, name in known.items() if number in owed or name == last}
        return evolve(self, numbers=self.numbers.set(key, Map({**kept, core: seen})))


def _numbers_owed(state: State, key: int) -> Iterable[int]:
    """What may come again with the number it had."""
    return takewhile(lambda turn: turn < FIRST_PLACE, state.index.debts.turns.get(key, EMPTY))


def is_numbered(send: Send) -> bool:
    """Whether this is a revoke with a number of its own."""
    return isinstance(send.frame.body, Revoke) and send.frame.body.seq > 0


def bind_all(
    aliases: Aliases, expected: list[Visible], seen: list[Event], codec: Codec, state: State
) -> Aliases | Difference:
    """Learn the names in a step's outputs, which are known to be the expected ones, link by link."""
    for output, event in zip(expected, seen, strict=True):
        if output.link != event.link:
            return bind_pairs(aliases, _paired(expected, seen), codec, state)
    return bind_pairs(aliases, zip(expected, seen, strict=True), codec, state)


def bind_pairs(
    aliases: Aliases, pairs: Iterable[tuple[Visible, Event]], codec: Codec, state: State
) -> Aliases | Difference:
    """Learn the names in frames beside those that were expected."""
    for output, event in pairs:
        if not isinstance(output, Send):
            continue
        if output.frame.msg_id != event.msg_id or is_numbered(output) or names_itself(output.frame.body):
            bound = aliases.bind(output, event, codec, state)
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
