"""The tool that runs tests while processes of theirs are stopped: what it tells, and that it leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

from tools.catalogue import ROOT

FAILS = """
import time

def test_fails():
    time.sleep(1)
    assert False
"""
LEAVES = """
import subprocess, sys
from pathlib import Path

def test_leaves():
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(r"{}").write_text(str(left.pid))
"""


def soak(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.soak", "--runs", "1", "--stop", "0.2", "--workers", "0", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, env=environment, timeout=300)


def test_a_failure_is_told_with_the_stops_around_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILS)
    done = soak(tmp_path, "test_it.py")
    assert done.returncode == 1, done.stderr
    assert "test_it.py::test_fails" in done.stdout and "stopped for" in done.stdout
    assert "0 of 1 runs green" in done.stdout
    assert "assert False" in (tmp_path / "build/soak/run-1.txt").read_text()


def test_what_a_test_leaves_behind_is_told_and_ended(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(LEAVES.format(tmp_path / "pid"))
    done = soak(tmp_path, "test_it.py")
    assert done.returncode == 1, done.stderr
    left = (tmp_path / "pid").read_text()
    assert f"left behind: {left}" in done.stdout
    assert not Path(f"/proc/{left}").exists() or " Z " in Path(f"/proc/{left}/stat").read_text()


def test_green_is_green(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    done = soak(tmp_path, "test_it.py")
    assert (done.returncode, "1 of 1 runs green" in done.stdout) == (0, True), done.stdout + done.stderr
    assert not (tmp_path / "build").exists()
