"""Opening and closing a Spark session: quiet, and for a local master on loopback only."""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from hubauth import private
from hubauth.spark.java import java_home
from hubauth.spark.ship import zip_package
from hubauth.spark.storage import brief

LOOPBACK = "127.0.0.1"
STOP_SECONDS = 60

_ALWAYS = {
    "spark.app.name": "hubauth validate",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.sql.session.timeZone": "UTC",
    # It would cut every shuffle into a job of its own, planned anew; partitions are counted before.
    "spark.sql.adaptive.enabled": "false",
    # Hadoop's file systems go by this, not by the umask of a process.
    "spark.hadoop.fs.permissions.umask-mode": "077",
}
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    # One JVM does all of it, and the replay's memory is Python's.
    "spark.driver.memory": "2g",
    # It works for minutes, and hands rows to Python: the second compiler costs more than it gains.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class NoSession(Exception):
    """Spark did not start: what it said last."""


@contextmanager
def open_session(master: str, log: Path, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session on ``master``, what the JVM says going to ``log``; stopped at the end, and its JVM with it.

    Executors elsewhere are sent this package. Under ``spark-submit`` the JVM is already there, and what was said to
    that holds before ``master``. Raises NoSession.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = SparkConf().setAll([*_ALWAYS.items()]) if submitted else _configuration(master)
    conf.setAll([*settings.items()])
    gateway = None
    try:
        gateway = launch_gateway(conf) if submitted else _launch(conf, log)  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
    except Exception as problem:  # py4j raises what Java raised, whatever that is
        if gateway is not None:
            _shut_down(gateway)
        raise NoSession(brief(problem)) from problem
    try:
        # Spark serves the archive to its executors from where it lies.
        with tempfile.TemporaryDirectory(prefix="hubauth-") as directory:
            if not _is_local(context.master or ""):
                archive = Path(directory) / "hubauth.zip"
                zip_package(archive)
                context.addPyFile(str(archive))
            yield SparkSession(context)
    finally:
        context.stop()
        _shut_down(gateway)


def _launch(conf: SparkConf, log: Path) -> Any:
    """A new JVM."""
    os.environ["JAVA_HOME"] = str(java_home())
    # What it puts aside may be as secret as the traces are.
    with log.open("ab") as file, private.whatever_is_started():
        return launch_gateway(conf, {"stdout": file, "stderr": file})  # type: ignore[no-untyped-call]


def _shut_down(gateway: Any) -> None:
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    process = getattr(gateway, "proc", None)
    if process is not None:
        # The JVM ends when its standard input does.
        process.stdin.close()
        process.wait(STOP_SECONDS)


def _configuration(master: str) -> SparkConf:
    conf = SparkConf().setMaster(master).setAll([*_ALWAYS.items()])
    if _is_local(master):
        conf.setAll([*_LOCAL.items()])
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return conf


def _is_local(master: str) -> bool:
    return master.startswith("local")
