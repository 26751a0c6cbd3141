"""What is true of a whole tree: always, and once messages have drained and every hub's link is up."""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from attrs import evolve
from immutables import Map

from hubauth.core.invariants import Findings, check_state, check_step
from hubauth.core.messages import Answer, Authenticate, Frame, Reason, Revoke
from hubauth.core.model import State, is_authority
from hubauth.core.policy import Assist, Reregister
from hubauth.network.history import HubHistory, Name
from hubauth.network.tree import Network, connect, deliver, say, waiting

TreeInvariant: TypeAlias = Callable[[Network], Findings]


def unique_node_ids(network: Network) -> Findings:
    """Over all hubs, no node id stands for two devices."""
    found: Findings = []
    devices: dict[int, str] = {}
    for name, state in network.states.items():
        for device_id, node_id in _bindings(state):
            if devices.setdefault(node_id, device_id) != device_id:
                found.append(f"node {node_id} is {devices[node_id]} and, at {name}, {device_id}")
    return found


def one_to_one_binding(network: Network) -> Findings:
    """Over all hubs, no device has two node ids."""
    found: Findings = []
    nodes: dict[str, int] = {}
    for name, state in network.states.items():
        for device_id, node_id in _bindings(state):
            if nodes.setdefault(device_id, node_id) != node_id:
                found.append(f"{device_id} is node {nodes[device_id]} and, at {name}, node {node_id}")
    return found


def _bindings(state: State) -> list[tuple[str, int]]:
    return [
        *((device_id, registration.node_id) for device_id, registration in state.registry.items()),
        *((device_id, entry.node_id) for device_id, entry in state.whitelist.items()),
        *((route.device_id, node_id) for node_id, route in state.directory.items()),
    ]


def credentials_never_cached_upstream(network: Network) -> Findings:
    """A hub's whitelist names only devices that were on its own links, or that it is configured to verify."""
    found: Findings = []
    for name, state in network.states.items():
        verified = {binding.device_id for binding in network.policies[name].verified_here}
        allowed = network.direct.get(name, frozenset()) | verified
        found += [f"{name} has an entry for {device_id}" for device_id in state.whitelist if device_id not in allowed]
    return found


def revoke_never_reaches_devices(network: Network) -> Findings:
    """No revoke is on its way to a device."""
    return [
        f"a revoke is on its way to {connection.child}"
        for connection in network.connections.values()
        if connection.child not in network.states
        for item in connection.down
        if isinstance(item, Frame) and isinstance(item.body, Revoke)
    ]


ALWAYS: dict[str, TreeInvariant] = {
    "UniqueNodeIds": unique_node_ids,
    "OneToOneBinding": one_to_one_binding,
    "CredentialsNeverCachedUpstream": credentials_never_cached_upstream,
    "RevokeNeverReachesDevices": revoke_never_reaches_devices,
}


def is_settled(network: Network) -> bool:
    """Whether nothing is in flight or left to announce, and every hub's parent is present and takes it for a hub."""
    if waiting(network) or any(state.announcing is not None for state in network.states.values()):
        return False
    return all(network.states[name].parent_present and not _is_plain_device(network, name) for name in network.parents)


def _is_plain_device(network: Network, name: Name) -> bool:
    """Whether a hub's parent has admitted it as a device: nothing it says of others is believed there."""
    above, node_id = network.states[network.parents[name]], network.states[name].node_id
    link = above.index.link_of_node.get(node_id)
    session = above.links[link] if link is not None else None
    return session is not None and not session.is_hub


def revoked_stays_out(network: Network) -> Findings:
    """A revoked credential is in no whitelist."""
    return [
        f"{name} still has the revoked credential of {device_id}"
        for name, state in network.states.items()
        for device_id, entry in state.whitelist.items()
        if entry.credential in network.revoked
    ]


def one_live_credential(network: Network) -> Findings:
    """All entries of one device hold the same credential."""
    if not all(policy.revoke_on_reregister for policy in network.policies.values()):
        return []
    found: Findings = []
    live: dict[str, str] = {}
    for name, state in network.states.items():
        for device_id, entry in state.whitelist.items():
            if live.setdefault(device_id, entry.credential) != entry.credential:
                found.append(f"{name} has another credential of {device_id} than some other hub")
    return found


def at_most_one_session(network: Network) -> Findings:
    """No device has sessions at two hubs, or two at one."""
    counted: Counter[int] = Counter()
    for state in network.states.values():
        counted.update(session.node_id for session in state.links.values() if session is not None)
    return [f"node {node_id} has {times} sessions" for node_id, times in counted.items() if times > 1]


def routes_lead_to_sessions(network: Network) -> Findings:
    """Every online route leads hop by hop to a session."""
    found: Findings = []
    hub_of_node = {state.node_id: name for name, state in network.states.items()}
    for name, state in network.states.items():
        for node_id, route in state.directory.items():
            if route.online and not _leads(network, hub_of_node, name, node_id):
                found.append(f"{name} has node {node_id} online via {route.via}, which leads nowhere")
    return found


def _leads(network: Network, hub_of_node: dict[int, Name], name: Name, node_id: int) -> bool:
    for _ in network.states:
        state = network.states[name]
        route = state.directory.get(node_id)
        if route is None or not route.online or route.via not in state.index.link_of_node:
            return False
        if route.via == node_id:
            return True
        if route.via not in hub_of_node:
            return False
        name = hub_of_node[route.via]
    return False


