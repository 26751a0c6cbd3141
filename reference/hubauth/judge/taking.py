"""A row through the core: what the hub chose freely is taken from what it was seen to do."""

from collections.abc import Iterable

from attrs import evolve
from immutables import Map

from hubauth.core.credentials import is_well_formed
from hubauth.core.inputs import Input, Received, TimerFired
from hubauth.core.messages import Answer, AssistRegister, Frame, Reason, Register
from hubauth.core.model import State
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.core.recovery import after_restart
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.core.values import frozen
from hubauth.forms.events import Event, Kind
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.forms.reading import frame_of, input_of
from hubauth.judge.aliases import Aliases
from hubauth.judge.compare import UNKNOWN_CREDENTIAL, Difference
from hubauth.judge.declared import accustomed, codec_of, spoken_input
from hubauth.judge.ended import NOTHING_ENDED, Ended, having_ended
from hubauth.judge.facts import proof_of
from hubauth.wire.dialects.codec import Codec

_NO_ALIASES = Aliases()
_NONE_ISSUED: Map[str, bool] = Map()
_REGISTERING = (Register, AssistRegister)


@frozen
class Situation:
    """A hub between two rows."""

    policy: Policy
    state: State
    aliases: Aliases = _NO_ALIASES
    issued: Map[str, bool] = _NONE_ISSUED
    """Proofs of the credentials it has issued so far."""
    habits: Habits = AS_THE_RULES_SAY
    """What it is declared to do otherwise."""
    ended: Ended = NOTHING_ENDED
    """What revokes and invalidations have ended."""

    def begun_again(self) -> "Situation":
        """What is left when the hub's process has ended: no link, and nothing that was asked over one."""
        state = after_restart(self.policy, self.state)
        aliases = Aliases(numbers=self.aliases.numbers, journal=self.aliases.journal)
        return Situation(self.policy, state, aliases, self.issued, self.habits)

    @property
    def codec(self) -> Codec:
        return codec_of(self.policy, self.habits)


@frozen
class Taken:
    """A step that a row stands for."""

    happened: Input
    done: Step
    after: Situation
    wrong: Difference | None = None
    """A free choice that is not free after all."""
    skips: bool = False
    """Node ids were left out to arrive at the one that was seen."""


def take(before: Situation, event: Event, seen: Iterable[Event], frame: Frame | None = None) -> Taken:
    """Let the core take a row. ``seen`` is where to look for what the hub chose. Raises TraceError.

    ``frame`` is what the row holds, if somebody has read it by the same codec already.
    """
    read = input_of(event, before.codec) if frame is None or event.link is None else Received(event.link, frame)
    happened = spoken_input(read, before.habits)
    answer: Answer | None = None
    if isinstance(happened, Received) and isinstance(happened.frame.body, _REGISTERING):
        answer = _answer_in(seen, event, before, happened.frame.body)
        credential = answer.credential if answer is not None else ""
        happened = Received(happened.link, happened.frame, credential or UNKNOWN_CREDENTIAL)
    return _advance(before, before.aliases.translate(happened), answer)


def take_timer(before: Situation, timer: int) -> Taken:
    """Let one of the core's own timers run out."""
    return _advance(before, TimerFired(timer), None)


def _advance(before: Situation, happened: Input, answer: Answer | None) -> Taken:
    done = step(before.policy, before.state, happened)
    skips = False
    if isinstance(happened, Received) and answer is not None and answer.reason is Reason.INTERNAL:
        done = _without_credential(before, happened, done)
    elif answer is not None and "REG-2" in done.rules:
        expected, done = done, _with_node_id(before, happened, done, answer.node_id)
        skips = done is not expected
    if before.habits is not AS_THE_RULES_SAY:
        done = accustomed(before.policy, before.habits, before.state, happened, done)
    policy = done.policy
    after = before
    if policy is not before.policy or done.state is not before.state:
        aliases = before.aliases.after(done.changes)
        ended = having_ended(before.ended, happened, done)
        after = Situation(policy, done.state, aliases, before.issued, before.habits, ended)
    if answer is None or not isinstance(happened, Received):
        return Taken(happened, done, after)
    wrong, after = _check_issued(before, after, happened, done, answer)
    return Taken(happened, done, after, wrong, skips)


def answered_as(situation: Situation, cause: Event) -> int:
    """The MsgID of the answer to a row."""
    return 0 if situation.habits.answers_without_msg_id else cause.msg_id


def _answer_in(
    seen: Iterable[Event], cause: Event, before: Situation, asked: Register | AssistRegister
) -> Answer | None:
    """What a registration was answered with, if that is a success or 4500. (Later ones may have the same MsgID.)"""
    codec, action, msg_id = before.codec, asked.action, answered_as(before, cause)
    for event in seen:
        if event.link == cause.link and event.msg_id == msg_id and event.kind is Kind.FRAME_OUT:
            body = frame_of(event, codec).body
            if isinstance(body, Answer) and body.action in (None, action):
                if body.node_id if body.reason is Reason.OK else body.reason is Reason.INTERNAL:
                    return body
                if body.action is action:
                    return None
    return None


def _with_node_id(before: Situation, happened: Input, done: Step, node_id: int) -> Step:
    """Node ids increase, but need not do so by one: skip to the one that was seen."""
    if node_id <= max(before.state.next_node_id, before.policy.first_node_id):
        return done
    return step(before.policy, evolve(before.state, next_node_id=node_id), happened)


def _without_credential(before: Situation, happened: Received, done: Step) -> Step:
    """A hub that answers 4500 may have had nothing to issue: its own word is all that can be seen of that."""
    if "REG-4" not in done.rules or "REG-3" in done.rules:
        return done
    return step(before.policy, before.state, Received(happened.link, happened.frame))


def _check_issued(
    before: Situation, after: Situation, received: Received, done: Step, answer: Answer
) -> tuple[Difference | None, Situation]:
    """A credential is free, but it must be a new one of the right form."""
    body, fresh = received.frame.body, answer.credential
    assert isinstance(body, _REGISTERING)
    if "REG-4" not in done.rules or not fresh:
        return None, after
    if not is_well_formed(fresh):
        wanted, got = "a credential of 43 characters of base64url", f"one of {len(fresh)}"
        return Difference("REG-4", wanted, got, "credential"), after
    if not any(sent.credential == fresh for sent in _answers(done)):
        return None, after
    proof = proof_of(fresh)
    if proof in after.issued and not _is_its_own(before, body.device_id, fresh):
        rule = "REG-9" if "REG-9" in done.rules else "REG-4"
        wanted, got = "a credential that was never issued before", "one that was"
        return Difference(rule, wanted, got, "credential again", of_form=True), after
    return None, evolve(after, issued=after.issued.set(proof, True))


def _is_its_own(before: Situation, device_id: str, credential: str) -> bool:
    """Whether a hub may give a device this credential again, for it has it and the hub is declared to do so."""
    bound = before.state.whitelist.get(device_id)
    return before.habits.same_credential and bound is not None and bound.credential == credential


def _answers(done: Step) -> list[Answer]:
    sent = [output.frame.body for output in done.outputs if isinstance(output, Send)]
    return [body for body in sent if isinstance(body, Answer)]
