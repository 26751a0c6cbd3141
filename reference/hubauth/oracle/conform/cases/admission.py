"""Devices that wait for their role before they are admitted, and what ends the wait."""

from hubauth.core.messages import (
    NO_GRANT,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    Grant,
    PermsInvalidate,
    Reason,
    Revoke,
)
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.world import World

_ROLES = ("register", "authenticate", "perms", "perms_invalidate", "parent")


def _waiting(world: World) -> tuple[Peer, Frame]:
    """A device that has to wait because its role has been forgotten, and the question about it."""
    device = world.registered()
    with world.setting():
        world.parent.say(PermsInvalidate())
    again = world.again(device)
    asked = again.say(Authenticate(device.device_id, device.credential))
    return again, asked.request(world.parent, GetPerms)


@case("AUTH-27", needs=_ROLES, depends_on=("PERM-12",))
def asks_before_it_admits(world: World) -> None:
    """A device whose role is not known is admitted when the parent has told it, and told the role with it."""
    device, request = _waiting(world)
    world.registered().opaque(device.node_id)
    world.parent.answer(request, grant=Grant("other", ("write",)))


@case("AUTH-28", needs=_ROLES, depends_on=("AUTH-27",))
def admits_without_a_role(world: World) -> None:
    """If the parent does not know the node, fails, or says what is stale, the device is admitted without a role."""
    for reason in (Reason.UNKNOWN_NODE, Reason.INTERNAL):
        _, request = _waiting(world)
        world.parent.answer(request, reason)
    device, request = _waiting(world)
    world.parent.say(PermsInvalidate((device.node_id,)))
    world.parent.answer(request, grant=Grant("other", ("write",)))


@case("AUTH-28/lost", needs=_ROLES, depends_on=("AUTH-28", "LINK-2"))
def admits_when_the_parent_is_lost(world: World) -> None:
    """A device that waits for its role is admitted without one when the parent is lost."""
    _waiting(world)
    world.parent.hang_up()


@case("AUTH-28/time", needs=_ROLES, depends_on=("AUTH-28", "TIME-2"))
def admits_when_time_is_up(world: World) -> None:
    """A device that waits for its role is admitted without one when the parent does not answer in time."""
    _waiting(world)
    world.elapse()


@case("AUTH-29", needs=(*_ROLES, "child_hub", "assist_auth"), depends_on=("AUTH-27", "AUTH-12/parent"))
def reads_its_tables_again(world: World) -> None:
    """A binding that contradicts what was heard while the device waited for its role is not made: 4002."""
    device, hub, credential = world.device(), world.child_hub(), world.subject.fresh_credential()
    asked = device.say(Authenticate(device.device_id, credential))
    node_id, request = world.subject.fresh_node(), asked.request(world.parent, AssistAuthenticate)
    found = world.parent.answer(request, node_id=node_id, credential=credential, grant=NO_GRANT)
    if hub.wire.extended:
        hub.announce(device.device_id, world.subject.fresh_node())
    else:
        world.let_parent_admit(hub.say(AssistRegister(device.device_id)), hub)
    world.parent.answer(found.request(world.parent, GetPerms), grant=Grant("other", ()))


@case("AUTH-30", needs=_ROLES, depends_on=("AUTH-27",))
def the_later_one_counts(world: World) -> None:
    """A device that authenticates again while it waits for its role is answered 4002 about the first time."""
    device, request = _waiting(world)
    again = device.say(Authenticate(device.device_id, device.credential))
    world.parent.answer(request, grant=Grant("other", ()))
    world.parent.answer(again.request(world.parent, GetPerms), grant=Grant("other", ()))


@case("REV-11/role", needs=(*_ROLES, "revoke"), depends_on=("AUTH-27", "REV-2/down"))
def a_revoke_refuses_who_waits(world: World) -> None:
    """A revoke refuses a device that waits for its role, whatever the parent says of the role afterwards."""
    device, request = _waiting(world)
    world.parent.pass_on(Revoke(device.device_id))
    world.parent.answer(request, grant=Grant("other", ()))
