"""Authenticate: who knows the credential. Verification only reads."""

from hubauth.core.messages import AssistAuthenticate, AssistOffline, AssistQueryCredential, Authenticate, Reason
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_DEVICE = ("register", "authenticate")
_SEARCH = (*_DEVICE, "credentials", "assist_auth", "child_hub")


@case("AUTH-1", needs=_DEVICE, depends_on=("FRAME-10",))
def admits(world: World) -> None:
    """A device with the credential it was given is admitted, on a new connection and on the same."""
    device = world.registered()
    device.authenticate()
    device.hang_up()
    world.again(device).authenticate()


@case("AUTH-2", needs=_DEVICE, depends_on=("AUTH-1",))
def refuses_another_credential(world: World) -> None:
    """A device with another credential is refused: one character off, and somebody else's."""
    device, other = world.registered(), world.registered()
    stranger = world.connect("stranger", device.device_id)
    last = "A" if device.credential[-1] != "A" else "Q"
    stranger.authenticate(device.credential[:-1] + last)
    stranger.authenticate(other.credential)


@case("AUTH-3", needs=_DEVICE, depends_on=("AUTH-1",))
def refuses_an_empty_credential(world: World) -> None:
    """An empty credential is refused, for a known device and for an unknown one."""
    device = world.registered()
    world.connect("stranger", device.device_id).authenticate("")
    world.device().authenticate("")


@case("CODE-2", needs=_DEVICE, depends_on=("AUTH-2",))
def one_code_for_both(world: World) -> None:
    """Wrong credential and, where nobody else can be asked, unknown device are told by the same code."""
    device = world.registered()
    world.connect("stranger", device.device_id).authenticate("x" * 43)


@case("AUTH-4", needs=(*_DEVICE, "assist_none"), depends_on=("FRAME-10",))
def refuses_the_unknown(world: World) -> None:
    """With assist none a device without an entry is refused at once."""
    world.device().authenticate("x" * 43)


@case("AUTH-9", needs=("authenticate", "assist_auth", "root"), depends_on=("FRAME-10",))
def nobody_left_to_ask(world: World) -> None:
    """A device that nobody knows is refused at the root."""
    world.device().authenticate("x" * 43)


@case("CODE-3", needs=("authenticate", "assist_auth", "root"), depends_on=("AUTH-9",))
def unregistered(world: World) -> None:
    """A device that is not registered is told so."""
    world.device().authenticate()


@case("AUTH-15", needs=_DEVICE, depends_on=("FRAME-10",))
def the_binding_is_the_proof(world: World) -> None:
    """Without credentials a registered device is admitted by its name."""
    device = world.registered()
    device.hang_up()
    world.again(device).authenticate()


@case("AUTH-7", needs=("register", "authenticate", "child_hub"), depends_on=("AUTH-1",))
def answers_a_search(world: World) -> None:
    """A child hub that searches is told whether the credential is right, and nothing changes by it."""
    device, hub = world.registered(), world.child_hub()
    hub.say(AssistAuthenticate(device.device_id, device.credential))
    hub.say(AssistAuthenticate(device.device_id, "x" * 43))
    world.registered().opaque(device.node_id)


@case(
    "AUTH-20",
    needs=_SEARCH,
    depends_on=("BIND-6", "REG-7/keeps-none", "REG-8"),
)
def searches_where_it_was_seen(world: World) -> None:
    """A device that is unknown here but was seen behind a child hub is searched there."""
    hub = world.child_hub()
    behind = hub.adopt()
    world.connect("device", behind.device_id).say(Authenticate(behind.device_id, behind.credential))


@case("AUTH-12", needs=_SEARCH, depends_on=("AUTH-20",))
def admits_after_a_search(world: World) -> None:
    """What a search confirmed is stored: the device is admitted, the next time without asking."""
    hub = world.child_hub()
    behind = hub.adopt()
    device = world.connect("device", behind.device_id)
    asked = device.say(Authenticate(behind.device_id, behind.credential))
    request = asked.request(hub, AssistAuthenticate)
    hub.answer(request, node_id=behind.node_id, credential=behind.credential)
    again = world.connect("device", behind.device_id)
    again.authenticate(behind.credential)


@case("AUTH-19", needs=(*_SEARCH, "routes_below", "root"), depends_on=("AUTH-20",))
def a_search_that_fails(world: World) -> None:
    """What comes back from a failed search is passed on if a device may hear it, else it is 4002."""
    hub = world.child_hub()
    for reason in (Reason.NOT_ADMITTED, Reason.UNREACHABLE, Reason.INTERNAL, Reason.FORBIDDEN):
        behind = hub.adopt()
        device = world.connect("device", behind.device_id)
        asked = device.say(Authenticate(behind.device_id, behind.credential))
        hub.answer(asked.request(hub, AssistAuthenticate), reason)


