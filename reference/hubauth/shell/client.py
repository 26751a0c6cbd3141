"""A device: the protocol from the other end, as an async class that keeps its connection and its session.

async with DeviceClient(Address("127.0.0.1", 7080), "mac-001122334455") as device:
    admitted = await device.register()
    print(admitted.node_id, admitted.credential)
"""

import asyncio
import random
import ssl
from collections.abc import Callable
from typing import Self

from attrs import frozen

from hubauth.core.messages import (
    CODES,
    MAX_NODE_ID,
    SUB_PROTO,
    Answer,
    Authenticate,
    Frame,
    GetPerms,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.shell.addresses import Address
from hubauth.shell.device_connection import DeviceConnection
from hubauth.wire.header import Version


class ClientError(Exception):
    """Something a device asked for did not work out."""


class Refused(ClientError):
    """The hub said no."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{CODES[answer.reason]} {answer.reason.value}")
        self.answer = answer

    @property
    def reason(self) -> Reason:
        return self.answer.reason


class Unavailable(ClientError):
    """There is no connection, or no answer in time."""


@frozen
class Options:
    """How to reach a hub."""

    dialect: Dialect = Dialect.AUTH
    version: Version = Version.V1
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    timeout: float = 10.0
    """Seconds for connecting, and for an answer."""
    retry_first: float = 0.1
    retry_most: float = 10.0


DEFAULTS = Options()


class DeviceClient:
    """One device. Connects when entered; after a lost connection connects and authenticates again by itself."""

    def __init__(
        self,
        address: Address,
        device_id: str,
        *,
        credential: str = "",
        node_id: int = 0,
        options: Options = DEFAULTS,
        on_frame: Callable[[Frame], None] | None = None,
    ) -> None:
        self.address, self.device_id, self.credential, self.node_id = address, device_id, credential, node_id
        self._options = options
        self._on_frame = on_frame
        self._admitted = False
        """Whether a lost session is to be restored."""
        self._wire: DeviceConnection | None = None
        self._connected = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._next_msg_id = 1
        self.sessions = 0
        """How often this device was admitted."""
        self.last_problem: Exception | None = None

    async def __aenter__(self) -> Self:
        self._keeper = asyncio.get_running_loop().create_task(self._keep())
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection and do not connect again."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
            self._keeper = None
        if self._wire is not None:
            await self._wire.close()
            self._wire = None
        self._fail_waiting("the device has hung up")

    # What a device can ask for

    async def register(self) -> Answer:
        """Get a node id and a credential, and be admitted with them."""
        return self._admit(await self._ask(Register(self.device_id), source=0))

    async def authenticate(self) -> Answer:
        """Be admitted with the credential from before."""
        return self._admit(await self._ask(Authenticate(self.device_id, self.credential), source=0))

    async def offline(self, reason: str = "") -> Answer:
        """End the session, keeping the connection. It is not restored by itself any more."""
        self._admitted = False
        return await self._ask(Offline(self.device_id, self.node_id, reason))

    async def get_perms(self, node_id: int = 0) -> Answer:
        """Role and permissions of a node, else of this device."""
        return await self._ask(GetPerms(node_id or self.node_id))

    async def list_roles(self, query: ListRoles | None = None) -> Answer:
        """Nodes and their roles."""
        return await self._ask(query or ListRoles())

    async def revoke(self, message: Revoke, *, target: int = 0, wait: float = 1.0) -> Answer | None:
        """Revoke a device everywhere, or at one hub. None: no hub has answered within ``wait`` seconds."""
        try:
            return await self._ask(message, target=target, timeout=wait)
        except Unavailable:
            if not self._connected.is_set():
                raise
            return None

    async def perms_invalidate(self, message: PermsInvalidate) -> None:
        """Have cached permissions forgotten. Success is silent, so a question behind it shows that none was refused."""
        wire = await self._connection()
        msg_id, future = self._begin(wire, message, self.node_id)
        try:
            await self.get_perms()
        finally:
            self._waiting.pop(msg_id, None)
        if future.done():
            _checked(future.result())

    async def send(self, sub_proto: int, payload: bytes, target: int = 0) -> None:
        """A frame of another sub-protocol."""
        wire = await self._connection()
        wire.send(Frame(payload, Major.MSG, self._take_msg_id(), self.node_id, target, sub_proto))

    async def connected(self) -> None:
        """Return when there is a connection, with a session if there was one before. Raises Unavailable."""
        await self._connection()

    # Inside

    def _admit(self, answer: Answer) -> Answer:
        self.node_id = answer.node_id
        if answer.credential:
            self.credential = answer.credential
        self._admitted = True
        self.sessions += 1
        return answer

    async def _connection(self) -> DeviceConnection:
        try:
            await asyncio.wait_for(self._connected.wait(), self._options.timeout)
        except TimeoutError:
            raise Unavailable(f"no connection to {self.address}: {self.last_problem or 'timed out'}") from None
        assert self._wire is not None
        return self._wire

    async def _ask(
        self, body: Request, *, source: int | None = None, target: int = 0, timeout: float | None = None
    ) -> Answer:
        wire = await self._connection()
        return await self._exchange(wire, body, self.node_id if source is None else source, target, timeout)

    async def _exchange(
        self, wire: DeviceConnection, body: Request, source: int, target: int = 0, timeout: float | None = None
    ) -> Answer:
        msg_id, future = self._begin(wire, body, source, target)
        try:
            # Not wait_for: in Python 3.11 it forgets a cancellation that comes just when the answer does.
            async with asyncio.timeout(timeout or self._options.timeout):
                return _checked(await future)
        except TimeoutError:
            raise Unavailable("no answer in time") from None
        finally:
            self._waiting.pop(msg_id, None)

    def _begin(
        self, wire: DeviceConnection, body: Request, source: int, target: int = 0
    ) -> tuple[int, "asyncio.Future[Answer]"]:
        msg_id = self._take_msg_id()
        wire.send(Frame(body, Major.CMD, msg_id, source, target))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[msg_id] = future
        return msg_id, future

    def _take_msg_id(self) -> int:
        msg_id = self._next_msg_id
        self._next_msg_id = 1 if msg_id >= MAX_NODE_ID else msg_id + 1
        return msg_id

    def _received(self, frame: Frame) -> None:
        body = frame.body
        if frame.sub_proto == SUB_PROTO and isinstance(body, Answer):
            future = self._waiting.get(frame.msg_id)
            if future is not None and not future.done():
                future.set_result(body)
                return
        if self._on_frame is not None:
            self._on_frame(frame)

    def _lost(self) -> None:
        self._fail_waiting("the connection is gone")

    def _fail_waiting(self, why: str) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Unavailable(why))

    async def _keep(self) -> None:
        """Connect, restore the session, wait for the connection to go, and again."""
        pause = self._options.retry_first
        while True:
            try:
                wire = await DeviceConnection.connect(self.address, self._options, self._received, self._lost)
            except (OSError, TimeoutError) as problem:
                self.last_problem = problem
            else:
                self._wire = wire
                if await self._restore(wire):
                    pause = self._options.retry_first
                    self._connected.set()
                    await wire.lost.wait()
                self._connected.clear()
                await wire.close()
                self._lost()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, self._options.retry_most)

    async def _restore(self, wire: DeviceConnection) -> bool:
        """Authenticate again if there was a session; whether the connection can be used."""
        if not self._admitted:
            return True
        try:
            self._admit(await self._exchange(wire, Authenticate(self.device_id, self.credential), 0))
        except Refused as refused:
            self.last_problem = refused
            if refused.reason in (Reason.NOT_ADMITTED, Reason.FORBIDDEN):
                # Revoked or superseded: trying again would not help. The caller may register.
                self._admitted = False
                return True
            return False
        except Unavailable as problem:
            self.last_problem = problem
            return False
        return True


def _checked(answer: Answer) -> Answer:
    if answer.reason is not Reason.OK:
        raise Refused(answer)
    return answer
