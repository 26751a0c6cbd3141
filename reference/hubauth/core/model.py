"""One hub's state: an immutable value. What each table is for stands beside it.

``Index`` holds what can be computed from the rest and is kept only so that no step has to search.
"""

from enum import Enum
from typing import Protocol, TypeAlias

from immutables import Map

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import ENTRANCE, Action, Ext, Frame, Grant, Revoke
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.policy import Policy, Provisioned
from hubauth.core.values import frozen

PARENT_NEIGHBOUR = 0
"""The parent's key among the neighbours; child hubs are keyed by node id."""
FIRST_PLACE = 1 << 32
"""Where the places of revokes that were never sent begin: behind all numbers."""

Subject: TypeAlias = str | int | tuple[int, str]
"""What a pending request is about: a device that authenticates here or whose registration is to be confirmed, a node
whose permissions are asked for, or an originator and the device it revokes."""


@frozen
class Registration:
    """The authority's binding of a device. There is no credential in it."""

    node_id: int
    revoked: bool = False
    """Revoked since the last registration: what ``reregister = after_revoke`` asks for."""
    confirmed: bool = True
    """Some hub has the credential, as far as that matters: without one that says so it may be made again."""


@frozen
class Entry:
    """A whitelist entry: a device that has been on this hub directly, or is provisioned here."""

    node_id: int
    credential: str
    is_hub: bool = False


@frozen
class Route:
    """Where a node below this hub is, or was last seen. ``via`` is the node itself or a child hub's node."""

    device_id: str
    via: int
    online: bool


@frozen
class Session:
    """What a link is bound to."""

    device_id: str
    node_id: int
    is_hub: bool
    extended: bool = False
    """A hub's: both ends speak the extension. Settled when the link is bound, and so until it drops."""


@frozen
class Plain:
    """What is remembered of a link at whose other end is, or may be, a hub that speaks the documents alone."""

    hubs: tuple[int, ...] = ()
    """As which of them it may name itself."""
    peer: str = ""
    """Where it connects from."""
    invalidations: int = 0
    """``State.invalidations`` when the hub joined, or this one was admitted by it."""


@frozen
class Learnt:
    """Where frames of a node come from that no directory has. An entry of its own, so that one more costs no more."""

    link: Link
    turn: int
    """Its place among those of the link: the lowest is forgotten first."""


class Purpose(Enum):
    """What a pending request is for: it decides what its answer does."""

    REGISTER = "register"
    """A device on this hub registers."""
    AUTHENTICATE = "authenticate"
    """A device on this hub authenticates, by ``assist_auth``."""
    QUERY = "query"
    """A device on this hub authenticates, by ``assist_query_credential``."""
    RELAY = "relay"
    """Another hub asked; the answer goes back to it."""
    PERMS = "perms"
    """Somebody (or nobody: a refresh) wants to know a node's role."""
    HELD = "held"
    """A request that waits for its originator's permissions."""
    ADMIT = "admit"
    """A device on this hub is proved to be who it says, and waits for its role and permissions."""
    SELF_REGISTER = "self_register"
    SELF_AUTHENTICATE = "self_authenticate"
    """This hub joins its parent."""
    DISMISS = "dismiss"
    """A child hub was told that a node of its is superseded."""
    REVOKE = "revoke"
    """A device's revoke, remembered so that answers can carry its MsgID."""
    CONFIRM = "confirm"
    """A hub that was told of a registration is asked whether it has the credential."""
    FENCE = "fence"
    """What went before on this link is acknowledged by the answer."""
    SENT = "sent"
    """A revoke that was sent to a plain neighbour: it may come back as an echo, and may be confirmed."""
    UNHEARD = "unheard"
    """A plain neighbour was asked, and nobody waits for its answer any more."""
    PACE = "pace"
    """More was kept for a plain neighbour than is sent at once."""


TIMELESS = (Purpose.DISMISS, Purpose.FENCE, Purpose.UNHEARD)
"""What no timer runs for."""


@frozen
class Pending:
    """What this hub asked of a neighbour, and for whom. Keyed by the MsgID it chose.

    ``held`` is set only for this hub's own devices; ``credential``, too, but for a search of another hub that may have
    to be put to the parent as well.
    """

    purpose: Purpose
    action: Action
    """What the asker asked for, and will be answered about."""
    asked: Link | None
    """Whose answer settles it; None for REVOKE, which any number of hubs may answer."""
    asker: Link | None = None
    """Whom to answer; None if that is nobody but this hub."""
    msg_id: int = 0
    trace_id: int = 0
    device_id: str = ""
    node_id: int = 0
    credential: str = ""
    held: Frame | None = None
    number: int = 0
    """FENCE: the last revoke before it. SENT: 1 once it is confirmed. UNHEARD: 1 once a revoke
    about the device has followed it."""
    epoch: int = 0
    """``State.perms_epoch`` when this was asked, ``State.invalidations`` where the node is not known before the answer:
    a later one means the answer's permissions are stale."""
    stale: bool = False
    """An invalidation that named ``node_id`` has passed since."""
    climbs: bool = False
    """A search put to a child hub: unless that settles it, the parent is next."""
    missed: bool = False
    """A search of which a hub could not be asked: found nowhere is not the same as not admitted then."""
    ext: Ext | None = None
    """What whoever registers or authenticates here said of the extension."""
    by_entry: bool = False
    """ADMIT: it is an entry of this hub that admits the device; without it there is no admission."""
    originator: int = 0
    """SENT: who revokes."""


