"""What neighbouring hubs are owed: revokes that they have not acknowledged, and how these go out.

Only a hub that speaks the extension can acknowledge. To a plain one a revoke is sent once (once.py), and what is kept
for one that is away is owed until it is sent.

A hub may be away while any number of revokes is owed to it. They go out in batches: a fence ends each, and its
answer brings the next. So no step costs more than a batch, and the link carries everything else meanwhile. Frames may
overtake what waits, but none by which the neighbour could verify or store a credential of the device in question.

Whatever is owed to a neighbour has a turn: the number it was sent under or, until it is sent, a place behind all
numbers. ``Neighbour.written`` says how far the link that is up has been written to. What is owed beyond waits: first
what was sent over an earlier link, under the number that it had then.
"""

from collections.abc import Iterable
from itertools import chain, islice, takewhile

from attrs import evolve

from hubauth.core import once
from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Action, Answer, Frame, HubFence, Major, Reason, Revoke
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, Neighbour, Owed, Pending, Plain, Purpose, is_extended
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.outputs import Send
from hubauth.core.transition import Transition


def neighbour_at(t: Transition, link: Link) -> int | None:
    """The key of the hub at the other end; None: a device."""
    if link == PARENT:
        return PARENT_NEIGHBOUR
    session = t.links.get(link)
    return session.node_id if session is not None and session.is_hub else None


def live_link(t: Transition, key: int) -> Link | None:
    """The link of a neighbour that is here; None: it is away."""
    if key == PARENT_NEIGHBOUR:
        return PARENT if t.parent_present else None
    return t.hub_link(key)


def owe(t: Transition, key: int, message: Revoke, originator: int, trace_id: int) -> None:
    """A revoke for a neighbouring hub: it goes at once if nothing is before it, else when its turn comes."""
    link = live_link(t, key)
    if link is not None and not is_extended(t, link):
        if (key, message) in t.owed:
            t.delete_owed(key, message)
        once.send(t, link, message, originator, trace_id)
        return
    if link is None and once.was_plain(t, key):
        if key == PARENT_NEIGHBOUR and not message.credential:
            once.give_up(t, key, message, originator, sent=False)
            return
        t.cite("REV-23")
    else:
        t.cite("EXT-12")
    old = t.owed.get((key, message))
    if old is not None and old.turn >= FIRST_PLACE:
        t.put_owed(key, message, Owed(old.turn, originator))  # it kills what it finds when it gets there
        return
    turns = t.debts.turns.get(key, EMPTY)
    if old is not None:
        turns = turns.discard(old.turn)
    place = max(turns.highest() + 1, FIRST_PLACE) if turns else FIRST_PLACE
    t.put_owed(key, message, Owed(place, originator))
    if link is not None and _in_flight(t, key, turns) == len(turns) < t.policy.revoke_batch:
        _write(t, key, link, (place,), trace_id)
    else:
        t.cite("REV-21")


def _in_flight(t: Transition, key: int, turns: OrderedIds) -> int:
    """How many of these turns the link that is up has carried."""
    return turns.position(t.neighbours[key].written + 1)


def welcome(t: Transition, key: int) -> None:
    """A neighbouring hub is back: before anything else, the first batch of what it has not been told for sure."""
    link = live_link(t, key)
    if link is None or not t.policy.has_presence:
        return
    known = t.neighbours.get(key, Neighbour())
    extended = is_extended(t, link)
    if key not in t.neighbours or known.written or known.plain == extended:
        t.put_neighbour(key, evolve(known, written=0, plain=not extended))
    if extended:
        _next_batch(t, key, link)
    else:
        if t.invalidations:
            t.put_plain(link, evolve(t.plain.get(link, Plain()), invalidations=t.invalidations))
        _tell_kept(t, key, link)


def _tell_kept(t: Transition, key: int, link: Link) -> None:
    """Send what was kept for a plain neighbour, as much as the operator allows at once; a timer brings what is left."""
    for turn in tuple(islice(t.debts.turns.get(key, EMPTY), t.policy.revoke_batch)):
        _tell_one(t, key, link, turn)
    if key in t.debts.turns:
        t.put_pending(t.take_msg_id(), Pending(Purpose.PACE, Action.REVOKE, link))


def go_on_telling(t: Transition, paced: Pending) -> None:
    """It is the turn of what is still kept for a plain neighbour."""
    assert paced.asked is not None
    t.cite("REV-23")
    key = neighbour_at(t, paced.asked)
    if key is not None and live_link(t, key) == paced.asked:
        _tell_kept(t, key, paced.asked)


