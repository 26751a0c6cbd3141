"""Revoke: which entries die, and how every hub is sure to hear of it."""

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    HubFence,
    Major,
    Reason,
    Revoke,
)
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_NEEDS = ("register", "revoke", "admin")
_HUBS = ("register", "revoke", "child_hub")
_EXTENDED = (*_HUBS, "extension")


@case("REV-1", needs=("register", "authenticate", "revoke"), depends_on=("FRAME-10",))
def needs_the_permission(world: World) -> None:
    """A device without the permission is answered 403, and the credential still works."""
    first, second = world.registered(), world.registered()
    first.revoke(second.device_id)
    world.again(second).authenticate()


@case("REV-5", needs=(*_NEEDS, "authenticate"), depends_on=("AUTH-1",))
def deletes_the_entry(world: World) -> None:
    """A revoked device is answered about with code 1, and its credential opens no session any more."""
    admin, device = world.admin(), world.registered()
    device.hang_up()
    admin.revoke(device.device_id)
    stranger = world.connect("device", device.device_id)
    stranger.say(Authenticate(device.device_id, device.credential))


@case("REV-5/agrees", needs=_NEEDS, depends_on=("REV-5",))
def deletes_what_agrees(world: World) -> None:
    """A revoke with the right node_id and credential deletes."""
    admin, device = world.admin(), world.registered()
    admin.revoke(device.device_id, node_id=device.node_id, credential=device.credential)


@case("REV-6", needs=(*_NEEDS, "routing"), depends_on=("REV-5",))
def ends_the_session(world: World) -> None:
    """A revoked device has no session any more: nothing reaches it, and it is served nothing."""
    admin, device, other = world.admin(), world.registered(), world.registered()
    admin.revoke(device.device_id)
    other.opaque(device.node_id)
    if device.is_open:
        device.offline()


@case("REV-7", needs=_NEEDS, depends_on=("REV-5",))
def closes_the_link(world: World) -> None:
    """The connection of a revoked device is closed, or stays, as the profile says."""
    admin, device = world.admin(), world.registered()
    admin.revoke(device.device_id)


@case("REV-8", needs=(*_NEEDS, "authenticate"), depends_on=("REV-5",))
def spares_what_disagrees(world: World) -> None:
    """A revoke with another node_id or credential deletes nothing."""
    admin, device = world.admin(), world.registered()
    admin.revoke(device.device_id, node_id=device.node_id + 1)
    admin.revoke(device.device_id, credential="x" * 43)
    world.again(device).authenticate()


@case("REV-8/both", needs=(*_NEEDS, "authenticate"), depends_on=("REV-8",))
def spares_what_disagrees_in_part(world: World) -> None:
    """A revoke with the right node_id and another credential, or the other way round, deletes nothing."""
    admin, device = world.admin(), world.registered()
    admin.revoke(device.device_id, node_id=device.node_id, credential="x" * 43)
    admin.revoke(device.device_id, node_id=device.node_id + 1, credential=device.credential)
    world.again(device).authenticate()


@case("REV-9", needs=_NEEDS, depends_on=("FRAME-10",))
def silent_when_not_found(world: World) -> None:
    """A broadcast revoke of a device that nobody has is not answered."""
    world.admin().revoke(world.fresh_name())


@case("REV-10", needs=_NEEDS, depends_on=("FRAME-10",))
def not_found_when_addressed(world: World) -> None:
    """A revoke addressed to this hub, of a device it does not have, is answered 4401."""
    world.admin().revoke(world.fresh_name(), target=world.subject.node_id)


@case("CODE-7", needs=_NEEDS, depends_on=("REV-10",))
def codes_of_revoke(world: World) -> None:
    """Not whitelisted is 4401, disagreeing is 4402."""
    admin, device = world.admin(), world.registered()
    admin.revoke(world.fresh_name(), target=world.subject.node_id)
    admin.revoke(device.device_id, node_id=device.node_id + 1)


