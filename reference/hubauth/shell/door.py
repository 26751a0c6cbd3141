"""The operator's door: a socket in the data directory, for nobody but the owner of that directory.

A command goes through the engine like anything else that happens, and whoever gave it hears of what came of it when
the journal has it. A revoke goes on being answered until every neighbour has acknowledged it, or its time is over.
"""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from hubauth.core.inputs import OperatorInvalidate, OperatorRevoke
from hubauth.core.messages import CODES, PermsInvalidate, Revoke
from hubauth.core.outputs import Note, NoteKind, Tell, Unconfirmed
from hubauth.core.transition import Step
from hubauth.shell.blocks import FILE_MODE
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.doorway import (
    LINE_BYTES,
    Answered,
    AnyReply,
    AnyRequest,
    Done,
    InvalidateRequest,
    Problem,
    ReloadRequest,
    Revoked,
    RevokeRequest,
    Status,
    StatusRequest,
    read_request,
    socket_name,
    written,
)
from hubauth.shell.engine import Engine
from hubauth.shell.observe import say
from hubauth.shell.status import is_settled, neighbours_of, standings

_CALLERS = 16
_REQUEST_SECONDS = 5.0
"""For the one line that a caller has to say."""
_LAST_WORD_SECONDS = 30.0
"""For the journal to take a command, and for a caller to take its answers."""
_ANSWERS = 1000
"""Of one revoke, that are said."""
_PEER = struct.Struct("3i")


@frozen
class House:
    """What there is behind the door."""

    engine: Engine
    status: Callable[[], Status]
    reload: Callable[[], None]
    """Raises ConfigurationError."""


class Caller:
    """One connection to the door, which brings one command."""

    def __init__(self, engine: Engine, writer: asyncio.StreamWriter) -> None:
        self._engine = engine
        self._writer = writer
        self._said: list[bytes] = []
        self._sealed: list[bytes] = []
        self._revoke: Revoke | None = None
        """What it still waits for."""
        self._told: list[int] = []
        """The neighbours that have to acknowledge it."""
        self._asked: list[int] = []
        """Those of them that may not have done so yet."""
        self._unconfirmed: dict[int, bool] = {}
        """Plain hubs that have not answered it, and whether it was sent to them at all."""
        self._answers = 0
        self._finished = False
        self.finished = asyncio.Event()
        """Its last line has been written."""

    # What it wants

    def revoke(self, command: OperatorRevoke) -> None:
        """Revoke, and wait for what comes of it."""
        self._revoke = command.revoke
        self._engine.listeners.append(self)
        done = self._engine.feed(command)
        self._told = neighbours_of(self._engine.policy, self._engine.state)
        self._asked = list(self._told)
        refused = _refusal(done)
        if refused is not None:
            self._forget()
            self.finish(refused)
        self._engine.touch(self)

    def give_up(self, ended: Literal["waited", "stopping"]) -> None:
        """Wait no longer for what comes of a revoke; say how far it has come."""
        if self._revoke is not None:
            self._end(ended)
            self._engine.touch(self)

    def finish(self, reply: AnyReply) -> None:
        """Say the last line."""
        if not self._finished:
            self._said.append(written(reply))
            self._finished = True
            self._engine.touch(self)

    def leave(self) -> None:
        """It is gone, or sent away, and hears nothing more."""
        self._forget()
        self._writer.transport.abort()
        self.finished.set()

    @property
    def has_asked(self) -> bool:
        """Whether it is owed an outcome."""
        return self._finished or self._revoke is not None

    def _end(self, ended: Literal["acknowledged", "waited", "stopping"]) -> None:
        assert self._revoke is not None
        neighbours = standings(self._engine.state, self._told, self._revoke, self._unconfirmed)
        self._forget()
        unsaid = max(self._answers - _ANSWERS, 0)
        self._said.append(written(Revoked(ended=ended, neighbours=neighbours, unsaid=unsaid)))
        self._finished = True

    def _forget(self) -> None:
        if self._revoke is not None:
            self._revoke = None
            self._engine.listeners.remove(self)

    # From the engine

    def tell(self, told: Tell) -> None:
        if self._revoke is None or told.device_id != self._revoke.device_id:
            return
        self._answers += 1
        if self._answers <= _ANSWERS:
            code = CODES[told.reason]
            self._said.append(
                written(Answered(hub=told.hub, node_id=told.node_id, code=code, reason=told.reason.value))
            )

    def unconfirmed(self, told: Unconfirmed) -> None:
        if self._revoke is not None and told.device_id == self._revoke.device_id:
            self._unconfirmed[told.hub] = told.sent

    def seal(self) -> None:
        if self._revoke is not None:
            while self._asked and is_settled(self._engine.state, self._asked[-1], self._revoke):
                self._asked.pop()
            if not self._asked:
                self._end("waited" if self._unconfirmed else "acknowledged")
        self._sealed += self._said
        self._said = []

    def release(self) -> None:
        lines, self._sealed = self._sealed, []
        if lines and not self._writer.is_closing():
            self._writer.write(b"".join(lines))
        if self._finished and not self._said:
            self.finished.set()


