"""How the judge goes on after a difference: with what the hub evidently did, where that can be told.

Taken over are: who was admitted or refused, the node id and credential it was given, a request that was never made, a
session that stayed and a link that was closed. What cannot be true of any hub (one node for two devices) is not.
"""

from collections.abc import Iterable, Iterator

from attrs import evolve

from hubauth.core import authority, presence
from hubauth.core.inputs import PARENT, Link, LinkDown, Received
from hubauth.core.messages import ENTRANCE, SUB_PROTO, Answer, Authenticate, HubFence, Reason, Revoke
from hubauth.core.model import Entry, Registration, Session
from hubauth.core.outputs import Close, Send
from hubauth.core.step import step
from hubauth.core.transition import Transition
from hubauth.forms.events import Event, Kind
from hubauth.forms.reading import frame_of
from hubauth.judge.aliases import bind_pairs
from hubauth.judge.compare import Compared, Difference
from hubauth.judge.ledger import Subject
from hubauth.judge.taking import Situation, Taken


def take_over(before: Situation, taken: Taken, compared: Compared) -> Situation:
    """The situation to go on with after a step that the hub took otherwise."""
    wrong = [difference for difference in compared.differences if not difference.of_form]
    after = _with_node_id(before, taken, wrong) or taken.after
    given = any(True for _ in _successes(before, wrong))
    if given and after is taken.after and "REG-2" in taken.done.rules:
        after = _refused(before, after)  # a node of somebody else: none was used up for this device
    if any(_is_refused(difference, before) for difference in wrong):
        after = _refused(before, after)
    t = Transition(after.policy, after.state)
    for difference in wrong:
        _take_one(t, before, taken, difference)
    state = t.finish().state
    for difference in wrong:
        done = difference.done
        if done is not None and done.kind is Kind.CLOSE and done.link in state.links:
            state = step(after.policy, state, LinkDown(done.link or PARENT)).state
    aliases = bind_pairs(after.aliases, compared.pairs, before.codec, state)
    return evolve(after, state=state, aliases=after.aliases if isinstance(aliases, Difference) else aliases)


def _with_node_id(before: Situation, taken: Taken, wrong: Iterable[Difference]) -> Situation | None:
    """As if the hub's next node id had been the one that it gave; None: it gave none, or cannot have given it."""
    for answer in _successes(before, wrong):
        again = step(before.policy, evolve(before.state, next_node_id=answer.node_id), taken.happened)
        sent = [output.frame.body for output in again.outputs if isinstance(output, Send)]
        if any(isinstance(body, Answer) and body.node_id == answer.node_id for body in sent):
            highest = max(again.state.next_node_id, before.state.next_node_id)
            return evolve(taken.after, state=evolve(again.state, next_node_id=highest))
    return None


def _successes(before: Situation, wrong: Iterable[Difference]) -> Iterator[Answer]:
    """What the hub has answered with a node id other than the one that was due."""
    for difference in wrong:
        if difference.done is not None and difference.what == "node_id":
            body = frame_of(difference.done, before.codec).body
            if isinstance(body, Answer) and body.node_id:
                yield body


def _is_refused(difference: Difference, before: Situation) -> bool:
    """Whether the hub has refused a device that was to be admitted."""
    due, done = difference.due, difference.done
    if not isinstance(due, Send) or done is None or done.kind is Kind.CLOSE:
        return False
    body, said = due.frame.body, frame_of(done, before.codec).body
    if not isinstance(body, Answer) or body.action not in ENTRANCE or body.reason is not Reason.OK:
        return False
    return isinstance(said, Answer) and said.reason is not Reason.OK


def _refused(before: Situation, after: Situation) -> Situation:
    """As before the step, without the requests that it has settled."""
    t = Transition(before.policy, before.state)
    for msg_id in before.state.pending:
        if msg_id not in after.state.pending:
            t.take_pending(msg_id)
    return evolve(before, state=t.finish().state)


