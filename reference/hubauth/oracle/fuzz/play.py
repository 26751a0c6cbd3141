"""One sequence: the same inputs for the reference and for an adapter, compared after every step.

Inputs are called as the reference calls them; the adapter is given its own names for MsgIDs and timers.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec
from attrs import frozen
from msgspec import UnsetType
from msgspec.structs import replace

from hubauth.core.canonical import encode_state
from hubauth.core.inputs import PARENT, Received
from hubauth.core.messages import Answer
from hubauth.core.model import State
from hubauth.core.policy import Policy
from hubauth.judge.verdicts import Outcome
from hubauth.oracle.compare import Comparison, Model, timer_names
from hubauth.oracle.forms import (
    InputForm,
    LinkDownForm,
    LinkUpForm,
    OutputForm,
    ReceivedForm,
    SendForm,
    TimerForm,
    policy_form,
    read_input,
)
from hubauth.oracle.fuzz.adapter import Adapter, AdapterFailed, Refused
from hubauth.wire.header import Version

JOURNAL = "journal of this hub"
_SHOWN = 6


@frozen
class Beginning:
    """Where a sequence begins: a hub that has never run."""

    policy: Policy
    version: Version = Version.V1


@frozen
class Found:
    """What the adapter did otherwise than the reference, or how it failed."""

    what: str
    """"outputs", "digest", or as in ``AdapterFailed``."""
    rules: tuple[str, ...]
    """Those to look at, the first one before the others."""
    expected: str
    seen: str
    stderr: tuple[str, ...] = ()

    @property
    def cause(self) -> tuple[str, str]:
        """What two differences that are the same mistake have in common."""
        return self.what, self.rules[0] if self.rules else ""


class Differs(Exception):
    """A step after which reference and adapter are not the same."""

    def __init__(self, found: Found) -> None:
        super().__init__(found.what)
        self.found = found


class RefusedPolicy(Exception):
    """The adapter does not claim such a hub."""


class Play:
    """The reference and the adapter, side by side, from the beginning."""

    def __init__(self, adapter: Adapter, beginning: Beginning) -> None:
        """Raises RefusedPolicy, or Differs."""
        self._adapter = adapter
        self.model = Model(beginning.policy, beginning.version, journal=JOURNAL)
        self.version = beginning.version
        self.inputs: list[InputForm] = []
        """Those that both have taken, the last one perhaps with a difference."""
        self.rules: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        """What the adapter does not claim, in its own words."""
        try:
            begun = adapter.begin(policy_form(beginning.policy), beginning.version, JOURNAL)
        except AdapterFailed as problem:
            raise Differs(failed(problem)) from None
        if isinstance(begun, Refused):
            raise RefusedPolicy(begun.error)
        self._check_digest(begun.digest, ())

    @property
    def state(self) -> State:
        return self.model.state

    @property
    def policy(self) -> Policy:
        return self.model.policy

    def happens(self, form: InputForm) -> None:
        """One input for both. What cannot happen to a hub in this state is passed over. Raises Differs."""
        if not self._can_happen(form):
            return
        said = self._as_called_there(form)
        self.inputs.append(form)
        try:
            answer = self._adapter.take(said)
        except AdapterFailed as problem:
            raise Differs(failed(problem)) from None
        if isinstance(answer, Refused):
            self.inputs.pop()
            self.refused[answer.error] += 1
            return
        compared = self.model.compare(said, answer.outputs)
        self.inputs[-1] = _with_issued(form, compared)
        self.rules.update((*compared.did.rules, *compared.did.wire_rules))
        if compared.outcome is not Outcome.CONFORMS:
            raise Differs(differing(compared, answer.outputs))
        self._check_digest(answer.digest, compared.did.rules)

    def _can_happen(self, form: InputForm) -> bool:
        links = self.state.links
        match form:
            case LinkUpForm():
                return form.link not in links and (form.link != PARENT or self.policy.has_parent)
            case LinkDownForm() | ReceivedForm():
                return form.link in links
            case TimerForm():
                names = dict(timer_names(self.state))
                return form.timer in names and list(names.values()).count(names[form.timer]) == 1
            case _:
                return True

    def _as_called_there(self, form: InputForm) -> InputForm:
        called = self.model.aliases.of_core
        if isinstance(form, TimerForm):
            name = dict(timer_names(self.state))[form.timer]
            if isinstance(name.link, UnsetType) and form.timer in called:
                return TimerForm(timer=called[form.timer][1])
            return name
        if isinstance(form, ReceivedForm) and form.header.msg_id in called:
            happened = read_input(form, self.policy.dialect)
            link, seen = called[form.header.msg_id]
            if isinstance(happened, Received) and isinstance(happened.frame.body, Answer) and link == form.link:
                return replace(form, header=replace(form.header, msg_id=seen))
        return form

    def _check_digest(self, digest: str, rules: tuple[str, ...]) -> None:
        if not digest or digest == self.model.digest:
            return
        try:
            told = self._adapter.state()
        except AdapterFailed:
            told = []
        due = encode_state(self.state).split(b"\n")
        expected = [entry for entry in due if entry not in told] if told else [self.model.digest.encode()]
        seen = [entry for entry in told if entry not in due] if told else [digest.encode()]
        raise Differs(Found("digest", rules, _some(expected), _some(seen)))


def _some(entries: list[bytes]) -> str:
    shown = [entry.decode(errors="replace") for entry in entries[:_SHOWN]]
    more = len(entries) - len(shown)
    return ", ".join(shown + [f"and {more} more"] * bool(more)) or "no entry more"


def _with_issued(form: InputForm, compared: Comparison) -> InputForm:
    """The input with the credential that the adapter has issued, if it did not take the one it was given."""
    if not isinstance(form, ReceivedForm) or not form.fresh or "REG-4" not in compared.did.rules:
        return form
    for output in compared.did.outputs:
        if isinstance(output, SendForm) and output.link == form.link and not isinstance(output.payload, UnsetType):
            data = msgspec.json.decode(output.payload)
            issued = data.get("data", data).get("credential", "")
            if issued and output.header.msg_id == form.header.msg_id:
                return replace(form, fresh=issued)
    return form


def differing(compared: Comparison, outputs: Iterable[OutputForm]) -> Found:
    """What a comparison has found."""
    difference = compared.difference
    assert difference is not None
    others = (rule for rule in compared.did.rules if rule != difference.rule)
    expected, seen = difference.expected, difference.seen
    if expected == seen:  # in words; the field is one that these leave out
        expected, seen = _as_json(compared.did.outputs), _as_json(outputs)
    return Found("outputs", (difference.rule, *others), expected, seen)


def _as_json(outputs: Iterable[OutputForm]) -> str:
    return msgspec.json.encode([one for one in outputs if isinstance(one, SendForm)]).decode()


def failed(problem: AdapterFailed) -> Found:
    """The adapter itself failed."""
    return Found(problem.what, (), "an answer", str(problem), problem.stderr)


def play_inputs(
    adapter: Adapter, beginning: Beginning, inputs: Iterable[InputForm]
) -> tuple[list[InputForm], Found | None]:
    """Play these inputs; those that were taken, and what differed after the last of them."""
    play = None
    try:
        play = Play(adapter, beginning)
        for form in inputs:
            play.happens(form)
    except RefusedPolicy:
        return [], None
    except Differs as differs:
        return play.inputs if play is not None else [], differs.found
    return play.inputs, None
