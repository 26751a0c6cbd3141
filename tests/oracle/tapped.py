"""Hubs with a mistake, seen from outside: recorded by ``hubauth trace tap``, with 2 ms between requests."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from attrs import define, field

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    HubOnline,
    ListRoles,
    Major,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.forms.policies import encode_policy
from hubauth.shell import engine
from hubauth.shell.configuration import configure
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import FrameDecoder, Limits, encode_frame, read_frame
from hubauth.wire.header import Refused, Version
from tests.oracle.conform.hubs import ADMIN, CHILD_HUBS, describe, free_port
from tests.oracle.twelve import TWELVE
from tests.shell.harness import running

PAUSE = 0.002
_WAIT = 20.0
_CODEC, _VERSION = CODECS[Dialect.AUTH], Version.V2


@define
class Peer:
    """One end of a connection to the hub, through the tap."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    node_id: int = 0
    device_id: str = ""
    credential: str = ""
    frames: list[Frame] = field(factory=list)
    _sent: int = 0
    _news: asyncio.Event = field(factory=asyncio.Event)

    async def listen(self) -> None:
        """Take in what comes, until the end."""
        decoder = FrameDecoder(_VERSION, Limits())
        with suppress(OSError):
            while data := await self.reader.read(65536):
                for raw in decoder.feed(data):
                    assert not isinstance(raw, Refused)
                    self.frames.append(read_frame(_CODEC, raw).frame)
                self._news.set()

    async def say(self, body: Body, **header: Any) -> int:
        """A frame, and a pause; its MsgID."""
        self._sent += 1
        header = {"msg_id": self._sent, "source": self.node_id, **header}
        self.writer.write(encode_frame(_VERSION, _CODEC, Frame(body, **header)))
        await asyncio.sleep(PAUSE)
        return int(header["msg_id"])

    async def heard(self, what: Callable[[Frame], bool]) -> Frame:
        """The first frame like this; it may have come before."""
        async with asyncio.timeout(_WAIT):
            while True:
                found = next((frame for frame in self.frames if what(frame)), None)
                if found is not None:
                    return found
                self._news.clear()
                await self._news.wait()

    async def ask(self, body: Body, **header: Any) -> Answer:
        """A request, and its answer."""
        number = await self.say(body, **header)
        frame = await self.heard(lambda one: isinstance(one.body, Answer) and one.msg_id == number)
        assert isinstance(frame.body, Answer)
        return frame.body

    async def request(self, kind: type, at: int = 0) -> Frame:
        """The request of this kind that the hub has sent, counted from 0."""
        await self.heard(lambda _: sum(isinstance(frame.body, kind) for frame in self.frames) > at)
        return [frame for frame in self.frames if isinstance(frame.body, kind)][at]

    async def answer(self, request: Frame, **fields: Any) -> None:
        """Answer what the hub has asked with a success."""
        body = Answer(request.body.action, Reason.OK, **fields)  # type: ignore[union-attr]
        await self.say(body, msg_id=request.msg_id, major=Major.OK_RESP)

    async def passed(self) -> None:
        """Everything that was said before on this connection has been handled."""
        await self.ask(Authenticate("nobody", ""), source=0)


@define
class Stage:
    """A hub behind a tap, and who talks to it."""

    port: int
    parent: "asyncio.Future[Peer]"
    _stack: AsyncExitStack
    _devices: int = 0

    async def connect(self, device_id: str = "") -> Peer:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        return await welcome(self._stack, reader, writer, device_id)

    async def device(self) -> Peer:
        """A registered device."""
        self._devices += 1
        peer = await self.connect(f"device-{self._devices}")
        number = await peer.say(Register(peer.device_id))
        if self.parent.done():
            await self._let_parent_admit(peer, number)
        frame = await peer.heard(lambda one: isinstance(one.body, Answer) and one.msg_id == number)
        assert isinstance(frame.body, Answer) and frame.body.reason is Reason.OK, frame
        peer.node_id, peer.credential = frame.body.node_id, frame.body.credential
        return peer

    async def _let_parent_admit(self, peer: Peer, number: int) -> None:
        """Answer the hub's assist_register as the parent, unless the hub does without."""
        parent = self.parent.result()

        def is_asked(frame: Frame) -> bool:
            return isinstance(frame.body, AssistRegister) and frame.body.device_id == peer.device_id

        asked = asyncio.ensure_future(parent.heard(is_asked))
        told = asyncio.ensure_future(peer.heard(lambda one: isinstance(one.body, Answer) and one.msg_id == number))
        done, waiting = await asyncio.wait({asked, told}, return_when=asyncio.FIRST_COMPLETED)
        if asked in done:
            fields = {
                "node_id": 500 + self._devices,
                "credential": f"p{self._devices:042d}",
                "grant": Grant("node", ()),
            }
            await parent.answer(asked.result(), device_id=peer.device_id, **fields)
        for task in waiting:
            task.cancel()

    async def known(self, at: Any, ext: Ext | None = None) -> Peer:
        """Somebody who is provisioned, admitted."""
        peer = await self.connect(at.device_id)
        answer = await peer.ask(Authenticate(at.device_id, at.credential, ext))
        assert answer.reason is Reason.OK
        peer.node_id, peer.credential = at.node_id, at.credential
        return peer

    async def hub(self, at: int) -> Peer:
        return await self.known(CHILD_HUBS[at], Ext(f"journal {at}"))

    async def adopt(self, hub: Peer) -> tuple[str, int]:
        """A device that is behind a child hub."""
        self._devices += 1
        name = f"behind-{self._devices}"
        answer = await hub.ask(AssistRegister(name))
        await hub.say(HubOnline(name, answer.node_id))
        return name, answer.node_id


