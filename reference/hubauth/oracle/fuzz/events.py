"""What may happen around a hub, at random. Most of it is honest, some comes late, some is nonsense.

An event looks at the reference's state, so that what it does mostly makes sense there. Each draws from a source of its
own: with some events left out, the others still do what they did, as far as they can.
"""

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import PARENT_NEIGHBOUR, Pending, Purpose, asked_for
from hubauth.oracle.compare import timer_names
from hubauth.oracle.forms import (
    InvalidateForm,
    LinkDownForm,
    LinkUpForm,
    PolicyChangedForm,
    RevokeForm,
    TimerForm,
    policy_form,
)
from hubauth.oracle.fuzz.malformed import spoil
from hubauth.oracle.fuzz.policies import HUB_A, HUB_B, PLAIN, draw_change, mostly
from hubauth.oracle.fuzz.surroundings import DEVICES, GRANTS, NAMES, NODES, WRONG, Surroundings
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import NotInDialect

Event: TypeAlias = Callable[[Surroundings, Random], None]
EVENTS: dict[str, Event] = {}
WEIGHTS: dict[str, int] = {}


def event(weight: int) -> Callable[[Event], Event]:
    """List a function as something that may happen, so often."""

    def listed(function: Event) -> Event:
        EVENTS[function.__name__], WEIGHTS[function.__name__] = function, weight
        return function

    return listed


# Who comes and goes


@event(8)
def device_enters(around: Surroundings, draw: Random) -> None:
    """A device registers or authenticates, on a new connection or on one that is there."""
    links = [link for link, session in sorted(around.state.links.items()) if link != PARENT]
    link = draw.choice(links) if links and draw.random() < 0.4 else around.connect()
    name = mostly(draw, draw.choice(DEVICES), NAMES, 0.9)
    known = name in around.state.whitelist
    if draw.random() < (0.3 if known else 0.7):
        around.say(draw, link, Register(name, mostly(draw, None, (around.ext(draw, 0),), 0.95)))
    else:
        shown = mostly(draw, around.credentials_of(name)[-1], (WRONG, "", around.credentials_of(name)[-1][:20]), 0.85)
        around.say(draw, link, Authenticate(name, "" if not around.play.policy.has_credentials else shown))


@event(4)
def hub_enters(around: Surroundings, draw: Random) -> None:
    """A child hub, or the administrator, authenticates with what is configured."""
    name = draw.choice(("hub-a", "hub-a", "hub-b", "admin"))
    key = {"hub-a": HUB_A, "hub-b": HUB_B}.get(name)
    ext = around.ext(draw, key) if key is not None else None
    shown = around.credentials_of(name)[-1] if around.play.policy.has_credentials else ""
    around.say(draw, around.connect(), Authenticate(name, shown, ext))


@event(1)
def plain_hub_enters(around: Surroundings, draw: Random) -> None:
    """A hub that never authenticates, known by where it connects from, assists somebody."""
    link = around.connect(mostly(draw, (PLAIN,), ((),)), draw.choice(("here", "there")))
    around.say(draw, link, AssistRegister(draw.choice(DEVICES)), source=PLAIN)


@event(4)
def parent_is_there(around: Surroundings, draw: Random) -> None:
    """The parent is connected and takes this hub in, mostly."""
    around.play.happens(LinkUpForm(link=PARENT))
    for msg_id, asked in sorted(around.state.pending.items()):
        if asked.purpose in (Purpose.SELF_REGISTER, Purpose.SELF_AUTHENTICATE) and draw.random() < 0.95:
            answer_rightly(around, draw, msg_id, asked)


@event(3)
def somebody_leaves(around: Surroundings, draw: Random) -> None:
    """A connection is gone."""
    if around.state.links:
        around.play.happens(LinkDownForm(link=draw.choice(sorted(around.state.links))))


# What is asked


