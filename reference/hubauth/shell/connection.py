"""One TCP connection: bytes to frames, frames to the engine, and what the engine releases back to bytes.

A connection becomes a link when its first whole frame has come: who only connects, or sends garbage, never touches the
hub's state. A few frames are handled per turn, the rest waits while reading is paused, so no peer can keep the others
waiting. Who does not read its answers is not read from either, and beyond a limit is closed.
"""

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from hubauth.core.inputs import PARENT, Link, LinkDown, LinkUp
from hubauth.shell.engine import Engine
from hubauth.shell.observe import Observer, say
from hubauth.shell.settings import LimitsTable
from hubauth.wire.framing import FrameDecoder, Limits, RawFrame
from hubauth.wire.header import Refused, Version

_HIGH_WATER = 64 * 1024
_OVERLOAD_PAUSE = 0.005
_OUTPUTS_OF_A_FRAME = 8
_CLOSE = b""
"""In the place of a frame: close after what was put before. No frame is empty."""


class Connection(asyncio.Protocol):
    """A connection of either kind; ``ParentConnection`` and ``ChildConnection`` differ in when they are a link."""

    def __init__(self, engine: Engine, limits: LimitsTable, version: Version | None, observer: Observer) -> None:
        self._engine = engine
        self._limits = limits
        self._observer = observer
        self._decoder = FrameDecoder(version, Limits(limits.payload, limits.opaque_payload))
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._backlog: deque[RawFrame] = deque()
        self._refused: Refused | None = None
        self._outgoing: list[bytes] = []
        self._sealed: list[bytes] = []
        self._unreleased = 0
        """Bytes that were put and not released."""
        self._congested = False
        self._reading = True
        self._working = False
        self._ended = False
        """The peer will say nothing more."""
        self.closing_since: float | None = None
        self.link: Link | None = None
        self.peer = self.connection = ""
        self.since = self.last_read = self._loop.time()
        self.unbound_since = self.since
        self._frame_since: float | None = None
        """When the frame that is not complete yet was begun, or could be read on."""

    # From asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self.peer = _address(transport.get_extra_info("peername"))
        self.connection = self.named(_address(transport.get_extra_info("sockname")))
        keep_alive(transport.get_extra_info("socket"), self._limits.keepalive_seconds)
        self.made()

    def data_received(self, data: bytes) -> None:
        self.last_read = self._loop.time()
        if self.closing_since is not None:
            return
        frames = self._decoder.feed(data)
        if frames and isinstance(frames[-1], Refused):
            self._refused = cast(Refused, frames.pop())
        self._backlog.extend(cast(list[RawFrame], frames))
        if not self._decoder.held:
            self._frame_since = None
        elif frames or self._frame_since is None:
            self._frame_since = self.last_read
        if not self._working:
            self._work()

    def eof_received(self) -> bool:
        """The peer has said everything; it may still want its answers."""
        self._ended = True
        if self._transport is None or self._transport.get_extra_info("sslcontext") is not None:
            return False
        self.end_if_done()
        return True

    def pause_writing(self) -> None:
        self._congested = True
        self._pace()

    def resume_writing(self) -> None:
        self._congested = False
        self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it was lost makes no difference
        self._transport = None
        self._congested = False
        self._ended = True
        if not self._working:
            self._work()
        self.lost()

    # To the engine

    def named(self, here: str) -> str:
        """The connection's name, the same at its other end: who connected, and to whom."""
        return f"{self.peer}-{here}"

    def made(self) -> None:
        """The connection is open."""

    def lost(self) -> None:
        """The connection is gone."""

    def _work(self) -> None:
        """Handle a few frames; the rest in later turns, or when journal or peer have caught up."""
        self._working = False
        if self._backlog and not self._engine.overloaded:
            self._handle_some()
        if self.closing_since is not None:
            self._backlog.clear()
        if self._backlog:
            self._go_on()
        elif self._refused is not None and self.closing_since is None:
            self._observer.event("refused", rule=self._refused.rule, detail=self._refused.detail, peer=self.peer)
            self._observer.count("refused", self._refused.rule)
            self.drop("unreadable")
        elif self._transport is None:
            self._unlink()
        self._pace()

    def _handle_some(self) -> None:
        left = self._limits.frames_per_turn
        while self._backlog and left > 0:
            if self.closing_since is not None or self._is_held_back:
                return
            if self.link is None:
                self.become_link()
                assert self.link is not None
            outputs = self._engine.receive(self.link, self._backlog.popleft())
            # A broadcast to many is as much work as many frames.
            left -= 1 + outputs // _OUTPUTS_OF_A_FRAME

    def _go_on(self) -> None:
        """Handle the rest in another turn, unless the peer must read first."""
        if self._backlog and not self._working and not self._is_held_back:
            self._working = True
            self._loop.call_later(_OVERLOAD_PAUSE if self._engine.overloaded else 0, self._work)
        self._pace()

    @property
    def _is_held_back(self) -> bool:
        """Whether enough answers wait for this device already."""
        if self._transport is None:
            return False
        return (self._congested or self._unreleased > _HIGH_WATER) and not self.is_hub

    def become_link(self) -> None:
        """Tell the core that this connection exists."""
        self.link = self._engine.take_link(self)
        self._engine.feed(LinkUp(self.link))

    def _unlink(self) -> None:
        if self.link is not None:
            link, self.link = self.link, None
            self._engine.ports.pop(link, None)
            self._engine.feed(LinkDown(link))

    def _pace(self) -> None:
        """Read only while what was read is handled and, from a device, while it takes its answers.

        Two hubs that waited for each other to read would wait for ever; between them only the write limit counts.
        """
        wanted = not self._backlog and not self._is_held_back
        if wanted != self._reading and self._transport is not None and not self._transport.is_closing():
            self._reading = wanted
            if wanted:
                if self._frame_since is not None:
                    self._frame_since = self._loop.time()
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    # From the engine

    @property
    def version(self) -> Version:
        return self._decoder.version or Version.V1

    @property
    def congested(self) -> bool:
        return self._congested

    @property
    def crowded(self) -> bool:
        transport = self._transport
        if transport is None or not self.is_hub:
            return False
        return self._unreleased + transport.get_write_buffer_size() > self.write_limit() // 2

    def put(self, data: bytes) -> bool:
        self._outgoing.append(data)
        self._unreleased += len(data)
        return len(self._outgoing) == 1

    def put_close(self) -> bool:
        self.link = None
        self.closing_since = self._loop.time()
        return self.put(_CLOSE)

    def seal(self) -> None:
        self._sealed, self._outgoing = self._outgoing, []

    def release(self) -> None:
        frames, self._sealed = self._sealed, []
        transport = self._transport
        size = sum(map(len, frames))
        self._unreleased -= size
        if transport is None or not frames:
            return
        closes = frames[-1] == _CLOSE
        transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        self._observer.count("bytes_sent", by=size)
        if closes:
            transport.close()
        elif transport.get_write_buffer_size() > self.write_limit():
            self._observer.event("slow_reader", logging.WARNING, peer=self.peer, link=self.link)
            self.drop("slow_reader", at_once=True)
        elif self._ended:
            self.end_if_done()
        self._go_on()

    def write_limit(self) -> int:
        """How many bytes may wait for this peer."""
        return self._limits.hub_write_buffer if self.is_hub else self._limits.write_buffer

    @property
    def is_hub(self) -> bool:
        """Whether a hub is at the other end."""
        session = self._engine.state.links.get(self.link) if self.link is not None else None
        return session is not None and session.is_hub

    def end_if_done(self) -> None:
        """After the peer's last word: close once nothing is left to answer."""
        waits = self.link is not None and self._engine.state.index.waiting.get(self.link)
        if not (self._backlog or self._working or self._outgoing or self._sealed or waits):
            self.drop("ended")

    def drop(self, why: str, *, at_once: bool = False) -> None:
        """The shell ends this connection: now, or after what was put before."""
        if self.closing_since is not None:
            return
        self._observer.count("closed", why)
        self._unlink()
        self.closing_since = self._loop.time()
        if self._transport is None:
            return
        if at_once:
            self._transport.abort()
        elif self._outgoing or self._sealed:
            # Before the engine's next commit, so what was put leaves first.
            self._outgoing.append(_CLOSE)
            if len(self._outgoing) == 1:
                self._engine.touch(self)
        else:
            self._transport.close()

    def check(self, now: float) -> None:
        """Close what has taken too long; called every now and then."""
        limits = self._limits
        if self.closing_since is not None:
            if now - self.closing_since > limits.close_seconds:
                self.abort()
            return
        if self._ended:
            self.end_if_done()
        begun = self._frame_since if self._reading else None
        if limits.frame_seconds and begun is not None and now - begun > limits.frame_seconds:
            self.drop("frame_timeout")
        else:
            self.check_session(now)

    def check_session(self, now: float) -> None:
        """Likewise, where it depends on who the peer is."""
        limits = self._limits
        session = self._engine.state.links.get(self.link) if self.link is not None else None
        if session is None:
            if limits.unauthenticated_seconds and now - self.unbound_since > limits.unauthenticated_seconds:
                self.drop("unauthenticated")
            return
        self.unbound_since = now
        if limits.idle_seconds and not session.is_hub and now - self.last_read > limits.idle_seconds:
            self.drop("idle")

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def turn_deaf(self) -> None:
        """Take in nothing more because the hub stops; what was taken in is still answered."""
        self.closing_since = self.closing_since or self._loop.time()

    def shut(self) -> None:
        """Close because the hub stops. The link stays in the state: the next start takes it down."""
        self.turn_deaf()
        self.link = None
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """End without a word."""
        if self._transport is not None:
            self._transport.abort()


