"""The whole job on small traces: the same verdicts whatever the format, and damage never stops it."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from hubauth.forms.lines import encode_event
from hubauth.judge.verdicts import Outcome
from hubauth.spark import plan
from hubauth.spark.results import HubResult, Summary
from hubauth.spark.rows import NothingToJudge
from hubauth.spark.storage import StorageProblem
from hubauth.trace.generate import Blueprint
from hubauth.trace.judge import judge as judge_alone
from hubauth.trace.storage import Format
from tests.spark.traces import judge, rows_of, write, write_rows

_SMALL = Blueprint(4, 20, 1500, 7, checkpoint_events=400, trace="small")


def by_hub(summary: Summary) -> dict[str, HubResult]:
    return {hub.hub: hub for hub in summary.not_conforming}


def test_json_lines_and_parquet_are_judged_alike(spark: SparkSession, tmp_path: Path) -> None:
    """And as one process judges them. A report below the path, also an earlier one, is not judged."""
    forms: tuple[Format, ...] = ("jsonl", "parquet")
    plain = []
    for form in forms:
        traces = tmp_path / f"odd *[1]{{x}} {form}"
        write(traces / "small", _SMALL, form)
        report = tmp_path / "report"
        if form == "parquet":
            report = traces / "report"
            shutil.copytree(tmp_path / "report", report)
        summary = judge(spark, traces, report)
        assert summary.outcome is Outcome.CONFORMS and summary.exit_code == 0
        assert all(check.looked_at for check in summary.checks)
        plain.append((summary.rows, summary.hubs, summary.coverage, summary.checks, summary.traces))
        tables = {path.name for path in report.iterdir() if path.is_dir()}
        assert tables == {"facts", "hubs", "findings", "links", "coverage"}
        assert pq.read_table(report / "hubs").num_rows == summary.hubs == 4
    assert plain[0] == plain[1]
    alone = judge_alone([traces / "small"])
    assert alone.outcome is Outcome.CONFORMS
    assert plain[0][2] == dict(alone.rules)
    schema = json.loads((tmp_path / "report" / "summary.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads((tmp_path / "report" / "summary.json").read_text()))


def test_a_hot_hub_is_judged_in_segments_as_it_is_in_one_piece(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "SMALLEST_SEGMENT", 500)
    write(tmp_path / "hot", Blueprint(1, 40, 6_000, 4, checkpoint_events=200, trace="hot"))
    alone = judge_alone([tmp_path / "hot"])
    cut = judge(spark, tmp_path / "hot", tmp_path / "cut")
    assert (cut.hubs, cut.segments) == (1, 8)
    assert alone.outcome is cut.outcome is Outcome.CONFORMS
    assert cut.rows == alone.verdicts[0].events
    assert cut.coverage == dict(alone.rules)


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


_DAMAGES: tuple[Callable[[Path], None], ...] = (_truncate, _garble, _empty, _no_parquet, _without_a_column)


def test_a_damaged_file_is_a_verdict_about_its_hub(spark: SparkSession, tmp_path: Path) -> None:
    """Every hub has a file of its own; one of them is damaged, in each trace in another way."""
    for damage in _DAMAGES:
        trace = damage.__name__.strip("_")
        events, _ = rows_of(Blueprint(2, 20, 2500, 3, trace=trace))
        directory = tmp_path / "traces" / trace / "events"
        directory.mkdir(parents=True)
        for hub in ("hub-0", "hub-1"):
            write_rows(tmp_path / trace / hub, [event for event in events if event.hub == hub], [])
            (file,) = (tmp_path / trace / hub / "events").iterdir()
            file.rename(directory / f"{hub}-0000.parquet")
        damage(directory / "hub-1-0000.parquet")
    summary = judge(spark, tmp_path / "traces", tmp_path / "report")
    assert summary.outcomes == {"conforms": len(_DAMAGES), "violates": 0, "cannot_tell": len(_DAMAGES)}
    assert {hub.trace for hub in summary.not_conforming} == {damage.__name__.strip("_") for damage in _DAMAGES}
    for result in summary.not_conforming:
        assert (result.hub, result.outcome) == ("hub-1", Outcome.CANNOT_TELL)
        assert result.rule in ("TRACE-1", "TRACE-5")
    assert summary.findings == ()
    assert summary.exit_code == 4 and len(summary.unreadable) >= len(_DAMAGES) - 1


def test_a_line_that_is_none_is_a_verdict_about_its_hub(spark: SparkSession, tmp_path: Path) -> None:
    """Also the last one, of which only the beginning was written."""
    events, _ = rows_of(Blueprint(2, 10, 600, 3, trace="tree"))
    folder = tmp_path / "tree" / "events"
    folder.mkdir(parents=True)
    lines = {hub: b"".join(encode_event(event) for event in events if event.hub == hub) for hub in ("hub-0", "hub-1")}
    (folder / "hub-0-0000.jsonl.gz").write_bytes(gzip.compress(lines["hub-0"]))
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
