"""A hub to compare with: the reference takes the same inputs, and what another hub did is held against it.

What a hub is free to choose (credentials, its journal, MsgIDs of its own requests, numbers of its revokes) is bound
from what it did, as in the replay of a trace. A step that does not conform, or cannot be judged, is not taken: it can
be tried again.
"""

from collections.abc import Iterable, Iterator

import msgspec
from attrs import evolve, frozen
from msgspec import UnsetType

from hubauth.core.canonical import digest_of
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, LinkUp, OperatorInvalidate, OperatorRevoke, PolicyChanged, TimerFired
from hubauth.core.invariants import check_state
from hubauth.core.model import TIMELESS, Purpose, State
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.forms.events import Event, Kind, encode_command, encode_origin
from hubauth.forms.policies import encode_policy
from hubauth.judge.aliases import Aliases, bind_all
from hubauth.judge.compare import UNKNOWN_JOURNAL, Difference, compare, visible
from hubauth.judge.taking import Situation, take, take_timer
from hubauth.judge.verdicts import Outcome
from hubauth.oracle.forms import (
    CloseForm,
    FrameForm,
    InputForm,
    LinkDownForm,
    LinkUpForm,
    OutputForm,
    ReceivedForm,
    SendForm,
    TimerForm,
    Unsayable,
    read_input,
)
from hubauth.oracle.vectors import StepForm, step_form
from hubauth.wire.header import Version


@frozen
class Comparison:
    """What was found; what the reference did in that step; and, unless all is well, the difference."""

    outcome: Outcome
    did: StepForm
    difference: Difference | None = None


def timer_names(state: State) -> Iterator[tuple[int, TimerForm]]:
    """The timers that run in this state, by their numbers, and what each is called by somebody with other numbers.

    A timer has the name of the request that it belongs to. Those of remembered revokes and of what is sent in batches
    belong to none that was sent, and are called by their link.
    """
    if state.announcing is not None:
        yield state.announce_timer, TimerForm(link=PARENT)
    for number, pending in state.pending.items():
        if pending.purpose is Purpose.REVOKE and pending.asker is not None:
            yield number, TimerForm(timer=pending.msg_id, link=pending.asker)
        elif pending.purpose is Purpose.PACE and pending.asked is not None:
            yield number, TimerForm(link=pending.asked)
        elif pending.purpose not in TIMELESS:
            yield number, TimerForm(timer=number)


class Model:
    """The reference as one hub, beside another one. ``version`` is the header of the other one's frames.

    Without ``state`` it has never run. A journal that is not given is whatever the other hub says.
    """

    def __init__(
        self,
        policy: Policy,
        version: Version = Version.V1,
        state: State | None = None,
        journal: str = UNKNOWN_JOURNAL,
    ) -> None:
        found = check_state(policy, state) if state is not None else ()
        if found:
            raise Unsayable(f"no hub is in such a state: {found[0]} - at `$.state`")
        self._version = version
        begun = initial_state(policy, journal) if state is None else state
        self._first = self._now = Situation(policy, begun, Aliases.of_state(begun))

    @property
    def policy(self) -> Policy:
        return self._now.policy

    @property
    def state(self) -> State:
        return self._now.state

    @property
    def aliases(self) -> Aliases:
        """What the other hub calls that which the reference calls otherwise."""
        return self._now.aliases

    @property
    def digest(self) -> str:
        return digest_of(self.state).hex()

    def reset(self) -> None:
        """Begin again."""
        self._now = self._first

    def take(self, form: InputForm) -> StepForm:
        """Let the reference take a step by itself. MsgIDs and timers are its own; a timer may be called by its link."""
        happened = self._timer_of(form) or read_input(form, self.policy.dialect)
        done = step(self.policy, self.state, happened)
        after = evolve(self._now, policy=done.policy, state=done.state)
        did = self._did(form, done)
        self._now = after
        return did

    def compare(self, form: InputForm, outputs: Iterable[OutputForm], *, complete: bool = True) -> Comparison:
        """Judge what another hub did. MsgIDs and timers are the other's; ``complete``: it will do nothing more."""
        seen = [self._row_of_output(output) for output in outputs if isinstance(output, SendForm | CloseForm)]
        timer = self._timer_of(form)
        if timer is not None:
            taken = take_timer(self._now, timer.timer)
        else:
            taken = take(self._now, self._row_of_input(form), seen)
        done, after = taken.done, taken.after
        did = self._did(form, done)
        expected = visible(done.outputs)
        found = compare(self._now.codec, done, expected, seen).differences
        difference = taken.wrong or next(iter(found), None)
        if difference is None:
            bound = bind_all(after.aliases, expected, seen, self._now.codec, done.state)
            if not isinstance(bound, Difference):
                self._now = evolve(after, aliases=bound)
                return Comparison(Outcome.CONFORMS, did)
            difference = bound
        more_may_come = not complete and len(seen) < len(expected)
        return Comparison(Outcome.CANNOT_TELL if more_may_come else Outcome.VIOLATES, did, difference)

    def _did(self, form: InputForm, done: Step) -> StepForm:
        return step_form(form, done, self.policy.dialect, digest_of(done.state).hex())

    def _timer_of(self, form: InputForm) -> TimerFired | None:
        """The timer that a form calls by its link, if it does so. Number 0 is no timer: nothing happens."""
        if not isinstance(form, TimerForm) or isinstance(form.link, UnsetType):
            return None
        return TimerFired(next((number for number, name in timer_names(self.state) if name == form), 0))

    # Rows

    def _row_of_input(self, form: InputForm) -> Event:
        match form:
            case LinkUpForm():
                origin = encode_origin(LinkUp(form.link, form.hubs, form.peer))
                return Event("", "", 0, Kind.LINK_UP, link=form.link, payload=origin)
            case LinkDownForm():
                return Event("", "", 0, Kind.LINK_DOWN, link=form.link)
            case TimerForm():
                return Event("", "", 0, Kind.TIMER, msg_id=form.timer)
            case ReceivedForm():
                return self._row_of_frame(Kind.FRAME_IN, form)
            case _:
                happened = read_input(form, self.policy.dialect)
                if isinstance(happened, PolicyChanged):
                    return Event("", "", 0, Kind.POLICY, payload=encode_policy(happened.policy))
                assert isinstance(happened, OperatorRevoke | OperatorInvalidate)
                return Event("", "", 0, Kind.OPERATOR, payload=encode_command(happened))

    def _row_of_output(self, form: OutputForm) -> Event:
        if isinstance(form, CloseForm):
            return Event("", "", 0, Kind.CLOSE, link=form.link)
        assert isinstance(form, SendForm)
        return self._row_of_frame(Kind.FRAME_OUT, form)

    def _row_of_frame(self, kind: Kind, form: FrameForm) -> Event:
        header = msgspec.structs.asdict(form.header)
        payload = form.content
        return Event("", "", 0, kind, link=form.link, header=int(self._version), **header, payload=payload)
