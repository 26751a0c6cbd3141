"""Links to hubs that speak the documents alone."""

from attrs import evolve

from hubauth.core import authority, perms, unheard
from hubauth.core.credentials import same_credential
from hubauth.core.inputs import Link
from hubauth.core.messages import Action, Answer, Reason
from hubauth.core.model import Pending, Plain, Purpose, asked_for
from hubauth.core.transition import Transition

# Who is trusted to be one


def is_named(t: Transition, link: Link, node_id: int) -> bool:
    """Whether whoever has connected on ``link`` is known, by where it comes from, to be this hub if it says so."""
    return link in t.plain and node_id in t.plain[link].hubs


def is_live(t: Transition, node_id: int) -> bool:
    """Whether a node is on some link of this hub's, or online below."""
    route = t.directory.get(node_id)
    return node_id in t.link_of_node or (route is not None and route.online)


def may_be(t: Transition, link: Link, node_id: int) -> bool:
    """Whether a link is believed to be this hub's: it takes the place of a live one only from the same peer."""
    if not is_named(t, link, node_id) or node_id not in t.policy.plain_hubs or authority.has_given_out(t, node_id):
        return False
    former = t.link_of_node.get(node_id)
    if former is None:
        return not is_live(t, node_id)
    return former in t.plain and bool(t.plain[link].peer) and t.plain[former].peer == t.plain[link].peer


# What their answers are about


def agrees(t: Transition, msg_id: int, answer: Answer) -> bool:
    """Whether every id that an answer carries is the one that was asked about."""
    pending = t.pending[msg_id]
    if answer.action is Action.GET_PERMS:
        return answer.node_id in (0, pending.node_id)
    return answer.device_id in ("", pending.device_id)


def find_asked(t: Transition, link: Link, answer: Answer) -> int | None:
    """The request that an answer settles although it bears another number; None: that cannot be told."""
    t.cite("FRAME-25")
    subject = answer.node_id if answer.action is Action.GET_PERMS else answer.device_id
    if not subject:
        return None if answer.reason is Reason.OK else _only_one(t, link, answer.action)
    fits = [
        msg_id
        for msg_id in t.asked.get((link, subject), ())
        if answer.action in (None, asked_for(t.pending[msg_id]))
        if answer.reason is not Reason.OK or _proves(t.pending[msg_id], answer)
    ]
    if answer.reason is not Reason.OK:
        return fits[0] if len(fits) == 1 else None
    return min(fits, key=lambda msg_id: unheard.rank(t.pending[msg_id]), default=None)


def doubted(t: Transition, pending: Pending) -> Pending:
    """A request whose answer bears another number: it may be the answer to an earlier request about the same node.

    So what it says of permissions counts as old if anything was invalidated since the link came up.
    """
    link = pending.asked
    known = t.plain.get(link, Plain()) if link is not None else Plain()
    return pending if known.invalidations == t.invalidations else evolve(pending, stale=True)


def _proves(pending: Pending, answer: Answer) -> bool:
    """Whether a success can be about this request and not about another one for the same device."""
    if pending.purpose is not Purpose.AUTHENTICATE or not pending.credential:
        return True
    return same_credential(answer.credential, pending.credential)


def _only_one(t: Transition, link: Link, action: Action | None) -> int | None:
    """The only request of its kind: a failure that names nobody means that."""
    kinds = (action,) if action is not None else (Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE, *_JOINING)
    found = [msg_id for kind in kinds for msg_id in t.asked.get((link, kind), ())]
    return found[0] if len(found) == 1 else None


_JOINING = (Action.REGISTER, Action.AUTHENTICATE)


# Where their devices are


def learns(t: Transition, link: Link, node_id: int) -> bool:
    """Remember that a node that is online nowhere speaks through a plain child hub; whether it may."""
    known = t.learnt.get(node_id)
    if known is not None and known.link == link:
        return True
    if node_id in (t.node_id, t.parent_node) or node_id in t.policy.kept_nodes:
        return False
    grant = perms.known_grant(t, node_id)
    if grant is not None and perms.is_privileged(grant):
        return False
    t.cite("FRAME-26")
    t.learn_node(node_id, link)
    return True