@case("REV-4", needs=(*_HUBS, "admin"), depends_on=("REV-5",))
def not_passed_on_when_addressed(world: World) -> None:
    """A revoke addressed to this hub is handled here and told to no other."""
    world.child_hub()
    admin, device = world.admin(), world.registered()
    admin.revoke(device.device_id, target=world.subject.node_id)


@case("REV-18", needs=_NEEDS, depends_on=("REV-5",))
def answers_with_the_msg_id(world: World) -> None:
    """The originator hears the answer with the MsgID of its own request."""
    admin = world.admin()
    for msg_id in (7, 0xFFFF_FFFF):
        device = world.registered()
        admin.say(Revoke(device.device_id), msg_id=msg_id)


@case("REV-12", needs=(*_NEEDS, "root"), depends_on=("REV-5",))
def keeps_the_node(world: World) -> None:
    """A revoked device that registers again has the same node id."""
    admin, device = world.admin(), world.registered()
    device.hang_up()
    admin.revoke(device.device_id)
    world.again(device).register()


@case("REV-20", needs=(*_NEEDS, "root"), depends_on=("FRAME-10",))
def no_way_to_the_hub(world: World) -> None:
    """A revoke addressed to a hub that cannot be reached is answered 4002."""
    world.admin().revoke(world.fresh_name(), target=0xFFF0_0000)


# Between hubs


@case("REV-2", needs=(*_HUBS, "admin"), depends_on=("REV-9",))
def tells_the_hubs(world: World) -> None:
    """A broadcast revoke reaches every child hub with the same content, and no device."""
    world.child_hub()
    admin, _ = world.admin(), world.registered()
    admin.revoke(world.fresh_name(), node_id=77, credential="x" * 43)


@case("EXT-11", needs=(*_EXTENDED, "admin"), depends_on=("REV-2",))
def fences_its_revokes(world: World) -> None:
    """A broadcast revoke to a hub is followed by hub_fence on the same link."""
    world.child_hub()
    world.admin().revoke(world.fresh_name())


@case("EXT-12", needs=(*_EXTENDED, "admin"), depends_on=("EXT-11",))
def owes_what_was_not_acknowledged(world: World) -> None:
    """A revoke whose fence was not answered is sent again, with its number, when that hub comes back."""
    hub, admin = world.child_hub(), world.admin()
    hub.acknowledges = False
    admin.revoke(world.fresh_name())
    hub.hang_up()
    admin.revoke(world.fresh_name())
    world.child_hub()


@case("EXT-12/acknowledged", needs=(*_EXTENDED, "admin"), depends_on=("EXT-12",))
def owes_nothing_more(world: World) -> None:
    """A revoke whose fence was answered is not sent again."""
    hub, admin = world.child_hub(), world.admin()
    admin.revoke(world.fresh_name())
    hub.hang_up()
    world.child_hub()


@case("EXT-12/refused", needs=(*_EXTENDED, "admin"), depends_on=("EXT-12",))
def owes_what_was_refused(world: World) -> None:
    """A fence that is refused acknowledges nothing, and neither does the answer to one that was never sent."""
    hub, admin = world.child_hub(), world.admin()
    hub.acknowledges = False
    fence = admin.revoke(world.fresh_name()).request(hub, HubFence)
    to = world.subject.node_id
    hub.say(Answer(Action.HUB_FENCE, Reason.OK), msg_id=fence.msg_id + 77, target=to, major=Major.OK_RESP)
    hub.answer(fence, Reason.INTERNAL)
    hub.hang_up()
    world.child_hub()


@case("REV-21", needs=(*_EXTENDED, "admin"), depends_on=("EXT-12/acknowledged",))
def pays_in_batches(world: World) -> None:
    """What a hub is owed comes in batches, the next when the fence behind the one before was answered."""
    hub, admin = world.child_hub(), world.admin()
    hub.hang_up()
    for _ in range(world.subject.profile.limits.revoke_batch + 2):
        admin.revoke(world.fresh_name())
    world.again(hub).authenticate()


