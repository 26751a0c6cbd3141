"""Vectors: what a hub does, written down step by step, and how to hold the reference against them."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

import msgspec
from attrs import frozen
from msgspec import UNSET, Meta, Raw, UnsetType

from hubauth.core.canonical import advance, digest_of
from hubauth.core.indexes import initial_state
from hubauth.core.messages import Reason
from hubauth.core.model import State
from hubauth.core.outputs import NoteKind, Output, Send
from hubauth.core.policy import Dialect, Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.forms.policies import PolicyForm
from hubauth.oracle.forms import (
    Form,
    InputForm,
    Journal,
    NoteForm,
    OutputForm,
    ReceivedForm,
    SendForm,
    header_form,
    output_form,
    policy_form,
    raw_frame,
    read_input,
    read_policy,
    read_state,
    state_form,
)
from hubauth.oracle.vectors_wire import KeysCase, Reading, StreamCase, WireCase, answered
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import read_frame

FORMAT = 1
"""Of the files. A reader refuses any other."""

Digest: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]


class StepForm(Form, frozen=True, kw_only=True):
    """One input, and everything that follows from it."""

    input: InputForm
    outputs: tuple[OutputForm, ...]
    rules: tuple[str, ...]
    """Those that decided, in the order in which they did."""
    wire_rules: tuple[str, ...] = ()
    """Those by which the frames of this step are read and written."""
    digest: Digest
    """Of the state after it."""


class Case(Form, frozen=True, kw_only=True, tag_field="kind", tag="hub"):
    """A hub, step by step. Without ``state`` it is one that has never run."""

    id: str
    policy: PolicyForm
    journal: Journal | UnsetType = UNSET
    """The hub's own, where there is no ``state``; empty: it has none, and does not speak the extension."""
    state: list[Raw] | UnsetType = UNSET
    digest: Digest
    """Of the state before the first step."""
    steps: tuple[StepForm, ...]


AnyCase: TypeAlias = Case | WireCase


class VectorFile(Form, frozen=True, kw_only=True):
    """One file of vectors."""

    format: int
    comment: str = ""
    cases: tuple[AnyCase, ...]


@frozen
class Mismatch:
    """Where the reference does something else than a vector says. ``rules`` are those to look at."""

    case: str
    at: int
    """The step, from 1; 0: before the first."""
    what: str
    rules: tuple[str, ...]
    expected: Any
    seen: Any


def wire_rules(form: InputForm, outputs: tuple[Output, ...], dialect: Dialect) -> tuple[str, ...]:
    """The rules by which the frame that came in is read, and those that go out are written."""
    codec = CODECS[dialect]
    used: list[str] = []
    if isinstance(form, ReceivedForm):
        used += read_frame(codec, raw_frame(form.header, form.content)).rules
    for output in outputs:
        if isinstance(output, Send):
            body = output.frame.body
            if isinstance(body, bytes):
                used += read_frame(codec, raw_frame(header_form(output.frame), body)).rules
            else:
                used += codec.rules_for(body)
    return tuple(dict.fromkeys(used))


def step_form(form: InputForm, done: Step, dialect: Dialect, digest: str) -> StepForm:
    """A step that was taken, as a vector holds it."""
    return StepForm(
        input=form,
        outputs=tuple(output_form(output, dialect) for output in done.outputs),
        rules=done.rules,
        wire_rules=wire_rules(form, done.outputs, dialect),
        digest=digest,
    )


def record(
    case_id: str, policy: Policy, inputs: Iterable[InputForm], state: State | None = None, journal: str = ""
) -> Case:
    """The case in which the reference is given these inputs. ``state``: where it begins, if not at the beginning."""
    form, dialect = policy_form(policy), policy.dialect
    now = initial_state(policy, journal) if state is None else state
    digest = first = digest_of(now)
    steps: list[StepForm] = []
    for given in inputs:
        happened = read_input(given, dialect)
        done = step(policy, now, happened)
        digest = advance(digest, done)
        steps.append(step_form(given, done, dialect, digest.hex()))
        policy, now = done.policy, done.state
    case = Case(id=case_id, policy=form, digest=first.hex(), steps=tuple(steps))
    if state is None:
        return msgspec.structs.replace(case, journal=journal)
    return msgspec.structs.replace(case, state=state_form(state))


def begin(case: Case) -> tuple[Policy, State]:
    """The policy and state that a case begins with."""
    policy = read_policy(case.policy)
    if isinstance(case.state, UnsetType):
        return policy, initial_state(policy, case.journal or "")
    return policy, read_state(policy, case.state)


