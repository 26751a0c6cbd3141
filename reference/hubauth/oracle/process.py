"""The oracle's side of a conversation: one JSON object per line in, one per line out.

A ``Session`` is pure: lines in, lines out. Whatever a line holds, it is answered, and a line that is refused has
changed nothing.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hubauth import __version__
from hubauth.forms.policies import PolicyForm
from hubauth.judge.compare import UNKNOWN_JOURNAL
from hubauth.judge.verdicts import Outcome
from hubauth.oracle.compare import Model
from hubauth.oracle.forms import (
    Form,
    InputForm,
    Journal,
    OutputForm,
    Unsayable,
    policy_form,
    read_policy,
    read_state,
    state_form,
)
from hubauth.specification import rules as known_rules
from hubauth.wire.header import Version

MAX_LINE = 4 * 1024 * 1024
"""Bytes in a line, without its end."""

Id: TypeAlias = str | int | None
"""Whatever a request is called, its answer is called the same."""


# Requests


class Init(Form, frozen=True, kw_only=True, tag_field="do", tag="init"):
    """Begin with a hub of this policy that has never run, or in a given state."""

    id: Id = None
    policy: PolicyForm = PolicyForm()
    journal: Journal | UnsetType = UNSET
    """The hub's own, if it has never run. Empty: it does not speak the extension; left out: ``compare`` finds it."""
    state: list[Raw] | UnsetType = UNSET
    """As ``state`` answers it."""
    version: Version = Version.V1
    """The header of the frames that ``compare`` is shown: ``trace_id`` and ``hop_limit`` count in version 2 only."""


class Take(Form, frozen=True, kw_only=True, tag_field="do", tag="input"):
    """Let the reference do what it does. MsgIDs and timers are those of the reference."""

    id: Id = None
    input: InputForm


class Compare(Form, frozen=True, kw_only=True, tag_field="do", tag="compare"):
    """Judge what another hub did. MsgIDs and timers are those of that hub; a ``fresh`` credential is not looked at."""

    id: Id = None
    input: InputForm
    outputs: tuple[OutputForm, ...] = ()
    """Timers and notes may be left out; they are not compared."""
    complete: bool = True
    """False: the hub may do more than was seen so far, so that what is missing proves nothing."""


class GetState(Form, frozen=True, kw_only=True, tag_field="do", tag="state"):
    """Say the state, entry by entry."""

    id: Id = None


class Reset(Form, frozen=True, kw_only=True, tag_field="do", tag="reset"):
    """Go back to where ``init`` began."""

    id: Id = None


Request: TypeAlias = Init | Take | Compare | GetState | Reset


# Answers


class Begun(Form, frozen=True, kw_only=True, tag_field="did", tag="init"):
    id: Id = None
    hubauth: str
    """The version of the reference."""
    digest: str


class Took(Form, frozen=True, kw_only=True, tag_field="did", tag="input"):
    id: Id = None
    outputs: tuple[OutputForm, ...]
    rules: tuple[str, ...]
    digest: str


class Why(Form, frozen=True, kw_only=True):
    """What is wrong, or would be."""

    rule: str
    level: str
    text: str
    """The rule, in words."""
    basis: str
    """Where the rule comes from: lines of the documents, or a decision."""
    expected: str
    seen: str
    missing: str = ""
    """What would have to be known to tell."""


class Judged(Form, frozen=True, kw_only=True, tag_field="did", tag="compare"):
    """``conforms``: the step was taken. Else nothing has changed."""

    id: Id = None
    verdict: Outcome
    outputs: tuple[OutputForm, ...]
    """What the reference does, free choices as the other hub made them where those are free."""
    rules: tuple[str, ...]
    """Those that decided the step."""
    why: Why | UnsetType = UNSET
    digest: str


class Told(Form, frozen=True, kw_only=True, tag_field="did", tag="state"):
    id: Id = None
    policy: PolicyForm
    state: list[Raw]
    digest: str


class WentBack(Form, frozen=True, kw_only=True, tag_field="did", tag="reset"):
    id: Id = None
    digest: str


