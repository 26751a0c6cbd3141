"""Mistakes of a hub beside plain ones, each with the promise that it breaks. They are planted anew for every walk."""

from collections.abc import Callable
from itertools import count
from typing import Any

from attrs import evolve, frozen
from pytest import MonkeyPatch

from hubauth.core import authenticate, authority, once, owed, plain, register, revoke, search, step, talk
from hubauth.core.inputs import Link, Received
from hubauth.core.messages import Action, Answer, Reason, Revoke
from hubauth.core.model import PARENT_NEIGHBOUR, Entry, Pending, Purpose, Registration, is_plain
from hubauth.core.policy import Dialect
from hubauth.core.transition import Transition

Plant = Callable[[MonkeyPatch], None]


def _never(*_: object, **__: object) -> bool:
    return False


def _always(*_: object, **__: object) -> bool:
    return True


def _nothing(*_: object, **__: object) -> None:
    return None


def _sends_again(patch: MonkeyPatch) -> None:
    send, welcome, sent = once.send, owed.welcome, dict[tuple[str, int], list[Revoke]]()

    def remember(t: Transition, link: Link, message: Revoke, originator: int, trace_id: int = 0) -> None:
        key = owed.neighbour_at(t, link)
        if key is not None:
            sent.setdefault((t.policy.device_id, key), []).append(message)
        send(t, link, message, originator, trace_id)

    def repeat(t: Transition, key: int) -> None:
        welcome(t, key)
        link = owed.live_link(t, key)
        if link is not None and is_plain(t, link):
            for message in sent.get((t.policy.device_id, key), ()):
                send(t, link, message, t.node_id)

    patch.setattr(once, "send", remember)
    patch.setattr(owed, "welcome", repeat)


def _oldest_first(patch: MonkeyPatch) -> None:
    def oldest(t: Transition, link: Link, action: Action | None) -> int | None:
        kinds = (action,) if action is not None else (Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE)
        return min((msg_id for kind in kinds for msg_id in t.asked.get((link, kind), ())), default=None)

    patch.setattr(plain, "_only_one", oldest)