@frozen
class Neighbour:
    """A hub next to this one, and the numbers of the revokes between the two."""

    sent: int = 0
    """The last number used towards it."""
    handled: int = 0
    """The last number handled from it."""
    written: int = 0
    """The last number that the link which is up has carried; what is owed beyond it waits."""
    batch: int = 0
    """The last number of the batch that it has not acknowledged; 0: there is none."""
    journal: str = ""
    """Its journal when a link to it was last extended: whose numbers these are; "": none ever was."""
    plain: bool = False
    """When it was last here, its link was not extended."""


@frozen
class Owed:
    """A revoke that a neighbouring hub has not acknowledged."""

    turn: int
    """The number under which it was sent; from ``FIRST_PLACE`` on, its place among those that never were."""
    originator: int


@frozen
class Debts:
    """What is owed, by turns."""

    turns: Map[int, OrderedIds] = Map()
    """Neighbour -> the turns of what it is owed."""
    at: Map[tuple[int, int], Revoke] = Map()
    """(neighbour, turn) -> what is owed."""
    about: Map[tuple[int, str], OrderedIds] = Map()
    """(neighbour, device) -> the turns of what is owed about it."""


@frozen
class Others:
    """The nodes that a hub knows without knowing their role by itself."""

    named: OrderedIds = EMPTY
    """By directory or configuration."""
    cached: OrderedIds = EMPTY
    """By a cached grant and nothing else."""
    of_role: Map[str, OrderedIds] = Map()
    """Cached grants by role, as far as they count."""


@frozen
class Index:
    """Derived tables."""

    link_of_node: Map[int, Link] = Map()
    """Sessions by node."""
    node_of_device: Map[str, int] = Map()
    """The directory by device, as far as ``bound_node`` does not say the same."""
    online_via: Map[int, OrderedIds] = Map()
    """Online nodes by ``online_group``."""
    waiting: Map[Link, OrderedIds] = Map()
    """Pending requests by asker."""
    queues: Map[tuple[Link | None, Link], OrderedIds] = Map()
    """Pending requests by ``queues_of``."""
    asking: Map[Subject, OrderedIds] = Map()
    """Pending requests by what they are about."""
    asked: Map[tuple[Link, str | int | Action], OrderedIds] = Map()
    """Requests put to plain neighbours by what is asked: whom it is about, and once more which action."""
    learnt_over: Map[Link, OrderedIds] = Map()
    """Learnt nodes by link, each as its turn above its id."""
    dismissed: Map[tuple[Link | None, int], int] = Map()
    """(child hub's link, node) -> the outstanding order to go."""
    roster: OrderedIds = EMPTY
    """The nodes whose role this hub knows by itself: the authority of every existing one, others of those they name."""
    roster_of_role: Map[str, OrderedIds] = Map()
    others: Others = Others()
    named_and_registered: frozenset[int] = frozenset()
    """Authority: nodes that were given to a device and that the configuration names, too."""
    debts: Debts = Debts()
    """``State.owed`` by turns."""


@frozen
class State:
    """Everything a hub must remember."""

    node_id: int = 0
    """The hub's own; 0: not known yet."""
    credential: str = ""
    """The hub's own, towards its parent."""
    journal: str = ""
    """Drawn when the hub's data directory was made; without one it does not speak the extension."""
    next_node_id: int = 0
    """Authority: the lowest id never considered."""
    next_msg_id: int = 1
    parent_present: bool = False
    parent_extended: bool = False
    """The parent is present, and both ends of that link speak the extension."""
    parent_node: int = 0
    perms_epoch: int = 0
    """How often all cached permissions were invalidated."""
    invalidations: int = 0
    """How often any were."""
    announcing: tuple[int, int] | None = None
    """(group of ``online_via``, node) announced last, while a batch is left; None: nothing to announce."""
    announce_timer: int = 0

    links: Map[Link, Session | None] = Map()
    """Every link that is up, and its session."""
    plain: Map[Link, Plain] = Map()
    learnt: Map[int, Learnt] = Map()
    """Node -> the plain child hub's link that its last frame came over."""
    registry: Map[str, Registration] = Map()
    whitelist: Map[str, Entry] = Map()
    directory: Map[int, Route] = Map()
    perms: Map[int, Grant] = Map()
    """Permissions learnt from other hubs."""
    pending: Map[int, Pending] = Map()
    neighbours: Map[int, Neighbour] = Map()
    owed: Map[tuple[int, Revoke], Owed] = Map()
    """(neighbour, revoke) -> since when. Of two equal revokes only the newer one is owed."""
    beaten: Map[str, str] = Map()
    """Provisioned device -> the configured credential that a revoke has beaten."""
    homes: Map[str, int] = Map()
    """Device -> the child hub that was last told of a success of its registration: there, or below, is its entry."""
    index: Index = Index()


