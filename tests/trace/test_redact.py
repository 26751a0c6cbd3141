"""Tokens stand for credentials, and a hub reads a redacted payload as it read the original."""

import json
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from hubauth.core.canonical import encode_state
from hubauth.core.credentials import is_well_formed
from hubauth.core.messages import Action, Answer, Frame, Grant, Major, Malformed, Revoke
from hubauth.core.model import Entry, Pending, Purpose, Registration, Session, State
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.forms.policies import encode_policy
from hubauth.trace.redact import Redactor
from hubauth.wire.dialects import CODECS

KEY = b"k" * 32
CREDENTIALS = st.sampled_from(["a" * 43, "b" * 43, "short", "x" * 256, "y" * 257, "", 'q"\\\n', "\u00fc" * 50])
WORDS = st.sampled_from(
    ["register", "auth", "login", "revoke", "assist_auth", "assist_login", "register_resp", "auth_resp", "nothing"]
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | CREDENTIALS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["credential", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "device_id": st.sampled_from(["d", "", 3]),
        "credential": CREDENTIALS | JUNK,
        "node_id": st.sampled_from([7, -1, "7"]),
        "code": st.sampled_from([1, 4001, None]),
        "x": JUNK,
    },
)


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    fields = draw(FIELDS)
    content = {"action": draw(WORDS), "data": fields} if draw(st.booleans()) else {"action": draw(WORDS), **fields}
    escaped = draw(st.booleans())
    text = json.dumps(content, ensure_ascii=escaped, indent=draw(st.sampled_from([None, 1])))
    if draw(st.booleans()):
        text = text.replace("credential", "\\u0063redential")
    if draw(st.booleans()):
        text = text.replace('"x":', '"x": "\\ud800", "z":')
    if draw(st.integers(0, 9)) == 0:
        text = text[: len(text) // 2]
    return text.encode(errors="surrogatepass")


def reading(payload: bytes, dialect: Dialect, major: Major) -> object:
    """What a hub makes of a payload, with tokens for the credentials in it."""
    body = CODECS[dialect].decode(payload, major).body
    if isinstance(body, Malformed):
        return body.action, body.is_answer
    if isinstance(body, Answer):
        return body.action, body.reason, body.device_id, body.node_id, body.credential
    return body


@settings(max_examples=600)
@given(payloads(), st.sampled_from(Dialect), st.sampled_from([Major.CMD, Major.OK_RESP]))
def test_a_redacted_payload_reads_the_same(payload: bytes, dialect: Dialect, major: Major) -> None:
    redactor = Redactor(KEY)
    before, after = reading(payload, dialect, major), reading(redactor.payload(2, 0, payload), dialect, major)
    if isinstance(before, tuple):
        if len(before) == 5:
            before = (*before[:4], redactor.token(before[4]))
        assert after == before
    else:
        credential = getattr(before, "credential", "")
        assert type(after) is type(before)
        assert getattr(after, "credential", "") == redactor.token(credential)


@given(payloads())
def test_no_credential_is_left(payload: bytes) -> None:
    redacted = Redactor(KEY).payload(2, 0, payload)
    for secret in (b"a" * 43, b"b" * 43):
        if b'"x"' not in payload and b'"z"' not in payload:
            assert secret not in redacted


def test_a_token_has_the_shape_of_its_credential() -> None:
    token = Redactor(KEY).token
    assert is_well_formed(token("a" * 43)) and token("a" * 43) != "a" * 43
    assert token("") == ""
    assert not is_well_formed(token("short")) and len(token("short")) <= 256
    assert len(token("z" * 257)) > 256
    assert token("a" * 43) == Redactor(KEY).token("a" * 43) != Redactor(b"j" * 32).token("a" * 43)


@pytest.mark.parametrize("payload", [b"anything at all", b"\xff\x00", b"", b"[1]", b'"' + b"a" * 43 + b'"'])
def test_what_nobody_can_read_keeps_only_its_length(payload: bytes) -> None:
    redacted = Redactor(KEY).payload(2, 0, payload)
    assert len(redacted) == len(payload)
    assert redacted != payload or not payload


def test_other_protocols_are_nobodys_business() -> None:
    secret = b'{"action":"auth","data":{}}'
    redactor = Redactor(KEY)
    assert redactor.payload(7, 0, secret) != secret
    assert redactor.payload(2, 0b10, secret) != secret
    assert redactor.payload(2, 0, secret) == secret
    assert redactor.payload(7, 0, secret) == redactor.payload(7, 0, secret)


def test_the_way_a_payload_is_written_stays() -> None:
    payload = b'{ "action":"auth",  "data": {"credential" : "%s"} }' % (b"a" * 43)
    redacted = Redactor(KEY).payload(2, 0, payload)
    token = Redactor(KEY).token("a" * 43).encode()
    assert redacted == payload.replace(b"a" * 43, token)
    assert msgspec.json.decode(redacted)["data"]["credential"] == token.decode()


def test_every_table_of_a_state_is_looked_into() -> None:
    """Redaction walks through maps, tuples and values of the core: a table of another kind would keep what it holds."""
    for name, hint in get_type_hints(State).items():
        kinds = {get_origin(part) or part for part in (get_args(hint) if isinstance(hint, UnionType) else (hint,))}
        assert name == "index" or kinds <= {Map, tuple, int, str, bool, type(None)}, name


def test_states_and_policies_hold_tokens_for_what_rows_hold_tokens_for() -> None:
    secret, redactor = "gf0v6QH8v5QxvdSx38RyVpDTlUh4SLxqXYTZ8hiuwZ4", Redactor(KEY)
    held = Pending(Purpose.HELD, Action.REVOKE, 1, device_id=secret, held=Frame(Revoke(secret, 3, secret)))
    state = State(
        credential=secret,
        links=Map({1: Session(secret, 5, False), 2: None}),
        registry=Map({secret: Registration(5)}),
        whitelist=Map({secret: Entry(5, secret, False)}),
        perms=Map({5: Grant(secret, (secret,))}),
        pending=Map({1: held}),
        beaten=Map({secret: secret}),
    )
    encoded = encode_state(redactor.state(state)).decode()
    assert secret not in encoded and encoded.count(redactor.token(secret)) == encode_state(state).decode().count(secret)
    policy = Policy(device_id=secret, credential=secret, provisioned=(Provisioned(secret, 7, secret, secret),))
    assert secret.encode() not in encode_policy(redactor.policy(policy))
