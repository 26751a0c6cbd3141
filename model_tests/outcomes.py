"""What a step must have come to, said of its outcome and not of the way to it: one statement per small decision.

Each looks at one step of one hub: the tables before it, what happened, what was sent, the tables after it. They hold
whatever neighbours say, so every driver asks them after every step.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from hubauth.core.inputs import PARENT, Input, Link, Received
from hubauth.core.invariants import accepted_invalidation, becomes_present
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    GetPerms,
    ListRoles,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE, PARENT_NEIGHBOUR, Purpose, State, asked_for, is_authority, is_extended
from hubauth.core.outputs import Note, Send
from hubauth.core.policy import Policy
from hubauth.core.transition import Step

Statement: TypeAlias = "Callable[[SeenStep], Iterator[str]]"
_SEARCHES = AssistAuthenticate | AssistQueryCredential


class SeenStep:
    """One step of one hub."""

    def __init__(self, policy: Policy, before: State, happened: Input, done: Step) -> None:
        self.policy, self.before, self.happened, self.done = policy, before, happened, done
        self.after = after = done.state
        self.said: tuple[Link, Body | None] = PARENT, None
        """The link and the body of a frame of this protocol that came in."""
        if isinstance(happened, Received) and not isinstance(happened.frame.body, bytes):
            self.said = happened.link, happened.frame.body
        self.sent = [(one.link, one.frame) for one in done.outputs if isinstance(one, Send)]
        waited = before.pending.items() if before.pending is not after.pending else ()
        self.gone = [one for at, one in waited if at not in after.pending or after.pending[at].purpose != one.purpose]
        """What waited and does not any more."""


def check(policy: Policy, before: State, happened: Input, done: Step) -> list[str]:
    """Which statements a step contradicts, each with what it did."""
    seen = SeenStep(policy, before, happened, done)
    return [f"{name}: {line}" for name, statement in STATEMENTS.items() for line in statement(seen)]


def _hubs(state: State) -> dict[Link, int]:
    return {link: one.node_id for link, one in state.links.items() if one is not None and one.is_hub}


# Revokes and their numbers


def numbers_in_order(seen: SeenStep) -> Iterator[str]:
    """No number overtakes a lower one that is owed and that the link has not carried (EXT-10)."""
    sent: dict[Link, list[int]] = {}
    for link, frame in seen.sent:
        if isinstance(frame.body, Revoke) and frame.body.seq:
            sent.setdefault(link, []).append(frame.body.seq)
    for link, numbers in sent.items():
        key = PARENT_NEIGHBOUR if link == PARENT else _hubs(seen.after).get(link)
        if key is None:
            continue
        carried = seen.before.neighbours[key].written if is_extended(seen.before, link) else 0
        owed = {owed.turn for (whom, _), owed in seen.after.owed.items() if whom == key}
        missed = {turn for turn in owed if carried < turn < min(max(numbers), FIRST_PLACE)} - set(numbers)
        if missed or numbers != sorted(numbers):
            yield f"{numbers} went to {key}, and {sorted(missed)} had not"


def fences_settle_what_went_before(seen: SeenStep) -> Iterator[str]:
    """The answer to a fence acknowledges no revoke that was sent behind the fence (EXT-11)."""
    _, body = seen.said
    if isinstance(body, Answer) and body.action is Action.HUB_FENCE:
        last = max((one.number for one in seen.gone if one.purpose is Purpose.FENCE), default=0)
        for key, owed in seen.before.owed.items():
            if key not in seen.after.owed and owed.turn > last:
                yield f"{key} was sent as {owed.turn}, and the fence stood at {last}"


def numbers_go_on(seen: SeenStep) -> Iterator[str]:
    """Towards a neighbour that remembers this hub no number is used that it has handled (EXT-5)."""
    link, body = seen.said
    said: dict[Link, Ext | None] = {one.asker: one.ext for one in seen.gone if one.asker is not None}
    if isinstance(body, Register | Authenticate | Answer) and body.ext is not None:
        said[link] = body.ext
    for where, ext in said.items():
        joins = is_extended(seen.after, where) and not is_extended(seen.before, where)
        if ext is None or ext.peer != seen.before.journal or not joins:
            continue
        key = PARENT_NEIGHBOUR if where == PARENT else _hubs(seen.after)[where]
        if seen.after.neighbours[key].sent < ext.handled:
            yield f"{key} has handled {ext.handled}, and {seen.after.neighbours[key].sent + 1} comes next"


def echoes_are_equal(seen: SeenStep) -> Iterator[str]:
    """Only what equals a revoke that was sent there is taken for its echo (REV-24)."""
    link, body = seen.said
    if isinstance(body, Revoke) and any(isinstance(one, Note) and one.rule == "REV-24" for one in seen.done.outputs):
        sent = [one for one in seen.before.pending.values() if one.purpose is Purpose.SENT and one.asked == link]
        said = body.device_id, body.node_id, body.credential
        if all((one.device_id, one.node_id, one.credential) != said for one in sent):
            yield f"a revoke of {body.device_id} was not heard, and none like it had been sent"


# Registrations and admissions


def renewed_is_not_revoked(seen: SeenStep) -> Iterator[str]:
    """A registration that was just made again is not revoked since (REG-11, REV-12)."""
    _, body = seen.said
    if isinstance(body, Register | AssistRegister):
        changed = any(table == "registry" and key == body.device_id for table, key, _, _ in seen.done.changes)
        if changed and seen.after.registry[body.device_id].revoked:
            yield f"{body.device_id} registers, and may do so again"


def asked_behind_the_answer(seen: SeenStep) -> Iterator[str]:
    """Whether a credential has arrived is asked behind the answer that brings it (REG-16)."""
    link, body = seen.said
    if isinstance(body, AssistRegister):
        bodies = [frame.body for to, frame in seen.sent if to == link]
        answered = [at for at, one in enumerate(bodies) if isinstance(one, Answer)]
        asked = [at for at, one in enumerate(bodies) if isinstance(one, AssistAuthenticate)]
        if asked and (not answered or asked[0] < answered[0]):
            yield f"{body.device_id} is asked about before the answer"


def home_is_where_it_was_told(seen: SeenStep) -> Iterator[str]:
    """The child hub that is told of a registration's success is the device's home from then on (REG-15)."""
    for link, frame in seen.sent:
        body = frame.body
        if not isinstance(body, Answer) or body.action is not Action.ASSIST_REGISTER or body.reason is not Reason.OK:
            continue
        hub = _hubs(seen.after).get(link)
        if seen.policy.has_credentials and hub is not None and seen.after.homes.get(body.device_id) != hub:
            yield f"{body.device_id} was given to {hub}, its home is {seen.after.homes.get(body.device_id)}"


def later_entrance_counts(seen: SeenStep) -> Iterator[str]:
    """A register or authenticate on a link ends the wait of a device that was to be admitted there (AUTH-30)."""
    link, body = seen.said
    if link != PARENT and isinstance(body, Register | Authenticate):
        for msg_id, one in seen.before.pending.items():
            if one.purpose is Purpose.ADMIT and one.asker == link and seen.after.pending.get(msg_id) == one:
                yield f"{one.device_id} still waits on link {link}"


def entries_do_not_return(seen: SeenStep) -> Iterator[str]:
    """Who was let in by an entry of this hub, and waits for its role, brings back no entry that is gone (AUTH-29)."""
    for one in seen.gone:
        waited = one.purpose is Purpose.ADMIT and one.by_entry and one.device_id not in seen.before.whitelist
        if waited and one.device_id in seen.after.whitelist:
            yield f"{one.device_id} is stored again by what it was admitted with"


# Searches


def home_is_asked_first(seen: SeenStep) -> Iterator[str]:
    """A search goes down to where the device is online, else to its home if it has one (AUTH-20)."""
    _, body = seen.said
    if not isinstance(body, Authenticate | _SEARCHES) or not seen.policy.has_presence:
        return
    home = seen.before.homes.get(body.device_id)
    online = {one.via for one in seen.before.directory.values() if one.device_id == body.device_id and one.online}
    for link, frame in seen.sent:
        child = _hubs(seen.before).get(link)
        goes_down = isinstance(frame.body, _SEARCHES) and child is not None and child not in online
        if goes_down and home not in (None, child):
            yield f"{body.device_id} is looked for at {child}, its home is {home}"


def missed_hubs_count(seen: SeenStep) -> Iterator[str]:
    """A search that found nothing while one hub could not be asked is answered as unreachable (AUTH-10)."""
    _, body = seen.said
    found_nobody = isinstance(body, Answer) and body.reason is Reason.NOT_ADMITTED
    missed = {(one.asker, one.msg_id) for one in seen.gone if one.missed} if found_nobody else ()
    for link, frame in seen.sent if missed else ():
        told = frame.body if (link, frame.msg_id) in missed else None
        if isinstance(told, Answer) and told.reason is Reason.NOT_ADMITTED:
            yield f"{told.device_id} is not admitted, and a hub was not asked"


def queries_move_nobody(seen: SeenStep) -> Iterator[str]:
    """To ask for a credential proves nothing about where the device is: who is online stays there (AUTH-33)."""
    link, body = seen.said
    asks = isinstance(body, AssistQueryCredential) and seen.before.links.get(link) is not None
    gone = seen.gone if isinstance(body, Answer) else []
    passed = any(one.purpose is Purpose.RELAY and one.action is Action.ASSIST_QUERY_CREDENTIAL for one in gone)
    if asks or passed:
        for node_id, route in seen.before.directory.items():
            if route.online and seen.after.directory.get(node_id) != route:
                yield f"node {node_id} was online via {route.via}"


def nothing_is_asked_back(seen: SeenStep) -> Iterator[str]:
    """A hub that cannot answer a request does not pass it back to the link that it came from (AUTHY-6, AUTH-20)."""
    link, body = seen.said
    if isinstance(body, GetPerms | AssistRegister | _SEARCHES):
        for to, frame in seen.sent:
            if to == link and type(frame.body) is type(body):
                yield f"{body.action.value} goes back over link {link}"


def successes_go_to_who_waits(seen: SeenStep) -> Iterator[str]:
    """A success without its number is for who waits, unless a revoke has followed what was given up (FRAME-25)."""
    link, body = seen.said
    if not isinstance(seen.happened, Received) or not isinstance(body, Answer) or body.reason is not Reason.OK:
        return
    settled = [one for one in seen.gone if one.action is body.action and one.device_id in ("", body.device_id)]
    if not any(one.purpose is Purpose.UNHEARD and not one.number for one in settled) or body.action is None:
        return
    for msg_id, one in seen.before.pending.items():
        agrees = one.asked == link and asked_for(one) is body.action and one.purpose is not Purpose.UNHEARD
        named = one.node_id == body.node_id if body.action is Action.GET_PERMS else one.device_id == body.device_id
        proved = one.purpose is not Purpose.AUTHENTICATE or one.credential == body.credential
        given_up = seen.before.pending.get(seen.happened.frame.msg_id)
        by_number = given_up is not None and given_up.purpose is Purpose.UNHEARD
        if agrees and named and proved and not by_number and msg_id in seen.after.pending:
            yield f"link {one.asker} waits for {body.action.value} of {body.device_id}"


# Permissions


def invalidations_go_down(seen: SeenStep) -> Iterator[str]:
    """A hub passes an invalidation to all child hubs, plain or not, but the one that it came from (PERM-18)."""
    link, body = seen.said
    dropped = any(isinstance(one, Note) for one in seen.done.outputs)
    is_back = becomes_present(seen.policy, seen.before, seen.after)
    if (
        not seen.policy.has_perms
        or dropped
        or (accepted_invalidation(seen.before, seen.happened, seen.done) is None and not is_back)
    ):
        return
    held = [one.asker for one in seen.gone if one.purpose is Purpose.HELD] if isinstance(body, Answer) else []
    told = {to for to, frame in seen.sent if isinstance(frame.body, PermsInvalidate)}
    came_from = {link} if isinstance(seen.happened, Received) else set()
    for child in sorted(set(_hubs(seen.after)) - told - came_from - set(held)):
        yield f"the hub on link {child} is not told"


def listings_are_complete(seen: SeenStep) -> Iterator[str]:
    """A listing is what filtering every node that this hub knows by its role and by name leaves (PERM-19, PERM-9)."""
    _, body = seen.said
    answers = [frame.body for _, frame in seen.sent if isinstance(frame.body, Answer)]
    if not isinstance(body, ListRoles) or not answers or answers[0].reason is not Reason.OK:
        return
    roles = _roles(seen.policy, seen.before)
    rows = [
        node_id
        for node_id, role in sorted(roles.items())
        if (not body.role or role == body.role) and (not body.node_ids or node_id in body.node_ids)
    ]
    (answer,) = answers
    page = [row.node_id for row in answer.roles]
    if answer.total != len(rows) or page != rows[body.offset : body.offset + len(page)]:
        yield f"{answer.total} nodes and {page} of {rows}"


def _roles(policy: Policy, state: State) -> dict[int, str]:
    """Every node that a hub knows, and its role; empty: that it does not know."""
    own = {state.node_id} - {0}
    sure = {node_id for node_id in {*policy.named_nodes, *own} if policy.names_role(node_id)}
    if is_authority(policy, state.node_id):
        sure = {*policy.named_nodes, *own, *(one.node_id for one in state.registry.values())}
    roles = dict.fromkeys(policy.named_nodes | own | set(state.directory), "")
    roles |= {node_id: grant.role for node_id, grant in state.perms.items()}
    return roles | {node_id: policy.role_of(node_id) for node_id in sure}


def privileged_are_not_learnt(seen: SeenStep) -> Iterator[str]:
    """A route to a privileged node is never learnt from a frame of a plain hub (FRAME-26)."""
    for node_id in seen.after.learnt if seen.after.learnt is not seen.before.learnt else ():
        if node_id in seen.before.learnt:
            continue
        given = is_authority(seen.policy, seen.before.node_id) and any(
            one.node_id == node_id for one in seen.before.registry.values()
        )
        known = (
            seen.policy.resolve(node_id) if given or seen.policy.names_role(node_id) else seen.before.perms.get(node_id)
        )
        if known is not None and any(name == "*" or name.startswith("auth.") for name in known.perms):
            yield f"node {node_id} is learnt, which has {known}"


STATEMENTS: dict[str, Statement] = {
    "NumbersInOrder": numbers_in_order,
    "FencesSettleWhatWentBefore": fences_settle_what_went_before,
    "NumbersGoOn": numbers_go_on,
    "EchoesAreEqual": echoes_are_equal,
    "RenewedIsNotRevoked": renewed_is_not_revoked,
    "AskedBehindTheAnswer": asked_behind_the_answer,
    "HomeIsWhereItWasTold": home_is_where_it_was_told,
    "LaterEntranceCounts": later_entrance_counts,
    "EntriesDoNotReturn": entries_do_not_return,
    "HomeIsAskedFirst": home_is_asked_first,
    "MissedHubsCount": missed_hubs_count,
    "QueriesMoveNobody": queries_move_nobody,
    "NothingIsAskedBack": nothing_is_asked_back,
    "SuccessesGoToWhoWaits": successes_go_to_who_waits,
    "InvalidationsGoDown": invalidations_go_down,
    "ListingsAreComplete": listings_are_complete,
    "PrivilegedAreNotLearnt": privileged_are_not_learnt,
}
