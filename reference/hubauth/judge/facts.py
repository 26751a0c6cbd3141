"""What a replay learns about devices on the way: for checks that span hubs."""

from enum import Enum
from hashlib import blake2b

import msgspec

from hubauth.core.model import Session
from hubauth.core.transition import Change


class FactKind(Enum):
    REGISTERED = "registered"
    """The hub, being the authority, bound a device to a node."""
    ISSUED = "issued"
    """It issued a credential."""
    STORED = "stored"
    """A whitelist entry was made or replaced."""
    REVOKED = "revoked"
    """A revoke that went everywhere deleted a whitelist entry."""
    BOUND = "bound"
    """A link got a session."""


class Fact(msgspec.Struct, frozen=True, gc=False):
    """``proof`` is a digest of the credential, or empty."""

    sequence: int
    kind: FactKind
    device_id: str
    node_id: int
    proof: str = ""


_EVERYWHERE = {"REV-2", "REV-5"}


def proof_of(credential: str) -> str:
    """Tells credentials (or their tokens) apart without being one."""
    return blake2b(credential.encode(errors="surrogatepass"), digest_size=12).hexdigest() if credential else ""


def facts_of(sequence: int, changes: tuple[Change, ...], cited: tuple[str, ...]) -> list[Fact]:
    """What the changes of a step say."""
    facts = []
    for table, key, old, new in changes:
        if table == "whitelist":
            if new is not None:
                facts.append(Fact(sequence, FactKind.STORED, key, new.node_id, proof_of(new.credential)))
            elif _EVERYWHERE.issubset(cited):
                facts.append(Fact(sequence, FactKind.REVOKED, key, old.node_id, proof_of(old.credential)))
        elif table == "registry":
            if old is None:
                facts.append(Fact(sequence, FactKind.REGISTERED, key, new.node_id))
        elif table == "links" and isinstance(new, Session):
            facts.append(Fact(sequence, FactKind.BOUND, new.device_id, new.node_id))
    return facts