@case("AUTH-19/contradiction", needs=(*_SEARCH, "routes_below"), depends_on=("AUTH-20",))
def a_search_that_contradicts(world: World) -> None:
    """A success with a node id that cannot be the device's admits nobody."""
    hub = world.child_hub()
    behind, other = hub.adopt(), hub.adopt()
    device = world.connect("device", behind.device_id)
    asked = device.say(Authenticate(behind.device_id, behind.credential))
    hub.answer(asked.request(hub, AssistAuthenticate), node_id=other.node_id, credential=behind.credential)


@case("AUTH-10", needs=(*_SEARCH, "root"), depends_on=("AUTH-20",))
def the_next_hop_is_down(world: World) -> None:
    """A device that was last seen behind a child hub that is away cannot be verified: 4002."""
    hub = world.child_hub()
    behind = hub.adopt()
    hub.hang_up()
    world.connect("device", behind.device_id).say(Authenticate(behind.device_id, behind.credential))


@case("AUTH-10/above", needs=(*_SEARCH, "parent"), depends_on=("AUTH-20",))
def nobody_above_makes_up_for_it(world: World) -> None:
    """The parent does not know a device that was last seen behind a child hub that is away: 4002, and not 4001."""
    hub = world.child_hub()
    behind = hub.adopt()
    hub.hang_up()
    device = world.connect("device", behind.device_id)
    asked = device.say(Authenticate(behind.device_id, behind.credential))
    world.parent.answer(asked.request(world.parent, AssistAuthenticate), Reason.NOT_ADMITTED)


@case(
    "AUTH-9/back",
    needs=(*_SEARCH, "root"),
    depends_on=("AUTH-20",),
)
def does_not_search_where_it_came_from(world: World) -> None:
    """A search by the child hub behind which the device is does not go back there."""
    hub = world.child_hub()
    behind = hub.adopt()
    hub.say(AssistAuthenticate(behind.device_id, "x" * 43))


@case("AUTH-13", needs=("register", "authenticate", "child_hub", "assist_auth"), depends_on=("AUTH-7",))
def gives_no_credential_away(world: World) -> None:
    """A hub whose policy is not query answers assist_query_credential with 403."""
    device, hub = world.registered(), world.child_hub()
    hub.say(AssistQueryCredential(device.device_id))


@case("AUTH-26", needs=(*_DEVICE, "root"), depends_on=("AUTH-1",))
def tells_role_and_perms(world: World) -> None:
    """A success carries the role and the permissions of the node, also for who is provisioned."""
    device = world.registered()
    world.again(device).authenticate()
    for known in world.subject.profile.bindings:
        peer = world.connect("provisioned", known.device_id)
        peer.authenticate(known.credential)


@case("AUTH-5", needs=("authenticate", "parent", "assist_auth"), depends_on=("FRAME-10",))
def searches_upwards(world: World) -> None:
    """A device without an entry is searched at the parent, with what it presented."""
    _ask_upwards(world)


def _ask_upwards(world: World) -> None:
    device = world.device()
    device.say(Authenticate(device.device_id, "x" * 43))


@case("AUTH-12/parent", needs=("authenticate", "parent", "assist_auth"), depends_on=("AUTH-5",))
def admits_after_asking_the_parent(world: World) -> None:
    """What the parent confirmed is stored: the device is admitted, the next time without asking."""
    device = world.device()
    credential = world.subject.fresh_credential()
    asked = device.say(Authenticate(device.device_id, credential))
    request = asked.request(world.parent, AssistAuthenticate)
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)
    world.again(device).authenticate(credential)


@case("AUTH-19/parent", needs=("authenticate", "parent", "assist_auth"), depends_on=("AUTH-5",))
def a_refusal_of_the_parent(world: World) -> None:
    """What the parent refuses is refused with 4001, 4002 or 4500 as it came; anything else is 4002."""
    for reason in (Reason.NOT_ADMITTED, Reason.UNREACHABLE, Reason.INTERNAL, Reason.UNKNOWN_NODE):
        device = world.device()
        asked = device.say(Authenticate(device.device_id, "x" * 43))
        world.parent.answer(asked.request(world.parent, AssistAuthenticate), reason)


@case("AUTH-9/from-parent", needs=("authenticate", "parent"), depends_on=("FRAME-10",))
def a_search_from_the_parent(world: World) -> None:
    """A search from the parent for a device that nobody below knows is answered 4001, not sent back."""
    world.parent.say(AssistAuthenticate(world.fresh_name(), "x" * 43))


