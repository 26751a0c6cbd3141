"""Frames and payloads: how a stream is cut, what is read, what an answer looks like."""

from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    GetPerms,
    ListRoles,
    Major,
    Offline,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.declare import case
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.world import World
from hubauth.wire.header import FLAG_COMPRESSED, Version


def _says(peer: Peer, action: str, fields: str) -> bytes:
    """A payload of this dialect, written by hand."""
    if peer.world.subject.profile.dialect is Dialect.FLAT:
        return f'{{"action":"{action}"{"," if fields else ""}{fields}}}'.encode()
    return f'{{"action":"{action}","data":{{{fields}}}}}'.encode()


# What is served


@case("FRAME-10", needs=("register",))
def serves_everybody(world: World) -> None:
    """Register is served on a new connection, with any SourceID and TargetID, as Cmd and as Msg."""
    for source, target in ((0, 0), (4242, 77)):
        device = world.device()
        device.say(Register(device.device_id), source=source, target=target)
    device = world.device()
    device.say(Register(device.device_id), major=Major.MSG)


@case("LINK-1", depends_on=("FRAME-10",))
def begins_without_session(world: World) -> None:
    """A new connection has no session, whatever it claims and whoever else is admitted."""
    device = world.registered()
    stranger = world.connect("stranger")
    stranger.say(AssistRegister(world.fresh_name()), source=device.node_id)


@case("FRAME-23", depends_on=("FRAME-10",))
def refuses_without_session(world: World) -> None:
    """Without a session everything but register, authenticate and offline is answered 403."""
    stranger = world.device()
    asked: list[Request] = [AssistRegister(world.fresh_name())]
    available = world.subject.profile.available
    asked += [Revoke(stranger.device_id)] if "revoke" in available else []
    asked += [GetPerms(1)] if "perms" in available else []
    asked += [ListRoles()] if "list_roles" in available else []
    for request in asked:
        stranger.say(request)


@case("TRUST-3", needs=("register",), depends_on=("FRAME-10",))
def devices_do_not_assist(world: World) -> None:
    """A device with a session that sends an assist_ request is answered 403."""
    world.registered().say(AssistRegister(world.fresh_name()))


@case("TRUST-1", needs=("register", "child_hub"), depends_on=("FRAME-10",))
def hubs_assist(world: World) -> None:
    """A node with the permission auth.assist is a hub: its assist_register is served."""
    world.child_hub().say(AssistRegister(world.fresh_name()))


@case("FRAME-21", needs=("register",), depends_on=("FRAME-10",))
def zero_is_the_device(world: World) -> None:
    """A device that is admitted and still sends SourceID 0 is heard as itself."""
    device = world.registered()
    device.say(AssistRegister(world.fresh_name()), source=0)
    if "perms" in world.subject.profile.available:
        device.say(GetPerms(device.node_id), source=0)
    if "offline" in world.subject.profile.available:
        device.say(Offline(device.device_id, device.node_id), source=0)


@case("FRAME-22", needs=("register",), depends_on=("FRAME-10",))
def drops_foreign_sources(world: World) -> None:
    """A request with a SourceID that is not reachable through the link is dropped."""
    first, second = world.registered(), world.registered()
    first.say(AssistRegister(world.fresh_name()), source=second.node_id)
    if "offline" in world.subject.profile.available:
        first.say(Offline(first.device_id, first.node_id), source=second.node_id)


@case("FRAME-16", needs=("register",), depends_on=("FRAME-10",))
def drops_unasked_answers(world: World) -> None:
    """An answer to nothing that was asked is dropped."""
    device = world.registered()
    answer = Answer(Action.REGISTER, Reason.OK, world.fresh_name(), 4242, "A" * 43)
    device.say(answer, major=Major.OK_RESP)


# What an answer looks like


@case("FRAME-12", depends_on=("FRAME-10",))
def copies_the_msg_id(world: World) -> None:
    """An answer, good or bad, copies MsgID and TraceID and comes from this hub."""
    for msg_id in (1, 0x7FFF_FFFF, 0xFFFF_FFFF):
        device = world.device()
        device.say(Register(device.device_id), msg_id=msg_id, trace_id=msg_id)
        device.send(_says(device, "register", ""), msg_id=msg_id, trace_id=3)


@case("FRAME-13", depends_on=("FRAME-10",))
def major_of_answers(world: World) -> None:
    """A success is OKResp, a refusal ErrResp."""
    device = world.registered()
    device.send(_says(device, "register", ""))


@case("FRAME-14", depends_on=("FRAME-10",))
def target_of_answers(world: World) -> None:
    """An answer goes to the connection that asked, with TargetID 0 for a device."""
    other = world.device()
    device = world.registered()
    other.send(_says(device, "register", ""), source=device.node_id, target=device.node_id)


