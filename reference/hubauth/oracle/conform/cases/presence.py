"""Where a device is: sessions, announcements, roaming, and going offline."""

from hubauth.core.messages import AssistOffline, HubDismiss, HubOnline, Offline, Register
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_NEEDS = ("register", "routing")


@case("BIND-2", needs=_NEEDS, depends_on=("FRAME-4",))
def takes_the_former_offline(world: World) -> None:
    """A connection that registers another device: the former one is not reached any more."""
    first, second = world.registered(), world.registered()
    former = first.node_id
    first.device_id = world.fresh_name()
    first.register()
    second.opaque(former)
    second.opaque(first.node_id)


@case("BIND-3", needs=("register", "authenticate"), depends_on=("FRAME-10",))
def supersedes(world: World) -> None:
    """A device that authenticates on a new connection loses the old one."""
    device = world.registered()
    world.again(device).authenticate()


@case("BIND-3/drops", needs=("register", "authenticate", "routing"), depends_on=("BIND-3",))
def survives_the_old_one(world: World) -> None:
    """When the old connection ends, also if the hub had left it open, the session on the new one stays."""
    device = world.registered()
    other = world.again(device)
    other.authenticate()
    if device.is_open:
        device.hang_up()
    world.registered().opaque(other.node_id)


@case("EXT-9", needs=("register", "two_child_hubs", "extension"), depends_on=("BIND-6",))
def dismisses(world: World) -> None:
    """A device announced by a second child hub: the first is told to let go of it."""
    first, second = world.child_hub(0), world.child_hub(1)
    behind = first.adopt()
    second.announce(behind.device_id, behind.node_id)
    world.registered().opaque(behind.node_id)


@case("EXT-9/child", needs=("register", "child_hub", "extension"), depends_on=("BIND-6",))
def takes_no_orders_from_below(world: World) -> None:
    """An order to let go that comes from a child hub is answered 403 and changes nothing."""
    hub, device = world.child_hub(), world.registered()
    hub.say(HubDismiss(device.device_id, device.node_id))
    world.registered().opaque(device.node_id)


@case("BIND-8", needs=("register", "child_hub", "extension"), depends_on=("BIND-6",))
def gives_way_to_an_announcement(world: World) -> None:
    """A device that a child hub announces loses its session here."""
    hub, device = world.child_hub(), world.registered()
    hub.announce(device.device_id, device.node_id)
    world.registered().opaque(device.node_id)


@case("BIND-9", needs=("register", "two_child_hubs", "extension"), depends_on=("EXT-9",))
def ignores_late_announcements(world: World) -> None:
    """Until the order to let go is answered, that child's announcements of the node are ignored."""
    first, second = world.child_hub(0), world.child_hub(1)
    behind, device = first.adopt(), world.registered()
    first.acknowledges = False
    order = second.announce(behind.device_id, behind.node_id).request(first, HubDismiss)
    first.announce(behind.device_id, behind.node_id)
    device.opaque(behind.node_id)
    first.acknowledges = True
    first.answer(order)
    first.announce(behind.device_id, behind.node_id)
    device.opaque(behind.node_id)


@case("BIND-10", needs=("register", "child_hub", "extension"), depends_on=("BIND-6",))
def drops_false_announcements(world: World) -> None:
    """Announcements of the hub itself, of the sender, or against a known binding are dropped."""
    hub, device = world.child_hub(), world.registered()
    hub.announce(world.fresh_name(), world.subject.node_id)
    hub.announce(hub.device_id, hub.node_id)
    hub.announce(device.device_id, device.node_id + 1000)
    hub.announce(world.fresh_name(), device.node_id)
    world.registered().opaque(device.node_id)


@case("BIND-4", needs=(*_NEEDS, "child_hub", "extension"), depends_on=("BIND-6",))
def a_hub_that_comes_again(world: World) -> None:
    """A child hub on a new connection: the old one is closed and everything behind it is offline until announced."""
    hub = world.child_hub()
    behind, device = hub.adopt(), world.registered()
    again = world.child_hub()
    device.opaque(behind.node_id)
    again.announce(behind.device_id, behind.node_id)
    device.opaque(behind.node_id)


