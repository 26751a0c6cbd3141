"""Streams cut into frames: the same however the bytes arrive, bounded, and never an exception."""

from itertools import pairwise

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from hubauth.core.messages import Answer, Body, Frame, Major, Malformed, Offline, Reason, Register
from hubauth.core.policy import Dialect
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import NotInDialect
from hubauth.wire.framing import FrameDecoder, Limits, RawFrame, encode_frame, read_frame
from hubauth.wire.header import Refused, Version
from tests.wire.strategies import answers, frames, requests

AUTH = CODECS[Dialect.AUTH]
SMALL = Limits(auth=40, opaque=60)
VERSIONS = st.sampled_from([None, Version.V1, Version.V2])
REGISTER = Frame(Register("mac-001122334455"), msg_id=7)


def stream(version: Version, *given_frames: Frame) -> bytes:
    return b"".join(encode_frame(version, AUTH, frame) for frame in given_frames)


def bodies(items: list[RawFrame | Refused]) -> list[Body]:
    return [read_frame(AUTH, item).frame.body for item in items if isinstance(item, RawFrame)]


opaque_frames = frames(st.binary(max_size=70), st.sampled_from([2, 2, 7, 19, 63]))
streams = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda rest: b"MH\x02" + rest, st.binary(max_size=200)),
    st.builds(
        lambda version, some, rest: stream(version, *some) + rest,
        st.sampled_from(Version),
        st.lists(opaque_frames, max_size=4),
        st.binary(max_size=40),
    ),
)


@given(streams, VERSIONS, st.lists(st.integers(0, 500), max_size=12))
def test_chunking_makes_no_difference(data: bytes, version: Version | None, cuts: list[int]) -> None:
    whole = FrameDecoder(version, SMALL).feed(data)
    for edges in ([0, *sorted(min(cut, len(data)) for cut in cuts), len(data)], list(range(len(data) + 1))):
        decoder = FrameDecoder(version, SMALL)
        items: list[RawFrame | Refused] = []
        for start, end in pairwise(edges):
            fed = decoder.feed(data[start:end])
            assert decoder.held <= 255 + SMALL.opaque
            if items and isinstance(items[-1], Refused):
                assert fed == [items[-1]]
            else:
                items += fed
        assert items == whole


@given(streams, VERSIONS)
def test_frames_and_what_is_held_are_the_whole_stream(data: bytes, version: Version | None) -> None:
    decoder = FrameDecoder(version, SMALL)
    items = decoder.feed(data)
    refused = [item for item in items if isinstance(item, Refused)]
    assert refused in ([], items[-1:])
    taken = sum(item.header.length + len(item.payload) for item in items if isinstance(item, RawFrame))
    if not refused:
        assert taken + decoder.held == len(data)
    for item in items:
        if isinstance(item, RawFrame):
            assert len(item.payload) == item.header.payload_length
            read_frame(AUTH, item)


@given(st.lists(opaque_frames, max_size=6), st.sampled_from(Version), st.integers(0, 60), st.integers(1, 50))
def test_what_is_too_long_to_be_held_is_passed_over(
    some: list[Frame], version: Version, longest: int, size: int
) -> None:
    some = [frame for frame in some if len(frame.body) <= (40 if frame.sub_proto == 2 else 60)]  # type: ignore[arg-type]
    data = stream(version, *some)
    decoder = FrameDecoder(version, SMALL)
    decoder.longest_opaque = longest
    items: list[RawFrame | Refused] = []
    for start in range(0, len(data), size):
        items += decoder.feed(data[start : start + size])
        assert decoder.held < 32 + max(40, longest)
    kept = [frame for frame in some if frame.sub_proto == 2 or len(frame.body) <= longest]  # type: ignore[arg-type]
    assert [item.payload for item in items if isinstance(item, RawFrame)] == [frame.body for frame in kept]
    assert (decoder.passed_over, decoder.held) == (len(some) - len(kept), 0)


def test_frames_are_cut_when_they_are_asked_for() -> None:
    opaque = Frame(b"x" * 50, sub_proto=7)
    decoder = FrameDecoder(Version.V1, SMALL)
    decoder.take_in(stream(Version.V1, opaque, opaque)[:100])
    assert (decoder.held, decoder.is_ready) == (100, True)
    assert isinstance(decoder.next(), RawFrame)
    decoder.longest_opaque = 40
    assert (decoder.next(), decoder.held, decoder.is_ready, decoder.passed_over) == (None, 0, False, 1)
    decoder.take_in(stream(Version.V1, opaque)[-48:] + stream(Version.V1, Frame(b"y", sub_proto=7)))
    item = decoder.next()
    assert isinstance(item, RawFrame) and item.payload == b"y"


