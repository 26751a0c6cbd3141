"""On a machine that stalls, a hub's timers run out where nobody meant them to: that is no verdict about the hub."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from attrs import evolve

from hubauth.core.inputs import Input, Received, TimerFired
from hubauth.core.messages import Action, Answer, Frame, GetPerms, Major, Reason
from hubauth.core.model import State
from hubauth.core.outputs import StartTimer
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.ear import Ear
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.run import play, prepare
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Patience, Seen, Wire
from hubauth.shell import engine
from hubauth.shell.addresses import parse_address
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import encode_frame
from hubauth.wire.header import Version
from tests.oracle.conform.hubs import describe, in_thread

TOO_LONG = describe("child").profile.limits.request_seconds + 0.2


@contextmanager
def judged() -> Iterator[Subject]:
    described = describe("child")
    with in_thread(described) as address, Subject(*address, described.profile, Version.V1) as subject:
        assert described.profile.parent is not None
        subject.listen(*parse_address(described.profile.parent.listen))
        subject.join()
        prepare(subject, Version.V1)
        yield subject


def stall(monkeypatch: pytest.MonkeyPatch, times: int) -> list[float]:
    """Let the parent think for too long before it answers a registration, so many times."""
    stalled: list[float] = []
    right = Subject.fresh_node

    def slow(subject: Subject) -> int:
        if len(stalled) < times:
            stalled.append(time.monotonic())
            time.sleep(TOO_LONG)
        return right(subject)

    monkeypatch.setattr(Subject, "fresh_node", slow)
    return stalled


def test_a_case_that_took_too_long_is_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with judged() as subject:
        stalled = stall(monkeypatch, 1)
        played = play(subject, CASES["REG-6"])
    assert len(stalled) == 1
    assert (played.verdict, played.aside) == ("pass", ())


def test_a_case_that_always_takes_too_long_is_no_failure_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    with judged() as subject:
        stalled = stall(monkeypatch, 100)
        played = play(subject, CASES["REG-6"])
    assert len(stalled) == 3
    assert (played.verdict, played.aside) == ("error", ())
    assert "request_seconds is too short" in played.reason


def test_a_connection_that_the_hub_gave_up_while_it_waited_is_not_taken() -> None:
    with judged() as subject:
        assert subject.parent is not None
        subject.parent.close()
        time.sleep(TOO_LONG)  # unaccepted, the hub's next connection runs out of time, and another one follows
        subject.join()
        assert play(subject, CASES["LINK-6"]).verdict == "pass"


def test_a_timer_that_ran_out_while_this_tool_listened_is_no_failure_of_the_hub(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stalled: list[float] = []
    right = Ear._keep

    def slow(ear: Ear, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        right(ear, peer, seen, into)
        if not stalled and isinstance(seen.frame.body, GetPerms):
            stalled.append(time.monotonic())
            time.sleep(TOO_LONG)

    monkeypatch.setattr(Ear, "_keep", slow)
    with judged() as subject:
        played = play(subject, CASES["PERM-2"])
    assert len(stalled) == 1
    assert (played.verdict, played.aside) == ("pass", ())


def late_reader(stalled: list[float]) -> Callable[[Policy, State, Input], Step]:
    """A right hub that was stopped while its parent's answer lay there: its timer comes first, once."""
    timers: list[int] = []

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        body = happened.frame.body if isinstance(happened, Received) else None
        if isinstance(body, Answer) and body.action is Action.ASSIST_REGISTER and not stalled:
            stalled.append(time.monotonic())
            time.sleep(TOO_LONG)
            fired = step(policy, state, TimerFired(timers[-1]))
            done = step(policy, fired.state, happened)
            return evolve(done, outputs=fired.outputs + done.outputs)
        done = step(policy, state, happened)
        timers.extend(output.timer for output in done.outputs if isinstance(output, StartTimer))
        return done

    return decide


def test_a_timer_that_ran_out_before_the_hub_read_the_answer_is_no_failure_of_the_hub(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stalled: list[float] = []
    monkeypatch.setattr(engine, "step", late_reader(stalled))
    with judged() as subject:
        played = play(subject, CASES["REG-6"])
    assert len(stalled) == 1
    assert (played.verdict, played.aside) == ("pass", ())


class Held:
    """A connection on which this process is stopped for ten seconds while it waits; then there is an answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now = 0.0
        self._waits = 0
        monkeypatch.setattr(time, "monotonic", lambda: self._now)

    def setsockopt(self, *_: object) -> None: ...

    def settimeout(self, _: float) -> None: ...

    def recv(self, _: int) -> bytes:
        self._waits += 1
        if self._waits == 1:
            self._now += 10.0
            raise TimeoutError
        return encode_frame(Version.V1, AUTH, Frame(Answer(Action.REGISTER, Reason.NOT_ADMITTED), Major.ERR_RESP, 5, 1))


def test_time_in_which_this_tool_was_stopped_is_not_the_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = Wire(Held(monkeypatch), Version.V1, AUTH)  # type: ignore[arg-type]
    got = wire.read(Patience(1.0))
    assert isinstance(got, Seen) and got.frame.msg_id == 5