def run_case(case: AnyCase) -> Mismatch | None:
    """The first point at which the reference does not do what the case says."""
    if isinstance(case, Case):
        return _run_hub(case)
    seen = answered(case)
    if plain(seen) == plain(case):
        return None
    return Mismatch(case.id, 0, "answer", suspects(case.rules, seen.rules), plain(case), plain(seen))


def _run_hub(case: Case) -> Mismatch | None:
    policy, state = begin(case)
    digest = digest_of(state)
    if digest.hex() != case.digest:
        return Mismatch(case.id, 0, "digest", (), case.digest, digest.hex())
    for at, expected in enumerate(case.steps, 1):
        happened = read_input(expected.input, policy.dialect)
        done = step(policy, state, happened)
        digest = advance(digest, done)
        seen = step_form(expected.input, done, policy.dialect, digest.hex())
        for what in ("outputs", "rules", "wire_rules", "digest"):
            due, did = plain(getattr(expected, what)), plain(getattr(seen, what))
            if due != did:
                rules = suspects(expected.rules + expected.wire_rules, seen.rules + seen.wire_rules)
                return Mismatch(case.id, at, what, rules, due, did)
        policy, state = done.policy, done.state
    return None


def plain(forms: Any) -> Any:
    """Forms as plain JSON values, payloads included: these compare by meaning, not by bytes."""
    return msgspec.json.decode(msgspec.json.encode(forms))


def suspects(expected: tuple[str, ...], seen: tuple[str, ...]) -> tuple[str, ...]:
    """The rules behind a difference: those that decided on one side only, and the last one before the ways parted.

    If the same rules decided on both sides, it may be any of them.
    """
    if expected == seen:
        return expected
    common = next((at for at, pair in enumerate(zip(expected, seen, strict=False)) if pair[0] != pair[1]), len(seen))
    found = [rule for rule in expected if rule not in seen]
    found += expected[max(0, common - 1) : common]
    found += [rule for rule in seen if rule not in expected]
    return tuple(dict.fromkeys(found))


# Which case is about what


def dialects_of(case: AnyCase) -> tuple[str, ...]:
    """The dialects that a case is about: all of them where it does not depend on one."""
    if isinstance(case, StreamCase | KeysCase):
        return tuple(dialect.value for dialect in Dialect)
    return (case.policy.dialect.value if isinstance(case, Case) else case.dialect.value,)


def decisions(case: AnyCase) -> Iterable[tuple[str, bool]]:
    """(rule, whether what came in was refused or ignored) for everything that a rule decides in a case."""
    match case:
        case Case():
            for one in case.steps:
                yield from ((rule, refuses(one)) for rule in (*one.rules, *one.wire_rules))
        case StreamCase():
            yield from ((rule, rule == case.refused) for rule in case.rules)
        case KeysCase():
            yield from ((rule, bool(case.problems)) for rule in case.rules)
        case _:
            yield from ((rule, case.reads is Reading.MALFORMED) for rule in case.rules)


def refuses(one: StepForm) -> bool:
    """Whether the hub refuses or ignores what happened. (What LINK-10 refuses came in earlier.)"""
    return "LINK-10" not in one.rules and any(
        (isinstance(output, SendForm) and output.reason is not Reason.OK)
        or (isinstance(output, NoteForm) and output.note not in (NoteKind.DELIVERED, NoteKind.UNCONFIRMED))
        for output in one.outputs
    )


class Shown(Form, frozen=True, kw_only=True):
    """How many cases show a rule in a dialect, and the shortest of them."""

    accepted: int = 0
    refused: int = 0
    accepting: tuple[str, ...] = ()
    refusing: tuple[str, ...] = ()


Index: TypeAlias = dict[str, dict[str, Shown]]
"""rule -> dialect -> cases"""

_SHORTEST = 3


def index_of(cases: Iterable[AnyCase]) -> Index:
    """Which cases show which rule, in the order of the rules' names."""
    found: dict[tuple[str, str], tuple[set[tuple[int, str]], set[tuple[int, str]]]] = {}
    for case in cases:
        length = len(case.steps) if isinstance(case, Case) else 1
        for rule, refused in decisions(case):
            for dialect in dialects_of(case):
                found.setdefault((rule, dialect), (set(), set()))[refused].add((length, case.id))
    index: Index = {}
    for (rule, dialect), (accepting, refusing) in sorted(found.items(), key=lambda item: _by_number(item[0])):
        index.setdefault(rule, {})[dialect] = Shown(
            accepted=len(accepting),
            refused=len(refusing),
            accepting=tuple(name for _, name in sorted(accepting)[:_SHORTEST]),
            refusing=tuple(name for _, name in sorted(refusing)[:_SHORTEST]),
        )
    return index


def _by_number(key: tuple[str, str]) -> tuple[str, int, str]:
    family, _, number = key[0].partition("-")
    return family, int(number), key[1]
