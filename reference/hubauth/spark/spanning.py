"""Checks that no hub's own rows can decide: they compare what different hubs of one trace did.

Findings are rows with the same columns, one per thing that is wrong. Each check costs at most one shuffle.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hubauth.forms.events import Kind
from hubauth.judge.across import JUDGES
from hubauth.judge.facts import Fact, FactKind
from hubauth.seen import promised
from hubauth.spark.segment import END, decode_end
from hubauth.spark.tables import arrow_schema
from hubauth.trace.digests import ways_of

FINDING = (
    "check string, outcome string, trace string, hub string, sequence long, "
    "rule string, expected string, seen string, missing string, other string, since long, heard long"
)
"""The columns of a finding. ``check`` is a name of ``LOOKED_AT``; ``other`` and ``since`` are the hub and the row that
it contradicts, if any; ``heard`` is the row at which the hub heard of that."""

SENT_IS_RECEIVED, ISSUED_ONCE = "SentIsReceived", "IssuedOnce"
LOOKED_AT = {
    SENT_IS_RECEIVED: (SENT_IS_RECEIVED,),
    "UniqueNodeIds": ("bound", "known", "held"),
    "OneToOneBinding": ("bound", "known", "held"),
    ISSUED_ONCE: ("issued",),
    "AdmittedByCredential": ("admitted",),
    "CredentialsNeverCachedUpstream": ("vouched", "held"),
    "RevokedStaysOut": ("revoked", "heard"),
    "NoLockOut": ("refused",),
}
"""Check -> which facts say how much there was to look at; frames are counted under the check's own name."""


def check_texts() -> dict[str, str]:
    """Check -> what it says."""
    own = {
        SENT_IS_RECEIVED: "What one end of a connection received is what the other sent, in that order.",
        ISSUED_ONCE: "No credential was issued twice.",
    }
    said = promised() | own
    return {name: said[name] for name in LOOKED_AT}


_FRAMES = (Kind.FRAME_IN.value, Kind.FRAME_OUT.value)
_BEGIN_AND_END = (Kind.LINK_UP.value, Kind.LINK_DOWN.value, Kind.CLOSE.value)
_HEADER = (
    *("header", "major", "sub_proto", "flags", "msg_id", "source", "target"),
    *("trace_id", "hop_limit", "timestamp"),
)
_BINDING = (FactKind.BOUND.value, FactKind.KNOWN.value, FactKind.HELD.value)
_FACTS = [kind.value for kind in FactKind if kind is not FactKind.SETTLED]
_KINDS = {kind.value: kind for kind in FactKind}
_GROUPED = ["trace", "hub", "kind", "sequence", "device_id", "node_id", "proof", "since", "until", "number"]
_BROKEN = (
    "trace string, promise string, rule string, hub string, sequence long, other string, since long, heard long, "
    "expected string, seen string, once_settled boolean"
)
_BROKEN_ARROW = pa.schema(
    [
        pa.field(name, {"long": pa.int64(), "boolean": pa.bool_()}.get(kind, pa.string()))
        for name, kind in (column.split() for column in _BROKEN.split(", "))
    ]
)
_WAYS = (
    "trace string, connection string, upwards boolean, ended boolean, sent long, received long, "
    "wrong struct<n: int, hub: string, sequence: long, at_sender: long, sender: string>, is_settled boolean"
)
_COLUMNS = [column.split()[0] for column in FINDING.split(", ")]
_HUB = ["trace", "hub"]


def _finding(check: str, rule: str, **columns: Column) -> list[Column]:
    """Columns of a finding; those not given are empty."""
    given = {"check": F.lit(check), "rule": F.lit(rule), "outcome": F.lit("violates"), **columns}
    empty = {name: F.lit(None).cast("long") for name in ("sequence", "since", "heard")}
    return [given.get(name, empty.get(name, F.lit(""))).alias(name) for name in _COLUMNS]


def ways(facts: DataFrame, mixed: set[str]) -> DataFrame:
    """Every connection with a recorded hub at both ends, and each direction of it: how many frames were sent, how
    many received, whether the connection has ``ended`` since; from the digests that the hubs' rows came to.

    Where these do not tell (``is_settled``) frames have to be compared. In a trace of ``mixed`` keys the same payload
    looks different at its two ends, so only headers are compared. Costs one shuffle of facts.
    """
    ends = facts.filter(F.col("kind") == END).select("trace", "name", "hub", "task", "number", "end")
    in_order = ends.repartition("trace", "name").sortWithinPartitions("trace", "name", "hub", "task", "number")
    return in_order.mapInArrow(_ways_of(mixed), _WAYS)


