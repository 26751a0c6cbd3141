"""Files that anybody may have written: no more of them is read than is sensible, and nothing in them is fatal.

Whatever is wrong with a file's content is a ValueError; what is wrong with the file itself is an OSError.
"""

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is read as a whole."""
_TOO_DEEP = "nested too deeply"

T = TypeVar("T")


def read(path: Path) -> bytes:
    """A whole file."""
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"more than {LARGEST} bytes")
    return content


def read_text(path: Path) -> str:
    """A whole file of UTF-8."""
    return read(path).decode()


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a file."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def read_json(path: Path, form: type[T]) -> T:
    """What a file holds, in this form."""
    return decode_json(read(path), form)


def decode_json(content: bytes, form: type[T]) -> T:
    """Likewise for what was read already."""
    try:
        return msgspec.json.decode(content, type=form)
    except msgspec.DecodeError as problem:
        raise ValueError(str(problem)) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
