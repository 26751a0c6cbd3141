"""The hub under test, for a whole run: how to reach it, what it was seen to do, and names it has never heard."""

import secrets
import socket
import time

from hubauth.core.messages import Answer, Authenticate, Ext, Frame, Major, Offline, Reason, Register
from hubauth.core.model import PARENT_NEIGHBOUR, Neighbour
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.profile import Known, Profile
from hubauth.oracle.conform.proof import part, settle
from hubauth.oracle.conform.speech import Speech, ask, other_speech
from hubauth.oracle.conform.wire import Patience, Seen, Unreachable, Wire, write_frame
from hubauth.oracle.conform.witness import Witness
from hubauth.wire.framing import encode_frame
from hubauth.wire.header import Version

_FENCES = ("invalid", "empty", "absent")
"""Requests that change nothing, the most harmless first: a register without a name, an authentication without a
credential (which a hub may ask its parent about), an offline of somebody who is not there."""
_FENCE_IDS = 0xFE00_0000
_FIRST_NODE, _NODES = 0x1000_0000, 0xC000_0000
"""Where this tool is the authority: so many that no two runs hand out the same."""


class NotServing(Exception):
    """There is something at the address, but it does not behave like a hub of this dialect and header."""


class Subject:
    """The hub under test. Use as a context manager; ``probe`` it before anything else."""

    def __init__(self, host: str, port: int, profile: Profile, version: Version) -> None:
        self.host, self.port, self.profile, self.version = host, port, profile, version
        self.codec = profile.codec
        self.witness = Witness(profile)
        """Watches over the promises."""
        self.node_id = profile.hub.node_id
        self.tag = secrets.token_hex(4)
        self.credentials: set[str] = set()
        """Every credential it has issued in this run."""
        self.journal = ""
        """Its own, once it has said it."""
        self.journals: dict[int, str] = {}
        """Neighbour -> what this tool says there as its own: new in every run, so that numbers begin anew."""
        self.sent: dict[int, int] = {}
        """Neighbour -> the number of the last revoke that this tool has sent from there."""
        self.last_number: dict[int, int] = {}
        """Neighbour -> the highest revoke number seen from the hub."""
        self.answers_fences = True
        """Whether the hub answers hub_fence, as far as that was tried."""
        self.met: frozenset[int] = frozenset()
        """The child hubs that it knows: each has been there once."""
        self.slowest = 0.0
        """Seconds that an expected frame has taken at most."""
        self.hurried = False
        """Whether to wait for what is missing only as long as this hub has ever needed, and some more."""
        self.fence = ""
        """How silence is shown on a child link: "invalid", "empty" or "absent" requests; none: by waiting."""
        self.fence_answer = b""
        """What the hub answers to it, if it does not copy the MsgID."""
        self.ends_too = True
        """Whether the hub ends a connection on which it is told that nothing more comes."""
        self._devices = 0
        self._fences = _FENCE_IDS
        self._node = secrets.randbelow(_NODES) + _FIRST_NODE
        self._listening: socket.socket | None = None
        self.parent: Wire | None = None

    def __enter__(self) -> "Subject":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        if self.parent is not None:
            self.parent.close()
        if self._listening is not None:
            self._listening.close()

    # Names and numbers never used before, also not in an earlier run

    def fresh_device(self) -> str:
        self._devices += 1
        return f"conform-{self.tag}-{self._devices}"

    def fresh_node(self) -> int:
        """A node id, where this tool is the authority."""
        self._node += 1
        return self._node

    def fresh_credential(self) -> str:
        """A credential, where this tool issues it."""
        return secrets.token_urlsafe(32)

    def journal_of(self, neighbour: int) -> str:
        """The journal of a hub that this tool plays; the parent is neighbour 0."""
        return self.journals.setdefault(neighbour, f"conform {self.tag} {neighbour}")

    def begin_anew(self, neighbour: int) -> None:
        """The hub that this tool plays there has lost its data: another journal, and the numbers from the beginning."""
        self.journals[neighbour] = secrets.token_hex(16)
        self.sent.pop(neighbour, None)
        self.last_number.pop(neighbour, None)

    def next_number(self, neighbour: int) -> int:
        """For a revoke that a hub sends which this tool plays."""
        self.sent[neighbour] = self.sent.get(neighbour, 0) + 1
        return self.sent[neighbour]

    def offer(self, neighbour: int) -> Ext | None:
        """What a hub that this tool plays says of the extension."""
        return Ext(self.journal_of(neighbour)) if "extension" in self.profile.available else None

    def neighbours(self) -> dict[int, Neighbour]:
        """Whom the hub under test knows."""
        if self.profile.dialect is Dialect.FLAT:
            return {}
        if "extension" not in self.profile.available:
            return {node_id: Neighbour() for node_id in self.met}
        known = self.met | ({PARENT_NEIGHBOUR} if self.profile.parent is not None else set())
        return {key: Neighbour(handled=self.sent.get(key, 0), journal=self.journal_of(key)) for key in known}

    def fence_id(self) -> int:
        self._fences += 1
        return self._fences

    @property
    def patience(self) -> float:
        """Seconds to wait for a frame that must come."""
        stated = self.profile.timeouts.answer
        return min(stated, 0.1 + 10 * self.slowest) if self.hurried else stated

    # Connections

    def connect(self, version: Version | None = None) -> Wire:
        """A new connection. Raises Unreachable."""
        seconds = self.profile.timeouts.connect
        return Wire.connect(self.host, self.port, version or self.version, self.codec, seconds, self.witness)

    def check_alive(self) -> None:
        """Raises Unreachable if the hub under test accepts no connection any more."""
        self.connect().close()

    def probe(self) -> None:
        """Find out how the hub shows that it has handled something, its node id, and let it meet its child hubs.

        Raises NotServing.
        """
        self._check_speech()
        self.fence, self.ends_too = "", self._ends_too()
        for kind in _FENCES:
            payload = self.fence_payload(kind)
            seen = self._ask(payload) if payload else None
            if seen is not None:
                self.fence = kind
                self.fence_answer = b"" if seen.frame.msg_id == self._fences else seen.payload
                break
        else:
            seen = self._ask(self.codec.encode(Register(self.fresh_device())))
            if seen is None:
                raise NotServing(f"no answer to any request at {self.host}:{self.port}")
        self.node_id = self.node_id or seen.frame.source
        self.met = frozenset(known.node_id for known in self.profile.child_hub if self.visit(known))

    def _check_speech(self) -> None:
        """Who speaks another dialect or header breaks every rule, which says nothing about any of them."""
        where, seconds = (self.host, self.port), self.profile.timeouts.answer
        wanted = Speech(self.profile.dialect, self.version)
        if ask(*where, wanted, seconds) is None:
            other = other_speech(*where, wanted, seconds)
            if other is not None:
                raise NotServing(f"the hub at {self.host}:{self.port} speaks {other}, not {wanted}")

    def _ends_too(self) -> bool:
        wire = self.connect()
        wire.finish()
        ended = wire.is_ended(Patience(self.profile.timeouts.answer))
        wire.close()
        return ended

    def visit(self, known: Known) -> bool:
        """Come as this child hub, acknowledge everything it is owed, and leave; whether it was admitted."""
        answer = self.introduce(known, as_hub=True)
        return answer is not None and answer.reason is Reason.OK

    def introduce(self, known: Known, *, as_hub: bool) -> Answer | None:
        """Authenticate as somebody who is provisioned, as a hub acknowledge what is owed, and leave; the answer."""
        wire = self.connect()
        shown = Authenticate(known.device_id, known.credential, self.offer(known.node_id) if as_hub else None)
        seen = self._ask_on(wire, self.codec.encode(shown))
        answer = seen.frame.body if seen is not None and isinstance(seen.frame.body, Answer) else None
        if as_hub and answer is not None and answer.reason is Reason.OK:
            self._learn(wire, answer.ext)
            settle(self, wire, known.node_id)
        part(self, [wire])
        return answer

    def _learn(self, wire: Wire, ext: Ext | None) -> None:
        """What the hub says of the extension when it meets a hub that this tool plays."""
        if ext is not None and ext.hub and "extension" in self.profile.available:
            wire.extended, self.journal = True, ext.journal

    def knock(self, *, shown: bool) -> None:
        """Let the hub notice what happened to other connections: most answer a new one after that.

        ``shown``: whether it has been seen to notice.
        """
        if self.fence:
            self._ask(self.fence_payload(self.fence))
        if not shown:
            time.sleep(self.profile.timeouts.silence)

    def _ask(self, payload: bytes) -> Seen | None:
        """The answer to one request on a connection of its own, which changes nothing."""
        wire = self.connect()
        try:
            return self._ask_on(wire, payload)
        finally:
            wire.close()

    def _ask_on(self, wire: Wire, payload: bytes) -> Seen | None:
        wire.write(write_frame(self.version, Frame(b"", msg_id=self.fence_id()), payload))
        seen = wire.read(Patience(self.profile.timeouts.answer))
        return seen if isinstance(seen, Seen) else None

    def fence_payload(self, kind: str) -> bytes:
        """A request that is answered at once and changes nothing; none if the hub answers no such thing."""
        flat = self.profile.dialect is Dialect.FLAT
        if kind == "invalid":
            return b'{"action":"register"}' if flat else b'{"action":"register","data":{}}'
        if kind == "absent":
            return b"" if flat else self.codec.encode(Offline("conform-nobody"))
        return self.codec.encode(Authenticate("conform-nobody", "")) if kind else b""

    # The parent's part

    def listen(self, host: str, port: int) -> None:
        """Be there for the hub under test to connect to."""
        self._listening = socket.create_server((host, port))

    def accept(self, seconds: float) -> Wire:
        """The hub's connection to its parent. Raises Unreachable if it does not come."""
        assert self._listening is not None and self.profile.parent is not None
        self._listening.settimeout(seconds)
        try:
            connected, _ = self._listening.accept()
        except TimeoutError:
            raise Unreachable("the hub under test did not connect to its parent in time (timeouts.join)") from None
        version = Version(self.profile.parent.header)
        self.parent = Wire(connected, version, self.codec, self.witness.meet(version, as_parent=True))
        return self.parent

    def accept_live(self) -> Wire:
        """A connection of the hub to its parent on which it speaks: older ones it may have given up meanwhile."""
        deadline = time.monotonic() + self.profile.timeouts.join
        while True:
            wire = self.accept(max(deadline - time.monotonic(), 0.01))
            if isinstance(wire.peek(self.profile.timeouts.answer), Seen) and not wire.is_gone():
                return wire
            wire.close()

    def join(self) -> Authenticate | Register:
        """Accept the hub under test as its parent, whatever it shows, and see it know that; what it showed.

        Raises Unreachable.
        """
        seen = self.accept_live().read(Patience(self.profile.timeouts.answer))
        if not isinstance(seen, Seen) or not isinstance(seen.frame.body, Authenticate | Register):
            raise Unreachable("the hub under test connected to its parent and did not authenticate")
        assert self.parent is not None and self.profile.parent is not None
        hub, body = self.profile.hub, seen.frame.body
        self._learn(self.parent, body.ext)
        ext = self.answer_to_offer() if self.parent.extended else None
        answer = Answer(body.action, Reason.OK, hub.device_id, hub.node_id, hub.credential, ext=ext)
        above = self.profile.parent.node_id
        frame = Frame(answer, Major.OK_RESP, seen.frame.msg_id, above)
        self.parent.write(encode_frame(self.parent.version, self.codec, frame))
        settle(self, self.parent, above)
        return body

    def answer_to_offer(self) -> Ext | None:
        """What the parent says of the extension to a hub that has offered it."""
        offer = self.offer(PARENT_NEIGHBOUR)
        return Ext(offer.journal, self.journal) if offer is not None else None

    def rejoin(self) -> None:
        """Begin anew as the parent. Raises Unreachable."""
        if self.parent is not None:
            self.parent.close()
        self.join()
