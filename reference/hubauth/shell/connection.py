"""One TCP connection: bytes to frames, frames to the engine, and what the engine releases back to bytes.

A connection becomes a link when its first whole frame has come: who only connects, or sends garbage, never touches the
hub's state. What was read waits until the connection is served (``hubauth.shell.turn``); meanwhile nothing more is
read. Who does not read its answers is not read from either, and beyond a limit is closed.
"""

import asyncio
import logging
from typing import cast

from hubauth.core.inputs import Link, LinkDown, LinkUp
from hubauth.core.messages import SUB_PROTO
from hubauth.shell.allowance import Room
from hubauth.shell.commons import Commons, Standing
from hubauth.shell.origins import PlainOrigin
from hubauth.shell.outgoing import CLOSE, Outgoing
from hubauth.shell.sockets import address_of, keep_alive
from hubauth.wire.framing import FrameDecoder, Limits
from hubauth.wire.header import Refused, Version

_STRANGER, _HUB = Standing.STRANGER, Standing.HUB
_HIGH_WATER = 64 * 1024
_BREATH = 32 * 1024
_LONGEST_REST = 60.0
_LEAST_OPAQUE = 1024
"""Bytes that a frame of another sub-protocol counts at least, read or written: it costs as much time as so many."""
_OPAQUE_SECONDS = 5e-5
"""What each such frame counts besides, read or written, in the hub's time: more than the write takes that nobody
measures, because whoever waits for an answer goes before those who do not."""
_WEIGHTS = {Standing.STRANGER: 1.0, Standing.DEVICE: 4.0, Standing.HUB: 16.0}
"""Shares of the hub's time. Many speak through a hub."""


