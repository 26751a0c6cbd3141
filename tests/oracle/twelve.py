"""Twelve mistakes that hubs of other people have made, or easily make: the reference with one of them planted."""

from attrs import evolve

from hubauth.core.indexes import derive_index
from hubauth.core.inputs import Input, OperatorRevoke, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistOffline,
    Authenticate,
    HubOnline,
    ListRoles,
    PermsInvalidate,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose, State
from hubauth.core.outputs import CancelTimer, Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from tests.oracle.conform import escaped, wrong
from tests.oracle.conform.breaking import Broken, Decide, body_of, instead, rewriting, with_state
from tests.oracle.conform.broken_extension import acts_on_every_number

_SHORT = 20
"""Characters of a credential that a careless hub looks at."""


def _reuses_nodes(policy: Policy, state: State, received: Received) -> Step:
    """Gives a device that it has never seen the node of one that was revoked."""
    body = body_of(received)
    free = sorted(name for name, one in state.registry.items() if one.revoked and name not in state.whitelist)
    if body.device_id in state.registry or policy.is_provisioned(body.device_id) or not free:
        return step(policy, state, received)
    node = state.registry[free[0]].node_id
    rest = state.registry.delete(free[0])
    directory = state.directory.delete(node) if node in state.directory else state.directory
    forgetful = evolve(state, next_node_id=node, registry=rest, directory=directory)
    return step(policy, evolve(forgetful, index=derive_index(policy, forgetful)), received)


def _compares_prefixes(policy: Policy, state: State, received: Received) -> Step:
    body = body_of(received)
    entry = state.whitelist.get(body.device_id)
    if entry is not None and body.credential and entry.credential[:_SHORT] == body.credential[:_SHORT]:
        body = evolve(body, credential=entry.credential)
        received = evolve(received, frame=evolve(received.frame, body=body))
    return step(policy, state, received)


def _keeps_permissions(policy: Policy, state: State, received: Received) -> Step:
    """Passes an invalidation on and goes on with what it knew."""
    done = step(policy, state, received)
    return with_state(done, policy, perms=state.perms)


def _believes_old_announcements(policy: Policy, state: State, received: Received) -> Step:
    ours = {
        number: one
        for number, one in state.pending.items()
        if one.purpose is Purpose.DISMISS and one.asked == received.link
    }
    forgetful = evolve(state, pending=state.pending.mutate().finish())
    for number in ours:
        forgetful = evolve(forgetful, pending=forgetful.pending.delete(number))
    done = step(policy, evolve(forgetful, index=derive_index(policy, forgetful)), received)
    return with_state(done, policy, pending=done.state.pending.update(ours))


def _searches_on() -> Decide:
    """Lets whoever is being searched for come in, though it was revoked meanwhile."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        if not (isinstance(happened, OperatorRevoke) or isinstance(body_of(happened), Revoke)):
            return done
        lost = {number: one for number, one in state.pending.items() if number not in done.state.pending}
        kept = {number: one for number, one in lost.items() if one.purpose in (Purpose.AUTHENTICATE, Purpose.QUERY)}
        if not kept:
            return done
        askers = {(one.asker, one.msg_id) for one in kept.values()}
        outputs = tuple(
            output
            for output in done.outputs
            if not (isinstance(output, CancelTimer) and output.timer in kept)
            and not (isinstance(output, Send) and (output.link, output.frame.msg_id) in askers)
        )
        return evolve(with_state(done, policy, pending=done.state.pending.update(kept)), outputs=outputs)

    return decide


def _counts_before_filtering(policy: Policy, state: State, received: Received) -> Step:
    done = step(policy, state, received)
    body = body_of(received)
    whole = evolve(received, frame=evolve(received.frame, body=ListRoles(body.offset, body.limit)))
    totals = [
        output.frame.body.total
        for output in step(policy, state, whole).outputs
        if isinstance(output, Send) and isinstance(output.frame.body, Answer)
    ]

    def counted(output: Output) -> Output:
        if not (isinstance(output, Send) and isinstance(output.frame.body, Answer) and totals):
            return output
        if output.frame.body.action is not Action.LIST_ROLES or not output.frame.body.total:
            return output
        return Send(output.link, evolve(output.frame, body=evolve(output.frame.body, total=totals[0])))

    return evolve(done, outputs=tuple(map(counted, done.outputs)))


def _late_offline(policy: Policy, state: State, received: Received) -> Step:
    session = state.links.get(received.link)
    is_hub = session is not None and session.is_hub
    return wrong.late_offline(policy, state, received) if is_hub else step(policy, state, received)


TWELVE: dict[str, Broken] = {
    "a revoke keeps the session": Broken(
        "REV-6", instead(Revoke, wrong.keeps_the_session), profile={"close_on_revoke": False}
    ),
    "a late offline erases a newer route": Broken("OFF-7", instead(AssistOffline, _late_offline)),
    "a node id is used again after a revoke": Broken(
        "REG-2", instead(Register, _reuses_nodes), promises=frozenset({"UniqueNodeIds"})
    ),
    "one answer in fifty is late": Broken("FRAME-12", escaped.late_by_one()),
    "credentials are compared by prefix": Broken(
        "AUTH-2", instead(Authenticate, _compares_prefixes), promises=frozenset({"AdmittedByCredential"})
    ),
    "permissions are served after an invalidation": Broken(
        "PERM-12", instead(PermsInvalidate, _keeps_permissions), role="child"
    ),
    "a revoke that is sent again is acted on twice": Broken("EXT-10", instead(Revoke, acts_on_every_number)),
    "an announcement older than the order to let go is believed": Broken(
        "BIND-9", instead(HubOnline, _believes_old_announcements)
    ),
    "a search survives a revoke": Broken("REV-11", _searches_on, role="middle"),
    "ids are allocated though the authority is elsewhere": Broken(
        "AUTHY-4", instead(Register, wrong.allocates), role="child"
    ),
    "total is counted before filtering": Broken("PERM-9", instead(ListRoles, _counts_before_filtering)),
    "the hop limit is not lowered": Broken("FRAME-8", rewriting(wrong.without_counting)),
}
"""Name -> how it is planted, and the rule that it breaks."""
