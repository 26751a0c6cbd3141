"""``hubauth trace``: every command from its words to its exit code."""

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from hubauth.cli import main
from hubauth.shell.client import DeviceClient
from tests.shell.harness import run
from tests.shell.process import hub_process


def say(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.fixture
def traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A clean trace and a faulty one."""
    for name, more in (("good", ()), ("bad", ("--fault", "wrong_msg_id"))):
        arguments = ["trace", "generate", "--events", "1500", "--devices", "20", "--checkpoints", "300", *more]
        assert main([*arguments, "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    return tmp_path


def test_replay(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "trace", "replay", traces / "good", "--rules")
    assert code == 0 and "conforms: 4 hubs" in out and "REG-1" in out
    code, out, _ = say(capsys, "trace", "replay", traces / "good", traces / "bad")
    assert code == 1 and "VIOLATES FRAME-12" in out and "An answer copies" in out
    code, out, _ = say(capsys, "trace", "replay", traces / "bad", "--json")
    said = json.loads(out)
    wrong = [verdict for verdict in said["verdicts"] if verdict["outcome"] == "violates"]
    assert code == 1 and said["outcome"] == "violates" and [verdict["rule"] for verdict in wrong] == ["FRAME-12"]
    [finding] = wrong[0]["findings"]
    assert (finding["what"], finding["times"], finding["consequences"]) == ("MsgID", 1, 0)
    assert all(json.loads(line)["hub"] == wrong[0]["hub"] for line in finding["leads"])


def test_cannot_tell_has_an_exit_code_of_its_own(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "trace", "convert", traces / "good", traces / "lines", "--to", "jsonl")[0] == 0
    files = (traces / "lines" / "events").glob("*.jsonl")
    rows = [row for file in files for row in file.read_text().splitlines() if json.loads(row)["hub"] == "hub-0"]
    cut = traces / "cut.jsonl"
    cut.write_text("\n".join(rows[:40] + rows[41:]) + "\n")
    code, out, _ = say(capsys, "trace", "replay", cut)
    assert code == 5 and "cannot tell TRACE-1" in out and "nothing after row" in out
    assert say(capsys, "trace", "explain", cut)[0] == 5
    code, out, _ = say(capsys, "trace", "shrink", traces / "good", "--out", traces / "small.jsonl")
    assert code == 1


def test_by_the_documents_alone(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    decided = traces / "decided"
    planted = ["--events", "1500", "--devices", "20", "--fault", "no_fence", "--out", str(decided)]
    assert main(["trace", "generate", *planted]) == 0
    capsys.readouterr()
    code, out, _ = say(capsys, "trace", "replay", decided)
    assert code == 1 and "VIOLATES EXT-11" in out and "basis    decision: " in out
    code, out, _ = say(capsys, "trace", "replay", decided, "--basis", "documents", "--json")
    verdicts = json.loads(out)["verdicts"]
    apart = [finding for verdict in verdicts for finding in verdict["apart"]]
    assert code == 0 and [finding["rule"] for finding in apart] == ["EXT-11"] and "decision" in apart[0]["basis"]
    code, out, _ = say(capsys, "trace", "replay", traces / "bad", "--basis", "documents")
    assert code == (0 if "against a decision only" in out else 1)


def test_effort_is_a_number(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, said = say(capsys, "trace", "replay", traces / "good", "--effort", "none")
    assert code == 2 and "not a number of at least 1" in said
    assert say(capsys, "trace", "replay", traces / "good", "--effort", "1")[0] == 0


def test_nothing_to_judge_is_not_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "trace", "replay", tmp_path)[0] == 4
    assert say(capsys, "trace", "replay", tmp_path / "missing")[0] == 4
    (tmp_path / "empty.jsonl").write_text("")
    assert say(capsys, "trace", "replay", tmp_path / "empty.jsonl")[0] == 4
    (tmp_path / "bad.jsonl").write_text("{}\n")
    assert say(capsys, "trace", "replay", tmp_path / "bad.jsonl")[0] == 4


def test_lint(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "trace", "lint", traces / "good")
    assert code == 0 and out.endswith("0 to put right, 4 notes\n")
    (traces / "x.jsonl").write_text('{"trace":"t","hub":"h","sequence":3,"kind":"end"}\n{}\n')
    code, out, _ = say(capsys, "trace", "lint", traces / "x.jsonl", "--json")
    findings = [json.loads(line) for line in out.splitlines()]
    assert code == 1 and {"where", "message", "error"} == set(findings[0])
    assert say(capsys, "trace", "lint", traces / "nowhere")[0] == 4


def test_explain_and_shrink(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = traces / "small.jsonl"
    code, out, _ = say(capsys, "trace", "shrink", traces / "bad", "--out", small)
    assert code == 0 and "VIOLATES FRAME-12" in out and len(small.read_text().splitlines()) < 16
    code, out, _ = say(capsys, "trace", "shrink", small, "--out", traces / "again.jsonl", "--json")
    assert code == 0 and json.loads(out)["rule"] == "FRAME-12"
    code, out, _ = say(capsys, "trace", "explain", small, "--svg", traces / "a.svg", "--html", traces / "a.html")
    assert code == 0 and "FRAME-12" in out and "<--" in out
    assert (traces / "a.svg").read_text().startswith("<svg") and "<svg" in (traces / "a.html").read_text()
    code, out, _ = say(capsys, "trace", "explain", traces / "good", "--hub", "hub-1", "--rows", "0:5")
    assert code == 0 and "hub-1" in out and len(out.splitlines()) == 7
    assert say(capsys, "trace", "explain", traces / "good")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["shrink", "good", "--out", "x"], 1, "no row that does not conform"),
        (["shrink", "good", "--hub", "nobody", "--out", "x"], 4, "no hub nobody"),
        (["explain", "good", "--hub", "nobody"], 4, "there are hub-0"),
        (["explain", "good", "--rows", "3:1", "--hub", "hub-0"], 2, "not FIRST:LAST"),
        (["explain", "good", "--rows", "1:3"], 2, "--rows needs --hub"),
        (["explain", "good", "--rows", "1:3", "--hub", "hub-0", "--html", "x"], 2, "--html shows a verdict"),
        (["explain", "good", "--svg", "missing/x"], 2, "cannot write"),
        (["convert", "good", "good", "--to", "jsonl"], 2, "holds a trace already"),
        (["convert", "nowhere", "x", "--to", "jsonl"], 4, "no trace in nowhere"),
        (["replay", "good", "--policy", "nowhere.json"], 2, "cannot read nowhere.json"),
        (["replay", "good", "--policy", "nowhere.toml"], 2, "cannot read nowhere.toml"),
        (["generate", "--out", "good"], 2, "holds a trace already"),
        (["generate", "--out", "x", "--events", "0"], 2, "--events must be at least 1"),
        (["generate", "--out", "x", "--checkpoints", "-1"], 2, "must not be negative"),
        (["generate", "--out", "x", "--fault", "rain"], 2, "invalid choice"),
        (["generate", "--out", "x", "--dialect", "flat", "--fault", "no_fence", "--events", "50"], 3, "never found"),
        (["tap", "nowhere", "127.0.0.1:1", "--out", "x"], 2, "LISTEN: not host:port"),
        (["tap", "127.0.0.1:0", "127.0.0.1:1", "--out", "x", "--policy", "p.json"], 2, "cannot read p.json"),
        (["import-pcap", "nowhere", "--listens", "127.0.0.1:1", "--out", "x"], 4, "cannot read nowhere"),
        (["import-pcap", "nowhere", "--listens", "x", "--out", "x"], 2, "--listens: not host:port"),
        (["lint"], 2, "required"),
        ([], 2, "required"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    code: int,
    said: str,
    traces: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(traces)
    ended, _, err = say(capsys, "trace", *arguments)
    assert ended == code and said in err and "hint:" in err


def test_convert_there_and_back(traces: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "trace", "convert", traces / "good", traces / "j", "--to", "jsonl")[0] == 0
    code, out, _ = say(capsys, "trace", "convert", traces / "j", traces / "p", "--to", "parquet", "--json")
    assert code == 0 and json.loads(out)["checkpoints"] > 0
    assert say(capsys, "trace", "convert", traces / "p", traces / "k", "--to", "jsonl")[0] == 0
    for name in ("events", "checkpoints"):
        first, second = (sorted((traces / way / name).iterdir()) for way in ("j", "k"))
        assert [path.name for path in first] == [path.name for path in second] != []
        assert all(one.read_bytes() == other.read_bytes() != b"" for one, other in zip(first, second, strict=True))


def test_generate_says_what_it_planted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--events", "2000", "--devices", "20", "--fault", "wrong_code", "--json", "--format", "jsonl"]
    code, out, _ = say(capsys, "trace", "generate", *arguments, "--out", tmp_path / "t")
    said = json.loads(out)
    assert code == 0 and said["rule"] == "AUTH-2" and said["rows"] >= 2000
    code, out, _ = say(capsys, "trace", "replay", tmp_path / "t", "--json")
    wrong = [verdict for verdict in json.loads(out)["verdicts"] if verdict["outcome"] == "violates"]
    assert [(verdict["hub"], verdict["sequence"]) for verdict in wrong] == [(said["hub"], said["sequence"])]


def test_a_hub_as_a_process_records_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secrets: list[str] = []

    async def story() -> None:
        recording = ["--trace", str(tmp_path / "t"), "--trace-key", str(tmp_path / "key")]
        for _ in range(2):
            async with hub_process(tmp_path / "data", *recording) as hub:
                async with DeviceClient(hub.address, "sensor") as device:
                    await device.register()
                    secrets.append(device.credential)
                assert await hub.end(signal.SIGTERM) == 0

    run(story())
    code, out, _ = say(capsys, "trace", "replay", tmp_path / "t")
    assert code == 0 and "conforms: 1 hubs" in out
    written = b"".join(file.read_bytes() for file in (tmp_path / "t").rglob("*.jsonl"))
    assert len(secrets) == 2 and not any(secret.encode() in written for secret in secrets)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--trace-key", "k"], "need --trace DIR"),
        (["--keep-credentials"], "need --trace DIR"),
        (["--trace", "t", "--trace-key", "k", "--keep-credentials"], "of no use"),
        (["--trace", "file"], "cannot record in file"),
    ],
)
def test_a_hub_that_cannot_record_does_not_start(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("in the way")
    code, _, err = say(capsys, "hub", "--listen", "127.0.0.1:0", "--durability", "none", *arguments)
    assert code == 2 and said in err


def test_the_tap_as_a_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with hub_process(tmp_path / "data") as hub:
            (tmp_path / "policy.json").write_text("{}")
            command: list[Any] = ["-m", "hubauth.cli", "trace", "tap", "127.0.0.1:0", str(hub.address)]
            command += ["--out", str(tmp_path / "t"), "--policy", str(tmp_path / "policy.json")]
            tap = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
            try:
                assert tap.stdout is not None
                line = (await asyncio.wait_for(tap.stdout.readline(), 60)).decode()
                port = int(line.rpartition(":")[2])
                async with DeviceClient(hub.address._replace(port=port), "sensor") as device:
                    await device.register()
                tap.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(tap.wait(), 60) == 0
            finally:
                if tap.returncode is None:
                    tap.kill()
                    await tap.wait()

    run(story())
    assert say(capsys, "trace", "lint", tmp_path / "t")[0] == 0
    code, out, _ = say(capsys, "trace", "replay", tmp_path / "t")
    assert code == 0 and "conforms: 1 hubs" in out
