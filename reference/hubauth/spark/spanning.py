"""Checks that no hub's own rows can decide: they compare what different hubs of one trace did.

Each returns findings: one row per thing that is wrong, with the same columns. They are given the facts of hubs as far
as those were judged. Each costs at most one shuffle.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hubauth.forms.events import Kind
from hubauth.judge.facts import FactKind
from hubauth.spark.replaying import HELD, KNOWN, ROUTED

FINDING = (
    "check string, outcome string, trace string, hub string, sequence long, "
    "rule string, expected string, seen string, missing string"
)
"""The columns of a finding. ``check`` is a name of ``CHECKS``."""

SENT_IS_RECEIVED, ISSUED_ONCE, REVOKED_STAYS_OUT = "SentIsReceived", "IssuedOnce", "RevokedStaysOut"
CHECKS = {
    SENT_IS_RECEIVED: "What one end of a connection received is what the other sent, in that order.",
    "UniqueNodeIds": "Over all hubs of a trace, no node id stands for two devices.",
    "OneToOneBinding": "Over all hubs of a trace, no device has two node ids.",
    ISSUED_ONCE: "No credential was issued twice.",
    "CredentialsNeverCachedUpstream": "A hub's whitelist names only devices of its own links, and provisioned ones.",
    REVOKED_STAYS_OUT: "Once revokes have arrived everywhere, no hub has a revoked credential in its whitelist.",
}

_FRAMES = (Kind.FRAME_IN.value, Kind.FRAME_OUT.value)
_BEGIN_AND_END = (Kind.LINK_UP.value, Kind.LINK_DOWN.value, Kind.CLOSE.value)
_HEADER = (
    *("header", "major", "sub_proto", "flags", "msg_id", "source", "target"),
    *("trace_id", "hop_limit", "timestamp"),
)
_BINDING = (FactKind.REGISTERED.value, FactKind.STORED.value, FactKind.BOUND.value, KNOWN, HELD, ROUTED)
_COLUMNS = [column.split()[0] for column in FINDING.split(", ")]
_HUB = ["trace", "hub"]

LOOKED_AT = {
    SENT_IS_RECEIVED: (SENT_IS_RECEIVED,),
    "UniqueNodeIds": _BINDING,
    "OneToOneBinding": _BINDING,
    ISSUED_ONCE: (FactKind.ISSUED.value,),
    "CredentialsNeverCachedUpstream": (FactKind.STORED.value, HELD),
    REVOKED_STAYS_OUT: (FactKind.REVOKED.value,),
}
"""Which facts say how much there was to look at; frames are counted under the check's own name."""


def _finding(check: str, rule: str, **columns: Column) -> list[Column]:
    """Columns of a finding; those not given are empty."""
    given = {"check": F.lit(check), "rule": F.lit(rule), "outcome": F.lit("violates"), **columns}
    empty = {"sequence": F.lit(None).cast("long")}
    return [given.get(name, empty.get(name, F.lit(""))).alias(name) for name in _COLUMNS]


