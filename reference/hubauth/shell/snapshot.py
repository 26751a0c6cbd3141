"""A state as a few columns per large table: compact, quick to read, and written in small pieces.

The three tables that grow with the number of devices are stored as columns, a few thousand rows per block. All other
tables are stored as the canonical encoding. A last block says how much there must be.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve, frozen
from immutables import Map, MapMutation

from hubauth.core.canonical import decode_state, encode_state
from hubauth.core.indexes import derive_index
from hubauth.core.model import Entry, Registration, Route, State
from hubauth.core.policy import Policy
from hubauth.shell.blocks import Damaged, read_blocks
from hubauth.shell.policies import decode_policy, encode_policy

KIND = b"hubauth snapshot 1\n"
ROWS = 1000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


@frozen
class Snapshot:
    """A hub between two inputs: ``next_link`` is the lowest link number that was never used."""

    policy: Policy
    state: State
    next_link: int


def snapshot_payloads(snapshot: Snapshot, rows: int = ROWS) -> Iterator[bytes]:
    """The payloads of a snapshot's blocks, each of at most ``rows`` rows. The hub's state may move on meanwhile."""
    state = snapshot.state
    yield _encode(["hub", encode_policy(snapshot.policy), snapshot.next_link])
    rest = evolve(state, registry=Map(), whitelist=Map(), directory=Map())
    yield _encode(["rest", encode_state(rest)])
    for pairs in _chunks(state.registry.items(), rows):
        registered = [registration for _, registration in pairs]
        yield _columns("registry", pairs, [r.node_id for r in registered], [r.revoked for r in registered])
    for chunk in _chunks(state.whitelist.items(), rows):
        entries = [entry for _, entry in chunk]
        columns = [e.node_id for e in entries], [e.credential for e in entries], [e.is_hub for e in entries]
        yield _columns("whitelist", chunk, *columns)
    for part in _chunks(state.directory.items(), rows):
        routes = [route for _, route in part]
        yield _columns(
            "directory", part, [r.device_id for r in routes], [r.via for r in routes], [r.online for r in routes]
        )
    yield _encode(["end", [len(state.registry), len(state.whitelist), len(state.directory)]])


def _columns(table: str, pairs: list[tuple[Any, Any]], *columns: list[Any]) -> bytes:
    return _encode([table, [key for key, _ in pairs], *columns])


def _chunks(items: Iterable[tuple[Any, Any]], rows: int) -> Iterator[list[tuple[Any, Any]]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, rows)):
        yield chunk


def read_snapshot(path: Path) -> Snapshot:
    """The snapshot in a file. Raises Damaged."""
    content = read_blocks(path, KIND)
    if content.torn:
        raise Damaged(path, content.size, "the snapshot is not complete")
    try:
        return _restore(content.blocks)
    except (ValueError, TypeError, LookupError, msgspec.DecodeError) as problem:
        raise Damaged(path, 0, str(problem)) from problem


def _restore(blocks: tuple[bytes, ...]) -> Snapshot:
    registry: MapMutation[str, Registration] = Map[str, Registration]().mutate()
    whitelist: MapMutation[str, Entry] = Map[str, Entry]().mutate()
    directory: MapMutation[int, Route] = Map[int, Route]().mutate()
    texts: dict[str, str] = {}
    numbers: dict[int, int] = {}

    def shared(column: list[str]) -> Iterator[str]:
        return map(texts.setdefault, column, column)

    def same(column: list[int]) -> Iterator[int]:
        return map(numbers.setdefault, column, column)

    kind, encoded_policy, next_link = _decode(blocks[0])
    rest_kind, encoded_rest = _decode(blocks[1])
    if (kind, rest_kind) != ("hub", "rest"):
        raise ValueError("does not begin like a snapshot")
    policy = decode_policy(encoded_policy)
    for block in blocks[2:-1]:
        table, *columns = _decode(block)
        if table == "registry":
            names, nodes, revoked = columns
            registry.update(zip(shared(names), map(Registration, same(nodes), revoked), strict=True))
        elif table == "whitelist":
            names, nodes, credentials, hubs = columns
            whitelist.update(zip(shared(names), map(Entry, same(nodes), credentials, hubs), strict=True))
        elif table == "directory":
            nodes, names, vias, online = columns
            directory.update(zip(same(nodes), map(Route, shared(names), same(vias), online), strict=True))
        else:
            raise ValueError(f"unknown table {table!a}")
    if _decode(blocks[-1]) != ["end", [len(registry), len(whitelist), len(directory)]]:
        raise ValueError("rows are missing")
    texts.clear()
    numbers.clear()
    rest = decode_state(policy, encoded_rest)
    state = evolve(rest, registry=registry.finish(), whitelist=whitelist.finish(), directory=directory.finish())
    return Snapshot(policy, evolve(state, index=derive_index(policy, state)), next_link)
