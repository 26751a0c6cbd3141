"""The last step into a session: role and permissions are known first, then the hub stores, binds and answers.

A hub that does not know them asks the authority. Meanwhile the device is not admitted: nothing is stored or bound, and
what happens to the device in that time decides as if it had happened before. Whatever becomes of the question, the
device does not pay for it: without an answer it is admitted with what is known by then.
"""

from attrs import evolve

from hubauth.core import authority, extension, owed, presence, unheard
from hubauth.core.credentials import same_credential
from hubauth.core.inputs import Link
from hubauth.core.messages import NO_GRANT, Action, Answer, GetPerms, Grant, Reason
from hubauth.core.model import Entry, Pending, Purpose
from hubauth.core.ordered import OrderedIds
from hubauth.core.perms import decide_hub, known_grant, learn
from hubauth.core.talk import ask, overdrawn, settle
from hubauth.core.transition import Transition

_OK, _ADMIT = Reason.OK, Purpose.ADMIT


def admit(
    t: Transition, pending: Pending, entry: Entry, told: Grant | None = None, source: int = 0, *, by_entry: bool = False
) -> None:
    """Admit the device of ``pending`` with this entry, as soon as its role and permissions are known.

    ``told`` is what another hub said of the node, ``source`` the hub whose decision this is, if not this one's own;
    ``by_entry`` says that the entry is this hub's already.
    """
    if pending.device_id in t.asking:
        _end_waiting(t, t.asking[pending.device_id])
    grant = known_grant(t, entry.node_id) or told
    if grant is not None or not t.policy.has_perms or not _asks_first(t, pending, entry, by_entry):
        _enter(t, pending, entry, grant, source)


def _asks_first(t: Transition, pending: Pending, entry: Entry, by_entry: bool) -> bool:
    """Whether the device waits for the authority: not if that cannot be asked, or too much waits on its link."""
    link = pending.asker
    assert link is not None
    way = None if authority.is_here(t) else authority.way(t)
    if way is None or way == link or overdrawn(t, link, way, pending.action):
        t.cite("AUTH-28")
        return False
    t.cite("AUTH-27")
    about = evolve(
        pending,
        purpose=_ADMIT,
        asked=way,
        node_id=entry.node_id,
        credential=entry.credential,
        epoch=t.perms_epoch,
        climbs=False,
        missed=False,
        by_entry=by_entry,
    )
    ask(t, GetPerms(entry.node_id), about)
    return True


def _enter(t: Transition, pending: Pending, entry: Entry, grant: Grant | None, source: int = 0) -> None:
    """Store, bind and answer: the only way into a session."""
    link = pending.asker
    assert link is not None
    known = t.links[link]
    was_hub_link = known is not None and known.is_hub and known.node_id == entry.node_id
    is_hub = decide_hub(t, grant, entry.is_hub)
    t.put_entry(pending.device_id, entry if entry.is_hub == is_hub else evolve(entry, is_hub=is_hub))
    said = pending.ext
    extended = known.extended if was_hub_link and known is not None else is_hub and extension.accepts(t, said)
    presence.bind(t, link, pending.device_id, entry.node_id, is_hub, extended)
    if t.policy.has_perms:
        t.cite("AUTH-26")
    ext = extension.answer(t, link, said, joins=not was_hub_link) if said is not None else None
    settle(t, pending, _OK, entry.node_id, entry.credential, grant or NO_GRANT, source, ext)
    if is_hub and not was_hub_link:
        owed.welcome(t, entry.node_id)


def told_with(t: Transition, pending: Pending, answer: Answer) -> Grant | None:
    """What a success says of the node; None if it says nothing, or may be older than an invalidation.

    Which node it is about was not known when this hub asked, so an invalidation of any node counts.
    """
    if not answer.grant.role:
        return None
    if pending.stale or pending.epoch != t.invalidations:
        t.cite("PERM-21")
        return None
    if pending.purpose is Purpose.REGISTER and t.policy.has_perms and not t.policy.names_role(answer.node_id):
        t.cite("PERM-20")
        t.put_perms(answer.node_id, answer.grant)
    return answer.grant


# The wait, and its end


def on_perms_answer(t: Transition, pending: Pending, answer: Answer) -> None:
    """The authority, or a hub on the way to it, has answered about a device that waits to be admitted."""
    if answer.reason is not _OK or not learn(t, pending, answer.grant):
        t.cite("AUTH-28")
    _go_on(t, pending)


def go_on_unanswered(t: Transition) -> None:
    """Admit the devices whose question this step has found to be lost.

    That is done last: to bind a device in the middle of the loss of a link could end a session that is being ended.
    """
    while t.unanswered:
        t.cite("AUTH-28")
        _go_on(t, t.unanswered.pop(0))


def _go_on(t: Transition, pending: Pending) -> None:
    """Admit a device with what is known now, unless what has happened meanwhile forbids it."""
    if pending.asker not in t.links:
        return
    entry = t.whitelist.get(pending.device_id) if pending.action is Action.AUTHENTICATE else None
    refusal = _forbidden(t, pending, entry)
    if refusal is not None:
        t.cite("AUTH-29")
        settle(t, pending, refusal)
        return
    entry = entry or Entry(pending.node_id, pending.credential)
    _enter(t, pending, entry, known_grant(t, entry.node_id))


def _forbidden(t: Transition, pending: Pending, entry: Entry | None) -> Reason | None:
    """Why a device that has waited is not admitted; None: nothing speaks against it."""
    if entry is not None:
        return None if same_credential(entry.credential, pending.credential) else Reason.NOT_ADMITTED
    if pending.by_entry:
        return Reason.NOT_ADMITTED
    if pending.action is Action.REGISTER and t.policy.is_provisioned(pending.device_id):
        return Reason.PROTECTED
    return Reason.UNREACHABLE if presence.contradicts(t, pending.device_id, pending.node_id) else None


def make_way(t: Transition, link: Link) -> None:
    """A device registers or authenticates on ``link``: whoever waits there to be admitted is not."""
    if link in t.waiting:
        _end_waiting(t, t.waiting[link])


def _end_waiting(t: Transition, msg_ids: OrderedIds) -> None:
    for msg_id in msg_ids:
        if t.pending[msg_id].purpose is _ADMIT:
            t.cite("AUTH-30")
            settle(t, unheard.forget(t, msg_id), Reason.UNREACHABLE)