def compare_ends(events: DataFrame, damaged: DataFrame, mixed: DataFrame) -> DataFrame:
    """Every connection with a recorded hub at both ends, and each direction of it: how many frames were sent, how
    many received, whether the connection has ``ended`` since, and the first (``wrong``) that is not the frame that was
    sent as the n-th.

    The rows of a ``damaged`` hub are not compared. In a trace of ``mixed`` keys the same payload looks different at its
    two ends, so only headers are compared.
    """
    usable = events.filter(F.col("connection") != "").join(F.broadcast(damaged), _HUB, "left_anti")
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
    return (
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


def _connections(usable: DataFrame) -> DataFrame:
    """The connections with a recorded hub at both ends, which hubs these are, and whether they have ended."""
    is_up = F.col("kind") == Kind.LINK_UP.value
    ends = usable.filter(F.col("kind").isin(*_BEGIN_AND_END)).groupBy("trace", "connection")
    known = ends.agg(
        F.min(F.when(is_up & (F.col("link") == 0), F.col("hub"))).alias("lower"),
        F.min(F.when(is_up & (F.col("link") != 0), F.col("hub"))).alias("upper"),
        F.max(~is_up).alias("ended"),
    )
    return known.filter("lower <> upper")


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


def unique_node_ids(facts: DataFrame) -> DataFrame:
    return _one_to_one(facts, "UniqueNodeIds", "REG-2", "node_id", "device_id", "node %s is one device")


def one_to_one_binding(facts: DataFrame) -> DataFrame:
    return _one_to_one(facts, "OneToOneBinding", "REG-1", "device_id", "node_id", "%s is one node")


def _one_to_one(facts: DataFrame, check: str, rule: str, one: str, other: str, expected: str) -> DataFrame:
    bindings = facts.filter(F.col("kind").isin(*_BINDING))
    several = bindings.groupBy("trace", one).agg(
        F.sort_array(F.collect_set(other)).alias("others"),
        F.max_by("hub", "sequence").alias("hub"),
        F.max("sequence").alias("sequence"),
    )
    return several.filter(F.size("others") > 1).select(
        *_finding(
            check,
            rule,
            trace=F.col("trace"),
            hub=F.coalesce("hub", F.lit("")),
            sequence=F.col("sequence"),
            expected=F.format_string(expected, F.col(one).cast("string")),
            seen=F.concat_ws(" and ", F.slice("others", 1, 4)),
        )
    )


def issued_once(facts: DataFrame) -> DataFrame:
    """Also across the segments of one hub, each of which only knows its own."""
    issued = facts.filter((F.col("kind") == FactKind.ISSUED.value) & (F.col("proof") != ""))
    twice = issued.groupBy("trace", "proof").agg(
        F.count("*").alias("times"), F.max(F.struct("sequence", "hub", "device_id")).alias("last")
    )
    return twice.filter("times > 1").select(
        *_finding(
            ISSUED_ONCE,
            "REG-4",
            trace=F.col("trace"),
            hub=F.col("last.hub"),
            sequence=F.col("last.sequence"),
            expected=F.lit("a credential that was never issued before"),
            seen=F.format_string("one that was issued %d times, last to %s", F.col("times"), F.col("last.device_id")),
        )
    )


def credentials_never_cached_upstream(facts: DataFrame) -> DataFrame:
    was_here = F.col("kind").isin(FactKind.BOUND.value, KNOWN)
    is_entry = (F.col("kind") == FactKind.STORED.value) | ((F.col("kind") == HELD) & (F.col("number") == 0))
    devices = facts.filter(was_here | is_entry).groupBy(*_HUB, "device_id")
    seen = devices.agg(F.max(was_here).alias("was_here"), F.min(F.when(is_entry, F.col("sequence"))).alias("sequence"))
    return seen.filter(~F.col("was_here")).select(
        *_finding(
            "CredentialsNeverCachedUpstream",
            "REG-7",
            trace=F.col("trace"),
            hub=F.col("hub"),
            sequence=F.col("sequence"),
            expected=F.lit("entries of devices that were on this hub's own links"),
            seen=F.format_string("an entry of %s", F.col("device_id")),
        )
    )


def revoked_stays_out(facts: DataFrame, unsettled: DataFrame, excluded: DataFrame) -> DataFrame:
    """In a trace where something is still on its way (``unsettled``: its name, and what), an entry proves nothing.

    Nor in an ``excluded`` one: some hub of it does not conform, and it may be that hub's doing; or hubs replaced
    credentials by tokens under different keys.
    """
    is_revoked = F.col("kind") == FactKind.REVOKED.value
    concerned = facts.filter((is_revoked | (F.col("kind") == HELD)) & (F.col("proof") != ""))
    entry = F.when(F.col("kind") == HELD, F.struct("hub", "device_id"))
    credentials = (
        concerned.join(F.broadcast(excluded), "trace", "left_anti")
        .groupBy("trace", "proof")
        .agg(F.max(is_revoked).alias("is_revoked"), F.collect_list(entry).alias("entries"))
    )
    held = credentials.filter("is_revoked").select("trace", F.explode("entries").alias("entry"))
    found = held.join(F.broadcast(unsettled), "trace", "left")
    return found.select(
        *_finding(
            REVOKED_STAYS_OUT,
            "REV-5",
            outcome=F.when(F.col("under_way").isNull(), F.lit("violates")).otherwise(F.lit("cannot_tell")),
            trace=F.col("trace"),
            hub=F.col("entry.hub"),
            expected=F.lit("no entry with a credential that was revoked"),
            seen=F.format_string("the entry of %s", F.col("entry.device_id")),
            missing=F.coalesce("under_way", F.lit("")),
        )
    )
