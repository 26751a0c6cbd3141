"""What is true of a whole tree: always, and once messages have drained and every hub's link is up."""

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

from hubauth.core.invariants import Findings, check_state, check_step
from hubauth.core.messages import Authenticate, Frame, Revoke
from hubauth.core.model import State
from hubauth.core.policy import Reregister
from hubauth.lab.history import HubHistory, Name
from hubauth.lab.tree import Network, connect, deliver, is_settled, say, waiting
from hubauth.promises.monitor import Monitor
from hubauth.seen import tell

TreeInvariant: TypeAlias = Callable[[Network], Findings]


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
    "RevokeNeverReachesDevices": revoke_never_reaches_devices,
}


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


def nobody_shut_out(network: Network) -> Findings:
    """A device whose last credential was not revoked has it stored at some hub, or may register."""
    monitor = network.monitor or Monitor()
    newest = {device_id: (keys[-1], monitor.credentials[keys[-1]]) for device_id, keys in monitor.given.items()}
    refused = {
        device_id
        for name, state in network.states.items()
        if network.policies[name].reregister is Reregister.AFTER_REVOKE
        for device_id, registration in state.registry.items()
        if registration.confirmed and not registration.revoked
    }
    return [
        f"{device_id} may not register, and no hub has its credential"
        for device_id, (key, known) in newest.items()
        if device_id in refused
        and not (known.doubtful or known.doomed)
        and not any(_holds(state, device_id, key) for state in network.states.values())
    ]


def _holds(state: State, device_id: str, credential: str) -> bool:
    entry = state.whitelist.get(device_id)
    return entry is not None and entry.credential == credential


SETTLED: dict[str, TreeInvariant] = {
    "AtMostOneSession": at_most_one_session,
    "RoutesLeadToSessions": routes_lead_to_sessions,
    "SessionsAreRouted": sessions_are_routed,
    "NobodyShutOut": nobody_shut_out,
    "SettledPermsAreCurrent": settled_perms_are_current,
}


def broken_promises(network: Network) -> Findings:
    """What the monitor has found; if all is quiet, also after every live device has asked for admission everywhere."""
    monitor = network.monitor
    if monitor is None:
        return []
    found = list(monitor.broken)
    if is_settled(network):
        newest = [(keys[-1], monitor.credentials[keys[-1]]) for keys in monitor.given.values()]
        for key, known in newest:
            for hub in network.states if known.is_live else ():
                found += _ask_for_admission(network, hub, known.device_id, key).broken[len(monitor.broken) :]
    return [tell(*broken) for broken in found]


def _ask_for_admission(network: Network, hub: Name, device_id: str, credential: str) -> Monitor:
    """The monitor after a device has tried this credential at that hub and everything is delivered."""
    number = network.next_connection
    network = connect(network, "somebody with its credential", hub)
    network = say(network, number, Frame(Authenticate(device_id, credential), msg_id=1))
    while ways := waiting(network):
        network = deliver(network, *ways[0])
    assert network.monitor is not None
    return network.monitor


def check(network: Network) -> Findings:
    """Everything that is wrong after the last event: per hub, over the tree, and, if it has settled, for good."""
    found = [
        f"{happened.hub}: {line}"
        for happened in network.last
        for line in (
            *check_state(network.policies[happened.hub], happened.step.state),
            *check_step(happened.policy, happened.before, happened.input, happened.step),
        )
    ]
    found += [f"{name}: {line}" for name, invariant in ALWAYS.items() for line in invariant(network)]
    found += [f"{name}: {line}" for name, history in network.history.hubs.items() for line in history.wrong]
    if is_settled(network) and all(policy.has_extension for policy in network.policies.values()):
        found += [f"{name}: {line}" for name, invariant in SETTLED.items() for line in invariant(network)]
    return found + broken_promises(network)