@case("FRAME-14/hub", needs=("register", "child_hub"), depends_on=("TRUST-1",))
def target_of_answers_to_hubs(world: World) -> None:
    """An answer to a hub has that hub's node id as TargetID."""
    hub = world.child_hub()
    world.let_parent_admit(hub.say(AssistRegister(world.fresh_name())), hub)


@case("FRAME-15", needs=("register", "parent"), depends_on=("FRAME-10",))
def header_of_requests(world: World) -> None:
    """A request to the parent is a Cmd with this hub as SourceID, the parent as TargetID and a MsgID of its own."""
    device = world.device()
    device.say(Register(device.device_id))


@case("FRAME-12/pipelined", needs=("register", "root"), depends_on=("FRAME-12",))
def answers_each_of_many(world: World) -> None:
    """Requests that come in one piece are answered each by its own MsgID, in their order."""
    device = world.device()
    codec = world.subject.codec
    requests = [codec.encode(Register(device.device_id)), _says(device, "register", "")]
    device.transmit(b"".join(device.frame(payload) for payload in requests * 2))


@case("FRAME-12/many", depends_on=("FRAME-12",))
def answers_each_of_very_many(world: World) -> None:
    """Of 120 requests that come in one piece each is answered, in their order: also if the hub fails but seldom."""
    device = world.device()
    request = _says(device, "register", "")
    device.transmit(b"".join(device.frame(request) for _ in range(120)))


# What is read


@case("FRAME-17", depends_on=("FRAME-10",))
def invalid_requests(world: World) -> None:
    """A request without valid fields is answered 400 and changes nothing."""
    stranger = world.device()
    for fields in ("", '"device_id":""', '"device_id":7', '"device_id":null', '"device_id":["a"]'):
        stranger.send(_says(stranger, "register", fields))


@case("MSG-17", depends_on=("FRAME-10",))
def invalid_fields(world: World) -> None:
    """A known action with a missing field, a wrong type or too long a value is an invalid request."""
    stranger = world.device()
    stranger.send(_says(stranger, "register", '"device":"x"'))
    stranger.send(_says(stranger, "register", '"device_id":true'))
    stranger.send(_says(stranger, "register", f'"device_id":"{"x" * 129}"'))


@case("MSG-4", depends_on=("FRAME-10",))
def longest_device_id(world: World) -> None:
    """A device_id of 128 bytes is valid, one of 129 bytes is not, in characters of several bytes too."""
    device = world.device()
    for name in ("ü" * 64 + "x", "x" * 129):
        device.send(_says(device, "register", f'"device_id":"{name}"'))
    longest = world.fresh_name(length=128)
    world.connect("device", longest).register()


@case("CODE-10", depends_on=("FRAME-17",))
def code_of_invalid(world: World) -> None:
    """An invalid request is 400."""
    stranger = world.device()
    stranger.send(_says(stranger, "register", ""))


@case("CODE-1", needs=("register",), depends_on=("FRAME-10",))
def code_of_success(world: World) -> None:
    """A success is code 1."""
    world.registered()


@case("FRAME-18", depends_on=("FRAME-10",))
def drops_the_unreadable(world: World) -> None:
    """A payload without a known action is dropped; the connection stays and what follows is answered."""
    device = world.device()
    for payload in (b"", b"{}", b"[]", b'{"action":7}', b'{"action":"no such thing","data":{}}'):
        device.send(payload)
    device.register()


@case("MSG-15", depends_on=("FRAME-10",))
def unreadable_payloads(world: World) -> None:
    """What is not UTF-8, not JSON, or nested too deep is dropped."""
    device = world.device()
    deep = b"[" * 40 + b"]" * 40
    for payload in (b"\xff\xfe", b"not json", b'{"action":"register","data":{"device_id":', deep):
        device.send(payload)
    device.register()


@case("MSG-16", depends_on=("FRAME-10",))
def words_of_other_dialects(world: World) -> None:
    """An action that only another dialect has is dropped."""
    device = world.device()
    word = "auth" if world.subject.profile.dialect is not Dialect.AUTH else "login"
    device.send(_says(device, word, f'"device_id":"{device.device_id}","credential":"x"'))
    device.register()


@case("MSG-1", needs=("register",), depends_on=("FRAME-10",))
def reads_nested_payloads(world: World) -> None:
    """Unknown fields are ignored, the last of a repeated field counts, and the answer is action_resp with data."""
    device = world.device()
    fields = f'"device_id":"nobody","more":{{"a":[1]}},"device_id":"{device.device_id}"'
    payload = f'{{"x":1,"data":{{{fields}}},"action":"register"}}'.encode()
    world.let_parent_admit(device.send(payload), device)


@case("MSG-2", needs=("register",), depends_on=("FRAME-10",))
def reads_flat_payloads(world: World) -> None:
    """A request has action and device_id beside each other; unknown fields are ignored."""
    device = world.device()
    payload = f'{{"more":[1],"device_id":"{device.device_id}","action":"register"}}'.encode()
    world.let_parent_admit(device.send(payload), device)


