"""The hub under test and its parent: joining, losing it, waiting in vain."""

from hubauth.core.messages import (
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    GetPerms,
    Grant,
    Major,
    Offline,
    Reason,
    Register,
)
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.world import World

_DEVICE = ("register", "authenticate", "parent")


@case("FRAME-19", needs=("parent",), depends_on=("FRAME-10",))
def parents_are_no_devices(world: World) -> None:
    """Register, authenticate and offline from the parent are answered 403."""
    name = world.fresh_name()
    world.parent.say(Register(name))
    world.parent.say(Authenticate(name, "x" * 43))
    if world.mirror.policy.has_presence:
        world.parent.say(Offline(name))


@case("FRAME-16/parent", needs=("register", "parent", "extension"), depends_on=("REG-5",))
def matches_by_msg_id(world: World) -> None:
    """The answer of a parent that speaks the extension counts by its MsgID, never by the device it names."""
    first, second = world.device(), world.device()
    asked = first.say(Register(first.device_id)).request(world.parent, AssistRegister)
    other = second.say(Register(second.device_id)).request(world.parent, AssistRegister)
    credential = world.subject.fresh_credential() if world.mirror.policy.has_credentials else ""
    node_id = world.subject.fresh_node()
    world.parent.answer(other, device_id=first.device_id, node_id=node_id, credential=credential)
    world.parent.answer(asked, node_id=node_id, credential=credential)
    world.parent.answer(asked, node_id=node_id, credential=credential)


@case("LINK-2", needs=("parent",), depends_on=("FRAME-10",))
def shows_itself(world: World) -> None:
    """When its parent link comes up, the hub authenticates there like a device."""
    world.parent.hang_up()
    world.parent_returns()


@case("LINK-3", needs=("register", "parent"), depends_on=("LINK-2",))
def needs_an_answer(world: World) -> None:
    """The parent is present once it has answered: until then registrations are 4002, afterwards they go up."""
    world.parent.hang_up()
    request = world.parent_returns()
    device = world.device()
    device.say(Register(device.device_id))
    world.answer_join(request)
    device.say(Register(device.device_id))


@case("BIND-11", needs=("register", "parent", "extension"), depends_on=("LINK-2",))
def announces_everybody(world: World) -> None:
    """When its parent is back, the hub announces everybody who is online."""
    world.registered()
    world.registered()
    world.parent.hang_up()
    world.answer_join(world.parent_returns())


@case("PERM-7", needs=("register", "perms", "parent"), depends_on=("LINK-2", "PERM-4"))
def forgets_perms_with_the_parent(world: World) -> None:
    """What was known of permissions is asked for again when the parent has been away."""
    device = world.registered()
    node_id = world.subject.fresh_node()
    asked = device.say(GetPerms(node_id))
    world.parent.answer(asked.request(world.parent, GetPerms), grant=Grant("sensor", ("read",)))
    world.parent.hang_up()
    world.answer_join(world.parent_returns())
    device.say(GetPerms(node_id))


@case("LINK-4", needs=("register", "parent"), depends_on=("LINK-2",))
def stays_away_when_refused(world: World) -> None:
    """A hub that its parent refuses does not register again by itself; its parent stays away."""
    world.parent.hang_up()
    world.answer_join(world.parent_returns(), Reason.NOT_ADMITTED)
    device = world.device()
    device.say(Register(device.device_id))


@case("LINK-5", needs=("parent",), depends_on=("LINK-2",))
def tries_again(world: World) -> None:
    """If the parent is not able to answer, the hub closes the link and comes back."""
    world.parent.hang_up()
    world.answer_join(world.parent_returns(), Reason.UNREACHABLE)
    world.answer_join(world.parent_returns())


@case("AUTH-18", needs=_DEVICE, depends_on=("LINK-2", "REG-6"))
def admits_while_the_parent_is_away(world: World) -> None:
    """A device with an entry is admitted also while the parent is away."""
    device = world.registered()
    world.parent.hang_up()
    world.again(device).authenticate()


@case("AUTHY-5", needs=("register", "parent"), depends_on=("LINK-2",))
def never_replaces_the_authority(world: World) -> None:
    """While the parent is away a registration is answered 4002; the hub does not allocate itself."""
    world.parent.hang_up()
    world.device().register()


@case("CODE-5", needs=("register", "parent"), depends_on=("AUTHY-5",))
def code_of_unreachable(world: World) -> None:
    """What needs a parent that is away is 4002."""
    world.parent.hang_up()
    world.device().register()


@case("AUTH-10/parent", needs=("authenticate", "parent", "assist_auth"), depends_on=("LINK-2",))
def cannot_search_without_parent(world: World) -> None:
    """A device without an entry is answered 4002 while the parent is away."""
    world.parent.hang_up()
    world.device().authenticate("x" * 43)


@case("LINK-6", needs=("register", "authenticate", "parent"), depends_on=("LINK-2", "REG-5"))
def answers_when_the_parent_is_lost(world: World) -> None:
    """Who waits for the parent when it goes is answered 4002."""
    first, second = world.device(), world.device()
    first.say(Register(first.device_id))
    second.say(Authenticate(second.device_id, "x" * 43))
    world.parent.hang_up()