class ChildConnection(Connection):
    """A device or child hub that has connected."""

    def __init__(
        self,
        engine: Engine,
        limits: LimitsTable,
        version: Version | None,
        observer: Observer,
        connections: "set[ChildConnection]",
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__(engine, limits, version, observer)
        self._connections = connections
        self._on_lost = on_lost

    def made(self) -> None:
        self._connections.add(self)

    def lost(self) -> None:
        self._connections.discard(self)
        self._on_lost()


class ParentConnection(Connection):
    """The connection to the parent is a link as soon as it is open: the hub speaks first."""

    def __init__(self, engine: Engine, limits: LimitsTable, version: Version, observer: Observer) -> None:
        super().__init__(engine, limits, version, observer)
        self.gone = asyncio.Event()
        self.was_present = False

    def become_link(self) -> None:
        self.link = PARENT
        self._engine.ports[PARENT] = self
        self._engine.feed(LinkUp(PARENT))

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

    def _handle_some(self) -> None:
        super()._handle_some()
        if not self.was_present and self._engine.state.parent_present:
            self.was_present = True
            say(logging.INFO, "parent_present", address=self.peer)

    def check_session(self, now: float) -> None:
        """The parent may be silent as long as it likes: keepalive watches it."""

    @property
    def is_hub(self) -> bool:
        return True


def _address(name: object) -> str:
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")


def keep_alive(sock: socket.socket | None, seconds: float) -> None:
    """Let TCP find out when a silent peer has vanished."""
    if sock is None or not seconds or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    idle = max(int(seconds), 1)
    # The peer may be gone already; that is no reason not to notice.
    with suppress(OSError):
        _set_keep_alive(sock, idle)


def _set_keep_alive(sock: socket.socket, idle: int) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", idle), ("TCP_KEEPINTVL", max(idle // 4, 1)), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, idle * 2000)
