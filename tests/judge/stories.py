"""Facts about one device each that break a promise, and facts close to them that break none."""

from attrs import frozen

from hubauth.judge.across import Seen
from hubauth.judge.facts import Fact, FactKind, Word

C, OTHER = "proof of c", "proof of another"
NODE = 7


@frozen
class Story:
    facts: tuple[Seen, ...]
    promise: str = ""
    hub: str = ""
    sequence: int = 0
    other: str = ""
    since: int = -1
    """What must be said: which promise is broken at which row, and which row of which hub that contradicts."""


def admitted(device: str, row: int, word: Word = Word.OWN, proof: str = C, node: int = NODE) -> Fact:
    return Fact(row, FactKind.ADMITTED, device, node, proof, row - 1, number=word.value)


def revoke(kind: FactKind, device: str, row: int, until: int | None = None, proof: str = "", seq: int = 0) -> Fact:
    return Fact(row, kind, device, 0, proof, until=row if until is None else until, number=seq)


def heard(device: str, row: int, until: int | None = None, proof: str = "", seq: int = 1) -> Fact:
    return revoke(FactKind.HEARD, device, row, until, proof, seq)


def told(kind: FactKind, device: str, row: int, proof: str = C, node: int = NODE, number: int = 0) -> Fact:
    return Fact(row, kind, device, node, proof, row - 1, number=number)


def _at(hub: str, *facts: Fact) -> tuple[Seen, ...]:
    return tuple((hub, fact) for fact in facts)


BROKEN = {
    "admitted after a revoke": Story(
        (
            *_at("leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8), admitted("a", 12)),
            *_at("root", revoke(FactKind.REVOKED, "a", 5, 9)),
        ),
        *("RevokedStaysOut", "leaf", 12, "root", 5),
    ),
    "admitted after a revoke that names it": Story(
        _at("leaf", admitted("b", 3, Word.REGISTERED, node=8), heard("b", 8, proof=C), admitted("b", 12, node=8)),
        *("RevokedStaysOut", "leaf", 12, "leaf", 8),
    ),
    "vouched for after a revoke": Story(
        _at(
            "leaf",
            admitted("c", 3, Word.NEIGHBOUR, node=9),
            heard("c", 8),
            told(FactKind.VOUCHED, "c", 12, node=9),
        ),
        *("RevokedStaysOut", "leaf", 12, "leaf", 8),
    ),
    "an entry is left": Story(
        (
            *_at("leaf", admitted("d", 3, Word.REGISTERED, node=10), told(FactKind.HELD, "d", 90, node=10)),
            *_at("root", told(FactKind.ISSUED, "d", 2, node=10), revoke(FactKind.REVOKED, "d", 5)),
        ),
        *("RevokedStaysOut", "leaf", 90, "root", 5),
    ),
    "admitted by what was never issued": Story(
        _at("leaf", admitted("e", 3, Word.REGISTERED, node=11), admitted("e", 9, proof=OTHER, node=11)),
        *("AdmittedByCredential", "leaf", 9),
    ),
    "vouched for by a hub where it never was": Story(
        _at("mid", told(FactKind.VOUCHED, "f", 9, node=12)), *("CredentialsNeverCachedUpstream", "mid", 9)
    ),
    "kept by a hub where it never was": Story(
        _at("mid", told(FactKind.HELD, "g", 9, node=13)), *("CredentialsNeverCachedUpstream", "mid", 9)
    ),
    "two nodes": Story(
        (
            *_at("leaf", told(FactKind.BOUND, "h", 4, "", 14)),
            *_at("root", told(FactKind.BOUND, "h", 6, "", 15)),
        ),
        *("OneToOneBinding", "root", 6, "leaf", 4),
    ),
    "a node of two devices": Story(
        (
            *_at("leaf", told(FactKind.BOUND, "i", 4, "", 16)),
            *_at("root", told(FactKind.BOUND, "j", 6, "", 16)),
        ),
        *("UniqueNodeIds", "root", 6, "leaf", 4),
    ),
    "issued twice": Story(
        (*_at("root", told(FactKind.ISSUED, "k", 4, "once", 17), told(FactKind.ISSUED, "l", 6, "once", 18)),),
        *("IssuedOnce", "root", 6, "root", 4),
    ),
    "locked out": Story(
        _at(
            "leaf",
            Fact(1, FactKind.ASKED, "m"),
            admitted("m", 3, Word.REGISTERED, node=19),
            told(FactKind.REFUSED, "m", 9, node=0),
        ),
        *("NoLockOut", "leaf", 9, "leaf", 3),
    ),
}

FINE = {
    "asked before the revoke was obeyed": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8, until=11), admitted("a", 12)
    ),
    "a revoke that may not have been obeyed": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8, until=-1), admitted("a", 12)
    ),
    "a revoke of another credential": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8, proof=OTHER), admitted("a", 12)
    ),
    "a revoke of another node": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), Fact(8, FactKind.HEARD, "a", 99, until=8), admitted("a", 12)
    ),
    "registered again since": _at(
        "leaf",
        *(admitted("a", 3, Word.REGISTERED), heard("a", 8)),
        *(admitted("a", 10, Word.REGISTERED, OTHER), admitted("a", 12, proof=OTHER)),
    ),
    "the same credential was issued again since": _at(
        "leaf",
        *(admitted("a", 3, Word.REGISTERED), heard("a", 8)),
        *(admitted("a", 10, Word.REGISTERED), admitted("a", 12)),
    ),
    "a neighbour vouches": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8), admitted("a", 12, Word.NEIGHBOUR)
    ),
    "the same revoke, sent again": _at(
        "leaf",
        *(heard("a", 2, seq=4), admitted("a", 3, Word.REGISTERED)),
        *(heard("a", 8, seq=4), admitted("a", 12)),
    ),
    "an entry at a hub that was not addressed": (
        *_at("leaf", admitted("a", 3, Word.REGISTERED), told(FactKind.HELD, "a", 90)),
        *_at("root", told(FactKind.ISSUED, "a", 2), Fact(5, FactKind.REVOKED, "a", since=1, until=6)),
    ),
    "known from before": _at("leaf", told(FactKind.KNOWN, "a", -1), admitted("a", 3), told(FactKind.HELD, "a", 9)),
    "configured": _at("leaf", told(FactKind.HELD, "a", 9, number=1)),
    "no credential": _at("leaf", told(FactKind.HELD, "a", 9, "")),
    "refused with another credential": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), told(FactKind.REFUSED, "a", 9, OTHER, 0)
    ),
    "refused after somebody has asked for another": _at(
        "leaf",
        *(Fact(1, FactKind.ASKED, "a"), admitted("a", 3, Word.REGISTERED), Fact(5, FactKind.ASKED, "a")),
        told(FactKind.REFUSED, "a", 9, node=0),
    ),
    "refused after another credential was shown": _at(
        "leaf",
        *(admitted("a", 3, Word.REGISTERED), admitted("a", 6, Word.NEIGHBOUR, OTHER)),
        told(FactKind.REFUSED, "a", 9, node=0),
    ),
    "refused after a revoke": _at(
        "leaf", admitted("a", 3, Word.REGISTERED), heard("a", 8, until=-1), told(FactKind.REFUSED, "a", 9, node=0)
    ),
    "refused before it was admitted": _at(
        "leaf", told(FactKind.REFUSED, "a", 2, node=0), admitted("a", 3, Word.NEIGHBOUR)
    ),
}
