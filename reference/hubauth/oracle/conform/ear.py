"""Hearing everything that the hub under test says because of what happened, and knowing when that is all."""

import time
from collections.abc import Callable, Container, Iterable

from hubauth.core.inputs import PARENT, Link
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.proof import acknowledge, is_late, settle
from hubauth.oracle.conform.subject import Subject
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
        upwards = peer.link == PARENT
        for seen in settle(self._subject, peer.wire, peer.node_id, self._names, upwards=upwards):
            self._keep(peer, seen, into)

    def _take(self, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        if is_late(seen, self._names):
            acknowledge(self._subject, peer.wire, peer.node_id, seen)  # the fence comes after it
        else:
            self._keep(peer, seen, into)

    def _keep(self, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        into.append(seen)
        self._on_frame(peer, seen)