def _tell_one(t: Transition, key: int, link: Link, turn: int) -> None:
    """Tell a plain neighbour once what cannot kill anything newer: it names a credential, or a child never heard of it.

    What was sent before may have been obeyed before the device was given another credential, and what a parent was
    never told may be older than what it has issued since.
    """
    message = t.debts.at[key, turn]
    originator = t.owed[key, message].originator
    t.delete_owed(key, message)
    if message.credential or (key != PARENT_NEIGHBOUR and turn >= FIRST_PLACE):
        once.send(t, link, message, originator)
    else:
        once.give_up(t, key, message, originator, sent=turn < FIRST_PLACE)


def send_first(t: Transition, link: Link, device_id: str) -> None:
    """The neighbour on ``link`` is about to hear of a device: before that, what it is owed about this device."""
    key = neighbour_at(t, link)
    about = t.debts.about.get((key, device_id)) if key is not None else None
    if key is None or about is None or live_link(t, key) != link:
        return
    if not is_extended(t, link):
        t.cite("REV-22")
        for turn in tuple(about):
            _tell_one(t, key, link, turn)
        return
    turns = tuple(about.above(t.neighbours[key].written))
    if turns:
        t.cite("REV-22")
        never_sent = (turn for turn in turns if turn >= FIRST_PLACE)
        _write(t, key, link, chain(_sent_before(t, key), never_sent))


def on_fence_answer(t: Transition, pending: Pending, answer: Answer) -> None:
    """Everything up to the fence has been handled at the other end, unless that refuses it."""
    link = pending.asked
    assert link is not None
    t.cite("EXT-12")
    if answer.reason is not Reason.OK:
        t.note("EXT-12", "a fence was refused, and with it what went before", link)
        return
    key = neighbour_at(t, link)
    if key is None or key not in t.neighbours:
        return
    for turn in takewhile(lambda turn: turn <= pending.number, t.debts.turns.get(key, EMPTY)):
        t.delete_owed(key, t.debts.at[key, turn])
    if pending.number >= t.neighbours[key].batch:
        _next_batch(t, key, link)


def _next_batch(t: Transition, key: int, link: Link) -> None:
    """Send what has waited longest, as much as the operator allows at once; its fence brings what is left."""
    waiting = t.debts.turns.get(key, EMPTY).above(t.neighbours[key].written)
    last = _write(t, key, link, islice(waiting, t.policy.revoke_batch))
    if last:
        t.cite("EXT-12", "REV-21")
    if last != t.neighbours[key].batch:
        t.put_neighbour(key, evolve(t.neighbours[key], batch=last))


def _sent_before(t: Transition, key: int) -> tuple[int, ...]:
    """The turns of what has a number, and has not been sent again over the link that is up.

    A neighbour that sees a higher number first takes these for handled: they go before any other.
    """
    if key not in t.debts.turns:
        return ()
    waiting = t.debts.turns[key].above(t.neighbours[key].written)
    return tuple(takewhile(lambda turn: turn < FIRST_PLACE, waiting))


def _write(t: Transition, key: int, link: Link, turns: Iterable[int], trace_id: int = 0) -> int:
    """Send what waits at these turns, in this order, and a fence behind it; the last number, 0 if there is none."""
    neighbour = t.neighbours[key]
    number, sent, last = 0, neighbour.sent, None
    for turn in turns:
        last = t.debts.at[key, turn]
        originator = t.owed[key, last].originator
        number = turn
        if turn >= FIRST_PLACE:
            t.cite("EXT-10")
            number = sent = sent + 1
            t.put_owed(key, last, Owed(number, originator))
        body = Revoke(last.device_id, last.node_id, last.credential, number)
        t.emit(Send(link, Frame(body, Major.CMD, t.take_msg_id(), originator, 0, trace_id=trace_id)))
    if last is not None:
        t.put_neighbour(key, evolve(neighbour, sent=sent, written=number))
        _send_fence(t, key, link, number)
    return number


def _send_fence(t: Transition, key: int, link: Link, number: int) -> None:
    t.cite("EXT-11", "FRAME-15")
    msg_id, target = t.take_msg_id(), key or t.parent_node
    t.emit(Send(link, Frame(HubFence(), Major.CMD, msg_id, t.node_id, target)))
    t.put_pending(msg_id, Pending(Purpose.FENCE, Action.HUB_FENCE, link, number=number))
