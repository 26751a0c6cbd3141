"""Promises judged by facts, of all hubs of a trace together: about one device, one node, or one credential at a time.

Only the order of rows at one hub is known, so whatever needs more is not claimed. The promises themselves, in English,
are those of ``hubauth.promises``; the judgements here are narrower and need no state of any hub.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import msgspec

from hubauth.judge.facts import Fact, FactKind, Word
from hubauth.judge.verdicts import Outcome
from hubauth.report.conceal import conceal

Seen: TypeAlias = tuple[str, Fact]
"""A hub, and what is known there."""

_BINDING = (FactKind.BOUND, FactKind.KNOWN, FactKind.HELD)
_REVOKING = (FactKind.REVOKED, FactKind.HEARD)
_HERE = (FactKind.ADMITTED, FactKind.KNOWN)


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A promise that a row breaks, and the row (maybe of another hub) that it contradicts; -1: no row."""

    promise: str
    rule: str
    hub: str
    sequence: int
    other: str = ""
    since: int = -1
    heard: int = -1
    """The row at which ``hub`` heard of what happened at the other."""
    expected: str
    seen: str
    once_settled: bool = False
    """Only if nothing was on its way any more."""


class Breach(msgspec.Struct, frozen=True):
    """A broken promise in a trace; it cannot be told if something is ``missing``."""

    trace: str
    broken: Broken
    missing: str = ""

    @property
    def outcome(self) -> Outcome:
        return Outcome.CANNOT_TELL if self.missing else Outcome.VIOLATES

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        said = {name: getattr(self.broken, name) for name in Broken.__struct_fields__}
        texts = {name: conceal(said[name]) for name in ("hub", "other", "expected", "seen")}
        return {"outcome": self.outcome.value, "trace": conceal(self.trace), **said, **texts, "missing": self.missing}


def keys_of(fact: Fact) -> Iterator[tuple[str, str]]:
    """Under which devices, nodes and credentials a fact is judged."""
    if fact.device_id:
        yield "device", fact.device_id
    if fact.kind in _BINDING and fact.node_id:
        yield "node", str(fact.node_id)
    if fact.kind is FactKind.ISSUED:
        yield "credential", fact.proof


def judge_device(device_id: str, seen: Sequence[Seen]) -> Iterator[Broken]:
    """All that is known of one device, sorted by hub and row."""
    yield from _one_value(seen, "OneToOneBinding", "REG-1", f"{device_id} is one node", lambda fact: fact.node_id)
    at_hub = {hub: _At(hub, [fact for _, fact in facts]) for hub, facts in groupby(seen, key=itemgetter(0))}
    said = ((hub, fact) for hub, fact in seen if fact.kind is FactKind.REVOKED and fact.until >= 0)
    origin = next(said, None)
    for at in at_hub.values():
        for broken in at.judge():
            elsewhere = origin is not None and origin[0] != at.hub and broken.promise == "RevokedStaysOut"
            yield _by_origin(broken, origin) if elsewhere and origin is not None else broken
    yield from _held(device_id, seen, at_hub)
    yield from _locked_out(device_id, seen)


def judge_node(node_id: str, seen: Sequence[Seen]) -> Iterator[Broken]:
    """Every device that one node was said to be."""
    yield from _one_value(seen, "UniqueNodeIds", "REG-2", f"node {node_id} is one device", lambda fact: fact.device_id)


def judge_credential(_proof: str, seen: Sequence[Seen]) -> Iterator[Broken]:
    """Every time that one credential was issued."""
    if len(seen) > 1:
        (first_hub, first), (hub, last) = seen[0], seen[-1]
        yield Broken(
            promise="IssuedOnce",
            rule="REG-4",
            hub=hub,
            sequence=last.sequence,
            other=first_hub,
            since=first.sequence,
            expected="a credential that was never issued before",
            seen=f"one that was issued {len(seen)} times, last to {last.device_id}",
        )


