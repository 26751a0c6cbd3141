"""What has happened, as somebody sees it who watches the messages: no hub reads it, invariants do.

A hub's own tables cannot show that it forgot a question, answered one twice or kept what it was told to forget, since
the very mistake may be in them. So this record is made of what goes in and out of hubs, not of what they note about it.
"""

from typing import TypeAlias

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import PARENT, Input, Link, LinkDown, OperatorRevoke, PolicyChanged, Received
from hubauth.core.invariants import Findings, accepted_invalidation, becomes_present, may_be_answered
from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Purpose, Session, State, is_authority
from hubauth.core.outputs import Close, Note, NoteKind, Send
from hubauth.core.policy import Policy, Trust
from hubauth.core.transition import Step

Name: TypeAlias = str
Due: TypeAlias = tuple[int, int]
"""How many answers must still come, and how many may."""

EVERY_NODE = -1
"""The key of what is forgotten about all nodes at once."""


@frozen
class HubHistory:
    """What was asked of one hub, and what it was told about permissions."""

    due: Map[Link, Map[int, Due]] = field(factory=Map)
    """Link -> MsgID -> answers to requests that came in on that link since it is up."""
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

    def unanswered(self) -> Findings:
        """The requests that must have an answer and have none."""
        return [
            f"PendingEventuallyAnswered: request {msg_id} on link {link} has no answer"
            for link, requests in self.due.items()
            for msg_id, (least, _) in requests.items()
            if least
        ]


def follow(history: HubHistory, now: int, policy: Policy, before: State, happened: Input, done: Step) -> HubHistory:
    """The history after one more step of a hub; ``now`` grows with every step, and starts above 0."""
    due, wrong = _follow_answers(history.due, policy, before, happened, done)
    asked, forgotten, cached = _follow_perms(history, now, policy, before, happened, done)
    wrong += _let_go_on(history, before, happened, done)
    after = HubHistory(due, asked, forgotten, cached, tuple(wrong))
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


# Requests and their answers


def _follow_answers(
    due: Map[Link, Map[int, Due]], policy: Policy, before: State, happened: Input, done: Step
) -> tuple[Map[Link, Map[int, Due]], Findings]:
    wrong: Findings = []
    if isinstance(happened, LinkDown) and happened.link in due:
        due = due.delete(happened.link)
    if isinstance(happened, Received) and _counts(happened.frame) and may_be_answered(policy, before, happened):
        link, msg_id = happened.link, happened.frame.msg_id
        requests = due.get(link, Map())
        least, most = requests.get(msg_id, (0, 0))
        least += must_be_answered(policy, before, happened)
        due = due.set(link, requests.set(msg_id, (least, most + 1)))
    for output in done.outputs:
        if isinstance(output, Close) and output.link in due:
            due = due.delete(output.link)
        elif isinstance(output, Send) and isinstance(output.frame.body, Answer) and _counts(output.frame):
            link, msg_id = output.link, output.frame.msg_id
            requests = due.get(link, Map())
            least, most = requests.get(msg_id, (0, 0))
            if most == 0:
                wrong.append(f"NoAnswerWithoutRequest: request {msg_id} on link {link} is answered once too often")
            elif most == 1:
                due = due.set(link, requests.delete(msg_id))
            else:
                due = due.set(link, requests.set(msg_id, (max(least - 1, 0), most - 1)))
    return due, wrong


def _counts(frame: Frame) -> bool:
    """A revoke may be answered by any number of hubs, or by none."""
    return getattr(frame.body, "action", None) is not Action.REVOKE


def must_be_answered(policy: Policy, before: State, received: Received) -> bool:
    """Whether the rules leave a hub no choice but to answer a request that may be answered."""
    link, body = received.link, received.frame.body
    session = before.links.get(link)
    if isinstance(body, Register | Authenticate):
        return True
    named = received.frame.source != 0 or _assists(body)
    if link == PARENT:
        return named or isinstance(body, Offline)
    if session is None:
        return policy.trust is Trust.LINKS  # a laboratory may take it for a hub, and its frame for unreachable
    reachable = named if session.is_hub and received.frame.source == 0 else _is_reachable(before, session, received)
    if not reachable or isinstance(body, PermsInvalidate):
        return False  # dropped; only a refusal is answered
    own = isinstance(body, Offline) and (session.is_hub or body.device_id == session.device_id)
    return policy.answer_offline or not own


def _assists(body: object) -> bool:
    """Whether a hub that says this need not name itself."""
    action = getattr(body, "action", None)
    return isinstance(action, Action) and action.value.startswith("assist_")


def _is_reachable(before: State, session: Session, received: Received) -> bool:
    source = received.frame.source
    route = before.directory.get(source)
    below = session.is_hub and route is not None and route.via == session.node_id
    unnamed = source == 0 and not session.is_hub
    return source == session.node_id or below or unnamed


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
    if isinstance(happened, PolicyChanged) and is_authority(policy, done.state.node_id) and policy.has_perms:
        if any(isinstance(output, Note) and output.kind is NoteKind.POLICY_REFUSED for output in done.outputs):
            return ()
        new = happened.policy
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


# Revokes


@frozen
class Meant:
    """What somebody revoked, as it was said where it was said first."""

    message: Revoke
    everywhere: bool
    before: int | None = None
    """A registration's own revoke means only credentials with a lower number: those issued before it."""

    def means(self, device_id: str, entry: Entry) -> bool:
        """Whether this is an entry that was to be deleted."""
        message = self.message
        return (
            message.device_id == device_id
            and message.node_id in (0, entry.node_id)
            and message.credential in ("", entry.credential)
            and (self.before is None or number_of(entry.credential) < self.before)
        )


@frozen
class Revokes:
    """Every revoke that was ever said in a tree, and which hubs it has come to."""

    meant: Map[int, Meant] = field(factory=Map)
    carried: Map[tuple[Name, Name, int], frozenset[int]] = field(factory=Map)
    """Sending hub, receiving hub, turn between the two (negated MsgID of what has no number) -> revokes.

    What is owed twice is sent once."""
    met: Map[Name, frozenset[int]] = field(factory=Map)
    """Hub -> revokes that it has acted on: none means anything a second time."""


@frozen
class History:
    """The histories of a tree and its hubs."""

    now: int = 0
    hubs: Map[Name, HubHistory] = field(factory=Map)
    revokes: Revokes = field(factory=Revokes)
    issued: Map[str, str] = field(factory=Map)
    """Device -> the credential that was issued to it last."""
    thinned: frozenset[str] = frozenset()
    """Credentials of which a revoke at one hub alone has deleted an entry."""


def number_of(credential: str) -> int:
    """The number that a network issued a credential under; 0 for one that was configured."""
    return int(credential[1:]) if credential[:1] == "c" and credential[1:].isdecimal() else 0


def said_first(before: State, happened: Input, fresh: int) -> Meant | None:
    """What is revoked by a step that no other hub's revoke has caused."""
    if isinstance(happened, OperatorRevoke):
        return Meant(happened.revoke, happened.target == 0)
    if not isinstance(happened, Received):
        return None
    frame = happened.frame
    if isinstance(frame.body, Answer):
        pending = before.pending.get(frame.msg_id)
        if pending is None or pending.held is None:
            return None
        frame = pending.held
    body = frame.body
    if isinstance(body, Revoke):
        return Meant(body, frame.target == 0)
    if isinstance(body, Register | AssistRegister):
        return Meant(Revoke(body.device_id), everywhere=True, before=fresh)
    return None
