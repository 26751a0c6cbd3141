"""``hubauth vectors`` and ``hubauth oracle`` as processes, and the clients that the documentation shows."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.core import authenticate
from hubauth.oracle.vectors_files import FOLDER, MANIFEST, archive_of, archived_files, folder_files
from tests.oracle.asking import Peer
from tests.report.hostile import HOSTILE, assert_harmless

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "docs" / "examples" / "oracle_client.js"
HUBAUTH = (sys.executable, "-m", "hubauth.cli")
CASE = "auth/register/the_last_node_id_is_given_out_and_after_it_none"


def hubauth(*arguments: object) -> tuple[int, str]:
    """Run one command in this process; exit code and everything it said."""
    with redirect_stdout(StringIO()) as said, redirect_stderr(said):
        code = main([str(argument) for argument in arguments])
    return code, said.getvalue()


# vectors


def test_cases_are_listed_by_rule_and_dialect() -> None:
    code, said = hubauth("vectors", "list", "--rule", "REG-3", "--dialect", "auth")
    assert code == 0
    assert CASE in said.splitlines()
    assert all(line.startswith("auth/register/") for line in said.splitlines())
    code, said = hubauth("vectors", "list", "--rule", "WIRE-6", "--json")
    described = json.loads(said)
    assert code == 0 and all("WIRE-6" in case["rules"] for case in described)


def test_the_reference_passes() -> None:
    code, said = hubauth("vectors", "run", "--rule", "REG-3")
    assert (code, said) == (0, "6 cases, 18 steps, 0 mismatches\n")


def test_a_broken_reference_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticate, "verify", lambda *_: True)
    code, said = hubauth("vectors", "run", "--rule", "AUTH-2", "--dialect", "login")
    assert code == 1
    assert "AUTH-2: A device whose credential differs" in said
    assert "expected: [" in said and "seen:     [" in said
    code, said = hubauth("vectors", "run", "--rule", "AUTH-2", "--dialect", "login", "--json")
    assert code == 1
    assert json.loads(said)["mismatches"][0]["rules"][0] == "AUTH-2"


def test_an_archive_holds_every_file_and_what_it_must_hold(tmp_path: Path) -> None:
    archive = tmp_path / "vectors.zip"
    code, said = hubauth("vectors", "export", archive, "--json")
    assert code == 0
    assert json.loads(said)["files"] == len(folder_files())
    assert archived_files(archive) == folder_files()
    assert archive.read_bytes() == archive_of(folder_files())
    assert hubauth("vectors", "run", "--from", archive, "--case", CASE) == (0, "1 cases, 4 steps, 0 mismatches\n")
    code, said = hubauth("vectors", "export", archive)
    assert (code, "exists already" in said) == (2, True)


def _rewritten(path: Path, changes: dict[str, bytes | None]) -> Path:
    """An archive in which some files are others, or gone."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            inner = name.partition("/")[2]
            new = changes.get(inner, content)
            if new is not None:
                archive.writestr(name, new)
    return path


def test_bad_sources_are_told_in_a_line(tmp_path: Path) -> None:
    original = archive_of(folder_files())

    def archive(name: str, changes: dict[str, bytes | None]) -> Path:
        path = tmp_path / name
        path.write_bytes(original)
        return _rewritten(path, changes)

    text = tmp_path / "text.zip"
    text.write_text("no archive")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(original[: len(original) // 2])
    newer = tmp_path / "newer" / "auth"
    newer.mkdir(parents=True)
    (newer / "a.json").write_text('{"format":2,"cases":[]}')
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "a.json").write_text('{"format":1,"cases":[{"kind":"hub"}]}')
    empty = tmp_path / "empty"
    empty.mkdir()
    table = {
        tmp_path / "nowhere": "cannot read",
        text: "is no archive",
        cut: "is no archive",
        newer.parent: "reads format 1",
        broken: "a.json: ",
        empty: "no vectors in",
        archive("changed.zip", {"auth/register.json": b"{}"}): "auth/register.json is not what the manifest says",
        archive("missing.zip", {"auth/register.json": None}): "auth/register.json is not what the manifest says",
        archive("bare.zip", {MANIFEST: None}): f"has no {MANIFEST}",
        archive("odd.zip", {MANIFEST: b"[]"}): "is no archive",
    }
    for source, part in table.items():
        code, said = hubauth("vectors", "run", "--from", source)
        assert code == 2, said
        assert part in said and "Traceback" not in said, (source, said)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("list", "--rule", "REG-999"), "no rule 'REG-999'"),
        (("run", "--case", "no such case"), "no vector is about that"),
        (("list", "--rule", "PERM-1", "--dialect", "flat"), "no vector is about that"),
        (("export",), "required: file"),
        (("export", "/nowhere/at/all.zip"), "cannot write"),
        ((), "required"),
    ],
)
def test_bad_arguments_are_told_in_a_line(arguments: tuple[str, ...], part: str) -> None:
    code, said = hubauth("vectors", *arguments)
    assert code == 2
    assert part in said and "hint: " in said


# oracle


