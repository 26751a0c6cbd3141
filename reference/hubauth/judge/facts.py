"""What is known of devices at one hub: seen in its frames, or in the state that its rows begin and end with.

Promises that span hubs are judged by these alone (``hubauth.judge.across``).
"""

from collections.abc import Iterator
from enum import Enum
from hashlib import blake2b

import msgspec

from hubauth.core.model import Purpose, State
from hubauth.core.policy import Policy


class FactKind(Enum):
    """Of the frames of a hub: all but the last three."""

    ASKED = "asked"
    """Somebody asked the hub to register a device."""
    BOUND = "bound"
    """The hub told somebody which node a device is."""
    ISSUED = "issued"
    """It gave out a credential that no other hub had given to it."""
    ADMITTED = "admitted"
    """It admitted a device on a link of its own; ``number`` says by whose word (``Word``)."""
    VOUCHED = "vouched"
    """It told another hub that a credential is right, and had not asked a third one."""
    REFUSED = "refused"
    """It did not admit a device on a link of its own."""
    REVOKED = "revoked"
    """Somebody below, or its operator, asked it to revoke a device."""
    HEARD = "heard"
    """Its parent did. ``number`` is the one that the revoke has."""
    KNOWN = "known"
    """The state that the rows begin with has a whitelist entry of a device that has been on a link of the hub."""
    HELD = "held"
    """The state that they end with has a whitelist entry; ``number``: whether it is configured."""
    SETTLED = "settled"
    """In the state that they end with there is nothing left to do, if ``number`` is 1."""


class Word(Enum):
    """By whose word a device was admitted."""

    OWN = 0
    NEIGHBOUR = 1
    REGISTERED = 2
    """It was registered just then."""


class Fact(msgspec.Struct, frozen=True, gc=False):
    """``sequence`` is the row. ``proof`` is a digest of the credential, or empty."""

    sequence: int
    kind: FactKind
    device_id: str = ""
    node_id: int = 0
    proof: str = ""
    since: int = -1
    """The row of the request that the hub answered. Of a revoke: 1 if it was addressed to one hub alone."""
    until: int = -1
    """Of a revoke: the row from which on the hub is known to have obeyed it; -1: it may not have."""
    number: int = 0


def proof_of(credential: str) -> str:
    """Tells credentials (or their tokens) apart without being one."""
    return blake2b(credential.encode(errors="surrogatepass"), digest_size=12).hexdigest() if credential else ""


def first_facts(state: State) -> Iterator[Fact]:
    """Of the state that a hub's rows begin with: whoever was ever on a link of the hub has left a route."""
    for device_id, entry in state.whitelist.items():
        if entry.node_id in state.directory:
            yield Fact(-1, FactKind.KNOWN, device_id, entry.node_id, proof_of(entry.credential))


def last_facts(sequence: int, policy: Policy, state: State) -> Iterator[Fact]:
    """Of the state that they end with."""
    away = policy.has_parent and not state.parent_present
    waits = any(pending.purpose is not Purpose.REVOKE for pending in state.pending.values())
    yield Fact(sequence, FactKind.SETTLED, number=int(not (state.owed or away or waits or state.announcing)))
    for device_id, entry in state.whitelist.items():
        is_configured = int(device_id in policy.provisioned_by_device)
        proof = proof_of(entry.credential)
        yield Fact(sequence, FactKind.HELD, device_id, entry.node_id, proof, number=is_configured)