@case("REV-22", needs=(*_EXTENDED, "admin", "root", "revoke_on_reregister"), depends_on=("REV-21",))
def nothing_overtakes_the_revoke(world: World) -> None:
    """A hub that registers a device hears of the revoke that waits for it before it has the new credential."""
    hub, admin, device = world.child_hub(), world.admin(), world.registered()
    hub.acknowledges = False
    for _ in range(world.subject.profile.limits.revoke_batch + 1):
        admin.revoke(world.fresh_name())
    hub.say(AssistRegister(device.device_id))
    hub.hang_up()
    world.child_hub()


@case("EXT-10", needs=(*_EXTENDED, "authenticate"), depends_on=("AUTH-1",))
def acts_once_per_number(world: World) -> None:
    """A revoke from a hub is acted on once per number; an older number, or the same again, changes nothing."""
    hub = world.child_hub()
    first, second = hub.next_number(), hub.next_number()
    hub.pass_on(Revoke(world.fresh_name()), number=second)
    device = world.registered()
    hub.pass_on(Revoke(device.device_id), number=first)
    hub.pass_on(Revoke(device.device_id), number=second)
    world.again(device).authenticate()


@case("EXT-10/unnumbered", needs=("register", "revoke", "two_child_hubs", "extension"), depends_on=("EXT-10",))
def acts_without_number(world: World) -> None:
    """A revoke from a hub without seq is always acted on, and passed on with a number."""
    hub, _, device = world.child_hub(0), world.child_hub(1), world.registered()
    hub.pass_on(Revoke(device.device_id), number=0)


@case("EXT-10/increasing", needs=(*_EXTENDED, "admin"), depends_on=("REV-2",))
def numbers_increase(world: World) -> None:
    """Revokes to a hub carry increasing numbers."""
    world.child_hub()
    admin = world.admin()
    for _ in range(3):
        admin.revoke(world.fresh_name())


@case("EXT-10/addressed", needs=(*_EXTENDED, "admin"), depends_on=("REV-2",))
def numbers_no_addressed_one(world: World) -> None:
    """A revoke addressed to a child hub carries no number, also if its originator wrote one."""
    hub, admin = world.child_hub(), world.admin()
    admin.say(Revoke(world.fresh_name(), seq=7), target=hub.node_id)
    admin.revoke(world.fresh_name())


@case("EXT-11/answers", needs=("revoke", "child_hub", "extension"), depends_on=("TRUST-1",))
def answers_fences(world: World) -> None:
    """A fence from a hub is answered 1."""
    world.child_hub().say(HubFence())


@case("REV-17", needs=_EXTENDED, depends_on=("EXT-10",))
def answers_go_to_the_originator(world: World) -> None:
    """The answer to a revoke by somebody behind a child hub is addressed to that one, through the hub."""
    hub, device = world.child_hub(), world.registered()
    behind = hub.adopt()
    hub.pass_on(Revoke(device.device_id), source=behind.node_id)


@case("REV-18/delivers", needs=(*_EXTENDED, "admin"), depends_on=("REV-2", "REG-7/keeps-none", "REG-8"))
def delivers_answers_of_others(world: World) -> None:
    """A child hub's answer to a revoke is delivered to the originator with its MsgID; one nobody waits for is not."""
    hub, admin = world.child_hub(), world.admin()
    behind = hub.adopt()
    request = admin.revoke(behind.device_id).request(hub, Revoke)
    answer = Answer(Action.REVOKE, Reason.OK, behind.device_id, behind.node_id)
    hub.say(answer, msg_id=request.msg_id, target=admin.node_id, major=Major.OK_RESP)
    stray = Answer(Action.REVOKE, Reason.OK, world.fresh_name(), 5)
    hub.say(stray, msg_id=request.msg_id, target=admin.node_id, major=Major.OK_RESP)


