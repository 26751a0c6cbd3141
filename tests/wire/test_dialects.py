"""Any payload gives a body, any body its payload, and both ways lead back."""

import json
from typing import Any

import pytest
from attrs import evolve, fields_dict
from hypothesis import given
from hypothesis import strategies as st

from hubauth.core.messages import (
    CODES,
    NO_GRANT,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    Authenticate,
    Body,
    GetPerms,
    Grant,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.wire.depth import MAX_DEPTH
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import Codec
from tests.wire.strategies import answers, any_answer, json_values, near_messages, requests

AUTH, LOGIN, FLAT = CODECS[Dialect.AUTH], CODECS[Dialect.LOGIN], CODECS[Dialect.FLAT]
codecs = st.sampled_from(list(CODECS.values()))
majors = st.sampled_from(Major)


def decode(codec: Codec, payload: object, major: Major = Major.CMD) -> Body:
    return codec.decode(payload if isinstance(payload, bytes) else json.dumps(payload).encode(), major).body


def data(codec: Codec, body: Body) -> dict[str, Any]:
    """The fields written for a body, in the order written."""
    written = json.loads(codec.encode(body))
    found: dict[str, Any] = written.get("data", written)
    return found


def check_any(codec: Codec, payload: bytes, major: Major) -> None:
    decoded = codec.decode(payload, major)
    assert decoded.rules
    body = decoded.body
    if isinstance(body, Malformed):
        assert not (codec is FLAT and body.is_answer) or body.action is None
        return
    again = codec.encode(body)
    if isinstance(body, Answer):
        assert codec.encode(codec.decode(again, major).body) == again
    else:
        assert codec.decode(again, Major.CMD).body == body


@given(codecs, majors, st.binary(max_size=100))
def test_any_bytes_give_a_body(codec: Codec, major: Major, payload: bytes) -> None:
    check_any(codec, payload, major)


@given(st.data(), codecs, majors)
def test_any_json_gives_a_body(draw: st.DataObject, codec: Codec, major: Major) -> None:
    value = draw.draw(near_messages(codec) | json_values)
    payload = json.dumps(value, ensure_ascii=draw.draw(st.booleans())).encode()
    check_any(codec, payload, major)


@given(st.data(), codecs)
def test_requests_survive_the_round_trip(draw: st.DataObject, codec: Codec) -> None:
    body = draw.draw(requests(codec))
    payload = codec.encode(body)
    decoded = codec.decode(payload, Major.CMD)
    assert decoded.body == body
    assert decoded.rules == codec.rules_for(body)
    assert codec.encode(decoded.body) == payload


@given(st.data(), codecs)
def test_answers_survive_the_round_trip(draw: st.DataObject, codec: Codec) -> None:
    body = draw.draw(answers(codec))
    assert isinstance(body, Answer)
    payload = codec.encode(body)
    major = Major.OK_RESP if body.reason is Reason.OK else Major.ERR_RESP
    decoded = codec.decode(payload, major)
    assert decoded.body == (evolve(body, action=None) if codec is FLAT else body)
    if codec is not FLAT:
        assert decoded.rules == codec.rules_for(body)
        assert codec.encode(decoded.body) == payload


@given(codecs, any_answer)
def test_any_answer_the_dialect_has_is_written(codec: Codec, answer: Answer) -> None:
    if answer.action in {form.action for form in codec.forms}:
        written = data(codec, answer)
        assert list(written)[:2] == ["code", "msg"]
        assert written["code"] == CODES[answer.reason]


@pytest.mark.parametrize("codec", CODECS.values(), ids=[dialect.value for dialect in CODECS])
def test_requests_have_the_fields_of_their_core_messages(codec: Codec) -> None:
    for form in codec.forms:
        names = list(fields_dict(form.message))
        assert list(form.request.__struct_fields__) == names[: len(form.request.__struct_fields__)]
        assert codec is FLAT or len(form.request.__struct_fields__) == len(names)


def test_what_each_dialect_has() -> None:
    assert {form.action for form in AUTH.forms} == set(Action)
    assert {form.action for form in LOGIN.forms} == set(Action) - {
        Action.GET_PERMS,
        Action.LIST_ROLES,
        Action.PERMS_INVALIDATE,
    }
    assert [form.word for form in FLAT.forms] == ["register", "login", "assist_register", "assist_login"]


DEEP = b'{"action":"register","data":{"device_id":"d","x":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}}"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"action":5,"data":{}}',
        b'{"data":{"device_id":"d"}}',
        b'{"action":"register","data":{"device_id":"d"}} x',
        b'{"action":"register","data":{"device_id":"\xff"}}',
        b'{"action":"register","data":{"device_id":"d","x":"\xff"}}',
        b'\xef\xbb\xbf{"action":"register","data":{"device_id":"d"}}',
        b"[" * 65000,
        b'{"action":' * 6000,
        DEEP,
        # Takes seconds if skipping strings ever backtracks.
        b"[" * 40 + b'"' + b'\\"' * 32000,
        {"action": "register", "data": {"device_id": "\ud800"}},
        {"action": "register", "data": {"device_id": "d", "x": "\udc00"}},
        {"action": "login", "data": {"device_id": "d"}},
        {"action": "nonsense\n", "data": {}},
        {"action": "Register", "data": {"device_id": "d"}},
        {"action": "register_resp_resp", "data": {"device_id": "d"}},
    ],
)
def test_unreadable_payloads_name_no_action(payload: object) -> None:
    body = decode(AUTH, payload)
    assert isinstance(body, Malformed)
    assert (body.action, body.is_answer) == (None, False)