def _believes_without_proof(patch: MonkeyPatch) -> None:
    settle = authenticate.on_search_answer

    def believe(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
        shown = pending.credential if pending.purpose is Purpose.AUTHENTICATE else answer.credential
        settle(t, pending, evolve(answer, credential=shown), source)

    patch.setattr(plain, "_proves", _always)
    patch.setattr(authenticate, "on_search_answer", believe)


def _forgets_what_is_kept(patch: MonkeyPatch) -> None:
    owe = owed.owe

    def forget(t: Transition, key: int, message: Revoke, originator: int, trace_id: int) -> None:
        if owed.live_link(t, key) is not None or not once.was_plain(t, key):
            owe(t, key, message, originator, trace_id)

    patch.setattr(owed, "owe", forget)


def _asks_where_frames_came_from(patch: MonkeyPatch) -> None:
    likely = search._likely_child

    def also_learnt(t: Transition, device_id: str) -> int:
        child = likely(t, device_id)
        node_id = t.registry[device_id].node_id if device_id in t.registry else t.node_of(device_id)
        learnt = t.learnt.get(node_id) if node_id is not None else None
        session = t.links.get(learnt.link) if learnt is not None else None
        return child if session is None else session.node_id

    patch.setattr(search, "_likely_child", also_learnt)


def _keeps_what_it_relays(patch: MonkeyPatch) -> None:
    relay = authenticate.on_relayed_answer

    def keep(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
        relay(t, pending, answer, source)
        if answer.reason is Reason.OK and answer.credential:
            t.put_entry(answer.device_id, Entry(answer.node_id, answer.credential))

    patch.setattr(authenticate, "on_relayed_answer", keep)


def _keeps_what_it_issues(patch: MonkeyPatch) -> None:
    answer_to = talk.answer_to

    def keep(t: Transition, received: Received, reason: Reason, **told: Any) -> None:
        answer_to(t, received, reason, **told)
        if told.get("credential"):
            t.put_entry(received.frame.body.device_id, Entry(told["node_id"], told["credential"]))  # type: ignore[union-attr]

    patch.setattr(register, "answer_to", keep)


def _answers_twice(patch: MonkeyPatch) -> None:
    settle = talk.settle

    def twice(t: Transition, pending: Pending, *told: Any, **more: Any) -> None:
        settle(t, pending, *told, **more)
        settle(t, pending, *told, **more)

    patch.setattr(authenticate, "settle", twice)


def _drops_small_numbers(patch: MonkeyPatch) -> None:
    obey, highest = revoke.on_revoke, dict[str, int]()

    def drop(t: Transition, received: Received, message: Revoke) -> None:
        number, known = received.frame.msg_id, highest.get(t.policy.device_id, 0)
        if not is_plain(t, received.link) or number == 0 or number > known:
            highest[t.policy.device_id] = max(number, known)
            obey(t, received, message)

    patch.setitem(step._HANDLERS, Revoke, drop)


def _passes_nothing_on_from_a_parent(patch: MonkeyPatch) -> None:
    pass_on = revoke._pass_on

    def unless(t: Transition, message: Revoke, frame: Any, originator: int, sender: int | None) -> None:
        if sender != PARENT_NEIGHBOUR or t.parent_extended:
            pass_on(t, message, frame, originator, sender)

    patch.setattr(revoke, "_pass_on", unless)


def _gives_a_node_again(patch: MonkeyPatch) -> None:
    allocate = register._allocate

    def first(t: Transition, device_id: str, confirmed: bool) -> int | Reason:
        t.next_node_id = t.policy.first_node_id
        return allocate(t, device_id, confirmed)

    patch.setattr(authority, "has_given_out", _never)
    patch.setattr(register, "_allocate", first)


def _gives_another_node(patch: MonkeyPatch) -> None:
    def other(t: Transition, _: Received, device_id: str, registration: Registration, confirmed: bool) -> int | Reason:
        return register._allocate(t, f"{device_id} of node {registration.node_id}", confirmed)

    patch.setattr(register, "_renew", other)


def _tires_of_names(patch: MonkeyPatch) -> None:
    verify, tries = authenticate.verify, count()

    def at_times(t: Transition, entry: Entry, presented: str) -> bool:
        return verify(t, entry, presented) and next(tries) % 3 != 2

    patch.setattr(authenticate, "verify", at_times)


def set_to(module: object, name: str, instead: Callable[..., object]) -> Plant:
    return lambda patch: patch.setattr(module, name, instead)


@frozen
class MixedMistake:
    what: str
    plant: Plant
    breaks: str
    """The promise that is found broken, or what a step must have come to."""
    where: tuple[str, Dialect, str, int]
    """Where it shows: shape, dialect, how answers are numbered, and a seed from which on it is looked for."""


_ABOVE, _BELOW = "a plain child", "a plain parent"
_BOTH, _MIDDLE = "plain above and below", "a plain hub in the middle"
_AUTH, _LOGIN, _FLAT = Dialect.AUTH, Dialect.LOGIN, Dialect.FLAT

MISTAKES = (
    MixedMistake(
        "REV-23: a revoke is sent again to who returns", _sends_again, "NoLockOut", (_ABOVE, _AUTH, "echo", 0)
    ),
    MixedMistake(
        "REV-23: what is kept is forgotten", _forgets_what_is_kept, "RevokeArrives", (_ABOVE, _AUTH, "echo", 0)
    ),
    MixedMistake(
        "REV-23: a plain hub is told of no revoke",
        set_to(once, "send", _nothing),
        "RevokeArrives",
        (_ABOVE, _LOGIN, "zero", 0),
    ),
    MixedMistake(
        "REV-22: an answer overtakes what is kept",
        set_to(owed, "send_first", _nothing),
        "NoLockOut",
        (_ABOVE, _LOGIN, "zero", 20),
    ),
    MixedMistake("REV-24: an echo is obeyed", set_to(once, "is_echo", _never), "NoLockOut", (_ABOVE, _AUTH, "echo", 0)),
    MixedMistake(
        "REV-24: a plain parent's revoke goes no further",
        _passes_nothing_on_from_a_parent,
        "RevokeArrives",
        (_BOTH, _AUTH, "echo", 0),
    ),
    MixedMistake(
        "REV-24: a plain hub's revoke with a small number is dropped",
        _drops_small_numbers,
        "RevokeArrives",
        (_MIDDLE, _AUTH, "reordered", 0),
    ),
    MixedMistake(
        "REV-11: a search outlives a revoke",
        set_to(revoke, "_cancel_authentications", _nothing),
        "RevokedStaysOut",
        (_BELOW, _LOGIN, "zero", 1),
    ),
    MixedMistake("FRAME-25: a failure is for the oldest", _oldest_first, "NoLockOut", (_BELOW, _AUTH, "reordered", 9)),
    MixedMistake(
        "FRAME-26: a search goes where frames came from",
        _asks_where_frames_came_from,
        "HomeIsAskedFirst",
        (_ABOVE, _AUTH, "echo", 6),
    ),
    MixedMistake(
        "AUTH-32: a success need not repeat the credential",
        _believes_without_proof,
        "AdmittedByCredential",
        (_BELOW, _AUTH, "zero", 5),
    ),
    MixedMistake(
        "AUTH-11: a relay keeps what it passes on",
        _keeps_what_it_relays,
        "CredentialsNeverCachedUpstream",
        (_BOTH, _LOGIN, "echo", 0),
    ),
    MixedMistake(
        "REG-7: the authority keeps what it issues",
        _keeps_what_it_issues,
        "CredentialsNeverCachedUpstream",
        (_ABOVE, _AUTH, "reordered", 0),
    ),
    MixedMistake(
        "FRAME-16: an answer is given twice", _answers_twice, "NoAnswerWithoutRequest", (_BELOW, _AUTH, "zero", 0)
    ),
    MixedMistake("REG-2: a node is given again", _gives_a_node_again, "UniqueNodeIds", (_ABOVE, _FLAT, "zero", 0)),
    MixedMistake(
        "REG-9: a device is given another node", _gives_another_node, "OneToOneBinding", (_MIDDLE, _FLAT, "echo", 0)
    ),
    MixedMistake("AUTH-15: a name is not always enough", _tires_of_names, "NoLockOut", (_BOTH, _FLAT, "echo", 0)),
)
