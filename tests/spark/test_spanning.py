"""Each check that spans hubs bites: on facts and rows that every hub alone could have produced."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row, SparkSession

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.judge.facts import FactKind
from hubauth.judge.verdicts import Outcome
from hubauth.spark import spanning
from hubauth.spark.between import Between
from hubauth.spark.replaying import CONFIGURED, HELD, KNOWN, OPENED, ROUTED, SETTLED
from hubauth.spark.results import HubResult
from hubauth.spark.tables import small_table
from hubauth.trace.generate import Blueprint
from tests.spark.traces import judge, rows_of, write_rows

_COLUMNS = (
    "trace string, hub string, kind string, sequence long, device_id string, node_id long, proof string, number long"
)
_REGISTERED, _ISSUED, _STORED, _REVOKED, _BOUND = (
    kind.value for kind in (FactKind.REGISTERED, FactKind.ISSUED, FactKind.STORED, FactKind.REVOKED, FactKind.BOUND)
)


def fact(hub: str, kind: str, device_id: str, node_id: int = 0, proof: str = "", **more: Any) -> tuple[Any, ...]:
    values = {"trace": "t", "sequence": None, "number": 0, **more}
    return (values["trace"], hub, kind, values["sequence"], device_id, node_id, proof, values["number"])


def table(spark: SparkSession, facts: Iterable[tuple[Any, ...]]) -> DataFrame:
    return small_table(spark, list(facts), _COLUMNS)


def found(findings: DataFrame) -> list[tuple[str, str, str, str]]:
    return sorted((row.outcome, row.hub, row.rule, row.seen) for row in findings.collect())


def test_a_node_id_of_two_devices_and_a_device_of_two_node_ids(spark: SparkSession) -> None:
    facts = table(
        spark,
        [
            fact("root", _REGISTERED, "a", 5, sequence=1),
            fact("leaf", _STORED, "a", 5, sequence=2),
            fact("root", ROUTED, "a", 5),
            fact("root", _REGISTERED, "b", 6, sequence=3),
            fact("leaf", _BOUND, "c", 6, sequence=9),
            fact("root", _REGISTERED, "d", 7, sequence=4),
            fact("leaf", HELD, "d", 8),
            fact("root", _REGISTERED, "b", 5, trace="another tree"),
        ],
    )
    assert found(spanning.unique_node_ids(facts)) == [("violates", "leaf", "REG-2", "b and c")]
    assert found(spanning.one_to_one_binding(facts)) == [("violates", "root", "REG-1", "7 and 8")]


def test_a_credential_that_was_issued_twice(spark: SparkSession) -> None:
    facts = table(
        spark,
        [
            fact("root", _ISSUED, "a", 5, "p", sequence=1),
            fact("root", _ISSUED, "b", 6, "p", sequence=7),
            fact("root", _ISSUED, "c", 7, "q", sequence=8),
            fact("root", _ISSUED, "d", 7, "", sequence=9),
            fact("root", _ISSUED, "e", 8, "", sequence=10),
        ],
    )
    assert found(spanning.issued_once(facts)) == [
        ("violates", "root", "REG-4", "one that was issued 2 times, last to b")
    ]


def test_entries_of_devices_that_were_never_here(spark: SparkSession) -> None:
    facts = table(
        spark,
        [
            fact("leaf", _STORED, "a", 5, "p", sequence=1),
            fact("leaf", _BOUND, "a", 5, sequence=1),
            fact("mid", _STORED, "a", 5, "p", sequence=4),
            fact("mid", HELD, "b", 6, "q"),
            fact("mid", HELD, "child hub", 2, "r", number=1),
            fact("mid", HELD, "from before", 9, "u"),
            fact("mid", KNOWN, "from before", 9, sequence=0),
            fact("mid", CONFIGURED, "newly provisioned", 3, "s", sequence=8),
        ],
    )
    assert found(spanning.credentials_never_cached_upstream(facts)) == [
        ("violates", "mid", "REG-7", "an entry of a"),
        ("violates", "mid", "REG-7", "an entry of b"),
    ]


def test_a_revoked_credential_that_is_still_there(spark: SparkSession) -> None:
    facts = table(
        spark,
        [
            row
            for trace in ("settled", "away", "broken")
            for row in (
                fact("root", _REVOKED, "a", 5, "old", trace=trace, sequence=9),
                fact("leaf", HELD, "a", 5, "old", trace=trace),
                fact("root", HELD, "a", 5, "new", trace=trace),
                fact("root", _REVOKED, "b", 6, "", trace=trace, sequence=10),
                fact("leaf", HELD, "b", 6, "", trace=trace),
            )
        ],
    )
    unsettled = small_table(spark, [("away", "something")], "trace string, under_way string")
    excluded = small_table(spark, [("broken",)], "trace string")
    findings = spanning.revoked_stays_out(facts, unsettled, excluded)
    assert sorted((row.trace, row.outcome, row.hub, row.missing) for row in findings.collect()) == [
        ("away", "cannot_tell", "leaf", "something"),
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
    links = spanning.compare_ends(ends(spark, rows), hubs(spark), traces(spark)).cache()
    assert {(row.connection, row.sent, row.received) for row in links.collect()} == counts
    wrong_ones = links.filter("wrong is not null").collect()
    assert {(row.connection, row.wrong.hub, row.wrong.sequence) for row in wrong_ones} == expected
    findings = spanning.sent_is_received(links).collect()
    links.unpersist()
    assert {(row.hub, row.sequence) for row in findings} == {place[1:] for place in expected}
    assert {row.rule for row in findings} == {"TRACE-4"}


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
        links = spanning.compare_ends(ends(spark, rows), hubs(spark), traces(spark, *mixed))
        return {row.connection for row in links.filter("wrong is not null").collect()}

    assert wrong() == {"token", "kept", "never sent"}
    assert wrong("t") == {"never sent"}


def test_a_hub_with_missing_rows_takes_no_part(spark: SparkSession) -> None:
    rows = rows_of_ends("c", "ab", "b", upwards=True)
    assert spanning.compare_ends(ends(spark, rows), hubs(spark, "leaf"), traces(spark)).collect() == []


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
            told(SETTLED, "a", "x", number=1),
            told(SETTLED, "a", "y", number=0),
        ],
    )
    assert between.damaged == [("c", "x")]
    assert sorted(between.limits) == [("b", "x", 5), ("c", "x", -1)]
    assert between.mixed == {"d"}
    assert between.excluded == {"b", "c", "d"}
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
    assert set(spanning.CHECKS) == set(spanning.LOOKED_AT)
