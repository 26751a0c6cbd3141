"""Random sequences against an adapter, and what they have found."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random

import msgspec
from attrs import define, field, frozen

from hubauth.core.policy import Dialect
from hubauth.oracle.forms import InputForm
from hubauth.oracle.fuzz.adapter import Adapter, AdapterFailed
from hubauth.oracle.fuzz.events import EVENTS, WEIGHTS
from hubauth.oracle.fuzz.play import JOURNAL, Beginning, Differs, Found, Play, RefusedPolicy, play_inputs
from hubauth.oracle.fuzz.policies import draw_beginning
from hubauth.oracle.fuzz.shrink import Shown, Tries, leave_out, shrink
from hubauth.oracle.fuzz.surroundings import Surroundings
from hubauth.oracle.vectors import FORMAT, VectorFile, record

AGAIN = 3
"""How often what was found is played once more."""
_DRAWN = 20
"""Sequences drawn at most for one that is played: the adapter may refuse most policies."""
_TRIES, _SHRINKING = 1000, 120.0
"""Of making one sequence shorter: how many, and seconds for all of them at most."""
_NAMES, _OFTEN = tuple(EVENTS), tuple(WEIGHTS[name] for name in EVENTS)

Happening = tuple[str, int]
"""An event, and what it draws from."""


@frozen
class Plan:
    """What to play."""

    seed: int = 0
    sequences: int = 500
    steps: int = 60
    seconds: float = 300.0
    findings: int = 3
    dialects: Sequence[Dialect] = tuple(Dialect)


@define
class Finding:
    """One mistake: the shortest sequence that shows it, and how often it was met."""

    shown: Shown
    sequence: int
    """In which it was met first."""
    step: int
    """After how many inputs, all sequences together."""
    times: int = 1
    again: int = 0
    """How often it came again, of ``AGAIN`` times that the same inputs were played by an adapter started anew."""

    @property
    def found(self) -> Found:
        return self.shown.found

    def vector(self, name: str) -> bytes:
        """What the reference does with these inputs, as a file for ``hubauth vectors run``."""
        beginning, found = self.shown.beginning, self.found
        case = record(name, beginning.policy, self.shown.inputs, journal=JOURNAL)
        comment = f"After the last step the adapter did something else ({found.what}): {found.seen}"
        file = VectorFile(format=FORMAT, comment=comment, cases=(case,))
        return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"


@define
class Fuzzed:
    """What a run came to."""

    sequences: int = 0
    steps: int = 0
    seconds: float = 0.0
    rules: Counter[str] = field(factory=Counter)
    refused_policies: Counter[str] = field(factory=Counter)
    refused_inputs: Counter[str] = field(factory=Counter)
    findings: list[Finding] = field(factory=list)


def fuzz(adapter: Adapter, plan: Plan, progress: Callable[[Fuzzed], None] = lambda _: None) -> Fuzzed:
    """Play sequences until the plan is done, the time is up, or enough was found. Raises AdapterFailed at the start."""
    begun = time.monotonic()
    run = Fuzzed()
    for number in range(plan.sequences * _DRAWN):
        if run.sequences == plan.sequences or len(run.findings) >= plan.findings:
            break
        if time.monotonic() - begun > plan.seconds:
            break
        _play_one(adapter, plan, number, run)
        run.seconds = time.monotonic() - begun
        progress(run)
    return run


def happenings(plan: Plan, number: int) -> tuple[Beginning, Iterator[Happening]]:
    """The sequence with this number: the same for the same seed, on any machine."""
    draw = Random(f"{plan.seed}/{number}")
    beginning = draw_beginning(draw, plan.dialects)
    return beginning, ((draw.choices(_NAMES, _OFTEN)[0], draw.getrandbits(32)) for _ in count())


def _play_one(adapter: Adapter, plan: Plan, number: int, run: Fuzzed) -> None:
    beginning, drawn = happenings(plan, number)
    played: list[Happening] = []
    play = None
    try:
        play = Play(adapter, beginning)
        around = Surroundings(play)
        while len(play.inputs) < plan.steps and len(played) < 4 * plan.steps:
            played.append(next(drawn))
            EVENTS[played[-1][0]](around, Random(played[-1][1]))
    except RefusedPolicy as refusal:
        run.refused_policies[str(refusal)] += 1
        return
    except Differs as differs:
        if differs.found.what == "start":
            raise AdapterFailed("start", differs.found.seen) from None
        inputs = tuple(play.inputs) if play is not None else ()
        _keep(adapter, run, Shown(beginning, inputs, differs.found), played, number)
    run.sequences += 1
    if play is not None:
        run.steps += len(play.inputs)
        run.rules += play.rules
        run.refused_inputs += play.refused


def _keep(adapter: Adapter, run: Fuzzed, shown: Shown, played: list[Happening], number: int) -> None:
    """Count a difference that is known, or make the sequence of a new one shorter."""
    for known in run.findings:
        if known.found.cause == shown.found.cause:
            known.times += 1
            return
    at = run.steps + len(shown.inputs)
    if shown.found.what != "silent":  # every try would take as long as it is waited for
        tries = Tries(_TRIES, time.monotonic() + _SHRINKING)
        shown = _with_fewer_events(adapter, shown, played, tries)
        shown = shrink(adapter, shown, tries)
    again = 0
    for _ in range(AGAIN if shown.found.what != "silent" else 1):
        adapter.stop()
        _, found = play_inputs(adapter, shown.beginning, shown.inputs)
        again += found is not None and found.cause == shown.found.cause
    run.findings.append(Finding(shown, number, at, again=again))


def _with_fewer_events(adapter: Adapter, shown: Shown, played: list[Happening], tries: Tries) -> Shown:
    """Events choose what to do by the state they meet: with some left out, the others still make sense."""
    best = shown

    def differs(fewer: Sequence[Happening]) -> bool:
        nonlocal best
        if not tries.one():
            return False
        play = None
        try:
            play = Play(adapter, shown.beginning)
            around = Surroundings(play)
            for name, source in fewer:
                EVENTS[name](around, Random(source))
        except RefusedPolicy:
            return False
        except Differs as found:
            if found.found.cause != shown.found.cause:
                return False
            inputs: tuple[InputForm, ...] = tuple(play.inputs) if play is not None else ()
            best = Shown(shown.beginning, inputs, found.found)
            return True
        return False

    leave_out(played, differs)
    return best
