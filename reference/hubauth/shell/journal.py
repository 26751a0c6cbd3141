"""The journal: what each step changed that must outlive the process, in order, on disk before its outputs leave.

A data directory holds generations. ``journal-N`` begins with the policy it was written under and with the name that was
drawn for the directory; ``snapshot-N`` is what lasted before the first record of ``journal-N`` (generation 0 has none:
it begins with nothing else). Recovery takes the
newest snapshot and applies every journal from it on. Older files go away only when a newer snapshot is safely in place.

The credentials of a hub's own devices are in these files, because it must know them again after a restart; so are those
that an unacknowledged revoke names. No other credential is. The files are for their owner only.
"""

import errno
import fcntl
import os
import re
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec
from attrs import frozen

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.core.recovery import Recovery, indexed
from hubauth.shell.blocks import (
    DIRECTORY_MODE,
    FILE_MODE,
    Content,
    Damaged,
    StorageError,
    begin_file,
    create_file,
    frame_block,
    read_blocks,
    sync_directory,
    write_all,
)
from hubauth.shell.policies import decode_policy, encode_policy
from hubauth.shell.records import decode_records
from hubauth.shell.settings import Durability
from hubauth.shell.snapshot import KIND as SNAPSHOT_KIND
from hubauth.shell.snapshot import Snapshot, read_snapshot, snapshot_payloads

KIND = b"hubauth journal 3\n"
_LOOKED_AT = 64
"""Bytes at the beginning and at the end of a journal that are looked at before an answer leaves."""
_NAME = re.compile(r"(?P<kind>journal|snapshot)-(?P<number>[0-9]{1,18})")
_UNFINISHED = re.compile(_NAME.pattern + r"\.new")


class _Preamble(msgspec.Struct, frozen=True):
    """The first block of a journal."""

    generation: int
    journal: str
    policy: msgspec.Raw


@frozen
class Recovered:
    """What the directory held. ``hub`` is None for a directory that was empty."""

    hub: Snapshot | None
    records: int = 0
    """How many steps the journals tell of."""
    forgets: bool = False
    """Whether the files name a credential only because a revoke did, and that is acknowledged."""
    notes: tuple[str, ...] = ()