@case("MSG-3", needs=("register",), depends_on=("FRAME-10",))
def writes_flat_answers(world: World) -> None:
    """An answer has no action; a success holds node_id and device_id."""
    world.registered()
    world.device().send(b'{"action":"register"}')


@case("MSG-5", needs=("authenticate",), depends_on=("FRAME-10",))
def absent_credential(world: World) -> None:
    """An absent credential is the empty one, and too long a one is an invalid request."""
    device = world.device()
    word = "auth" if world.subject.profile.dialect is Dialect.AUTH else "login"
    device.send(_says(device, word, f'"device_id":"{device.device_id}"'))
    device.send(_says(device, word, f'"device_id":"{device.device_id}","credential":"{"x" * 257}"'))


@case("MSG-10", needs=("register", "authenticate"), depends_on=("FRAME-10",))
def fields_of_success(world: World) -> None:
    """A success of register and authenticate has every field, also the empty ones."""
    device = world.registered()
    device.authenticate()


@case("MSG-13", needs=("register", "authenticate"), depends_on=("FRAME-10",))
def fields_of_failure(world: World) -> None:
    """A failure of register or authenticate holds code and msg and nothing else."""
    device = world.device()
    device.send(_says(device, "register", ""))
    if world.mirror.policy.has_credentials:
        device.say(Authenticate(device.device_id, ""))


@case("MSG-14", needs=("child_hub",), depends_on=("TRUST-1",))
def fields_of_failure_to_hubs(world: World) -> None:
    """A failure told to a hub says about whom."""
    world.child_hub().say(AssistRegister(world.subject.profile.child_hub[0].device_id))


# How the stream is cut


def _pieces(world: World, device: Peer) -> None:
    """One frame byte by byte, then two frames in one piece."""
    whole = device.frame(world.subject.codec.encode(Register(device.device_id)))
    for at in range(len(whole) - 1):
        device.transmit(whole[at : at + 1])
    world.let_parent_admit(device.transmit(whole[-1:]), device)
    device.transmit(device.frame(_says(device, "register", "")) * 2)


@case("WIRE-1", needs=("header_1",))
def cuts_version_1(world: World) -> None:
    """A version 1 frame is understood however it is cut, and several in one piece."""
    _pieces(world, world.device())


@case("WIRE-2", needs=("header_2",))
def cuts_version_2(world: World) -> None:
    """A version 2 frame is understood however it is cut, and several in one piece."""
    _pieces(world, world.device())


@case("WIRE-3", needs=("header_2",), depends_on=("WIRE-2",))
def longer_headers(world: World) -> None:
    """Extra bytes of a longer version 2 header are ignored."""
    device = world.device()
    data = device.frame(world.subject.codec.encode(Register(device.device_id)))
    world.let_parent_admit(device.transmit(data[:3] + bytes([40]) + data[4:32] + b"\xee" * 8 + data[32:]), device)


@case("WIRE-4", needs=("register",))
def reserved_bytes(world: World) -> None:
    """Whatever Reserved or RouteFlags hold is ignored."""
    device = world.device()
    data = bytearray(device.frame(world.subject.codec.encode(Register(device.device_id))))
    at = 22 if world.subject.version is Version.V1 else 7
    data[at] = 0xA5
    world.let_parent_admit(device.transmit(bytes(data)), device)


@case("WIRE-5", needs=("header_2",), depends_on=("WIRE-2",))
def wrong_starts(world: World) -> None:
    """Another magic, version or too short a header ends that connection, and no other."""
    bystander = world.registered()
    for at, value in ((0, 0x00), (2, 3), (3, 31)):
        stranger = world.device()
        stranger.send(_says(stranger, "register", ""))
        data = bytearray(stranger.frame(_says(stranger, "register", "")))
        data[at] = value
        stranger.transmit(bytes(data))
    bystander.send(_says(bystander, "register", ""))


@case("WIRE-6", depends_on=("FRAME-10",))
def too_long_payloads(world: World) -> None:
    """A payload above the limit ends that connection, before it has been sent, and no other."""
    bystander, stranger = world.registered(), world.device()
    header = stranger.frame(b"x" * (world.subject.profile.limits.payload + 1))
    stranger.transmit(header[: 24 if world.subject.version is Version.V1 else 32])
    bystander.send(_says(bystander, "register", ""))


@case("WIRE-7", needs=("both_versions", "register"), depends_on=("FRAME-10",))
def both_versions(world: World) -> None:
    """Each connection is answered in the version of its first frame."""
    for version in (Version.V1, Version.V2, Version.V1):
        world.connect("device", world.fresh_name(), version).register()


@case("WIRE-9", depends_on=("FRAME-18",))
def compressed_payloads(world: World) -> None:
    """A payload that is flagged as compressed is dropped."""
    device = world.device()
    device.send(_says(device, "register", f'"device_id":"{device.device_id}"'), flags=FLAG_COMPRESSED)
    device.register()
