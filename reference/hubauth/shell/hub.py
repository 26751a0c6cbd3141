"""A running hub: listens, keeps its parent, watches its limits, and stops without losing anything."""

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PolicyChanged
from hubauth.core.policy import Policy, Trust
from hubauth.shell.addresses import Address
from hubauth.shell.commons import Commons
from hubauth.shell.configuration import ConfigurationError, HubConfig
from hubauth.shell.connection import Connection
from hubauth.shell.door import Door, House
from hubauth.shell.doorway import Status
from hubauth.shell.engine import Engine
from hubauth.shell.entropy import draw_journal
from hubauth.shell.journal import Journal, Recovered
from hubauth.shell.neighbourhood import Neighbourhood
from hubauth.shell.observe import Observer, say
from hubauth.shell.origins import Origins
from hubauth.shell.parent import ParentLine
from hubauth.shell.peers import ChildConnection
from hubauth.shell.policies import encode_policy
from hubauth.shell.snapshot import Snapshot
from hubauth.shell.sockets import address_of
from hubauth.shell.status import status_of
from hubauth.shell.tls import parent_context, server_context
from hubauth.shell.watching import Watcher
from hubauth.trace.recorder import Recorder
from hubauth.trace.rows import Recording

_ACCEPT_PAUSE = 0.1
_ACCEPTED_PER_TURN = 8
_CHECKED_PER_TURN = 64
_TLS_HANDSHAKE_SECONDS = 10.0
_OTHER_DESCRIPTORS = 64
"""For journal, snapshot, listening sockets, the parent, metrics, the operator and the event loop itself."""


