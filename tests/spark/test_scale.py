"""A larger clean trace over 64 hubs conforms. ``HUBAUTH_SCALE_EVENTS=1000000`` for the million."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hubauth.judge.verdicts import Outcome
from hubauth.trace.generate import Blueprint
from tests.spark.traces import judge, write

_EVENTS = int(os.environ.get("HUBAUTH_SCALE_EVENTS", "100000"))


@pytest.mark.slow
def test_a_clean_trace_over_64_hubs_conforms(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "clean", Blueprint(64, 2_000, _EVENTS, 11, checkpoint_events=5_000, trace="clean"))
    summary = judge(spark, tmp_path / "clean", tmp_path / "report")
    assert summary.not_conforming == () and summary.findings == ()
    assert summary.outcome is Outcome.CONFORMS and summary.exit_code == 0
    assert summary.hubs == 64 and summary.rows >= _EVENTS
    assert all(check.looked_at for check in summary.checks)
    print(f"{summary.rows:,} rows in {summary.seconds:.1f} s, replay {summary.rows_per_second:,} rows/s")
