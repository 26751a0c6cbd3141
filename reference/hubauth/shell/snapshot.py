"""What lasts of a state, as a few columns per table: compact, quick to read, and written in small pieces.

The first block holds the policy and the hub's own scalars, every other a thousand rows of one table at most, column by
column. A last block says how much there must be.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen
from immutables import Map, MapMutation

from hubauth.core.model import State
from hubauth.core.policy import Policy
from hubauth.core.recovery import LASTING_SCALARS, LASTING_TABLES
from hubauth.shell.blocks import Damaged, read_blocks
from hubauth.shell.policies import decode_policy, encode_policy
from hubauth.shell.records import FORMS

KIND = b"hubauth snapshot 3\n"
ROWS = 1000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


@frozen
class Snapshot:
    """A hub between two inputs."""

    policy: Policy
    state: State


def snapshot_payloads(snapshot: Snapshot, rows: int = ROWS) -> Iterator[bytes]:
    """The payloads of a snapshot's blocks, each of at most ``rows`` rows. The hub's state may move on meanwhile."""
    state = snapshot.state
    yield _encode(["hub", encode_policy(snapshot.policy), [getattr(state, name) for name in LASTING_SCALARS]])
    for table in LASTING_TABLES:
        form = FORMS[table]
        for pairs in _chunks(getattr(state, table).items(), rows):
            columns = zip(*[form.split(value) for _, value in pairs], strict=True)
            yield _encode([table, [form.write_key(key) for key, _ in pairs], *columns])
    yield _encode(["end", [len(getattr(state, table)) for table in LASTING_TABLES]])


def _chunks(items: Iterable[tuple[Any, Any]], rows: int) -> Iterator[list[tuple[Any, Any]]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, rows)):
        yield chunk


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file, its state without indexes. Raises Damaged or OtherFormat."""
    content = read_blocks(path, KIND)
    if content.torn:
        raise Damaged(path, content.size, "the snapshot is not complete")
    try:
        return _restore(content.blocks)
    except (ValueError, TypeError, LookupError, msgspec.DecodeError) as problem:
        raise Damaged(path, 0, str(problem)) from problem


def _restore(blocks: tuple[bytes, ...]) -> Snapshot:
    kind, encoded_policy, scalars = _decode(blocks[0])
    if kind != "hub":
        raise ValueError("does not begin like a snapshot")
    tables: dict[str, MapMutation[Any, Any]] = {table: Map[Any, Any]().mutate() for table in LASTING_TABLES}
    shared = _Shared()
    for block in blocks[1:-1]:
        table, keys, *columns = _decode(block)
        if table not in tables:
            raise ValueError(f"unknown table {table!a}")
        form = FORMS[table]
        named = zip(form.columns, columns, strict=True)
        values = map(form.make, *(column if name == "credential" else shared(column) for name, column in named))
        tables[table].update(zip(shared(list(map(form.read_key, keys))), values, strict=True))
    if _decode(blocks[-1]) != ["end", [len(content) for content in tables.values()]]:
        raise ValueError("rows are missing")
    lasting = dict(zip(LASTING_SCALARS, scalars, strict=True))
    content: dict[str, Any] = {table: entries.finish() for table, entries in tables.items()}
    return Snapshot(decode_policy(encoded_policy), State(**lasting, **content))


class _Shared:
    """The same device or node in several tables becomes the same object."""

    def __init__(self) -> None:
        self._known: dict[type, dict[Any, Any]] = {str: {}, int: {}}

    def __call__(self, column: list[Any]) -> Iterable[Any]:
        known = self._known.get(type(column[0]))
        return column if known is None else map(known.setdefault, column, column)