def test_the_deepest_payload_is_read_whatever_its_strings_hold() -> None:
    nested: object = '"]]]'
    for _ in range(MAX_DEPTH - 2):
        nested = [nested]
    assert decode(AUTH, {"action": "register", "data": {"device_id": "[" * 100, "x": nested}}) == Register("[" * 100)


@pytest.mark.parametrize(
    ("action", "payload"),
    [
        (Action.REGISTER, {"action": "register"}),
        (Action.REGISTER, {"action": "register", "data": None}),
        (Action.REGISTER, {"action": "register", "data": []}),
        (Action.REGISTER, {"action": "register", "data": {}}),
        (Action.REGISTER, {"action": "register", "data": {"device_id": ""}}),
        (Action.REGISTER, {"action": "register", "data": {"device_id": 5}}),
        (Action.REGISTER, {"action": "register", "data": {"device_id": "x" * 129}}),
        (Action.REGISTER, {"action": "register", "data": {"device_id": "é" * 65}}),
        (Action.AUTHENTICATE, {"action": "auth", "data": {"device_id": "d", "credential": "x" * 257}}),
        (Action.AUTHENTICATE, {"action": "auth", "data": {"device_id": "d", "credential": None}}),
        (Action.REVOKE, {"action": "revoke", "data": {"device_id": "d", "node_id": -1}}),
        (Action.REVOKE, {"action": "revoke", "data": {"device_id": "d", "node_id": 2**32}}),
        (Action.REVOKE, {"action": "revoke", "data": {"device_id": "d", "node_id": 5.0}}),
        (Action.REVOKE, {"action": "revoke", "data": {"device_id": "d", "node_id": True}}),
        (Action.REVOKE, {"action": "revoke", "data": {"device_id": "d", "node_id": "5"}}),
        (Action.OFFLINE, {"action": "offline", "data": {"device_id": "d", "reason": "x" * 1025}}),
        (Action.GET_PERMS, {"action": "get_perms", "data": {}}),
        (Action.LIST_ROLES, {"action": "list_roles", "data": {"offset": -1}}),
        (Action.LIST_ROLES, {"action": "list_roles", "data": {"limit": 1.5}}),
        (Action.LIST_ROLES, {"action": "list_roles", "data": {"node_ids": [-1]}}),
        (Action.PERMS_INVALIDATE, {"action": "perms_invalidate", "data": {"refresh": 1}}),
    ],
)
def test_bad_fields_of_a_known_action(action: Action, payload: object) -> None:
    body = decode(AUTH, payload)
    assert isinstance(body, Malformed)
    assert (body.action, body.is_answer) == (action, False)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"code": "1"},
        {"code": 1.0, "node_id": 5, "credential": "c"},
        {"code": 1, "node_id": 0, "credential": "c"},
        {"code": 1, "node_id": 5},
        {"code": 4001, "msg": 5},
        {"code": 4001, "device_id": "é" * 65},
    ],
)
def test_bad_answers(fields: object) -> None:
    body = decode(AUTH, {"action": "register_resp", "data": fields})
    assert isinstance(body, Malformed)
    assert (body.action, body.is_answer) == (Action.REGISTER, True)


