"""A small hub of plain sockets: the dialect `login`, register and login, nothing else.

It was written from the specification and shares no code with hubauth. It works when tried by hand, and has one mistake
that such a try does not show. The tutorial finds it.

    python small_hub.py 127.0.0.1 7090
"""

import json
import secrets
import socket
import struct
import sys
import threading
from contextlib import suppress

HEADER = struct.Struct(">BBIIIIIH")  # TypeFmt, Flags, MsgID, SourceID, TargetID, Timestamp, PayloadLen, Reserved
OK, ERROR = 0, 1
SUB_PROTO = 2
LIMIT = 64 * 1024
HUB = 1
ASSISTS = ("assist_register", "assist_login", "assist_query_credential", "assist_offline")
OTHER_ACTIONS = ("revoke", "offline", *ASSISTS)

lock = threading.Lock()
next_node_id = 2
nodes: dict[str, int] = {}  # device_id -> its number, for ever
credentials: dict[str, list[str]] = {}  # device_id -> what it was given
sessions: dict[str, socket.socket] = {}  # device_id -> the connection it is admitted on


def register(link: socket.socket, device_id: str) -> dict[str, object]:
    """Give the device a number, the one it had if it has one, and a new credential; it is admitted at once."""
    global next_node_id
    if device_id not in nodes:
        nodes[device_id], next_node_id = next_node_id, next_node_id + 1
    credential = secrets.token_urlsafe(32)
    credentials.setdefault(device_id, []).append(credential)
    return admit(link, device_id, credential)


def login(link: socket.socket, device_id: str, credential: str) -> dict[str, object]:
    """Admit a device that presents the credential it was given."""
    presented = credential.encode()
    if not any(secrets.compare_digest(presented, given.encode()) for given in credentials.get(device_id, [])):
        return {"code": 4001, "msg": "invalid credential"}
    return admit(link, device_id, credential)


def admit(link: socket.socket, device_id: str, credential: str) -> dict[str, object]:
    """Bind the connection to the device; whoever had one of the two before has lost it."""
    before = sessions.get(device_id, link)
    if before is not link:
        with suppress(OSError):
            before.shutdown(socket.SHUT_RDWR)
    leave(link)
    sessions[device_id] = link
    return {"code": 1, "msg": "ok", "device_id": device_id, "node_id": nodes[device_id], "credential": credential}


def leave(link: socket.socket) -> None:
    for device_id in [name for name, used in sessions.items() if used is link]:
        del sessions[device_id]


def answer(link: socket.socket, source: int, payload: bytes) -> tuple[str, dict[str, object]] | None:
    """The action of the answer and what it says; None: the frame is dropped."""
    try:
        said = json.loads(payload)
        action = said["action"]
    except (ValueError, TypeError, KeyError):
        return None
    if action not in ("register", "login", *OTHER_ACTIONS):
        return None
    data = said.get("data")
    data = data if isinstance(data, dict) else {}
    device_id, credential = data.get("device_id", ""), data.get("credential", "")
    if not isinstance(device_id, str) or not 0 < len(device_id.encode()) <= 128:
        device_id = ""
    with lock:
        if action in OTHER_ACTIONS:
            admitted = [nodes[name] for name, used in sessions.items() if used is link]
            if admitted and source not in (0, *admitted):
                return None
            named = {"device_id": device_id} if device_id else {}
            return action, {"code": 403, "msg": "permission denied", **named}
        if not device_id or not isinstance(credential, str) or len(credential) > 256:
            return action, {"code": 400, "msg": "invalid request"}
        if action == "register":
            return action, register(link, device_id)
        return action, login(link, device_id, credential)


def serve(link: socket.socket) -> None:
    """One connection, until it ends."""
    with link, suppress(OSError), link.makefile("rb") as stream:
        while len(head := stream.read(HEADER.size)) == HEADER.size:
            kind, flags, msg_id, source, _target, _time, length, _ = HEADER.unpack(head)
            if length > LIMIT:
                break
            payload = stream.read(length)
            if kind >> 2 != SUB_PROTO or flags & 2 or (said := answer(link, source, payload)) is None:
                continue
            action, data = said
            body = json.dumps({"action": f"{action}_resp", "data": data}).encode()
            major = OK if data["code"] == 1 else ERROR
            link.sendall(HEADER.pack(SUB_PROTO << 2 | major, 0, msg_id, HUB, 0, 0, len(body), 0) + body)
    with lock:
        leave(link)


def main() -> None:
    with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
        print(f"listening on {sys.argv[1]}:{server.getsockname()[1]}", flush=True)
        while True:
            threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()


if __name__ == "__main__":
    main()
