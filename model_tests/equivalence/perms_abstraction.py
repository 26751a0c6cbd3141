"""tla/ABSTRACTION.md in Python: what a network looks like to HubPerms.tla."""

from typing import TypeAlias

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import (
    Action,
    Answer,
    AssistOffline,
    Authenticate,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    HubOnline,
    PermsInvalidate,
    Reason,
)
from hubauth.core.model import Purpose
from hubauth.lab.tree import Item, Network, TreeConnection
from model_tests.equivalence.values import Value, function, record

CODES = {Reason.OK: "ok", Reason.UNREACHABLE: "away", Reason.FORBIDDEN: "denied"}
KINDS = {Purpose.PERMS: "get", Purpose.HELD: "held", Purpose.ADMIT: "admit"}

Served: TypeAlias = Map[tuple[str, int], int]
"""(hub, MsgID it chose) -> the request in whose service it was sent."""


def version_of(grant: Grant | None) -> int:
    """The version of the policy that a grant comes from; 0 for none."""
    return int(grant.role[1:]) if grant is not None and grant.role else 0


def strip(network: Network, number: int, connection: TreeConnection) -> Network:
    """Take presence out of the queues: it decides nothing about permissions as long as sessions stay."""
    up, down = tuple(filter(_matters, connection.up)), tuple(filter(_matters, connection.down))
    if (len(up), len(down)) == (len(connection.up), len(connection.down)):
        return network
    kept = evolve(connection, up=up, down=down)
    return evolve(network, connections=network.connections.set(number, kept))


def _matters(item: Item) -> bool:
    body = item.body if isinstance(item, Frame) else None
    if isinstance(body, Answer):
        return body.action not in (Action.ASSIST_OFFLINE, Action.HUB_DISMISS)
    return not isinstance(body, HubOnline | HubDismiss | AssistOffline)


def hub_value(network: Network, served: Served, name: str, nodes: tuple[int, ...]) -> Value:
    """``hub[name]``, without history."""
    state = network.states[name]
    asked = [(msg_id, state.pending[msg_id]) for msg_id in sorted(state.pending)]
    return record(
        present=state.parent_present,
        linked=frozenset(
            session.device_id for session in state.links.values() if session is not None and session.is_hub
        ),
        cache=function({node: record(ver=version_of(state.perms.get(node))) for node in nodes}),
        pend=tuple(
            record(
                kind=KINDS[pending.purpose],
                op=served[name, msg_id],
                asked=_port(network, pending.asked),
                asker=_port(network, pending.asker),
                node=pending.node_id,
                stale=pending.stale or pending.epoch != state.perms_epoch,
            )
            for msg_id, pending in asked
            if pending.purpose in KINDS
        ),
    )


def _port(network: Network, link: Link | None) -> str:
    if link is None:
        return ""
    if link == PARENT:
        return "up"
    child = network.connections[link].child
    return child if child in network.states else "device"


def queue_value(served: Served, connection: TreeConnection, way: str) -> Value:
    """``up[c]`` or ``down[c]``, without history."""
    queue = connection.up if way == "up" else connection.down
    ends = (connection.child, connection.parent)
    sender, receiver = ends if way == "up" else ends[::-1]
    return tuple(_frame(served, item, sender, receiver) for item in queue)


def _frame(served: Served, item: Item, sender: str, receiver: str) -> Value:
    assert isinstance(item, Frame)
    match item.body:
        case Authenticate():
            return record(t="join")
        case Answer(action=Action.AUTHENTICATE, reason=Reason.OK):
            return record(t="joined")
        case GetPerms(node):
            return record(t="get", op=served[sender, item.msg_id], node=node)
        case PermsInvalidate(nodes, _, refresh):
            return record(t="inval", nodes=frozenset(nodes), refresh=refresh)
        case Answer(action=Action.GET_PERMS) as answer:
            op, code = served[receiver, item.msg_id], CODES[answer.reason]
            return record(t="ans", op=op, node=answer.node_id, code=code, ver=version_of(answer.grant))
    raise AssertionError(f"the model has no such frame: {item}")