@event(5)
def device_speaks(around: Surroundings, draw: Random) -> None:
    """Somebody with a session, and no hub, asks for something."""
    sessions = around.sessions(hubs=False)
    if not sessions:
        return
    # Who may revoke comes up more often.
    allowed = [one for one in sessions if around.play.policy.resolve(one[1].node_id).allows("auth.revoke")]
    link, session = draw.choice(sessions + allowed * 2)
    name = mostly(draw, session.device_id, NAMES, 0.5)
    node = around.node_of(draw, name)
    bodies: tuple[Body, ...] = (
        Offline(name, mostly(draw, node, (0,), 0.7), draw.choice(("", "bye"))),
        revocation(around, draw, name),
        revocation(around, draw, draw.choice(DEVICES)),
        GetPerms(node),
        ListRoles(
            draw.choice((0, 1)),
            draw.choice((100, 1, 5000)),
            draw.choice(("", "", "hub")),
            draw.choice(((), (10, HUB_A))),
        ),
        invalidation(draw),
        b"opaque",
    )
    around.say(draw, link, draw.choice(bodies), **opaque(draw))


@event(7)
def hub_speaks(around: Surroundings, draw: Random) -> None:
    """A child hub asks, reports or passes on."""
    sessions = around.sessions(hubs=True)
    if sessions:
        link, session = draw.choice(sessions)
        neighbour_speaks(around, draw, link, session.node_id)


@event(4)
def parent_speaks(around: Surroundings, draw: Random) -> None:
    """The parent asks, orders or passes on."""
    if PARENT in around.state.links:
        neighbour_speaks(around, draw, PARENT, PARENT_NEIGHBOUR)


def neighbour_speaks(around: Surroundings, draw: Random, link: Link, key: int) -> None:
    """Anything that one hub says to another."""
    name = mostly(draw, draw.choice(DEVICES), NAMES, 0.8)
    node = around.node_of(draw, name)
    shown = draw.choice((*around.credentials_of(name), WRONG)) if around.play.policy.has_credentials else ""
    number = next_number(around, draw, key)
    bodies: tuple[Body, ...] = (
        AssistRegister(name),
        AssistRegister(name),
        AssistAuthenticate(name, shown),
        AssistAuthenticate(name, shown),
        AssistQueryCredential(name, draw.choice((0, node))),
        AssistOffline(name, node),
        HubOnline(name, node or 10),
        HubOnline(name, node or 10),
        HubDismiss(name, node or 10),
        HubFence(),
        revocation(around, draw, name, number),
        revocation(around, draw, name, number),
        GetPerms(node),
        ListRoles(),
        invalidation(draw),
        Register(name),
        Offline(name, node),
        Answer(Action.REVOKE, draw.choice((Reason.OK, Reason.NOT_WHITELISTED)), name, node),
        b"opaque",
    )
    body = draw.choice(bodies)
    header = opaque(draw)
    if isinstance(body, HubFence):
        header["target"] = 0
    if isinstance(body, Answer):
        header |= {"major": Major.OK_RESP if body.reason is Reason.OK else Major.ERR_RESP}
        header |= {"target": draw.choice(sorted(around.state.directory) or [0])}
    around.say(draw, link, body, **header)


def next_number(around: Surroundings, draw: Random, key: int) -> int:
    """For a revoke of a neighbour: mostly the next one, else one that was handled, or a later one."""
    if key not in around.state.neighbours:
        return 0
    handled = around.state.neighbours[key].handled
    return int(mostly(draw, handled + 1, (handled, 0, handled + 2, 2**31), 0.8))


def opaque(draw: Random) -> dict[str, Any]:
    """Header fields of what may be opaque; they change nothing for the others."""
    return {"flags": mostly(draw, 0, (1, 255), 0.95)}


def revocation(around: Surroundings, draw: Random, name: str, number: int = 0) -> Revoke:
    """A revoke of somebody, by name, node or credential."""
    node = mostly(draw, 0, (around.node_of(draw, name), draw.choice(NODES)), 0.6)
    shown = mostly(draw, "", (around.credentials_of(name)[-1], WRONG), 0.6)
    return Revoke(name, node, shown, number)


