"""Whoever sees the frames of one hub, and says what they show of devices. It knows nothing of how hubs decide."""

from contextlib import suppress
from typing import TypeVar

from attrs import define, field

from hubauth.core.inputs import PARENT, Link, OperatorRevoke, PolicyChanged
from hubauth.core.messages import (
    SUB_PROTO,
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    Major,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Pending, State
from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind, TraceError
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.forms.reading import frame_of, input_of
from hubauth.judge.facts import Fact, FactKind, Word, proof_of
from hubauth.wire.dialects.codec import Codec

_MOST = 256
"""Requests remembered per link: a hub that answers none makes nobody remember more."""
_REGISTERING = (Register, AssistRegister)
_SEARCHING = (AssistAuthenticate, AssistQueryCredential)
_TELLING = (Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE, Action.ASSIST_QUERY_CREDENTIAL)
_FRAME_IN, _FRAME_OUT = Kind.FRAME_IN, Kind.FRAME_OUT
_CMD = int(Major.CMD)
_Request = Register | Authenticate | AssistRegister | AssistAuthenticate | AssistQueryCredential | Revoke

_Key = TypeVar("_Key")

_BEFORE = -2
"""The row of a request that came before the first row: whoever was asked about it may have answered before, too."""


@define
class _Asked:
    """A request that the hub has not answered yet."""

    sequence: int
    frame: Frame
    body: _Request


class _Line:
    """The requests of one link that the hub has not answered, found by their numbers: many are never answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, _Asked] = {}
        """In the order in which they came."""
        self._numbered: dict[int, list[int]] = {}
        """MsgID -> which of them have it."""
        self._named: dict[str, list[int]] = {}
        """Device -> which of them are about it."""
        self._count = 0

    def add(self, asked: _Asked) -> None:
        self._waiting[self._count] = asked
        self._numbered.setdefault(asked.frame.msg_id, []).append(self._count)
        self._named.setdefault(asked.body.device_id, []).append(self._count)
        self._count += 1
        if len(self._waiting) > _MOST:
            self._take(next(iter(self._waiting)))

    def settle(self, msg_id: int, answer: Answer) -> _Asked | None:
        """The request that an answer is to: not every hub copies numbers or names actions."""
        action = answer.action
        for at in self._numbered.get(msg_id, ()):
            if action in (None, self._waiting[at].body.action):
                return self._take(at)
        for at in self._named.get(answer.device_id, ()) if answer.device_id else self._waiting:
            if action in (None, self._waiting[at].body.action):
                return self._take(at)
        return None

    def _take(self, at: int) -> _Asked:
        asked = self._waiting.pop(at)
        _strike(self._numbered, asked.frame.msg_id, at)
        _strike(self._named, asked.body.device_id, at)
        return asked


def _strike(lists: dict[_Key, list[int]], key: _Key, at: int) -> None:
    same = lists[key]
    same.remove(at)
    if not same:
        del lists[key]


@define
class _Device:
    """What was seen of a device: said once, until a revoke makes it worth saying again."""

    told: set[tuple[FactKind, int, str, int]] = field(factory=set)
    vouched_at: int = -1
    """The row at which a neighbour last told the hub of this device's credential."""
    vouched: str = ""
    """That credential's proof."""


class Witness:
    """Feed it every row of a hub in order; ``take`` gives the facts since they were taken last.

    Of what the hub is declared to do otherwise (``habits``) nothing is said.

    Whether rows are ``in_order`` in which the hub handled them: otherwise a revoke that came may be obeyed later.
    """

    def __init__(
        self, policy: Policy, codec: Codec, habits: Habits = AS_THE_RULES_SAY, *, in_order: bool = True
    ) -> None:
        self.codec, self._habits, self._in_order = codec, habits, in_order
        self._configured: frozenset[str] = frozenset()
        self._asked: dict[Link, _Line] = {}
        self._devices: dict[str, _Device] = {}
        self._facts: list[Fact] = []
        self.configured(policy)

    @classmethod
    def resumed(cls, policy: Policy, state: State, codec: Codec) -> "Witness":
        """One who comes when the hub is in this state: what it was asked before is known from that."""
        witness = cls(policy, codec)
        for pending in state.pending.values():
            body = _request_of(pending)
            if body is not None and pending.asker is not None:
                witness._line(pending.asker).add(_Asked(_BEFORE, Frame(body, msg_id=pending.msg_id), body))
        return witness

    def configured(self, policy: Policy) -> None:
        """Nothing is said of devices that some configuration of the hub has named."""
        self._configured |= {one.device_id for one in policy.provisioned} | {policy.device_id}

    def take(self) -> list[Fact]:
        facts, self._facts = self._facts, []
        return facts

    def feed(self, event: Event) -> Frame | None:
        """The next row, and the frame in it if it has come in. One that cannot be read shows nothing."""
        kind, link = event.kind, event.link
        if kind is _FRAME_IN:
            if event.sub_proto == SUB_PROTO and link is not None:
                frame = frame_of(event, self.codec)
                self.received(event.sequence, link, frame)
                return frame
        elif kind is _FRAME_OUT:
            # What a hub asks others shows nothing of devices, so only what can be an answer is read.
            if event.sub_proto == SUB_PROTO and link in self._asked and event.major != _CMD:
                self.sent(event.sequence, link, frame_of(event, self.codec))
        elif kind is Kind.LINK_DOWN or kind is Kind.CLOSE:
            self._asked.pop(link or 0, None)
        elif kind is Kind.START:
            self._asked.clear()
        elif kind in (Kind.OPERATOR, Kind.POLICY):
            with suppress(TraceError):
                happened = input_of(event, self.codec)
                if isinstance(happened, PolicyChanged):
                    self.configured(happened.policy)
                elif isinstance(happened, OperatorRevoke):
                    self.commanded(event.sequence, happened)
        return None

    def commanded(self, sequence: int, command: OperatorRevoke) -> None:
        """The operator of the hub revokes."""
        addressed = command.target != 0
        self._revoked(FactKind.REVOKED, sequence, command.revoke, -1 if addressed else sequence, addressed=addressed)

    def received(self, sequence: int, link: Link, frame: Frame) -> None:
        body = frame.body
        if isinstance(body, Answer):
            if body.reason is Reason.OK and body.action in _TELLING:
                device = self._device(body.device_id)
                device.vouched_at, device.vouched = sequence, proof_of(body.credential)
        elif isinstance(body, _Request):
            self._line(link).add(_Asked(sequence, frame, body))
            if isinstance(body, _REGISTERING):
                self._say(Fact(sequence, FactKind.ASKED, body.device_id))
            elif isinstance(body, Revoke):
                obeyed = self._in_order and link == PARENT and body.seq > 0 and frame.target == 0
                kind = FactKind.HEARD if link == PARENT else FactKind.REVOKED
                self._revoked(kind, sequence, body, sequence if obeyed else -1, addressed=frame.target != 0)

    def sent(self, sequence: int, link: Link, frame: Frame) -> None:
        body = frame.body
        if not isinstance(body, Answer):
            return
        line = self._asked.get(link)
        asked = None if line is None else line.settle(frame.msg_id, body)
        if asked is None:
            return
        request = asked.body
        if isinstance(request, Revoke):
            if body.reason is Reason.OK:
                kind = FactKind.HEARD if link == PARENT else FactKind.REVOKED
                self._revoked(kind, asked.sequence, request, sequence, addressed=asked.frame.target != 0)
        elif request.device_id in self._configured:
            return
        elif body.reason is Reason.OK:
            self._told(sequence, asked, body)
        elif isinstance(request, Authenticate) and body.reason is Reason.NOT_ADMITTED:
            self._refused(sequence, asked, request)

    def _refused(self, sequence: int, asked: _Asked, request: Authenticate) -> None:
        if request.credential and not self._habits.offline_unbinds:
            proof = proof_of(request.credential)
            self._say_once(Fact(sequence, FactKind.REFUSED, request.device_id, 0, proof, asked.sequence))

    def _told(self, sequence: int, asked: _Asked, answer: Answer) -> None:
        """The hub has answered a request about a device with a success."""
        request = asked.body
        device_id, node_id = request.device_id, answer.node_id
        device = self._device(device_id)
        registers = isinstance(request, _REGISTERING)
        credential = answer.credential if registers else getattr(request, "credential", "") or answer.credential
        proof = proof_of(credential)
        if node_id:
            self._say_once(Fact(sequence, FactKind.BOUND, device_id, node_id))
        if not proof:
            return
        passed_on = device.vouched_at > asked.sequence and device.vouched in (proof, "")
        if registers and not passed_on and not self._habits.same_credential:
            self._say(Fact(sequence, FactKind.ISSUED, device_id, node_id, proof, asked.sequence))
        if isinstance(request, _SEARCHING):
            if not passed_on:
                self._say_once(Fact(sequence, FactKind.VOUCHED, device_id, node_id, proof, asked.sequence))
        elif not isinstance(request, AssistRegister):
            word = Word.REGISTERED if registers else Word.NEIGHBOUR if passed_on else Word.OWN
            number = word.value
            self._say_once(Fact(sequence, FactKind.ADMITTED, device_id, node_id, proof, asked.sequence, number=number))

    def _line(self, link: Link) -> _Line:
        line = self._asked.get(link)
        if line is None:
            line = self._asked[link] = _Line()
        return line

    def _revoked(self, kind: FactKind, sequence: int, revoke: Revoke, until: int, *, addressed: bool) -> None:
        about = revoke.device_id, revoke.node_id, proof_of(revoke.credential)
        self._say(Fact(sequence, kind, *about, since=int(addressed), until=until, number=revoke.seq))
        self._device(revoke.device_id).told.clear()

    def _device(self, device_id: str) -> _Device:
        device = self._devices.get(device_id)
        if device is None:
            device = self._devices[device_id] = _Device()
        return device

    def _say(self, fact: Fact) -> None:
        self._facts.append(fact)

    def _say_once(self, fact: Fact) -> None:
        told = self._device(fact.device_id).told
        key = (fact.kind, fact.node_id, fact.proof, fact.number)
        if key not in told:
            told.add(key)
            self._facts.append(fact)


def _request_of(pending: Pending) -> _Request | None:
    """The request for which a hub waits for somebody."""
    device_id, credential = pending.device_id, pending.credential
    if pending.held is not None and isinstance(pending.held.body, _Request):
        return pending.held.body
    match pending.action:
        case Action.REGISTER:
            return Register(device_id)
        case Action.AUTHENTICATE:
            return Authenticate(device_id, credential)
        case Action.ASSIST_REGISTER:
            return AssistRegister(device_id)
        case Action.ASSIST_AUTHENTICATE:
            return AssistAuthenticate(device_id, credential)
        case Action.ASSIST_QUERY_CREDENTIAL:
            return AssistQueryCredential(device_id)
        case Action.REVOKE:
            return Revoke(device_id, pending.node_id, credential)
    return None