JUDGES: dict[str, Callable[[str, Sequence[Seen]], Iterator[Broken]]] = {
    "device": judge_device,
    "node": judge_node,
    "credential": judge_credential,
}
"""By what ``keys_of`` says."""


def judge_all(facts: Iterable[Seen]) -> Iterator[Broken]:
    """Everything that the facts of one trace show to be broken."""
    groups: dict[tuple[str, str], list[Seen]] = {}
    for hub, fact in facts:
        for key in keys_of(fact):
            groups.setdefault(key, []).append((hub, fact))
    yield from judge_groups(groups)


def judge_groups(groups: Mapping[tuple[str, str], Iterable[Seen]]) -> Iterator[Broken]:
    """The same of facts that are together already, by what ``keys_of`` says."""
    for (about, name), seen in groups.items():
        yield from JUDGES[about](name, sorted(seen, key=place_of))


def place_of(seen: Seen) -> tuple[str, int]:
    """The order in which facts are judged."""
    return seen[0], seen[1].sequence


def _one_value(
    seen: Sequence[Seen], promise: str, rule: str, expected: str, value: Callable[[Fact], object]
) -> Iterator[Broken]:
    bindings = [(hub, fact) for hub, fact in seen if fact.kind in _BINDING and fact.node_id]
    first: dict[object, Seen] = {}
    for hub, fact in bindings:
        first.setdefault(value(fact), (hub, fact))
    if len(first) > 1:
        values = sorted(first, key=str)[:4]
        (other, before), (hub, fact) = list(first.values())[:2]
        yield Broken(
            promise=promise,
            rule=rule,
            hub=hub,
            sequence=fact.sequence,
            other=other,
            since=before.sequence,
            expected=expected,
            seen=" and ".join(map(str, values)),
        )


def _by_origin(broken: Broken, origin: Seen) -> Broken:
    """The revoke is shown where somebody asked for it."""
    return msgspec.structs.replace(broken, other=origin[0], since=origin[1].sequence, heard=broken.since)


def rows_of(broken: Broken) -> list[tuple[str, int]]:
    """The rows that show it, in the order in which they are told: hub and row."""
    rows = [(broken.other, broken.since), (broken.hub, broken.heard), (broken.hub, broken.sequence)]
    return [(hub, row) for hub, row in rows if hub and row >= 0]


def _means(revoke: Fact, node_id: int, proof: str) -> bool:
    return revoke.node_id in (0, node_id) and revoke.proof in ("", proof)


