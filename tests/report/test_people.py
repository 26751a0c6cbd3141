"""Every command that shows something to people, given names that do harm and traces that hold credentials."""

import io
import json
import logging
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from hubauth.cli.grammar import commands
from hubauth.cli.main import main, parser
from hubauth.core.messages import Authenticate, Frame
from hubauth.core.policy import Policy, Provisioned
from hubauth.oracle.vectors_files import FOLDER
from hubauth.shell.observe import say, set_up_logging
from hubauth.shell.settings import LogTable
from hubauth.trace.drawing import to_svg
from hubauth.trace.explain import diagram_of
from tests.oracle.conform.hubs import describe, in_thread, profile_toml
from tests.report.hostile import CHOSEN, DRAWN, HOSTILE, assert_harmless, assert_well_formed, rows, write_trace
from tests.shell.harness import config, run, running
from tests.shell.raw import peer, register, written

LEAVES = {" ".join(command.path) for command in commands(parser()) if command.parser.get_default("run") is not None}
ROLE = HOSTILE.translate({ord(mark): None for mark in ",:;"})
"""As much of it as a configuration lets into the name of a role."""
BAD = HOSTILE.replace("\x00", "")
"""As much of it as an argument or the name of a file can hold."""


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command in this process; what it printed, which harms nobody."""

    def run(*arguments: object, codes: tuple[int, ...] = (0, 1)) -> str:
        code = main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert code in codes, said.err
        assert "Traceback" not in said.err
        assert_harmless(said.out + said.err)
        return said.out + said.err

    return run


Printed = Callable[..., str]

SHOWN = {
    "trace lint": ["", "--json"],
    "trace replay": ["--rules", "--json"],
    "trace explain": ["", "--svg out.svg", "--html out.html"],
    "trace shrink": ["--out small.jsonl", "--out small.jsonl --json"],
}
"""Commands that look at a trace, and how."""


@pytest.mark.parametrize("command", SHOWN)
@pytest.mark.parametrize("credential", [DRAWN, CHOSEN])
def test_whatever_a_trace_holds(
    command: str, credential: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (HOSTILE, DRAWN):
        trace = write_trace(tmp_path / f"trace-{name is HOSTILE}", name, credential)
        for options in SHOWN[command]:
            said = printed(*command.split(), trace, *options.split())
            assert "violates" in said.lower() or "to put right" in said or command != "trace replay"
            assert credential not in said
    for path in (tmp_path / "out.svg", tmp_path / "out.html"):
        if path.exists():
            assert_well_formed(path)
            assert credential not in path.read_text(encoding="utf-8")
            assert path.stat().st_mode & 0o777 == 0o600


def test_any_rows_of_a_trace(tmp_path: Path, printed: Printed) -> None:
    trace = write_trace(tmp_path / "trace", HOSTILE.replace("\x00", ""), CHOSEN)
    said = printed("trace", "explain", trace, "--hub", BAD, "--rows", "0:9", "--svg", tmp_path / "rows.svg")
    assert CHOSEN not in said and CHOSEN not in (tmp_path / "rows.svg").read_text(encoding="utf-8")
    assert_well_formed(tmp_path / "rows.svg")


def test_a_policy_with_credentials_is_not_shown(tmp_path: Path, printed: Printed) -> None:
    policy = Policy(credential=CHOSEN, provisioned=(Provisioned("a", 5, DRAWN), Provisioned("b", 6, CHOSEN)))
    trace = write_trace(tmp_path / "trace", "sensor", "other credential", policy)
    for words in (["replay"], ["replay", "--json"], ["lint"], ["explain"]):
        said = printed("trace", words[0], trace, *words[1:])
        assert CHOSEN not in said and DRAWN not in said


def test_a_drawing_of_nothing_but_harm(tmp_path: Path) -> None:
    path = tmp_path / "drawn.svg"
    path.write_text(to_svg(diagram_of(tuple(rows(HOSTILE, CHOSEN)))), encoding="utf-8")
    assert_well_formed(path)


def test_files_with_such_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: Printed) -> None:
    monkeypatch.chdir(tmp_path)
    bad = BAD.replace("/", "")
    for directory in (bad, "half"):
        (tmp_path / directory / "events").mkdir(parents=True)
        name = os.fsencode(bad) if directory == bad else b"\xff\xfe"
        Path(os.fsdecode(os.fsencode(tmp_path / directory / "events") + b"/" + name + b".jsonl")).write_bytes(b"{}\n")
        for command in ("lint", "replay", "explain"):
            printed("trace", command, directory, codes=(1, 4))
        printed("trace", "convert", directory, f"{directory}-out", "--to", "jsonl", codes=(4,))
        printed("vectors", "list", "--from", directory, codes=(2,))
    printed("trace", "tap", bad, bad, "--out", bad, codes=(2,))
    printed("trace", "import-pcap", bad, "--listens", "127.0.0.1:1", "--out", bad, codes=(4,))
    printed("trace", "generate", "--hubs", "1", "--events", "10", "--format", "jsonl", "--out", bad + "2")
    printed("hub", "--config", bad + ".toml", codes=(2,))
    printed("hub", "init", bad + ".toml", "--device-id", HOSTILE)
    printed("hub", "--check", "--config", bad + ".toml")
    printed("oracle", "--listen", bad, codes=(2,))
    printed("validate", bad, "--conf", bad, codes=(2,))
    printed("demo", "--out", bad, codes=(2,))
    printed("completion", bad, codes=(2,))
    printed("completion", "bash")
    printed("conform", bad, codes=(2,))
    printed("vectors", "run", "--case", bad, codes=(2,))
    printed("vectors", "export", bad, codes=(2,))
    printed("provision", HOSTILE, "7")
    printed("provision", HOSTILE, "7", "--json")


def test_an_adapter_that_says_such_things(tmp_path: Path, printed: Printed) -> None:
    adapter = tmp_path / "adapter.py"
    for line in (
        HOSTILE,
        json.dumps({"did": "error", "error": HOSTILE}),
        json.dumps({"did": "init", "digest": HOSTILE}),
    ):
        text = line.encode(errors="surrogateescape")
        adapter.write_text(f"import sys\nfor line in sys.stdin:\n    sys.stderr.buffer.write({text!r} + b'\\n')\n")
        with adapter.open("a") as file:
            file.write(f"    sys.stdout.buffer.write({text!r} + b'\\n'); sys.stdout.flush()\n")
        for form in ([], ["--json"]):
            command = f"{sys.executable} {adapter}"
            printed("fuzz", "--adapter", command, "--sequences", "2", "--timeout", "5", *form, codes=(1, 3))


def test_vectors_with_such_names(tmp_path: Path, printed: Printed) -> None:
    source = next(FOLDER.rglob("register*.json"))
    content = json.loads(source.read_text(encoding="utf-8"))
    content["cases"] = content["cases"][:1]
    content["cases"][0]["id"] = HOSTILE
    (tmp_path / "vectors.json").write_text(json.dumps(content), encoding="utf-8")
    printed("vectors", "list", "--from", tmp_path)
    printed("vectors", "list", "--from", tmp_path, "--json")
    content["cases"][0]["steps"][0]["rules"] = [HOSTILE]
    (tmp_path / "vectors.json").write_text(json.dumps(content), encoding="utf-8")
    printed("vectors", "run", "--from", tmp_path)
    printed("vectors", "run", "--from", tmp_path, "--json")


def test_a_hub_with_such_roles_seen_by_a_device_and_judged(tmp_path: Path, printed: Printed) -> None:
    described = describe("root")
    described.tables["auth"]["default_role"] = ROLE
    profile, out = tmp_path / "profile.toml", tmp_path / "report"
    profile.write_text(profile_toml(described.profile), encoding="utf-8")
    known = ["--identity", tmp_path / "identity.json"]
    with in_thread(described) as address:
        printed("device", "register", "--hub", address, "--device-id", HOSTILE, *known)
        for verb in (
            ["auth"],
            ["get-perms"],
            ["list-roles"],
            ["perms-invalidate"],
            ["revoke", HOSTILE, "--wait", "0.1"],
        ):
            for form in ([], ["--json"]):
                printed("device", *verb, "--hub", address, *known, *form)
        printed("device", "offline", "--hub", address, "--reason", BAD, *known)
        words = ["--profile", profile, "--only", "REG-13", "--only", "PERM-1", "--only", "REG-9"]
        assert "role" in printed("conform", address, *words, "--report", out, codes=(1,))
        printed("conform", address, *words, "--json", codes=(1,))
        learnt = printed("profile", "learn", address, "--timeout", "0.3")
        assert tomllib.loads(learnt)["roles"]["default_role"] == ROLE
        printed("profile", "check", address, profile)
    for name in ("junit.xml", "report.html", "summary.json"):
        assert_well_formed(out / name)


def test_a_running_hub_told_about_such_names(tmp_path: Path, printed: Printed) -> None:
    described = describe("root")
    described.tables["storage"] = {"data_dir": str(tmp_path / "data"), "durability": "os"}
    described.tables["hub"]["device_id"] = BAD
    with in_thread(described) as address:
        printed("device", "register", "--hub", address, "--device-id", BAD, "--identity", tmp_path / "identity.json")
        for verb in (["status"], ["revoke", BAD, "--wait", "0.1"], ["invalidate", "7"], ["reload"]):
            for form in ([], ["--json"]):
                printed("hub", "ctl", *verb, "--data-dir", tmp_path / "data", *form, codes=(0, 1, 2))


def test_no_command_was_forgotten() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    shown = {f"hubauth {command}" for command in SHOWN}
    for command in sorted(LEAVES - shown):
        first, *others = command.split()[1:]
        assert f'"{first}"' in here, command
        assert not others or f'"{others[0]}"' in here, command


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_of_a_hub(form: Literal["text", "json"]) -> None:
    heard = io.StringIO()
    set_up_logging(LogTable(level="debug", format=form), heard)

    async def story() -> None:
        async with running(config()) as hub:
            for name in (HOSTILE, DRAWN, f"x {DRAWN}"):
                async with peer(hub.address) as device:
                    await device.send(register(name) + written(Frame(Authenticate(name, DRAWN), msg_id=2)))
                    assert len(await device.frames(2)) == 2
        say(logging.ERROR, HOSTILE, error=ValueError(HOSTILE + DRAWN), said=HOSTILE, other=DRAWN)

    try:
        run(story())
    finally:
        logging.getLogger("hubauth").handlers.clear()
        logging.getLogger("hubauth").propagate = True
    assert_harmless(heard.getvalue())
    assert DRAWN not in heard.getvalue() and "Register" in heard.getvalue()
