"""A real standalone cluster on loopback: a master and two workers, whose Python does not have the package."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pyspark
import pytest

from hubauth.judge.verdicts import Outcome
from hubauth.spark.java import java_home
from hubauth.spark.results import Summary
from hubauth.trace.generate import Blueprint
from tests.spark.traces import write

pytestmark = pytest.mark.slow

_PATIENCE = 120
_HOME = Path(pyspark.__file__).parent
_SITE = _HOME.parent


@contextmanager
def daemon(log: Path, environment: dict[str, str], *arguments: str) -> Iterator[None]:
    """A process of Spark's; ended with the block."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            [_HOME / "bin" / "spark-class", *arguments], env=environment, stdout=file, stderr=file
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def wait_for(log: Path, pattern: str) -> "re.Match[str]":
    """Until a process has said something."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace")) if log.exists() else None
        if found is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{pattern} was never said: {log.read_text(errors='replace')}")


@pytest.fixture
def executor_python(tmp_path: Path) -> Path:
    """A Python with everything but hubauth: site-packages as it lies there, without what was linked into it."""
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{_SITE}" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    ran = subprocess.run(
        [script, "-c", "import attrs, pyarrow, hubauth.core"], capture_output=True, text=True, check=False
    )
    assert "No module named 'hubauth" in ran.stderr
    return script


def test_a_standalone_cluster_with_two_workers(tmp_path: Path, executor_python: Path) -> None:
    write(tmp_path / "traces" / "clean", Blueprint(6, 30, 3000, 1, checkpoint_events=500, trace="clean"))
    write(tmp_path / "traces" / "bad", Blueprint(6, 30, 3000, 1, fault="lost_answer", trace="bad"))
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": str(executor_python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    with ExitStack() as stack:
        log = tmp_path / "master.log"
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        stack.enter_context(daemon(log, environment, *master))
        url = wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")[1]
        for name in ("one", "two"):
            worker = ("org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0")
            limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / name))
            stack.enter_context(daemon(tmp_path / f"{name}.log", environment, *worker, *limits, url))
        for name in ("one", "two"):
            wait_for(tmp_path / f"{name}.log", "Successfully registered with master")
        conf = (
            "--conf",
            "spark.driver.host=127.0.0.1",
            "--conf",
            "spark.executor.memory=512m",
            "--conf",
            "spark.ui.enabled=false",
        )
        job = ["validate", str(tmp_path / "traces"), "--report", str(tmp_path / "report"), "--master", url, *conf]
        ran = subprocess.run(
            [sys.executable, "-m", "hubauth.cli", *job],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        executors = {path.name for name in ("one", "two") for path in (tmp_path / name).glob("app-*/*")}
    assert ran.returncode == 1, ran.stderr
    summary = msgspec.json.decode((tmp_path / "report" / "summary.json").read_bytes(), type=Summary)
    assert summary.master == url
    assert {trace.trace: trace.outcome for trace in summary.traces} == {
        "bad": Outcome.VIOLATES,
        "clean": Outcome.CONFORMS,
    }
    assert [hub.rule for hub in summary.not_conforming] == ["AUTH-1"]
    assert len(executors) == 2
