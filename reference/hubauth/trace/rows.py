"""Writing the rows of one hub: numbered, redacted, a batch at a time, one file per run."""

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from attrs import frozen

from hubauth import private
from hubauth.bounded import read_text
from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Major
from hubauth.core.policy import Policy
from hubauth.forms.events import Checkpoint, Event, Kind, TraceError, decode_opening
from hubauth.forms.lines import encode_checkpoint, encode_event
from hubauth.forms.policies import encode_policy
from hubauth.trace import jsonl
from hubauth.trace.redact import KEY_BYTES, Redactor
from hubauth.trace.storage import CHECKPOINTS, EVENTS
from hubauth.wire.header import Header, Version

LOGGER = logging.getLogger("hubauth")
LATEST = 2**63 - 1
"""The latest time that the formats hold."""


@frozen
class Recording:
    """Where and how to record."""

    directory: Path
    """Names the trace; the hubs of one tree can share it."""
    keep_credentials: bool = False
    key_file: Path | None = None
    """Holds the key of the tokens, and is made if it does not exist; None: a key that nobody keeps."""
    checkpoint_events: int = 50_000

    def redactor(self) -> Redactor | None:
        """Raises TraceError if the key cannot be read or written."""
        if self.keep_credentials:
            return None
        return Redactor(secrets.token_bytes(KEY_BYTES) if self.key_file is None else _key_in(self.key_file))


def _key_in(path: Path) -> bytes:
    """The key in a file; a new one if there is no such file yet."""
    try:
        private.write(path, secrets.token_hex(KEY_BYTES).encode() + b"\n")
    except FileExistsError:
        pass
    except OSError as problem:
        raise TraceError(f"cannot write {path}: {problem.strerror}") from problem
    shared = private.why_not_private(path)
    if shared:
        LOGGER.warning("%s", shared)
    try:
        text = read_text(path).strip()
    except (OSError, ValueError) as problem:
        raise TraceError(f"cannot read {path}: {problem}") from problem
    if not re.fullmatch(rf"[0-9a-f]{{{2 * KEY_BYTES}}}", text):
        raise TraceError(f"{path} does not hold a key: {2 * KEY_BYTES} hexadecimal digits")
    return bytes.fromhex(text)


def run_path(directory: Path, table: str, hub: str, run: int) -> Path:
    """Where the rows (``events``) or ``checkpoints`` of one run of a hub are."""
    return directory / table / f"{quote(hub, safe='')}-{run:04d}.jsonl"


class RowWriter:
    """Rows of one hub. What was added is kept until it is sealed, and written when it is released."""

    def __init__(self, recording: Recording, hub: str) -> None:
        """Begins a new run. Raises TraceError.

        Its rows continue those of the run before, if both use the same tokens; else it is another trace.
        """
        self.redactor = recording.redactor()
        self.tokens = self.redactor.fingerprint if self.redactor is not None else ""
        self._hub = hub
        self._rows: list[bytes] = []
        self._sealed: list[bytes] = []
        self._failed = False
        run, self._trace, self.sequence = _next_run(recording.directory, hub, self.tokens)
        try:
            self._events = _create(run_path(recording.directory, EVENTS, hub, run))
            self._checkpoints = _create(run_path(recording.directory, CHECKPOINTS, hub, run))
        except OSError as problem:
            raise TraceError(f"cannot record in {recording.directory}: {problem.strerror}") from problem

    def add(
        self,
        kind: Kind,
        time: int,
        link: Link | None = None,
        connection: str = "",
        *,
        peer: str = "",
        msg_id: int = 0,
        payload: bytes = b"",
    ) -> None:
        """Add a row that is no frame."""
        trace, hub, sequence = self._trace, self._hub, self.sequence
        time = bounded_time(time)
        event = Event(trace, hub, sequence, kind, time, link, connection, peer, msg_id=msg_id, payload=payload)
        self._put(event)

    def add_frame(
        self, kind: Kind, time: int, link: Link, connection: str, header: Header, version: Version, payload: bytes
    ) -> None:
        if self.redactor is not None:
            tells = header.major is Major.OK_RESP and (kind is Kind.FRAME_OUT or link == PARENT)
            payload = self.redactor.payload(header.sub_proto, header.flags, payload, tells=tells)
        event = Event(
            self._trace,
            self._hub,
            self.sequence,
            kind,
            bounded_time(time),
            link,
            connection,
            "",
            int(version),
            int(header.major),
            header.sub_proto,
            header.flags,
            header.msg_id,
            header.source,
            header.target,
            header.trace_id,
            header.hop_limit,
            header.timestamp,
            payload,
        )
        self._put(event)

    def _put(self, event: Event) -> None:
        self._rows.append(encode_event(event))
        self.sequence += 1

    def seal(self) -> None:
        """What was added so far may be written when it is released."""
        self._sealed += self._rows
        self._rows = []

    def release(self) -> None:
        """Never raises: whoever is recorded goes on when its trace cannot."""
        rows, self._sealed = self._sealed, []
        if rows:
            self._write(self._events, b"".join(rows))

    def forget(self) -> None:
        """What was added and not released is never written."""
        self._rows, self._sealed = [], []

    def keep(self, sequence: int, policy: Policy, digest: str, state: bytes) -> None:
        """Write a checkpoint."""
        checkpoint = Checkpoint(self._trace, self._hub, sequence, digest, encode_policy(policy), state)
        self._write(self._checkpoints, encode_checkpoint(checkpoint))

    def close(self) -> None:
        """Write what is left, as far as that can be done."""
        self.seal()
        self.release()
        for file in (self._events, self._checkpoints):
            # What could not be written is still in the file's buffer, and closing would try again.
            with suppress(OSError):
                file.close()

    def _write(self, file: BinaryIO, data: bytes) -> None:
        if self._failed:
            return
        try:
            file.write(data)
            file.flush()
        except OSError as problem:
            self._failed = True
            LOGGER.error("the trace ends here: %s", problem)


def bounded_time(time: int) -> int:
    """The nearest time that a row can have: a clock that is wrong must not make a trace that nobody can read."""
    return min(max(time, 0), LATEST)


def _create(path: Path) -> BinaryIO:
    private.make_directory(path.parent)
    return private.create(path)


def _next_run(directory: Path, hub: str, tokens: str) -> tuple[int, str, int]:
    """The number of a new run, its trace, and the sequence its rows begin with."""
    run, name = 0, directory.resolve().name
    while run_path(directory, EVENTS, hub, run).exists():
        run += 1
    for earlier in range(run - 1, -1, -1):
        rows = list(_first_and_last(run_path(directory, EVENTS, hub, earlier)))
        if rows and decode_opening(rows[0].payload).tokens == tokens:
            return run, rows[-1].trace, rows[-1].sequence + 1
        if rows:
            return run, f"{name}+{run}", 0
    return run, name, 0


def _first_and_last(path: Path) -> Iterator[Event]:
    last = None
    for event in jsonl.read_events(path):
        if last is None:
            yield event
        last = event
    if last is not None:
        yield last
