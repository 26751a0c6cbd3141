"""Hearing everything that the hub under test says because of what happened, and knowing when that is all."""

import time
from collections.abc import Callable, Container, Iterable
from selectors import EVENT_READ, DefaultSelector

from hubauth.core.inputs import Link
from hubauth.oracle.conform.peers import Peer
from hubauth.oracle.conform.proof import acknowledge, is_late, settle
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Patience, Seen


class Ear:
    """Listens on the connections of one case. ``on_frame`` hears every frame as it comes."""

    def __init__(self, subject: Subject, names: Container[str], on_frame: Callable[[Peer, Seen], None]) -> None:
        self._subject, self._names, self._on_frame = subject, names, on_frame
        self.first: float | None = None
        """When the first frame came in the last exchange, by ``time.monotonic``."""

    def hear(
        self, peers: Iterable[Peer], counts: dict[Link, int], closing: set[Link], seconds: float
    ) -> dict[Link, list[Seen]]:
        """What comes on every connection: at least so many frames, or closing, within the time; then up to a fence.

        The first of the peers is the one that spoke: its fence comes first, so that the others' prove more.
        """
        peers = list(peers)
        heard: dict[Link, list[Seen]] = {peer.link: [] for peer in peers}
        self.first = None
        self._listen(peers, heard, counts, closing, seconds)
        for peer in peers:
            if peer.is_open:
                self.fence(peer, heard[peer.link])
        return heard

    def _listen(
        self,
        peers: list[Peer],
        heard: dict[Link, list[Seen]],
        counts: dict[Link, int],
        closing: set[Link],
        seconds: float,
    ) -> None:
        """Take what comes on every connection until all that must come is there."""
        started, patience = time.monotonic(), Patience(seconds)
        while True:
            left = list[Peer]()
            for peer in peers:
                into, count = heard[peer.link], counts.get(peer.link, 0)
                while isinstance(got := peer.wire.read(Patience(0)), Seen):
                    if len(into) < count:
                        self._subject.slowest = max(self._subject.slowest, time.monotonic() - started)
                    self._take(peer, got, into)
                if peer.is_open and (len(into) < count or peer.link in closing):
                    left.append(peer)
            if not left or patience.is_over:
                return
            began = time.monotonic()
            with DefaultSelector() as selector:
                for peer in peers:
                    if peer.is_open:
                        selector.register(peer.wire, EVENT_READ)
                selector.select(patience.slice)
            patience.spend(time.monotonic() - began)

    def fence(self, peer: Peer, into: list[Seen]) -> None:
        """Read everything that the hub has sent on this connection because of what happened before."""
        if peer.decoder.held:
            return  # the hub waits for the rest of a frame
        for seen in settle(self._subject, peer.wire, peer.node_id, self._names):
            self._keep(peer, seen, into)

    def _take(self, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        if is_late(peer.wire, seen, self._names):
            acknowledge(self._subject, peer.wire, peer.node_id, seen)  # the fence comes after it
        else:
            self._keep(peer, seen, into)

    def _keep(self, peer: Peer, seen: Seen, into: list[Seen]) -> None:
        into.append(seen)
        self.first = self.first or time.monotonic()
        self._on_frame(peer, seen)
