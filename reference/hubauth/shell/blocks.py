"""Files of checked blocks: what journal and snapshot are made of.

A file is a first line that names its kind, then blocks. A block is a header (length, sequence number, CRC-32 of the
payload, CRC-32 of the header) and its payload. The header has a checksum of its own, so a damaged length is never
mistaken for a file that ends too early: only a block that reaches beyond the end of the file, or is the very last one,
can be torn.
"""

import os
from pathlib import Path
from struct import Struct as Layout
from zlib import crc32

from attrs import frozen

_HEADER = Layout(">IIII")
_CHECKED = Layout(">III")

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


class StorageError(Exception):
    """The data directory cannot be used; the message says why and nothing was changed."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Damaged(Exception):
    """A file cannot be trusted. Nothing has been changed."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        super().__init__(f"{path}: damaged at byte {offset}: {reason}")
        self.path, self.offset, self.reason = path, offset, reason


def frame_block(sequence: int, payload: bytes) -> bytes:
    """One block as bytes."""
    number = sequence & 0xFFFFFFFF
    checked = _CHECKED.pack(len(payload), number, crc32(payload))
    return checked + crc32(checked).to_bytes(4, "big") + payload


@frozen
class Content:
    """The blocks of a file, and where the last whole one ends. ``torn`` counts the bytes after that."""

    path: Path
    blocks: tuple[bytes, ...]
    size: int
    torn: int = 0


def read_blocks(path: Path, kind: bytes) -> Content:
    """Every whole block of a file.

    Raises Damaged for everything but an unfinished end, and StorageError for a file of another format.
    """
    data = path.read_bytes()
    if not data.startswith(kind):
        _refuse_other_format(path, data[: data.find(b"\n") + 1], kind)
        raise Damaged(path, 0, f"is no {kind.decode().strip()}")
    blocks: list[bytes] = []
    offset, size = len(kind), len(data)
    while offset < size:
        start = offset + _HEADER.size
        if start > size:
            break
        length, sequence, check, header_check = _HEADER.unpack_from(data, offset)
        if crc32(data[offset : offset + _CHECKED.size]) != header_check:
            if not any(data[offset:]):
                break  # the file system had made room, but the bytes never came
            raise Damaged(path, offset, "the checksum of a block header is wrong")
        if sequence != len(blocks) & 0xFFFFFFFF:
            raise Damaged(path, offset, f"block {len(blocks)} is missing, {sequence} follows")
        end = start + length
        if end > size:
            break
        payload = data[start:end]
        if crc32(payload) != check:
            if end == size:
                break
            raise Damaged(path, offset, f"the checksum of block {sequence} is wrong")
        blocks.append(payload)
        offset = end
    return Content(path, tuple(blocks), offset, size - offset)


def _refuse_other_format(path: Path, first: bytes, kind: bytes) -> None:
    """The first line ends with the number of the format: another number is not damage."""
    name, number = kind.rsplit(b" ", 1)
    if first.startswith(name + b" ") and first.removeprefix(name + b" ").strip().isdigit():
        own = f"this version of hubauth reads format {number.decode().strip()}"
        message = f"{path} is of another format ({first.decode().strip()}): {own}"
        hint = "nothing was changed; run the version that wrote it, or begin anew with another data_dir"
        raise StorageError(message, hint)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, or raise OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def create_file(path: Path) -> int:
    """A new file for its owner only, open for appending. An old one of that name is replaced."""
    path.unlink(missing_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)


def sync_directory(path: Path) -> None:
    """Make renames and new names in a directory permanent."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def begin_file(path: Path, kind: bytes, first: bytes) -> int:
    """A new file with its first block, open for appending. Raises OSError: then there is no such file."""
    temporary = path.with_name(path.name + ".new")
    descriptor = create_file(temporary)
    try:
        write_all(descriptor, kind + frame_block(0, first))
        os.fsync(descriptor)
        temporary.rename(path)
        sync_directory(path.parent)
    except BaseException:
        os.close(descriptor)
        temporary.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        raise
    return descriptor
