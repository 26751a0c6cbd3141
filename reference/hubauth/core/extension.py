"""The extension between hubs of one kind: which links speak it, and whose numbers two neighbours go on with.

A hub offers it in its own registration or authentication, and the parent takes it up in the answer. A link on which
that did not happen is plain: nothing of the extension is sent on it, and nothing of it believed.
"""

from attrs import evolve

from hubauth.core.inputs import Link
from hubauth.core.messages import MAX_HANDLED, NOT_A_HUB, Ext
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, Neighbour, Owed
from hubauth.core.ordered import EMPTY
from hubauth.core.outputs import NoteKind
from hubauth.core.transition import Transition


def speaks(t: Transition) -> bool:
    """Whether this hub speaks the extension."""
    return t.policy.has_extension and bool(t.journal)


def offer(t: Transition) -> Ext | None:
    """What this hub says of the extension when it joins its parent."""
    if not speaks(t):
        return None
    t.cite("EXT-2")
    known = t.neighbours.get(PARENT_NEIGHBOUR, Neighbour())
    return Ext(t.journal, known.journal, known.handled)


def accepts(t: Transition, ext: Ext | None) -> bool:
    """Whether what another hub says makes the link to it an extended one, as far as this end is concerned."""
    if ext is None or not speaks(t):
        return False
    return ext.hub and ext.journal not in ("", t.journal) and ext.handled <= MAX_HANDLED


def accepts_parent(t: Transition, ext: Ext | None) -> bool:
    """The same of a parent's answer: one that does not name this hub's journal has only repeated what it was sent."""
    t.cite("EXT-4")
    return ext is not None and ext.peer == t.journal and accepts(t, ext)


def answer(t: Transition, link: Link, ext: Ext, *, joins: bool) -> Ext | None:
    """What whoever was admitted on ``link`` is told, having said ``ext``; ``joins``: it was no hub there before."""
    if not speaks(t):
        return None
    session = t.links[link]
    assert session is not None
    if not session.is_hub:
        t.cite("EXT-7")
        return NOT_A_HUB
    if not session.extended:
        return None
    t.cite("EXT-3")
    if joins:
        meet(t, session.node_id, ext)
    neighbour = t.neighbours[session.node_id]
    return Ext(t.journal, ext.journal, neighbour.handled) if neighbour.journal == ext.journal else None


def meet(t: Transition, key: int, ext: Ext) -> None:
    """A neighbour is back on an extended link: go on with the numbers between the two, or begin anew."""
    t.cite("EXT-5")
    neighbour = t.neighbours.get(key, Neighbour())
    if neighbour.journal != ext.journal:
        if key == PARENT_NEIGHBOUR and neighbour.journal:
            _forget_former_parent(t)
        _lose_numbers(t, key)
        neighbour = Neighbour(journal=ext.journal)
    if ext.peer == t.journal and ext.handled > neighbour.sent:
        neighbour = evolve(neighbour, sent=ext.handled)
    t.put_neighbour(key, neighbour)


def _forget_former_parent(t: Transition) -> None:
    """What the new parent has issued since must not be killed by revokes that name no credential."""
    owed = [message for key, message in t.owed if key == PARENT_NEIGHBOUR and not message.credential]
    for message in sorted(owed, key=lambda message: t.owed[PARENT_NEIGHBOUR, message].turn):
        t.delete_owed(PARENT_NEIGHBOUR, message)
    if owed:
        detail = f"{len(owed)} revokes that the former parent has not confirmed are dropped"
        t.note("EXT-6", detail, kind=NoteKind.UNCONFIRMED)


def _lose_numbers(t: Transition, key: int) -> None:
    """What was sent under numbers that count no more waits again, in the order it had."""
    turns = tuple(t.debts.turns.get(key, EMPTY))
    if not turns or turns[0] >= FIRST_PLACE:
        return
    rows = [(message := t.debts.at[key, turn], t.owed[key, message].originator) for turn in turns]
    for message, _ in rows:
        t.delete_owed(key, message)
    for place, (message, originator) in enumerate(rows, FIRST_PLACE):
        t.put_owed(key, message, Owed(place, originator))
