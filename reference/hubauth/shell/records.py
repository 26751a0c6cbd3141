"""What a step changed, as bytes: a record of the journal, and a row of a snapshot.

A record is a list of rows. A row is the number of a table, the key, and the fields of the new value; without fields,
the key is gone. Two numbers stand for no table: a scalar of the hub itself, and its policy.
"""

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from attrs import evolve, fields, frozen

from hubauth.core.messages import Revoke
from hubauth.core.model import Entry, Neighbour, Owed, Registration, Route
from hubauth.core.policy import Policy
from hubauth.core.recovery import LASTING_SCALARS, LASTING_TABLES, Lasting
from hubauth.shell.policies import decode_policy, encode_policy

Row: TypeAlias = tuple[Any, ...]
Record: TypeAlias = list[Row]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[list[list[Any]]]).decode


@frozen
class TableForm:
    """How the values of a table are written: their columns, and a value from these."""

    columns: tuple[str, ...]
    split: Callable[[Any], tuple[Any, ...]]
    make: Callable[..., Any]
    write_key: Callable[[Any], Any] = lambda key: key
    read_key: Callable[[Any], Any] = lambda key: key


def _plain(kind: type, *without: str) -> TableForm:
    """The form of an attrs value, field by field."""
    columns = tuple(attribute.name for attribute in fields(kind) if attribute.name not in without)
    return TableForm(columns, attrgetter(*columns), kind)


def _bare(column: str) -> TableForm:
    """The form of a text or a number."""
    return TableForm((column,), lambda value: (value,), lambda value: value)


def _write_debt(key: tuple[int, Revoke]) -> tuple[Any, ...]:
    neighbour, revoke = key
    return neighbour, revoke.device_id, revoke.node_id, revoke.credential


def _read_debt(key: list[Any]) -> tuple[int, Revoke]:
    neighbour, *said = key
    return neighbour, Revoke(*said)


def _neighbour(sent: int, handled: int, journal: str, plain: bool) -> Neighbour:
    return Neighbour(sent, handled, journal=journal, plain=plain)


def _last_seen(device_id: str, via: int) -> Route:
    return Route(device_id, via, online=False)


FORMS: dict[str, TableForm] = {
    "registry": _plain(Registration),
    "whitelist": _plain(Entry),
    "directory": TableForm(("device_id", "via"), attrgetter("device_id", "via"), _last_seen),
    "neighbours": evolve(_plain(Neighbour, "written", "batch"), make=_neighbour),
    "owed": evolve(_plain(Owed), write_key=_write_debt, read_key=_read_debt),
    "beaten": _bare("credential"),
    "homes": _bare("hub"),
}
"""By table. Whether a node is online does not last, nor what a link has carried."""

_HUB = 0
_SCALARS = {name: number for number, name in enumerate(LASTING_SCALARS)}
_NUMBERS = {table: number for number, table in enumerate(LASTING_TABLES, _HUB + 1)}
_NAMES = {number: table for table, number in _NUMBERS.items()}
_POLICY = 255


def record_of(changes: Iterable[Lasting]) -> Record:
    """What a step changed."""
    rows: Record = []
    for table, key, new in changes:
        if table == "hub":
            rows.append((_HUB, _SCALARS[key], new))
        elif new is None:
            rows.append((_NUMBERS[table], FORMS[table].write_key(key)))
        else:
            form = FORMS[table]
            rows.append((_NUMBERS[table], form.write_key(key), *form.split(new)))
    return rows


def policy_row(policy: Policy) -> Row:
    """From here on, under this policy."""
    return _POLICY, encode_policy(policy)


def encode_records(records: list[Record]) -> bytes:
    """The records of one batch."""
    return _encode(records)


def decode_records(data: bytes) -> Iterator[list[Lasting | Policy]]:
    """The records of one batch, in order. Raises ValueError where the bytes are no records."""
    try:
        for rows in _decode(data):
            yield [_read(*row) for row in rows]
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError) as problem:
        raise ValueError(f"not a record: {problem}") from problem


def _read(number: int, key: Any, *columns: Any) -> Lasting | Policy:
    if number == _POLICY:
        return decode_policy(key)
    if number == _HUB:
        (value,) = columns
        return "hub", LASTING_SCALARS[key], value
    table = _NAMES[number]
    form = FORMS[table]
    return table, form.read_key(key), form.make(*columns) if columns else None
