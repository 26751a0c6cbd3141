"""The extension: how two hubs find out that both speak it, and what happens on links where one does not."""

from hubauth.core.messages import (
    NOT_A_HUB,
    AssistAuthenticate,
    Authenticate,
    Ext,
    HubDismiss,
    HubFence,
    HubOnline,
    Register,
    Revoke,
)
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_CHILD = ("child_hub", "extension")
_PARENT = ("parent", "extension")


@case("EXT-1", needs=("register", *_CHILD), depends_on=("TRUST-1",))
def drops_what_was_not_agreed(world: World) -> None:
    """On the link of a hub that does not speak the extension, or of a device, its messages are dropped."""
    hub, device = world.child_hub(plain=True), world.registered()
    for peer in (hub, device):
        peer.say(HubOnline(world.fresh_name(), 0xFFF0_0000))
        peer.say(HubDismiss(device.device_id, device.node_id))
        peer.say(HubFence())
    world.registered().opaque(device.node_id)


@case("EXT-2", needs=_PARENT, depends_on=("LINK-2",))
def offers_it(world: World) -> None:
    """The hub tells its parent its own journal, the parent's, and the last number it has handled from there."""
    world.parent.hang_up()
    world.answer_join(world.parent_returns())
    if "revoke" in world.subject.profile.available:
        world.parent.pass_on(Revoke(world.fresh_name()))
    world.parent.hang_up()
    world.answer_join(world.parent_returns())


@case("EXT-3", needs=_CHILD, depends_on=("TRUST-1",))
def takes_it_up(world: World) -> None:
    """A child hub that offers the extension is told the journal, its own, and the last number handled from it."""
    hub = world.child_hub()
    if "revoke" in world.subject.profile.available:
        hub.pass_on(Revoke(world.fresh_name()))
    world.again(hub).authenticate()


@case("EXT-3/same", needs=_CHILD, depends_on=("EXT-3",))
def is_not_its_own_child(world: World) -> None:
    """A child hub that calls the hub's own journal its own is admitted, and not spoken to in the extension."""
    other = world.again(world.child_hub())
    other.ext = Ext(world.subject.journal)
    other.authenticate()
    other.say(HubFence())


@case("EXT-3/once", needs=_CHILD, depends_on=("EXT-3",))
def settles_it_once(world: World) -> None:
    """A link that was plain when it was bound stays so, whatever the child hub says on it later."""
    world.child_hub()
    hub = world.child_hub(plain=True)
    hub.ext = world.subject.offer(hub.node_id)
    hub.authenticate()
    hub.say(HubFence())


@case("EXT-4", needs=("register", *_PARENT), depends_on=("EXT-2",))
def is_not_fooled_by_an_echo(world: World) -> None:
    """A parent that only repeats what it was sent is present, and a plain one: nobody is announced to it."""
    world.parent.hang_up()
    request = world.parent_returns()
    assert isinstance(request.body, Authenticate | Register)
    world.answer_join(request, ext=request.body.ext)
    world.device().register()


@case("EXT-4/plain", needs=("register", *_PARENT), depends_on=("EXT-2",))
def has_a_plain_parent(world: World) -> None:
    """A parent that says nothing of the extension is present: registrations go up, and nobody is announced."""
    world.parent.hang_up()
    request = world.parent_returns()
    world.parent.answer(request, node_id=world.subject.profile.hub.node_id)
    world.device().register()


@case("EXT-5", needs=("register", "revoke", *_CHILD), depends_on=("EXT-3", "EXT-10"))
def begins_anew(world: World) -> None:
    """A child hub that comes back with another journal numbers from the beginning, and is obeyed."""
    hub, device = world.child_hub(), world.registered()
    for _ in range(3):
        hub.pass_on(Revoke(world.fresh_name()))
    again = world.again(hub)
    again.begin_anew()
    again.authenticate()
    again.pass_on(Revoke(device.device_id))


@case("EXT-5/owed", needs=("register", "revoke", "admin", *_CHILD), depends_on=("EXT-5", "EXT-12"))
def owes_it_all_the_same(world: World) -> None:
    """What a child hub was owed is owed to it also if it comes back with another journal, in the order it had."""
    hub, admin = world.child_hub(), world.admin()
    hub.acknowledges = False
    admin.revoke(world.fresh_name())
    hub.hang_up()
    admin.revoke(world.fresh_name())
    again = world.again(hub)
    again.begin_anew()
    again.authenticate()


