"""Byte sequences that no honest peer sends. None of them registers a device: what is known must stay as it is."""

import json
import random

from hubauth.core.messages import (
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Request,
    Revoke,
)
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import encode_frame
from hubauth.wire.header import Version

REQUESTS: tuple[Request, ...] = (
    Authenticate("honest-0", "w" * 43),
    AssistRegister("honest-1"),
    AssistAuthenticate("honest-1"),
    AssistAuthenticate("honest-1", "guess"),
    AssistQueryCredential("honest-0", 10),
    AssistOffline("honest-0", 10, "gone"),
    HubOnline("honest-1", 11),
    HubDismiss("honest-0", 10),
    HubFence(),
    Offline("honest-0", 10),
    Revoke("honest-0", 10),
    GetPerms(1),
    ListRoles(limit=1000),
    PermsInvalidate((1, 2, 3), refresh=True),
)

PAYLOADS: tuple[bytes, ...] = (
    b"",
    b"\x00",
    b"null",
    b"[]",
    b"{}",
    b'{"action":',
    b'{"action":"register"}',
    b'{"action":"register","data":null}',
    b'{"action":"register","data":{"device_id":7}}',
    b'{"action":"register","data":{"device_id":""}}',
    b'{"action":"auth","data":{"device_id":"\\ud800","credential":"x"}}',
    b'{"action":"auth","data":{"device_id":"x","credential":' + b"9" * 400 + b"}}",
    b'{"action":"register_resp","data":{"code":1,"node_id":1,"credential":"x"}}',
    b'{"action":"nonsense","data":{}}',
    b'{"action":"list_roles","data":{"offset":-1}}',
    b'{"action":"get_perms","data":{"node_id":1e400}}',
    b"[" * 5000,
    b'{"a":' * 2000,
    b'{"action":"register","data":{"device_id":"' + b"x" * 200 + b'"}}',
    b"\xff\xfe" * 300,
    json.dumps({"action": "register", "data": {"device_id": "é" * 100}}).encode(),
)


def _frame(choice: random.Random, payload: bytes, version: Version) -> bytes:
    ids = [choice.choice((0, 1, 10, 11, 2**32 - 1, choice.getrandbits(32))) for _ in range(3)]
    frame = Frame(
        payload,
        choice.choice(list(Major)),
        ids[0],
        ids[1],
        ids[2],
        choice.choice((2, 2, 2, choice.randrange(64))),
        flags=choice.choice((0, 0, 2, 255)),
    )
    return encode_frame(version, AUTH, frame)


def sequence(choice: random.Random, version: Version) -> bytes:
    """One hostile sequence for a connection with this header."""
    kind = choice.randrange(8)
    if kind == 0:
        return choice.randbytes(choice.randrange(1, 200))
    if kind == 1:
        return _frame(choice, choice.randbytes(choice.randrange(80)), version)
    if kind <= 3:
        return _frame(choice, choice.choice(PAYLOADS), version)
    body = choice.choice(REQUESTS)
    source = choice.choice((0, 1, 10, choice.getrandbits(32)))
    valid = bytearray(encode_frame(version, AUTH, Frame(body, msg_id=choice.getrandbits(32), source=source)))
    if kind == 4:
        return bytes(valid)
    if kind == 5:
        return bytes(valid[: choice.randrange(len(valid))])
    for _ in range(choice.randrange(1, 6)):
        valid[choice.randrange(len(valid))] = choice.randrange(256)
    return bytes(valid)