class _At:
    """One device at one hub."""

    def __init__(self, hub: str, facts: list[Fact]) -> None:
        self.hub, self._facts = hub, facts
        self.revoked: dict[str, Fact] = {}
        """The credentials that a revoke has meant which the hub has obeyed, and that revoke."""

    def judge(self) -> list[Broken]:
        broken: list[Broken] = []
        had: dict[str, int] = {}
        """Credential -> the node of the device that was admitted by it here, or given it."""
        heard: set[tuple[int, str, int]] = set()
        was_here = any(fact.kind in _HERE for fact in self._facts)
        for fact in self._facts:
            kind, proof = fact.kind, fact.proof
            if kind in _REVOKING:
                number = (fact.node_id, proof, fact.number)
                if fact.until >= 0 and number not in heard:
                    if fact.number:  # the same revoke, sent again, is the same revoke
                        heard.add(number)
                    meant = {had_proof: fact for had_proof, node in had.items() if _means(fact, node, had_proof)}
                    self.revoked = meant | self.revoked
            elif kind is FactKind.ADMITTED and fact.number == Word.OWN.value:
                broken += self._by_own_word(fact, proof in had)
                had[proof] = fact.node_id
            elif kind is FactKind.VOUCHED:
                broken += self._by_own_word(fact, was_here or proof in had)
            elif proof and kind in (FactKind.ADMITTED, FactKind.ISSUED, FactKind.KNOWN):
                had[proof] = fact.node_id
                self.revoked.pop(proof, None)
            elif kind is FactKind.HELD and proof and not was_here and not fact.number:
                broken.append(self._cached(fact, f"an entry of {fact.device_id}"))
        return broken

    def _by_own_word(self, fact: Fact, is_known: bool) -> Iterator[Broken]:
        """The hub itself takes a credential for right."""
        revoke = self.revoked.get(fact.proof)
        admits = fact.kind is FactKind.ADMITTED
        seen = f"{fact.device_id} is admitted by it" if admits else f"another hub is told that {fact.device_id} has it"
        if revoke is not None:
            if fact.since > revoke.until:
                yield self._broken("RevokedStaysOut", "REV-5", fact, revoke, "a revoked credential is refused", seen)
        elif not is_known and admits:
            expected = "a credential that was issued to the device"
            yield self._broken("AdmittedByCredential", "AUTH-2", fact, None, expected, seen)
        elif not is_known:
            yield self._cached(fact, f"an answer to a search for {fact.device_id}")

    def _cached(self, fact: Fact, seen: str) -> Broken:
        expected = "credentials of devices that were on this hub's own links"
        return self._broken("CredentialsNeverCachedUpstream", "REG-7", fact, None, expected, seen)

    def _broken(self, promise: str, rule: str, fact: Fact, earlier: Fact | None, expected: str, seen: str) -> Broken:
        return Broken(
            promise=promise,
            rule=rule,
            hub=self.hub,
            sequence=fact.sequence,
            other=self.hub if earlier is not None else "",
            since=earlier.sequence if earlier is not None else -1,
            expected=expected,
            seen=seen,
        )


def _held(device_id: str, seen: Sequence[Seen], at_hub: dict[str, _At]) -> Iterator[Broken]:
    """Entries, in the last states, with credentials that some hub has obeyed a revoke of."""
    issued = [fact.proof for _, fact in seen if fact.kind is FactKind.ISSUED]
    obeyed = [(proof, hub, fact) for hub, at in at_hub.items() for proof, fact in at.revoked.items()]
    revoked = {proof: (hub, fact) for proof, hub, fact in obeyed if fact.since != 1}
    for hub, fact in seen:
        if fact.kind is FactKind.HELD and fact.proof in revoked and issued.count(fact.proof) < 2:
            other, revoke = revoked[fact.proof]
            yield Broken(
                promise="RevokedStaysOut",
                rule="REV-5",
                hub=hub,
                sequence=fact.sequence,
                other=other,
                since=revoke.sequence,
                expected="no entry with a credential that was revoked",
                seen=f"the entry of {device_id}",
                once_settled=True,
            )


def _locked_out(device_id: str, seen: Sequence[Seen]) -> Iterator[Broken]:
    """Where a device was admitted it is admitted again: nobody ever asked for another credential, or revoked one, and
    none is known.
    """
    asked: dict[str, int] = {}
    for hub, fact in seen:
        asked[hub] = asked.get(hub, 0) + (fact.kind is FactKind.ASKED)
    credentials = {fact.proof for _, fact in seen if fact.kind in (*_HERE, FactKind.ISSUED, FactKind.VOUCHED)}
    if max(asked.values()) > 1 or len(credentials) > 1 or any(fact.kind in _REVOKING for _, fact in seen):
        return
    admitted: dict[tuple[str, str], Fact] = {}
    for hub, fact in seen:
        if fact.kind in _HERE and fact.proof:
            admitted.setdefault((hub, fact.proof), fact)
        before = admitted.get((hub, fact.proof)) if fact.kind is FactKind.REFUSED else None
        if before is not None and fact.since > before.sequence:
            yield Broken(
                promise="NoLockOut",
                rule="AUTH-1",
                hub=hub,
                sequence=fact.sequence,
                other=hub,
                since=before.sequence,
                expected=f"{device_id} is admitted, as it was before, by the same credential",
                seen="it is refused",
            )
            return