def invalidation(draw: Random) -> PermsInvalidate:
    return PermsInvalidate(draw.choice(((), (10,), (11, HUB_A))), refresh=draw.random() < 0.5)


@event(2)
def anybody_speaks(around: Surroundings, draw: Random) -> None:
    """Any request on any connection, whoever is there."""
    if around.state.links:
        neighbour_speaks(around, draw, draw.choice(sorted(around.state.links)), draw.choice((0, HUB_A)))


@event(3)
def nonsense(around: Surroundings, draw: Random) -> None:
    """A request with something wrong in it."""
    links = sorted(around.state.links)
    if not links:
        return
    name = draw.choice(NAMES)
    requests: tuple[Request, ...] = (
        Register(name),
        Authenticate(name, "" if not around.play.policy.has_credentials else WRONG),
        Offline(name, 10),
        Revoke(name, 10, WRONG),
        GetPerms(10),
        ListRoles(),
        PermsInvalidate((10,)),
        AssistRegister(name),
        AssistOffline(name, 10),
        HubOnline(name, 10),
    )
    try:
        payload = CODECS[around.play.policy.dialect].encode(draw.choice(requests))
    except NotInDialect:
        return
    around.send(draw, draw.choice(links), spoil(draw, payload), major=mostly(draw, Major.CMD, tuple(Major), 0.9))


# What is answered


@event(10)
def somebody_answers(around: Surroundings, draw: Random) -> None:
    """What the hub has asked is answered, mostly rightly; or time is up."""
    pending = [(msg_id, asked) for msg_id, asked in sorted(around.state.pending.items()) if asked.asked is not None]
    if not pending:
        return
    msg_id, asked = draw.choice(pending)
    if draw.random() < 0.75:
        answer_rightly(around, draw, msg_id, asked)
        return
    reason = draw.choice((Reason.OK, Reason.NOT_ADMITTED, *Reason))
    name = mostly(draw, asked.device_id, NAMES, 0.7)
    action = mostly(draw, asked_for(asked), tuple(Action), 0.8)
    key = mostly(draw, asked.credential or "v" * 43, ("", WRONG), 0.7)
    body = Answer(action, reason, name, draw.choice((asked.node_id or 10, *NODES)), key, draw.choice(GRANTS))
    link = mostly(draw, asked.asked, sorted(around.state.links), 0.8)
    answer(around, draw, link, msg_id, body)


def answer_rightly(around: Surroundings, draw: Random, msg_id: int, asked: Pending) -> None:
    """As a hub would that knows whom the request is about."""
    known = around.node_of(draw, asked.device_id)
    own = asked.purpose in (Purpose.SELF_REGISTER, Purpose.SELF_AUTHENTICATE)
    node = (around.state.node_id or 50) if own else asked.node_id or known or 10 + DEVICES.index("d1")
    shown = asked.credential or around.credentials_of(asked.device_id)[-1]
    if asked.purpose in (Purpose.REGISTER, Purpose.SELF_REGISTER):
        shown = f"r{msg_id:042d}"
    ext = around.ext(draw, PARENT_NEIGHBOUR) if own else None
    body = Answer(asked_for(asked), Reason.OK, asked.device_id, node, shown, draw.choice(GRANTS[1:]), ext=ext)
    assert asked.asked is not None
    answer(around, draw, asked.asked, msg_id, body)


def answer(around: Surroundings, draw: Random, link: Link, msg_id: int, body: Answer) -> None:
    """An answer with this MsgID."""
    if not around.play.policy.has_credentials:
        body = Answer(None, body.reason, body.device_id, body.node_id)
    major = Major.OK_RESP if body.reason is Reason.OK else Major.ERR_RESP
    session = around.state.links.get(link)
    source = session.node_id if session is not None else around.state.parent_node or 1
    around.say(draw, link, body, msg_id=msg_id, major=major, source=mostly(draw, source, NODES, 0.95))


# What meets on the way


