"""How things are with a hub, at a cost that depends on how many hubs are next to it and not on their devices."""

from collections.abc import Mapping
from time import monotonic
from types import MappingProxyType
from typing import Literal

from hubauth import __version__
from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Revoke
from hubauth.core.model import PARENT_NEIGHBOUR, Purpose, Session, State, is_authority, is_extended
from hubauth.core.ordered import EMPTY
from hubauth.core.policy import Policy
from hubauth.core.transition import Step
from hubauth.shell.doorway import NeighbourStatus, RevokeStanding, Status


def is_owed(state: State, neighbour: int, revoke: Revoke) -> bool:
    """Whether a neighbour has not acknowledged a revoke."""
    return (neighbour, revoke) in state.owed


def owed_to(state: State, neighbour: int) -> tuple[int, str]:
    """How many revokes a neighbour has not acknowledged, and the device of the oldest."""
    debts = state.index.debts
    turns = debts.turns.get(neighbour, EMPTY)
    return len(turns), debts.at[neighbour, next(iter(turns))].device_id if turns else ""


def is_present(state: State, neighbour: int) -> bool:
    """Whether a neighbouring hub is there now."""
    if neighbour == PARENT_NEIGHBOUR:
        return state.parent_present
    link = state.index.link_of_node.get(neighbour)
    session = state.links[link] if link is not None else None
    return session is not None and session.is_hub


def speaks_extension(state: State, neighbour: int) -> bool:
    """Whether a neighbouring hub is there now and speaks the extension."""
    link = _link(state, neighbour)
    return link is not None and is_extended(state, link)


def is_settled(state: State, neighbour: int, revoke: Revoke) -> bool:
    """Whether nothing more will be heard of a revoke from a neighbour: it has confirmed it, or will not."""
    return not is_owed(state, neighbour, revoke) and not _is_open(state, neighbour, revoke)


def _is_open(state: State, neighbour: int, revoke: Revoke) -> bool:
    """Whether a plain neighbour was sent a revoke a moment ago and has not answered."""
    link = _link(state, neighbour)
    numbers = state.index.asked.get((link, revoke.device_id), ()) if link is not None else ()
    sent = [state.pending[number] for number in numbers if state.pending[number].purpose is Purpose.SENT]
    return any(one.number == 0 and one.credential == revoke.credential for one in sent)


def _link(state: State, neighbour: int) -> Link | None:
    return PARENT if neighbour == PARENT_NEIGHBOUR else state.index.link_of_node.get(neighbour)


def _standing(
    state: State, neighbour: int, revoke: Revoke, unconfirmed: Mapping[int, bool]
) -> Literal["acknowledged", "owed", "unconfirmed", "unsent"]:
    if is_owed(state, neighbour, revoke):
        return "owed"
    hub = state.parent_node if neighbour == PARENT_NEIGHBOUR else neighbour
    if not unconfirmed.get(hub, True):
        return "unsent"
    return "unconfirmed" if hub in unconfirmed or _is_open(state, neighbour, revoke) else "acknowledged"


def neighbours_of(policy: Policy, state: State) -> list[int]:
    """The parent, if this hub has one, and every hub that ever was a child."""
    return sorted(set(state.neighbours) | ({PARENT_NEIGHBOUR} if policy.has_parent else set()))


def standings(
    state: State, told: list[int], revoke: Revoke, unconfirmed: Mapping[int, bool] = MappingProxyType({})
) -> tuple[RevokeStanding, ...]:
    """How things are with a revoke that these neighbours were told of, and some plain ones have not confirmed."""
    return tuple(
        RevokeStanding(
            hub=state.parent_node if neighbour == PARENT_NEIGHBOUR else neighbour,
            parent=neighbour == PARENT_NEIGHBOUR,
            present=is_present(state, neighbour),
            standing=_standing(state, neighbour, revoke, unconfirmed),
        )
        for neighbour in told
    )


class Presence:
    """Since when neighbouring hubs are present, or away: the core has no clock."""

    def __init__(self) -> None:
        self._started = monotonic()
        self._changed: dict[int, float] = {}

    def follow(self, before: State, done: Step) -> None:
        """A step has changed which links there are, or what they are bound to."""
        sessions = [value for table, _, *values in done.changes if table == "links" for value in values]
        hubs = {session.node_id for session in sessions if isinstance(session, Session) and session.is_hub}
        for neighbour in (PARENT_NEIGHBOUR, *hubs):
            if is_present(before, neighbour) != is_present(done.state, neighbour):
                self._changed[neighbour] = monotonic()

    @property
    def seen(self) -> set[int]:
        """Every neighbour that has come or gone."""
        return set(self._changed)

    def seconds(self, neighbour: int) -> float:
        """How long it has been as it is, as far as this hub can know."""
        return round(monotonic() - self._changed.get(neighbour, self._started), 3)

    @property
    def uptime(self) -> float:
        """How long this hub has run."""
        return round(monotonic() - self._started, 3)


def status_of(policy: Policy, state: State, presence: Presence, parent: str, journal: tuple[int, int]) -> Status:
    """Everything an operator is told; ``parent`` is its address, ``journal`` its generation and records."""
    # Where hubs owe each other nothing (flat) they are no neighbours of the state, but still there.
    known = sorted({*neighbours_of(policy, state), *presence.seen})
    neighbours = tuple(_neighbour(policy, state, presence, neighbour, parent) for neighbour in known)
    present = sum(neighbour.present and not neighbour.parent for neighbour in neighbours)
    return Status(
        version=__version__,
        uptime=presence.uptime,
        node_id=state.node_id,
        device_id=policy.device_id,
        dialect=policy.dialect.value,
        authority=is_authority(policy, state.node_id),
        neighbours=neighbours,
        online=len(state.index.link_of_node) - present,
        below=sum(neighbour.online for neighbour in neighbours),
        pending=count_pending(state),
        generation=journal[0],
        records=journal[1],
    )


def count_pending(state: State) -> int:
    """How many pending requests have an asker."""
    return sum(pending.purpose is not Purpose.UNHEARD for pending in state.pending.values())


def _neighbour(policy: Policy, state: State, presence: Presence, neighbour: int, parent: str) -> NeighbourStatus:
    above = neighbour == PARENT_NEIGHBOUR
    owed, oldest = owed_to(state, neighbour)
    return NeighbourStatus(
        hub=state.parent_node if above else neighbour,
        name=parent if above else _name(policy, state, neighbour),
        parent=above,
        present=is_present(state, neighbour),
        extended=speaks_extension(state, neighbour),
        seconds=presence.seconds(neighbour),
        online=0 if above else len(state.index.online_via.get(neighbour, ())),
        owed=owed,
        oldest=oldest,
    )


def _name(policy: Policy, state: State, neighbour: int) -> str:
    route, provisioned = state.directory.get(neighbour), policy.provisioned_by_node.get(neighbour)
    return route.device_id if route is not None else provisioned.device_id if provisioned is not None else ""
