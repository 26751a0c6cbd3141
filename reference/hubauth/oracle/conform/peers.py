"""Who talks to the hub under test: devices, child hubs, and its parent. Cases are written in these words."""

from typing import TYPE_CHECKING

from attrs import evolve, frozen

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import (
    NO_GRANT,
    SUB_PROTO,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    Frame,
    GetPerms,
    Grant,
    HubOnline,
    Major,
    Offline,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import PARENT_NEIGHBOUR, is_extended
from hubauth.oracle.conform.wire import Wire, write_frame
from hubauth.wire.framing import FrameDecoder, Limits

if TYPE_CHECKING:
    from hubauth.oracle.conform.world import World

_ENTRANCE = (Register, Authenticate)
_SAYS_ROLE = (AssistRegister, AssistAuthenticate)
ROLE = Grant("sensor", ("read",))
"""What hubs of this tool say of a device unless a case says otherwise."""


@frozen
class Outcome:
    """What an input led to: per link the frames that came, as the core and the hub under test agree on them."""

    link: Link
    frames: dict[Link, list[Frame]]

    @property
    def answer(self) -> Answer:
        """The answer on the link that asked. Raises LookupError if there was none to come."""
        for frame in self.frames.get(self.link, ()):
            if isinstance(frame.body, Answer):
                return frame.body
        raise LookupError("nothing is answered at once here")

    def on(self, peer: "Peer") -> list[Frame]:
        """What a peer was sent."""
        return self.frames.get(peer.link, [])

    def request(self, peer: "Peer", kind: type[Request]) -> Frame:
        """The request of this kind that a peer was sent. Raises LookupError if there was none to come."""
        for frame in self.on(peer):
            if isinstance(frame.body, kind):
                return frame
        raise LookupError(f"{peer.name} was asked for no {kind.__name__}")


@frozen
class Behind:
    """A device that is connected to a child hub."""

    device_id: str
    node_id: int
    credential: str


class Peer:
    """One connection to the hub under test, and who is at this end."""

    def __init__(self, world: "World", name: str, wire: Wire, link: Link, device_id: str = "") -> None:
        self.world, self.name, self.wire, self.link = world, name, wire, link
        self.device_id = device_id
        self.node_id = 0
        self.credential = ""
        self.ext: Ext | None = None
        """What a hub says of the extension."""
        profile = world.subject.profile
        by_first_frame = link != PARENT and "both_versions" in profile.available
        limits = Limits(profile.limits.payload, profile.limits.opaque_payload)
        self.decoder = FrameDecoder(None if by_first_frame else wire.version, limits)
        """Cuts what this peer sends as the hub under test must."""
        self.acknowledges = True
        """Whether orders and fences from the hub under test are answered at once."""

    @property
    def is_open(self) -> bool:
        return self.wire.closed is None

    # Sending

    def transmit(self, data: bytes) -> Outcome:
        """Any bytes at all; everything that must follow is checked."""
        return self.world.transmit(self, data)

    def send(
        self,
        payload: bytes,
        *,
        msg_id: int | None = None,
        source: int = 0,
        target: int = 0,
        major: Major = Major.CMD,
        sub_proto: int = SUB_PROTO,
        trace_id: int = 0,
        hop_limit: int = 0,
        flags: int = 0,
    ) -> Outcome:
        """A frame with any payload."""
        return self.transmit(
            self.frame(payload, msg_id, source, target, major, sub_proto, trace_id, hop_limit, flags),
        )

    def frame(
        self,
        payload: bytes,
        msg_id: int | None = None,
        source: int = 0,
        target: int = 0,
        major: Major = Major.CMD,
        sub_proto: int = SUB_PROTO,
        trace_id: int = 0,
        hop_limit: int = 0,
        flags: int = 0,
    ) -> bytes:
        """The bytes of a frame."""
        number = self.world.next_msg_id() if msg_id is None else msg_id
        fields = Frame(b"", major, number, source, target, sub_proto, trace_id, hop_limit, flags)
        return write_frame(self.wire.version, fields, payload)

    def say(
        self,
        body: Body,
        *,
        msg_id: int | None = None,
        source: int | None = None,
        target: int = 0,
        major: Major = Major.CMD,
        trace_id: int = 0,
    ) -> Outcome:
        """A message, with the SourceID that its sender would use unless another is given."""
        assert not isinstance(body, bytes)
        if source is None:
            source = 0 if isinstance(body, _ENTRANCE) else self.node_id
        payload = self.world.subject.codec.encode(body)
        return self.send(payload, msg_id=msg_id, source=source, target=target, major=major, trace_id=trace_id)

    def answer(
        self,
        request: Frame,
        reason: Reason = Reason.OK,
        *,
        device_id: str | None = None,
        node_id: int = 0,
        credential: str = "",
        grant: Grant | None = None,
        ext: Ext | None = None,
    ) -> Outcome:
        """Answer a request of the hub under test; a success about a device names its role, where there are any."""
        body = request.body
        assert not isinstance(body, bytes | Answer)
        if grant is None:
            says = reason is Reason.OK and isinstance(body, _SAYS_ROLE) and self.world.mirror.policy.has_perms
            grant = ROLE if says else NO_GRANT
        about = getattr(body, "device_id", "") if device_id is None else device_id
        node_id = node_id or getattr(body, "node_id", 0)
        answer = Answer(body.action, reason, about, node_id, credential, grant, ext=ext)
        major = Major.OK_RESP if reason is Reason.OK else Major.ERR_RESP
        hub = self.world.subject.node_id
        return self.say(answer, msg_id=request.msg_id, target=hub, major=major, trace_id=request.trace_id)

    def leaving_shows(self) -> bool:
        """Whether it can be seen that the hub under test has noticed the end of this connection."""
        return self.world.leaving_shows(self)

    def hang_up(self) -> Outcome:
        """Close the connection and see to it that the hub under test has noticed."""
        return self.world.hang_up(self)

    # What a device says

    def register(self) -> Answer:
        """Register, up to the answer, the parent playing its part; remembers what was given."""
        outcome = self.say(Register(self.device_id))
        return self._admitted(self.world.let_parent_admit(outcome, self))

    def authenticate(self, credential: str | None = None) -> Answer:
        """Authenticate at a hub that has an entry, the parent playing its part; remembers what was given."""
        shown = self.credential if credential is None else credential
        return self._admitted(self.world.let_parent_tell(self.say(Authenticate(self.device_id, shown, self.ext)), self))

    def _admitted(self, answer: Answer) -> Answer:
        if answer.reason is Reason.OK:
            self.node_id, self.credential = answer.node_id, answer.credential or self.credential
            self.wire.extended = is_extended(self.world.mirror.state, self.link)
        return answer

    def offline(self) -> Outcome:
        return self.say(Offline(self.device_id, self.node_id))

    def revoke(self, device_id: str, *, target: int = 0, node_id: int = 0, credential: str = "") -> Outcome:
        return self.say(Revoke(device_id, node_id, credential), target=target)

    def get_perms(self, node_id: int) -> Answer:
        return self.say(GetPerms(node_id)).answer

    def opaque(self, target: int, payload: bytes = b"\x00\xff", *, source: int | None = None, hops: int = 0) -> Outcome:
        """A frame of another sub-protocol."""
        source = self.node_id if source is None else source
        return self.send(payload, source=source, target=target, sub_proto=7, major=Major.MSG, hop_limit=hops)

    # What a child hub says

    def announce(self, device_id: str, node_id: int) -> Outcome:
        """A device is here now."""
        return self.say(HubOnline(device_id, node_id))

    def adopt(self) -> Behind:
        """A new device registers at this hub, and is here now."""
        world, name = self.world, self.world.fresh_name()
        with world.setting():
            answer = world.let_parent_admit(self.say(AssistRegister(name)), self)
            if self.wire.extended:
                self.announce(name, answer.node_id)
        return Behind(name, answer.node_id, answer.credential)

    @property
    def neighbour(self) -> int:
        """What the hub under test knows this one by."""
        return PARENT_NEIGHBOUR if self.link == PARENT else self.node_id

    def next_number(self) -> int:
        """For a revoke that this hub passes on."""
        return self.world.subject.next_number(self.neighbour)

    def pass_on(self, revoke: Revoke, *, source: int = 0, target: int = 0, number: int | None = None) -> Outcome:
        """A revoke by somebody behind this hub (by the hub itself, if nobody is named), numbered if it must be."""
        if number is None:
            number = self.next_number() if self.wire.extended and target == 0 else 0
        return self.say(evolve(revoke, seq=number), source=source or self.node_id, target=target)

    def begin_anew(self) -> None:
        """This hub has lost its data: it comes back with another journal."""
        self.world.subject.begin_anew(self.neighbour)
        self.world.mirror.forget_numbers(self.neighbour)
        self.ext = self.world.subject.offer(self.neighbour)


class Parent(Peer):
    """The parent of the hub under test."""

    def __init__(self, world: "World", wire: Wire, node_id: int) -> None:
        super().__init__(world, "parent", wire, PARENT)
        self.node_id = node_id