def test_a_conversation_over_pipes() -> None:
    lines = b'{"do":"init"}\nnonsense\n\n{"do":"input","input":{"kind":"link_up","link":1}}\n{"do":"state"}'
    done = subprocess.run([*HUBAUTH, "oracle"], input=lines, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [json.loads(line)["did"] for line in done.stdout.splitlines()] == ["init", "error", "input", "state"]


def test_what_somebody_may_look_at_steers_no_terminal() -> None:
    asked = (
        json.dumps({"do": "init", "policy": {"device_id": HOSTILE}}) + '\n{"do":"state","id":"' + "\u202e\x9b" + '"}\n'
    )
    done = subprocess.run([*HUBAUTH, "oracle"], input=asked.encode(), capture_output=True, timeout=60)
    assert_harmless(done.stdout.decode())
    assert [json.loads(line) for line in done.stdout.splitlines()][1]["policy"]["device_id"] == HOSTILE


def test_an_answer_comes_before_the_next_question() -> None:
    with subprocess.Popen([*HUBAUTH, "oracle"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(3):
            process.stdin.write(b'{"do":"init"}\n')
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["did"] == "init"
        process.stdin.close()
        assert process.wait(30) == 0


@contextmanager
def listening() -> Iterator[tuple[str, int]]:
    """An oracle on a socket."""
    with subprocess.Popen([*HUBAUTH, "oracle", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            host, _, port = json.loads(process.stdout.readline())["listening"].rpartition(":")
            yield host, int(port)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_every_connection_is_a_conversation_of_its_own() -> None:
    with listening() as address:
        one, other = Peer(address), Peer(address)
        one.ask(do="init")
        digest = one.ask(do="input", input={"kind": "link_up", "link": 1})["digest"]
        assert other.ask(do="state")["did"] == "error"
        assert other.ask(do="init", policy={"dialect": "flat"})["did"] == "init"
        assert one.ask(do="state")["digest"] == digest
        one.close()
        assert other.ask(do="state")["policy"] == {"dialect": "flat"}
        other.socket.sendall(b'{"do":"reset"}')
        other.socket.shutdown(socket.SHUT_WR)
        assert other.answer()["did"] == "reset"
        assert other.file.read() == b""
        other.close()


def test_a_line_without_an_end_is_not_held() -> None:
    with listening() as address:
        peer = Peer(address)
        for _ in range(80):
            peer.socket.sendall(b"x" * 65536)
        peer.socket.sendall(b"\n")
        assert "a line of more than" in peer.answer()["error"]
        assert peer.ask(do="init")["did"] == "init"
        peer.close()


def test_too_many_conversations_are_refused_and_the_others_go_on() -> None:
    with listening() as address:
        peers = [Peer(address) for _ in range(64)]
        assert all(peer.ask(do="init")["did"] == "init" for peer in peers)
        late = Peer(address)
        assert late.answer() == {"did": "error", "error": "too many conversations"}
        assert late.file.read() == b""
        assert peers[0].ask(do="state")["did"] == "state"
        for peer in (*peers, late):
            peer.close()


def test_a_place_where_nobody_can_listen_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = hubauth("oracle", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert (code, "cannot listen on" in said) == (2, True)
    code, said = hubauth("oracle", "--listen", "here")
    assert (code, "not host:port" in said) == (2, True)


# The clients of the documentation


def node(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("node")
    if program is None:
        pytest.fail("no node on this machine; on Debian: apt install nodejs")
    environment = {**os.environ, **variables}
    return subprocess.run(
        [program, str(CLIENT), *arguments], capture_output=True, text=True, timeout=120, env=environment
    )


@pytest.fixture
def command(tmp_path: Path) -> str:
    """``hubauth`` as one word, whether or not it is on the path."""
    script = tmp_path / "hubauth"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hubauth.cli "$@"\n')
    script.chmod(0o755)
    return str(script)


@pytest.mark.e2e
def test_the_javascript_client_finds_a_good_hub_good(command: str) -> None:
    done = node(HUBAUTH=command)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rpartition(": ")[2] for line in done.stdout.splitlines()] == ["conforms"] * 3


@pytest.mark.e2e
def test_the_javascript_client_finds_the_fault_over_a_socket() -> None:
    with listening() as (host, port):
        done = node(f"{host}:{port}", "--reuse")
    assert done.returncode == 1
    assert "register: violates" in done.stdout and "REG-9: Registering a known device again" in done.stdout


@pytest.mark.e2e
def test_the_javascript_client_says_when_there_is_no_oracle() -> None:
    assert node(HUBAUTH="/nowhere/hubauth").returncode == 2
    assert node(HUBAUTH=shutil.which("true") or "true").returncode == 2


@pytest.mark.parametrize("name", ["oracle_client.js", "oracle_client.go"])
def test_a_client_is_short(name: str) -> None:
    lines = (CLIENT.parent / name).read_text(encoding="utf-8").splitlines()
    assert 30 < len(lines) < 100


def test_the_vectors_are_where_the_package_looks_for_them() -> None:
    assert (FOLDER / "README.md").is_file()