@case("EXT-5/restored", needs=("register", "revoke", "admin", *_CHILD), depends_on=("EXT-5", "EXT-10/increasing"))
def uses_no_number_twice(world: World) -> None:
    """A child hub that has handled higher numbers than the hub remembers is sent higher ones still."""
    hub, admin = world.child_hub(), world.admin()
    handled = world.subject.last_number.get(hub.node_id, 0) + 1000
    again = world.again(hub)
    again.ext = Ext(world.subject.journal_of(hub.node_id), world.subject.journal, handled)
    world.subject.last_number[hub.node_id] = handled
    again.authenticate()
    admin.revoke(world.fresh_name())


@case("EXT-6", needs=("register", "revoke", "admin", *_PARENT), depends_on=("EXT-2", "REV-2/up"))
def owes_a_new_parent_less(world: World) -> None:
    """To a parent with another journal nothing goes that was owed to the former one and names no credential."""
    admin, parent = world.admin(), world.parent
    parent.hang_up()
    admin.revoke(world.fresh_name())
    admin.revoke(world.fresh_name(), credential="x" * 43)
    request = world.parent_returns()
    world.parent.begin_anew()
    world.answer_join(request)


@case("EXT-7", needs=("register", "extension"), depends_on=("FRAME-10",))
def tells_who_is_no_hub(world: World) -> None:
    """Whoever offers the extension and is admitted as a device is told that it is no hub."""
    device = world.device()
    world.let_parent_admit(device.say(Register(device.device_id, Ext("journal of a device"))), device)


@case("EXT-7/parent", needs=_PARENT, depends_on=("LINK-5", "EXT-2"))
def stays_away_as_a_device(world: World) -> None:
    """A hub that its parent takes for a device closes the link and comes back."""
    world.parent.hang_up()
    world.answer_join(world.parent_returns(), ext=NOT_A_HUB)
    world.answer_join(world.parent_returns())


@case("REV-23", needs=("register", "revoke", "admin", *_CHILD), depends_on=("EXT-3", "REV-2"))
def tells_plain_hubs_once(world: World) -> None:
    """A hub on a plain link is sent a revoke once, without number and fence, also what it was owed when it came."""
    hub, admin = world.child_hub(plain=True), world.admin()
    admin.revoke(world.fresh_name())
    hub.hang_up()
    admin.revoke(world.fresh_name())
    again = world.again(hub)
    again.authenticate()
    again.hang_up()
    world.again(hub).authenticate()


@case("EXT-14", needs=("authenticate", *_CHILD), depends_on=("TRUST-1",))
def nobody_has_an_empty_credential(world: World) -> None:
    """A search with an empty credential is answered 4001, also about a device that is online elsewhere."""
    hub = world.child_hub()
    hub.say(AssistAuthenticate(world.fresh_name()))
    if "register" in world.subject.profile.available:
        hub.say(AssistAuthenticate(world.registered().device_id))


@case("EXT-14/parent", needs=("authenticate", *_PARENT), depends_on=("FRAME-10",))
def nor_when_the_parent_asks(world: World) -> None:
    """The same from the parent."""
    world.parent.say(AssistAuthenticate(world.fresh_name()))


_UNREADABLE = (
    '"yes"',
    '{"v":2,"journal":"j"}',
    '{"v":1,"journal":""}',
    '{"v":1,"journal":"%s"}' % ("j" * 65),
    '{"v":1,"journal":"j","handled":-1}',
)


@case("EXT-15", needs=_CHILD, depends_on=("EXT-3",))
def takes_what_it_cannot_read_for_nothing(world: World) -> None:
    """An ext that cannot be read makes no message invalid: the child hub is admitted, and plain."""
    known = world.subject.profile.child_hub[0]
    for ext in _UNREADABLE:
        hub = world.connect("child hub", known.device_id)
        shown = world.subject.codec.encode(Authenticate(known.device_id, known.credential))
        hub.send(shown.removesuffix(b"}}") + b',"ext":' + ext.encode() + b"}}")
        hub.node_id = known.node_id
        hub.say(HubFence())


@case("EXT-15/short", needs=_CHILD, depends_on=("EXT-3",))
def needs_no_more_than_a_journal(world: World) -> None:
    """An ext without peer and handled is one all the same."""
    known = world.subject.profile.child_hub[0]
    hub = world.connect("child hub", known.device_id)
    shown = world.subject.codec.encode(Authenticate(known.device_id, known.credential))
    journal = world.subject.journal_of(known.node_id)
    hub.send(shown.removesuffix(b"}}") + b',"ext":{"v":1,"journal":"%s"}}}' % journal.encode())
    hub.node_id, hub.wire.extended = known.node_id, True
    hub.say(HubFence())