@case("OFF-1", needs=(*_NEEDS, "offline", "authenticate"), depends_on=("FRAME-4",))
def goes_offline(world: World) -> None:
    """A device that says offline is not reached any more, has no session, and can come back on the same connection."""
    first, second = world.registered(), world.registered()
    first.offline()
    second.opaque(first.node_id)
    first.offline()
    first.authenticate()
    second.opaque(first.node_id)


@case("OFF-2", needs=("register", "offline"), depends_on=("FRAME-10",))
def answers_offline(world: World) -> None:
    """A device's offline is answered, or not, as the profile says."""
    world.registered().offline()


@case("MSG-11", needs=("register", "offline", "answers_offline"), depends_on=("OFF-2",))
def fields_of_offline(world: World) -> None:
    """The answer to offline says about whom."""
    world.registered().offline()


@case("MSG-7", needs=("register", "offline"), depends_on=("FRAME-10",))
def optional_fields(world: World) -> None:
    """Optional fields may be absent: offline without node_id is about whoever sends it."""
    device = world.registered()
    device.say(Offline(device.device_id))


@case("OFF-10", needs=("register", "offline"), depends_on=("FRAME-10",))
def nobody_in_the_index(world: World) -> None:
    """Offline on a connection without a session, or about somebody who is not online, is answered 4701."""
    stranger, device = world.device(), world.registered()
    stranger.say(Offline(stranger.device_id, 5))
    stranger.say(Offline(device.device_id, device.node_id))
    device.say(Offline(world.fresh_name(), 0xFFF0_0000))


@case("OFF-11", needs=("register", "offline"), depends_on=("FRAME-10",))
def not_for_others(world: World) -> None:
    """Offline about another device, or another node, that is online is answered 403."""
    first, second = world.registered(), world.registered()
    first.say(Offline(second.device_id, second.node_id))
    first.say(Offline(first.device_id, second.node_id))
    first.say(Offline(second.device_id, first.node_id))


@case("OFF-6", needs=("register", "offline", "child_hub", "extension"), depends_on=("BIND-6",))
def believes_reports(world: World) -> None:
    """A child hub reports that a device behind it is gone: answered 1, and it is not reached any more."""
    hub = world.child_hub()
    behind = hub.adopt()
    hub.say(AssistOffline(behind.device_id, behind.node_id))
    world.registered().opaque(behind.node_id)


@case("OFF-7", needs=("register", "offline", "child_hub"), depends_on=("BIND-6",))
def refuses_late_reports(world: World) -> None:
    """A report about a node that is not online through that child hub is answered 4701 and changes nothing."""
    hub, device = world.child_hub(), world.registered()
    hub.say(AssistOffline(device.device_id, device.node_id))
    hub.say(AssistOffline(world.fresh_name(), 0xFFF0_0000))
    world.registered().opaque(device.node_id)


@case("OFF-7/newer", needs=("register", "offline", "two_child_hubs", "extension"), depends_on=("OFF-7", "EXT-9"))
def keeps_newer_routes(world: World) -> None:
    """A late report about a device that is behind another child hub by now is answered 4701 and changes nothing."""
    first, second = world.child_hub(0), world.child_hub(1)
    behind = first.adopt()
    second.announce(behind.device_id, behind.node_id)
    first.say(AssistOffline(behind.device_id, behind.node_id))
    first.say(Offline(behind.device_id, behind.node_id))
    world.registered().opaque(behind.node_id)


@case("OFF-12", needs=("register", "offline", "child_hub", "extension"), depends_on=("OFF-6",))
def believes_offline_of_hubs(world: World) -> None:
    """A child hub may say offline for a device behind it, by node or by name, and for nobody else."""
    hub, device = world.child_hub(), world.registered()
    first, second, third = hub.adopt(), hub.adopt(), hub.adopt()
    hub.say(Offline(first.device_id, first.node_id))
    hub.say(Offline(second.device_id))
    hub.say(AssistOffline(third.device_id))
    hub.say(Offline(device.device_id, device.node_id))
    hub.say(AssistOffline(device.device_id))
    for peer in (first, second, third):
        device.opaque(peer.node_id)


