"""Register: one device, one node id, for ever. Only the authority allocates, only the direct hub keeps a credential."""

from hubauth.core.messages import AssistAuthenticate, AssistRegister, Authenticate, Reason, Register
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_CONFIRMED = ("register", "credentials", "reregister_after_revoke", "child_hub", "root")


@case("REG-13", needs=("register", "root"), depends_on=("FRAME-10",))
def registers(world: World) -> None:
    """An unknown device is given a node id and, where the dialect has one, a credential."""
    world.device().register()


@case("AUTHY-3", needs=("register", "root"), depends_on=("REG-13",))
def allocates_itself(world: World) -> None:
    """A hub without a parent answers a registration itself, at once."""
    world.device().register()


@case("REG-1", needs=("register", "root"), depends_on=("REG-13",))
def one_node_per_device(world: World) -> None:
    """Two devices have two node ids."""
    first, second = world.registered(), world.registered()
    world.check(first.node_id != second.node_id, "node ids", "two different ones", f"{first.node_id} twice")


@case("REG-2", needs=("register", "root"), depends_on=("REG-13",))
def increasing_nodes(world: World) -> None:
    """Later devices have higher node ids."""
    nodes = [world.registered().node_id for _ in range(3)]
    world.check(nodes == sorted(set(nodes)), "node ids", "increasing", nodes)


@case("REG-2/consecutive", needs=("register", "root"), depends_on=("REG-13",), informational=True)
def consecutive_nodes(world: World) -> None:
    """Whether node ids follow each other without gaps."""
    nodes = [world.registered().node_id for _ in range(3)]
    world.check(nodes == list(range(nodes[0], nodes[0] + 3)), "node ids", "consecutive", nodes)


@case("REG-4", needs=("register", "root"), depends_on=("REG-13",))
def issues_credentials(world: World) -> None:
    """Every registration is given a credential of its own, 43 characters of base64url."""
    for _ in range(3):
        world.registered()


@case("REG-9", needs=("register", "reregister_open", "root"), depends_on=("REG-13",))
def registers_again(world: World) -> None:
    """A known device that registers again keeps its node id and gets a new credential."""
    device = world.registered()
    before, credential = device.node_id, device.credential
    device.register()
    world.check(device.node_id == before, "node_id", before, device.node_id)
    world.check(not credential or device.credential != credential, "credential", "a new one", "the old one")


@case("REG-9/elsewhere", needs=("register", "reregister_open", "authenticate", "root"), depends_on=("REG-9",))
def registers_again_elsewhere(world: World) -> None:
    """Registering again on another connection makes the old credential worthless."""
    device = world.registered()
    other = world.again(device)
    other.register()
    world.connect("device", device.device_id).authenticate(device.credential)


@case("REG-10", needs=("register", "reregister_open", "revoke", "child_hub", "root"), depends_on=("REG-9",))
def revokes_before_it_answers(world: World) -> None:
    """A repeated registration by a child hub: first the revoke, then the answer, on the same link."""
    hub = world.child_hub()
    name = world.fresh_name()
    hub.say(AssistRegister(name))
    hub.say(AssistRegister(name))


@case("REG-11", needs=("register", "reregister_after_revoke", "root"), depends_on=("REG-13",))
def refuses_to_register_again(world: World) -> None:
    """A known device that was not revoked is refused."""
    world.registered().say(Register(world.fresh_name()))
    world.registered().register()


@case("REG-12", needs=("register", "known_device"), depends_on=("FRAME-10",), spoils=True)
def provisioned_is_protected(world: World) -> None:
    """Nobody can register a device that is provisioned."""
    known = world.subject.profile.bindings[0]
    world.connect("stranger", known.device_id).register()


@case("CODE-4", needs=("register", "known_device"), depends_on=("REG-12",), spoils=True)
def code_of_protected(world: World) -> None:
    """A device that may not be registered over is 4001."""
    world.connect("stranger", world.subject.profile.bindings[0].device_id).register()


@case("REG-12/assist", needs=("register", "two_child_hubs"), depends_on=("REG-12",), spoils=True)
def provisioned_is_protected_from_hubs(world: World) -> None:
    """A child hub cannot register a device that is provisioned either."""
    world.child_hub().say(AssistRegister(world.subject.profile.child_hub[1].device_id))


@case("REG-7", needs=("register", "child_hub", "root"), depends_on=("REG-13",))
def registers_for_a_hub(world: World) -> None:
    """The authority answers a child hub with node id and credential."""
    world.child_hub().say(AssistRegister(world.fresh_name()))


@case("REG-7/keeps-none", needs=("register", "authenticate", "credentials", "child_hub", "root"), depends_on=("REG-7",))
def keeps_no_credential(world: World) -> None:
    """A credential that was issued through a child hub opens no session at the authority itself."""
    hub = world.child_hub()
    name = world.fresh_name()
    issued = hub.say(AssistRegister(name)).answer
    world.connect("device", name).say(Authenticate(name, issued.credential))


