"""Hearing everything that the hub under test says because of what happened, and knowing when that is all.

Silence is shown by fences: on every connection a request that changes nothing and is always answered; its answer
proves that everything before it on that connection has been handled. A hub that answers neither kind of fence is given
the stated time instead.
"""

import time
from collections.abc import Callable, Container, Iterable

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Action, Answer, AssistOffline, Frame, Major, Reason
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.subject import Subject, write_frame
from hubauth.oracle.conform.wire import Closed, Seen


class Ear:
    """Listens on the connections of one case. ``on_frame`` hears every frame as it comes."""

    def __init__(self, subject: Subject, names: Container[str], on_frame: Callable[[Peer, Seen], None]) -> None:
        self._subject, self._names, self._on_frame = subject, names, on_frame

    def hear(
        self, peers: Iterable[Peer], counts: dict[Link, int], closing: set[Link], seconds: float
    ) -> dict[Link, list[Seen]]:
        """What comes on every connection: at least so many frames, or closing, within the time; then up to a fence.

        The first of the peers is the one that spoke: its fence comes first, so that the others' prove more.
        """
        peers = list(peers)
        heard: dict[Link, list[Seen]] = {peer.link: [] for peer in peers}
        for peer in peers:
            into, count = heard[peer.link], counts.get(peer.link, 0)
            self._read(peer, into, seconds, count)
            if peer.link in closing:
                self._read(peer, into, seconds, None)
        for peer in peers:
            if peer.is_open:
                self.fence(peer, heard[peer.link])
        return heard

    def _read(self, peer: Peer, into: list[Seen], seconds: float, count: int | None) -> None:
        """So many frames in all; None: until the connection is closed."""
        started = time.monotonic()
        while count is None or len(into) < count:
            got = peer.wire.read(started + seconds)
            if got is None or isinstance(got, Closed):
                return
            self._subject.slowest = max(self._subject.slowest, time.monotonic() - started)
            self._take(peer, got, into)

    def fence(self, peer: Peer, into: list[Seen]) -> None:
        """Read everything that the hub has sent on this connection because of what happened before."""
        if peer.decoder.held:
            return  # the hub waits for the rest of a frame
        subject = self._subject
        number = subject.fence_id()
        payload = self._fence_payload(peer)
        if payload:
            frame = Frame(b"", msg_id=number, source=peer.node_id)
            peer.wire.write(write_frame(peer.wire.version, frame, payload))
        timeouts = subject.profile.timeouts
        deadline = time.monotonic() + (timeouts.answer if payload else timeouts.silence)
        while True:
            got = peer.wire.read(deadline)
            if got is None or isinstance(got, Closed):
                return
            if got.frame.msg_id == number or (subject.fence_answer and got.payload == subject.fence_answer):
                return
            self._take(peer, got, into)

    def _fence_payload(self, peer: Peer) -> bytes:
        subject = self._subject
        if peer.link != PARENT:
            return subject.fence_payload(subject.fence) if subject.fence else b""
        if subject.profile.dialect is Dialect.FLAT:
            return subject.fence_payload("invalid")
        return subject.codec.encode(AssistOffline("conform-fence"))

    def _take(self, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        if not self._absorb(peer, seen):
            into.append(seen)
            self._on_frame(peer, seen)

    def _absorb(self, peer: Peer, seen: Seen) -> bool:
        """Whether a request is a late consequence of an earlier case: it names a device of that case."""
        body = seen.frame.body
        name = getattr(body, "device_id", "")
        if isinstance(body, Answer | bytes) or not name or name in self._names:
            return False
        if isinstance(body, AssistOffline):
            reason = Reason.OK if body.node_id else Reason.NOT_INDEXED
            answer = Answer(Action.ASSIST_OFFLINE, reason, body.device_id, body.node_id)
            major = Major.OK_RESP if body.node_id else Major.ERR_RESP
            frame = Frame(b"", major, seen.frame.msg_id, peer.node_id, self._subject.node_id)
            peer.wire.write(write_frame(peer.wire.version, frame, self._subject.codec.encode(answer)))
        return True