class Failed(Form, frozen=True, kw_only=True, tag_field="did", tag="error"):
    """The request was refused, and nothing has changed."""

    id: Id = None
    error: str


Response: TypeAlias = Begun | Took | Judged | Told | WentBack | Failed

_decoder = msgspec.json.Decoder(Request)
_encode = msgspec.json.Encoder().encode


class _Named(Struct):
    """As much of a bad request as can be answered to."""

    id: Id = None


class Session:
    """One conversation about one hub at a time."""

    def __init__(self) -> None:
        self._model: Model | None = None

    def answer(self, line: bytes) -> bytes:
        """The answer to a line, without a line break. Never raises."""
        try:
            request = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return _encode(Failed(id=_id_of(line), error=str(problem)))
        try:
            return _encode(self._respond(request))
        except Unsayable as problem:
            return _encode(Failed(id=request.id, error=str(problem)))
        except Exception as problem:  # a state from outside may be one that no hub gets into
            reason = f"the reference cannot go on from this state: {type(problem).__name__}"
            return _encode(Failed(id=request.id, error=reason))

    def _respond(self, request: Request) -> Response:
        if isinstance(request, Init):
            policy = read_policy(request.policy)
            state = None if isinstance(request.state, UnsetType) else read_state(policy, request.state)
            journal = UNKNOWN_JOURNAL if isinstance(request.journal, UnsetType) else request.journal
            self._model = Model(policy, request.version, state, journal)
            return Begun(id=request.id, hubauth=__version__, digest=self._model.digest)
        model = self._model
        if model is None:
            raise Unsayable("there is no hub yet: begin with init")
        match request:
            case Take():
                did = model.take(request.input)
                return Took(id=request.id, outputs=did.outputs, rules=did.rules, digest=did.digest)
            case Compare():
                return _judge(model, request)
            case GetState():
                policy_said = policy_form(model.policy)
                return Told(id=request.id, policy=policy_said, state=state_form(model.state), digest=model.digest)
            case Reset():
                model.reset()
                return WentBack(id=request.id, digest=model.digest)


def _judge(model: Model, request: Compare) -> Judged:
    found = model.compare(request.input, request.outputs, complete=request.complete)
    did = found.did
    judged = Judged(id=request.id, verdict=found.outcome, outputs=did.outputs, rules=did.rules, digest=model.digest)
    difference = found.difference
    if difference is None:
        return judged
    rule = known_rules()[difference.rule]
    missing = "" if found.outcome is Outcome.VIOLATES else "whether the hub does nothing more"
    why = Why(
        rule=rule.id,
        level=rule.level,
        text=rule.text,
        basis=rule.basis,
        expected=difference.expected,
        seen=difference.seen,
        missing=missing,
    )
    return msgspec.structs.replace(judged, why=why)


def _id_of(line: bytes) -> Id:
    try:
        return msgspec.json.decode(line, type=_Named).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class Lines:
    """Cuts a stream into lines without ever holding more than one of the longest."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | None]:
        """Every line that ``data`` completes, without its end; None for one over the limit."""
        *complete, rest = data.split(b"\n")
        for part in complete:
            yield self._take(part)
        self._hold(rest)

    def end(self) -> Iterator[bytes | None]:
        """What is left when nothing more comes: a line without an end."""
        if self._held or self._skipping:
            yield self._take(b"")

    def _take(self, part: bytes) -> bytes | None:
        self._hold(part)
        line = None if self._skipping else bytes(self._held)
        self._held.clear()
        self._skipping = False
        return line

    def _hold(self, part: bytes) -> None:
        if self._skipping or len(self._held) + len(part) > self._limit:
            self._held.clear()
            self._skipping = True
        else:
            self._held += part


def answers(session: Session, lines: Iterable[bytes | None]) -> Iterator[bytes]:
    """The answers to these lines, each with its line break. Blank lines are passed over."""
    for line in lines:
        if line is None:
            yield _encode(Failed(error=f"a line of more than {MAX_LINE} bytes")) + b"\n"
        elif line.strip():
            yield session.answer(line) + b"\n"