class Connection(asyncio.BufferedProtocol):
    """A connection of either kind; ``ParentConnection`` and ``ChildConnection`` differ in when they are a link."""

    def __init__(self, commons: Commons, version: Version | None) -> None:
        self._commons = commons
        self._engine, self._limits, self._observer = commons.engine, commons.limits, commons.observer
        self._decoder = FrameDecoder(version, Limits(self._limits.payload, self._limits.opaque_payload))
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing = Outgoing(commons.outlet, commons.observer, self._written)
        self._congested = False
        self._resting = False
        """Whether it has done more than it may, and is not listened to for a moment."""
        self._opaque_until = 0.0
        self._reading = True
        self._ended = False
        """The peer will say nothing more."""
        self._room: Room | None = None
        self._held = 0
        """What is counted in that room."""
        self._passed_over = 0
        self._breath = _BREATH
        """With so many bytes of an incomplete frame it takes a breath."""
        self.enlisted = False
        self.cost, self.burden = commons.turns.floor, 0.0
        self.closing_since: float | None = None
        self.link: Link | None = None
        self.peer = self.connection = ""
        self.origin = PlainOrigin()
        self.since = self.last_read = self._loop.time()
        self.unbound_since = self.since
        self._frame_since: float | None = None
        """When the frame that is not complete yet was begun, or could be read on."""

    # From asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._outgoing.transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_WATER)
        self.peer = address_of(transport.get_extra_info("peername"))
        self.connection = self.named(address_of(transport.get_extra_info("sockname")))
        keep_alive(transport.get_extra_info("socket"), self._limits.keepalive_seconds)
        self.made()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a loop would read as much as it can
        return self._commons.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._commons.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Keep what was read until it is this connection's turn."""
        self.last_read = self._loop.time()
        if self.closing_since is not None:
            return
        self._decoder.take_in(data)
        self._count_held()
        if self._room is not None and self._room.is_too_small_for(self._held):
            self._observer.event("no_room", logging.WARNING, peer=self.peer, held=self._held)
            self.drop("no_room", at_once=True)
        elif not self._decoder.is_ready:
            within = self._decoder.is_within_frame
            self._frame_since = (self._frame_since or self.last_read) if within else None
            if self._decoder.held >= self._breath:
                self._breathe()
        elif self.enlisted:
            # uvloop reads on and on within one turn.
            self._pace()
        else:
            self._outgoing.prefer()
            self._commons.turns.enlist(self)

    def _breathe(self) -> None:
        """Read on in another turn of the event loop, because a long frame takes as long as many requests."""
        assert self._transport is not None
        self._breath = self._decoder.held + _BREATH
        self._transport.pause_reading()
        self._loop.call_soon(self._breathe_in)

    def _breathe_in(self) -> None:
        if self._reading and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

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
        self._transport = self._outgoing.transport = None
        self._congested = False
        self._ended = True
        self._commons.turns.enlist(self)

    # To the engine

    def named(self, here: str) -> str:
        """The connection's name, the same at its other end: who connected, and to whom."""
        return f"{self.peer}-{here}"

    def made(self) -> None:
        """The connection is open."""

    def lost(self) -> None:
        """The connection is gone, and what came over it is handled."""

    @property
    def weight(self) -> float:
        return _WEIGHTS[self.standing]

    @property
    def wants_a_turn(self) -> bool:
        return self._decoder.is_ready and not self._is_held_back

    def serve(self, until: float, most: int) -> int:
        """Handle frames for a while; how many bytes came in and go out because of them."""
        decoder, clock, moved, frames = self._decoder, self._commons.turns.clock, 0, 0
        standing = self.standing
        while self.closing_since is None and not self._is_held_back:
            if standing is _STRANGER:
                standing = self.standing
            # A stranger's would be dropped anyhow, so a long one is not even held.
            decoder.longest_opaque = self._limits.payload if standing is _STRANGER else self._limits.opaque_payload
            frame = decoder.next()
            if frame is None:
                break
            if isinstance(frame, Refused):
                self._refuse(frame)
                break
            link = self.become_link() if self.link is None else self.link
            engine = self._engine
            bytes_before, frames_before = engine.bytes_put, engine.frames_put
            engine.receive(link, frame)
            size = frame.header.length + frame.header.payload_length + engine.bytes_put - bytes_before
            if frame.header.sub_proto != SUB_PROTO:
                handled = 1 + engine.frames_put - frames_before
                self.cost += handled * _OPAQUE_SECONDS / self.weight
                if standing is not _HUB:
                    self._spend_opaque(max(size, _LEAST_OPAQUE * handled))
            frames, moved = frames + 1, moved + size
            if moved >= most or clock() >= until:
                break
        self._breath = _BREATH
        if decoder.is_ready or not decoder.is_within_frame:
            self._frame_since = None
        elif frames or decoder.passed_over > self._passed_over or self._frame_since is None:
            self._frame_since = self.last_read
        self._after_serving()
        return moved

    def _after_serving(self) -> None:
        if self._decoder.passed_over > self._passed_over:
            self._observer.count("passed_over", by=self._decoder.passed_over - self._passed_over)
            self._observer.event("passed_over", peer=self.peer, detail="a large frame without a session")
            self._passed_over = self._decoder.passed_over
        if self.closing_since is not None:
            self._decoder.forget()
        if self._transport is None and not self.wants_a_turn:
            self._decoder.forget()
            self.lost()
            self._unlink()
        self._count_held()
        self._pace()

    def _refuse(self, refused: Refused) -> None:
        self._observer.event("refused", rule=refused.rule, detail=refused.detail, peer=self.peer)
        self._observer.count("refused", refused.rule)
        self.drop("unreadable")

    def fail(self, problem: Exception) -> None:  # noqa: ARG002 - it has been logged
        self._observer.count("closed", "step_failed")
        self.turn_deaf()
        self.abort()

    def _spend_opaque(self, size: int) -> None:
        """Who sends more opaque bytes than it may is not listened to until that is made up for."""
        now, rate = self._loop.time(), self._commons.opaque
        self._opaque_until = min(rate.spend(self._opaque_until, now, size), now + rate.seconds + _LONGEST_REST)
        wait = rate.wait(self._opaque_until, now)
        if wait and not self._resting:
            self._resting = True
            self._observer.count("rests")
            self._loop.call_later(wait, self._end_rest)

    def _end_rest(self) -> None:
        self._resting = False
        self._go_on()

    def _count_held(self) -> None:
        """Keep count of what is held, where it belongs: with strangers or with devices."""
        room, held = None, 0
        if self._transport is not None and self.closing_since is None:
            room, held = self._commons.room_of(self.standing), self._decoder.held
        if self._room is not None:
            self._room.held -= self._held
        if room is not None:
            room.held += held
        self._room, self._held = room, held

    def _go_on(self) -> None:
        """Handle the rest in another turn, unless the peer must read first."""
        if self.wants_a_turn:
            self._commons.turns.enlist(self)
        self._pace()

    @property
    def _is_held_back(self) -> bool:
        """Whether enough answers wait for this device already, or it has to rest."""
        if self._transport is None:
            return False
        return self._resting or ((self._congested or self._outgoing.unreleased > _HIGH_WATER) and not self.is_hub)

    def become_link(self) -> Link:
        """Tell the core that this connection exists; under which number."""
        link = self.link = self._engine.take_link(self)
        self._engine.feed(LinkUp(link, *self.origin))
        return link

    def _unlink(self) -> None:
        if self.link is not None:
            link, self.link = self.link, None
            self._engine.feed(LinkDown(link))
            self._engine.ports.pop(link, None)

    def _pace(self) -> None:
        """Read only while what was read is handled and, from a device, while it takes its answers.

        Two hubs that waited for each other to read would wait for ever; between them only the write limit counts.
        """
        wanted = not self._decoder.is_ready and not self._is_held_back
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
        if self._transport is None:
            return False
        return self._outgoing.unreleased + self._outgoing.waiting > self.write_limit() // 2

    def may_register(self) -> bool:
        """Whether its address has registrations left."""
        return True

    def has_failed(self) -> None:
        """An authentication on this connection was refused."""

    def left_waiting(self, requests: int) -> None:
        """It is a link no longer, and other hubs are still at work on so many of its requests."""

    def put(self, data: bytes, *, can_wait: bool) -> bool:
        return self._outgoing.put(data, can_wait=can_wait)

    def put_close(self) -> bool:
        self.link = None
        self.closing_since = self._loop.time()
        return self._outgoing.put(CLOSE, can_wait=False)

    def seal(self) -> None:
        self._outgoing.seal()

    def release(self) -> None:
        if not self._outgoing.release():
            return
        if self._outgoing.waiting > self.write_limit() + self._limits.opaque_payload:
            # The last opaque frame that was let in may have been as long as that.
            self._observer.event("slow_reader", logging.WARNING, peer=self.peer, link=self.link)
            self.drop("slow_reader", at_once=True)
        self._go_on()

    def _written(self) -> None:
        if self._ended:
            self.end_if_done()

    def write_limit(self) -> int:
        """How many bytes may wait for this peer."""
        return self._limits.hub_write_buffer if self.is_hub else self._limits.write_buffer

    @property
    def standing(self) -> Standing:
        """What is at the other end."""
        session = self._engine.state.links.get(self.link) if self.link is not None else None
        if session is None:
            return _STRANGER
        return _HUB if session.is_hub else Standing.DEVICE

    @property
    def is_hub(self) -> bool:
        """Whether a hub is at the other end."""
        return self.standing is _HUB

    def end_if_done(self) -> None:
        """After the peer's last word: close once nothing is left to answer."""
        waits = self.link is not None and self._engine.state.index.waiting.get(self.link)
        leaves = self._outgoing.is_unreleased or self._outgoing.is_kept
        if not (self._decoder.is_ready or self.enlisted or leaves or waits):
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
        elif self._outgoing.is_unreleased:
            # Before the engine's next commit, so what was put leaves first.
            if self._outgoing.put(CLOSE, can_wait=False):
                self._engine.touch(self)
        elif self._outgoing.is_kept:
            self._outgoing.close_after_kept()
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
        """Check the limits that depend on who the peer is."""
        limits = self._limits
        standing = self.standing
        if standing is _STRANGER:
            if limits.unauthenticated_seconds and now - self.unbound_since > limits.unauthenticated_seconds:
                self.drop("unauthenticated")
            return
        self.unbound_since = now
        if limits.idle_seconds and standing is not _HUB and now - self.last_read > limits.idle_seconds:
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
            self._outgoing.write_kept(self._outgoing.kept_size)
            self._transport.close()

    def abort(self) -> None:
        """End without a word."""
        if self._transport is not None:
            self._transport.abort()