async def welcome(
    stack: AsyncExitStack, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = ""
) -> Peer:
    peer = Peer(reader, writer, device_id=name)
    task = asyncio.ensure_future(peer.listen())
    stack.callback(task.cancel)
    stack.callback(writer.close)
    return peer


# The hub, its parent and the tap


@asynccontextmanager
async def staged(name: str, directory: Path, *, planted: bool) -> AsyncIterator[Stage]:
    """A hub with a mistake, or with none, behind ``hubauth trace tap``."""
    broken = TWELVE[name]
    described = describe(broken.role, headers=(2,), **broken.profile)
    has_parent = broken.role != "root"
    async with AsyncExitStack() as stack:
        joined: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            parent = await welcome(stack, reader, writer)
            parent.node_id = 1
            shown = await parent.request(Authenticate)
            assert isinstance(shown.body, Authenticate) and shown.body.ext is not None
            ext = Ext("journal of the parent", shown.body.ext.journal)
            await parent.answer(shown, device_id="under-test", node_id=2, credential=shown.body.credential, ext=ext)
            joined.set_result(parent)

        above = await asyncio.start_server(serve, "127.0.0.1", 0)
        stack.callback(above.close)
        port, tap_port, tap_parent = free_port(), free_port(), free_port()
        described.tables["listen"]["address"] = f"127.0.0.1:{port}"
        if has_parent:
            described.tables["parent"]["address"] = f"127.0.0.1:{tap_parent}"
        setup = configure(described.tables)
        policy = directory.with_suffix(".policy.json")
        policy.write_bytes(encode_policy(setup.policy))
        command = [sys.executable, "-m", "hubauth.cli", "trace", "tap", f"127.0.0.1:{tap_port}", f"127.0.0.1:{port}"]
        if has_parent:
            command += ["--parent", f"127.0.0.1:{tap_parent}", f"127.0.0.1:{above.sockets[0].getsockname()[1]}"]
        command += ["--policy", str(policy), "--out", str(directory)]
        tap = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        stack.push_async_callback(_end, tap)
        assert tap.stdout is not None
        for _ in range(1 + has_parent):
            assert b"listening" in await tap.stdout.readline()
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        if planted:
            patched.setattr(engine, "step", broken.decide())
        await stack.enter_async_context(running(setup, broken.promises if planted else frozenset()))
        if has_parent:
            await asyncio.wait_for(asyncio.shield(joined), _WAIT)
        yield Stage(tap_port, joined, stack)


