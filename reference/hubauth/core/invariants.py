"""What is always true of one hub. Each invariant says what it found; an empty list means it holds.

``STATE_INVARIANTS`` look at a state, ``STEP_INVARIANTS`` at a state, what happened, and the step that followed.
Their names are shared with the TLA+ model and the traces.
"""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from attrs import astuple, fields

from hubauth.core.indexes import derive_index
from hubauth.core.inputs import PARENT, Input, Link, OperatorInvalidate, PolicyChanged, Received
from hubauth.core.messages import (
    SUB_PROTO,
    Action,
    Answer,
    AssistOffline,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Revoke,
)
from hubauth.core.model import Index, Purpose, State, bound_node, is_authority, is_extended
from hubauth.core.outputs import Note, Send
from hubauth.core.policy import Policy, Trust
from hubauth.core.recovery import LASTING_SCALARS, LASTING_TABLES, Recovery, lasting_changes, lasting_part
from hubauth.core.transition import Step

Findings: TypeAlias = list[str]
StateInvariant: TypeAlias = Callable[[Policy, State], Findings]
StepInvariant: TypeAlias = Callable[[Policy, State, Input, Step], Findings]


def unique_node_ids(policy: Policy, state: State) -> Findings:
    """No node id belongs to two devices, nor to a device and to the configuration at once."""
    counted = Counter(registration.node_id for registration in state.registry.values())
    found = [f"node {node_id} was given out {times} times" for node_id, times in counted.items() if times > 1]
    found += [f"node {node_id} is a hub's own" for node_id in {state.node_id, policy.authority} & set(counted)]
    for device_id, registration in state.registry.items():
        named = policy.provisioned_by_node.get(registration.node_id)
        if named is not None and named.device_id != device_id:
            found.append(f"node {registration.node_id} is both {device_id} and {named.device_id}, as configured")
    return found


def one_to_one_binding(policy: Policy, state: State) -> Findings:
    """Registry, whitelist and directory agree on which device has which node."""
    found: Findings = []
    nodes: dict[str, int] = {binding.device_id: binding.node_id for binding in policy.provisioned}
    pairs = [
        *((device_id, registration.node_id) for device_id, registration in state.registry.items()),
        *((device_id, entry.node_id) for device_id, entry in state.whitelist.items()),
        *((route.device_id, node_id) for node_id, route in state.directory.items()),
    ]
    devices: dict[int, str] = {node_id: device_id for device_id, node_id in nodes.items()}
    for device_id, node_id in pairs:
        if nodes.setdefault(device_id, node_id) != node_id:
            found.append(f"{device_id} is both node {nodes[device_id]} and node {node_id}")
        if devices.setdefault(node_id, device_id) != device_id:
            found.append(f"node {node_id} is both {devices[node_id]} and {device_id}")
    return found


def registry_holds_no_credential(policy: Policy, state: State) -> Findings:
    """A registration is a node id and a flag, nothing that could be a secret."""
    return [
        f"the registration of {device_id} holds more than node id and flag"
        for device_id, registration in state.registry.items()
        if not all(isinstance(value, int) for value in astuple(registration))
    ]


def session_implies_whitelist(policy: Policy, state: State) -> Findings:
    """Whoever has a session has an entry that says the same."""
    if policy.trust is Trust.OPEN:
        return []
    found: Findings = []
    for link, session in state.links.items():
        if session is None or _is_named(state, link, session.node_id):
            continue
        entry = state.whitelist.get(session.device_id)
        if entry is None or (entry.node_id, entry.is_hub) != (session.node_id, session.is_hub):
            found.append(f"link {link} has a session of {session.device_id} without an entry")
    return found


def _is_named(state: State, link: Link, node_id: int) -> bool:
    """Whether a link is a hub's by where it comes from, so that there is nothing to verify."""
    return link in state.plain and node_id in state.plain[link].hubs


def credentials_never_cached_upstream(policy: Policy, state: State) -> Findings:
    """What a hub relays for others leaves no credential behind, but for a search that may go on to its parent."""
    return [
        f"pending request {msg_id} of another hub holds a credential"
        for msg_id, pending in state.pending.items()
        if pending.purpose is Purpose.RELAY
        and (pending.held is not None or (pending.credential and not (pending.climbs and pending.asked != PARENT)))
    ]


def indexes_agree(policy: Policy, state: State) -> Findings:
    """The derived tables are what deriving them anew gives."""
    derived = derive_index(policy, state)
    return [
        f"index {name} is {getattr(state.index, name)}, should be {getattr(derived, name)}"
        for name in (attribute.name for attribute in fields(Index))
        if getattr(state.index, name) != getattr(derived, name)
    ]


