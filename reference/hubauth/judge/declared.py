"""Declared deviations: what the core would do if it had the habits of the hub that is judged.

What a hub is declared to do otherwise becomes what is expected of it, or is not looked at. So nothing of it is found,
and everything behind it is.
"""

from typing import Any

import msgspec
from attrs import evolve

from hubauth.core.inputs import Input, Link, PolicyChanged, Received
from hubauth.core.messages import SUB_PROTO, Answer, Frame, Major, Offline
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Dialect, Policy
from hubauth.core.routing import lower_hop_limit
from hubauth.core.transition import Step, Transition
from hubauth.forms.events import Event, Kind
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.wire.dialects import CODECS, LOGIN_AND_PERMS
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.dialects.fields import Outcome
from hubauth.wire.dialects.nested import answer_word

SECOND = 1_000_000
_ROWS_OF_A_SECOND = 64
"""The same in rows, where they have no time."""
_CODECS = {dialect.value: codec for dialect, codec in CODECS.items()}
"""By name: the hash of an enum's member costs more than all else here."""


def codec_of(policy: Policy, habits: Habits) -> Codec:
    """How the hub speaks. (Under ``perms`` the core takes its policy for one of ``auth``: see ``spoken``.)"""
    return LOGIN_AND_PERMS if habits.perms else _CODECS[policy.dialect._value_]


def spoken(policy: Policy, habits: Habits) -> Policy:
    """The policy by which the core decides: ``login`` with permissions is ``auth`` in other words."""
    if habits.perms and policy.dialect is Dialect.LOGIN:
        return evolve(policy, dialect=Dialect.AUTH)
    return policy


def spoken_input(happened: Input, habits: Habits) -> Input:
    """Likewise for a policy that comes later."""
    return PolicyChanged(spoken(happened.policy, habits)) if isinstance(happened, PolicyChanged) else happened


def accustomed(policy: Policy, habits: Habits, before: State, happened: Input, done: Step) -> Step:
    """The step as a hub with these habits takes it."""
    if habits is AS_THE_RULES_SAY or not isinstance(happened, Received):
        return _answering(habits, before, done)
    if habits.strangers_hear_broadcasts and "FRAME-6" in done.rules:
        done = _telling_strangers(before, happened.link, happened.frame, done)
    if habits.offline_unbinds and "OFF-1" in done.rules and isinstance(happened.frame.body, Offline):
        done = _unbinding(policy, happened.frame.body.device_id, done)
    return _answering(habits, before, done)


def _answering(habits: Habits, before: State, done: Step) -> Step:
    if not (habits.answers_without_msg_id or habits.refusals_as_ok) or not done.outputs:
        return done
    return evolve(done, outputs=tuple(_answer(habits, before.node_id, output) for output in done.outputs))


def _answer(habits: Habits, own: int, output: Output) -> Output:
    if not isinstance(output, Send) or not isinstance(output.frame.body, Answer) or output.frame.source != own:
        return output
    frame = output.frame
    if habits.answers_without_msg_id:
        frame = evolve(frame, msg_id=0)
    if habits.refusals_as_ok:
        frame = evolve(frame, major=Major.OK_RESP)
    return Send(output.link, frame)


def _telling_strangers(before: State, came_from: Link, frame: Frame, done: Step) -> Step:
    hops = lower_hop_limit(frame)
    strangers = sorted(link for link, session in before.links.items() if session is None and link != came_from)
    if hops is None or not strangers:
        return done
    copies = tuple(Send(link, evolve(frame, hop_limit=hops)) for link in strangers)
    marks = (*done.marks, *(len(done.cited) for _ in copies))
    return evolve(done, outputs=(*done.outputs, *copies), marks=marks)


def _unbinding(policy: Policy, device_id: str, done: Step) -> Step:
    if device_id not in done.state.whitelist or policy.is_provisioned(device_id):
        return done
    t = Transition(policy, done.state)
    t.delete_entry(device_id)
    ended = t.finish()
    return evolve(done, state=ended.state, changes=(*done.changes, *ended.changes))


class Reading:
    """Reads the rows of a hub with declared habits: what is not looked at, and what came in a crowd."""

    def __init__(self, habits: Habits, codec: Codec, own: int) -> None:
        self._habits, self._own = habits, own
        self._kept = {answer_word(form.word): _names(form.failure) for form in codec.forms}
        self._is_nested = codec.answer_rule == "MSG-1"
        self._came: dict[Link, list[Event]] = {}
        self._crowded: set[int] = set()

    def read(self, event: Event) -> Event | None:
        """The row as it is to be judged; None: not at all."""
        habits = self._habits
        if event.kind is Kind.FRAME_IN and habits.burst:
            self._count(event)
        if event.kind is not Kind.FRAME_OUT:
            return event
        if event.sub_proto in habits.serves and event.source == self._own:
            return None
        if habits.extra_fields and event.sub_proto == SUB_PROTO:
            return self._without_extra_fields(event)
        return event

    def may_drop(self, cause: Event) -> bool:
        """Whether the hub may have dropped a frame, because too many came at once."""
        return cause.sequence in self._crowded

    def _count(self, event: Event) -> None:
        came = [other for other in self._came.get(event.link or 0, ()) if _is_recent(other, event)]
        self._came[event.link or 0] = [*came, event]
        if len(came) >= self._habits.burst:
            self._crowded.add(event.sequence)

    def _without_extra_fields(self, event: Event) -> Event:
        try:
            said = msgspec.json.decode(event.payload)
            fields: dict[str, Any] = said["data"] if self._is_nested else said
            if fields["code"] == 1 or (self._is_nested and said["action"] not in self._kept):
                return event
            kept = self._kept[said["action"]] if self._is_nested else _names(Outcome)
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
            return event
        if fields.keys() <= kept:
            return event
        fields = {name: value for name, value in fields.items() if name in kept}
        payload = msgspec.json.encode({**said, "data": fields} if self._is_nested else fields)
        return msgspec.structs.replace(event, payload=payload)


def _names(fields: type[Outcome]) -> frozenset[str]:
    return frozenset(fields.__struct_fields__)


def _is_recent(other: Event, event: Event) -> bool:
    if other.time and event.time:
        return event.time - other.time < SECOND
    return event.sequence - other.sequence < _ROWS_OF_A_SECOND