class Journal:
    """An open data directory. One hub at a time; appending is the only way to change it."""

    def __init__(self, directory: Path, durability: Durability, lock: int) -> None:
        self._directory = directory
        self._lock = lock
        self.durability = durability
        self._file = -1
        self._name = str(directory)
        self._identity = (0, 0)
        self._size = 0
        self._beginning = self._end = b""
        self._generation = 0
        self._sequence = 0

    @classmethod
    def open(cls, directory: Path, durability: Durability) -> tuple[Self, Recovered]:
        """Lock the directory, making it if need be, and recover. Raises StorageError or Damaged."""
        try:
            _make_own(directory)
            lock = _take_lock(directory)
        except OSError as problem:
            raise StorageError(f"cannot use {directory}: {problem.strerror}") from problem
        journal = cls(directory, durability, lock)
        try:
            return journal, journal._recover()
        except OSError as problem:
            journal.close()
            raise StorageError(f"cannot read {directory}: {problem}") from problem
        except BaseException:
            journal.close()
            raise

    @property
    def generation(self) -> int:
        """The number of the file that is appended to."""
        return self._generation

    # Appending

    def append(self, records: bytes) -> None:
        """Hand one batch of records to the operating system. Raises OSError: then nothing more may be answered."""
        block = frame_block(self._sequence, records)
        write_all(self._file, block)
        self._sequence += 1
        self._size += len(block)
        self._end = (self._end + block[-_LOOKED_AT:])[-_LOOKED_AT:]

    def sync(self) -> None:
        """Wait until everything appended is on disk. May be called from another thread."""
        os.fsync(self._file)

    def confirm(self) -> None:
        """Look whether the directory still has the file, and whether that is as long as what was written and begins and
        ends like it. Raises OSError if not: then nothing more may be answered.
        """
        found = os.stat(self._name)  # noqa: PTH116 - once per batch
        if (found.st_ino, found.st_dev) != self._identity:
            raise OSError(errno.ESTALE, "is not the file that this hub writes to", self._name)
        if found.st_size != self._size or self._read_ends() != (self._beginning, self._end):
            raise OSError(errno.ESTALE, "somebody else has written to this file", self._name)

    def _read_ends(self) -> tuple[bytes, bytes]:
        """How the file begins and ends."""
        return os.pread(self._file, _LOOKED_AT, 0), os.pread(self._file, _LOOKED_AT, max(self._size - _LOOKED_AT, 0))

    def close(self) -> None:
        """Let go of file and lock. Everything that was answered is synced already."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # Generations

    def begin(self, hub: Snapshot) -> None:
        """Start the next generation (the first, in an empty directory) and append there from now on.

        What was appended before must be synced. Raises OSError: then this generation goes on.
        """
        generation = self._generation + 1 if self._file >= 0 else 0
        preamble = _Preamble(generation, hub.state.journal, msgspec.Raw(encode_policy(hub.policy)))
        path = self._path("journal", generation)
        opened = begin_file(path, KIND, msgspec.json.encode(preamble))
        if self._file >= 0:
            os.close(self._file)
        self._go_on(opened, path, generation, 1)

    def _go_on(self, opened: int, path: Path, generation: int, sequence: int) -> None:
        """Append to this file from now on."""
        self._file, self._generation, self._sequence = opened, generation, sequence
        status = os.fstat(opened)
        self._name, self._identity, self._size = str(path), (status.st_ino, status.st_dev), status.st_size
        self._beginning, self._end = self._read_ends()

    def write_snapshot(self, hub: Snapshot) -> Generator[None, None, None]:
        """Write the snapshot of the generation just begun, a small piece at each step of the iterator.

        Synced, renamed and made the only one by ``finish_snapshot``, which may run in another thread.
        """
        descriptor = create_file(self._temporary())
        try:
            write_all(descriptor, SNAPSHOT_KIND)
            for sequence, payload in enumerate(snapshot_payloads(hub)):
                write_all(descriptor, frame_block(sequence, payload))
                yield
        finally:
            os.close(descriptor)

    def finish_snapshot(self) -> None:
        """Put a written snapshot in its place, then remove what it replaces."""
        temporary = self._temporary()
        descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(self._path("snapshot", self._generation))
        sync_directory(self._directory)
        for _, number, path in _files(self._directory):
            if number < self._generation:
                path.unlink()

    def discard_snapshot(self) -> None:
        """Give back the room of a snapshot that could not be written."""
        with suppress(OSError):
            self._temporary().unlink(missing_ok=True)

    def _temporary(self) -> Path:
        return self._directory / f"snapshot-{self._generation}.new"

    def _path(self, kind: str, generation: int) -> Path:
        return self._directory / f"{kind}-{generation}"

    # Recovery

    def _recover(self) -> Recovered:
        files = _files(self._directory)
        journals = sorted(number for kind, number, _ in files if kind == "journal")
        snapshots = sorted(number for kind, number, _ in files if kind == "snapshot")
        if not journals:
            if snapshots:
                raise StorageError(f"{self._directory} holds a snapshot but no journal")
            return Recovered(None)
        first = snapshots[-1] if snapshots else 0
        needed = list(range(first, journals[-1] + 1))
        missing = [number for number in needed if number not in journals]
        if missing or journals[-1] < first:
            raise StorageError(f"{self._path('journal', missing[0] if missing else first)} is missing")
        hub = read_snapshot(self._path("snapshot", first)) if snapshots else None
        return self._apply(hub, needed)

    def _apply(self, hub: Snapshot | None, numbers: list[int]) -> Recovered:
        recovery: Recovery | None = None
        policy, records, notes = Policy(), 0, list[str]()
        for number in numbers:
            content = read_blocks(self._path("journal", number), KIND)
            if not content.blocks or (content.torn and number != numbers[-1]):
                raise Damaged(content.path, content.size, "the file ends too early")
            if recovery is None:
                hub = hub or _blank(content)
                policy, recovery = hub.policy, Recovery(hub.state)
            policy, count = apply_records(content, policy, recovery)
            records += count
            if number == numbers[-1]:
                notes += self._continue(content, number)
        assert recovery is not None
        return Recovered(Snapshot(policy, indexed(policy, recovery.finish())), records, recovery.forgets, tuple(notes))

    def _continue(self, content: Content, number: int) -> Iterator[str]:
        """Append to this journal from now on, after cutting off an end that was never finished."""
        opened = self._file = os.open(content.path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        if content.torn:
            os.ftruncate(opened, content.size)
            os.fsync(opened)
            yield f"{content.path}: cut off {content.torn} bytes of a record that was never finished"
        self._go_on(opened, content.path, number, len(content.blocks))
        for path in self._directory.iterdir():
            if _UNFINISHED.fullmatch(path.name):
                path.unlink()


def _make_own(directory: Path) -> None:
    """Make the directory, for its owner only. One that holds other things is left as it is, and refused."""
    directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    files = [path.name for path in directory.iterdir() if path.is_file() and path.name != "lock"]
    foreign = [name for name in files if not _NAME.fullmatch(name) and not _UNFINISHED.fullmatch(name)]
    if foreign:
        raise StorageError(f"{directory} holds other files, such as {min(foreign)}: a hub needs a directory of its own")
    directory.chmod(DIRECTORY_MODE)


def _take_lock(directory: Path) -> int:
    lock = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise StorageError(f"{directory} is in use by another hub") from None
    return lock


def _files(directory: Path) -> list[tuple[str, int, Path]]:
    matches = [(_NAME.fullmatch(path.name), path) for path in directory.iterdir()]
    return [(match["kind"], int(match["number"]), path) for match, path in matches if match is not None]


def _preamble(content: Content) -> _Preamble:
    try:
        return msgspec.json.decode(content.blocks[0], type=_Preamble)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Damaged(content.path, len(KIND), f"no journal begins like this: {problem}") from problem


def _blank(content: Content) -> Snapshot:
    """The hub before the first record of generation 0."""
    preamble = _preamble(content)
    try:
        policy = decode_policy(bytes(preamble.policy))
    except ValueError as problem:
        raise Damaged(content.path, len(KIND), str(problem)) from problem
    return Snapshot(policy, initial_state(policy, preamble.journal))


def apply_records(content: Content, policy: Policy, recovery: Recovery) -> tuple[Policy, int]:
    """Apply every record of a journal; the policy after them, and how many there were. Raises Damaged."""
    count = 0
    for number, block in enumerate(content.blocks[1:], 1):
        try:
            for record in decode_records(block):
                count += 1
                for change in record:
                    if isinstance(change, Policy):
                        policy = change
                    else:
                        recovery.apply(change)
        except (ValueError, LookupError) as problem:
            raise Damaged(content.path, 0, f"block {number}: {problem}") from problem
    return policy, count