@case("REV-3", needs=(*_HUBS, "admin"), depends_on=("REV-2",))
def routes_when_addressed(world: World) -> None:
    """A revoke addressed to a child hub goes there only and is handled nowhere else."""
    hub, admin, device = world.child_hub(), world.admin(), world.registered()
    admin.revoke(device.device_id, target=hub.node_id)


@case("REV-2/hub", needs=("register", "revoke", "two_child_hubs"), depends_on=("FRAME-10",))
def passes_revokes_on(world: World) -> None:
    """A revoke from one child hub goes to the other and not back."""
    first, _ = world.child_hub(0), world.child_hub(1)
    first.pass_on(Revoke(world.fresh_name()))


@case("TRUST-6", needs=_EXTENDED, depends_on=("EXT-10",))
def trusts_what_hubs_checked(world: World) -> None:
    """A revoke over a hub link needs no permission here: the hub of the originator has checked it."""
    hub, device = world.child_hub(), world.registered()
    behind = hub.adopt()
    hub.pass_on(Revoke(device.device_id, device.node_id), source=behind.node_id)


@case("REV-11", needs=(*_HUBS, "authenticate", "assist_auth", "admin"), depends_on=("AUTH-20", "REV-2"))
def cancels_authentications(world: World) -> None:
    """A revoke refuses a search for that device that is under way; its late answer lets nobody in."""
    hub, admin = world.child_hub(), world.admin()
    behind = hub.adopt()
    device = world.connect("device", behind.device_id)
    asked = device.say(Authenticate(behind.device_id, behind.credential))
    admin.revoke(behind.device_id)
    hub.answer(asked.request(hub, AssistAuthenticate), node_id=behind.node_id, credential=behind.credential)


@case("REV-19", needs=(*_HUBS, "revoke_on_reregister", "root"), depends_on=("REG-10",))
def revokes_by_itself(world: World) -> None:
    """The authority's own revoke, before a repeated registration, needs nobody's permission."""
    world.child_hub()
    world.registered().register()


# With a parent above


@case("REV-2/up", needs=(*_NEEDS, "parent"), depends_on=("REV-9",))
def tells_the_parent(world: World) -> None:
    """A broadcast revoke goes to the parent, too."""
    world.admin().revoke(world.fresh_name())


@case("REV-2/down", needs=("register", "revoke", "parent"), depends_on=("FRAME-10",))
def obeys_the_parent(world: World) -> None:
    """A broadcast revoke from the parent is handled, answered, and not sent back."""
    device = world.registered()
    world.parent.pass_on(Revoke(device.device_id))


@case("REV-6/up", needs=("register", "revoke", "parent"), depends_on=("REV-2/down",))
def reports_the_revoked(world: World) -> None:
    """A revoked device is reported to the parent as gone."""
    device = world.registered()
    world.parent.pass_on(Revoke(device.device_id, device.node_id))


@case("REV-20/up", needs=(*_NEEDS, "parent"), depends_on=("REV-2/up",))
def routes_upwards(world: World) -> None:
    """A revoke addressed to a hub that is not below goes to the parent, unhandled; back there it never goes."""
    world.admin().revoke(world.fresh_name(), target=0xFFF0_0000)
    world.parent.pass_on(Revoke(world.fresh_name()), target=0xFFF0_0000)


@case("REV-11/parent", needs=("authenticate", "revoke", "parent", "assist_auth"), depends_on=("AUTH-5", "REV-2/down"))
def cancels_what_it_asked_the_parent(world: World) -> None:
    """A revoke from the parent overtakes its own answer: the device stays out."""
    device = world.device()
    credential = world.subject.fresh_credential()
    asked = device.say(Authenticate(device.device_id, credential))
    world.parent.pass_on(Revoke(device.device_id))
    request = asked.request(world.parent, AssistAuthenticate)
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)
