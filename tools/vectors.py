"""Renders ``spec/vectors/``: what the hubs of the tests in core and network did, each as a case of its own.

A test that fails in the dialect it was written for yields no vectors but an error. It is then run again with hubs that
speak the other dialects: where all it asserts holds there too, it yields vectors in that dialect as well. A case that
a dialect has no words for is left out of it.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache

import msgspec
from attrs import define, evolve, field

from hubauth.core.canonical import advance, digest_of
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Body, Malformed
from hubauth.core.model import State
from hubauth.core.policy import Dialect, Policy
from hubauth.core.transition import Step
from hubauth.lab import hub as lab_hub
from hubauth.lab import story as lab_story
from hubauth.lab.tree import Happened
from hubauth.lab.wire_cases import WIRE_CASES
from hubauth.oracle.forms import Unsayable, input_form, read_policy
from hubauth.oracle.vectors import FORMAT, AnyCase, Case, VectorFile, index_of, record, step_form
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import Codec, NotInDialect
from hubauth.wire.dialects.nested import answer_word
from tools import vector_schemas
from tools.generate import stale_files, write_files
from tools.plain_tests import plain_tests

FOLDER = "spec/vectors"
NOT_ABOUT_THE_PROTOCOL = ("test_canonical", "test_invariants", "test_transition")
"""Tests of the machinery: their hubs are put into states that no hub gets into."""

Found = dict[str, list[AnyCase]]
"""Cases by file."""


class CannotSay(Exception):
    """What reaches the core in this test is not what would reach it over the wire."""


@define
class VectorRecord:
    """What one hub of a test did."""

    name: str
    policy: Policy
    state: State
    steps: list[tuple[Input, Step]] = field(factory=list)

    @property
    def reached(self) -> State:
        return self.steps[-1][1].state if self.steps else self.state


class VectorRecorder:
    """Hears every step of one test. A hub whose state the test has changed by hand is another hub from there on."""

    def __init__(self) -> None:
        self.records: list[VectorRecord] = []
        self._current: list[tuple[object, VectorRecord]] = []

    def hears(self, owner: object, name: str, policy: Policy, before: State, happened: Input, done: Step) -> None:
        made = next((one for of, one in self._current if of is owner and one.name == name), None)
        if made is None or made.reached is not before:
            self._current = [(of, one) for of, one in self._current if one is not made]
            made = VectorRecord(name, policy, before)
            self._current.append((owner, made))
            self.records.append(made)
        made.steps.append((happened, done))

    def hears_hub(self, hub: lab_hub.Hub, happened: Input, done: Step) -> None:
        self.hears(hub, "", hub.policy, hub.before, happened, done)

    def hears_story(self, story: lab_story.Story, one: Happened) -> None:
        self.hears(story, one.hub, one.policy, one.before, one.input, one.step)


def recorded(test: Callable[[], None], dialect: Dialect) -> list[VectorRecord]:
    """What the hubs of a test did, of those that speak the dialect. Raises what the test raises."""
    recorder = VectorRecorder()
    lab_hub.LISTENERS.append(recorder.hears_hub)
    lab_story.LISTENERS.append(recorder.hears_story)
    lab_hub.DEFAULT_DIALECT[0] = dialect
    try:
        test()
    finally:
        lab_hub.LISTENERS.clear()
        lab_story.LISTENERS.clear()
        lab_hub.DEFAULT_DIALECT[0] = Dialect.AUTH
    return [made for made in recorder.records if made.policy.dialect is dialect]


# From a record to a case


def case_of(case_id: str, made: VectorRecord) -> Case:
    """The case, if every frame means the same after it has been written and read."""
    policy, dialect = made.policy, made.policy.dialect
    inputs = [input_form(_usual(happened, was), _payload(CODECS[dialect], happened)) for happened, was in made.steps]
    journal = made.state.journal
    begins = None if made.state == initial_state(policy, journal) else made.state
    case = record(case_id, policy, inputs, begins, journal)
    digest = digest_of(made.state)
    for one, (_, was) in zip(case.steps, made.steps, strict=True):
        digest = advance(digest, was)
        if one != step_form(one.input, was, dialect, digest.hex()):
            raise CannotSay(case_id)
    if read_policy(case.policy) != policy:
        raise CannotSay(case_id)
    return case


def _usual(happened: Input, done: Step) -> Input:
    """The input without a fresh credential that nothing was decided by."""
    if isinstance(happened, Received) and "REG-4" not in done.rules:
        return evolve(happened, fresh="")
    return happened


def _payload(codec: Codec, happened: Input) -> bytes:
    return _said(codec, happened.frame.body) if isinstance(happened, Received) else b""


def _said(codec: Codec, body: Body) -> bytes:
    """The payload that reads as ``body``."""
    if isinstance(body, bytes):
        return body
    if not isinstance(body, Malformed):
        return codec.encode(body)
    if body.action is None:
        return b"{"
    words = [form.word for form in codec.forms if form.action is body.action]
    if not words:
        raise NotInDialect(body.action.value)
    word = answer_word(words[0]) if body.is_answer else words[0]
    return msgspec.json.encode({"action": word, "data": None})


# All cases


def found_cases() -> Found:
    """Every case by its file, without those that another one repeats or begins with."""
    found: Found = {}
    for dialect in Dialect:
        cases = without_repetition(list(_cases_in(dialect)))
        for case in cases:
            found.setdefault(case.id.rpartition("/")[0], []).append(case)
    return found


def _cases_in(dialect: Dialect) -> Iterator[Case]:
    for folder in ("core", "network"):
        for name, test in plain_tests(folder):
            module, _, function = name.partition(".")
            if module in NOT_ABOUT_THE_PROTOCOL:
                continue
            try:
                records = recorded(test, dialect)
            except Exception:
                if dialect is Dialect.AUTH:
                    raise
                continue
            stem = f"{dialect.value}/{module.removeprefix('test_')}/{function.removeprefix('test_')}"
            counts: dict[str, int] = {}
            for made in records:
                counts[made.name] = counts.get(made.name, 0) + 1
                at = f"@{made.name}" if made.name else ""
                number = f"-{counts[made.name]}" if counts[made.name] > 1 else ""
                try:
                    yield case_of(f"{stem}{at}{number}", made)
                except (CannotSay, NotInDialect, Unsayable):
                    continue


def without_repetition(cases: list[Case]) -> list[Case]:
    """The cases that are not the beginning of another one, in their order."""
    by_inputs: dict[bytes, Case] = {}
    for case in cases:
        lines = [msgspec.json.encode((case.policy, case.digest)), *(msgspec.json.encode(one) for one in case.steps)]
        by_inputs.setdefault(b"\n".join([*lines, b""]), case)
    ordered = sorted(by_inputs)
    kept = {
        by_inputs[this].id
        for this, following in zip(ordered, [*ordered[1:], b""], strict=True)
        if not following.startswith(this)
    }
    return [case for case in cases if case.id in kept]


# Files

COMMENT = "Generated by tools/vectors.py from the tests; rewrite it with `make vectors`. README.md says what it means."


@cache
def rendered() -> dict[str, str]:
    found = found_cases()
    for case in WIRE_CASES:
        found.setdefault(case.id.rpartition("/")[0], []).append(case)
    files = {f"{FOLDER}/{name}.json": _file(cases) for name, cases in found.items()}
    index = index_of(case for cases in found.values() for case in cases)
    content = msgspec.json.encode({"format": FORMAT, "comment": COMMENT, "rules": index})
    files |= {f"{FOLDER}/{name}": content for name, content in vector_schemas.render().items()}
    files[f"{FOLDER}/index.json"] = msgspec.json.format(content, indent=1).decode() + "\n"
    return files


def render() -> dict[str, str]:
    """Path below the repository -> content."""
    return dict(rendered())


def _file(cases: list[AnyCase]) -> str:
    """One line per step: a difference shows where it is."""
    head = msgspec.json.encode(VectorFile(format=FORMAT, comment=COMMENT, cases=())).decode()
    return head.removesuffix("]}") + "\n" + ",\n".join(map(_lines, cases)) + "\n]}\n"


def _lines(case: AnyCase) -> str:
    if not isinstance(case, Case):
        return msgspec.json.encode(case).decode()
    head = msgspec.json.encode(msgspec.structs.replace(case, steps=())).decode()
    steps = ",\n".join(msgspec.json.encode(one).decode() for one in case.steps)
    return head.removesuffix("]}") + "\n" + steps + "\n]}"


def main() -> int:
    """``make vectors``."""
    files = render()
    for path in write_files(files):
        print(f"wrote {path}")
    size = sum(len(content) for content in files.values())
    print(f"{len(files)} files, {size / 1e6:.1f} MB")
    return 1 if stale_files(files) else 0


if __name__ == "__main__":
    sys.exit(main())