def is_authority(policy: Policy, node_id: int) -> bool:
    """Whether a hub with this node id hands out node ids."""
    return policy.authority == node_id if policy.authority else not policy.has_parent


class Links(Protocol):
    """The part of a state that says who is at the other end of a link."""

    @property
    def parent_extended(self) -> bool: ...
    @property
    def links(self) -> Map[Link, Session | None]: ...


def is_extended(tables: Links, link: Link) -> bool:
    """Whether both ends of a link speak the extension."""
    if link == PARENT:
        return tables.parent_extended
    session = tables.links.get(link)
    return session is not None and session.extended


def entry_of(policy: Policy, binding: Provisioned) -> Entry:
    """The whitelist entry of a provisioned binding."""
    return Entry(binding.node_id, binding.credential, "auth.assist" in policy.resolve(binding.node_id).perms)


class Bindings(Protocol):
    """The tables of a state that bind devices to nodes."""

    @property
    def registry(self) -> Map[str, Registration]: ...
    @property
    def whitelist(self) -> Map[str, Entry]: ...


def bound_node(tables: Bindings, device_id: str) -> int:
    """The node that this hub itself has bound a device to; 0: none."""
    binding = tables.whitelist.get(device_id) or tables.registry.get(device_id)
    return binding.node_id if binding is not None else 0


def online_group(policy: Policy, via: int, node_id: int) -> int | None:
    """Which list an online node is in: its child hub's; 0 for those here, which only a parent will be told of."""
    if via != node_id:
        return via
    return 0 if policy.has_parent else None


def is_plain(tables: Links, link: Link) -> bool:
    """Whether a hub is, or is hoped to be, at the other end of a link that is not extended."""
    if link == PARENT:
        return not tables.parent_extended
    session = tables.links.get(link)
    return session is not None and session.is_hub and not session.extended


_ANSWERED_BY = {
    Purpose.REGISTER: Action.ASSIST_REGISTER,
    Purpose.AUTHENTICATE: Action.ASSIST_AUTHENTICATE,
    Purpose.QUERY: Action.ASSIST_QUERY_CREDENTIAL,
    Purpose.HELD: Action.GET_PERMS,
    Purpose.ADMIT: Action.GET_PERMS,
}
"""What another hub answers, where that is not what the asker asked for."""


def asked_for(pending: Pending) -> Action:
    """What this hub asked for, and will be answered about."""
    return _ANSWERED_BY.get(pending.purpose, pending.action)


def asked_keys(tables: Links, pending: Pending) -> tuple[tuple[Link, str | int | Action], ...]:
    """Under what a request put to a plain neighbour is found without its MsgID."""
    if pending.asked is None or pending.purpose is Purpose.PACE or not is_plain(tables, pending.asked):
        return ()
    action = asked_for(pending)
    about = pending.node_id if action is Action.GET_PERMS else pending.device_id
    return (pending.asked, about), (pending.asked, action)


def learnt_rank(node_id: int, learnt: Learnt) -> int:
    """What the learnt nodes of a link are ordered by."""
    return learnt.turn << 32 | node_id


_SEARCHES = (Action.ASSIST_AUTHENTICATE, Action.ASSIST_QUERY_CREDENTIAL)


def subjects_of(pending: Pending) -> tuple[Subject, ...]:
    """What a later revoke, invalidation or answer will look a pending request up by."""
    if pending.purpose in (Purpose.AUTHENTICATE, Purpose.QUERY, Purpose.CONFIRM):
        return (pending.device_id,)
    if pending.purpose is Purpose.RELAY and pending.asker is not None and pending.action in _SEARCHES:
        return (pending.device_id,)
    if pending.purpose is Purpose.ADMIT:
        return pending.device_id, pending.node_id
    if pending.purpose in (Purpose.PERMS, Purpose.HELD):
        return (pending.node_id,)
    if pending.purpose is Purpose.REVOKE:
        return ((pending.node_id, pending.device_id),)
    return ()


def queues_of(pending: Pending) -> tuple[tuple[Link | None, Link], ...]:
    """Where a pending request counts: its asker's for one neighbour, and everybody's (None) who wants to enter.

    What nobody waits for any more counts as the neighbour's own.
    """
    if pending.asked is None:
        return ()
    if pending.purpose is Purpose.UNHEARD:
        return ((pending.asked, pending.asked),)
    entering = pending.action in ENTRANCE or (pending.purpose is Purpose.RELAY and pending.asker is None)
    everybody = ((None, pending.asked),) if entering else ()
    return everybody if pending.asker is None else ((pending.asker, pending.asked), *everybody)
