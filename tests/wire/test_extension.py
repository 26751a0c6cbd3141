"""The messages and fields of the extension, and what becomes of an ``ext`` that nobody can read."""

import json
from typing import Any

import pytest

from hubauth.core.messages import (
    MAX_HANDLED,
    MAX_JOURNAL_BYTES,
    NOT_A_HUB,
    Action,
    Answer,
    Authenticate,
    Body,
    Ext,
    HubDismiss,
    HubFence,
    HubOnline,
    Major,
    Malformed,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.wire.dialects import CODECS

BOTH = (Dialect.AUTH, Dialect.LOGIN)
LONGEST = "\u20ac" * (MAX_JOURNAL_BYTES // 3)

SAID: list[tuple[Body, dict[str, Any]]] = [
    (HubOnline("d", 5), {"device_id": "d", "node_id": 5}),
    (HubDismiss("d", 5), {"device_id": "d", "node_id": 5}),
    (HubFence(), {}),
    (Revoke("d", seq=7), {"device_id": "d", "seq": 7}),
    (Register("d", Ext("a")), {"device_id": "d", "ext": {"v": 1, "journal": "a", "peer": "", "handled": 0}}),
    (
        Authenticate("d", "c", Ext("a", "b", 3)),
        {"device_id": "d", "credential": "c", "ext": {"v": 1, "journal": "a", "peer": "b", "handled": 3}},
    ),
]


@pytest.mark.parametrize(("body", "data"), SAID)
@pytest.mark.parametrize("dialect", BOTH)
def test_how_the_extension_is_said(dialect: Dialect, body: Body, data: dict[str, Any]) -> None:
    payload = CODECS[dialect].encode(body)
    assert json.loads(payload)["data"] == data
    assert CODECS[dialect].decode(payload, Major.CMD).body == body


@pytest.mark.parametrize(
    ("ext", "written"),
    [(Ext("a", "b", 3), {"v": 1, "journal": "a", "peer": "b", "handled": 3}), (NOT_A_HUB, {"hub": False})],
)
@pytest.mark.parametrize("dialect", BOTH)
def test_an_answer_takes_it_up_or_says_that_the_asker_is_no_hub(
    dialect: Dialect, ext: Ext, written: dict[str, Any]
) -> None:
    answer = Answer(Action.AUTHENTICATE, Reason.OK, "d", 5, "c", ext=ext)
    payload = CODECS[dialect].encode(answer)
    assert json.loads(payload)["data"]["ext"] == written
    assert CODECS[dialect].decode(payload, Major.OK_RESP).body == answer


def test_where_there_is_none_nothing_is_written() -> None:
    for body in (Register("d"), Authenticate("d", "c"), Revoke("d"), Answer(Action.REGISTER, Reason.OK, "d", 5, "c")):
        assert b"ext" not in CODECS[Dialect.AUTH].encode(body) and b"seq" not in CODECS[Dialect.AUTH].encode(body)
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 5, "c", ext=Ext("a"))
    assert b"ext" not in CODECS[Dialect.AUTH].encode(answer)


@pytest.mark.parametrize(
    "ext",
    [
        None,
        5,
        "1",
        [],
        {},
        {"v": 1},
        {"v": 2, "journal": "a"},
        {"v": "1", "journal": "a"},
        {"journal": "a"},
        {"v": 1, "journal": ""},
        {"v": 1, "journal": LONGEST + "x" * 2},
        {"v": 1, "journal": "a", "peer": LONGEST + "x" * 2},
        {"v": 1, "journal": "a", "handled": -1},
        {"v": 1, "journal": "a", "handled": MAX_HANDLED + 1},
        {"v": 1, "journal": "a", "handled": None},
        {"hub": False},
    ],
)
def test_what_cannot_be_read_counts_as_nothing(ext: object) -> None:
    for dialect in BOTH:
        request = {"action": "register", "data": {"device_id": "d", "ext": ext}}
        assert CODECS[dialect].decode(json.dumps(request).encode(), Major.CMD).body == Register("d")
        data = {"code": 1, "device_id": "d", "node_id": 5, "credential": "c", "ext": ext}
        payload = json.dumps({"action": "register_resp", "data": data}).encode()
        read = CODECS[dialect].decode(payload, Major.OK_RESP).body
        said = NOT_A_HUB if ext == {"hub": False} else None
        assert read == Answer(Action.REGISTER, Reason.OK, "d", 5, "c", ext=said)


def test_the_longest_journal_is_counted_in_bytes() -> None:
    said = {"v": 1, "journal": LONGEST + "x", "peer": LONGEST, "handled": MAX_HANDLED, "more": 1}
    payload = json.dumps({"action": "register", "data": {"device_id": "d", "ext": said}}).encode()
    assert CODECS[Dialect.AUTH].decode(payload, Major.CMD).body == Register(
        "d", Ext(LONGEST + "x", LONGEST, MAX_HANDLED)
    )


@pytest.mark.parametrize("word", ["hub_online", "hub_dismiss"])
def test_whose_place_it_is_must_be_said(word: str) -> None:
    for data in ({"device_id": "d"}, {"node_id": 5}, {"device_id": "", "node_id": 5}):
        body = CODECS[Dialect.AUTH].decode(json.dumps({"action": word, "data": data}).encode(), Major.CMD).body
        assert isinstance(body, Malformed) and body.action is Action(word)


def test_flat_has_none_of_it() -> None:
    codec = CODECS[Dialect.FLAT]
    assert json.loads(codec.encode(Register("d", Ext("a")))) == {"action": "register", "device_id": "d"}
    said = {"v": 1, "journal": "a"}
    payload = json.dumps({"action": "register", "device_id": "d", "ext": said}).encode()
    assert codec.decode(payload, Major.CMD).body == Register("d")
    body = codec.decode(b'{"action":"hub_fence","device_id":"d"}', Major.CMD).body
    assert isinstance(body, Malformed) and body.action is None
