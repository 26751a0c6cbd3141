"""Hubs that break what is promised whatever the rules say, seen from outside."""

from collections.abc import Iterable

from attrs import evolve

from hubauth.core.indexes import derive_index
from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Action, Answer, Frame, Reason, Register, Revoke
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from tests.oracle.conform.breaking import Broken, answering, body_of, instead, rewriting, with_state


def _keeps_the_entry(policy: Policy, state: State, received: Received) -> Step:
    """Answers a revoke without obeying it."""
    return with_state(step(policy, state, received), policy, whitelist=state.whitelist)


def _obeys_anybody(policy: Policy, state: State, received: Received) -> Step:
    """Says that it is forbidden, and does it."""
    done = step(policy, state, received)
    device_id = body_of(received).device_id
    whitelist = done.state.whitelist
    return with_state(done, policy, whitelist=whitelist.delete(device_id) if device_id in whitelist else whitelist)


def _forgets_the_node(policy: Policy, state: State, received: Received) -> Step:
    """Takes whoever registers again for somebody new."""
    device_id = body_of(received).device_id
    for table in ("registry", "whitelist"):
        known = getattr(state, table)
        if device_id in known:
            state = evolve(state, **{table: known.delete(device_id)})
    return step(policy, evolve(state, index=derive_index(policy, state)), received)


def _gives_one_node_to_all(frame: Frame, answer: Answer) -> Frame:
    given = answer.action is Action.REGISTER and answer.reason is Reason.OK
    return evolve(frame, body=evolve(answer, node_id=5000)) if given else frame


def _twice(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, Answer):
        yield output


BROKEN_PROMISES: dict[str, Broken] = {
    "answers a revoke without obeying it": Broken(
        "REV-5", instead(Revoke, _keeps_the_entry), promises=frozenset({"RevokedStaysOut"})
    ),
    "obeys who may not revoke": Broken("REV-1", instead(Revoke, _obeys_anybody), promises=frozenset({"NoLockOut"})),
    "forgets nodes": Broken("REG-9", instead(Register, _forgets_the_node), promises=frozenset({"OneToOneBinding"})),
    "gives one node to all": Broken(
        "FRAME-10", answering(_gives_one_node_to_all), promises=frozenset({"UniqueNodeIds"})
    ),
    "answers twice": Broken("FRAME-10", rewriting(_twice), promises=frozenset({"NoAnswerWithoutRequest"})),
}
