"""Roles and permissions: who knows them, asking for them, listing them, and forgetting them."""

from hubauth.core.messages import AssistRegister, GetPerms, Grant, ListRoles, PermsInvalidate, Reason, Register, Revoke
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_NEEDS = ("register", "perms")
_GRANT = Grant("sensor", ("read.own", "write.own"))


@case("PERM-1", needs=(*_NEEDS, "root"), depends_on=("FRAME-10",))
def tells_perms(world: World) -> None:
    """The authority tells a node's role and permissions: its own, another's, a provisioned one's."""
    first, second = world.registered(), world.registered()
    first.get_perms(first.node_id)
    first.get_perms(second.node_id)
    first.get_perms(world.subject.node_id)
    for known in world.subject.profile.bindings:
        first.get_perms(known.node_id)


@case("PERM-6", needs=(*_NEEDS, "known_device"), depends_on=("FRAME-10",))
def resolves_roles(world: World) -> None:
    """A configured role has the permissions of that role."""
    device = world.registered()
    for known in world.subject.profile.bindings:
        if known.role:
            device.get_perms(known.node_id)


@case("PERM-3", needs=(*_NEEDS, "root"), depends_on=("FRAME-10",))
def unknown_nodes(world: World) -> None:
    """A node that does not exist is answered 4404 with empty role and permissions."""
    world.registered().get_perms(0xFFF0_0000)


@case("CODE-9", needs=(*_NEEDS, "root"), depends_on=("PERM-3",))
def codes_of_perms(world: World) -> None:
    """An unknown node is 4404; without a session it is 403."""
    world.registered().get_perms(0xFFF0_0000)
    world.device().get_perms(1)


@case("MSG-12", needs=(*_NEEDS, "root"), depends_on=("PERM-3",))
def fields_of_perms(world: World) -> None:
    """get_perms_resp has node_id, role and perms, also as a failure."""
    device = world.registered()
    device.get_perms(device.node_id)
    device.get_perms(0xFFF0_0000)


@case("MSG-8", needs=("register", "perms", "list_roles"), depends_on=("FRAME-10",))
def fields_of_questions(world: World) -> None:
    """get_perms without node_id, and list_roles with a negative or non-integer offset or limit, are invalid."""
    device = world.registered()
    device.send(b'{"action":"get_perms","data":{}}', source=device.node_id)
    for fields in (b'"offset":-1', b'"limit":-1', b'"limit":"ten"', b'"offset":1.5', b'"node_ids":7'):
        device.send(b'{"action":"list_roles","data":{' + fields + b"}}", source=device.node_id)


def _ids(world: World) -> tuple[int, ...]:
    """Nodes of this case alone, so that what the hub knows besides makes no difference."""
    return tuple(sorted(world.registered().node_id for _ in range(4)))


@case("PERM-19", needs=("register", "list_roles", "root"), depends_on=("FRAME-10",))
def lists_in_order(world: World) -> None:
    """list_roles shows existing nodes in ascending order, however they are asked for, and no others."""
    ids = _ids(world)
    device = world.registered()
    device.say(ListRoles(node_ids=(*reversed(ids), 0xFFF0_0000)))


@case("PERM-9", needs=("register", "list_roles", "root"), depends_on=("PERM-19",))
def filters(world: World) -> None:
    """Both filters apply; total counts what is left before paging."""
    ids = _ids(world)
    device = world.registered()
    known = tuple(known.node_id for known in world.subject.profile.bindings)
    default = world.subject.profile.roles.default_role
    device.say(ListRoles(role=default, node_ids=ids + known))
    device.say(ListRoles(role="no such role", node_ids=ids))
    device.say(ListRoles(offset=1, limit=2, node_ids=ids))


