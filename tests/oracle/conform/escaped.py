"""What hubs decide that were wrong in ways that the cases of the conformance tool once missed."""

from collections.abc import Callable

from attrs import evolve

from hubauth.core.inputs import Input, LinkDown, Received
from hubauth.core.messages import Action, Answer, AssistOffline, Offline
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from tests.oracle.conform.breaking import Decide, body_of, with_state


def late_by_one() -> Callable[[], Decide]:
    """Of fifty answers, one waits for what is sent next on its link. It counts on whichever hub it is planted in."""
    answers = 0

    def begin() -> Decide:
        held: dict[int, Output] = {}

        def decide(policy: Policy, state: State, happened: Input) -> Step:
            nonlocal answers
            done = step(policy, state, happened)
            outputs: list[Output] = []
            for output in done.outputs:
                if not isinstance(output, Send):
                    outputs.append(output)
                    continue
                answers += isinstance(output.frame.body, Answer)
                if isinstance(output.frame.body, Answer) and answers % 50 == 0:
                    held[output.link] = output
                else:
                    outputs += [output, *([held.pop(output.link)] if output.link in held else [])]
            return evolve(done, outputs=tuple(outputs))

        return decide

    return begin


def erases_newer_routes() -> Decide:
    """Refuses a late report about a device behind another child hub, and forgets that device all the same."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done, body = step(policy, state, happened), body_of(happened)
        route = state.directory.get(getattr(body, "node_id", 0))
        if not isinstance(body, AssistOffline | Offline) or "OFF-7" not in done.rules or route is None:
            return done
        if route.via == body.node_id:
            return done
        return with_state(done, policy, directory=done.state.directory.set(body.node_id, evolve(route, online=False)))

    return decide


def trusts_node_ids(policy: Policy, state: State, received: Received) -> Step:
    """Looks at the credential of a revoke only where that names no node."""
    body = body_of(received)
    if body.node_id:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, credential="")))
    return step(policy, state, received)


def ends_what_was_there() -> Decide:
    """Ends the session of whoever was on a connection when that is gone, wherever the session is by now."""
    owners: dict[int, int] = {}

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        owners.update({link: session.node_id for link, session in state.links.items() if session is not None})
        done = step(policy, state, happened)
        node = owners.get(happened.link, 0) if isinstance(happened, LinkDown) else 0
        for link, session in done.state.links.items():
            if session is not None and session.node_id == node:
                route = done.state.directory[node]
                directory = done.state.directory.set(node, evolve(route, online=False))
                return with_state(done, policy, links=done.state.links.set(link, None), directory=directory)
        return done

    return decide


def takes_any_answer_for_an_acknowledgement(policy: Policy, state: State, received: Received) -> Step:
    """Whatever a fence is answered with, all that was owed there is paid."""
    body = body_of(received)
    if body.action is not Action.HUB_FENCE:
        return step(policy, state, received)
    done = step(policy, state, received)
    session = state.links.get(received.link)
    key = session.node_id if session is not None else 0
    owed = {entry: value for entry, value in done.state.owed.items() if entry[0] != key}
    return with_state(done, policy, owed=State().owed.update(owed))
