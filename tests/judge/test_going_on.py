"""After a difference the judge goes on: every mistake of a hub is told once, and nothing that follows from one."""

import pytest
from attrs import evolve

from hubauth.core.inputs import Received
from hubauth.core.invariants import check_state
from hubauth.core.messages import Answer, Frame, GetPerms, Grant, Major, Offline, Reason
from hubauth.core.model import State
from hubauth.core.outputs import Close, Output, Send
from hubauth.core.transition import Step
from hubauth.forms.events import Order
from hubauth.judge.replay import Replay
from hubauth.judge.verdicts import Outcome, Verdict
from tests.judge.foreign import ADMIN, Foreign, answering, issuing, right, silent, staying_open, with_answer
from tests.trace.harness import verdict_of

Told = tuple[str, str, int, int]
"""Rule, what differed, how often, consequences."""


def told(verdict: Verdict) -> list[Told]:
    return [(one.rule, one.what, one.times, one.consequences) for one in verdict.findings]


def judged(hub: Foreign, order: Order = Order.HANDLED) -> Verdict:
    verdict = verdict_of(hub.seen(order))
    assert verdict.stopped == ""
    return verdict


def with_admin(**options: object) -> Foreign:
    hub = Foreign(**options)  # type: ignore[arg-type]
    hub.up(1)
    assert hub.authenticate(1, ADMIN.device_id, ADMIN.credential).reason is Reason.OK
    return hub


def test_a_hub_that_is_right_is_right() -> None:
    hub = with_admin()
    credential = hub.register(2, "sensor")
    hub.down(2)
    hub.up(3)
    assert hub.authenticate(3, "sensor", credential).reason is Reason.OK
    assert hub.revoke("sensor").reason is Reason.OK
    for order in Order:
        assert judged(hub, order).outcome is Outcome.CONFORMS


def as_success(output: Output) -> Output:
    """Every refusal travels as OKResp."""
    if isinstance(output, Send) and output.frame.major is Major.ERR_RESP:
        return Send(output.link, evolve(output.frame, major=Major.OK_RESP))
    return output


@pytest.mark.parametrize("order", list(Order))
def test_several_mistakes_behind_one_that_is_in_every_refusal(order: Order) -> None:
    hub = with_admin(always=as_success)
    credentials = {link: hub.register(link, f"d{link}") for link in range(2, 8)}
    for link, credential in credentials.items():
        hub.authenticate(link, f"d{link}", "B" * 43)
        if link == 4:
            hub.authenticate(link, "d2", "B" * 43, answering(reason=Reason.UNREACHABLE))
        if link == 6:
            hub.say(link, GetPerms(3), answering(grant=Grant("somebody", ())), source=6)
        hub.authenticate(link, f"d{link}", credential, silent if link == 5 else right)
    assert set(told(judged(hub, order))) == {
        ("FRAME-13", "Major", 7, 0),
        ("AUTH-2", "code", 1, 0),
        ("PERM-1", "role or perms", 1, 0),
        ("AUTH-1", "silence: answer to auth", 1, 0),
    }


def test_a_credential_that_is_none_is_taken_over() -> None:
    hub = with_admin()
    hub.register(2, "sensor", issuing("short"))
    hub.down(2)
    hub.up(3)
    assert hub.authenticate(3, "sensor", "short").reason is Reason.OK
    assert told(judged(hub)) == [("REG-4", "credential", 1, 0)]


def test_a_session_that_stayed_is_taken_over() -> None:
    hub = with_admin()
    hub.register(2, "sensor")
    hub.revoke("sensor", staying_open)
    hub.say(2, GetPerms(2), source=2)
    hub.say(2, Offline("sensor", 2), source=2)
    assert told(judged(hub)) == [("REV-7", "silence: close", 1, 0)]


def test_a_device_that_is_let_in_wrongly_is_in() -> None:
    hub = with_admin()
    credential = hub.register(2, "sensor")

    def keeping(before: State, done: Step) -> tuple[tuple[Output, ...], State]:
        """Nothing comes of a revoke but its answer."""
        return tuple(output for output in done.outputs if not isinstance(output, Close)), before

    hub.down(2)
    hub.revoke("sensor", keeping)
    hub.up(3)
    assert hub.authenticate(3, "sensor", credential).reason is Reason.OK
    hub.say(3, GetPerms(2), source=2)
    hub.say(3, Offline("sensor", 2), source=2)
    assert told(judged(hub)) == [("AUTH-9", "decision", 1, 0)]


