"""The whole job on small traces: the same verdicts whatever the format, and damage never stops it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from hubauth.spark.plan import SMALLEST_SEGMENT
from hubauth.spark.results import HubResult, Summary
from hubauth.spark.rows import NothingToJudge
from hubauth.spark.storage import StorageProblem
from hubauth.trace.generate import Blueprint
from hubauth.trace.jsonl import encode_event
from hubauth.trace.judge import judge as judge_alone
from hubauth.trace.storage import Format
from hubauth.trace.verdicts import Outcome
from tests.spark.traces import judge, rows_of, write, write_rows

_SMALL = Blueprint(4, 20, 1500, 7, checkpoint_events=400, trace="small")


def by_hub(summary: Summary) -> dict[str, HubResult]:
    return {hub.hub: hub for hub in summary.not_conforming}


def test_json_lines_and_parquet_are_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    forms: tuple[Format, ...] = ("jsonl", "parquet")
    plain = []
    for form in forms:
        write(tmp_path / form / "small", _SMALL, form)
        summary = judge(spark, tmp_path / form, tmp_path / f"{form}-report")
        assert summary.outcome is Outcome.CONFORMS and summary.exit_code == 0
        assert all(check.looked_at for check in summary.checks)
        plain.append((summary.rows, summary.hubs, summary.coverage, summary.checks, summary.traces))
        tables = {path.name for path in (tmp_path / f"{form}-report").iterdir() if path.is_dir()}
        assert tables == {"facts", "hubs", "findings", "links", "coverage"}
        assert pq.read_table(tmp_path / f"{form}-report" / "hubs").num_rows == 4
    assert plain[0] == plain[1]
    alone = judge_alone([tmp_path / "parquet" / "small"])
    assert alone.outcome is Outcome.CONFORMS
    assert plain[0][2] == dict(alone.rules)
    schema = json.loads((tmp_path / "jsonl-report" / "summary.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads((tmp_path / "jsonl-report" / "summary.json").read_text()))


def test_a_hot_hub_is_judged_in_segments_as_it_is_in_one_piece(spark: SparkSession, tmp_path: Path) -> None:
    size = 3 * SMALLEST_SEGMENT
    events, checkpoints = rows_of(Blueprint(1, 40, size, 4, checkpoint_events=SMALLEST_SEGMENT // 3, trace="hot"))
    write_rows(tmp_path / "hot", events, checkpoints)
    whole = judge(spark, next((tmp_path / "hot" / "events").iterdir()), tmp_path / "whole")
    cut = judge(spark, tmp_path / "hot", tmp_path / "cut")
    assert (whole.segments, cut.segments) == (1, 4)
    assert whole.outcome is cut.outcome is Outcome.CONFORMS
    assert whole.rows == cut.rows == len(events)
    assert whole.coverage == cut.coverage


# Damage


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _garble(file: Path) -> None:
    """The footer is right, what it points at is not."""
    content = bytearray(file.read_bytes())
    content[200:20_000] = bytes(19_800)
    file.write_bytes(content)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _no_parquet(file: Path) -> None:
    file.write_bytes(b"this is no Parquet file at all")


def _without_a_column(file: Path) -> None:
    pq.write_table(pq.read_table(file).drop_columns(["payload"]), file)


@pytest.fixture(scope="module")
def two_hubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace with a file of its own for each hub."""
    directory = tmp_path_factory.mktemp("two") / "tree"
    events, _ = rows_of(Blueprint(2, 20, 2500, 3, trace="tree"))
    for hub in ("hub-0", "hub-1"):
        write_rows(directory.parent / hub, [event for event in events if event.hub == hub], [])
        (directory / "events").mkdir(parents=True, exist_ok=True)
        (file,) = (directory.parent / hub / "events").iterdir()
        file.rename(directory / "events" / f"{hub}-0000.parquet")
    return directory


@pytest.mark.parametrize("damage", [_truncate, _garble, _empty, _no_parquet, _without_a_column])
def test_a_damaged_file_is_a_verdict_about_its_hub(
    spark: SparkSession, tmp_path: Path, two_hubs: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(two_hubs, tmp_path / "tree")
    damage(tmp_path / "tree" / "events" / "hub-1-0000.parquet")
    summary = judge(spark, tmp_path / "tree", tmp_path / "report")
    assert summary.outcomes == {"conforms": 1, "violates": 0, "cannot_tell": 1}
    result = by_hub(summary)["hub-1"]
    assert (result.outcome, result.trace) == (Outcome.CANNOT_TELL, "tree")
    assert result.rule in ("TRACE-1", "TRACE-5")
    assert summary.exit_code == 4 and summary.unreadable


def test_a_line_that_is_none_is_a_verdict_about_its_hub(spark: SparkSession, tmp_path: Path) -> None:
    """Also the last one, of which only the beginning was written."""
    events, _ = rows_of(Blueprint(2, 10, 600, 3, trace="tree"))
    folder = tmp_path / "tree" / "events"
    folder.mkdir(parents=True)
    lines = {hub: b"".join(encode_event(event) for event in events if event.hub == hub) for hub in ("hub-0", "hub-1")}
    (folder / "hub-0-0000.jsonl").write_bytes(lines["hub-0"])
    (folder / "hub-1-0000.jsonl").write_bytes(lines["hub-1"] + b'{"trace":"tree","hub":"hub-1","seq\n\xff\xfe\n')
    summary = judge(spark, tmp_path / "tree", tmp_path / "report")
    result = by_hub(summary)["hub-1"]
    assert (result.outcome, result.rule) == (Outcome.CANNOT_TELL, "TRACE-5")
    assert len(summary.not_conforming) == 1
    assert len(summary.unreadable) == 2
    assert summary.exit_code == 4


@pytest.mark.parametrize("content", [None, b"", b"\n\n"])
def test_nothing_to_judge_is_no_success(spark: SparkSession, tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "tree" / "events").mkdir(parents=True)
    if content is not None:
        (tmp_path / "tree" / "events" / "hub-0-0000.jsonl").write_bytes(content)
    with pytest.raises(NothingToJudge):
        judge(spark, tmp_path / "tree", tmp_path / "report")


def test_a_path_that_does_not_exist(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StorageProblem, match="does not exist"):
        judge(spark, tmp_path / "nowhere", tmp_path / "report")


def test_a_report_never_replaces_anything_but_a_report(spark: SparkSession, tmp_path: Path) -> None:
    precious = tmp_path / "mine" / "facts" / "about.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("keep me")
    write(tmp_path / "small", _SMALL)
    with pytest.raises(StorageProblem, match="not empty"):
        judge(spark, tmp_path / "small", tmp_path / "mine")
    assert precious.read_text() == "keep me"


def test_reports_below_the_path_are_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "traces" / "small", _SMALL)
    report = tmp_path / "traces" / "report"
    assert judge(spark, tmp_path / "traces", report).hubs == 4
    again = judge(spark, tmp_path / "traces", report)
    assert again.outcome is Outcome.CONFORMS and again.hubs == 4
    page = (report / "report.html").read_text()
    assert "<svg" in page and "http://" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")
