"""One row of a trace: one thing that happened to, or was done by, one hub.

A hub's rows are numbered from 0 without a gap. The first is ``start``; what its payload says (``Opening``) holds for
the rows that follow. Everything a replay needs is in the rows: what the hub chose freely (a credential, a MsgID, its
journal) is seen in what it sent.
"""

from enum import Enum

import msgspec
from attrs import frozen

from hubauth.core.inputs import (
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
)
from hubauth.core.policy import Policy
from hubauth.core.values import Choice
from hubauth.forms.habits import Habits
from hubauth.forms.policies import PolicyForm, policy_of

VERSION = 1
"""Of the format. A reader refuses rows of a later one."""


class Kind(Choice):
    """What a row is about."""

    START = "start"
    """The hub begins, or begins again: policy, order, and the digest of the state it begins with."""
    LINK_UP = "link_up"
    LINK_DOWN = "link_down"
    """A connection ended, and not because the protocol said so."""
    FRAME_IN = "frame_in"
    TIMER = "timer"
    """``msg_id`` is the number of the timer that ran out."""
    OPERATOR = "operator"
    POLICY = "policy"
    """The configuration was replaced (or the attempt refused)."""
    FRAME_OUT = "frame_out"
    CLOSE = "close"
    """The hub closed a connection because the protocol says so."""
    CHECKPOINT = "checkpoint"
    """The state after everything before is in the table of checkpoints, under this sequence."""
    END = "end"
    """The hub stopped in order: nothing is missing before this row."""


OUTPUTS = frozenset({Kind.FRAME_OUT, Kind.CLOSE})
"""What the hub did; all other kinds happened to it."""
CAUSES = frozenset({Kind.LINK_UP, Kind.LINK_DOWN, Kind.FRAME_IN, Kind.TIMER, Kind.OPERATOR, Kind.POLICY})
"""What the core takes a step for."""
FRAMES = frozenset({Kind.FRAME_IN, Kind.FRAME_OUT})


class Event(msgspec.Struct, frozen=True, gc=False):
    """A row. Fields that do not belong to its kind keep their defaults."""

    trace: str
    """Names the recording; hubs of one tree share it."""
    hub: str
    """Names the hub within the trace."""
    sequence: int
    kind: Kind
    time: int = 0
    """Microseconds since 1970, UTC; 0: unknown."""
    link: int | None = None
    """0: the parent; child links have positive numbers, never used twice in one trace."""
    connection: str = ""
    """The same text at both ends of a connection, if known."""
    peer: str = ""
    """Who is at the other end, for people."""
    header: int = 0
    """The version of the frame's header, 1 or 2; 0: no frame."""
    major: int = 0
    sub_proto: int = 0
    flags: int = 0
    msg_id: int = 0
    source: int = 0
    target: int = 0
    trace_id: int = 0
    hop_limit: int = 0
    timestamp: int = 0
    payload: bytes = b""
    """Of the frame; of ``start``, ``link_up``, ``policy`` and ``operator`` rows JSON as described in spec/trace.md."""
    version: int = VERSION


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """The whole state of a hub before the row ``sequence``, in the canonical encoding."""

    trace: str
    hub: str
    sequence: int
    digest: str
    policy: bytes
    """The policy in force, as JSON."""
    state: bytes
    version: int = VERSION


class TraceError(Exception):
    """A row or file that is no trace: what is wrong, and where."""


class Order(Enum):
    """What the order of a hub's rows says."""

    HANDLED = "handled"
    """Rows are in the order in which the hub handled them; what it did follows what caused it."""
    OBSERVED = "observed"
    """Rows are in the order in which somebody outside saw them; only the order on each link is certain."""


class Opening(msgspec.Struct, frozen=True, omit_defaults=True):
    """The payload of a ``start`` row."""

    order: Order
    policy: PolicyForm | None = None
    """None: whoever recorded did not know it."""
    state: str = ""
    """The digest of the state that the hub begins with, if it is not the first one; a checkpoint holds it."""
    journal: str = ""
    """The hub's own, drawn when its data directory was made; empty: whoever recorded did not know it."""
    tokens: str = ""
    """Credentials are replaced by tokens, whose key has this fingerprint; empty: they are not replaced."""
    habits: Habits | None = None
    """What the hub is declared to do otherwise than the rules say; None: nothing was declared."""

    def read_policy(self) -> Policy | None:
        return None if self.policy is None else policy_of(self.policy)


class _RevokeCommand(msgspec.Struct):
    device_id: str
    node_id: int = 0
    credential: str = ""
    target: int = 0


class _InvalidateCommand(msgspec.Struct):
    node_ids: tuple[int, ...] = ()
    reason: str = ""
    refresh: bool = False


class OperatorCommand(msgspec.Struct, omit_defaults=True):
    """The payload of an ``operator`` row: one of the two."""

    revoke: _RevokeCommand | None = None
    invalidate: _InvalidateCommand | None = None


class Origin(msgspec.Struct, omit_defaults=True):
    """The payload of a ``link_up`` row, if where the connection comes from says which hub it may name itself as."""

    hubs: tuple[int, ...]
    peer: str = ""


_encode = msgspec.json.Encoder().encode
_opening = msgspec.json.Decoder(Opening)


def encode_opening(opening: Opening) -> bytes:
    return _encode(opening)


def decode_opening(payload: bytes) -> Opening:
    """Raises TraceError."""
    try:
        return _opening.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise TraceError(f"the payload of a start row does not say how the trace is to be read: {problem}") from problem


def encode_origin(happened: LinkUp) -> bytes:
    """The payload of a ``link_up`` row; most have none."""
    return _encode(Origin(happened.hubs, happened.peer)) if happened.hubs else b""


def encode_command(command: OperatorRevoke | OperatorInvalidate) -> bytes:
    """The payload of an ``operator`` row."""
    if isinstance(command, OperatorRevoke):
        revoke = command.revoke
        said = _RevokeCommand(revoke.device_id, revoke.node_id, revoke.credential, command.target)
        return _encode(OperatorCommand(revoke=said))
    message = command.invalidate
    return _encode(OperatorCommand(invalidate=_InvalidateCommand(message.node_ids, message.reason, message.refresh)))


@frozen
class Place:
    """Whose rows these are, and where they take place."""

    trace: str
    hub: str