@case(
    "REG-15",
    needs=("register", "authenticate", "credentials", "assist_auth", "child_hub", "root"),
    depends_on=("REG-7",),
)
def remembers_the_home(world: World) -> None:
    """A device is searched at the child hub that it registered through, though that has not announced it."""
    hub = world.child_hub()
    name = world.fresh_name()
    issued = hub.say(AssistRegister(name)).answer
    asked = world.connect("device", name).say(Authenticate(name, issued.credential))
    request = asked.request(hub, AssistAuthenticate)
    hub.answer(request, node_id=issued.node_id, credential=issued.credential)


@case("REG-16", needs=_CONFIRMED, depends_on=("REG-13",))
def asks_for_a_confirmation(world: World) -> None:
    """Behind the answer to a child hub, the authority asks whether the credential was stored."""
    world.child_hub().say(AssistRegister(world.fresh_name()))


@case("REG-17", needs=_CONFIRMED, depends_on=("REG-16",))
def counts_what_is_confirmed(world: World) -> None:
    """A registration that was confirmed is not made again; one that was not is, though the device was announced."""
    hub = world.child_hub()
    for reason in (Reason.NOT_ADMITTED, Reason.OK):
        name = world.fresh_name()
        issued = hub.say(AssistRegister(name))
        hub.announce(name, issued.answer.node_id)
        request = issued.request(hub, AssistAuthenticate)
        hub.answer(request, reason, node_id=issued.answer.node_id, credential=issued.answer.credential)
        hub.say(AssistRegister(name))


@case("AUTHY-4", needs=("register", "child_hub", "parent"), depends_on=("FRAME-10",))
def asks_its_own_authority(world: World) -> None:
    """A hub that is asked by a child hub, and is not the authority, asks its parent instead of allocating."""
    hub = world.child_hub()
    hub.say(AssistRegister(world.fresh_name()))


@case("REG-5", needs=("register", "parent"), depends_on=("FRAME-10",))
def passes_registration_on(world: World) -> None:
    """A hub below asks its parent and does not answer by itself."""
    device = world.device()
    device.say(Register(device.device_id))


@case("AUTHY-2", needs=("register", "parent"), depends_on=("REG-5",))
def turns_to_its_parent(world: World) -> None:
    """Without a configured authority, the parent is asked, every time."""
    for _ in range(2):
        device = world.device()
        device.say(Register(device.device_id))


@case("REG-6", needs=("register", "authenticate", "parent"), depends_on=("REG-5",))
def stores_what_was_given(world: World) -> None:
    """What the parent gave is passed to the device, and opens a session here later without asking."""
    device = world.registered()
    other = world.again(device)
    other.authenticate()


@case("REG-6/replaces", needs=("register", "authenticate", "parent"), depends_on=("REG-6",))
def replaces_what_was_given(world: World) -> None:
    """Of two registrations only the newer credential counts."""
    device = world.registered()
    old = device.credential
    device.register()
    world.again(device).authenticate(old)


@case("REG-8", needs=("register", "authenticate", "child_hub", "parent"), depends_on=("AUTHY-4",))
def relays_and_keeps_nothing(world: World) -> None:
    """A hub in between passes the answer down and keeps no credential: the device is unknown at the hub itself."""
    hub = world.child_hub()
    name = world.fresh_name()
    asked = hub.say(AssistRegister(name))
    given = world.let_parent_admit(asked, hub)
    world.connect("device", name).say(Authenticate(name, given.credential))


@case("REG-14", needs=("register", "parent"), depends_on=("REG-5",))
def passes_the_refusal_on(world: World) -> None:
    """A registration that the parent refuses is refused with the same code."""
    for reason in (Reason.PROTECTED, Reason.UNREACHABLE, Reason.EXHAUSTED):
        device = world.device()
        asked = device.say(Register(device.device_id))
        world.parent.answer(asked.request(world.parent, AssistRegister), reason)


@case("REG-14/contradiction", needs=("register", "parent", "credentials"), depends_on=("REG-6",))
def refuses_a_contradiction(world: World) -> None:
    """A success with another node id than the device has counts as a failure: 4002."""
    device = world.registered()
    asked = device.say(Register(device.device_id))
    credential = world.subject.fresh_credential() if device.credential else ""
    request = asked.request(world.parent, AssistRegister)
    world.parent.answer(request, node_id=world.subject.fresh_node(), credential=credential)


@case("AUTHY-6", needs=("register", "parent"), depends_on=("FRAME-10",))
def does_not_send_back(world: World) -> None:
    """The parent asks the hub below it to register: the way to the authority leads back, 4002."""
    world.parent.say(AssistRegister(world.fresh_name()))


@case("REG-21", needs=("register", "parent"), depends_on=("REG-6",))
def answers_whom_it_knows(world: World) -> None:
    """A hub below answers a device that it has a binding for itself, and tells its parent with assist_login."""
    device = world.registered()
    world.again(device).say(Register(device.device_id))


@case("FRAME-24", needs=("register", "parent"), depends_on=("REG-6",))
def keeps_who_handled_it(world: World) -> None:
    """An answer from the parent that is passed on to a device keeps its SourceID."""
    world.registered()
