"""The heart of a hub: one state, one step at a time, outputs released only after the journal has what they rest on.

All inputs of one turn of the event loop form a batch (those of a long turn, several). What the batch changed for good
is appended to the journal with one write; only then do its outputs leave, one write per connection. With ``fsync`` the
sync runs in a thread while the next batch gathers.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from struct import error as StructError

from hubauth.core.inputs import PARENT, Input, Link, PolicyChanged, Received, TimerFired
from hubauth.core.messages import SUB_PROTO, AssistRegister, Frame, Register
from hubauth.core.model import State
from hubauth.core.outputs import CancelTimer, Close, Note, Output, Send, StartTimer, Tell, Unconfirmed
from hubauth.core.recovery import lasting_changes, lets_go
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.shell.alarms import watch_answer, watch_registration
from hubauth.shell.entropy import Credentials
from hubauth.shell.forgetting import Forgetting
from hubauth.shell.journal import Journal
from hubauth.shell.observe import Observer, say
from hubauth.shell.ports import Batched, Listener, Port
from hubauth.shell.records import Record, Row, encode_records, policy_row, record_of
from hubauth.shell.snapshot import Snapshot
from hubauth.shell.status import Presence
from hubauth.shell.watching import Watcher
from hubauth.trace.recorder import Recorder
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import NotInDialect
from hubauth.wire.framing import RawFrame, encode_frame, read_frame
from hubauth.wire.header import Version

wall_clock = time.time
_ISSUING = (Register, AssistRegister)
_RETRY_ANNOUNCING = 0.02
_RECORDS_IN_FLIGHT = 10_000
_BYTES_IN_FLIGHT = 16 * 1024 * 1024
_FRAMES_PER_BATCH = 64


class Engine:
    """Feeds inputs to the core and does what it asks for."""

    def __init__(
        self,
        hub: Snapshot,
        journal: Journal | None,
        observer: Observer,
        on_failure: Callable[[BaseException], None],
        snapshot_records: int,
        recorder: Recorder | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self.policy, self.state, self._next_link = hub.policy, hub.state, 1
        self._codec = CODECS[hub.policy.dialect]
        self._journal = journal
        self._observer = observer
        self._on_failure = on_failure
        self._snapshot_records = self._snapshot_due = snapshot_records
        self._recorder = recorder
        self._watcher = watcher
        self._credentials = Credentials()
        self._loop = asyncio.get_running_loop()
        self.ports: dict[Link, Port] = {}
        self.presence = Presence()
        self.listeners: list[Listener] = []
        """Every batch is sealed and released for them, too."""
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._records: list[Record] = []
        self._touched: list[Batched] = []
        self._sealed: list[Batched] = []
        self._scheduled = False
        self._taken = 0
        self._syncing: asyncio.Future[None] | None = None
        self._snapshotting: asyncio.Task[None] | None = None
        self._rotation: asyncio.Future[Snapshot] | None = None
        self.forgetting = Forgetting(self._loop, self._forget)
        self._now = 0
        self._put = 0
        """Bytes of the batch that is gathering."""
        self.bytes_put = 0
        """Bytes of all batches."""
        self.frames_put = 0
        self._written: tuple[Frame, Version, bytes] | None = None
        """The last frame and its bytes: a broadcast is written once."""
        self.records = 0
        """Since the generation began."""
        self.failed = False

    # Inputs

    def take_link(self, port: Port) -> Link:
        """A number for a new child link, never used before in this life of the hub."""
        link = self._next_link
        self._next_link = link + 1
        self.ports[link] = port
        return link

    def receive(self, link: Link, raw: RawFrame) -> None:
        """A frame came in."""
        frame = read_frame(self._codec, raw).frame
        if isinstance(frame.body, Register) and not self.ports[link].may_register():
            self.ports[link].drop("registrations")
            return
        fresh = self._credentials.draw() if isinstance(frame.body, _ISSUING) else ""
        happened = Received(link, frame, fresh)
        done = self._step(happened)
        if done is None:
            # Unanswered, but not silently: the peer sees its connection go.
            self.ports[link].drop("step_failed")
            return
        if fresh:
            watch_registration(self._observer, self.ports[link], self.policy, frame.body, done)
        if self._recorder is not None:
            self._recorder.received(link, raw, self.ports[link].version)
        self._advance(happened, done)
        self._perform(done.outputs)
        self._taken += 1
        if self._taken >= _FRAMES_PER_BATCH:
            # A long turn is cut into batches, so that the first need not wait for the last.
            self._commit()

    def feed(self, happened: Input) -> Step | None:
        """Anything else happened; what came of it, None if the core has failed."""
        done = self._step(happened)
        if done is not None:
            if self._recorder is not None:
                self._recorder.happened(happened, self.ports)
            self._advance(happened, done)
            self._perform(done.outputs)
        return done

    @property
    def overloaded(self) -> bool:
        """Whether the journal cannot keep up, and nothing more should be read for a moment."""
        return len(self._records) >= _RECORDS_IN_FLIGHT or self._put >= _BYTES_IN_FLIGHT

    def change_policy(self, changed: PolicyChanged) -> str | None:
        """Take over a new configuration; why not, if it is refused."""
        self._turn()
        done = step(self.policy, self.state, changed)
        accepted = done.policy is changed.policy
        if accepted:
            # Journaled even if the state stays the same: recovery must go on under the new policy.
            self._advance(changed, done, policy_row(changed.policy))
            self.policy = changed.policy
        if self._recorder is not None:
            self._recorder.happened(changed, self.ports)
        self._perform(done.outputs)
        return None if accepted else next(output.detail for output in done.outputs if isinstance(output, Note))

    def _step(self, happened: Input) -> Step | None:
        """Let the core take a step. None: it raised, which is a bug; the state is still the one from before."""
        self._turn()
        try:
            done = step(self.policy, self.state, happened)
        except Exception as problem:
            say(logging.CRITICAL, "step_failed", error=problem, input=type(happened).__name__)
            self._observer.count("step_failures")
            return None
        self._observer.decided(happened, done)
        return done

    def _advance(self, happened: Input, done: Step, *rows: Row) -> None:
        """Take over the next state, and add to the batch the record of what must outlive the process."""
        before, self.state = self.state, done.state
        if self._watcher is not None:
            self._watcher.follow(before, happened, done)
        if done.state.links is not before.links or done.state.parent_present != before.parent_present:
            self.presence.follow(before, done)
            self._tell_who_left(before, done)
        changes = lasting_changes(done.changes)
        if changes or rows:
            self._records.append([*rows, *record_of(changes)])
            if lets_go(done.changes):
                self.forgetting.soon()

    def _tell_who_left(self, before: State, done: Step) -> None:
        """What a link has asked of other hubs keeps them at work, also when it is gone."""
        for table, link, _, after in done.changes:
            if table == "links" and after is None and link in self.ports:
                session, unanswered = before.links[link], before.index.waiting.get(link)
                if unanswered and (session is None or not session.is_hub):
                    self.ports[link].left_waiting(len(unanswered))

    def _turn(self) -> None:
        if not self._scheduled:
            # First of all: a turn that is begun and never committed would be the hub's last.
            self._loop.call_soon(self._commit)
            self._scheduled = True
            self._now = int(wall_clock()) & 0xFFFFFFFF
            self._touched += self.listeners
            if self._recorder is not None:
                self._recorder.checkpoint(self.policy, self.state)
                self._touched.append(self._recorder)

    def touch(self, port: Batched) -> None:
        """A port has something to release that no step has put there."""
        self._turn()
        self._touched.append(port)

    # Outputs

    def _perform(self, outputs: tuple[Output, ...]) -> None:
        for output in outputs:
            if isinstance(output, Send):
                self._send(output)
            elif isinstance(output, StartTimer):
                self._timers[output.timer] = self._loop.call_later(output.seconds, self._fire, output.timer)
            elif isinstance(output, CancelTimer):
                timer = self._timers.pop(output.timer, None)
                if timer is not None:
                    timer.cancel()
            elif isinstance(output, Note):
                port = self.ports.get(output.link) if output.link is not None else None
                self._observer.note(output, port.peer if port is not None else "")
            elif isinstance(output, Tell):
                self._observer.tell(output)
                for listener in self.listeners:
                    listener.tell(output)
            elif isinstance(output, Unconfirmed):
                self._observer.unconfirmed(output)
                for listener in self.listeners:
                    listener.unconfirmed(output)
            elif isinstance(output, Close):
                closing = self.ports.pop(output.link, None)
                if self._recorder is not None and closing is not None:
                    self._recorder.closed(output.link)
                if closing is not None and closing.put_close():
                    self._touched.append(closing)

    def _send(self, output: Send) -> None:
        port, frame = self.ports.get(output.link), output.frame
        version = Version.V1 if port is None else port.version
        if frame.sub_proto != SUB_PROTO and port is not None and port.crowded:
            # Whoever floods loses its own frames; it costs nobody else a connection.
            self._observer.event("unsent", peer=port.peer, link=output.link, detail="too much waits for this peer")
            self._observer.count("unsent", "crowded")
            return
        try:
            data = self._bytes_of(frame, version)
        except (NotInDialect, StructError, ValueError) as problem:
            say(logging.CRITICAL, "unsent", link=output.link, detail=str(problem))
            self._observer.count("unsent")
            return
        self._put += len(data)
        self.bytes_put += len(data)
        self.frames_put += 1
        if self._recorder is not None:
            self._recorder.sent(output.link, data, version)
        if port is None:
            # Decided and lost: nobody is at the other end any more.
            self._observer.event("unsent", link=output.link, detail="the connection is gone")
            self._observer.count("unsent")
            return
        if port.put(data, can_wait=frame.sub_proto != SUB_PROTO):
            self._touched.append(port)
        watch_answer(self._observer, port, self.policy, self.state, frame.body)

    def _bytes_of(self, frame: Frame, version: Version) -> bytes:
        last = self._written
        if last is not None and last[0] is frame and last[1] is version:
            return last[2]
        data = encode_frame(version, self._codec, frame, self._now)
        if frame.sub_proto != SUB_PROTO:
            self._written = frame, version, data
        return data

    def _fire(self, timer: int) -> None:
        parent = self.ports.get(PARENT)
        if timer == self.state.announce_timer and parent is not None and parent.congested:
            self._timers[timer] = self._loop.call_later(_RETRY_ANNOUNCING, self._fire, timer)
            return
        self._timers.pop(timer, None)
        self.feed(TimerFired(timer))

    # Group commit

    def end_turn(self) -> None:
        """Nothing more will be handled for now: what was done need not wait for the event loop to come round."""
        if self._scheduled:
            self._commit()

    def _commit(self) -> None:
        self._scheduled = False
        self._taken = 0
        if self._syncing is not None or self.failed:
            return
        records, self._records = self._records, []
        ports, self._touched = self._touched, []
        self._put, self._written = 0, None
        for port in ports:
            port.seal()
        if records and self._journal is not None:
            try:
                self._journal.append(encode_records(records))
            except OSError as problem:
                self._fail(problem)
                return
            self.records += len(records)
            if self._recorder is not None:
                # With the journal and not after the sync: a hub that is killed then begins again where its trace ends.
                self._recorder.release()
            if self._journal.durability == "fsync":
                self._sealed = ports
                self._syncing = self._loop.run_in_executor(None, self._journal.sync)
                self._syncing.add_done_callback(self._synced)
                return
        self._release(ports)

    def _synced(self, done: "asyncio.Future[None]") -> None:
        if self.failed:
            return
        problem = done.exception() if not done.cancelled() else asyncio.CancelledError()
        if problem is not None:
            self._fail(problem)
            return
        self._syncing = None
        ports, self._sealed = self._sealed, []
        self._release(ports)
        if self._records or self._touched:
            self._commit()

    def _release(self, ports: list[Batched]) -> None:
        """Let out a batch that is safe, if it still is where a restart would look for it."""
        if self._journal is not None and ports:
            try:
                self._journal.confirm()
            except OSError as problem:
                self._fail(problem)
                return
        for port in ports:
            port.release()
        self._at_rest()

    def _fail(self, problem: BaseException) -> None:
        """The journal is lost: nothing may be answered any more."""
        self.failed = True
        say(logging.CRITICAL, "journal_failed", detail=str(problem))
        self._on_failure(problem)

    async def settle(self) -> None:
        """Return when everything that happened so far is safe and its outputs are released."""
        while not self.failed and (self._scheduled or self._syncing is not None):
            if self._syncing is not None:
                await asyncio.wait([self._syncing])
            await asyncio.sleep(0)

    # Snapshots

    def _at_rest(self) -> None:
        """Between two batches: the only moment at which a generation can end."""
        if self._journal is None or self.records < self._snapshot_due:
            return
        if self._snapshotting is None:
            self._snapshotting = self._loop.create_task(self._snapshot(self._journal))
        elif self._rotation is not None and not self._rotation.done():
            self._rotate(self._journal, self._rotation)

    def _rotate(self, journal: Journal, rotation: "asyncio.Future[Snapshot]") -> None:
        hub = Snapshot(self.policy, self.state)
        records, self._records = self._records, []
        try:
            if records:
                journal.append(encode_records(records))
                if self._recorder is not None:
                    self._recorder.seal()
                    self._recorder.release()
            journal.sync()
            journal.confirm()
        except OSError as problem:
            self._fail(problem)
            rotation.cancel()
            return
        try:
            journal.begin(hub)
        except OSError as problem:
            # Too little of something for a new file. The old one is whole and goes on.
            self.records += len(records)
            rotation.set_exception(problem)
            return
        self.records, self._snapshot_due = 0, self._snapshot_records
        rotation.set_result(hub)

    async def _snapshot(self, journal: Journal) -> None:
        """End the generation, then write the snapshot of the next in the background, a small piece per turn."""
        started, forgets = time.monotonic(), self._snapshot_due == 0
        try:
            # Most of the old journal is synced in a thread, so that little is left for the moment of change.
            try:
                await self._loop.run_in_executor(None, journal.sync)
            except OSError as problem:
                # A write that was lost is reported once: the next sync would know nothing of it.
                self._fail(problem)
                return
            self._rotation = self._loop.create_future()
            self._turn()
            hub = await self._rotation
            for _ in journal.write_snapshot(hub):
                await asyncio.sleep(0.001)
            await self._loop.run_in_executor(None, journal.finish_snapshot)
            self._observer.count("snapshots")
            say(logging.INFO, "snapshot", seconds=round(time.monotonic() - started, 2))
        except OSError as problem:
            say(logging.ERROR, "snapshot_failed", detail=str(problem))
            journal.discard_snapshot()
            self._snapshot_due = self.records + self._snapshot_records
            if forgets:
                self.forgetting.soon()
        finally:
            self._rotation = self._snapshotting = None
            self.forgetting.rest(time.monotonic() - started)

    def _forget(self) -> None:
        """End the generation of the journal now. A snapshot under way may hold what is to be forgotten: ask again."""
        if self._snapshotting is not None:
            self.forgetting.soon()
            return
        self._snapshot_due = 0
        self._turn()

    async def stop(self) -> None:
        """Let no timer fire any more and wait for what is under way."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.forgetting.stop()
        await self.settle()
        task = self._snapshotting
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