async def _end(tap: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.kill(tap.pid, signal.SIGTERM)
    await tap.wait()


def record(name: str, directory: Path, *, planted: bool = True, noise: int = 30) -> bool:
    """Record a hub with this mistake as a trace; whether those who talked to it have seen the mistake."""

    async def story() -> bool:
        async with staged(name, directory, planted=planted) as stage:
            # Both are registered before: whoever registers in the story is the only one who does.
            peers = [] if stage.parent.done() else [await stage.device(), await stage.device()]
            beside = asyncio.ensure_future(_noise(peers, noise)) if peers else None
            shown = await STORIES[name](stage)
            if beside is not None:
                await beside
            return shown

    return asyncio.run(asyncio.wait_for(story(), 120))


async def _noise(peers: list[Peer], requests: int) -> None:
    """Devices that go on asking and wait for nothing."""
    for count in range(requests):
        await peers[count % 2].say(GetPerms(peers[count % 2].node_id))
    for peer in peers:
        await peer.passed()


# What shows each of them

Story: TypeAlias = Callable[[Stage], Awaitable[bool]]
STORIES: dict[str, Story] = {}


def story(name: str) -> Callable[[Story], Story]:
    def listed(told: Story) -> Story:
        assert name in TWELVE
        STORIES[name] = told
        return told

    return listed


@story("a revoke keeps the session")
async def _(stage: Stage) -> bool:
    admin, device = await stage.known(ADMIN), await stage.device()
    await admin.ask(Revoke(device.device_id))
    return (await device.ask(GetPerms(device.node_id))).reason is Reason.OK


@story("a late offline erases a newer route")
async def _(stage: Stage) -> bool:
    first, second = await stage.hub(0), await stage.hub(1)
    name, node = await stage.adopt(first)
    await first.passed()
    await second.say(HubOnline(name, node))
    await first.answer(await first.request(HubDismiss), device_id=name, node_id=node)
    return (await first.ask(AssistOffline(name, node))).reason is Reason.OK


@story("a node id is used again after a revoke")
async def _(stage: Stage) -> bool:
    admin, device = await stage.known(ADMIN), await stage.device()
    await admin.ask(Revoke(device.device_id))
    return (await stage.device()).node_id == device.node_id


@story("one answer in fifty is late")
async def _(stage: Stage) -> bool:
    devices = [await stage.device(), await stage.device()]
    sent = []
    for count in range(120):
        sent.append((devices[count % 2], await devices[count % 2].say(GetPerms(devices[count % 2].node_id))))
    for device in devices:
        await device.passed()
    answered = [[one.msg_id for one in device.frames if isinstance(one.body, Answer)] for device in devices]
    return any(numbers != sorted(numbers) for numbers in answered) or any(
        number not in answered[devices.index(device)] for device, number in sent
    )


@story("credentials are compared by prefix")
async def _(stage: Stage) -> bool:
    device, thief = await stage.device(), await stage.connect()
    return (await thief.ask(Authenticate(device.device_id, device.credential[:20] + "x" * 23))).reason is Reason.OK


@story("permissions are served after an invalidation")
async def _(stage: Stage) -> bool:
    parent, device = stage.parent.result(), await stage.device()
    for at in range(2):
        number = await device.say(GetPerms(77))
        if at == 0:
            await parent.answer(await parent.request(GetPerms), node_id=77, grant=Grant("reader", ("read",)))
            await device.heard(lambda one, number=number: one.msg_id == number)  # type: ignore[misc]
            await parent.say(PermsInvalidate())
            await parent.ask(AssistAuthenticate("nobody", "x" * 43))
    await device.passed()
    return any(isinstance(one.body, Answer) and one.msg_id == number for one in device.frames)


@story("a revoke that is sent again is acted on twice")
async def _(stage: Stage) -> bool:
    hub, device = await stage.hub(0), await stage.device()
    await hub.say(Revoke(device.device_id, seq=1), source=hub.node_id)
    await hub.passed()
    again = await stage.connect()
    answer = await again.ask(Register(device.device_id))
    await hub.say(Revoke(device.device_id, seq=1), source=hub.node_id)
    await hub.passed()
    last = await stage.connect()
    return (await last.ask(Authenticate(device.device_id, answer.credential))).reason is not Reason.OK


@story("an announcement older than the order to let go is believed")
async def _(stage: Stage) -> bool:
    first, second = await stage.hub(0), await stage.hub(1)
    name, node = await stage.adopt(first)
    await first.passed()
    await second.say(HubOnline(name, node))
    await first.request(HubDismiss)
    await first.say(HubOnline(name, node))
    await first.passed()
    await second.passed()
    return any(isinstance(one.body, HubDismiss) for one in second.frames)


@story("a search survives a revoke")
async def _(stage: Stage) -> bool:
    parent, device = stage.parent.result(), await stage.connect()
    number = await device.say(Authenticate("wanderer", "w" * 43))
    asked = await parent.request(AssistAuthenticate)
    await parent.say(Revoke("wanderer", seq=1), source=9)
    fields = {"node_id": 600, "credential": "w" * 43, "grant": Grant("node", ())}
    await parent.answer(asked, device_id="wanderer", **fields)
    frame = await device.heard(lambda one: one.msg_id == number)
    assert isinstance(frame.body, Answer)
    return frame.body.reason is Reason.OK


@story("ids are allocated though the authority is elsewhere")
async def _(stage: Stage) -> bool:
    return (await stage.device()).node_id >= 5000


@story("total is counted before filtering")
async def _(stage: Stage) -> bool:
    device = await stage.device()
    answer = await device.ask(ListRoles(role="admin"))
    assert answer.action is Action.LIST_ROLES
    return answer.total != len(answer.roles)


@story("the hop limit is not lowered")
async def _(stage: Stage) -> bool:
    near, far = await stage.device(), await stage.device()
    await near.say(b"payload", sub_proto=7, target=far.node_id, hop_limit=5, major=Major.MSG)
    frame = await far.heard(lambda one: one.sub_proto == 7)
    return frame.hop_limit == 5
