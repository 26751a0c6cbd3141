"""Links to hubs that do not speak the extension: what their answers, their frames and their revokes mean."""

from attrs import evolve

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Major,
    Reason,
    Register,
    Revoke,
)
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.world import World

_REVOKES = ("register", "revoke", "admin", "child_hub")


@case("FRAME-25", needs=("register", "parent"), depends_on=("REG-5",))
def finds_what_was_asked(world: World) -> None:
    """An answer of a plain parent counts for the device it names, whatever its MsgID; a second one is dropped."""
    world.parent_anew(plain=True)
    first, second, third = world.device(), world.device(), world.device()
    asked, other = (
        device.say(Register(device.device_id)).request(world.parent, AssistRegister) for device in (first, second)
    )
    unknown = other.msg_id + 0x1000
    for request, msg_id in ((asked, other.msg_id), (other, unknown), (other, other.msg_id)):
        credential = world.subject.fresh_credential() if world.mirror.policy.has_credentials else ""
        answered = evolve(request, msg_id=msg_id)
        world.parent.answer(answered, node_id=world.subject.fresh_node(), credential=credential)
    last = third.say(Register(third.device_id)).request(world.parent, AssistRegister)
    world.parent.answer(evolve(last, msg_id=unknown), Reason.NOT_ADMITTED, device_id="")


@case("FRAME-26", needs=("register", "child_hub"), depends_on=("FRAME-4",))
def learns_who_speaks(world: World) -> None:
    """Who is online nowhere and speaks through a plain child hub is reached there, until it is reported as gone."""
    hub, device, behind = world.child_hub(plain=True), world.registered(), world.subject.fresh_node()
    hub.opaque(device.node_id, source=behind)
    device.opaque(behind)
    if world.mirror.policy.has_presence:
        hub.say(AssistOffline(world.fresh_name(), behind))
        device.opaque(behind)


@case("FRAME-27", needs=("authenticate", "child_hub"), depends_on=("TRUST-1",))
def knows_who_names_nobody(world: World) -> None:
    """A child hub that names no source means itself when it assists; anything else of that kind is dropped."""
    hub = world.child_hub()
    hub.say(AssistAuthenticate(world.fresh_name(), "x" * 43), source=0)
    if {"register", "revoke"} <= world.subject.profile.available:
        hub.say(Revoke(world.registered().device_id), source=0)


@case("REV-24", needs=_REVOKES, depends_on=("REV-5",))
def ignores_echoes(world: World) -> None:
    """A plain child hub that sends back what it was sent is ignored; another revoke from there is acted on."""
    hub, admin, device = world.child_hub(plain=True), world.admin(), world.registered()
    echo = admin.revoke(world.fresh_name()).request(hub, Revoke).body
    assert isinstance(echo, Revoke)
    hub.pass_on(echo)
    hub.pass_on(Revoke(device.device_id))


@case("REV-25", needs=_REVOKES, depends_on=("REV-5",))
def takes_answers_of_plain_hubs(world: World) -> None:
    """A plain child hub's answer to a revoke is delivered to its originator, whatever its MsgID and TargetID."""
    hub, admin = world.child_hub(plain=True), world.admin()
    request = admin.revoke(world.fresh_name()).request(hub, Revoke)
    assert isinstance(request.body, Revoke)
    for device_id in (request.body.device_id, world.fresh_name()):
        answer = Answer(Action.REVOKE, Reason.OK, device_id, world.subject.fresh_node())
        hub.say(answer, msg_id=request.msg_id + 0x1000, major=Major.OK_RESP)
