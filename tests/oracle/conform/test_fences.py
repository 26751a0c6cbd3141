"""How silence is shown: by whatever the hub under test answers, and by waiting if it answers nothing."""

import pytest
from attrs import evolve
from msgspec.structs import replace

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Answer, Authenticate, Malformed
from hubauth.core.model import State
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.profile import TimeoutsTable
from hubauth.oracle.conform.run import choose
from hubauth.oracle.conform.subject import NotServing, Subject
from hubauth.oracle.report import table
from hubauth.shell import engine
from hubauth.shell.connection import Connection
from hubauth.wire.header import Version
from tests.oracle.conform.hubs import describe, in_thread, judge


def silent(policy: Policy, state: State, happened: Input) -> Step:
    """Drops what it cannot read, and empty credentials."""
    done = step(policy, state, happened)
    body = happened.frame.body if isinstance(happened, Received) else None
    if isinstance(body, Malformed) or (isinstance(body, Authenticate) and not body.credential):
        return evolve(done, outputs=())
    return done


def drops_invalid(policy: Policy, state: State, happened: Input) -> Step:
    if isinstance(happened, Received) and isinstance(happened.frame.body, Malformed):
        return evolve(step(policy, state, happened), outputs=())
    return step(policy, state, happened)


def forgets_msg_id(policy: Policy, state: State, happened: Input) -> Step:
    done = step(policy, state, happened)
    changed = [
        Send(output.link, evolve(output.frame, msg_id=0))
        if isinstance(output, Send) and isinstance(output.frame.body, Answer)
        else output
        for output in done.outputs
    ]
    return evolve(done, outputs=tuple(changed))


@pytest.mark.parametrize(
    ("decide", "fence", "failing"),
    [
        (step, "invalid", set()),
        (forgets_msg_id, "invalid", {"FRAME-12"}),
        (drops_invalid, "empty", {"FRAME-17"}),
        (silent, "absent", {"FRAME-17"}),
    ],
)
def test_other_rules_are_judged_all_the_same(
    decide: object, fence: str, failing: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "step", decide)
    described = describe("root")
    cases = choose(CASES.values(), ["FRAME-17", "REG-13", "REG-9", "FRAME-4", "FRAME-5", "REV-2"])
    profile = replace(described.profile, timeouts=TimeoutsTable(answer=1.0, silence=0.05))
    with in_thread(described) as address:
        with Subject(*address, profile, Version.V1) as subject:
            subject.probe()
            assert subject.fence == fence
        judgement = judge(address, profile, cases)
    assert {result.rule for result in judgement.results if result.verdict == "fail"} == failing
    assert {result.id for result in judgement.results if result.verdict == "pass"} >= {"REG-9", "FRAME-5", "REV-2"}


def test_a_hub_may_keep_connections_on_which_nothing_more_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "eof_received", lambda _: True)
    described = describe("middle")
    cases = choose(CASES.values(), ["OFF-4", "OFF-8", "LINK-2", "LINK-7", "AUTH-21", "EXT-12", "BIND-4"])
    profile = replace(described.profile, timeouts=TimeoutsTable(answer=1.0, silence=0.05))
    with in_thread(described) as address:
        with Subject(*address, profile, Version.V1) as subject:
            subject.probe()
            assert not subject.ends_too
        judgement = judge(address, profile, cases)
    assert {result.verdict for result in judgement.results} == {"pass"}, table(judgement)


def test_who_answers_nothing_is_no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(policy: Policy, state: State, happened: Input) -> Step:
        return evolve(step(policy, state, happened), outputs=())

    monkeypatch.setattr(engine, "step", mute)
    described = describe("root")
    with in_thread(described) as address, Subject(*address, described.profile, Version.V1) as subject:
        subject.profile = replace(subject.profile, timeouts=TimeoutsTable(answer=0.2))
        with pytest.raises(NotServing):
            subject.probe()
