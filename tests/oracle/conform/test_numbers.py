"""Every run numbers its revokes above those before it; a clock that went back is told, and no fault of the hub."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubauth.oracle.conform import subject
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.numbers import PER_SECOND, Numbers
from hubauth.oracle.conform.results import FAILED, exit_code
from hubauth.oracle.conform.run import choose
from tests.oracle.conform.hubs import describe, in_thread, judge

TICK = 1 / PER_SECOND


class Clock:
    """Goes on when told, when somebody waits, and by ``late`` whenever it is read, as on a machine that stalls."""

    def __init__(self, now: float, late: float = 0.0) -> None:
        self.now, self.late = now, late
        self.waited = 0.0

    def time_of_day(self) -> float:
        self.now += self.late
        return self.now

    def elapsed(self) -> float:
        self.now += self.late
        return self.now - 1_800_000_000.0

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds

    def begin(self) -> Numbers:
        return Numbers(self.time_of_day, self.elapsed, self.wait)


BEGIN = st.floats(1_800_000_000.0, 1_800_000_010.0)
RUNS = st.lists(st.lists(st.floats(0.0, 3 * TICK), max_size=20).map(tuple), min_size=2, max_size=8)
"""Of every run the time that passes before each number it takes."""


@given(BEGIN, RUNS, st.lists(st.floats(0.0, 2 * TICK), min_size=8, max_size=8), st.sampled_from([0.0, TICK / 7, 2.5]))
def test_runs_that_follow_each_other_never_share_a_number(
    begin: float, runs: list[tuple[float, ...]], gaps: list[float], late: float
) -> None:
    clock = Clock(begin, late)
    taken: list[int] = []
    for pauses, gap in zip(runs, gaps, strict=False):
        numbers = clock.begin()
        for pause in pauses:
            clock.now += pause
            taken.append(numbers.take())
        clock.now += gap
    assert all(before < after for before, after in itertools.pairwise(taken))


def test_a_run_that_has_lasted_a_while_does_not_wait() -> None:
    clock = Clock(1_800_000_000.25)
    numbers = clock.begin()
    clock.now += 1.0
    assert len({numbers.take() for _ in range(PER_SECOND)}) == PER_SECOND and clock.waited == 0.0
    numbers.take()
    assert clock.waited == TICK


def test_a_clock_that_is_set_back_during_a_run_makes_no_difference_to_it() -> None:
    clock = Clock(1_800_000_000.25)
    readings = iter([clock.now, 0.0])
    numbers = Numbers(lambda: next(readings), clock.elapsed, clock.wait)
    first = numbers.take()
    assert numbers.take() == first + 1


@pytest.mark.parametrize(("role", "sequences"), [("root", 0), ("middle", 5)])
def test_a_clock_that_went_back_between_two_runs_is_told(
    role: str, sequences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = describe(role)
    cases = choose(CASES.values(), ["REG-13", "FRAME-10", *(["REV-15", "TRUST-6"] if not sequences else [])])
    with in_thread(described) as address:
        monkeypatch.setattr(subject, "Numbers", lambda: Numbers(lambda: 1_900_000_000.0))
        later = judge(address, described.profile, choose(CASES.values(), ["REV-15", "REV-2"]), sequences)
        assert exit_code(later.results) == 0
        monkeypatch.undo()
        judgement = judge(address, described.profile, cases, sequences)
    reasons = [result.reason for result in judgement.results if result.verdict == "error"] + [judgement.trouble]
    assert not [result for result in judgement.results if result.verdict == "fail"]
    assert any("remembers a higher number" in reason for reason in reasons)
    assert sequences or exit_code(judgement.results) == FAILED
