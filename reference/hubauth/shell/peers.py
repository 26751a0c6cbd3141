"""The two kinds of connections: those that peers have opened, and the one to the parent."""

import asyncio
import logging
from collections.abc import Callable

from hubauth.core.inputs import PARENT, Link, LinkUp
from hubauth.shell.commons import Commons, Standing
from hubauth.shell.connection import Connection
from hubauth.shell.observe import say
from hubauth.wire.header import Version

PARENT_WEIGHT = 128.0
"""The parent's share of the hub's time: hundreds of connections, each with its own share, wait for what it sends."""


class ChildConnection(Connection):
    """A device or child hub that has connected."""

    def __init__(
        self,
        commons: Commons,
        version: Version | None,
        site: str,
        connections: "set[ChildConnection]",
        on_lost: Callable[[str], None],
    ) -> None:
        super().__init__(commons, version)
        self._site = site
        """Whom its address is counted under."""
        self._connections = connections
        self._on_lost = on_lost

    def made(self) -> None:
        self._connections.add(self)
        assert self._transport is not None
        name, tls = self._transport.get_extra_info("peername"), self._transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        self.origin = self._commons.origins.of(str(name[0]) if name else "", certificate)

    def lost(self) -> None:
        if self in self._connections:
            self._connections.discard(self)
            self._on_lost(self._site)

    def check_session(self, now: float) -> None:
        """A plain hub may be silent as long as it likes, also before it has named itself."""
        if not self.origin.hubs or self.standing is Standing.DEVICE:
            super().check_session(now)

    def may_register(self) -> bool:
        return self._takes("registrations")

    def has_failed(self) -> None:
        if not self._takes("failures"):
            # Not now, since the answer is only just being put; but nothing more is handled.
            self._resting = True
            self._loop.call_soon(self.drop, "failures")

    def left_waiting(self, requests: int) -> None:
        # As if each had come with a connection of its own: else nobody would count what is asked and left behind.
        self._commons.neighbourhood.uses("connects", self._site, self._loop.time(), requests - 1)

    def _takes(self, what: str) -> bool:
        if self.is_hub or self._commons.neighbourhood.takes(what, self._site, self._loop.time()):
            return True
        self._observer.alarm("limited", peer=self.peer, detail=what)
        return False


class ParentConnection(Connection):
    """The connection to the parent is a link as soon as it is open: the hub speaks first."""

    def __init__(self, commons: Commons, version: Version) -> None:
        super().__init__(commons, version)
        self.gone = asyncio.Event()
        self.was_present = False

    def become_link(self) -> Link:
        self.link = PARENT
        self._engine.ports[PARENT] = self
        self._engine.feed(LinkUp(PARENT))
        return PARENT

    def named(self, here: str) -> str:
        return f"{here}-{self.peer}"

    def made(self) -> None:
        self.become_link()

    def lost(self) -> None:
        self.gone.set()

    def _unlink(self) -> None:
        if self.link is not None:
            self.was_present = self._engine.state.parent_present
        super()._unlink()

    def _after_serving(self) -> None:
        super()._after_serving()
        if not self.was_present and self._engine.state.parent_present:
            self.was_present = True
            say(logging.INFO, "parent_present", address=self.peer)

    def check_session(self, now: float) -> None:
        """The parent may be silent as long as it likes: keepalive watches it."""

    @property
    def standing(self) -> Standing:
        return Standing.HUB

    @property
    def weight(self) -> float:
        return PARENT_WEIGHT
