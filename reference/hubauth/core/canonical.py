"""The canonical encoding of a state, and a digest that is kept up to date by each step's changes.

A state is a set of entries, each one compact JSON array ``[table, key, value]``; its encoding is those
entries as sorted lines. The digest of a table is the sum modulo 2^256 of the SHA-256 of its entries, so it
does not depend on their order and one changed entry costs one subtraction and one addition. The digest
of a state is the SHA-256 over the tables' sums. Derived indexes are not part of it.

It finds differences between honest implementations; it is not meant to withstand an attacker who chooses entries.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, get_type_hints

import msgspec
from attrs import evolve, fields, frozen
from immutables import Map
from msgspec import convert

from hubauth.core.indexes import derive_index
from hubauth.core.messages import Ext, Frame, Grant, Major, PermsInvalidate, Revoke
from hubauth.core.model import Entry, Learnt, Neighbour, Owed, Pending, Plain, Registration, Route, Session, State
from hubauth.core.policy import Policy
from hubauth.core.transition import ALL, SCALARS, STATE_FIELDS, Step

TABLES = ("hub", *STATE_FIELDS[len(SCALARS) :])
_MODULUS = 1 << 256
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[str, Any, Any]).decode
_PLAIN = (str, int, bool, float, type(None))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(attribute.name for attribute in fields(kind))


_FLAT: dict[type, Callable[[Any], Any]] = {
    kind: attrgetter(*_names(kind)) for kind in (Session, Registration, Entry, Route, Grant, Neighbour, Owed)
}
"""The values of the tables that change most: their fields need no further look."""


def _plain(value: Any) -> Any:
    """A value as JSON can say it: attrs values by their fields, maps as sorted pairs, enums by value."""
    flat = _FLAT.get(type(value))
    if flat is not None:
        return flat(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Map):
        pairs = [[_plain(key), _plain(item)] for key, item in value.items()]
        return sorted(pairs, key=msgspec.json.encode)
    if isinstance(value, Revoke | PermsInvalidate):
        return [value.action.value, *_field_values(value)]
    return _field_values(value)


def _field_values(value: Any) -> list[Any]:
    kind: type = type(value)
    return [_plain(getattr(value, name)) for name in _names(kind)]


def encode_entry(table: str, key: Any, value: Any) -> bytes:
    """One entry as compact JSON. A link without a session is stored as ``false``."""
    return _encode((table, _plain(key), _plain(value)))


def _entries(state: State) -> Iterator[tuple[str, Any, Any]]:
    for name in SCALARS:
        yield "hub", name, getattr(state, name)
    for table in TABLES[1:]:
        for key, value in getattr(state, table).items():
            yield table, key, False if value is None else value


def encode_state(state: State) -> bytes:
    """The whole state, byte-equal for equal states in any process and on any machine."""
    return b"\n".join(sorted(encode_entry(*entry) for entry in _entries(state)))


@frozen
class Digest:
    """The running sums, one per table."""

    sums: tuple[int, ...]

    def hex(self) -> str:
        """The digest of the state."""
        return sha256(b"".join(part.to_bytes(32, "big") for part in self.sums)).hexdigest()


def _hash(table: str, key: Any, value: Any) -> int:
    return int.from_bytes(sha256(encode_entry(table, key, value)).digest(), "big")


def digest_of(state: State) -> Digest:
    """The digest from nothing: costs as much as the state is large."""
    sums = dict.fromkeys(TABLES, 0)
    for table, key, value in _entries(state):
        sums[table] += _hash(table, key, value)
    return Digest(tuple(sums[table] % _MODULUS for table in TABLES))


def digest_of_encoding(encoded: bytes) -> Digest:
    """The digest of the state that this is the canonical encoding of, without reading it. Raises ValueError."""
    sums = dict.fromkeys(TABLES, 0)
    for line in encoded.split(b"\n"):
        table = line[2 : line.find(b'"', 2)].decode(errors="replace")
        if table not in sums:
            raise ValueError("not the encoding of a state: no such table")
        sums[table] += int.from_bytes(sha256(line).digest(), "big")
    return Digest(tuple(sums[table] % _MODULUS for table in TABLES))


def advance(digest: Digest, done: Step) -> Digest:
    """The digest after a step: costs as much as the step changed."""
    if not done.changes:
        return digest
    sums = dict(zip(TABLES, digest.sums, strict=True))
    # Of an entry that changed more than once, only the first value and the last one count.
    net: dict[tuple[str, Any], tuple[Any, Any]] = {}
    for table, key, old, new in done.changes:
        if key == ALL and isinstance(old, Map):
            sums[table] = 0
            net = {entry: values for entry, values in net.items() if entry[0] != table}
            continue
        first = net.get((table, key))
        net[table, key] = (old if first is None else first[0], new)
    for (table, key), (old, new) in net.items():
        if old is not None or table == "hub":
            sums[table] -= _hash(table, key, old)
        if new is not None or table == "hub":
            sums[table] += _hash(table, key, new)
    return Digest(tuple(sums[table] % _MODULUS for table in TABLES))


# Reading a state back


@cache
def _row(kind: type) -> Any:
    """The tuple type that an attrs value is written as; of ``Pending`` without a look into what is held and said."""
    hints = {**get_type_hints(kind), **({"held": Any, "ext": Any} if kind is Pending else {})}
    return tuple[tuple(hints[name] for name in _names(kind))]  # type: ignore[misc]


_Held = tuple[list[Any], Major, int, int, int, int, int, int, int, int]
_HELD_AT, _EXT_AT = _names(Pending).index("held"), _names(Pending).index("ext")
_OwedKey = tuple[int, tuple[str, str, int, str, int]]
_KEYS: dict[str, Any] = {
    "links": int,
    "plain": int,
    "learnt": int,
    "directory": int,
    "perms": int,
    "pending": int,
    "neighbours": int,
    "owed": _OwedKey,
}
_VALUES: dict[str, type] = {
    "links": Session,
    "plain": Plain,
    "learnt": Learnt,
    "registry": Registration,
    "whitelist": Entry,
    "directory": Route,
    "perms": Grant,
    "neighbours": Neighbour,
    "owed": Owed,
}
_SCALARS = {name: hint for name, hint in get_type_hints(State).items() if name in SCALARS}


def _message(plain: list[Any]) -> Revoke | PermsInvalidate:
    action, *values = plain
    if action == Revoke.action.value:
        return Revoke(*convert(values, _row(Revoke)))
    return PermsInvalidate(*convert(values, _row(PermsInvalidate)))


def _pending(plain: Any) -> Pending:
    values = list(convert(plain, _row(Pending)))
    held = convert(values[_HELD_AT], _Held | None)
    values[_HELD_AT] = None if held is None else Frame(_message(held[0]), *held[1:])
    if values[_EXT_AT] is not None:
        values[_EXT_AT] = Ext(*convert(values[_EXT_AT], _row(Ext)))
    return Pending(*values)


def _key(table: str, plain: Any) -> Any:
    key = convert(plain, _KEYS.get(table, str))
    return (key[0], Revoke(*key[1][1:])) if table == "owed" else key


def _read(table: str, plain: Any) -> Any:
    if table == "pending":
        return _pending(plain)
    if table in ("beaten", "homes"):
        return convert(plain, str if table == "beaten" else int)
    if table == "links" and plain is False:
        return None
    kind = _VALUES[table]
    return kind(*convert(plain, _row(kind)))


def decode_state(policy: Policy, encoded: bytes) -> State:
    """The state of an encoding, its indexes rebuilt. Raises ValueError if it is not one."""
    scalars: dict[str, Any] = {}
    tables: dict[str, dict[Any, Any]] = {table: {} for table in TABLES[1:]}
    try:
        for line in encoded.split(b"\n"):
            table, key, plain = _decode(line)
            if table == "hub":
                scalars[key] = convert(plain, _SCALARS[key])
            else:
                tables[table][_key(table, key)] = _read(table, plain)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError) as problem:
        raise ValueError(f"not an encoded state: {problem}") from problem
    if set(scalars) != set(SCALARS):
        raise ValueError("not an encoded state: the hub's own fields are not complete")
    content: dict[str, Any] = {table: Map(entries) for table, entries in tables.items()}
    state = State(**scalars, **content)
    return evolve(state, index=derive_index(policy, state))
