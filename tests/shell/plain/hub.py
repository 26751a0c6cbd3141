"""A plain hub over TCP, header version 1: ``python hub.py [--parent HOST:PORT] ...``. Prints its port when it serves.

It shares nothing with the reference: standard library, and the machine of lab/plain.py, loaded by its path. Its
operator says one command per line on its standard input, and is answered by one line of JSON; at the end of the input
the hub ends.
"""

import argparse
import asyncio
import importlib.util
import json
import secrets
import struct
import sys
from itertools import count
from pathlib import Path
from typing import Any

HEADER = struct.Struct(">BBIIIIIH")
PARENT = 0
FLUSH_SECONDS = 0.03
"""How long answers that are sent in another order wait for one more."""
RETRY_SECONDS = 0.05


def _load() -> Any:
    path = Path(__file__).parents[3] / "reference" / "hubauth" / "lab" / "plain.py"
    spec = importlib.util.spec_from_file_location("plain_machine", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["plain_machine"] = module
    spec.loader.exec_module(module)
    return module


plain = _load()


def pack(frame: Any) -> bytes:
    """A frame as bytes."""
    payload = json.dumps(frame.body).encode() if frame.sub_proto == 2 else frame.body
    kind = frame.sub_proto << 2 | frame.major
    return HEADER.pack(kind, 0, frame.msg_id, frame.source, frame.target, 0, len(payload), 0) + payload


def unpack(data: bytearray) -> Any:
    """Take the first frame out of the bytes; None if it is not complete."""
    if len(data) < HEADER.size:
        return None
    kind, _, msg_id, source, target, _, size, _ = HEADER.unpack_from(data)
    end = HEADER.size + size
    if len(data) < end:
        return None
    body: Any = bytes(data[HEADER.size : end])
    del data[:end]
    if kind >> 2 == 2:
        try:
            body = json.loads(body)
        except ValueError:
            body = None
    return plain.PlainFrame(body, source, target, msg_id, kind & 3, kind >> 2)


class Wire(asyncio.Protocol):
    """One connection."""

    def __init__(self, hub: "Hub", link: int) -> None:
        self._hub, self.link, self._data = hub, link, bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._hub.up(self)

    def data_received(self, data: bytes) -> None:
        self._data += data
        while self._hub.wires.get(self.link) is self and (frame := unpack(self._data)) is not None:
            self._hub.take(self.link, frame)

    def connection_lost(self, _: Exception | None) -> None:
        self._hub.down(self)


class Hub:
    """A machine and its connections."""

    def __init__(self, machine: Any, parent: tuple[str, int] | None) -> None:
        self.machine, self._parent = machine, parent
        self.wires: dict[int, Wire] = {}
        self._links = count(1)
        self._loses, self._lost = "nothing", 0
        self._away = asyncio.Event()
        self._welcome = asyncio.Event()
        self._welcome.set()

    def up(self, wire: Wire) -> None:
        self.wires[wire.link] = wire
        self._send(self.machine.link_up(wire.link))

    def down(self, wire: Wire) -> None:
        if self.wires.get(wire.link) is wire:
            del self.wires[wire.link]
            self._send(self.machine.link_down(wire.link))
        if wire.link == PARENT:
            self._away.set()

    def take(self, link: int, frame: Any) -> None:
        if self._loses == "in" and self._to_hub(link):
            self._lost += 1
        else:
            self._send(self.machine.receive(link, frame))
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, lambda: self._send(self.machine.flush()))

    def _send(self, sent: list[tuple[int, Any]]) -> None:
        for link, frame in sent:
            if self._loses == "out" and self._to_hub(link):
                self._lost += 1
            elif link in self.wires:
                self.wires[link].transport.write(pack(frame))

    def _to_hub(self, link: int) -> bool:
        return link == PARENT or link in self.machine.hubs

    async def keep_parent(self) -> None:
        """Connect to the parent, and again whenever that connection is gone."""
        while self._parent is not None:
            await self._welcome.wait()
            self._away.clear()
            try:
                await asyncio.get_running_loop().create_connection(lambda: Wire(self, PARENT), *self._parent)
                await self._away.wait()
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)

    async def serve(self) -> None:
        """Until the operator has nothing more to say."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Wire(self, next(self._links)), "127.0.0.1", 0)
        say({"port": server.sockets[0].getsockname()[1]})
        parent = asyncio.ensure_future(self.keep_parent())
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        while line := await commands.readline():
            say(self._obey(*line.decode().split()))
        parent.cancel()
        server.close()

    def _obey(self, command: str, *words: str) -> dict[str, Any]:
        if command == "revoke":
            names = zip(("device_id", "node_id", "credential"), words, strict=False)
            data = {name: int(word) if name == "node_id" else word for name, word in names}
            self.machine.heard.clear()
            self._send(self.machine.operate("revoke", **{name: value for name, value in data.items() if value}))
        elif command == "perms_invalidate":
            nodes = [int(word) for word in words if word != "refresh"]
            self._send(self.machine.operate(command, node_ids=nodes, refresh="refresh" in words))
        elif command == "number":
            self.machine.number = int(words[0])
        elif command == "lose":
            self._loses, self._lost = words[0], 0
        elif command == "drop":
            self._drop(words[0])
        elif command == "connect":
            self._welcome.set()
        elif command != "status":
            return {"problem": f"no such command: {command}"}
        return self._status()

    def _drop(self, whom: str) -> None:
        """End the connection to the parent, until ``connect``, or those of a node."""
        links = [link for link, node in self.machine.hubs.items() if str(node) == whom]
        if whom == "parent":
            links = [PARENT]
            self._welcome.clear()
        for wire in [self.wires[link] for link in links if link in self.wires]:
            wire.transport.abort()
            self.down(wire)

    def _status(self) -> dict[str, Any]:
        machine = self.machine
        return {
            "node_id": machine.node_id,
            "parent_present": machine.parent_present,
            "whitelist": machine.whitelist,
            "nodes": machine.nodes,
            "index": {node: device for node, (_, device) in machine.index.items()},
            "hubs": sorted(machine.hubs.values()),
            "cache": machine.cache,
            "waiting": len(machine.waiting),
            "heard": machine.heard,
            "lost": self._lost,
            "links": len(self.wires),
        }


def say(what: dict[str, Any]) -> None:
    """One line to the operator."""
    print(json.dumps(what), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--parent", default="", metavar="HOST:PORT")
    options.add_argument("--dialect", choices=["auth", "login", "flat"], default="auth")
    options.add_argument("--msg-id", choices=["echo", "zero", "reordered"], default="echo")
    options.add_argument("--device-id", default="plain")
    options.add_argument("--node-id", type=int, default=1)
    options.add_argument("--credential", default="")
    options.add_argument("--first-node-id", type=int, default=100)
    for name, meaning in (
        ("joins", "authenticate to the parent like a device"),
        ("query", "ask for credentials instead of having them verified"),
        ("terse", "name nobody in failures"),
    ):
        options.add_argument(f"--{name}", action="store_true", help=meaning)
    options.add_argument("--hub-device", action="append", default=[], help="a device that is a hub")
    options.add_argument("--grant", action="append", default=[], metavar="NODE:ROLE:P1,P2")
    chosen = vars(options.parse_args())
    host, _, port = chosen.pop("parent").rpartition(":")
    chosen["hub_devices"] = tuple(chosen.pop("hub_device"))
    grants = [grant.split(":") for grant in chosen.pop("grant")]
    chosen["grants"] = {int(node): (role, perms.split(",")) for node, role, perms in grants}
    machine = plain.PlainHub(lambda: secrets.token_urlsafe(32), has_parent=bool(port), **chosen)

    async def run() -> None:
        await Hub(machine, (host, int(port)) if port else None).serve()

    asyncio.run(run())


if __name__ == "__main__":
    main()
