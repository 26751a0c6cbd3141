"""An implementer is told what is missing, row by row."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind
from hubauth.forms.lines import encode_event
from hubauth.trace import parquet
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.lint import Finding, lint
from hubauth.trace.storage import TraceWriter, checkpoint_files
from tests.trace.harness import frame, numbered, start

GOOD = numbered(  # of a hub that replaces no credentials and has a bad clock
    [
        start(Policy(device_id="hub")),
        Event("t", "hub", 0, Kind.LINK_UP, 2, 1, "c"),
        frame(Kind.FRAME_IN, 1, b'{"action":"register","data":{"device_id":"d"}}', msg_id=7, connection="c"),
        frame(Kind.FRAME_OUT, 1, b'{"action":"register_resp","data":{"code":4500}}', major=1, msg_id=7, connection="c"),
        Event("t", "hub", 0, Kind.END, 3),
    ]
)


def linted(path: Path, lines: list[bytes]) -> list[Finding]:
    path.write_bytes(b"".join(lines))
    return list(lint(path))


def changed(at: int, **changes: Any) -> list[bytes]:
    rows = [json.loads(encode_event(event)) for event in GOOD]
    rows[at] |= changes
    return [json.dumps({k: v for k, v in row.items() if v is not None}).encode() + b"\n" for row in rows]


def test_a_good_trace_has_nothing_to_put_right(tmp_path: Path) -> None:
    findings = linted(tmp_path / "t.jsonl", changed(0))
    assert not [finding for finding in findings if finding.is_error]
    assert [finding.message for finding in findings] == [
        "credentials are not replaced: do not share this trace",
        "time goes back",
    ]


@pytest.mark.parametrize(
    ("at", "changes", "line", "said"),
    [
        (0, {"payload": "{}"}, 1, "does not say how the trace is to be read"),
        (0, {"payload": '{"order":"handled","policy":{"wings":2}}'}, 1, "unknown field"),
        (0, {"kind": "end", "payload": None}, 1, "must be its start"),
        (1, {"sequence": 5}, 2, "sequence 5, but 1 should follow"),
        (1, {"sequence": 5}, 3, "sequence 2, but 6 should follow"),
        (1, {"link": None}, 2, "link_up needs a link"),
        (1, {"link": 9}, 3, "link 1 never came up"),
        (2, {"kind": "link_up"}, 3, "link 1 is up already"),
        (2, {"header": 0}, 3, "a frame has header version 1 or 2"),
        (2, {"header": 7}, 3, "Expected `int` <= 2"),
        (2, {"msg_id": -1}, 3, "Expected `int` >= 0"),
        (2, {"kind": "policy", "payload": "?"}, 3, "cannot be read"),
        (2, {"colour": "red"}, 3, "unknown field `colour`"),
        (3, {"payload": None}, 4, "a frame of SubProto 2 without a payload"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    at: int, changes: dict[str, Any], line: int, said: str, tmp_path: Path
) -> None:
    findings = linted(tmp_path / "t.jsonl", changed(at, **changes))
    errors = [finding for finding in findings if finding.is_error]
    assert any(finding.where.endswith(f":{line}") and said in finding.message for finding in errors), errors


@pytest.mark.parametrize(
    ("at", "changes", "said"),
    [
        (0, {"payload": '{"order":"observed"}'}, "no policy"),
        (1, {"time": 0}, "no time"),
        (1, {"connection": None}, "no connection"),
        (3, {"payload": "{}"}, "the hub sent what its dialect cannot read"),
        (4, {"kind": "checkpoint"}, "no end row"),
    ],
)
def test_what_is_good_to_know_is_a_note(at: int, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    findings = linted(tmp_path / "t.jsonl", changed(at, **changes))
    assert any(said in finding.message and not finding.is_error for finding in findings), findings
    assert not any(finding.is_error for finding in findings)


def test_outputs_need_a_cause(tmp_path: Path) -> None:
    rows = numbered([GOOD[0], GOOD[3], GOOD[4]])
    findings = linted(tmp_path / "t.jsonl", [encode_event(row) for row in rows])
    assert any("cause" in finding.message for finding in findings)


def test_every_bad_line_is_told_of(tmp_path: Path) -> None:
    lines = changed(0)
    lines[2:2] = [b"{broken\n", b"\xff\n"]
    errors = [finding.where for finding in linted(tmp_path / "t.jsonl", lines) if finding.is_error]
    assert [where.rpartition(":")[2] for where in errors] == ["3", "4"]


def test_nothing_is_not_fine(tmp_path: Path) -> None:
    assert [finding.message for finding in linted(tmp_path / "t.jsonl", [])] == ["no row at all"]


def test_parquet_is_looked_at_too(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    writer = parquet.EventWriter(file)
    writer.write(numbered([GOOD[0], GOOD[1], GOOD[1]]))
    writer.close()
    errors = [finding for finding in lint(file) if finding.is_error]
    assert [finding.where for finding in errors] == [f"{file} row 3"]
    file.write_bytes(file.read_bytes()[:-9])
    assert any("not readable as Parquet" in finding.message for finding in lint(file))


def test_checkpoints_must_be_there(tmp_path: Path) -> None:
    def trace(name: str, keep: Callable[[TraceWriter], Any]) -> Path:
        with TraceWriter(tmp_path / name) as writer:
            generate(Blueprint(hubs=1, devices=5, events=300, checkpoint_events=100), writer.event, keep(writer))
        return tmp_path / name

    whole = trace("whole", lambda writer: writer.checkpoint)
    assert not [finding for finding in lint(whole) if finding.is_error]
    none = trace("none", lambda writer: lambda checkpoint: None)  # noqa: ARG005
    assert any("is not in the table" in finding.message for finding in lint(none))
    checkpoint_files(whole)[0].write_bytes(b"?\n")
    assert any(finding.is_error for finding in lint(whole))
