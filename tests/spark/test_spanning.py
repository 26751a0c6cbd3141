"""Each check that spans hubs bites: on facts and rows that every hub alone could have produced."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.judge.across import Broken, judge_all
from hubauth.judge.facts import Fact, FactKind
from hubauth.judge.verdicts import Outcome
from hubauth.spark import spanning
from hubauth.spark.between import Between
from hubauth.spark.results import HubResult
from hubauth.spark.segment import OPENED
from hubauth.spark.tables import small_table
from hubauth.trace.generate import Blueprint
from tests.judge import stories
from tests.spark.traces import judge, rows_of, write_rows

_COLUMNS = (
    "trace string, hub string, kind string, sequence long, device_id string, node_id long, proof string, "
    "since long, until long, number long"
)


def table(spark: SparkSession, facts: Iterable[tuple[str, Fact]], trace: str = "t") -> DataFrame:
    rows = [
        (trace, hub, f.kind.value, f.sequence, f.device_id, f.node_id, f.proof, f.since, f.until, f.number)
        for hub, f in facts
    ]
    return small_table(spark, rows, _COLUMNS)


def plain(row: Row | Broken) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in Broken.__struct_fields__)


def test_every_group_is_judged_as_one_process_judges_it(spark: SparkSession) -> None:
    facts = [(hub, fact) for story in stories.BROKEN.values() for hub, fact in story.facts]
    together = sorted(map(plain, judge_all(facts)))
    assert {row[0] for row in together} == set(spanning.LOOKED_AT) - {spanning.SENT_IS_RECEIVED}
    assert sorted(map(plain, spanning.promises(table(spark, facts)).collect())) == together


def test_what_is_still_on_its_way_leaves_an_entry_undecided(spark: SparkSession) -> None:
    facts = stories.BROKEN["an entry is left"].facts
    tables = [table(spark, facts, trace) for trace in ("settled", "away", "mixed")]
    broken = spanning.promises(tables[0].unionByName(tables[1]).unionByName(tables[2]))
    unsettled = small_table(spark, [("away", "something")], "trace string, under_way string")
    findings = spanning.broken_promises(broken, unsettled, traces(spark, "mixed")).collect()
    assert sorted((row.trace, row.outcome, row.hub, row.missing) for row in findings) == [
        ("away", "cannot_tell", "leaf", "something"),
        ("mixed", "cannot_tell", "leaf", "credentials that were replaced under one key"),
        ("settled", "violates", "leaf", ""),
    ]


_ENDS = "trace string, hub string, sequence long, kind string, link long, connection string, payload binary"
_SAME = ("header", "major", "sub_proto", "flags", "msg_id", "source", "target", "trace_id", "hop_limit", "timestamp")


def rows_of_ends(name: str, sent: str, received: str, *, upwards: bool) -> list[tuple[Any, ...]]:
    """Rows of both ends of a connection; each letter is a frame."""
    up, down = ("leaf", 0), ("root", 3)
    (sender, sends_on), (receiver, receives_on) = (up, down) if upwards else (down, up)
    return [
        ("t", "leaf", 1, "link_up", 0, name, b""),
        ("t", "root", 1, "link_up", 3, name, b""),
        *(("t", sender, 10 + n, "frame_out", sends_on, name, text.encode()) for n, text in enumerate(sent)),
        *(("t", receiver, 10 + n, "frame_in", receives_on, name, text.encode()) for n, text in enumerate(received)),
    ]


def ends(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    """Also with the connection of a device, of which only one end is recorded."""
    device = [("t", "root", 2, "link_up", 4, "device", b""), ("t", "root", 3, "frame_in", 4, "device", b"hello")]
    return small_table(spark, [*rows, *device], _ENDS).selectExpr("*", *(f"0 as {name}" for name in _SAME))


def test_what_one_end_sent_the_other_received(spark: SparkSession) -> None:
    cases = {
        ("abc", "abc"): None,
        ("abc", "ab"): None,
        ("abc", ""): None,
        ("", ""): None,
        ("abc", "ac"): 11,
        ("abc", "bac"): 10,
        ("abc", "abbc"): 12,
        ("ab", "abc"): 12,
        ("abc", "xbc"): 10,
    }
    rows: list[tuple[Any, ...]] = []
    expected, counts = set(), set()
    for upwards in (True, False):
        for (sent, received), wrong in cases.items():
            name = f"{sent}/{received}/{upwards}"
            rows += rows_of_ends(name, sent, received, upwards=upwards)
            if sent:
                counts.add((name, len(sent), len(received)))
            if wrong is not None:
                expected.add((name, "root" if upwards else "leaf", wrong))
    links = spanning.compare_ends(ends(spark, rows), ways(rows, spark), hubs(spark), traces(spark)).cache()
    assert {(row.connection, row.sent, row.received) for row in links.collect()} == counts
    wrong_ones = links.filter("wrong is not null").collect()
    assert {(row.connection, row.wrong.hub, row.wrong.sequence) for row in wrong_ones} == expected
    findings = spanning.sent_is_received(links).collect()
    links.unpersist()
    assert {(row.hub, row.sequence) for row in findings} == {place[1:] for place in expected}
    assert {row.rule for row in findings} == {"TRACE-4"}


def ways(rows: list[tuple[Any, ...]], spark: SparkSession) -> DataFrame:
    """Every direction, as one that only frames can tell of."""
    names = sorted({(row[0], row[5], upwards) for row in rows for upwards in (True, False)})
    return small_table(spark, names, "trace string, connection string, upwards boolean")


def hubs(spark: SparkSession, *names: str) -> DataFrame:
    return small_table(spark, [("t", name) for name in names], "trace string, hub string")


def traces(spark: SparkSession, *names: str) -> DataFrame:
    return small_table(spark, [(name,) for name in names], "trace string")


def test_under_different_keys_payloads_are_not_compared(spark: SparkSession) -> None:
    """Not even their lengths: one end may have kept a short credential that the other has replaced by a long token."""
    rows = [
        ("t", "leaf", 10, "frame_out", 0, "token", b"aaa"),
        ("t", "root", 10, "frame_in", 3, "token", b"xyz"),
        ("t", "leaf", 10, "frame_out", 0, "kept", b"aaa"),
        ("t", "root", 10, "frame_in", 3, "kept", b"aaaa"),
        ("t", "root", 10, "frame_in", 3, "never sent", b"aaaa"),
    ]
    names = ("token", "kept", "never sent")
    rows += [row for name in names for row in rows_of_ends(name, "", "", upwards=True)]

    def wrong(*mixed: str) -> set[str]:
        links = spanning.compare_ends(ends(spark, rows), ways(rows, spark), hubs(spark), traces(spark, *mixed))
        return {row.connection for row in links.filter("wrong is not null").collect()}

    assert wrong() == {"token", "kept", "never sent"}
    assert wrong("t") == {"never sent"}


def test_a_hub_with_missing_rows_takes_no_part(spark: SparkSession) -> None:
    rows = rows_of_ends("c", "ab", "b", upwards=True)
    assert (
        spanning.compare_ends(ends(spark, rows), ways(rows, spark), hubs(spark, "leaf"), traces(spark)).collect() == []
    )


def test_who_can_be_compared_with_whom() -> None:
    def told(kind: str, trace: str, hub: str, proof: str = "", number: int = 0) -> Row:
        return Row(kind=kind, trace=trace, hub=hub, proof=proof, number=number)

    def result(trace: str, hub: str, outcome: Outcome) -> HubResult:
        return HubResult(trace=trace, hub=hub, outcome=outcome, rows=9, sequence=5)

    between = Between(
        [result("a", "x", Outcome.CONFORMS), result("b", "x", Outcome.VIOLATES), result("c", "x", Outcome.CANNOT_TELL)],
        [
            *(told(OPENED, "a", hub, "k") for hub in ("x", "y")),
            *(told(OPENED, "d", hub, f"key of {hub}") for hub in ("x", "y")),
            told(FactKind.SETTLED.value, "a", "x", number=1),
            told(FactKind.SETTLED.value, "a", "y", number=0),
        ],
    )
    assert between.damaged == [("c", "x")] and between.wrong == [("b", "x")]
    assert between.mixed == {"d"}
    assert between.unsettled == {"a": "the rows after y had done all it had to"}


def test_two_authorities_in_one_tree_conform_alone_and_not_together(spark: SparkSession, tmp_path: Path) -> None:
    """Each hub believes to be the root: each alone is right by its own configuration."""
    assert initial_state(Policy()).node_id == 1
    events, _ = rows_of(Blueprint(1, 12, 400, 1, trace="tree"))
    others, _ = rows_of(Blueprint(1, 12, 400, 2, trace="tree"))
    moved = [msgspec.structs.replace(event, hub="hub-x", connection=f"x{event.connection}") for event in others]
    write_rows(tmp_path / "tree", [*events, *moved], [])
    summary = judge(spark, tmp_path / "tree", tmp_path / "report")
    assert summary.outcomes == {"conforms": 2, "violates": 0, "cannot_tell": 0}
    assert summary.outcome is Outcome.VIOLATES and summary.exit_code == 1
    outcomes = {check.name: check.outcome for check in summary.checks}
    assert outcomes["UniqueNodeIds"] is Outcome.VIOLATES
    assert [trace.outcome for trace in summary.traces] == [Outcome.VIOLATES]


def test_every_check_has_a_name_and_says_what_it_looks_at() -> None:
    kinds = {kind.value for kind in FactKind} | {spanning.SENT_IS_RECEIVED}
    assert all(spanning.check_texts().values())
    assert all(set(looked_at) <= kinds for looked_at in spanning.LOOKED_AT.values())