@case("PERM-10", needs=("register", "list_roles", "root"), depends_on=("PERM-19",))
def pages(world: World) -> None:
    """offset and limit cut a page out; beyond the end it is empty, a limit of 0 is an empty page."""
    ids = _ids(world)
    device = world.registered()
    for offset, limit in ((0, 2), (2, 2), (3, 1000), (4, 2), (0, 0), (0, 5000)):
        device.say(ListRoles(offset=offset, limit=limit, node_ids=ids))


@case("MSG-9", needs=("register", "perms_invalidate", "list_roles", "root"), depends_on=("PERM-19",))
def null_lists(world: World) -> None:
    """A list that is null reads as an empty one; no other field may be null."""
    device = world.registered()
    device.send(b'{"action":"perms_invalidate","data":{"node_ids":null}}', source=device.node_id)
    device.send(b'{"action":"perms_invalidate","data":{"refresh":null}}', source=device.node_id)


@case("PERM-11", needs=("register", "perms_invalidate", "root"), depends_on=("FRAME-10",))
def needs_the_permission(world: World) -> None:
    """A device without the permission that invalidates is answered 403."""
    world.registered().say(PermsInvalidate())


@case("PERM-15", needs=("perms_invalidate", "admin"), depends_on=("FRAME-10",))
def silent_success(world: World) -> None:
    """An invalidation that is accepted is not answered."""
    admin = world.admin()
    admin.say(PermsInvalidate())
    admin.say(PermsInvalidate((5, 6), "why not"))


@case("PERM-18", needs=("register", "perms_invalidate", "admin", "child_hub"), depends_on=("PERM-15",))
def tells_child_hubs(world: World) -> None:
    """An invalidation is passed on to child hubs, unchanged, and to nobody else."""
    world.child_hub()
    world.registered()
    world.admin().say(PermsInvalidate((5, 6), "why not", refresh=True))


# With a parent above


@case("PERM-2", needs=(*_NEEDS, "parent"), depends_on=("REG-6",))
def asks_for_perms(world: World) -> None:
    """A hub that does not know a node asks its parent and passes the answer on."""
    device = world.registered()
    for reason in (Reason.OK, Reason.UNKNOWN_NODE):
        asked = device.say(GetPerms(world.subject.fresh_node()))
        grant = _GRANT if reason is Reason.OK else Grant("", ())
        world.parent.answer(asked.request(world.parent, GetPerms), reason, grant=grant)


@case("PERM-4", needs=(*_NEEDS, "parent"), depends_on=("PERM-2",))
def remembers_perms(world: World) -> None:
    """What the parent answered is known from then on."""
    device = world.registered()
    node_id = world.subject.fresh_node()
    asked = device.say(GetPerms(node_id))
    world.parent.answer(asked.request(world.parent, GetPerms), grant=_GRANT)
    device.say(GetPerms(node_id))


@case("PERM-12", needs=(*_NEEDS, "perms_invalidate", "parent"), depends_on=("PERM-4",))
def forgets_perms(world: World) -> None:
    """After an invalidation the parent is asked again: of the named node, and of all if none is named."""
    device = world.registered()
    node_id = world.subject.fresh_node()
    for nodes in ((node_id,), ()):
        asked = device.say(GetPerms(node_id))
        world.parent.answer(asked.request(world.parent, GetPerms), grant=_GRANT)
        world.parent.say(PermsInvalidate(nodes))
    device.say(GetPerms(node_id))


@case("PERM-5", needs=(*_NEEDS, "perms_invalidate", "parent"), depends_on=("PERM-12",))
def does_not_remember_what_is_stale(world: World) -> None:
    """An answer to a question from before an invalidation is passed on but not remembered."""
    device = world.registered()
    node_id = world.subject.fresh_node()
    for nodes in ((node_id,), ()):
        asked = device.say(GetPerms(node_id))
        world.parent.say(PermsInvalidate(nodes))
        world.parent.answer(asked.request(world.parent, GetPerms), grant=_GRANT)
    device.say(GetPerms(node_id))


