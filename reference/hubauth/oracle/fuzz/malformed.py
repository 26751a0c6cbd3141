"""Payloads with something wrong in them."""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

_VALUES: tuple[Any, ...] = (None, True, -1, 0, 2**32, 1.5, "", "x" * 200, "a\x00b", [], {}, ["x"])


def spoil(draw: Random, payload: bytes) -> bytes:
    """A request that is no longer quite what it was; it may still be one."""
    return draw.choice(_WAYS)(draw, payload)


def _fields(said: dict[str, Any]) -> dict[str, Any]:
    inner = said.get("data")
    return inner if isinstance(inner, dict) else said


def _edited(edit: Callable[[Random, dict[str, Any]], None]) -> Callable[[Random, bytes], bytes]:
    def way(draw: Random, payload: bytes) -> bytes:
        said = msgspec.json.decode(payload)
        edit(draw, said)
        return msgspec.json.encode(said)

    return way


def _without_field(draw: Random, said: dict[str, Any]) -> None:
    fields = _fields(said)
    fields.pop(draw.choice(sorted(fields)), None) if fields else said.pop("data", None)


def _other_value(draw: Random, said: dict[str, Any]) -> None:
    fields = _fields(said)
    if fields:
        fields[draw.choice(sorted(fields))] = draw.choice(_VALUES)


def _more_fields(draw: Random, said: dict[str, Any]) -> None:
    _fields(said)[draw.choice(("more", "Device_id", "ext", "seq"))] = draw.choice(_VALUES)


def _other_action(draw: Random, said: dict[str, Any]) -> None:
    said["action"] = draw.choice(("", "regster", "register_resp", "assist_auth_resp", None, 7))


def _cut(draw: Random, payload: bytes) -> bytes:
    return payload[: draw.randrange(len(payload))]


def _one_byte(draw: Random, payload: bytes) -> bytes:
    at = draw.randrange(len(payload))
    return payload[:at] + bytes([draw.randrange(256)]) + payload[at + 1 :]


def _other_json(draw: Random, _: bytes) -> bytes:
    return draw.choice((b"", b"[]", b"null", b"{}", b"7", b'"register"', b"[" * 100 + b"]" * 100, b"\xff\xfe", b"{}{}"))


def _spaces(_: Random, payload: bytes) -> bytes:
    return b" \n" + payload.replace(b":", b" : ") + b"\t"


_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(_edited(one) for one in (_without_field, _other_value, _more_fields, _other_action)),
    *(_cut, _one_byte, _other_json, _spaces),
)
