"""What a hub's operator decides: everything that a step may depend on besides state and input."""

from enum import Enum
from functools import cached_property

from attrs import field, frozen
from immutables import Map

from hubauth.core.messages import Grant

ROOT_NODE_ID = 1


class Dialect(Enum):
    """Which of the three documents a hub speaks."""

    AUTH = "auth"
    LOGIN = "login"
    FLAT = "flat"


class Assist(Enum):
    """How a hub admits a device it has no entry for."""

    AUTH = "auth"
    QUERY = "query"
    NONE = "none"


class Reregister(Enum):
    """Whether a known device may be registered again."""

    OPEN = "open"
    AFTER_REVOKE = "after_revoke"


class Trust(Enum):
    """Who counts as a hub: links whose node holds ``auth.assist``, or (laboratories) anyone who says so."""

    LINKS = "links"
    OPEN = "open"


@frozen
class Provisioned:
    """A binding from configuration. Without a credential it is only listed (at the authority), not verified here."""

    device_id: str
    node_id: int
    credential: str = ""
    role: str = ""


_AUTH, _FLAT = Dialect.AUTH, Dialect.FLAT
"""Bound once, here and elsewhere: finding a member in its enum costs as much as a call, and steps ask often."""


def _map(pairs: object) -> Map:  # type: ignore[type-arg]
    return pairs if isinstance(pairs, Map) else Map(pairs)  # type: ignore[call-overload]


@frozen(slots=False)
class Policy:
    """One hub's configuration, as far as the protocol depends on it."""

    device_id: str = "hub"
    """The hub's own name towards its parent."""
    node_id: int = 0
    """The hub's own node id. 0: 1 for a root, while a hub with a parent asks it once, by registering."""
    credential: str = ""
    """The hub's own credential towards its parent, if provisioned."""
    has_parent: bool = False
    authority: int = 0
    """``authority.node_id``; 0: not configured."""
    dialect: Dialect = Dialect.AUTH
    first_node_id: int = 2
    default_role: str = "node"
    default_perms: tuple[str, ...] = ()
    node_roles: Map[int, str] = field(factory=Map, converter=_map)
    role_perms: Map[str, tuple[str, ...]] = field(factory=Map, converter=_map)
    provisioned: tuple[Provisioned, ...] = ()
    assist: Assist = Assist.AUTH
    reregister: Reregister = Reregister.OPEN
    trust: Trust = Trust.LINKS
    plain_hubs: tuple[int, ...] = ()
    """Child hubs that never authenticate: known by where they connect from, they are who they say they are."""
    extension: bool = True
    """Speak the extension with hubs that do. A change holds for links that join later."""
    revoke_on_reregister: bool = True
    close_superseded: bool = True
    close_on_revoke: bool = True
    answer_offline: bool = True
    answer_mismatch: bool = True
    """Answer 4402 when a revoke names another credential or node; else keep silent."""
    pending_limit: int = 256
    """Requests of one link that is no hub's that may wait for other hubs; also, of all that register or authenticate
    together, for one and the same hub."""
    hub_pending_limit: int = 4096
    """Requests of one hub that may wait for one and the same other hub."""
    request_seconds: float = 5.0
    """How long another hub may take to answer."""
    revoke_memory_seconds: float = 30.0
    """How long the originator's hub expects answers to a revoke."""
    learnt_limit: int = 4096
    """Nodes of one plain child hub that are remembered for nothing but the frames that come from them."""
    announce_batch: int = 256
    """Announcements sent at once when the parent becomes present."""
    revoke_batch: int = 256
    """Revokes sent at once to a neighbouring hub that has not acknowledged the ones before."""

    def __attrs_post_init__(self) -> None:
        if self.node_id == 0 and not self.has_parent:
            object.__setattr__(self, "node_id", ROOT_NODE_ID)

    @property
    def has_credentials(self) -> bool:
        """Whether knowing the ``device_id`` is not enough."""
        return self.dialect is not _FLAT

    @property
    def has_presence(self) -> bool:
        """Whether the dialect has offline and revoke at all."""
        return self.dialect is not _FLAT

    @property
    def has_extension(self) -> bool:
        """Whether this hub says and believes anything that the documents do not have."""
        return self.extension and self.dialect is not _FLAT

    @property
    def has_perms(self) -> bool:
        """Whether roles and permissions travel on the wire."""
        return self.dialect is _AUTH

    @cached_property
    def provisioned_by_device(self) -> dict[str, Provisioned]:
        return {binding.device_id: binding for binding in self.provisioned}

    @cached_property
    def provisioned_by_node(self) -> dict[int, Provisioned]:
        return {binding.node_id: binding for binding in self.provisioned}

    @cached_property
    def verified_here(self) -> tuple[Provisioned, ...]:
        """The provisioned bindings that this hub itself verifies; the others it only lists."""
        return tuple(binding for binding in self.provisioned if binding.credential or not self.has_credentials)

    @cached_property
    def named_nodes(self) -> frozenset[int]:
        """Every node id the configuration names."""
        return self.kept_nodes | frozenset(self.node_roles)

    @cached_property
    def kept_nodes(self) -> frozenset[int]:
        """The node ids that the allocator never hands out, because configuration means somebody by them."""
        bound = {*self.provisioned_by_node, self.node_id, self.authority, *self.plain_hubs} - {0}
        special = {node_id for node_id in self.node_roles if self.resolve(node_id) != self.default_grant}
        return frozenset(bound | special)

    def is_own_device(self, device_id: str) -> bool:
        """Whether this is the name under which this hub itself is known to its parent."""
        return self.has_parent and device_id == self.device_id

    def is_provisioned(self, device_id: str) -> bool:
        """Whether configuration decides about this device, so that nobody can register it."""
        return device_id in self.provisioned_by_device or self.is_own_device(device_id)

    def role_of(self, node_id: int) -> str:
        """The configured role of a node, else the default."""
        binding = self.provisioned_by_node.get(node_id)
        if binding is not None and binding.role:
            return binding.role
        return self.node_roles.get(node_id, self.default_role)

    def grant_of_role(self, role: str) -> Grant:
        """What a role may do, else the default permissions."""
        return Grant(role, self.role_perms.get(role, self.default_perms))

    @cached_property
    def default_grant(self) -> Grant:
        """What a node may do that the configuration does not name."""
        return self.grant_of_role(self.default_role)

    def resolve(self, node_id: int) -> Grant:
        """Role and permissions of a node that exists."""
        return self.grant_of_role(self.role_of(node_id)) if self.names_role(node_id) else self.default_grant

    def names_role(self, node_id: int) -> bool:
        """Whether this hub's own configuration says which role the node has."""
        binding = self.provisioned_by_node.get(node_id)
        return node_id in self.node_roles or (binding is not None and bool(binding.role))
