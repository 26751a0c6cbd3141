"""What is said at a hub's door: a socket in its data directory by which its operator tells it what to do.

Whoever comes in says one line, a JSON object with the version and the command, and is told one object per line until
the hub closes the connection: the last one is the outcome.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from hubauth.core.messages import MAX_DEVICE_ID_BYTES, MAX_NODE_ID
from hubauth.shell.settings import Credential, Name, NodeId

VERSION = 1
SOCKET = "door"
LINE_BYTES = 64 * 1024
MAX_WAIT = 3600.0
MAX_NODES = 1000
_SHORT_ENOUGH = 100
"""Bytes of a name that every system takes for a socket; beyond, it is reached by its directory's descriptor."""
_PATIENCE = 30.0


class DoorLine(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of the conversation, by the operator or by the hub."""


# Requests


class Request(DoorLine, frozen=True, kw_only=True, tag_field="command"):
    """What an operator wants."""

    v: Literal[1] = 1


class RevokeRequest(Request, frozen=True, kw_only=True, tag="revoke"):
    """Revoke everywhere. Answered by every hub that answers, until nothing is owed or ``wait`` seconds are over."""

    device_id: Name
    node_id: NodeId = 0
    credential: Credential = ""
    wait: Annotated[float, Meta(ge=0, le=MAX_WAIT)] = 5.0


class InvalidateRequest(Request, frozen=True, kw_only=True, tag="invalidate"):
    """Have cached permissions forgotten, of all nodes if none is named."""

    node_ids: Annotated[tuple[Annotated[int, Meta(ge=1, le=MAX_NODE_ID)], ...], Meta(max_length=MAX_NODES)] = ()
    refresh: bool = False


class StatusRequest(Request, frozen=True, kw_only=True, tag="status"):
    """Say how things are."""


class ReloadRequest(Request, frozen=True, kw_only=True, tag="reload"):
    """Read the file of the configuration again."""


AnyRequest: TypeAlias = RevokeRequest | InvalidateRequest | StatusRequest | ReloadRequest


# Replies


class Reply(DoorLine, frozen=True, kw_only=True, tag_field="kind"):
    """What a hub says."""


class Answered(Reply, frozen=True, kw_only=True, tag="answer"):
    """A hub has answered the revoke; 1 is the code of a success."""

    hub: int
    node_id: int
    code: int
    reason: str


class RevokeStanding(DoorLine, frozen=True, kw_only=True):
    """How things are with a revoke at a neighbouring hub."""

    hub: int
    """Its node id; 0 for a parent that has never been present."""
    parent: bool
    present: bool
    standing: Literal["acknowledged", "owed", "unconfirmed", "unsent"]
    """It is plain and was told once and has not answered: ``unconfirmed``; or it could not be told: ``unsent``."""


class Revoked(Reply, frozen=True, kw_only=True, tag="revoked"):
    """The outcome of a revoke. What is owed stays so, and is sent when that hub is back."""

    ended: Literal["acknowledged", "waited", "stopping"]
    neighbours: tuple[RevokeStanding, ...]
    unsaid: int
    """Answers that were too many to be said."""


class Done(Reply, frozen=True, kw_only=True, tag="done"):
    """It is done."""


class NeighbourStatus(DoorLine, frozen=True, kw_only=True):
    """A hub next to this one."""

    hub: int
    name: str
    """Its device_id; of a parent, its address."""
    parent: bool
    present: bool
    extended: bool
    """Whether it is present and speaks the extension."""
    seconds: float
    """For how long, but not longer than this hub has run."""
    online: int
    """Nodes online below it; 0 for a parent."""
    owed: int
    """Revokes that it has not acknowledged."""
    oldest: str
    """The device of the oldest of them."""


class Status(Reply, frozen=True, kw_only=True, tag="status"):
    """How things are."""

    version: str
    uptime: float
    node_id: int
    device_id: str
    dialect: str
    authority: bool
    """Whether this hub gives out the node ids."""
    neighbours: tuple[NeighbourStatus, ...]
    online: int
    """Devices with a session at this hub."""
    below: int
    """Nodes online at hubs below, those hubs' own children included."""
    pending: int
    """Requests that wait for another hub's answer."""
    generation: int
    records: int
    """Of the journal."""
    broken: dict[str, int] | None = None
    """Promise -> how often the hub has broken it since it began; None: nobody watches over that (``--watch``)."""


class Problem(Reply, frozen=True, kw_only=True, tag="problem"):
    """It cannot be done. ``refused``: it was understood, and the answer is no."""

    error: str
    hint: str = ""
    refused: bool = False


AnyReply: TypeAlias = Answered | Revoked | Done | Status | Problem


_REQUEST: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_REPLY: msgspec.json.Decoder[AnyReply] = msgspec.json.Decoder(AnyReply)


class _Versioned(Struct):
    v: int


def read_request(line: bytes) -> AnyRequest:
    """What a line asks for. Raises ValueError."""
    try:
        said = msgspec.json.decode(line, type=_Versioned).v
        if said != VERSION:
            raise ValueError(f"version {said} is not spoken here, but {VERSION}")
        request: AnyRequest = _REQUEST.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"not a request: {problem}") from None
    if isinstance(request, RevokeRequest) and len(request.device_id.encode()) > MAX_DEVICE_ID_BYTES:
        raise ValueError(f"a device_id has at most {MAX_DEVICE_ID_BYTES} bytes")
    return request


def written(said: AnyRequest | AnyReply) -> bytes:
    """The line that says it."""
    return msgspec.json.encode(said) + b"\n"


@contextmanager
def socket_name(directory: Path) -> Iterator[str]:
    """The name to bind or to connect to: as long as a directory's may be, a socket's may not."""
    name = directory / SOCKET
    if len(os.fsencode(name)) <= _SHORT_ENOUGH:
        yield str(name)
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)


class NoAnswer(Exception):
    """The hub has gone, or says nothing, or nothing that could be understood."""


def call(directory: Path, request: AnyRequest) -> Iterator[AnyReply]:
    """Ask the hub of a data directory; what it says, as it says it. Raises OSError if there is none, NoAnswer."""
    waits = request.wait if isinstance(request, RevokeRequest) else 0.0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(waits + _PATIENCE)
        with socket_name(directory) as name:
            line.connect(name)
        with suppress(ConnectionError):
            # It may have hung up already: what it said before says why.
            line.sendall(written(request))
        try:
            with line.makefile("rb") as heard:
                for said in heard:
                    reply = _REPLY.decode(said)
                    yield reply
                    if not isinstance(reply, Answered):
                        return
            raise NoAnswer("the hub has hung up")
        except TimeoutError:
            raise NoAnswer("the hub does not answer") from None
        except OSError as problem:
            raise NoAnswer(f"the hub has hung up: {problem.strerror}") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise NoAnswer(f"the hub cannot be understood: {problem}") from None
