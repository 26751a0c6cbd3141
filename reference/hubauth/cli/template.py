"""The configuration that ``hubauth hub init`` writes."""

import json

from hubauth.report.escape import is_unseen

TEMPLATE = """\
# Configuration of one hub. What is commented out shows the default.

[hub]
device_id = {device_id}          # the hub's own name towards its parent
# node_id = 0                 # 0: 1 for a root; a hub with a parent asks it once
# credential = ""             # towards the parent, if provisioned (see `hubauth provision`)
dialect = {dialect}              # auth, login or flat
# first_node_id = 2           # where the authority starts to count
# assist = "auth"             # auth, query or none: how a device that is not known here is admitted
# reregister = "open"         # open or after_revoke
# trust = "links"             # links; "open" believes anyone to be a hub: laboratories only
# extension = true            # false: speak to other hubs as the documents do, and no further
# revoke_on_reregister = true
# close_superseded = true     # close the old connection of a device that has moved
# close_on_revoke = true

[listen]
address = {listen}
# header = "auto"             # 1, 2 or auto: as the first frame of each connection shows

{parent}
[auth]
default_role = "node"
default_perms = ""            # p1,p2
node_roles = ""               # 1:admin;2:node
role_perms = "hub:auth.assist;admin:auth.revoke,auth.perms_invalidate"

# [authority]
# node_id = 1                 # who hands out node ids; not set: the parent, or this hub if there is none

[storage]
data_dir = {data_dir}
durability = "fsync"          # fsync; os: survives a crash of the hub, not of the machine; none
# snapshot_records = 200000

# [limits]
# payload = 65536             # bytes, SubProto 2
# opaque_payload = 1048576    # bytes, every other sub-protocol
# connections = 10000
# unauthenticated_seconds = 30.0
# idle_seconds = 3600.0       # devices only; 0: never
# frame_seconds = 30.0        # for a frame that was begun
# keepalive_seconds = 60.0
# write_buffer = 1048576      # bytes that may wait for a device that does not read
# hub_write_buffer = 16777216
# unauthenticated_bytes = 67108864   # held for all connections without a session together
# device_bytes = 268435456    # likewise for all devices
# opaque_bytes_per_second = 1048576  # of one device in other sub-protocols, once per receiver; 0: no limit
# pending = 256               # requests of one device that may wait for other hubs
# hub_pending = 4096          # requests of one hub that may wait for the same other hub
# request_seconds = 5.0       # how long another hub may take to answer

# [per_address]               # what one address may do, hubs not counted; 0: no limit
# connections = 2500          # at the same time
# connects_per_minute = 6000
# failures_per_minute = 1200  # authentications that were refused
# registrations_per_hour = 20000
# exempt = []                 # addresses and networks without these limits: ["10.0.0.5", "10.1.0.0/16"]

# [tls]
# certificate = "hub.crt"
# key = "hub.key"
# client_ca = ""              # set: only peers with a certificate of this authority

# [metrics]
# address = "127.0.0.1:9180"  # Prometheus

# [log]
# level = "info"              # debug names the rules behind every decision
# format = "text"             # text or json

# Bindings that exist without having been registered, above all child hubs (see `hubauth provision`).
# [[provisioned]]
# device_id = "hub-2"
# node_id = 2
# credential = "..."
# role = "hub"

# Child hubs that never authenticate, known by where they connect from.
# [[plain_hub]]
# node_id = 12
# address = "10.0.0.5"        # or a network; or certificate = "sha256:...", which needs tls.client_ca
"""

PARENT = """\
[parent]
address = {address}
# header = 1                  # 1 or 2
# tls = false
# ca = ""                     # file of certificates to trust
# server_name = ""            # if not the host of the address
# retry_first = 0.2           # seconds; doubled after every failure, up to retry_most
# retry_most = 30.0
"""

NO_PARENT = """\
# [parent]                    # a hub without a parent is a root
# address = "10.0.0.1:7080"
# header = 1                  # 1 or 2
# tls = false
"""


def template(device_id: str, dialect: str, listen: str, parent: str, data_dir: str) -> str:
    """A commented configuration."""
    above = PARENT.format(address=quoted(parent)) if parent else NO_PARENT
    return TEMPLATE.format(
        device_id=quoted(device_id),
        dialect=quoted(dialect),
        listen=quoted(listen),
        parent=above,
        data_dir=quoted(data_dir),
    )


def quoted(value: str | int) -> str:
    """A value as TOML writes it: as JSON does, but that what cannot be seen is escaped, in the way that TOML has."""
    written = json.dumps(value, ensure_ascii=False)
    return "".join(f"\\U{ord(one):08x}" if is_unseen(one) else one for one in written)