def sessions_are_routed(network: Network) -> Findings:
    """Every session's node is online at its hub and at every ancestor."""
    found: Findings = []
    for name, state in network.states.items():
        nodes = [session.node_id for session in state.links.values() if session is not None]
        above: Name | None = name
        while above is not None:
            directory = network.states[above].directory
            found += [
                f"node {node_id} has a session at {name} but is not online at {above}"
                for node_id in nodes
                if node_id not in directory or not directory[node_id].online
            ]
            above = network.parents.get(above)
    return found


def settled_perms_are_current(network: Network) -> Findings:
    """No cache is older than what the hub above was told to forget: invalidations reach every hub below.

    They never go up, so nothing is claimed about hubs that are not below the authority.
    """
    found: Findings = []
    if not all(policy.has_perms for policy in network.policies.values()):
        return found
    for name, above in network.parents.items():
        own, parent = network.history.hubs.get(name, HubHistory()), network.history.hubs.get(above, HubHistory())
        found += [
            f"{name} has node {node_id} as it was before {above} was told to forget it"
            for node_id in network.states[name].perms
            if own.cached.get(node_id, -1) < parent.forgotten_at(node_id)
        ]
    return found


def no_lock_out(network: Network) -> Findings:
    """A device whose credential was not revoked can authenticate where it was last admitted."""
    found: Findings = []
    for device_id, (name, credential) in network.admitted.items():
        entry = network.states[name].whitelist.get(device_id)
        if entry is None or entry.credential != credential:
            found.append(f"{name} no longer admits {device_id}, whose credential was not revoked")
    return found


def admitted_anywhere(network: Network) -> Findings:
    """A device is admitted with its live credential at every hub that may search: tried, hub by hub.

    Live is what was issued to it last and is stored somewhere. Not claimed with an authority below the root, where
    registering again revokes nothing, and of a credential that was revoked at one hub alone.
    """
    (root,) = (name for name in network.states if name not in network.parents)
    policies = network.policies
    authority_at_root = is_authority(policies[root], network.states[root].node_id)
    if not authority_at_root or not all(policy.revoke_on_reregister for policy in policies.values()):
        return []
    all_query = all(policy.assist is Assist.QUERY for policy in policies.values())
    found: Findings = []
    for device_id, credential in network.history.issued.items():
        here = {name for name, state in network.states.items() if _holds(state, device_id, credential)}
        if here and credential not in network.history.thinned:
            found += [
                f"{name} does not admit {device_id}, whose credential is live at {min(here)}"
                for name in sorted(set(network.states) - here)
                if (policies[name].assist is Assist.AUTH or all_query)
                and not _admits(network, name, device_id, credential)
            ]
    return found


def _holds(state: State, device_id: str, credential: str) -> bool:
    entry = state.whitelist.get(device_id)
    return entry is not None and entry.credential == credential


def _admits(network: Network, name: Name, device_id: str, credential: str) -> bool:
    """Whether the device would get in at this hub, everything being delivered. A hub that is busy may say so."""
    probe = "somebody with its credential"
    number = network.next_connection
    network = evolve(connect(network, probe, name), inboxes=Map())
    network = say(network, number, Frame(Authenticate(device_id, credential), msg_id=1))
    while probe not in network.inboxes and (ways := waiting(network)):
        network = deliver(network, *ways[0])
    answers = [frame.body for frame in network.inboxes.get(probe, ()) if isinstance(frame.body, Answer)]
    return any(answer.reason in (Reason.OK, Reason.BUSY) for answer in answers)


def nobody_shut_out(network: Network) -> Findings:
    """A device whose last credential was not revoked has it stored at some hub, or may register."""
    refused = {
        device_id
        for name, state in network.states.items()
        if network.policies[name].reregister is Reregister.AFTER_REVOKE
        for device_id, registration in state.registry.items()
        if registration.confirmed and not registration.revoked
    }
    return [
        f"{device_id} may not register, and no hub has its credential"
        for device_id, credential in network.history.issued.items()
        if device_id in refused
        and credential not in network.revoked | network.history.thinned
        and not any(_holds(state, device_id, credential) for state in network.states.values())
    ]


SETTLED: dict[str, TreeInvariant] = {
    "RevokedStaysOut": revoked_stays_out,
    "OneLiveCredential": one_live_credential,
    "AtMostOneSession": at_most_one_session,
    "RoutesLeadToSessions": routes_lead_to_sessions,
    "SessionsAreRouted": sessions_are_routed,
    "NoLockOut": no_lock_out,
    "AdmittedAnywhere": admitted_anywhere,
    "NobodyShutOut": nobody_shut_out,
    "SettledPermsAreCurrent": settled_perms_are_current,
}


def check(network: Network) -> Findings:
    """Everything that is wrong after the last event: per hub, over the tree, and, if it has settled, for good."""
    found = [
        f"{happened.hub}: {line}"
        for happened in network.last
        for line in (
            *check_state(network.policies[happened.hub], happened.step.state),
            *check_step(network.policies[happened.hub], happened.before, happened.input, happened.step),
        )
    ]
    found += [f"{name}: {line}" for name, invariant in ALWAYS.items() for line in invariant(network)]
    found += [f"{name}: {line}" for name, history in network.history.hubs.items() for line in history.wrong]
    if is_settled(network) and all(policy.has_extension for policy in network.policies.values()):
        found += [f"{name}: {line}" for name, invariant in SETTLED.items() for line in invariant(network)]
    return found
