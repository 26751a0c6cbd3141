"""The tables of ``hub.toml``, typed. Their defaults are what a hub does when nothing is said."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Assist, Dialect, Reregister, Trust
from hubauth.wire.framing import DEFAULT_LIMIT, DEFAULT_OPAQUE_LIMIT

NodeId: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NODE_ID)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
Credential: TypeAlias = Annotated[str, Meta(max_length=256)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=1e9)]
SecondsOrNever: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
KeepAlive: TypeAlias = Annotated[float, Meta(ge=0, le=32767)]
"""More than that no TCP takes."""
HeaderChoice: TypeAlias = Literal[1, 2, "auto"]
Durability: TypeAlias = Literal["fsync", "os", "none"]


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the file. A key it does not have is an error."""


class HubTable(Table, frozen=True):
    """Who the hub is, and the choices the protocol leaves to its operator."""

    device_id: Name = "hub"
    node_id: NodeId = 0
    credential: Credential = ""
    dialect: Dialect = Dialect.AUTH
    first_node_id: Annotated[int, Meta(ge=1, le=MAX_NODE_ID)] = 2
    assist: Assist = Assist.AUTH
    reregister: Reregister = Reregister.OPEN
    trust: Trust = Trust.LINKS
    extension: bool = True
    revoke_on_reregister: bool = True
    close_superseded: bool = True
    close_on_revoke: bool = True
    answer_offline: bool = True
    answer_mismatch: bool = True


class ListenTable(Table, frozen=True):
    """Where devices and child hubs connect. ``header`` "auto": as the first frame of a connection shows."""

    address: str = "127.0.0.1:7080"
    header: HeaderChoice = "auto"
    backlog: Positive = 1024


class ParentTable(Table, frozen=True):
    """The hub above. Tried again after ``retry_first`` seconds, then twice as long each time, up to ``retry_most``."""

    address: str
    header: Literal[1, 2] = 1
    tls: bool = False
    ca: str = ""
    """File of certificates to trust; empty: those of the system."""
    server_name: str = ""
    """The name in the parent's certificate, if it is not the host of the address."""
    certificate: str = ""
    key: str = ""
    connect_seconds: Seconds = 10.0
    retry_first: Seconds = 0.2
    retry_most: Seconds = 30.0


class LimitsTable(Table, frozen=True):
    """What one peer may cost. Seconds of 0 mean: never."""

    payload: Positive = DEFAULT_LIMIT
    opaque_payload: Positive = DEFAULT_OPAQUE_LIMIT
    connections: Positive = 10_000
    unauthenticated_seconds: SecondsOrNever = 30.0
    """How long a connection may stay without a session."""
    idle_seconds: SecondsOrNever = 3600.0
    """How long a device may say nothing. Hubs are quiet by nature: keepalive watches them."""
    frame_seconds: SecondsOrNever = 30.0
    """How long a begun frame may stay incomplete."""
    keepalive_seconds: KeepAlive = 60.0
    """After how much silence TCP asks whether the peer still exists."""
    write_buffer: Positive = 1024 * 1024
    """Bytes that may wait for a device or an unknown peer that does not read; beyond, it is closed. Frames of other
    sub-protocols are left out as soon as half of it waits."""
    hub_write_buffer: Positive = 16 * 1024 * 1024
    """Likewise for a hub."""
    close_seconds: Seconds = 5.0
    """How long a closed connection may take to accept its last bytes."""
    turn_seconds: Seconds = 0.0005
    """How long frames are handled before the hub looks at everybody's sockets again."""
    turn_bytes: Positive = 1024 * 1024
    """Likewise, in bytes that came in or go out."""
    unauthenticated_bytes: Positive = 64 * 1024 * 1024
    """What all connections without a session may hold together of frames that are not handled yet."""
    device_bytes: Positive = 256 * 1024 * 1024
    """Likewise for all devices with a session."""
    opaque_bytes_per_second: Count = 1024 * 1024
    """What one device may send in other sub-protocols, counted once for every receiver and as 1 KiB at least, four
    seconds' worth at once; 0: as much as it likes."""
    pending: Positive = 256
    """Requests of one device or unknown peer that may wait for other hubs. All that register or authenticate have no
    more than that together for the same hub; beyond, one each."""
    hub_pending: Positive = 4096
    """Requests of one hub that may wait for the same other hub."""
    request_seconds: Seconds = 5.0
    revoke_memory_seconds: Seconds = 30.0
    learnt: Positive = 4096
    """Nodes of one plain child hub that are remembered only because they speak."""
    announce_batch: Positive = 256
    revoke_batch: Positive = 256


class PerAddressTable(Table, frozen=True):
    """What one address (of IPv6: one /64) may do, hubs not counted. 0 means: no limit.

    What is allowed per minute or hour may be used at once, and comes back evenly.
    """

    connections: Count = 2500
    """At the same time."""
    connects_per_minute: Count = 6000
    failures_per_minute: Count = 1200
    """Authentications that were refused."""
    registrations_per_hour: Count = 20_000
    exempt: tuple[str, ...] = ()
    """Addresses and networks for which none of this holds."""


class StorageTable(Table, frozen=True):
    """Where the journal is, and when an answer may leave: after ``fsync``, after ``os`` has the bytes, or always."""

    data_dir: str = ""
    durability: Durability = "fsync"
    snapshot_records: Positive = 200_000
    """Steps in the journal after which a snapshot is taken."""


class TlsTable(Table, frozen=True):
    """TLS for those who connect. ``client_ca``: only peers whose certificate it has signed."""

    certificate: str
    key: str
    client_ca: str = ""


class MetricsTable(Table, frozen=True):
    """A Prometheus endpoint."""

    address: str


class LogTable(Table, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["text", "json"] = "text"


class ProvisionedTable(Table, frozen=True):
    """A binding that exists without having been registered. Without credential: only listed."""

    device_id: Name
    node_id: Annotated[int, Meta(ge=1, le=MAX_NODE_ID)]
    credential: Credential = ""
    role: str = ""


class PlainHubTable(Table, frozen=True):
    """A child hub that never authenticates: it is known by where it connects from."""

    node_id: Annotated[int, Meta(ge=1, le=MAX_NODE_ID)]
    address: str = ""
    """An address or a network."""
    certificate: str = ""
    """``sha256:`` and the fingerprint of the certificate it shows, in hexadecimal digits."""


class File(Table, frozen=True):
    """The whole file. ``auth`` and ``authority`` are read by ``hubauth.core.keys``."""

    hub: HubTable = HubTable()
    listen: ListenTable = ListenTable()
    parent: ParentTable | None = None
    limits: LimitsTable = LimitsTable()
    per_address: PerAddressTable = PerAddressTable()
    storage: StorageTable = StorageTable()
    tls: TlsTable | None = None
    metrics: MetricsTable | None = None
    log: LogTable = LogTable()
    provisioned: tuple[ProvisionedTable, ...] = ()
    plain_hub: tuple[PlainHubTable, ...] = ()
    auth: dict[str, str | int] = {}
    authority: dict[str, str | int] = {}
