"""The field ``ext``, by which two hubs find out whether both speak the extension.

It is read apart from the rest: whatever stands there, a message is as valid with it as without.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from hubauth.core.messages import MAX_HANDLED, MAX_JOURNAL_BYTES, NOT_A_HUB, Ext

VERSION = 1

ReadExt: TypeAlias = Raw | UnsetType
"""``ext`` in the fields of a message: anything at all, or nothing."""

Journal: TypeAlias = Annotated[str, Meta(max_length=MAX_JOURNAL_BYTES, description="At most 64 bytes of UTF-8.")]
Handled: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_HANDLED)]


class Extension(Struct):
    """What a hub says of itself, as it is written."""

    v: int
    journal: Journal
    peer: Journal = ""
    handled: Handled = 0


class Refusal(Struct):
    """What a hub is told that was admitted as a device."""

    hub: bool


_EXTENSION = msgspec.json.Decoder(Extension)
_REFUSAL = msgspec.json.Decoder(Refusal)


def read_ext(said: ReadExt, *, answer: bool = False) -> Ext | None:
    """What a message says of the extension; what cannot be read says nothing."""
    if said is UNSET:
        return None
    assert isinstance(said, Raw)
    if answer and _is_refusal(said):
        return NOT_A_HUB
    try:
        read = _EXTENSION.decode(said)
    except msgspec.DecodeError:
        return None
    fits = all(len(journal.encode()) <= MAX_JOURNAL_BYTES for journal in (read.journal, read.peer))
    if read.v != VERSION or not read.journal or not fits:
        return None
    return Ext(read.journal, read.peer, read.handled)


def _is_refusal(said: Raw) -> bool:
    try:
        return not _REFUSAL.decode(said).hub
    except msgspec.DecodeError:
        return False


def write_ext(ext: Ext | None) -> Extension | Refusal | UnsetType:
    """What is written for it."""
    if ext is None:
        return UNSET
    return Extension(VERSION, ext.journal, ext.peer, ext.handled) if ext.hub else Refusal(hub=False)
