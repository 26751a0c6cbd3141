"""How a difference is found and named, frame by frame, without a hub."""

import json
from typing import Any

import pytest

from hubauth.core.messages import Action, Answer, AssistRegister, Frame, Major, Reason
from hubauth.oracle.conform.compare import align, compare
from hubauth.oracle.conform.profile import ChoicesTable
from hubauth.oracle.conform.wire import Seen
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.header import Version

ANSWER = Answer(Action.REGISTER, Reason.OK, "sensor", 7, "A" * 43)
EXPECTED = Frame(ANSWER, Major.OK_RESP, 5, 1)
REFUSAL = Frame(Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED), Major.ERR_RESP, 5, 1)


def seen(frame: Frame = EXPECTED, version: Version = Version.V1, **changes: Any) -> Seen:
    """The frame as it should come, with some of it changed."""
    header = {name: changes.pop(name) for name in list(changes) if name in ("major", "msg_id", "source", "target")}
    assert not isinstance(frame.body, bytes)
    payload = json.loads(AUTH.encode(frame.body))
    payload["action"] = changes.pop("action", payload["action"])
    payload["data"] |= changes
    payload["data"] = {name: value for name, value in payload["data"].items() if value is not ...}
    encoded = json.dumps(payload).encode()
    fields = {"major": frame.major, "msg_id": frame.msg_id, "source": frame.source, "target": frame.target, **header}
    return Seen(Frame(AUTH.decode(encoded, frame.major).body, **fields), encoded, version)


def found(expected: Frame, got: Seen, choices: ChoicesTable | None = None) -> list[tuple[str, str, bool]]:
    return [(one.what, one.rule, one.informational) for one in compare(AUTH, expected, got, choices or ChoicesTable())]


def test_what_is_the_same_is_no_difference() -> None:
    assert found(EXPECTED, seen()) == []


@pytest.mark.parametrize(
    ("changes", "what", "rule"),
    [
        ({"msg_id": 6}, "MsgID", "FRAME-12"),
        ({"source": 2}, "SourceID", "FRAME-12"),
        ({"major": Major.CMD}, "Major", "FRAME-13"),
        ({"target": 7}, "TargetID", "FRAME-14"),
        ({"action": "register_answer"}, "action", "MSG-1"),
        ({"node_id": 8}, "node_id", ""),
        ({"node_id": "7"}, "node_id", ""),
        ({"credential": ...}, "credential", "MSG-10"),
        ({"role": "admin"}, "role", "AUTH-26"),
    ],
)
def test_every_difference_has_its_rule(changes: dict[str, Any], what: str, rule: str) -> None:
    assert found(EXPECTED, seen(**changes)) == [(what, rule, False)]


def test_another_decision_is_one_difference() -> None:
    refused = seen(REFUSAL)
    assert found(Frame(Answer(Action.AUTHENTICATE, Reason.OK, "x", 1), Major.OK_RESP, 5, 1), refused) == [
        ("answer", "", False)
    ]
    assert found(EXPECTED, seen(REFUSAL)) == [("answer", "", False)]
    wrong_major = seen(REFUSAL, major=Major.OK_RESP)
    assert ("Major", "FRAME-13", False) in found(EXPECTED, wrong_major)


def test_texts_and_additions_follow_the_profile() -> None:
    other = seen(REFUSAL, msg="go away", hub_id=3)
    assert found(REFUSAL, other) == [("msg", "CODE-2", True), ("fields", "MSG-13", False)]
    strict = ChoicesTable(texts=True, extra_fields=True)
    assert found(REFUSAL, other, strict) == [("msg", "CODE-2", False), ("fields", "MSG-13", True)]
    assert found(EXPECTED, seen(hub_id=3)) == [("fields", "MSG-10", True)]


def test_frames_find_their_partners_whatever_their_order() -> None:
    request = Frame(AssistRegister("sensor"), Major.CMD, 9, 1, 3)
    pairs, in_order = align(AUTH, [request, EXPECTED], [seen(), seen(request)])
    assert not in_order
    assert [pair.seen.frame.msg_id for pair in pairs if pair.seen is not None] == [9, 5]
    pairs, in_order = align(AUTH, [request, EXPECTED], [seen(msg_id=0), seen(REFUSAL)])
    assert [(pair.expected is not None, pair.seen is not None) for pair in pairs] == [(True, True), (True, True)]
    pairs, in_order = align(AUTH, [EXPECTED], [seen(), seen()])
    assert in_order and pairs[1].expected is None


def test_what_is_no_json_is_a_difference() -> None:
    got = Seen(Frame(b"", Major.OK_RESP, 5, 1), b"\xff")
    assert found(EXPECTED, got) == [("payload", "MSG-1", False)]