@pytest.mark.parametrize("version", Version)
def test_the_first_frame_shows_the_version(version: Version) -> None:
    decoder = FrameDecoder()
    assert decoder.version is None
    items = decoder.feed(stream(version, REGISTER, REGISTER))
    assert decoder.version is version
    assert [item.rules for item in items if isinstance(item, RawFrame)] == [
        (f"WIRE-{version.value}", "WIRE-7"),
        (f"WIRE-{version.value}",),
    ]
    assert bodies(items) == [REGISTER.body, REGISTER.body]


def test_version_2_must_stay_version_2() -> None:
    items = FrameDecoder().feed(stream(Version.V2, REGISTER) + stream(Version.V1, REGISTER))
    assert isinstance(items[0], RawFrame)
    assert items[1:] == [Refused("WIRE-5", "magic 0x0b00")]


def test_a_stream_set_to_version_1_may_start_like_the_magic() -> None:
    odd = Frame(b"payload", Major.ERR_RESP, sub_proto=19, flags=0x48)
    (item,) = FrameDecoder(Version.V1).feed(stream(Version.V1, odd))
    assert isinstance(item, RawFrame)
    assert read_frame(AUTH, item).frame == odd


def test_a_wrong_start_is_refused_before_the_header_is_complete() -> None:
    decoder = FrameDecoder(Version.V2)
    assert decoder.feed(b"\x0b\x00\x00") == []
    assert decoder.feed(b"\x00") == [Refused("WIRE-5", "magic 0x0b00")]


def test_extra_header_bytes_are_skipped() -> None:
    plain = stream(Version.V2, REGISTER)
    longer = plain[:3] + bytes([40]) + plain[4:32] + b"ignored!" + plain[32:]
    items = FrameDecoder(Version.V2).feed(longer + plain)
    assert bodies(items) == [REGISTER.body, REGISTER.body]


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(("sub_proto", "limit"), [(2, SMALL.auth), (7, SMALL.opaque)])
def test_a_payload_over_the_limit_is_refused_by_its_header_alone(version: Version, sub_proto: int, limit: int) -> None:
    fits = Frame(b"x" * limit, sub_proto=sub_proto)
    assert isinstance(FrameDecoder(version, SMALL).feed(stream(version, fits))[0], RawFrame)
    data = stream(version, evolve(fits, body=b"x" * (limit + 1)))
    decoder = FrameDecoder(version, SMALL)
    refused = Refused("WIRE-6", f"payload of {limit + 1} bytes, limit {limit}")
    assert decoder.feed(data[: 24 if version is Version.V1 else 32]) == [refused]
    assert decoder.held == 0
    assert decoder.feed(stream(version, fits)) == [refused]


def test_default_limits() -> None:
    assert Limits() == Limits(auth=65536, opaque=1048576)


def test_other_sub_protocols_stay_opaque() -> None:
    frame = Frame(b"\xff{}", sub_proto=7, source=5, target=6)
    (item,) = FrameDecoder(Version.V1).feed(stream(Version.V1, frame))
    assert isinstance(item, RawFrame)
    assert (read_frame(AUTH, item).frame, read_frame(AUTH, item).rules) == (frame, ("WIRE-8",))


def test_compressed_payloads_are_unreadable_but_pass_through_when_opaque() -> None:
    for sub_proto, body in ((2, Malformed(None, "compressed payload")), (7, b"{}")):
        (item,) = FrameDecoder(Version.V1).feed(stream(Version.V1, Frame(b"{}", sub_proto=sub_proto, flags=0b10)))
        assert isinstance(item, RawFrame)
        read = read_frame(AUTH, item)
        assert read.frame.body == body
        assert read.rules == (("WIRE-9",) if sub_proto == 2 else ("WIRE-8",))


def test_what_a_dialect_cannot_say_is_not_written() -> None:
    for codec, body in (
        (CODECS[Dialect.FLAT], Offline("d")),
        (AUTH, Malformed(None, "")),
        (AUTH, Answer(None, Reason.OK)),
    ):
        with pytest.raises(NotInDialect):
            encode_frame(Version.V1, codec, Frame(body))


@given(st.data(), st.sampled_from(Version), st.sampled_from([Dialect.AUTH, Dialect.LOGIN]))
def test_frames_survive_the_round_trip(data: st.DataObject, version: Version, dialect: Dialect) -> None:
    codec = CODECS[dialect]
    frame = data.draw(frames(requests(codec) | answers(codec), st.just(2)))
    frame = evolve(frame, flags=frame.flags & ~0b10)
    (item,) = FrameDecoder().feed(encode_frame(version, codec, frame))
    assert isinstance(item, RawFrame)
    kept = frame if version is Version.V2 else evolve(frame, trace_id=0, hop_limit=0)
    assert read_frame(codec, item).frame == kept