STATE_INVARIANTS: dict[str, StateInvariant] = {
    "UniqueNodeIds": unique_node_ids,
    "OneToOneBinding": one_to_one_binding,
    "RegistryHoldsNoCredential": registry_holds_no_credential,
    "SessionImpliesWhitelist": session_implies_whitelist,
    "CredentialsNeverCachedUpstream": credentials_never_cached_upstream,
    "IndexesAgree": indexes_agree,
}


def node_ids_never_reused(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """The allocator only moves up, and a registration never goes away or changes its node."""
    found: Findings = []
    if done.state.next_node_id < before.next_node_id:
        found.append(f"the allocator went back from {before.next_node_id} to {done.state.next_node_id}")
    for table, device_id, old, new in done.changes:
        if table != "registry":
            continue
        if new is None or (old is not None and old.node_id != new.node_id):
            found.append(f"{device_id} lost node {old.node_id}")
        provisioned = policy.provisioned_by_device.get(device_id)
        kept = provisioned is not None and provisioned.node_id == new.node_id
        if old is None and new.node_id < before.next_node_id and not kept:
            found.append(f"{device_id} was given node {new.node_id} again")
    return found


def late_offline_keeps_new_route(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """A child hub's report changes no route that does not lead through that child."""
    if not isinstance(happened, Received) or happened.link == PARENT:
        return []
    body, session = happened.frame.body, before.links.get(happened.link)
    if not isinstance(body, AssistOffline | Offline) or session is None:
        return []
    node_id = body.node_id
    if not node_id:
        node_id = before.index.node_of_device.get(body.device_id) or bound_node(before, body.device_id)
    route = before.directory.get(node_id)
    if route is None or route.via == session.node_id or done.state.directory.get(node_id) == route:
        return []
    return [f"a report through node {session.node_id} changed the route of node {node_id} via {route.via}"]


def may_be_answered(policy: Policy, before: State, received: Received) -> bool:
    """Whether a frame is a request of a kind that is answered, be it with a refusal."""
    body, link = received.frame.body, received.link
    if received.frame.sub_proto != SUB_PROTO or isinstance(body, Answer | bytes) or link not in before.links:
        return False
    if isinstance(body, Malformed) and (body.action is None or body.is_answer):
        return False
    if body.action is Action.HUB_ONLINE:
        return False
    if body.action in (Action.HUB_DISMISS, Action.HUB_FENCE):
        return is_extended(before, link)
    if isinstance(body, Malformed):
        return True
    return link != PARENT or not isinstance(body, PermsInvalidate)


def no_answer_without_request(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """Every answer goes to a link that asked with that MsgID and was waiting, and is the first in this step."""
    asked: Counter[tuple[Link, int]] = Counter(
        (pending.asker, pending.msg_id) for pending in before.pending.values() if pending.asker is not None
    )
    if isinstance(happened, Received) and may_be_answered(policy, before, happened):
        asked[happened.link, happened.frame.msg_id] += 1
    found: Findings = []
    for output in done.outputs:
        if not isinstance(output, Send) or not isinstance(output.frame.body, Answer):
            continue
        key = output.link, output.frame.msg_id
        if asked[key]:
            asked[key] -= 1
        elif not _routed_revoke_answer(before, output):
            found.append(f"link {output.link} is answered about {output.frame.body.action} it did not ask for")
    return found


def _routed_revoke_answer(before: State, output: Send) -> bool:
    """Answers to revokes travel through hubs that asked nothing; only at a device must they match."""
    session = before.links.get(output.link)
    is_hub = output.link == PARENT or (session is not None and session.is_hub)
    return is_hub and isinstance(output.frame.body, Answer) and output.frame.body.action is Action.REVOKE


def invalidated_perms_not_served(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """What a hub is told to forget is not in its cache any more.

    That nothing older comes back is seen over several steps only: ``network.history`` watches for it.
    """
    cached = done.state.perms
    message = accepted_invalidation(before, happened, done)
    if becomes_present(policy, before, done.state) or (message is not None and not message.node_ids):
        return ["the cache was not emptied"] if cached else []
    named = message.node_ids if message is not None else ()
    return [f"node {node_id} is still cached" for node_id in named if node_id in cached]


def becomes_present(policy: Policy, before: State, after: State) -> bool:
    """Whether the parent is back from an absence in which a hub may have missed invalidations."""
    is_back = after.parent_present and not before.parent_present
    return is_back and policy.has_perms and not is_authority(policy, after.node_id)


def accepted_invalidation(before: State, happened: Input, done: Step) -> PermsInvalidate | None:
    """The invalidation that a hub has taken for good in this step: by its operator, its parent, or who may do it."""
    if isinstance(happened, OperatorInvalidate):
        return happened.invalidate
    if not isinstance(happened, Received) or happened.link not in before.links:
        return None
    link: Link | None = happened.link
    frame = happened.frame
    if isinstance(frame.body, Answer):
        pending = before.pending.get(frame.msg_id)
        if pending is None or pending.held is None or frame.msg_id in done.state.pending:
            return None
        link, frame = pending.asker, pending.held
    if frame.sub_proto != SUB_PROTO or not isinstance(frame.body, PermsInvalidate):
        return None
    if link == PARENT:
        return frame.body
    dropped = any(isinstance(output, Note) and output.link == link for output in done.outputs)
    refused = any(
        isinstance(output, Send)
        and isinstance(output.frame.body, Answer)
        and (output.link, output.frame.msg_id) == (link, frame.msg_id)
        for output in done.outputs
    )
    held = any(pending.held is frame for pending in done.state.pending.values())
    return None if dropped or refused or held else frame.body


_REFUSALS = (Reason.FORBIDDEN, Reason.INVALID_REQUEST, Reason.NOT_INDEXED)


def unauthenticated_sees_only_register_and_auth(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """A child link without a session gets answers to register and authenticate, and refusals."""
    found: Findings = []
    for output in done.outputs:
        if not isinstance(output, Send) or output.link == PARENT:
            continue
        if before.links.get(output.link) is not None or done.state.links.get(output.link) is not None:
            continue
        body = output.frame.body
        entrance = isinstance(body, Answer) and body.action in (Action.REGISTER, Action.AUTHENTICATE)
        refusal = isinstance(body, Answer) and body.reason in _REFUSALS
        if not entrance and not refusal:
            found.append(f"link {output.link} without a session was sent {body!r}")
    return found


def revoke_never_reaches_devices(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """A revoke may carry a credential: it goes to hubs only."""
    return [
        f"link {output.link} is no hub link and was sent a revoke"
        for output in done.outputs
        if isinstance(output, Send)
        and isinstance(output.frame.body, Revoke)
        and output.link != PARENT
        and not _is_hub_link(before, output.link)
        and not _is_hub_link(done.state, output.link)
    ]


def _is_hub_link(state: State, link: Link) -> bool:
    session = state.links.get(link)
    return session is not None and session.is_hub


def restart_loses_nothing(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """What a step changed for good, applied to what would have been left before it, is what is left after it."""
    recovery = Recovery(lasting_part(before))
    for change in lasting_changes(done.changes):
        recovery.apply(change)
    found, expected = recovery.finish(), lasting_part(done.state)
    return [
        f"{name} would be {getattr(found, name)!r} after a restart, not {getattr(expected, name)!r}"
        for name in (*LASTING_SCALARS, *LASTING_TABLES)
        if getattr(found, name) != getattr(expected, name)
    ]


def credentials_last_only_where_admitted(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """A credential comes to last only where its device is on a link of this hub's own, or by configuration."""
    if isinstance(happened, PolicyChanged):
        return []
    here = {session.device_id for session in done.state.links.values() if session is not None}
    return [
        f"the credential of {device_id} is kept, which is on no link of this hub"
        for table, device_id, old, new in done.changes
        if table == "whitelist" and new is not None and (old is None or old.credential != new.credential)
        if device_id not in here
    ]


STEP_INVARIANTS: dict[str, StepInvariant] = {
    "NodeIdsNeverReused": node_ids_never_reused,
    "LateOfflineKeepsNewRoute": late_offline_keeps_new_route,
    "NoAnswerWithoutRequest": no_answer_without_request,
    "InvalidatedPermsNotServed": invalidated_perms_not_served,
    "UnauthenticatedSeesOnlyRegisterAndAuth": unauthenticated_sees_only_register_and_auth,
    "RevokeNeverReachesDevices": revoke_never_reaches_devices,
    "RestartLosesNothing": restart_loses_nothing,
    "CredentialsNeverCachedUpstream": credentials_last_only_where_admitted,
}


def check_state(policy: Policy, state: State) -> Findings:
    """Everything that is wrong with a state, each line led by the invariant's name."""
    return [f"{name}: {line}" for name, invariant in STATE_INVARIANTS.items() for line in invariant(policy, state)]


def check_step(policy: Policy, before: State, happened: Input, done: Step) -> Findings:
    """Everything that is wrong with a step, each line led by the invariant's name."""
    return [
        f"{name}: {line}"
        for name, invariant in STEP_INVARIANTS.items()
        for line in invariant(policy, before, happened, done)
    ]
