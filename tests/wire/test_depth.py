"""The scan for depth agrees with a slow one that reads byte by byte, strings and escapes included."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hubauth.wire.depth import MAX_DEPTH, nests_too_deep

values = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{}"\\/xé\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=20,
)
pieces = st.one_of(
    st.sampled_from([b"[", b"]", b"{", b"}", b'"', b"\\", b'""', b'\\"', b"\\\\", b"[]", b"x"]),
    st.integers(1, 2 * MAX_DEPTH).map(lambda count: b"[" * count),
    st.integers(1, 2 * MAX_DEPTH).map(lambda count: b"}" * count),
    st.integers(1, MAX_DEPTH).map(lambda count: b"[" * count + b"]" * (count - 1)),
    values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=6),
)
payloads = st.lists(pieces, max_size=40).map(b"".join)


def highest(payload: bytes) -> int:
    """How deep a reader that goes byte by byte gets before something closes that was never opened."""
    level = most = 0
    inside = escaped = False
    for byte in payload:
        if inside:
            inside = escaped or byte != ord('"')
            escaped = not escaped and byte == ord("\\")
        elif byte == ord("\\"):
            return most  # no JSON beyond this
        elif byte == ord('"'):
            inside = True
        elif byte in b"[{":
            level += 1
            most = max(most, level)
        elif byte in b"]}":
            level -= 1
            if level < 0:
                return most
    return most


@given(values, st.integers(0, 2 * MAX_DEPTH))
def test_json_is_too_deep_exactly_if_it_nests_deeper_than_the_limit(value: object, around: int) -> None:
    payload = b"[" * around + json.dumps(value).encode() + b"]" * around
    assert nests_too_deep(payload) == (highest(payload) > MAX_DEPTH)


@given(payloads)
@example(b"]" * 100 + b"[" * 100)
@example(b'"' + b"\\\\" * 50 + b'"' + b"[" * 33)
@example(b'"' + b"\\\\" * 50 + b'\\"' + b"[" * 33)
def test_what_is_let_through_takes_no_reader_too_deep(payload: bytes) -> None:
    assert nests_too_deep(payload) or highest(payload) <= MAX_DEPTH


@given(payloads)
def test_what_is_refused_is_too_deep_or_no_json(payload: bytes) -> None:
    if nests_too_deep(payload) and highest(payload) <= MAX_DEPTH:
        with pytest.raises(ValueError):
            json.loads(payload)


@pytest.mark.parametrize("level", range(1, 2 * MAX_DEPTH))
def test_a_sawtooth_of_any_height(level: int) -> None:
    tooth = b"[" * level + b"]" * level
    for payload in (tooth * 100, b"[" + tooth * 100 + b"]", b'["[[["' + b",{}" * 40 + b"," + tooth + b"]"):
        assert nests_too_deep(payload) == (highest(payload) > MAX_DEPTH)
