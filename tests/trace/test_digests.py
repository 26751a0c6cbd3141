"""Digests of both ends of a connection: in whatever pieces they were made, they say what the frames say."""

from itertools import pairwise
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hubauth.forms.events import Event, Kind
from hubauth.trace import connections, digests, ends
from hubauth.trace.digests import Digests, End, ways_of
from hubauth.trace.generate import Blueprint
from hubauth.trace.judge import judge
from hubauth.trace.storage import events_files
from tests.spark.traces import rows_of, write_rows

TRAIL = 8
"""Here."""
_FRAMES = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b"])), max_size=2 * TRAIL + 8)


def end_of(kind: Kind, link: int, frames: list[tuple[int, bytes]], cuts: list[int]) -> End:
    """One end that sent or received these, seen in pieces."""
    rows = [Event("t", "h", 0, Kind.LINK_UP, link=link, connection="c")]
    rows += [Event("t", "h", 0, kind, link=link, connection="c", msg_id=n, payload=p) for n, p in frames]
    together: End | None = None
    for begin, finish in pairwise([0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]):
        piece = Digests()
        for row in rows[begin:finish]:
            piece.feed(row)
        for _, end in piece.rest():
            together = end if together is None else together.then(end)
    assert together is not None
    return together


@mock.patch.object(digests, "TRAIL", TRAIL)
@given(_FRAMES, _FRAMES, st.lists(st.integers(0, 40), max_size=4), st.lists(st.integers(0, 40), max_size=4))
def test_what_is_settled_is_what_was_sent(
    frames: list[tuple[int, bytes]], others: list[tuple[int, bytes]], cuts: list[int], more: list[int]
) -> None:
    sent = end_of(Kind.FRAME_OUT, 0, frames, cuts).sent
    for received in (others, frames, frames[:-1], frames[:-TRAIL], frames[: len(frames) // 2], frames[1:]):
        flow = end_of(Kind.FRAME_IN, 3, received, more).received
        starts = frames[: len(received)] == received
        headers = [n for n, _ in frames][: len(received)] == [n for n, _ in received]
        is_known = not received or len(frames) - len(received) < TRAIL
        for alike, payloads in ((starts, True), (headers, False)):
            settled = sent.begins_with(flow, payloads=payloads)
            assert settled if alike and is_known else alike or not settled


def test_a_connection_has_two_ends_that_are_known_from_the_beginning() -> None:
    lower, upper = (end_of(Kind.FRAME_OUT, link, [(1, b"x")], []) for link in (0, 3))
    assert [way.is_settled for way in ways_of([("a", lower), ("b", upper)], payloads=True)] == [True, True]
    assert [way.is_flying for way in ways_of([("a", lower), ("b", upper)], payloads=True)] == [True, True]
    assert list(ways_of([("b", upper), ("a", upper)], payloads=True)) == []
    assert list(ways_of([("a", replace(lower, begins=False)), ("b", upper)], payloads=True)) == []
    third = [("a", lower), ("b", upper), ("c", upper)]
    assert [way.is_settled for way in ways_of(third, payloads=True)] == [False, False], "whose frames are they?"


def test_only_what_digests_leave_open_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[set[tuple[str, str]]] = []

    class Watched(ends.Ends):
        def __init__(self, unsettled: set[tuple[str, str]]) -> None:
            looked.append(unsettled)
            super().__init__(unsettled)

    monkeypatch.setattr(connections, "Ends", Watched)
    rows, _ = rows_of(Blueprint(5, 20, 6000, 4, trace="t"))
    write_rows(tmp_path / "t", rows, [])
    assert judge([tmp_path / "t"]).exit_code == 0
    assert looked == [], "connections that drop lose frames, and that is nothing to look at"
    at = [n for n, row in enumerate(rows) if row.kind is Kind.FRAME_OUT and row.link == 0][30]
    rows[at] = replace(rows[at], timestamp=rows[at].timestamp + 1)
    write_rows(tmp_path / "u", rows, [])
    (verdict,) = [one for one in judge([tmp_path / "u"]).verdicts if one.findings]
    assert [one.rule for one in verdict.findings] == ["TRACE-4"]
    assert looked == [{("t", rows[at].connection)}]


def test_nothing_is_kept_of_connections_to_devices(tmp_path: Path) -> None:
    """Of which there is no end in the life of a hub."""
    rows, _ = rows_of(Blueprint(3, 20, 3000, 4, trace="t"))
    write_rows(tmp_path / "t", rows, [])
    between = connections.Connections(events_files(tmp_path / "t"))
    for row in rows:
        between.of(row.trace, row.hub).feed(row)
    upwards = {row.connection for row in rows if row.kind is Kind.LINK_UP and row.link == 0}
    told = {name for hub in ("hub-0", "hub-1", "hub-2") for name, _ in between.of("t", hub).rest()}
    assert told == upwards and len(upwards) < len({row.connection for row in rows}) / 3
