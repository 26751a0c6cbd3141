"""A root hub in plain sockets, written from the documents alone: dialect ``login``, header version 1, no child hubs.

It shares nothing with the reference but the rules. ``python tiny_hub.py PORT [FAULT]``; prints its port when it serves.
"""

import json
import secrets
import selectors
import socket
import struct
import sys

HEADER = struct.Struct(">BBIIIIIH")
LIMIT = 65536
OK, INVALID, FORBIDDEN, NOT_ADMITTED, NOT_ONLINE = (
    (1, "ok"),
    (400, "invalid request"),
    (403, "permission denied"),
    (4001, "invalid credential"),
    (4701, "not online"),
)
FAULT = sys.argv[2] if len(sys.argv) > 2 else ""


class Peer:
    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.data, self.device, self.node = sock, b"", "", 0


nodes: dict[str, int] = {}
credentials: dict[str, str] = {}
online: dict[int, Peer] = {}
peers: set[Peer] = set()
selector = selectors.DefaultSelector()


def write(peer: Peer, major: int, msg_id: int, payload: bytes) -> None:
    peer.sock.sendall(HEADER.pack(2 << 2 | major, 0, msg_id, 1, 0, 0, len(payload), 0) + payload)


def answer(peer: Peer, msg_id: int, action: str, code: tuple[int, str], **fields: object) -> None:
    data = {"code": code[0], "msg": code[1], **fields}
    payload = json.dumps({"action": f"{action}_resp", "data": data}).encode()
    write(peer, 0 if code is OK or FAULT == "major" else 1, msg_id, payload)


def release(peer: Peer) -> None:
    if peer.node and online.get(peer.node) is peer:
        del online[peer.node]
    peer.device, peer.node = "", 0


def drop(peer: Peer) -> None:
    if peer in peers:
        release(peer)
        peers.discard(peer)
        selector.unregister(peer.sock)
        peer.sock.close()


def admit(peer: Peer, msg_id: int, action: str, device: str) -> None:
    release(peer)
    before = online.get(nodes[device])
    if before is not None and FAULT != "superseded":
        drop(before)
    peer.device, peer.node = device, nodes[device]
    online[peer.node] = peer
    answer(peer, msg_id, action, OK, device_id=device, node_id=peer.node, credential=credentials[device])


def text(data: dict[str, object], name: str, least: int, most: int) -> str:
    value = data.get(name, "")
    if not isinstance(value, str) or not least <= len(value.encode() if name == "device_id" else value) <= most:
        raise ValueError(name)
    return value


def request(peer: Peer, source: int, msg_id: int, action: str, data: object) -> None:
    entrance = action in ("register", "login")
    if not entrance and not peer.node and action != "offline":
        subject = {"device_id": data["device_id"]} if isinstance(data, dict) and data.get("device_id") else {}
        subject |= {"node_id": data["node_id"]} if isinstance(data, dict) and data.get("node_id") else {}
        return answer(peer, msg_id, action, FORBIDDEN, **subject)
    if not entrance and peer.node and source not in (0, peer.node):
        return None
    if not isinstance(data, dict):
        return answer(peer, msg_id, action, INVALID)
    try:
        device = text(data, "device_id", 1, 128)
        credential = text(data, "credential", 0, 256)
        node = data.get("node_id", 0)
        if not isinstance(node, int) or isinstance(node, bool):
            raise ValueError("node_id")
    except ValueError:
        return answer(peer, msg_id, action, INVALID)
    if action == "register":
        nodes.setdefault(device, 2 + len(nodes))
        issued = {"credential": device.ljust(43, "x")[-43:], "short": secrets.token_hex(8)}
        credentials[device] = issued.get(FAULT, secrets.token_urlsafe(32))
        return admit(peer, msg_id, action, device)
    if action == "login":
        if not credential or not secrets.compare_digest(credentials.get(device, "").encode(), credential.encode()):
            return answer(peer, msg_id, action, NOT_ADMITTED)
        return admit(peer, msg_id, action, device)
    if action != "offline" or not peer.node or device != peer.device or node not in (0, peer.node):
        others = {node, nodes.get(device, 0)} - {peer.node}
        absent = action == "offline" and not (peer.node and others & online.keys())
        code = NOT_ONLINE if absent else FORBIDDEN
        return answer(peer, msg_id, action, code, device_id=device, **({"node_id": node} if node else {}))
    answer(peer, msg_id, action, OK, device_id=device, node_id=peer.node)
    return release(peer)


def frame(peer: Peer, header: bytes, payload: bytes) -> None:
    type_fmt, flags, msg_id, source, target, *_ = HEADER.unpack(header)
    if type_fmt >> 2 != 2:
        if source and source == peer.node and target != 1:
            reached = [online[target]] if target in online else list(online.values()) if target == 0 else []
            for other in reached:
                if other is not peer:
                    other.sock.sendall(header + payload)
        return
    try:
        said = json.loads(payload.decode()) if not flags & 2 and payload.count(b"[") < 33 else {}
        action = said["action"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return
    known = ("register", "login", "offline", "revoke", "assist_register", "assist_login", "assist_offline")
    if action in known:
        request(peer, source, msg_id, action, said.get("data"))


def receive(peer: Peer) -> None:
    try:
        data = peer.sock.recv(65536)
    except OSError:
        data = b""
    if not data:
        return drop(peer)
    peer.data += data
    while len(peer.data) >= HEADER.size and peer in peers:
        size = HEADER.unpack_from(peer.data)[6]
        if size > LIMIT:
            return drop(peer)
        end = HEADER.size + size
        if len(peer.data) < end:
            return None
        whole, peer.data = peer.data[:end], peer.data[end:]
        frame(peer, whole[: HEADER.size], whole[HEADER.size :])
    return None


listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
selector.register(listening, selectors.EVENT_READ)
print(listening.getsockname()[1], flush=True)
while True:
    for key, _ in selector.select():
        if key.data is None:
            accepted = Peer(listening.accept()[0])
            peers.add(accepted)
            selector.register(accepted.sock, selectors.EVENT_READ, accepted)
        elif key.data in peers:
            receive(key.data)