@case("CODE-8", needs=("offline", "child_hub"), depends_on=("TRUST-1",))
def code_of_not_online(world: World) -> None:
    """A report about a node that is not in the directory is 4701."""
    world.child_hub().say(AssistOffline(world.fresh_name(), 0xFFF0_0000))


@case("OFF-8", needs=(*_NEEDS, "child_hub", "routes_below"), depends_on=("BIND-6",))
def loses_a_hub(world: World) -> None:
    """When a child hub is gone, so is everything behind it."""
    hub = world.child_hub()
    behind, device = hub.adopt(), world.registered()
    hub.hang_up()
    device.opaque(behind.node_id)


# With a parent above


@case("EXT-8", needs=("register", "authenticate", "parent", "extension"), depends_on=("REG-6",))
def announces(world: World) -> None:
    """Every binding is announced to the parent, with the node id; nothing comes back that would change anything."""
    device = world.registered()
    world.again(device).authenticate()


@case("BIND-6/up", needs=("register", "child_hub", "parent", "extension"), depends_on=("BIND-6",))
def passes_announcements_up(world: World) -> None:
    """What a child hub announces is announced to the parent."""
    world.child_hub().adopt()


@case("BIND-10/parent", needs=("parent", "extension"), depends_on=("FRAME-10",))
def drops_announcements_of_the_parent(world: World) -> None:
    """An announcement from the parent is dropped."""
    world.parent.say(HubOnline(world.fresh_name(), 0xFFF0_0000))


@case("EXT-9/parent", needs=("parent", "extension"), depends_on=("FRAME-10",))
def has_nobody_to_let_go(world: World) -> None:
    """An order to let go of a node that is not online is answered 4701."""
    world.parent.say(HubDismiss(world.fresh_name(), 0xFFF0_0000))


@case("OFF-5", needs=("register", "offline", "parent"), depends_on=("REG-6",))
def reports_offline(world: World) -> None:
    """A device that says offline is reported to the parent."""
    world.registered().offline()


@case("OFF-4", needs=("register", "parent"), depends_on=("REG-6",))
def notices_who_is_gone(world: World) -> None:
    """A device whose connection ends is reported to the parent."""
    world.registered().hang_up()


@case("OFF-13", needs=("register", "offline", "parent"), depends_on=("OFF-5",))
def passes_the_reason_on(world: World) -> None:
    """The reason of an offline goes up with the report."""
    device = world.registered()
    device.say(Offline(device.device_id, device.node_id, "client disconnect"))


@case("OFF-9", needs=("register", "offline", "parent"), depends_on=("OFF-5",))
def does_not_wait_for_the_parent(world: World) -> None:
    """Whatever the parent answers to a report, nothing follows from it."""
    world.parent.acknowledges = False
    device = world.registered()
    report = device.offline().request(world.parent, AssistOffline)
    device.say(Register(world.fresh_name()))
    world.parent.answer(report)


@case("OFF-8/up", needs=("register", "child_hub", "parent", "extension"), depends_on=("BIND-6",))
def reports_what_was_behind(world: World) -> None:
    """When a child hub is gone, everything behind it is reported to the parent."""
    hub = world.child_hub()
    hub.adopt()
    hub.adopt()
    hub.hang_up()


@case("BIND-12", needs=("register", "parent", "extension"), depends_on=("EXT-8",))
def lets_go_when_told(world: World) -> None:
    """Told by its parent that a device is elsewhere, the hub ends its session, answers 1 and reports nothing."""
    device = world.registered()
    world.parent.say(HubDismiss(device.device_id, device.node_id))
    world.parent.say(HubDismiss(device.device_id, device.node_id))


@case("BIND-12/down", needs=("register", "child_hub", "parent", "extension"), depends_on=("BIND-6",))
def passes_the_order_down(world: World) -> None:
    """The same for a device behind a child hub: the order goes down."""
    behind = world.child_hub().adopt()
    world.parent.say(HubDismiss(behind.device_id, behind.node_id))
