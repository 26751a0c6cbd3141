"""On a machine that stalls, a hub's timers run out where nobody meant them to: that is no verdict about the hub."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hubauth.core.messages import GetPerms
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.ear import Ear
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.run import play, prepare
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Seen
from hubauth.shell.addresses import parse_address
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
    right = Ear._read

    def slow(ear: Ear, peer: Peer, into: list[Seen], seconds: float, count: int | None) -> None:
        right(ear, peer, into, seconds, count)
        if not stalled and any(isinstance(seen.frame.body, GetPerms) for seen in into):
            stalled.append(time.monotonic())
            time.sleep(TOO_LONG)

    monkeypatch.setattr(Ear, "_read", slow)
    with judged() as subject:
        played = play(subject, CASES["PERM-2"])
    assert len(stalled) == 1
    assert (played.verdict, played.aside) == ("pass", ())
