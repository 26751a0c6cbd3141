"""Rows survive every format, whatever is in them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.forms.events import Checkpoint, Event, Kind, TraceError
from hubauth.forms.lines import decode_event, encode_event
from hubauth.forms.policies import decode_policy, encode_policy
from hubauth.specification import SPEC
from hubauth.trace import jsonl, parquet, storage
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.storage import TraceWriter, checkpoint_files, events_files, read_checkpoints, read_events

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
UINT32 = st.integers(0, MAX_NODE_ID)
EVENTS = st.builds(
    Event,
    TEXT,
    TEXT,
    st.integers(0, 2**62),
    st.sampled_from(Kind),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**53),
    TEXT,
    TEXT,
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 63),
    st.integers(0, 255),
    UINT32,
    UINT32,
    UINT32,
    UINT32,
    st.integers(0, 255),
    UINT32,
    st.binary(max_size=60) | TEXT.map(str.encode),
)

ROW = Draft202012Validator(json.loads((SPEC / "schemas" / "trace.schema.json").read_text(encoding="utf-8")))


@given(EVENTS)
def test_a_line_is_the_row(event: Event) -> None:
    line = encode_event(event)
    assert line.count(b"\n") == 1
    assert decode_event(line) == event


@given(st.lists(EVENTS, min_size=1, max_size=5))
def test_a_batch_is_the_rows(events: list[Event]) -> None:
    assert parquet.events_of(parquet.batch_of(events)) == events


@given(EVENTS)
def test_the_schema_describes_every_line(event: Event) -> None:
    assert ROW.is_valid(json.loads(encode_event(event)))


def test_a_payload_that_is_text_is_readable() -> None:
    event = Event("t", "h", 1, Kind.FRAME_IN, payload='{"action":"grüß"}'.encode())
    assert json.loads(encode_event(event))["payload"] == '{"action":"grüß"}'
    raw = json.loads(encode_event(Event("t", "h", 1, Kind.FRAME_IN, payload=b"\xff\x00")))
    assert raw["payload_base64"] == "/wA=" and "payload" not in raw


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{}", "missing required field"),
        (b"[1]", "Expected"),
        (b'{"trace":"t","hub":"h","sequence":0,"kind":"flew"}', "Invalid enum value"),
        (b'{"trace":"t","hub":"h","sequence":0,"kind":"end","wings":2}', "unknown field"),
        (b'{"trace":"t","hub":"h","sequence":0,"kind":"end","version":2}', "format version 2"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 100_000, "Expected"),
    ],
)
def test_what_is_no_row_is_refused(line: bytes, said: str) -> None:
    with pytest.raises(TraceError, match=said):
        decode_event(line)


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_trace_on_disk_is_the_trace(form: str, tmp_path: Path) -> None:
    rows: list[Event] = []
    checkpoints: list[Checkpoint] = []
    with TraceWriter(tmp_path / "t", form, rows_per_file=500) as writer:  # type: ignore[arg-type]

        def both(event: Event) -> None:
            rows.append(event)
            writer.event(event)

        def keep(checkpoint: Checkpoint) -> None:
            checkpoints.append(checkpoint)
            writer.checkpoint(checkpoint)

        generate(Blueprint(events=1500, devices=20, checkpoint_events=200), both, keep)

    def of_each(table: list[Any]) -> list[Any]:
        return sorted(table, key=lambda row: row.hub)  # which keeps the order of each hub's

    files = events_files(tmp_path / "t")
    assert [event for file in files for event in read_events(file)] == of_each(rows)
    kept = [row for file in checkpoint_files(tmp_path / "t") for row in read_checkpoints(file)]
    assert kept == of_each(checkpoints) and len(kept) > 3


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_every_hub_has_files_of_its_own(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As recorders write them: whatever hubs are called, and however many there are."""
    monkeypatch.setattr(storage, "OPEN_FILES", 2)
    monkeypatch.setattr(storage, "HELD", 50)
    names = ["a", "a/b", "a-0000", "ü" * 300, f"{'ü' * 300}!", ""]
    with TraceWriter(tmp_path / "t", form, rows_per_file=40) as writer:  # type: ignore[arg-type]
        for at in range(100):
            for name in names:
                writer.event(Event("t", name, at, Kind.FRAME_IN))
                if not at % 50:
                    writer.checkpoint(Checkpoint("t", name, at, "", b"", b""))
    for table, wanted in ((events_files, [*range(100)]), (checkpoint_files, [0, 50])):
        seen: dict[str, list[int]] = {name: [] for name in names}
        for file in table(tmp_path / "t"):
            rows: list[Any] = [*(read_events if table is events_files else read_checkpoints)(file)]
            (hub,) = {row.hub for row in rows}
            seen[hub] += [row.sequence for row in rows]
        assert seen == dict.fromkeys(names, wanted)
    assert "a-0000.parquet" in {path.name for path in events_files(tmp_path / "t")} or form == "jsonl"


def test_a_trace_is_never_written_over(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t"):
        pass
    with pytest.raises(TraceError, match="holds a trace already"):
        TraceWriter(tmp_path / "t")


def test_an_unfinished_last_line_is_left_out(tmp_path: Path) -> None:
    whole = encode_event(Event("t", "h", 0, Kind.START)) + encode_event(Event("t", "h", 1, Kind.END))
    file = tmp_path / "rows.jsonl"
    for cut in range(len(whole)):
        file.write_bytes(whole[:cut])
        rows = list(jsonl.read_events(file))
        assert [row.sequence for row in rows] == list(range(whole[:cut].count(b"}")))


def test_a_truncated_parquet_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    writer = parquet.EventWriter(file)
    writer.write([Event("t", "h", 0, Kind.START)])
    writer.close()
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(TraceError, match="not readable as Parquet"):
        list(parquet.read_events(file))


def test_a_policy_survives() -> None:
    policy = Policy(
        device_id="grüß",
        node_id=7,
        credential="c",
        has_parent=True,
        authority=3,
        dialect=Dialect.LOGIN,
        node_roles={3: "x", 12: "y"},
        role_perms={"x": ("a", "b"), "y": ()},
        provisioned=(Provisioned("a", 2, "secret", "x"),),
        request_seconds=0.25,
    )
    assert decode_policy(encode_policy(policy)) == policy
    assert decode_policy(b"{}") == Policy()
    for wrong in (b"", b"[]", b'{"node_id":-1}', b'{"wings":2}', b'{"dialect":"french"}', b"\xff"):
        with pytest.raises(ValueError, match="not a policy"):
            decode_policy(wrong)
