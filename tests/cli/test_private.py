"""What may hold a credential is for its owner only, and is shown to nobody who did not ask for it."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubauth.cli.main import main
from hubauth.shell import engine
from hubauth.shell.addresses import Address
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.hubs import ADMIN, describe, in_thread, profile_toml
from tests.report.hostile import CHOSEN, DRAWN, write_trace

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _careless() -> Iterator[None]:
    """As if whoever runs this lets everybody read what they make."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> set[str]:
    """Of everything below."""
    return {stat.filemode(path.stat().st_mode) for path in [directory, *directory.rglob("*")]}


def hubauth(*words: object) -> int:
    return main([str(word) for word in words])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_traces_that_are_made_or_converted(form: str, tmp_path: Path) -> None:
    made = tmp_path / "deep" / "made"
    assert hubauth("trace", "generate", "--events", "500", "--format", form, "--out", made) == 0
    assert modes(made) | modes(made.parent) == {"drwx------", "-rw-------"}
    for other in ("jsonl", "parquet"):
        out = tmp_path / f"to-{other}"
        assert hubauth("trace", "convert", made, out, "--to", other) == 0
        assert modes(out) == {"drwx------", "-rw-------"}


def test_pictures_and_small_traces(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t", "sensor", CHOSEN)
    assert hubauth("trace", "explain", trace, "--svg", tmp_path / "a.svg", "--html", tmp_path / "a.html") == 0
    assert hubauth("trace", "shrink", trace, "--out", tmp_path / "a.jsonl") == 0
    assert {stat.filemode(path.stat().st_mode) for path in tmp_path.glob("a.*")} == {"-rw-------"}


def test_reports_of_a_judgement_hold_no_credential(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    """Neither what the profile names nor what the hub under test has issued, not even in a vector to play again."""
    described = describe("root")
    profile, out = tmp_path / "profile.toml", tmp_path / "deep" / "report"
    profile.write_text(profile_toml(described.profile), encoding="utf-8")
    issued: set[str] = set()
    step = BROKEN["believes late reports"].decide()

    def watched(policy: object, state: object, happened: object) -> object:
        issued.add(getattr(happened, "fresh", ""))
        return step(policy, state, happened)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "step", watched)
    with in_thread(described) as address:
        words = ["--only", "REG-13", "--only", "AUTH-1", "--examples", "60", "--seed", "1"]
        assert hubauth("conform", address, "--profile", profile, *words, "--report", out) == 1
        seen = capsys.readouterr()
        assert hubauth("conform", address, "--profile", profile, "--only", "OFF-7", "--only", "AUTH-1", "--json") == 1
    said = seen.out + seen.err + capsys.readouterr().out
    assert f"chmod 600 {profile}" in seen.err
    files = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert any(name.endswith("random-v1.json") for name in files)
    for secret in {*issued, *described.profile.secrets} - {""}:
        assert secret not in said
        assert not [name for name, content in files.items() if secret in content]
    assert modes(out) | modes(out.parent) == {"drwx------", "-rw-------"}
    assert len(issued) > 5


def test_a_vector_can_be_played_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    described = describe("root")
    profile = tmp_path / "profile.toml"
    profile.write_text(profile_toml(described.profile), encoding="utf-8")
    monkeypatch.setattr(engine, "step", BROKEN["believes late reports"].decide())
    with in_thread(described) as address:
        words = ["--only", "REG-13", "--examples", "60", "--seed", "1", "--report", tmp_path / "r"]
        assert hubauth("conform", address, "--profile", profile, *words) == 1
    (vector,) = (tmp_path / "r").glob("*-random-v1.json")
    (tmp_path / "v").mkdir()
    vector.rename(tmp_path / "v" / vector.name)
    capsys.readouterr()
    assert hubauth("vectors", "run", "--from", tmp_path / "v") == 0
    assert "0 mismatches" in capsys.readouterr().out


# Devices


@pytest.fixture(scope="module")
def hub() -> Iterator[Address]:
    with in_thread(describe("root")) as address:
        yield address


def test_a_device_shows_its_credential_only_to_whoever_would_lose_it(
    hub: Address, tmp_path: Path, capsys: Printed
) -> None:
    identity = tmp_path / "identity.json"
    words = ["--hub", hub, "--device-id", "shown"]
    assert hubauth("device", "register", *words) == 0
    credential = capsys.readouterr().out.split("credential")[1].split()[0]
    assert re.fullmatch(r"[\w-]{43}", credential)
    assert hubauth("device", "auth", *words, "--credential", credential) == 0
    assert credential not in capsys.readouterr().out
    for form in ([], ["--json"]):
        assert hubauth("device", "register", *words, "--identity", identity, *form) == 0
        kept = json.loads(identity.read_text(encoding="utf-8"))["credential"]
        assert hubauth("device", "auth", "--hub", hub, "--identity", identity, *form) == 0
        assert kept not in capsys.readouterr().out
    assert stat.filemode(identity.stat().st_mode) == "-rw-------"


def test_the_credential_to_revoke_comes_from_a_file(
    hub: Address, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity, file = tmp_path / "identity.json", tmp_path / "revoked"
    monkeypatch.setenv("HUBAUTH_CREDENTIAL", ADMIN.credential)
    revoke = ["device", "revoke", "thief", "--hub", hub, "--device-id", "admin", "--wait", "20"]
    file.write_text(DRAWN + "\n", encoding="utf-8")
    file.chmod(0o640)
    assert hubauth(*revoke, "--revoked-credential-file", file) == 2
    assert f"chmod 600 {file}" in capsys.readouterr().err
    file.chmod(0o600)
    for content in ("", "x" * 257):
        file.write_text(content, encoding="utf-8")
        assert hubauth(*revoke, "--revoked-credential-file", file) == 2
    assert hubauth(*revoke, "--revoked-credential-file", tmp_path / "missing") == 2
    assert hubauth(*revoke, "--revoked-credential", DRAWN) == 2
    monkeypatch.delenv("HUBAUTH_CREDENTIAL")
    assert hubauth("device", "register", "--hub", hub, "--device-id", "thief", "--identity", identity) == 0
    file.write_text(json.loads(identity.read_text(encoding="utf-8"))["credential"] + "\n", encoding="utf-8")
    monkeypatch.setenv("HUBAUTH_CREDENTIAL", ADMIN.credential)
    capsys.readouterr()
    assert hubauth(*revoke, "--revoked-credential-file", file) == 0
    assert "thief" in capsys.readouterr().out
    monkeypatch.delenv("HUBAUTH_CREDENTIAL")
    assert hubauth("device", "auth", "--hub", hub, "--identity", identity) == 1


# Files that others can read


def test_a_configuration_that_others_can_read_is_said(tmp_path: Path, capsys: Printed) -> None:
    file = tmp_path / "hub.toml"
    assert hubauth("hub", "init", file) == 0
    assert stat.filemode(file.stat().st_mode) == "-rw-------"
    assert hubauth("hub", "--config", file, "--check") == 0 and "chmod" not in capsys.readouterr().err
    file.chmod(0o604)
    assert hubauth("hub", "--config", file, "--check") == 0
    assert f"others can read {file}: chmod 600 {file}" in capsys.readouterr().err
    command = [sys.executable, "-m", "hubauth.cli", "hub", "--config", str(file), "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, "--data-dir", str(tmp_path / "d")], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "listening" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert "warning not_private" in said and f"chmod 600 {file}" in said