@event(3)
def device_roams(around: Surroundings, draw: Random) -> None:
    """A device is at one child hub, then at another or here, and what the first one says comes late."""
    hubs = [(link, session) for link, session in around.sessions(hubs=True) if session.extended]
    known = sorted({**around.state.registry, **around.state.whitelist}.keys() & set(DEVICES))
    if not hubs or not known:
        return
    name, first, second = draw.choice(known), draw.choice(hubs)[0], draw.choice(hubs)[0]
    node = around.node_of(draw, name) or 10
    around.say(draw, first, HubOnline(name, node))
    if first != second:
        around.say(draw, second, HubOnline(name, node))
    elif name in around.state.whitelist:
        around.say(draw, around.connect(), Authenticate(name, around.credentials_of(name)[0]))
    around.say(draw, first, draw.choice((HubOnline(name, node), AssistOffline(name, node), Offline(name, node))))


@event(3)
def answer_comes_late(around: Surroundings, draw: Random) -> None:
    """Whoever the hub has asked about is revoked, or its permissions are forgotten, before the answer comes."""
    pending = [(msg_id, asked) for msg_id, asked in sorted(around.state.pending.items()) if asked.asked is not None]
    if not pending:
        return
    msg_id, asked = draw.choice(pending)
    if asked.device_id and draw.random() < 0.5:
        around.play.happens(RevokeForm(device_id=asked.device_id))
    elif around.play.policy.has_perms:
        around.play.happens(InvalidateForm(node_ids=draw.choice(((), (asked.node_id,)))))
    answer_rightly(around, draw, msg_id, asked)


@event(2)
def revoke_comes_again(around: Surroundings, draw: Random) -> None:
    """A neighbour that was not told that its revoke was handled sends it again; the device has registered since."""
    keys = {session.node_id: link for link, session in around.sessions(hubs=True) if session.extended}
    keys |= {PARENT_NEIGHBOUR: PARENT} if around.state.parent_extended else {}
    if keys:
        key, name = draw.choice(sorted(keys)), draw.choice(DEVICES)
        number = around.state.neighbours[key].handled + 1
        for last in (False, True):
            around.say(draw, keys[key], Revoke(name, seq=number), target=0)
            if not last:
                around.say(draw, around.connect(), Register(name), source=0, target=0)


@event(2)
def permissions_are_asked_again(around: Surroundings, draw: Random) -> None:
    """A device asks for permissions before and after they are forgotten."""
    sessions = around.sessions(hubs=False)
    if not sessions:
        return
    link, session = draw.choice(sessions)
    node = mostly(draw, session.node_id, NODES, 0.6)
    for last in (False, True):
        around.say(draw, link, GetPerms(node), source=session.node_id, target=0)
        for msg_id, asked in sorted(around.state.pending.items()):
            if asked.purpose is Purpose.PERMS and asked.node_id == node:
                answer_rightly(around, draw, msg_id, asked)
        if not last and PARENT in around.state.links:
            around.say(draw, PARENT, PermsInvalidate(draw.choice(((), (node,)))), target=0)


# Time, the operator


@event(3)
def time_passes(around: Surroundings, draw: Random) -> None:
    """A timer runs out."""
    timers = sorted(number for number, _ in timer_names(around.state))
    if timers:
        around.play.happens(TimerForm(timer=draw.choice(timers)))


@event(2)
def operator_commands(around: Surroundings, draw: Random) -> None:
    """The operator revokes or invalidates."""
    if draw.random() < 0.3 and around.play.policy.has_perms:
        said = invalidation(draw)
        around.play.happens(InvalidateForm(node_ids=said.node_ids, reason=said.reason, refresh=said.refresh))
        return
    said_of = revocation(around, draw, draw.choice(NAMES))
    target = mostly(draw, 0, (around.state.node_id, *NODES), 0.8)
    around.play.happens(
        RevokeForm(device_id=said_of.device_id, node_id=said_of.node_id, credential=said_of.credential, target=target)
    )


@event(1)
def operator_changes_policy(around: Surroundings, draw: Random) -> None:
    """The configuration is replaced, or the hub refuses the new one."""
    changed = draw_change(draw, around.play.policy)
    around.play.happens(PolicyChangedForm(policy=policy_form(changed)))
