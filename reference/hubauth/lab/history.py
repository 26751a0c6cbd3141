"""What hubs were told about permissions, as somebody sees it who watches the messages: no hub reads it, invariants do.

A hub's own tables cannot show that it kept what it was told to forget, since the very mistake may be in them. So this
record is made of what goes in and out of hubs, not of what they note about it.
"""

from typing import TypeAlias

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import Input, Received
from hubauth.core.invariants import Findings, accepted_invalidation, becomes_present
from hubauth.core.messages import Answer, AssistRegister, GetPerms, Reason
from hubauth.core.model import Purpose, State, is_authority
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy
from hubauth.core.transition import Step

Name: TypeAlias = str

EVERY_NODE = -1
"""The key of what is forgotten about all nodes at once."""


@frozen
class HubHistory:
    """What one hub was told about permissions."""

    asked: Map[int, int] = field(factory=Map)
    """MsgID of a ``get_perms`` that this hub sent -> when."""
    forgotten: Map[int, int] = field(factory=Map)
    """Node, or ``EVERY_NODE`` -> when this hub was last told to forget its permissions."""
    cached: Map[int, int] = field(factory=Map)
    """Node -> when this hub asked for the permissions that it has now."""
    wrong: tuple[str, ...] = ()
    """What the last step did against this history, each line led by the invariant's name."""

    def forgotten_at(self, node_id: int) -> int:
        """When this hub last had to forget the permissions of a node; 0: never."""
        return max(self.forgotten.get(node_id, 0), self.forgotten.get(EVERY_NODE, 0))


def follow(history: HubHistory, now: int, policy: Policy, before: State, happened: Input, done: Step) -> HubHistory:
    """The history after one more step of a hub; ``now`` grows with every step, and starts above 0."""
    asked, forgotten, cached = _follow_perms(history, now, policy, before, happened, done)
    wrong = _let_go_on(history, before, happened, done)
    after = HubHistory(asked, forgotten, cached, tuple(wrong))
    if cached is history.cached and forgotten is history.forgotten:
        return after
    wrong += [
        f"InvalidatedPermsNotServed: node {node_id} is cached as it was before the hub was told to forget it"
        for node_id in done.state.perms
        if cached.get(node_id, -1) < after.forgotten_at(node_id)
    ]
    return evolve(after, wrong=tuple(wrong))


def forget_links(history: HubHistory) -> HubHistory:
    """The hub's process has ended: nobody waits for its answers, and what it has learnt from others is gone."""
    return HubHistory(forgotten=history.forgotten)


# Permissions


def _follow_perms(
    history: HubHistory, now: int, policy: Policy, before: State, happened: Input, done: Step
) -> tuple[Map[int, int], Map[int, int], Map[int, int]]:
    asked, forgotten, cached = history.asked, history.forgotten, history.cached
    for node_id in _to_forget(policy, before, happened, done):
        forgotten = forgotten.set(node_id, now)
    for output in done.outputs:
        if isinstance(output, Send) and isinstance(output.frame.body, GetPerms | AssistRegister):
            asked = asked.set(output.frame.msg_id, now)
    if done.state.perms is not before.perms:
        answers = happened.frame.msg_id if isinstance(happened, Received) else 0
        kept = {node_id: cached[node_id] for node_id in done.state.perms if node_id in cached}
        for node_id, grant in done.state.perms.items():
            if before.perms.get(node_id) is not grant:
                kept[node_id] = asked.get(answers, -1)
        cached = Map(kept)
    return asked, forgotten, cached


def _to_forget(policy: Policy, before: State, happened: Input, done: Step) -> tuple[int, ...]:
    """The nodes whose permissions this step tells a hub, or the hubs below it, to forget."""
    message = accepted_invalidation(before, happened, done)
    if message is not None:
        return message.node_ids or (EVERY_NODE,)
    if becomes_present(policy, before, done.state):
        return (EVERY_NODE,)
    new = done.policy
    if new is not policy and is_authority(policy, done.state.node_id) and policy.has_perms:
        nodes = {registration.node_id for registration in done.state.registry.values()}
        nodes |= policy.named_nodes | new.named_nodes
        return tuple(sorted(node_id for node_id in nodes if policy.resolve(node_id) != new.resolve(node_id)))
    return ()


def _let_go_on(history: HubHistory, before: State, happened: Input, done: Step) -> Findings:
    """A request that was held must not go on with permissions older than what the hub was told to forget."""
    if not isinstance(happened, Received) or not isinstance(happened.frame.body, Answer):
        return []
    msg_id = happened.frame.msg_id
    pending = before.pending.get(msg_id)
    if pending is None or pending.purpose is not Purpose.HELD or msg_id in done.state.pending:
        return []
    if history.asked.get(msg_id, -1) >= history.forgotten_at(pending.node_id):
        return []
    refused = any(
        isinstance(output, Send)
        and (output.link, output.frame.msg_id) == (pending.asker, pending.msg_id)
        and isinstance(output.frame.body, Answer)
        and output.frame.body.reason is Reason.FORBIDDEN
        for output in done.outputs
    )
    return [] if refused else [f"InvalidatedPermsNotServed: held request {pending.msg_id} went on with old permissions"]


@frozen
class History:
    """The histories of a tree's hubs."""

    now: int = 0
    hubs: Map[Name, HubHistory] = field(factory=Map)