def test_a_device_that_is_refused_wrongly_is_out() -> None:
    hub = with_admin()

    def refusing(before: State, done: Step) -> tuple[tuple[Output, ...], State]:
        refused = tuple(with_answer(one, reason=Reason.PROTECTED, node_id=0, credential="") for one in done.outputs)
        return tuple(
            Send(one.link, evolve(one.frame, major=Major.ERR_RESP)) if isinstance(one, Send) else one for one in refused
        ), before

    hub.register(2, "sensor", refusing)
    hub.say(2, GetPerms(2), source=2)
    assert hub.register(3, "other")
    hub.say(3, GetPerms(2), source=2)
    assert told(judged(hub)) == [("REG-13", "decision", 1, 0)]


def test_what_follows_from_a_mistake_is_told_under_it() -> None:
    """The hub says that it has revoked, and keeps session and credential: what comes of that is no news."""
    hub = with_admin()
    credential = hub.register(2, "sensor")
    hub.revoke("sensor", lambda before, done: (answered(done), before))
    hub.say(2, GetPerms(2), source=2)
    hub.down(2)
    hub.up(3)
    hub.authenticate(3, "sensor", credential)
    hub.register(4, "other", answering(grant=Grant("somebody", ())))
    found = told(judged(hub))
    assert [one[:3] for one in found] == [("REV-7", "silence: close", 1), ("AUTH-26", "role or perms", 1)]


def answered(done: Step) -> tuple[Output, ...]:
    return tuple(one for one in done.outputs if isinstance(one, Send) and isinstance(one.frame.body, Answer))


@pytest.mark.parametrize("order", list(Order))
def test_a_credential_in_an_answer_with_another_number_is_found(order: Order) -> None:
    def numbered(output: Output) -> Output:
        if not isinstance(output, Send) or not isinstance(output.frame.body, Answer):
            return output
        return Send(output.link, evolve(output.frame, msg_id=77))

    hub = Foreign(always=numbered)
    for link in (2, 3):
        credential = hub.register(link, f"d{link}")
        hub.authenticate(link, f"d{link}", credential)
    assert told(judged(hub, order)) == [("FRAME-12", "MsgID", 4, 0)]


@pytest.mark.parametrize("order", list(Order))
def test_a_frame_that_is_there_is_never_nothing(order: Order) -> None:
    hub = with_admin(always=as_success)
    hub.up(2)
    hub.authenticate(2, "nobody", "B" * 43)
    finding = judged(hub, order).findings[0]
    assert finding.what == "Major" and "OKResp" in finding.seen and "ErrResp" in finding.expected


def test_an_extra_field_is_named() -> None:
    hub = with_admin()
    hub.register(2, "sensor")
    hub.say(2, GetPerms(2), answering(credential="C" * 43), source=2)
    verdict = judged(hub)
    assert verdict.outcome is Outcome.CONFORMS, "a dialect does not write what does not belong there"
    hub.say(2, Offline("sensor", 2), answering(node_id=77), source=2)
    assert told(judged(hub)) == [("OFF-2", "node_id", 1, 0)]


def test_a_mistake_on_every_link_is_one_finding_with_its_first_and_last_row() -> None:
    hub = with_admin()
    for link in range(2, 30):
        hub.register(link, f"d{link}", answering(grant=Grant("somebody", ())))
    finding = judged(hub).findings[0]
    assert (finding.rule, finding.times) == ("AUTH-26", 28)
    assert finding.sequence == 5 and finding.last == 5 + 27 * 3 and finding.leads


def test_what_is_taken_over_can_be_the_state_of_a_hub() -> None:
    """Every mistake, one after the other: no state that the judge goes on with contradicts itself."""
    hub = with_admin()
    credential = hub.register(2, "sensor", issuing("short"))
    hub.revoke("sensor", staying_open)
    hub.register(3, "other", silent)
    hub.register(4, "third", answering(node_id=3))
    hub.register(5, "fourth", answering(node_id=99))
    hub.authenticate(5, "third", credential or "x", answering(reason=Reason.OK, node_id=4))
    replay = Replay()
    for event in hub.seen():
        replay.feed(event)
        if replay.state is not None:
            assert check_state(hub.policy, replay.state) == []
    assert replay.finish().outcome is Outcome.VIOLATES


def test_opaque_frames_that_go_astray_are_one_finding() -> None:
    hub = with_admin()
    for link in (2, 3):
        hub.register(link, f"d{link}")

    def lost(_before: State, done: Step) -> tuple[tuple[Output, ...], State]:
        return (), done.state

    for _ in range(3):
        frame = Frame(b"hello", Major.MSG, 1, 2, 3, sub_proto=9)
        hub.happen(Received(2, frame), lost)
    assert [one[0] for one in told(judged(hub))] == ["FRAME-4"]


def test_a_node_id_that_goes_back_is_taken_over() -> None:
    hub = with_admin()
    for link, node_id in ((2, 70), (3, 5)):
        hub.state = evolve(hub.state, next_node_id=node_id)
        assert hub.register(link, f"d{link}")
        hub.say(link, GetPerms(node_id), source=node_id)
    assert told(judged(hub)) == [("REG-2", "node_id", 1, 0)]