@case("PERM-14", needs=(*_NEEDS, "perms_invalidate", "parent"), depends_on=("PERM-12",))
def asks_again_at_once(world: World) -> None:
    """With refresh, what was named and known is asked for again at once."""
    device = world.registered()
    node_id = world.subject.fresh_node()
    asked = device.say(GetPerms(node_id))
    world.parent.answer(asked.request(world.parent, GetPerms), grant=_GRANT)
    again = world.parent.say(PermsInvalidate((node_id, world.subject.fresh_node()), refresh=True))
    world.parent.answer(again.request(world.parent, GetPerms), grant=Grant("other", ()))
    device.say(GetPerms(node_id))


@case("PERM-18/parent", needs=("perms_invalidate", "child_hub", "parent"), depends_on=("FRAME-10",))
def passes_invalidations_down(world: World) -> None:
    """An invalidation from the parent goes to child hubs and not back."""
    world.child_hub()
    world.parent.say(PermsInvalidate((5, 6), "news"))


@case("PERM-19/cached", needs=(*_NEEDS, "list_roles", "perms_invalidate", "parent"), depends_on=("PERM-12",))
def lists_what_it_knows(world: World) -> None:
    """A hub that is not the authority lists the nodes it has met and those it has asked about."""
    device, other = world.registered(), world.registered()
    asked_about = world.subject.fresh_node(), world.subject.fresh_node()
    for node_id in asked_about:
        asked = device.say(GetPerms(node_id))
        world.parent.answer(asked.request(world.parent, GetPerms), grant=_GRANT)
    ids = (device.node_id, other.node_id, *asked_about)
    device.say(ListRoles(node_ids=ids))
    world.parent.say(PermsInvalidate())
    device.say(ListRoles(node_ids=ids))


@case("PERM-20", needs=(*_NEEDS, "parent"), depends_on=("REG-6",))
def remembers_what_comes_with_a_registration(world: World) -> None:
    """What the parent said of a device in the answer to its registration is known from then on."""
    device = world.registered()
    device.say(GetPerms(device.node_id))


@case("PERM-21", needs=(*_NEEDS, "perms_invalidate", "parent"), depends_on=("PERM-20", "PERM-12"))
def believes_nothing_stale_of_a_registration(world: World) -> None:
    """What comes with a registration that is older than an invalidation, of whichever node, is asked for again."""
    device = world.device()
    asked = device.say(Register(device.device_id)).request(world.parent, AssistRegister)
    world.parent.say(PermsInvalidate((world.subject.fresh_node(),)))
    credential, node_id = world.subject.fresh_credential(), world.subject.fresh_node()
    given = world.parent.answer(asked, node_id=node_id, credential=credential)
    world.parent.answer(given.request(world.parent, GetPerms), grant=_GRANT)


def _forget(world: World) -> None:
    """What the hub knows of permissions must be asked for again."""
    with world.setting():
        world.parent.say(PermsInvalidate())


@case("TRUST-7", needs=(*_NEEDS, "revoke", "perms_invalidate", "parent"), depends_on=("REG-6",))
def asks_who_may(world: World) -> None:
    """A revoke by a device whose permissions are not known waits until the parent has told them."""
    for grant in (Grant("admin", ("auth.revoke",)), Grant("node", ())):
        device, victim = world.registered(), world.registered()
        _forget(world)
        asked = device.revoke(victim.device_id)
        world.parent.answer(asked.request(world.parent, GetPerms), grant=grant)


@case("TRUST-7/refused", needs=(*_NEEDS, "revoke", "perms_invalidate", "parent"), depends_on=("TRUST-7",))
def refuses_who_is_not_known(world: World) -> None:
    """Without a usable answer the request is refused, and nothing is forwarded."""
    device, victim = world.registered(), world.registered()
    _forget(world)
    asked = device.say(Revoke(victim.device_id))
    world.parent.answer(asked.request(world.parent, GetPerms), Reason.UNKNOWN_NODE)
