"""Every JSON example of the three protocol documents, in both directions."""

import json
from typing import Any

import pytest

from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    Body,
    Frame,
    Major,
    Offline,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import FrameDecoder, RawFrame, encode_frame, read_frame
from hubauth.wire.header import Version

DEVICE = "mac-001122334455"
TOKEN = "base64url_random_token"
BOTH = (Dialect.AUTH, Dialect.LOGIN)

REGISTER_OK = (
    '{"action":"register_resp","data":{"code":1,"msg":"ok","node_id":5,'
    '"device_id":"mac-001122334455","credential":"base64url_random_token"}}'
)
REVOKE = '{"action":"revoke","data":{"device_id":"mac-001122334455","node_id":5,"credential":"base64url_random_token"}}'
REVOKE_OK = '{"action":"revoke_resp","data":{"code":1,"msg":"ok","device_id":"mac-001122334455","node_id":5}}'
OFFLINE = '{"action":"offline","data":{"device_id":"mac-001122334455","node_id":5,"reason":"client disconnect"}}'
FLAT_OK = """
{
  "code": 1,
  "msg": "ok",
  "node_id": 5,
  "device_id": "mac-001122334455"
}
"""
FLAT_REGISTER = """
{
  "action": "register",
  "device_id": "mac-001122334455"
}
"""
FLAT_REFUSED = """
{
  "code": 4001,
  "msg": "unregistered device"
}
"""
FLAT_ASSIST = """
{
  "action": "assist_register",
  "device_id": "mac-001122334455"
}
"""

REQUESTS: list[tuple[Dialect, str, Body]] = [
    *((dialect, '{"action":"register","data":{"device_id":"mac-001122334455"}}', Register(DEVICE)) for dialect in BOTH),
    (
        Dialect.AUTH,
        '{"action":"auth","data":{"device_id":"mac-001122334455","credential":"base64url_random_token"}}',
        Authenticate(DEVICE, TOKEN),
    ),
    (
        Dialect.LOGIN,
        '{"action":"login","data":{"device_id":"mac-001122334455","credential":"base64url_random_token"}}',
        Authenticate(DEVICE, TOKEN),
    ),
    *((dialect, REVOKE, Revoke(DEVICE, 5, TOKEN)) for dialect in BOTH),
    *((dialect, OFFLINE, Offline(DEVICE, 5, "client disconnect")) for dialect in BOTH),
    (Dialect.FLAT, FLAT_REGISTER, Register(DEVICE)),
    (Dialect.FLAT, FLAT_ASSIST, AssistRegister(DEVICE)),
]

ANSWERS: list[tuple[Dialect, str, Answer]] = [
    *((dialect, REGISTER_OK, Answer(Action.REGISTER, Reason.OK, DEVICE, 5, TOKEN)) for dialect in BOTH),
    (
        Dialect.AUTH,
        '{"action":"auth_resp","data":{"code":4001,"msg":"invalid credential"}}',
        Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED),
    ),
    (
        Dialect.LOGIN,
        '{"action":"login_resp","data":{"code":4001,"msg":"invalid credential"}}',
        Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED),
    ),
    *((dialect, REVOKE_OK, Answer(Action.REVOKE, Reason.OK, DEVICE, 5)) for dialect in BOTH),
    (Dialect.FLAT, FLAT_OK, Answer(Action.REGISTER, Reason.OK, DEVICE, 5)),
    (Dialect.FLAT, FLAT_REFUSED, Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED)),
    (Dialect.FLAT, FLAT_OK, Answer(Action.ASSIST_REGISTER, Reason.OK, DEVICE, 5)),
]


@pytest.mark.parametrize(("dialect", "example", "message"), REQUESTS)
def test_requests_read_and_write_like_the_example(dialect: Dialect, example: str, message: Body) -> None:
    codec = CODECS[dialect]
    assert codec.decode(example.encode(), Major.CMD).body == message
    assert json.loads(codec.encode(message)) == json.loads(example)


@pytest.mark.parametrize(("dialect", "example", "answer"), ANSWERS)
def test_answers_write_every_field_of_the_example(dialect: Dialect, example: str, answer: Answer) -> None:
    shown, written = json.loads(example), json.loads(CODECS[dialect].encode(answer))
    assert written.get("action") == shown.get("action")
    assert _fields(shown).items() <= _fields(written).items()
    if answer.reason is not Reason.OK:
        assert written == shown


@pytest.mark.parametrize(("dialect", "example", "answer"), ANSWERS)
def test_answers_read_like_the_example(dialect: Dialect, example: str, answer: Answer) -> None:
    body = CODECS[dialect].decode(example.encode(), Major.OK_RESP).body
    assert isinstance(body, Answer)
    assert body.action is (None if dialect is Dialect.FLAT else answer.action)
    assert (body.reason, body.device_id, body.node_id) == (answer.reason, answer.device_id, answer.node_id)
    assert body.credential == answer.credential


def _fields(message: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = message.get("data", message)
    return fields


HUB, PARENT = 9, 1
HEADERS: list[tuple[str, Frame, Body, int]] = [
    # The document leaves Major of a request to the sender, and TargetID to 0 or the hub.
    (FLAT_REGISTER, Frame(Register(DEVICE), Major.CMD), Register(DEVICE), 0x0B),
    (FLAT_REGISTER, Frame(Register(DEVICE), Major.MSG, target=HUB), Register(DEVICE), 0x0A),
    (
        FLAT_OK,
        Frame(Answer(Action.REGISTER, Reason.OK, DEVICE, 5), Major.OK_RESP, source=HUB),
        Answer(None, Reason.OK, DEVICE, 5),
        0x08,
    ),
    (
        FLAT_REFUSED,
        Frame(Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED), Major.ERR_RESP, source=HUB),
        Answer(None, Reason.NOT_ADMITTED),
        0x09,
    ),
    (
        FLAT_ASSIST,
        Frame(AssistRegister(DEVICE), Major.CMD, source=HUB, target=PARENT),
        AssistRegister(DEVICE),
        0x0B,
    ),
    (
        FLAT_OK,
        Frame(Answer(Action.ASSIST_REGISTER, Reason.OK, DEVICE, 5), Major.OK_RESP, source=PARENT, target=HUB),
        Answer(None, Reason.OK, DEVICE, 5),
        0x08,
    ),
]


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(("example", "frame", "read", "type_fmt"), HEADERS)
def test_header_examples(version: Version, example: str, frame: Frame, read: Body, type_fmt: int) -> None:
    codec = CODECS[Dialect.FLAT]
    data = encode_frame(version, codec, frame)
    assert data[0 if version is Version.V1 else 4] == type_fmt
    (raw,) = FrameDecoder().feed(data)
    assert isinstance(raw, RawFrame)
    assert json.loads(raw.payload) == json.loads(example)
    got = read_frame(codec, raw).frame
    assert (got.sub_proto, got.major, got.source, got.target) == (2, frame.major, frame.source, frame.target)
    assert got.body == read
