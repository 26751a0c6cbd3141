"""Devices that register, roam and are revoked in a tree of hubs that fail, and what each of them may rely on."""

import asyncio
import contextlib
import random

from attrs import define, field

from hubauth.core.messages import Answer, Authenticate, Frame, GetPerms, Offline, Reason, Register, Request, Revoke
from hubauth.wire.header import Version
from tests.shell.forest import ADMINS, NODES, Forest
from tests.shell.raw import Peer, written

SECONDS = 15.0
"""For an answer: longer than any hub takes to give up."""
PAUSE = 0.3
"""Between what happens when everything could be over but for the faults."""
WINDOW = 50
_LOST = (OSError, TimeoutError, AssertionError)


@define(eq=False)
class Device:
    """A device, what it was given last, and what happened to it."""

    name: str
    node_id: int = 0
    credential: str = ""
    uncertain: bool = False
    """Something about it may still be under way that would replace or revoke what it has: a registration or a revoke
    that nobody has seen handled. It is sure again once the tree is quiet and it has registered once more."""
    history: list[str] = field(factory=list)

    def note(self, what: str, where: str, how: object) -> None:
        self.history.append(f"{what} at {where}: {how.value if isinstance(how, Reason) else how}")


class Line:
    """One connection to a hub, made when it is needed."""

    def __init__(self, tree: Forest, where: str) -> None:
        self._tree, self.where = tree, where
        self._peer: Peer | None = None
        self._msg_id = 0

    async def tell(self, request: Request, source: int) -> None:
        """Send what is not always answered."""
        with contextlib.suppress(OSError):
            await (await self._connected()).send(written(Frame(request, source=source)))

    async def ask(self, *requests: Request, source: int = 0) -> list[Answer | None]:
        """The answers in the order of the requests; None for what was lost."""
        answers: dict[int, Answer] = {}
        first = self._msg_id + 1
        try:
            async with asyncio.timeout(SECONDS):
                peer = await self._connected()
                frames = []
                for request in requests:
                    self._msg_id += 1
                    frames.append(written(Frame(request, msg_id=self._msg_id, source=source)))
                await peer.send(b"".join(frames))
                while len(answers) < len(requests):
                    (frame,) = await peer.frames(1) or (None,)
                    if frame is None:
                        break
                    if isinstance(frame.body, Answer) and frame.msg_id >= first:
                        answers[frame.msg_id] = frame.body
        except _LOST:
            pass
        if len(answers) < len(requests):
            self.close()
        return [answers.get(first + at) for at in range(len(requests))]

    async def _connected(self) -> Peer:
        if self._peer is not None and self._peer.reader.at_eof():
            self.close()  # whoever was there last is elsewhere now
        if self._peer is None:
            address = self._tree.sites[self.where].address
            if address is None:
                raise ConnectionRefusedError
            reader, writer = await asyncio.open_connection(*address)
            self._peer = Peer(reader, writer, Version.V1)
        return self._peer

    def close(self) -> None:
        if self._peer is not None:
            self._peer.writer.transport.abort()
            self._peer = None


class Company:
    """Some of the devices, their connections, and what they do by chance."""

    def __init__(self, tree: Forest, number: int, devices: list[Device], seed: int) -> None:
        self._tree, self.devices = tree, devices
        self._admin = ADMINS[number]
        self._choice = random.Random(f"{seed} {number}")
        self._lines = {where: Line(tree, where) for where in NODES}

    async def wander(self, turns: int, over: asyncio.Event) -> None:
        """So many things happen to each device on average, and some more until it is over."""
        for device in self.devices:
            await self._register(device, self._anywhere())
        left = turns * len(self.devices)
        while left > 0 or not over.is_set():
            if left <= 0:
                await asyncio.sleep(PAUSE)
            left -= 1
            device, where = self._choice.choice(self.devices), self._anywhere()
            act = self._choice.choices([self._authenticate, self._register, self._leave, self._revoke], [8, 4, 2, 1])[0]
            await act(device, where)
            if self._choice.random() < 0.05:
                self._lines[where].close()

    def _anywhere(self) -> str:
        return self._choice.choice(sorted(NODES))

    async def _register(self, device: Device, where: str) -> None:
        (answer,) = await self._lines[where].ask(Register(device.name))
        take(device, where, answer)

    async def _authenticate(self, device: Device, where: str) -> None:
        (answer,) = await self._lines[where].ask(Authenticate(device.name, device.credential or "x" * 43))
        device.note("authenticate", where, answer.reason if answer is not None else "lost")

    async def _leave(self, device: Device, where: str) -> None:
        line = self._lines[where]
        (answer,) = await line.ask(Authenticate(device.name, device.credential or "x" * 43))
        if answer is not None and answer.reason is Reason.OK:
            (answer,) = await line.ask(Offline(device.name), source=answer.node_id)
            device.note("offline", where, answer.reason if answer is not None else "lost")

    async def _revoke(self, device: Device, where: str) -> None:
        """A revoke that the root has handled is over there; any other may still meet a later registration."""
        where = self._choice.choice(["root", where])
        line = self._lines[where]
        (answer,) = await line.ask(Authenticate(self._admin["device_id"], self._admin["credential"]))
        if answer is None or answer.reason is not Reason.OK:
            return
        await line.tell(Revoke(device.name), source=answer.node_id)
        (handled,) = await line.ask(GetPerms(answer.node_id), source=answer.node_id)
        device.note("revoked", where, "handled" if handled is not None else "lost")
        device.credential = ""
        device.uncertain |= handled is None or where != "root"

    def close(self) -> None:
        for line in self._lines.values():
            line.close()


def take(device: Device, where: str, answer: Answer | None) -> None:
    """What a registration came to."""
    reason = answer.reason if answer is not None else "lost"
    device.note("register", where, reason)
    if answer is not None and reason is Reason.OK:
        assert device.node_id in (0, answer.node_id), device
        device.node_id, device.credential = answer.node_id, answer.credential
    else:
        device.credential, device.uncertain = "", True