def _take_one(t: Transition, before: Situation, taken: Taken, difference: Difference) -> None:
    due, done = difference.due, difference.done
    if isinstance(due, Send) and done is None and due.frame.msg_id in t.pending:
        t.take_pending(due.frame.msg_id)
    elif isinstance(due, Close):
        _keep_open(t, due.link, before.state.links.get(due.link))
    if done is None or done.kind is not Kind.FRAME_OUT:
        return
    said = frame_of(done, before.codec).body
    if isinstance(said, Answer) and said.reason is Reason.OK and said.node_id:
        _admit(t, done, said, taken)


def _keep_open(t: Transition, link: Link, session: Session | None) -> None:
    """A link that should have been closed stays, with its session unless the device has another one."""
    if link in t.links or link == PARENT:
        return
    t.open_link(link)
    if session is None or t.session_of_node(session.node_id) is not None:
        return
    if presence.contradicts(t, session.device_id, session.node_id):
        return
    if session.device_id not in t.whitelist:
        t.put_entry(session.device_id, Entry(session.node_id, "", session.is_hub))
    presence.bind(t, link, session.device_id, session.node_id, session.is_hub, session.extended)


def _admit(t: Transition, done: Event, said: Answer, taken: Taken) -> None:
    """Let in on its link whom the hub has let in there, with the node and credential that it said."""
    link, happened = done.link or PARENT, taken.happened
    asked = happened.frame.body if isinstance(happened, Received) and happened.link == link else None
    action = said.action or getattr(asked, "action", None)
    device_id = said.device_id or getattr(asked, "device_id", "")
    if action not in ENTRANCE or not device_id or link == PARENT or link not in t.links:
        return
    if said.node_id == t.node_id or presence.contradicts(t, device_id, said.node_id):
        return
    for msg_id in t.waiting.get(link, ()):
        if t.pending[msg_id].msg_id == done.msg_id:
            t.take_pending(msg_id)
    is_unknown = device_id not in t.registry and not t.policy.is_provisioned(device_id)
    if authority.is_here(t) and is_unknown:
        t.forget_hearsay(device_id, said.node_id)
        t.put_registration(device_id, Registration(said.node_id))
        t.enroll(said.node_id, t.policy.role_of(said.node_id))
        t.next_node_id = max(t.next_node_id, said.node_id + 1)
    known, session = t.whitelist.get(device_id), t.links[link]
    credential = said.credential or (asked.credential if isinstance(asked, Authenticate) else "")
    is_hub = known.is_hub if known is not None else False
    t.put_entry(device_id, Entry(said.node_id, credential, is_hub))
    if session is None or session.node_id != said.node_id:
        presence.bind(t, link, device_id, said.node_id, is_hub)


def subjects_of(before: Situation, difference: Difference) -> list[Subject]:
    """The device, node and link that a difference concerns; nobody, if it is one of form."""
    if difference.of_form:
        return []
    bodies: list[object] = []
    if isinstance(difference.due, Send):
        bodies.append(difference.due.frame.body)
    if difference.done is not None and difference.done.kind is Kind.FRAME_OUT:
        bodies.append(frame_of(difference.done, before.codec).body)
    devices = [getattr(body, "device_id", "") for body in bodies]
    nodes = [getattr(body, "node_id", 0) for body in bodies]
    at = difference.due.link if difference.due is not None else difference.done.link if difference.done else None
    session = before.state.links.get(at) if at is not None else None
    if session is not None and not session.is_hub:
        devices.append(session.device_id)
    alone = at not in (None, PARENT) and (session is None or not session.is_hub)
    fenced = at is not None and any(isinstance(body, Revoke | HubFence) for body in bodies)
    subjects: list[Subject] = [("fence", at or PARENT)] if fenced else []
    subjects += [("device", name) for name in devices if name]
    subjects += [("node", node_id) for node_id in nodes if node_id not in (0, before.state.node_id)]
    return subjects + ([("link", at)] if alone and at is not None else [])


def touched_by(difference: Difference) -> list[Subject]:
    """Between which nodes a frame of another sub-protocol goes: if one is not where it should be, nor is the frame."""
    if isinstance(difference.due, Send) and isinstance(difference.due.frame.body, bytes):
        return [("node", difference.due.frame.source), ("node", difference.due.frame.target)]
    done = difference.done
    return [("node", done.source), ("node", done.target)] if done is not None and done.sub_proto != SUB_PROTO else []