@case("AUTH-7/from-parent", needs=(*_DEVICE, "parent"), depends_on=("REG-6",))
def answers_the_parent(world: World) -> None:
    """The parent searches for a device of this hub and is told whether the credential is right."""
    device = world.registered()
    world.parent.say(AssistAuthenticate(device.device_id, device.credential))
    world.parent.say(AssistAuthenticate(device.device_id, "x" * 43))


@case("AUTH-21", needs=(*_SEARCH, "parent"), depends_on=("AUTH-20", "AUTH-5"))
def goes_on_to_the_parent(world: World) -> None:
    """What the child hub does not know any more is searched at the parent, too; 4002 if one could not be asked."""
    hub = world.child_hub()
    for reason, found in ((Reason.NOT_ADMITTED, Reason.OK), (Reason.FORBIDDEN, Reason.NOT_ADMITTED)):
        behind = hub.adopt()
        hub.say(AssistOffline(behind.device_id, behind.node_id))
        device = world.connect("device", behind.device_id)
        asked = device.say(Authenticate(behind.device_id, behind.credential))
        refused = hub.answer(asked.request(hub, AssistAuthenticate), reason)
        request = refused.request(world.parent, AssistAuthenticate)
        world.parent.answer(request, found, node_id=behind.node_id, credential=behind.credential)


@case("AUTH-21/lost", needs=(*_SEARCH, "parent"), depends_on=("AUTH-21",))
def goes_on_when_the_child_hub_is_lost(world: World) -> None:
    """A child hub that is lost with the question leaves the parent to be asked."""
    hub = world.child_hub()
    behind = hub.adopt()
    hub.say(AssistOffline(behind.device_id, behind.node_id))
    world.connect("device", behind.device_id).say(Authenticate(behind.device_id, behind.credential))
    hub.hang_up()


@case("AUTH-11", needs=("authenticate", "child_hub", "parent"), depends_on=("AUTH-5",))
def relays_a_search(world: World) -> None:
    """A child hub's search goes on to the parent, its answer comes back, and the hub between keeps nothing of it."""
    hub = world.child_hub()
    name, credential = world.fresh_name(), world.subject.fresh_credential()
    asked = hub.say(AssistAuthenticate(name, credential))
    request = asked.request(world.parent, AssistAuthenticate)
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)
    device = world.connect("device", name)
    device.say(Authenticate(name, credential))


@case("AUTH-32", needs=("authenticate", "parent", "assist_auth"), depends_on=("AUTH-5",))
def wants_its_own_credential_back(world: World) -> None:
    """A success of the parent that does not repeat what the device presented admits nobody: 4002."""
    for repeated in ("", world.subject.fresh_credential()):
        device = world.device()
        asked = device.say(Authenticate(device.device_id, world.subject.fresh_credential()))
        request = asked.request(world.parent, AssistAuthenticate)
        world.parent.answer(request, node_id=world.subject.fresh_node(), credential=repeated)


@case("AUTH-33", needs=("register", "authenticate", "child_hub"), depends_on=("FRAME-10",))
def points_at_who_asked(world: World) -> None:
    """Without presence messages, the device of a child hub that was answered is reached through that hub."""
    hub = world.child_hub(plain=True)
    behind = hub.adopt()
    world.registered().opaque(behind.node_id)


@case("AUTH-6", needs=("authenticate", "parent", "assist_query"), depends_on=("FRAME-10",))
def searches_for_the_credential(world: World) -> None:
    """With assist query the credential itself is asked for."""
    _ask_upwards(world)


@case("AUTH-14", needs=("authenticate", "parent", "assist_query"), depends_on=("AUTH-6",))
def stores_only_what_matches(world: World) -> None:
    """The credential that comes back admits only who presented the same; a wrong guess stores nothing."""
    device = world.device()
    right, node_id = world.subject.fresh_credential(), world.subject.fresh_node()
    for shown in ("x" * 43, right):
        asked = device.say(Authenticate(device.device_id, shown))
        request = asked.request(world.parent, AssistQueryCredential)
        found = world.parent.answer(request, node_id=node_id, credential=right)
        if shown == right and world.mirror.policy.has_perms:
            world.let_parent_tell(found, device)


@case("AUTH-25", needs=("register", "authenticate", "parent"), depends_on=("REG-6",))
def lets_routes_follow(world: World) -> None:
    """A device that is admitted by the hub's own binding is shown to the parent with assist_login."""
    world.again(world.registered()).authenticate()
