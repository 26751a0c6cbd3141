"""Files that somebody else has written: each ends with a message, whatever is in it, and takes little memory."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.forms.events import Event, Kind, TraceError
from hubauth.forms.lines import encode_event
from hubauth.trace import jsonl

DEEP_TOML = "x = " + "[" * 5000
LONG_NUMBER = "x = " + "9" * 5000
DEEP_JSON = "[" * 5000
DEEP_KEY = ".".join(["hub"] * 5000) + " = 1"


@pytest.mark.parametrize(
    ("name", "content", "arguments", "code"),
    [
        *(
            ("x.toml", content, arguments, code)
            for content in (DEEP_TOML, LONG_NUMBER, DEEP_KEY, "\0" * 5000)
            for arguments, code in (
                (["hub", "--check", "--config", "x.toml"], 2),
                (["hub", "ctl", "reload", "--config", "x.toml"], 2),
                (["trace", "replay", "trace", "--policy", "x.toml"], 2),
                (["conform", "127.0.0.1:1", "--profile", "x.toml"], 4),
            )
        ),
        ("x.json", DEEP_JSON, ["device", "auth", "--identity", "x.json"], 2),
        ("x.json", '{"device_id": ' + DEEP_JSON, ["device", "auth", "--identity", "x.json"], 2),
        ("x.json", DEEP_JSON, ["trace", "replay", "trace", "--policy", "x.json"], 2),
        ("x.json", DEEP_JSON, ["vectors", "run", "--from", "."], 2),
    ],
)
def test_a_message_and_no_traceback(
    name: str,
    content: str,
    arguments: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content)
    (tmp_path / name).chmod(0o600)
    (tmp_path / "trace" / "events").mkdir(parents=True)
    (tmp_path / "trace" / "events" / "a.jsonl").write_bytes(encode_event(Event("t", "h", 0, Kind.START)))
    assert main(arguments) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said and len(said) < 2000


@pytest.mark.parametrize(
    "arguments",
    [
        ["hub", "--check", "--config", "/dev/zero"],
        ["hub", "ctl", "reload", "--config", "/dev/zero"],
        ["conform", "127.0.0.1:1", "--profile", "/dev/zero"],
        ["device", "auth", "--identity", "/dev/zero"],
        ["trace", "replay", "events", "--policy", "/dev/zero"],
    ],
)
def test_a_file_without_an_end(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "events").write_bytes(encode_event(Event("t", "h", 0, Kind.START)))
    done = in_little_memory(["-m", "hubauth.cli", *arguments], tmp_path)
    assert done.returncode in (2, 4) and "bytes" in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_a_line_without_an_end(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(encode_event(Event("t", "h", 0, Kind.START)))
    os.truncate(path, 1 << 35)
    done = in_little_memory(["-m", "hubauth.cli", "trace", "replay", str(path)], tmp_path)
    assert done.returncode == 4 and "events:2: a line of more than" in done.stdout, done.stderr


def test_lines_up_to_the_bound_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    row = Event("t", "h", 0, Kind.START)
    path.write_bytes(encode_event(row) * 2)
    monkeypatch.setattr(jsonl, "LONGEST_LINE", len(encode_event(row)))
    assert list(jsonl.read_events(path)) == [row, row]
    monkeypatch.setattr(jsonl, "LONGEST_LINE", len(encode_event(row)) - 1)
    with pytest.raises(TraceError, match=r"rows\.jsonl:1: a line of more than"):
        list(jsonl.read_events(path))


def test_a_deep_last_line_that_was_never_finished(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    row = Event("t", "h", 0, Kind.START)
    path.write_bytes(encode_event(row) + b"[" * 2000)
    assert list(jsonl.read_events(path)) == [row]


def in_little_memory(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that gets three gigabytes and no more."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, cwd=folder, preexec_fn=limited
    )