def test_absent_optional_fields_read_as_empty_and_empty_ones_are_not_written() -> None:
    cases: list[tuple[Request, dict[str, Any]]] = [
        (Authenticate("d"), {"device_id": "d"}),
        (Revoke("d"), {"device_id": "d"}),
        (Offline("d"), {"device_id": "d"}),
        (AssistOffline("d"), {"device_id": "d"}),
        (ListRoles(), {}),
        (PermsInvalidate(), {}),
        (GetPerms(0), {"node_id": 0}),
    ]
    for message, fields in cases:
        assert data(AUTH, message) == fields
        assert decode(AUTH, {"action": message.action.value, "data": {**fields, "unknown": [{}]}}) == message


def test_a_search_holds_device_and_credential() -> None:
    assert data(LOGIN, AssistAuthenticate("d", "c")) == {"device_id": "d", "credential": "c"}
    assert data(FLAT, AssistAuthenticate("d", "c")) == {"action": "assist_login", "device_id": "d"}
    assert decode(AUTH, {"action": "assist_auth", "data": {"device_id": "d", "node_id": 5}}) == AssistAuthenticate("d")


def test_null_lists_are_empty_and_the_last_of_a_repeated_field_counts() -> None:
    assert decode(AUTH, {"action": "list_roles", "data": {"node_ids": None}}) == ListRoles()
    assert decode(
        AUTH, b'{"action":"auth","action":"get_perms","data":5,"data":{"node_id":1,"node_id":2}}'
    ) == GetPerms(2)
    fields = {"code": 1, "node_id": 5, "role": "node", "perms": None}
    assert decode(AUTH, {"action": "get_perms_resp", "data": fields}) == Answer(
        Action.GET_PERMS, Reason.OK, node_id=5, grant=Grant("node", ())
    )


def test_failures_say_as_much_as_their_receiver_may_know() -> None:
    full = Answer(None, Reason.UNREACHABLE, "d", 5, "secret", Grant("r", ("p",)), 3)
    plain = {"code": 4002, "msg": "upstream unavailable"}
    about = {**plain, "device_id": "d", "node_id": 5}
    expected = {
        Action.REGISTER: plain,
        Action.AUTHENTICATE: plain,
        Action.LIST_ROLES: plain,
        Action.PERMS_INVALIDATE: plain,
        Action.GET_PERMS: {**plain, "node_id": 5, "role": "", "perms": []},
        Action.REVOKE: about,
        Action.OFFLINE: about,
        Action.ASSIST_REGISTER: about,
        Action.ASSIST_AUTHENTICATE: about,
        Action.ASSIST_QUERY_CREDENTIAL: about,
        Action.ASSIST_OFFLINE: about,
    }
    for action, fields in expected.items():
        grant = NO_GRANT if action is Action.GET_PERMS else full.grant
        assert data(AUTH, evolve(full, action=action, grant=grant)) == fields
    unknown = Answer(Action.ASSIST_REGISTER, Reason.UNREACHABLE, "d")
    assert data(AUTH, unknown) == {**plain, "device_id": "d"}


def test_successes_write_every_field_also_when_empty() -> None:
    answer = Answer(Action.REGISTER, Reason.OK, "d", 5, "c")
    fields = ["code", "msg", "device_id", "node_id", "credential"]
    assert list(data(AUTH, answer)) == [*fields, "role", "perms"]
    assert list(data(LOGIN, answer)) == fields
    assert list(data(FLAT, answer)) == fields[:-1]
    assert data(AUTH, Answer(Action.LIST_ROLES, Reason.OK)) == {"code": 1, "msg": "ok", "total": 0, "roles": []}


def test_in_flat_the_major_tells_answers_from_requests() -> None:
    payload = {"action": "register", "device_id": "d", "code": 1, "node_id": 5}
    for major in (Major.CMD, Major.MSG):
        assert decode(FLAT, payload, major) == Register("d")
    for major in (Major.OK_RESP, Major.ERR_RESP):
        assert decode(FLAT, payload, major) == Answer(None, Reason.OK, "d", 5)
        bad = decode(FLAT, b"\xff", major)
        assert isinstance(bad, Malformed)
        assert bad.is_answer


def test_a_foreign_code_is_an_internal_error_of_its_sender() -> None:
    decoded = AUTH.decode(b'{"action":"revoke_resp","data":{"code":-7,"msg":"ok"}}', Major.OK_RESP)
    assert decoded.body == Answer(Action.REVOKE, Reason.INTERNAL)
    assert "CODE-11" in decoded.rules


def test_details_hold_no_values() -> None:
    secret = "s3cret" * 60
    body = decode(AUTH, {"action": "auth", "data": {"device_id": "d", "credential": secret}})
    assert isinstance(body, Malformed)
    assert "s3cret" not in body.detail
