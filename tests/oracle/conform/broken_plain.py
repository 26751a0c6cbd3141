"""Hubs that are wrong about plain neighbours and about the limits for hubs."""

from collections.abc import Iterable

from attrs import evolve

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Action, Answer, Major, Reason, Revoke
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from tests.oracle.conform.breaking import Broken, body_of, instead, rewriting


def _believes_any_success(policy: Policy, state: State, received: Received) -> Step:
    """Takes what the device presented for what the parent has confirmed."""
    body, asked = body_of(received), state.pending.get(received.frame.msg_id)
    if body.action is Action.ASSIST_AUTHENTICATE and body.reason is Reason.OK and asked is not None:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, credential=asked.credential)))
    return step(policy, state, received)


def _distrusts_other_numbers(policy: Policy, state: State, received: Received) -> Step:
    """Takes a success that bears the number of another request for a failure."""
    body, asked = body_of(received), state.pending.get(received.frame.msg_id)
    if body.reason is Reason.OK and body.device_id and (asked is None or asked.device_id != body.device_id):
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, reason=Reason.INTERNAL)))
    return step(policy, state, received)


def _takes_nobody_for_the_hub(policy: Policy, state: State, received: Received) -> Step:
    """Takes every frame without a source for the hub's own."""
    session = state.links.get(received.link)
    if session is not None and session.is_hub and received.frame.source == 0:
        received = evolve(received, frame=evolve(received.frame, source=session.node_id))
    return step(policy, state, received)


def _acts_on_echoes(policy: Policy, state: State, received: Received) -> Step:
    """Takes what comes back for something new."""
    session, body = state.links.get(received.link), body_of(received)
    if session is not None and session.is_hub:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, node_id=0xABC)))
    return step(policy, state, received)


def _reaches_no_hub(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    session = state.links.get(output.link) if isinstance(output, Send) else None
    if not (isinstance(output, Send) and isinstance(output.frame.body, bytes) and session and session.is_hub):
        yield output


def _denies_what_hubs_say(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    """Passes the answer of another hub on as a refusal."""
    body = output.frame.body if isinstance(output, Send) else None
    if isinstance(output, Send) and isinstance(body, Answer) and isinstance(body_of(happened), Answer):
        refused = evolve(output.frame, body=evolve(body, reason=Reason.FORBIDDEN), major=Major.ERR_RESP)
        output = evolve(output, frame=refused)
    yield output


BROKEN_PLAIN: dict[str, Broken] = {
    "believes any success": Broken(
        "AUTH-32", instead(Answer, _believes_any_success), role="child", promises=frozenset({"AdmittedByCredential"})
    ),
    "distrusts other numbers": Broken("FRAME-25", instead(Answer, _distrusts_other_numbers), role="child"),
    "takes nobody for the hub": Broken("FRAME-27", instead(Revoke, _takes_nobody_for_the_hub)),
    "learns nobody": Broken("FRAME-26", rewriting(_reaches_no_hub)),
    "points at nobody": Broken("AUTH-33", rewriting(_reaches_no_hub)),
    "acts on echoes": Broken("REV-24", instead(Revoke, _acts_on_echoes), role="middle"),
    "denies what plain hubs say": Broken("REV-25", rewriting(_denies_what_hubs_say)),
    "lets hubs wait for less": Broken("TIME-5", limits={"hub_pending": 10}, role="middle"),
}
