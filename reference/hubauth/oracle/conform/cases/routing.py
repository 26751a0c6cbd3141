"""Frames of other sub-protocols: opaque, checked for their source, and moved along the tree."""

from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_NEEDS = ("register", "routing")


@case("FRAME-4", needs=_NEEDS, depends_on=("FRAME-10",))
def forwards(world: World) -> None:
    """A frame for another device reaches it, payload unchanged, and nobody else."""
    first, second, _ = world.registered(), world.registered(), world.registered()
    first.opaque(second.node_id, bytes(range(256)))
    second.opaque(first.node_id, b"")


@case("WIRE-8", needs=_NEEDS, depends_on=("FRAME-4",))
def forwards_byte_for_byte(world: World) -> None:
    """What looks like a request, in another sub-protocol, is passed on byte for byte."""
    first, second = world.registered(), world.registered()
    first.opaque(second.node_id, b'{"action":"register","data":{"device_id":"x"}}')


@case("BIND-1", needs=_NEEDS, depends_on=("FRAME-4",))
def reaches_who_is_bound(world: World) -> None:
    """A device that has registered or authenticated is reached under its node id on that connection."""
    first, second = world.registered(), world.registered()
    second.hang_up()
    again = world.again(second)
    if "authenticate" in world.subject.profile.available:
        again.authenticate()
    else:
        again.register()
    first.opaque(again.node_id)


@case("FRAME-1", needs=_NEEDS, depends_on=("FRAME-4",))
def drops_unauthenticated(world: World) -> None:
    """A frame with SourceID 0 is dropped, session or not."""
    first, second = world.registered(), world.registered()
    first.opaque(second.node_id, source=0)
    world.device().opaque(second.node_id, source=0)


@case("FRAME-2", needs=_NEEDS, depends_on=("FRAME-4",))
def drops_false_sources(world: World) -> None:
    """A frame with somebody else's SourceID is dropped, and so is any from a connection without a session."""
    first, second = world.registered(), world.registered()
    first.opaque(second.node_id, source=second.node_id)
    world.device().opaque(second.node_id, source=first.node_id)


@case("FRAME-3", needs=_NEEDS, depends_on=("FRAME-4",))
def keeps_its_own(world: World) -> None:
    """A frame for the hub itself is forwarded to nobody."""
    first, _ = world.registered(), world.registered()
    first.opaque(world.subject.node_id)


@case("FRAME-5", needs=(*_NEEDS, "root"), depends_on=("FRAME-4",))
def drops_for_nobody(world: World) -> None:
    """At the root a frame for a node that is not there is dropped."""
    first, _ = world.registered(), world.registered()
    first.opaque(0xFFF0_0000)


@case("FRAME-5/up", needs=(*_NEEDS, "parent"), depends_on=("FRAME-4",))
def sends_up(world: World) -> None:
    """A frame for a node that is not below goes to the parent."""
    world.registered().opaque(0xFFF0_0000)


@case("FRAME-6", needs=_NEEDS, depends_on=("FRAME-4",))
def broadcasts(world: World) -> None:
    """A frame with TargetID 0 reaches every connection with a session, and none without."""
    world.device()
    first, _, _ = world.registered(), world.registered(), world.registered()
    first.opaque(0)


@case("FRAME-7", needs=_NEEDS, depends_on=("FRAME-4",))
def never_back(world: World) -> None:
    """A frame never goes back where it came from, not even to the device it names."""
    first = world.registered()
    first.opaque(first.node_id)
    first.opaque(0)


@case("FRAME-8", needs=(*_NEEDS, "header_2"), depends_on=("FRAME-4",))
def counts_hops(world: World) -> None:
    """Every forward lowers HopLimit by one, unset counts as 16, and a frame whose limit is used up is dropped."""
    first, second = world.registered(), world.registered()
    for hops in (0, 5, 2, 1):
        first.opaque(second.node_id, hops=hops)


@case("BIND-6", needs=(*_NEEDS, "child_hub", "extension"), depends_on=("FRAME-4", "TRUST-1"))
def believes_announcements(world: World) -> None:
    """A device that a child hub announces is reached through that hub, and may speak through it."""
    hub = world.child_hub()
    behind, device = hub.adopt(), world.registered()
    device.opaque(behind.node_id)
    hub.opaque(device.node_id, source=behind.node_id)


@case("FRAME-2/hub", needs=(*_NEEDS, "child_hub"), depends_on=("FRAME-4", "TRUST-1"))
def drops_false_sources_of_hubs(world: World) -> None:
    """A child hub speaks for the nodes below it, not for others."""
    hub, first, second = world.child_hub(), world.registered(), world.registered()
    hub.opaque(first.node_id, source=second.node_id)
    hub.opaque(first.node_id, source=0xFFF0_0000)


@case("FRAME-7/hub", needs=(*_NEEDS, "child_hub", "routes_below"), depends_on=("FRAME-4", "TRUST-1"))
def never_back_to_hubs(world: World) -> None:
    """A frame from behind a child hub for a node behind the same hub is not sent back there."""
    hub = world.child_hub()
    first, second = hub.adopt(), hub.adopt()
    hub.opaque(second.node_id, source=first.node_id)


@case("FRAME-4/parent", needs=(*_NEEDS, "parent"), depends_on=("FRAME-4",))
def believes_its_parent(world: World) -> None:
    """From the parent any SourceID is accepted; broadcasts go to everybody below."""
    first, _ = world.registered(), world.registered()
    world.parent.opaque(first.node_id, source=0xFFF0_0000)
    world.parent.opaque(0, source=0xFFF0_0000)
    world.parent.opaque(0xFFF0_0001, source=0xFFF0_0000)