@case("LINK-7", needs=("register", "parent"), depends_on=("REG-5",))
def forgets_who_is_gone(world: World) -> None:
    """A device that hangs up while it waits: the late answer goes nowhere and admits nobody."""
    device = world.registered()
    asked = device.say(Register(world.fresh_name()))
    device.hang_up()  # it is reported, so that the answer comes after that
    credential = world.subject.fresh_credential() if world.mirror.policy.has_credentials else ""
    request = asked.request(world.parent, AssistRegister)
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)


@case("LINK-10", needs=("register", "perms", "offline", "parent"), depends_on=("LINK-2", "OFF-1", "PERM-4"))
def refuses_who_has_left(world: World) -> None:
    """A device that asks and goes offline while it waits is answered 403; the late answer goes nowhere."""
    device = world.registered()
    asked = device.say(GetPerms(world.subject.fresh_node())).request(world.parent, GetPerms)
    device.offline()
    world.parent.answer(asked, grant=Grant("sensor", ("read",)))


@case("LINK-11", needs=("child_hub",), depends_on=("TRUST-1",))
def parts_with_hubs(world: World) -> None:
    """A child hub on a new connection: its old one is closed, whatever is done with those of devices."""
    world.child_hub()
    world.child_hub()


@case("TIME-2", needs=("register", "parent"), depends_on=("REG-5",))
def gives_up_in_time(world: World) -> None:
    """A registration that the parent does not answer in time is answered 4002; a late answer changes nothing."""
    device = world.device()
    request = device.say(Register(device.device_id)).request(world.parent, AssistRegister)
    world.elapse()
    credential = world.subject.fresh_credential() if world.mirror.policy.has_credentials else ""
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)


@case("TIME-1", needs=("authenticate", "parent", "assist_auth"), depends_on=("AUTH-5", "TIME-2"))
def every_question_has_its_time(world: World) -> None:
    """A search that the parent does not answer in time is answered 4002."""
    device = world.device()
    device.say(Authenticate(device.device_id, "x" * 43)).request(world.parent, AssistAuthenticate)
    world.elapse()


def _ask_at_once(world: World, peer: Peer, kind: type[Register | AssistRegister], count: int) -> None:
    """So many registrations on one connection, each of another device, in one piece."""
    requests = [world.subject.codec.encode(kind(world.fresh_name())) for _ in range(count)]
    peer.transmit(b"".join(peer.frame(request, source=peer.node_id) for request in requests))


@case("TIME-4", needs=("register", "parent"), depends_on=("REG-5",))
def bounds_who_waits(world: World) -> None:
    """Of more waiting requests of one connection than the limit, those beyond are answered 4500."""
    world.parent_anew()
    _ask_at_once(world, world.device(), Register, world.subject.profile.limits.pending + 2)


@case("TIME-6", needs=("register", "parent"), depends_on=("TIME-4",))
def leaves_room_for_everybody(world: World) -> None:
    """While as many registrations wait as the limit says, another connection may have one, and 4500 for the next."""
    world.parent_anew()
    _ask_at_once(world, world.device(), Register, world.subject.profile.limits.pending)
    _ask_at_once(world, world.device(), Register, 2)


@case("TIME-5", needs=("register", "child_hub", "parent"), depends_on=("REG-8", "TIME-4"))
def bounds_hubs_that_wait(world: World) -> None:
    """Of more waiting requests of one child hub than the limit for hubs, those beyond are answered 4500."""
    world.parent_anew()
    _ask_at_once(world, world.child_hub(), AssistRegister, world.subject.profile.limits.hub_pending + 2)


@case("TIME-7", needs=_DEVICE, depends_on=("AUTH-25", "TIME-4"))
def searches_no_more_when_crowded(world: World) -> None:
    """A device that is admitted more often than the limit for hubs says is not shown to the parent every time."""
    device = world.registered()
    world.parent_anew()
    request = world.subject.codec.encode(Authenticate(device.device_id))
    device.transmit(b"".join(device.frame(request) for _ in range(world.subject.profile.limits.hub_pending + 2)))


@case("CODE-6", needs=("register", "parent"), depends_on=("TIME-4",))
def code_of_busy(world: World) -> None:
    """Too many waiting requests are 4500."""
    bounds_who_waits(world)


@case("CODE-11", needs=("register", "parent"), depends_on=("REG-14",))
def unknown_codes(world: World) -> None:
    """A code that nobody knows is a failure, taken as an internal error of the parent."""
    device = world.device()
    request = device.say(Register(device.device_id)).request(world.parent, AssistRegister)
    nested = b'{"action":"assist_register_resp","data":{"code":7777,"msg":"ok"}}'
    payload = b'{"code":7777,"msg":"ok"}' if world.subject.profile.dialect is Dialect.FLAT else nested
    world.parent.send(payload, msg_id=request.msg_id, source=world.parent.node_id, major=Major.ERR_RESP)


@case("MSG-18", needs=("register", "parent"), depends_on=("REG-14",))
def incomplete_answers(world: World) -> None:
    """A success without node_id is unreadable: it is dropped, and the proper answer still counts."""
    device = world.device()
    asked = device.say(Register(device.device_id))
    request = asked.request(world.parent, AssistRegister)
    nested = f'{{"action":"assist_register_resp","data":{{"code":1,"msg":"ok","device_id":"{device.device_id}"}}}}'
    flat = f'{{"code":1,"msg":"ok","device_id":"{device.device_id}"}}'
    payload = flat if world.subject.profile.dialect is Dialect.FLAT else nested
    world.parent.send(payload.encode(), msg_id=request.msg_id, source=world.parent.node_id, major=Major.OK_RESP)
    world.let_parent_admit(asked, device)
