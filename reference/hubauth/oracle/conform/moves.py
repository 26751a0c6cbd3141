"""The moves of a random sequence: what a device, a child hub, the operator's device or the parent may do next.

A move that makes no sense at its place (nobody is connected, nothing waits for an answer) does nothing.
"""

from collections.abc import Callable
from typing import TypeAlias

from attrs import define, frozen

from hubauth.core.messages import (
    NO_GRANT,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    ListRoles,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.oracle.conform.peers import Outcome, Peer
from hubauth.oracle.conform.world import World

Move: TypeAlias = tuple[str, int, int]
"""What, and two numbers that say who: which connection or hub, and which device."""

SIZE = 4
_ASKED = (AssistRegister, AssistAuthenticate, AssistQueryCredential, GetPerms)


@define
class Name:
    """A device of a sequence, wherever it is."""

    device_id: str
    node_id: int = 0
    credential: str = ""

    @property
    def presented(self) -> str:
        """Its credential, or a guess that nobody makes for another device: the parent of a sequence may confirm it."""
        return self.credential or self.device_id.replace("-", "").rjust(43, "x")


class Cast:
    """Who takes part in one sequence, and the moves they can make."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.names = [Name(world.fresh_name()) for _ in range(SIZE)]
        self.devices: dict[int, Peer] = {}
        self.hubs: dict[int, Peer] = {}
        self.boss: Peer | None = None
        self.asked: list[tuple[Peer, Frame]] = []
        """What the hub under test has asked and nobody has answered."""
        self.steps = 0

    def make(self, move: Move) -> None:
        """One move. Raises Violated."""
        what, who, whom = move
        outcome = MOVES[what].play(self, who, self.names[whom % SIZE])
        if outcome is not None:
            self.steps += 1
            self._learn(outcome)

    def _learn(self, outcome: Outcome) -> None:
        """Remember what was given to whom, and what waits for an answer."""
        for link, frames in outcome.frames.items():
            for frame in frames:
                body = frame.body
                if isinstance(body, Answer) and body.reason is Reason.OK:
                    for name in self.names:
                        if name.device_id == body.device_id and body.node_id:
                            name.node_id = body.node_id
                            name.credential = body.credential or name.credential
                elif isinstance(body, _ASKED) and link in self.world.peers:
                    self.asked.append((self.world.peers[link], frame))

    def device(self, at: int) -> Peer:
        """A connection, made if there is none."""
        at %= SIZE
        if at not in self.devices or not self.devices[at].is_open:
            self.devices[at] = self.world.connect("device")
        return self.devices[at]

    def bound(self, at: int) -> Peer | None:
        """A connection with a session."""
        peer = self.devices.get(at % SIZE)
        session = self.world.mirror.state.links.get(peer.link) if peer is not None and peer.is_open else None
        if peer is None or session is None:
            return None
        peer.node_id, peer.device_id = session.node_id, session.device_id
        return peer

    def hub(self, at: int) -> Peer | None:
        """A child hub, joined if it is not."""
        known = self.world.subject.profile.child_hub
        if not known:
            return None
        at %= len(known)
        if at not in self.hubs or not self.hubs[at].is_open:
            self.hubs[at] = self.world.child_hub(at)
            self.steps += 1
        return self.hubs[at]

    def admin(self) -> Peer | None:
        if self.world.subject.profile.admin is None:
            return None
        if self.boss is None or not self.boss.is_open:
            self.boss = self.world.admin()
            self.steps += 1
        return self.boss

    def parent(self) -> Peer | None:
        return self.world.parent if self.world.subject.profile.parent is not None else None


# The moves


def _register(cast: Cast, who: int, name: Name) -> Outcome:
    return cast.device(who).say(Register(name.device_id))


def _authenticate(cast: Cast, who: int, name: Name) -> Outcome:
    return cast.device(who).say(Authenticate(name.device_id, name.presented))


def guessed(device_id: str) -> str:
    """A credential that nobody has issued, another one for each device: a parent that says yes vouches for one."""
    return device_id[-20:].rjust(43, "y")


def _guess(cast: Cast, who: int, name: Name) -> Outcome:
    return cast.device(who).say(Authenticate(name.device_id, guessed(name.device_id)))


def _offline(cast: Cast, who: int, name: Name) -> Outcome:
    peer = cast.device(who)
    return peer.say(Offline(name.device_id, name.node_id))


def _leave(cast: Cast, who: int, _: Name) -> Outcome | None:
    return _hang_up(cast.devices, who % SIZE)


def _hang_up(peers: dict[int, Peer], at: int) -> Outcome | None:
    """Who waits for an answer leaves only if that shows: else it stays open when the hub will have noticed."""
    peer = peers.get(at)
    if peer is None or not peer.is_open or not peer.leaving_shows():
        return None
    del peers[at]
    return peer.hang_up()


def _opaque(cast: Cast, who: int, name: Name) -> Outcome | None:
    peer = cast.bound(who)
    return peer.opaque(name.node_id) if peer is not None else None


def _get_perms(cast: Cast, who: int, name: Name) -> Outcome | None:
    peer = cast.bound(who)
    return peer.say(GetPerms(name.node_id)) if peer is not None else None


def _list_roles(cast: Cast, who: int, _: Name) -> Outcome | None:
    peer = cast.bound(who)
    nodes = tuple(name.node_id for name in cast.names if name.node_id)
    return peer.say(ListRoles(node_ids=nodes)) if peer is not None and nodes else None


def _revoke(cast: Cast, who: int, name: Name) -> Outcome | None:
    peer = cast.admin()
    if peer is None:
        return None
    target = cast.world.subject.node_id if who % 2 else 0
    return peer.revoke(name.device_id, target=target, credential=name.credential if who == 2 else "")


def _presume(cast: Cast, who: int, name: Name) -> Outcome | None:
    """A device without the permission revokes."""
    peer = cast.bound(who)
    return peer.revoke(name.device_id) if peer is not None else None


def _invalidate(cast: Cast, who: int, name: Name) -> Outcome | None:
    peer = cast.admin()
    nodes = (name.node_id,) if who % 2 and name.node_id else ()
    return peer.say(PermsInvalidate(nodes, refresh=who == 3)) if peer is not None else None


def _invalid(cast: Cast, who: int, _: Name) -> Outcome:
    return cast.device(who).send(cast.world.subject.fence_payload("invalid"))


def _hub_registers(cast: Cast, who: int, name: Name) -> Outcome | None:
    hub = cast.hub(who)
    return hub.say(AssistRegister(name.device_id)) if hub is not None else None


def _hub_announces(cast: Cast, who: int, name: Name) -> Outcome | None:
    hub = cast.hub(who) if name.node_id else None
    return hub.announce(name.device_id, name.node_id) if hub is not None else None


def _hub_reports(cast: Cast, who: int, name: Name) -> Outcome | None:
    hub = cast.hub(who) if name.node_id else None
    return hub.say(AssistOffline(name.device_id, name.node_id)) if hub is not None else None


def _hub_searches(cast: Cast, who: int, name: Name) -> Outcome | None:
    hub = cast.hub(who)
    return hub.say(AssistAuthenticate(name.device_id, name.presented)) if hub is not None else None


def _hub_revokes(cast: Cast, who: int, name: Name) -> Outcome | None:
    hub = cast.hub(who)
    return hub.pass_on(Revoke(name.device_id)) if hub is not None else None


def _hub_leaves(cast: Cast, who: int, _: Name) -> Outcome | None:
    return _hang_up(cast.hubs, who % len(cast.world.subject.profile.child_hub))


def _parent_orders(cast: Cast, _: int, name: Name) -> Outcome | None:
    parent = cast.parent() if name.node_id else None
    return parent.say(HubDismiss(name.device_id, name.node_id)) if parent is not None else None


def _parent_revokes(cast: Cast, _: int, name: Name) -> Outcome | None:
    parent = cast.parent()
    return parent.pass_on(Revoke(name.device_id)) if parent is not None else None


def _parent_searches(cast: Cast, _: int, name: Name) -> Outcome | None:
    parent = cast.parent()
    return parent.say(AssistAuthenticate(name.device_id, name.presented)) if parent is not None else None


def _answer(cast: Cast, who: int, name: Name) -> Outcome | None:
    """Answer something that the hub under test asked, as a hub would; or refuse it."""
    cast.asked = [(peer, frame) for peer, frame in cast.asked if peer.is_open]
    if not cast.asked:
        return None
    peer, request = cast.asked.pop(who % len(cast.asked))
    body, subject = request.body, cast.world.subject
    if cast.names.index(name) == 0:
        return peer.answer(request, Reason.NOT_ADMITTED)
    if isinstance(body, GetPerms):
        return peer.answer(request, grant=Grant("sensor", ("read.own",)))
    about = next((one for one in cast.names if one.device_id == getattr(body, "device_id", "")), name)
    shown = getattr(body, "credential", "") or about.credential
    if isinstance(body, AssistRegister):
        shown = subject.fresh_credential() if cast.world.mirror.policy.has_credentials else ""
    return peer.answer(request, node_id=about.node_id or subject.fresh_node(), credential=shown, grant=NO_GRANT)


@frozen
class Playing:
    """A move, and the features it needs."""

    play: Callable[[Cast, int, Name], Outcome | None]
    needs: frozenset[str]


def _needs(play: Callable[[Cast, int, Name], Outcome | None], *needs: str) -> Playing:
    return Playing(play, frozenset(needs))


MOVES: dict[str, Playing] = {
    "register": _needs(_register, "register"),
    "authenticate": _needs(_authenticate, "authenticate"),
    "guess": _needs(_guess, "authenticate"),
    "offline": _needs(_offline, "offline"),
    "leave": _needs(_leave),
    "opaque": _needs(_opaque, "routing"),
    "get perms": _needs(_get_perms, "perms"),
    "list roles": _needs(_list_roles, "list_roles", "root"),
    "revoke": _needs(_revoke, "revoke", "admin"),
    "presume": _needs(_presume, "revoke"),
    "invalidate": _needs(_invalidate, "perms_invalidate", "admin"),
    "invalid": _needs(_invalid),
    "hub registers": _needs(_hub_registers, "register", "child_hub"),
    "hub announces": _needs(_hub_announces, "child_hub", "extension"),
    "hub reports": _needs(_hub_reports, "offline", "child_hub"),
    "hub searches": _needs(_hub_searches, "authenticate", "child_hub"),
    "hub revokes": _needs(_hub_revokes, "revoke", "child_hub"),
    "hub leaves": _needs(_hub_leaves, "child_hub"),
    "parent orders": _needs(_parent_orders, "extension", "parent"),
    "parent revokes": _needs(_parent_revokes, "revoke", "parent"),
    "parent searches": _needs(_parent_searches, "authenticate", "parent"),
    "answer": _needs(_answer),
}