class Hub:
    """One hub. ``start`` returns when it serves; ``stop`` when everything it did is safe."""

    def __init__(
        self,
        config: HubConfig,
        recording: Recording | None = None,
        read_again: Callable[[], HubConfig] | None = None,
        *,
        watches: bool = False,
    ) -> None:
        self.config = config
        self._read_again = read_again
        """The configuration as its file says now. Raises ConfigurationError."""
        self.observer = Observer()
        self.failed = asyncio.Event()
        """The journal could not be written: nothing is answered any more, and the process should end."""
        self._watches = watches
        self._watcher: Watcher | None = None
        self._recording = recording
        self._recorder: Recorder | None = None
        self._journal: Journal | None = None
        self._connections: set[ChildConnection] = set()
        self._neighbourhood = Neighbourhood(config.per_address)
        self._origins = Origins(config.plain_hubs)
        self._room = asyncio.Semaphore(_places(config.limits.connections))
        self._tasks: set[asyncio.Task[None]] = set()
        self._welcoming: set[asyncio.Task[None]] = set()
        """Accepted, but no connection yet."""
        self._socket: socket.socket | None = None
        self._line: ParentLine | None = None
        self._door: Door | None = None

    async def start(self) -> None:
        """Recover, listen, connect.

        Raises ConfigurationError, StorageError, Damaged, TraceError or OSError; then nothing runs.
        """
        config = self.config
        tls = server_context(config.tls) if config.tls is not None else None
        upwards = parent_context(config.parenting) if config.parenting is not None else None
        try:
            self.engine = self._open_engine()
            self.commons = Commons.of(self.engine, config.limits, self.observer, self._neighbourhood, self._origins)
            await self.engine.settle()
            await self._open_door()
            self._socket = _listen(config.listen, config.listening.backlog)
        except BaseException:
            self._close_files()
            raise
        self._spawn(self._accept(self._socket, tls), self._tasks)
        self._spawn(self._watch(), self._tasks)
        if config.parent is not None and config.parenting is not None:
            self._line = ParentLine(self.commons, config.parent, config.parenting, upwards)
            self._spawn(self._line.run(), self._tasks)
        if config.policy.trust is Trust.OPEN:
            say(logging.WARNING, "open_trust", detail="anyone may claim to be a hub: for laboratories only")
        if config.storage.durability == "none":
            say(logging.WARNING, "not_durable", detail="a restart will forget everything")
        say(logging.INFO, "listening", address=str(self.address), node_id=self.engine.state.node_id)

    @property
    def address(self) -> Address:
        """Where it listens, with the port it was given."""
        assert self._socket is not None
        host, port = self._socket.getsockname()[:2]
        return Address(host, port)

    @property
    def serves(self) -> bool:
        """Whether ``start`` has come to its end."""
        return self._socket is not None

    @property
    def connections(self) -> int:
        """How many devices and child hubs are connected."""
        return len(self._connections)

    @property
    def broken_promises(self) -> dict[str, int]:
        """Promise -> how often it was broken, as far as anybody watches."""
        return dict(self._watcher.broken) if self._watcher is not None else {}

    async def stop(self) -> None:
        """Take nothing new, finish what was begun, close every connection, and leave the journal complete."""
        await _cancel(self._tasks)
        if self._door is not None:
            await self._door.stop(self.config.limits.close_seconds)
        if self._socket is not None:
            self._socket.close()
        if self._welcoming:
            # Not cancelled at once: a connection that is being made may never hear that it was closed.
            await asyncio.wait(self._welcoming, timeout=self.config.limits.close_seconds)
        await _cancel(self._welcoming)
        lines = [] if self._line is None or self._line.connection is None else [self._line.connection]
        open_connections = [*self._connections, *lines]
        # Whoever keeps asking would keep the engine from ever settling.
        for connection in open_connections:
            connection.turn_deaf()
        await self.engine.settle()
        for connection in open_connections:
            connection.shut()
        if not await _closed(open_connections, self.config.limits.close_seconds):
            for connection in open_connections:
                connection.abort()
            await _closed(open_connections, self.config.limits.close_seconds)
        await self.engine.stop()
        self._close_files()
        say(logging.INFO, "stopped")

    # Another configuration

    def reconfigure(self, policy: Policy) -> None:
        """Change the policy of the running hub. Raises ConfigurationError if it cannot follow the old one."""
        refused = self.engine.change_policy(PolicyChanged(policy))
        if refused is not None:
            raise ConfigurationError("", refused)

    def reload(self) -> None:
        """Take over the protocol's part of the configuration's file; the rest needs a restart.

        Raises ConfigurationError; then everything stays as it was.
        """
        try:
            if self._read_again is None or not self.serves:
                raise ConfigurationError("", "there is no file to reload, or the hub is only starting")
            config = self._read_again()
            self.reconfigure(config.policy)
        except ConfigurationError as problem:
            say(logging.ERROR, "reload_refused", detail=str(problem))
            raise
        self._origins.learn(config.plain_hubs)
        say(logging.INFO, "reloaded")

    # Inside

    async def _open_door(self) -> None:
        """A hub without a directory of its own has no place for one, and one without a door can still serve."""
        journal = self._journal
        if journal is None:
            return
        parent = str(self.config.parent or "")

        def status() -> Status:
            engine = self.engine
            told = status_of(engine.policy, engine.state, engine.presence, parent, (journal.generation, engine.records))
            return replace(told, broken=self.broken_promises) if self._watches else told

        door = Door(House(self.engine, status, self.reload), Path(self._directory))
        try:
            await door.open()
        except OSError as problem:
            say(logging.WARNING, "no_door", detail=f"no operator can tell this hub anything: {problem}")
        else:
            self._door = door

    def _open_engine(self) -> Engine:
        config, policy = self.config, self.config.policy
        recovered = Recovered(None)
        if config.storage.durability != "none":
            directory = Path(config.storage.data_dir)
            self._journal, recovered = Journal.open(directory, config.storage.durability)
            for note in recovered.notes:
                say(logging.WARNING, "recovered", detail=note)
        hub = recovered.hub
        if hub is None:
            hub = Snapshot(policy, initial_state(policy, draw_journal()))
            if self._journal is not None:
                self._journal.begin(hub)
        else:
            say(logging.INFO, "recovered", devices=len(hub.state.whitelist), records=recovered.records)
        if self._recording is not None:
            self._recorder = Recorder(self._recording, hub.policy, hub.state)
        if self._watches:
            self._watcher = Watcher(hub.policy, hub.state, self.observer)
        records = config.storage.snapshot_records
        engine = Engine(hub, self._journal, self.observer, self._fail, records, self._recorder, self._watcher)
        engine.records = recovered.records
        if recovered.forgets:
            engine.forgetting.soon()
        if encode_policy(hub.policy) != encode_policy(policy):
            refused = engine.change_policy(PolicyChanged(policy))
            if refused is not None:
                engine.failed = True  # nothing of this attempt is written
                self._close_files(in_order=False)
                raise ConfigurationError("", refused, f"or begin anew with another data_dir than {self._directory}")
        return engine

    @property
    def _directory(self) -> str:
        return self.config.storage.data_dir

    def _close_files(self, *, in_order: bool = True) -> None:
        if self._door is not None:
            # While the directory is still this hub's.
            self._door.close()
            self._door = None
        if self._journal is not None:
            self._journal.close()
            self._journal = None
        if self._recorder is not None:
            self._recorder.close(in_order=in_order and not self.failed.is_set())
            self._recorder = None

    def _fail(self, problem: BaseException) -> None:  # noqa: ARG002 - the engine has logged it
        for connection in list(self._connections):
            connection.abort()
        self.failed.set()

    def _spawn(self, work: Coroutine[Any, Any, None], tasks: "set[asyncio.Task[None]]") -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and task.exception() is not None:
            say(logging.ERROR, "task_failed", error=task.exception())

    async def _accept(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept connections while there is room; further ones stay in the operating system's queue."""
        loop = asyncio.get_running_loop()
        while True:
            await self._room.acquire()
            try:
                accepted, name = await loop.sock_accept(listening)
            except OSError as problem:
                self._room.release()
                say(logging.ERROR, "accept_failed", detail=str(problem))
                await asyncio.sleep(_ACCEPT_PAUSE)
            except BaseException:
                self._room.release()
                raise
            else:
                self._take_in(accepted, name, tls)
                await self._accept_waiting(listening, tls)
                # With whoever waits already, sock_accept need not wait, and nobody else would have a turn.
                await asyncio.sleep(0)

    async def _accept_waiting(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Accept a few more connections that wait already: one per turn would take too long when turns are long."""
        for _ in range(_ACCEPTED_PER_TURN):
            if self._room.locked():
                return
            try:
                accepted, name = listening.accept()
            except OSError:
                return  # nobody, or what sock_accept will say
            await self._room.acquire()
            accepted.setblocking(False)
            self._take_in(accepted, name, tls)

    def _take_in(self, accepted: socket.socket, name: Any, tls: ssl.SSLContext | None) -> None:
        site = self._neighbourhood.site_of(name[0])
        too_many = self._neighbourhood.admits(site, asyncio.get_running_loop().time())
        if too_many:
            self.observer.alarm("limited", peer=address_of(name), detail=too_many)
            self._room.release()
            accepted.close()
        else:
            self.observer.count("accepted")
            self._spawn(self._welcome(accepted, site, tls), self._welcoming)

    def _leave(self, site: str) -> None:
        self._neighbourhood.left(site)
        self._room.release()

    async def _welcome(self, accepted: socket.socket, site: str, tls: ssl.SSLContext | None) -> None:
        made: list[ChildConnection] = []

        def protocol() -> ChildConnection:
            connection = ChildConnection(self.commons, self.config.header, site, self._connections, self._leave)
            made.append(connection)
            return connection

        handshake = {} if tls is None else {"ssl_handshake_timeout": _TLS_HANDSHAKE_SECONDS}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(protocol, accepted, ssl=tls, **handshake)
        except (OSError, TimeoutError) as problem:
            self.observer.event("handshake_failed", detail=str(problem))
            self.observer.count("closed", "handshake")
            if not made or made[0] not in self._connections:
                self._leave(site)
                accepted.close()

    async def _watch(self) -> None:
        """Look after connections that take too long."""
        limits = self.config.limits
        times = (limits.unauthenticated_seconds, limits.idle_seconds, limits.frame_seconds, limits.close_seconds)
        pause = max(min([seconds / 4 for seconds in times if seconds] + [1.0]), 0.02)
        loop = asyncio.get_running_loop()
        replenished = loop.time()
        while True:
            await asyncio.sleep(pause)
            now = loop.time()
            if now - replenished >= 1.0:
                self.observer.replenish()
                replenished = now
            for number, connection in enumerate(list(self._connections), 1):
                connection.check(now)
                if number % _CHECKED_PER_TURN == 0:
                    await asyncio.sleep(0)
            if self._line is not None and self._line.connection is not None:
                self._line.connection.check(now)


async def _cancel(tasks: "set[asyncio.Task[None]]") -> None:
    cancelled = list(tasks)
    for task in cancelled:
        task.cancel()
    if cancelled:
        await asyncio.wait(cancelled)


async def _closed(connections: Sequence[Connection], seconds: float) -> bool:
    """Wait until all are closed, but not for ever; whether they are."""
    deadline = asyncio.get_running_loop().time() + seconds
    while any(connection.is_open for connection in connections):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True


def _places(wanted: int) -> int:
    """How many connections there are descriptors for, the process's limit raised as far as it may be.

    Accepting the last descriptor would leave none for the journal.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_DESCRIPTORS
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    places = max(min(wanted, soft - _OTHER_DESCRIPTORS), 1)
    if places < wanted:
        say(logging.WARNING, "few_descriptors", connections=places, detail=f"limits.connections is {wanted}")
    return places


def _listen(address: Address, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family, backlog=backlog)
    except OSError as problem:
        reason = f"cannot listen on {address}: {problem.strerror or problem}"
        raise ConfigurationError("listen.address", reason) from problem
    listening.setblocking(False)
    return listening