def _refusal(done: Step | None) -> Problem | None:
    if done is None:
        return Problem(error="the hub has failed at this; its log says more")
    for output in done.outputs:
        if isinstance(output, Note) and output.kind is NoteKind.COMMAND_REFUSED:
            return Problem(error=output.detail, refused=True)
    return None


class Door:
    """Open from ``open`` to ``close``."""

    def __init__(self, house: House, directory: Path) -> None:
        self._house = house
        self._directory = directory
        self._callers: set[Caller] = set()
        self._visits: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Let callers in. The directory must be this hub's alone. Raises OSError."""
        listening = _bind(self._directory)
        try:
            self._server = await asyncio.start_unix_server(self._visit, sock=listening, limit=LINE_BYTES)
        except BaseException:
            listening.close()
            raise

    async def stop(self, seconds: float) -> None:
        """Accept no more callers, and tell each one that waits how far its command has come."""
        if self._server is not None:
            self._server.close()
        for caller in self._callers:
            caller.give_up("stopping")
            if self._house.engine.failed or not caller.has_asked:
                caller.leave()
        if self._visits:
            await asyncio.wait(self._visits, timeout=seconds)
        for caller in self._callers:
            caller.leave()
        if self._visits:
            await asyncio.wait(self._visits)

    def close(self) -> None:
        """Take the socket away."""
        if self._server is not None:
            self._server.close()
            self._server = None
            with suppress(OSError), socket_name(self._directory) as name:
                Path(name).unlink()

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visit = asyncio.current_task()
        assert visit is not None
        unwelcome = self._unwelcome(writer)
        if unwelcome:
            writer.write(written(Problem(error=unwelcome)))
            writer.close()
            return
        caller = Caller(self._house.engine, writer)
        self._callers.add(caller)
        self._visits.add(visit)
        try:
            await self._serve(caller, reader)
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await caller.finished.wait()
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            pass  # whoever does not listen has gone
        finally:
            caller.leave()
            self._callers.discard(caller)
            self._visits.discard(visit)

    def _unwelcome(self, writer: asyncio.StreamWriter) -> str:
        """Why a caller is sent away at once; empty: it is not."""
        if len(self._callers) >= _CALLERS:
            return f"{_CALLERS} others are being served"
        if hasattr(socket, "SO_PEERCRED"):
            peer = writer.get_extra_info("socket")
            _, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if user not in (0, os.geteuid()):
                say(logging.WARNING, "unwelcome", detail="somebody else is at the operator's door", user=user)
                return "this door is for the owner of the hub"
        return ""

    async def _serve(self, caller: Caller, reader: asyncio.StreamReader) -> None:
        """Read the command, carry it out, and stay with a caller that waits for more."""
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                request = read_request(await reader.readuntil(b"\n"))
        except asyncio.IncompleteReadError:
            caller.finish(Problem(error="not a request: the line does not end"))
        except asyncio.LimitOverrunError:
            caller.finish(Problem(error=f"not a request: longer than {LINE_BYTES} bytes"))
        except TimeoutError:
            caller.finish(Problem(error="not a request: it takes too long"))
        except ValueError as problem:
            caller.finish(Problem(error=str(problem)))
        else:
            self._carry_out(caller, request)
            if isinstance(request, RevokeRequest):
                # One that has nothing more to say, or says more than was asked of it, does not wait.
                await _first(request.wait, caller.finished.wait(), reader.read(1))
                caller.give_up("waited")

    def _carry_out(self, caller: Caller, request: AnyRequest) -> None:
        house = self._house
        match request:
            case RevokeRequest(device_id=device_id, node_id=node_id, credential=credential):
                say(logging.INFO, "operator_revokes", device_id=device_id, node_id=node_id)
                caller.revoke(OperatorRevoke(Revoke(device_id, node_id, credential)))
            case InvalidateRequest(node_ids=node_ids, refresh=refresh):
                say(logging.INFO, "operator_invalidates", nodes=",".join(map(str, node_ids)) or "all", refresh=refresh)
                done = house.engine.feed(OperatorInvalidate(PermsInvalidate(node_ids, "", refresh)))
                caller.finish(_refusal(done) or Done())
            case StatusRequest():
                caller.finish(house.status())
            case ReloadRequest():
                try:
                    house.reload()
                except ConfigurationError as problem:
                    caller.finish(Problem(error=str(problem), hint=problem.hint, refused=True))
                else:
                    caller.finish(Done())


async def _first(seconds: float, *waits: Coroutine[Any, Any, object]) -> None:
    """Wait for the first of these, but not for ever."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _bind(directory: Path) -> socket.socket:
    """The socket, which a hub that was killed may have left behind: the directory is locked, so it is nobody's."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_name(directory) as name:
            Path(name).unlink(missing_ok=True)
            listening.bind(name)
            # Before anybody can connect: that takes listening.
            Path(name).chmod(FILE_MODE)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening
