"""Both headers, byte by byte and back."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from hubauth.core.messages import Frame, Major
from hubauth.wire.header import (
    Header,
    Refused,
    decode_v1,
    decode_v2,
    encode_v1,
    encode_v2,
)
from tests.wire.strategies import UINT32, frames

FRAME = Frame(
    b"",
    major=Major.CMD,
    msg_id=0x01020304,
    source=0x05060708,
    target=0x090A0B0C,
    sub_proto=2,
    trace_id=0x11121314,
    hop_limit=16,
    flags=1,
    timestamp=0x0D0E0F10,
)
V1 = bytes.fromhex("0b01 01020304 05060708 090a0b0c 0d0e0f10 00000074 0000")
V2 = bytes.fromhex("4d48 02 20 0b 01 10 00 01020304 05060708 090a0b0c 11121314 0d0e0f10 00000074")


def fields(header: Header) -> Frame:
    return Frame(
        b"",
        header.major,
        header.msg_id,
        header.source,
        header.target,
        header.sub_proto,
        header.trace_id,
        header.hop_limit,
        header.flags,
        header.timestamp,
    )


def test_every_field_has_its_place() -> None:
    assert encode_v1(FRAME, 0x74) == V1
    assert encode_v2(FRAME, 0x74) == V2
    first = decode_v1(V1)
    assert fields(first) == evolve(FRAME, trace_id=0, hop_limit=0)
    assert (first.length, first.payload_length, first.rules) == (24, 0x74, ("WIRE-1",))
    second = decode_v2(b"before" + V2, 6)
    assert isinstance(second, Header)
    assert fields(second) == FRAME
    assert (second.length, second.payload_length, second.rules) == (32, 0x74, ("WIRE-2",))


@pytest.mark.parametrize(
    ("major", "type_fmt"), [(Major.CMD, 0x0B), (Major.MSG, 0x0A), (Major.OK_RESP, 0x08), (Major.ERR_RESP, 0x09)]
)
def test_type_fmt_packs_major_and_sub_proto(major: Major, type_fmt: int) -> None:
    assert encode_v1(Frame(b"", major), 0)[0] == type_fmt
    assert decode_v1(encode_v1(Frame(b"", major), 0)).major is major


@pytest.mark.parametrize(
    ("start", "detail"),
    [
        ("4d49 02 20", "magic 0x4d49"),
        ("0000 00 00", "magic 0x0000"),
        ("4d48 01 20", "header version 1"),
        ("4d48 03 20", "header version 3"),
        ("4d48 02 1f", "header length 31"),
    ],
)
def test_a_wrong_version_2_start_is_refused(start: str, detail: str) -> None:
    assert decode_v2(bytes.fromhex(start) + V2[4:]) == Refused("WIRE-5", detail)


def test_reserved_fields_are_ignored_and_a_longer_header_is_noticed() -> None:
    assert decode_v1(V1[:-2] + b"\xff\xff").rules == ("WIRE-1", "WIRE-4")
    longer = decode_v2(V2[:3] + b"\xff" + V2[4:7] + b"\x80" + V2[8:])
    assert isinstance(longer, Header)
    assert (longer.length, longer.rules) == (255, ("WIRE-2", "WIRE-3", "WIRE-4"))


@given(frames(st.just(b""), st.integers(0, 63)), UINT32)
def test_headers_survive_the_round_trip(frame: Frame, payload_length: int) -> None:
    first = decode_v1(encode_v1(frame, payload_length))
    second = decode_v2(encode_v2(frame, payload_length))
    assert isinstance(second, Header)
    assert fields(first) == evolve(frame, trace_id=0, hop_limit=0)
    assert fields(second) == frame
    assert first.payload_length == second.payload_length == payload_length


@given(st.binary(min_size=24, max_size=24))
def test_any_24_bytes_are_a_version_1_header(data: bytes) -> None:
    header = decode_v1(data)
    assert encode_v1(header, header.payload_length)[:22] == data[:22]
