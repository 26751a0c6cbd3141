"""Small traces to be judged."""

import io
from pathlib import Path

from pyspark.sql import SparkSession

from hubauth.forms.events import Checkpoint, Event
from hubauth.spark.results import Summary
from hubauth.spark.run import run_job
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.planting import Plan
from hubauth.trace.storage import Format, TraceWriter


def write(directory: Path, blueprint: Blueprint, form: Format = "parquet") -> Plan | None:
    """Generate a trace into a directory."""
    with TraceWriter(directory, form) as writer:
        return generate(blueprint, writer.event, writer.checkpoint)


def rows_of(blueprint: Blueprint) -> tuple[list[Event], list[Checkpoint]]:
    """Generate a trace in memory."""
    events: list[Event] = []
    checkpoints: list[Checkpoint] = []
    generate(blueprint, events.append, checkpoints.append)
    return events, checkpoints


def write_rows(directory: Path, events: list[Event], checkpoints: list[Checkpoint], form: Format = "parquet") -> None:
    with TraceWriter(directory, form) as writer:
        for event in events:
            writer.event(event)
        for checkpoint in checkpoints:
            writer.checkpoint(checkpoint)


def judge(spark: SparkSession, path: Path, report: Path) -> Summary:
    return run_job(spark, str(path), str(report), io.StringIO())
