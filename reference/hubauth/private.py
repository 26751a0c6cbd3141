"""Files for their owner only: traces, reports about them, and whatever else may hold a credential."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_FILE, _DIRECTORY, _OTHERS = 0o600, 0o700, 0o077


def create(path: Path, *, over: bool = False) -> BinaryIO:
    """Open a new file that nobody else can read; ``over``: or an old one, emptied. Raises OSError."""
    what = os.O_TRUNC if over else os.O_EXCL
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | what, _FILE), "wb")


def write(path: Path, content: bytes, *, over: bool = False) -> None:
    """Write a whole file. Raises OSError."""
    with create(path, over=over) as file:
        file.write(content)


def make_directory(path: Path, *, new: bool = False) -> None:
    """Make a directory and what is missing above it; ``new``: it must not be there yet. Raises OSError."""
    if path.is_dir() and not new:
        return
    if path.parent != path:
        make_directory(path.parent)
    path.mkdir(_DIRECTORY, exist_ok=not new)


@contextmanager
def whatever_is_started() -> Iterator[None]:
    """A process that is started meanwhile makes files for their owner only, too."""
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def why_not_private(path: Path) -> str:
    """What to do about a file that others can read or write; empty if only its owner can, or it is no file."""
    try:
        status = path.stat()
    except OSError:
        return ""
    if not stat.S_ISREG(status.st_mode) or not status.st_mode & _OTHERS:
        return ""
    return f"others can read {path}: chmod 600 {path}"