def _ways_of(mixed: set[str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for ``mapInArrow``: ends sorted by trace, connection and hub; out come directions."""
    schema = arrow_schema(_WAYS)

    def judge(batches: Iterator[Any]) -> Iterator[Any]:
        rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
        for (trace, name), group in groupby(rows, key=itemgetter(0, 1)):
            ends = [(hub, decode_end(end)) for _, _, hub, _, _, end in group]
            found = [
                {"trace": trace, "connection": name, "wrong": None, **msgspec.structs.asdict(way)}
                for way in ways_of(ends, payloads=trace not in mixed)
            ]
            if found:
                yield pa.RecordBatch.from_pylist(found, schema=schema)

    return judge


def compare_ends(events: DataFrame, unsettled: DataFrame, damaged: DataFrame, mixed: DataFrame) -> DataFrame:
    """The connections of ``unsettled``, frame by frame: what ``ways`` says, and the first frame (``wrong``) that is not
    the one that was sent as the n-th.

    The rows of a ``damaged`` hub are not compared.
    """
    names = ["trace", "connection"]
    asked = events.join(unsettled.select(*names).distinct(), names, "left_semi")
    usable = asked.join(F.broadcast(damaged), _HUB, "left_anti")
    both = _connections(usable)
    is_sent = F.col("kind") == Kind.FRAME_OUT.value
    upwards = (F.col("link") == 0) == is_sent
    payload = F.when(F.col("is_mixed").isNull(), F.col("payload"))
    frames = (
        usable.filter(F.col("kind").isin(*_FRAMES))
        .join(F.broadcast(both), ["trace", "connection"])
        .join(F.broadcast(mixed.withColumn("is_mixed", F.lit(True))), "trace", "left")
        .select(
            *("trace", "connection", "ended", "lower", "upper", "sequence"),
            upwards.alias("upwards"),
            is_sent.alias("is_sent"),
            # One number instead of names: sorting is most of the work.
            F.xxhash64("trace", "connection", upwards).alias("way"),
            F.xxhash64(*_HEADER, payload).alias("content"),
        )
        .repartition("way")
    )
    in_order = Window.partitionBy("way", "is_sent").orderBy("sequence")

    def only(condition: Column, name: str) -> Column:
        return F.max(F.when(condition, F.col(name)))

    way = ("way", "trace", "connection", "upwards", "ended", "lower", "upper")
    pairs = (
        frames.withColumn("n", F.row_number().over(in_order))
        .groupBy(*way, "n")
        .agg(
            only(F.col("is_sent"), "content").alias("sent"),
            only(~F.col("is_sent"), "content").alias("received"),
            only(F.col("is_sent"), "sequence").alias("at_sender"),
            only(~F.col("is_sent"), "sequence").alias("sequence"),
        )
    )
    is_wrong = F.col("received").isNotNull() & (F.col("sent").isNull() | (F.col("sent") != F.col("received")))
    wrong = F.when(is_wrong, F.col("n"))
    sender = F.when(F.col("upwards"), F.col("lower")).otherwise(F.col("upper"))
    receiver = F.when(F.col("upwards"), F.col("upper")).otherwise(F.col("lower"))
    place = F.struct("n", receiver.alias("hub"), "sequence", "at_sender", sender.alias("sender"))
    compared = (
        pairs.groupBy(*way)
        .agg(
            F.count("sent").alias("sent"),
            F.count("received").alias("received"),
            F.min(wrong).alias("n"),
            F.min_by("sequence", wrong).alias("sequence"),
            F.min_by("at_sender", wrong).alias("at_sender"),
        )
        .select(
            *("trace", "connection", "upwards", "ended", "sent", "received"),
            F.when(F.col("n").isNotNull(), place).alias("wrong"),
        )
    )
    return compared.join(unsettled.select(*names, "upwards"), [*names, "upwards"], "left_semi")


def _connections(usable: DataFrame) -> DataFrame:
    """Those with a recorded hub at both ends, which hubs these are, and whether they have ended."""
    is_up = F.col("kind") == Kind.LINK_UP.value
    ends = usable.filter(F.col("kind").isin(*_BEGIN_AND_END)).groupBy("trace", "connection")
    known = ends.agg(
        F.min(F.when(is_up & (F.col("link") == 0), F.col("hub"))).alias("lower"),
        F.min(F.when(is_up & (F.col("link") != 0), F.col("hub"))).alias("upper"),
        F.max(~is_up).alias("ended"),
    )
    return known.filter("lower is not null and upper is not null")


def sent_is_received(links: DataFrame) -> DataFrame:
    """Frames sent last may be lost with the connection; all others arrive, in order, as they are."""
    return links.filter("wrong is not null").select(
        *_finding(
            SENT_IS_RECEIVED,
            "TRACE-4",
            trace=F.col("trace"),
            hub=F.col("wrong.hub"),
            sequence=F.col("wrong.sequence"),
            expected=F.when(F.col("wrong.at_sender").isNull(), F.lit("nothing: no such frame was sent")).otherwise(
                F.format_string(
                    "frame %d of connection %s as %s sent it in its row %d",
                    *(F.col(name) for name in ("wrong.n", "connection", "wrong.sender", "wrong.at_sender")),
                )
            ),
            seen=F.format_string("row %d, which is another one", F.col("wrong.sequence")),
        )
    )


def promises(facts: DataFrame) -> DataFrame:
    """The promises about every device, node and credential: ``hubauth.judge.across``, one group after the other.

    Costs one shuffle of facts.
    """
    kind = F.col("kind")
    about = F.array_compact(
        F.array(
            _key(F.col("device_id") != "", "device", F.col("device_id")),
            _key(kind.isin(*_BINDING) & (F.col("node_id") > 0), "node", F.col("node_id").cast("string")),
            _key(kind == FactKind.ISSUED.value, "credential", F.col("proof")),
        )
    )
    keyed = facts.filter(kind.isin(*_FACTS)).select("*", F.explode(about).alias("key"))
    key = (F.col("key.about").alias("about"), F.col("key.name").alias("name"))
    together = keyed.select(*key, *_GROUPED).repartition("trace", "about", "name")
    in_order: DataFrame = together.sortWithinPartitions("trace", "about", "name", "hub", "sequence")
    return in_order.mapInArrow(judge_groups, _BROKEN)


def _key(condition: Column, about: str, name: Column) -> Column:
    return F.when(condition, F.struct(F.lit(about).alias("about"), name.alias("name")))


def judge_groups(batches: Iterator[Any]) -> Iterator[Any]:
    """The function for ``mapInArrow``: facts sorted by what they are about, hub and row; out comes what is broken."""
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for (about, name, trace), group in groupby(rows, key=itemgetter(0, 1, 2)):
        seen = [(hub, Fact(sequence, _KINDS[kind], *rest)) for _, _, _, hub, kind, sequence, *rest in group]
        found = [{"trace": trace, **msgspec.structs.asdict(broken)} for broken in JUDGES[about](name, seen)]
        if found:
            yield pa.RecordBatch.from_pylist(found, schema=_BROKEN_ARROW)


def broken_promises(broken: DataFrame, unsettled: DataFrame, mixed: DataFrame) -> DataFrame:
    """As findings. What holds only once all is settled cannot be told in an ``unsettled`` trace (its name, and what was
    on its way), nor in a ``mixed`` one, where hubs replaced credentials by tokens under different keys.
    """
    tokens = F.lit("credentials that were replaced under one key")
    doubts = unsettled.unionByName(mixed.select("trace", tokens.alias("under_way"))).dropDuplicates(["trace"])
    missing = F.when(F.col("once_settled"), F.col("under_way"))
    found = broken.join(F.broadcast(doubts), "trace", "left")
    return found.select(
        F.col("promise").alias("check"),
        F.when(missing.isNull(), F.lit("violates")).otherwise(F.lit("cannot_tell")).alias("outcome"),
        *("trace", "hub", "sequence", "rule", "expected", "seen"),
        F.coalesce(missing, F.lit("")).alias("missing"),
        *("other", "since", "heard"),
    )
