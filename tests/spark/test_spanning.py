"""Each check that spans hubs bites: on facts and rows that every hub alone could have produced."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.spark import spanning
from hubauth.spark.job import small_table
from hubauth.spark.replaying import HELD, KNOWN, OPENED, ROUTED, SETTLED
from hubauth.spark.results import HubResult
from hubauth.trace.facts import FactKind
from hubauth.trace.generate import Blueprint
from hubauth.trace.verdicts import Outcome
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
            fact("mid", _STORED, "newly provisioned", 3, "s", sequence=8),
        ],
    )
    rows = small_table(spark, [("t", "mid", "policy", 8)], "trace string, hub string, kind string, sequence long")
    assert found(spanning.credentials_never_cached_upstream(facts, rows)) == [
        ("violates", "mid", "REG-7", "an entry of a"),
        ("violates", "mid", "REG-7", "an entry of b"),
    ]


def test_a_revoked_credential_that_is_still_there(spark: SparkSession) -> None:
    links = "trace string, connection string, sent long, received long"
    facts = table(
        spark,
        [
            *(
                row
                for trace in ("settled", "away", "flying", "broken")
                for row in (
                    fact("root", _REVOKED, "a", 5, "old", trace=trace, sequence=9),
                    fact("leaf", HELD, "a", 5, "old", trace=trace),
                    fact("root", HELD, "a", 5, "new", trace=trace),
                )
            ),
            fact("root", SETTLED, "", trace="settled", number=1),
            fact("leaf", SETTLED, "", trace="away", number=0),
        ],
    )
    flying = small_table(spark, [("flying", "c1", 7, 6), ("settled", "c1", 7, 7)], links)
    excluded = small_table(spark, [("broken",)], "trace string")
    findings = spanning.revoked_stays_out(facts, spanning.unsettled_traces(facts, flying), excluded)
    assert sorted((row.trace, row.outcome, row.hub, row.missing) for row in findings.collect()) == [
        ("away", "cannot_tell", "leaf", "the rows after leaf had done all it had to"),
        ("flying", "cannot_tell", "leaf", "what was on its way over c1"),
        ("settled", "violates", "leaf", ""),
    ]


_ENDS = "trace string, hub string, sequence long, kind string, link long, connection string, payload binary"
_SAME = ("header", "major", "sub_proto", "flags", "msg_id", "source", "target", "trace_id", "hop_limit", "timestamp")


def connection(spark: SparkSession, sent: list[str], received: list[str], *, upwards: bool) -> DataFrame:
    """Rows of both ends of a connection, and of a device's connection beside it."""
    up, down = ("leaf", 0), ("root", 3)
    (sender, sends_on), (receiver, receives_on) = (up, down) if upwards else (down, up)
    rows = [
        ("t", "leaf", 1, "link_up", 0, "c", b""),
        ("t", "root", 1, "link_up", 3, "c", b""),
        ("t", "root", 2, "link_up", 4, "device", b""),
        ("t", "root", 3, "frame_in", 4, "device", b"hello"),
        *(("t", sender, 10 + n, "frame_out", sends_on, "c", text.encode()) for n, text in enumerate(sent)),
        *(("t", receiver, 10 + n, "frame_in", receives_on, "c", text.encode()) for n, text in enumerate(received)),
    ]
    return small_table(spark, rows, _ENDS).selectExpr("*", *(f"0 as {name}" for name in _SAME))


@pytest.mark.parametrize(
    ("sent", "received", "wrong"),
    [
        ("abc", "abc", None),
        ("abc", "ab", None),
        ("", "", None),
        ("abc", "ac", 11),
        ("abc", "bac", 10),
        ("abc", "abbc", 12),
        ("ab", "abc", 12),
        ("abc", "xbc", 10),
    ],
)
@pytest.mark.parametrize("upwards", [True, False])
def test_what_one_end_sent_the_other_received(
    spark: SparkSession, sent: str, received: str, wrong: int | None, upwards: bool
) -> None:
    rows = connection(spark, [*sent], [*received], upwards=upwards)
    whole = small_table(spark, [("t", "leaf"), ("t", "root")], "trace string, hub string")
    links = spanning.compare_ends(rows, whole, keys(spark))
    places = [(row.hub, row.sequence, row.rule) for row in spanning.sent_is_received(links).collect()]
    assert places == ([] if wrong is None else [("root" if upwards else "leaf", wrong, "TRACE-4")])
    assert [(row.connection, row.sent, row.received) for row in links.collect()] == (
        [("c", len(sent), len(received))] if sent else []
    )


def keys(spark: SparkSession, root: str = "k", leaf: str = "k") -> DataFrame:
    opened = [fact("root", OPENED, "", proof=root, sequence=0), fact("leaf", OPENED, "", proof=leaf, sequence=0)]
    return spanning.keys_of(table(spark, opened))


def test_under_different_keys_only_lengths_are_compared(spark: SparkSession) -> None:
    whole = small_table(spark, [("t", "leaf"), ("t", "root")], "trace string, hub string")

    def wrong(rows: DataFrame, keys: DataFrame) -> int:
        return spanning.sent_is_received(spanning.compare_ends(rows, whole, keys)).count()

    token = connection(spark, ["aaa", "b"], ["xyz", "b"], upwards=True)
    assert wrong(token, keys(spark)) == 1
    assert wrong(token, keys(spark, leaf="other")) == 0
    longer = connection(spark, ["aaa", "b"], ["xyzz", "b"], upwards=True)
    assert wrong(longer, keys(spark, leaf="other")) == 1


def test_a_hub_with_missing_rows_takes_no_part(spark: SparkSession) -> None:
    rows = connection(spark, ["a", "b"], ["b"], upwards=True)
    whole = small_table(spark, [("t", "root")], "trace string, hub string")
    assert spanning.compare_ends(rows, whole, keys(spark)).collect() == []


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
    assert HubResult.__struct_fields__[:3] == ("trace", "hub", "outcome")
