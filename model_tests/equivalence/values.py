"""TLA+ values as Python values: reading them as TLC writes them, writing them as TLA+ reads them, comparing them."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias


class Function(frozenset["tuple[Value, Value]"]):
    """A record, or a function that is not a sequence: its (argument, value) pairs."""


Value: TypeAlias = "str | int | bool | tuple[Value, ...] | frozenset[Value] | Function"
"""Sequences are tuples, sets are frozensets."""

_TOKEN = re.compile(r'\s*("[^"]*"|<<|>>|\|->|:>|@@|-?\d+|[\[\]{}(),]|\w+)')


def record(**fields: Value) -> Value:
    return Function(fields.items())


def function(pairs: Mapping[str, Value] | Mapping[int, Value]) -> Value:
    """A function from the keys to the values; one over 1 .. n is a sequence."""
    if 1 in pairs and set(pairs) == set(range(1, len(pairs) + 1)):
        return tuple(value for _, value in sorted(pairs.items()))
    return Function(pairs.items())


# Reading


def parse(text: str, without: frozenset[str] = frozenset()) -> Value:
    """One value as TLC writes it, leaving out record fields of these names at any depth."""
    tokens = _TOKEN.findall(text)
    value, end = _value(tokens, 0, without)
    if end != len(tokens):
        raise ValueError(f"more than one value: {text[:80]}")
    return value


def parse_after(mark: str, text: str) -> Value:
    """The value that TLC printed right after a mark, among other things that it said."""
    before, found, rest = text.partition(mark)
    if not found:
        raise ValueError(f"nothing was printed after {mark}: {before[-2000:]}")
    return _value(_TOKEN.findall(rest), 0, frozenset())[0]


def _value(tokens: list[str], at: int, without: frozenset[str]) -> tuple[Value, int]:
    token = tokens[at]
    if token == "<<":
        items, at = _items(tokens, at + 1, ">>", without)
        return tuple(items), at
    if token == "{":
        items, at = _items(tokens, at + 1, "}", without)
        return frozenset(items), at
    if token in ("[", "("):
        return _pairs(tokens, at, without)
    if token.startswith('"'):
        return token[1:-1], at + 1
    if token in ("TRUE", "FALSE"):
        return token == "TRUE", at + 1
    return int(token), at + 1


def _items(tokens: list[str], at: int, end: str, without: frozenset[str]) -> tuple[list[Value], int]:
    items: list[Value] = []
    while tokens[at] != end:
        value, at = _value(tokens, at, without)
        items.append(value)
        at += tokens[at] == ","
    return items, at + 1


def _pairs(tokens: list[str], at: int, without: frozenset[str]) -> tuple[Value, int]:
    """``[a |-> 1, b |-> 2]`` or ``(1 :> 2 @@ 3 :> 4)``."""
    pairs: list[tuple[Value, Value]] = []
    end = {"[": "]", "(": ")"}[tokens[at]]
    at += 1
    while tokens[at] != end:
        key: Value
        if end == "]":
            key, at = tokens[at], at + 1
        else:
            key, at = _value(tokens, at, without)
        value, at = _value(tokens, at + 1, without)
        if key not in without:
            pairs.append((key, value))
        at += tokens[at] in (",", "@@")
    return Function(pairs), at + 1


_BRACKETS = re.compile(r"[\[({]|<<|[\])},]|>>")
_OPENING = frozenset(["[", "(", "{", "<<"])


def split_record(text: str) -> Iterator[tuple[str, str]]:
    """The fields of a record and the text of each, without reading what is in them."""
    depth, start = 0, 1
    for found in _BRACKETS.finditer(text):
        token = found[0]
        if token in _OPENING:
            depth += 1
        elif token != ",":
            depth -= 1
        if depth == 0 or (depth == 1 and token == ","):
            name, _, value = text[start : found.start()].partition("|->")
            yield name.strip(), value
            start = found.end()


# Writing


def show(value: Value) -> str:
    """The value as TLA+ reads it; sets and functions in a fixed order."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"<<{', '.join(map(show, value))}>>"
    if isinstance(value, Function):
        if all(isinstance(key, str) for key, _ in value):
            return f"[{', '.join(sorted(f'{key} |-> {show(item)}' for key, item in value))}]"
        return f"({' @@ '.join(sorted(f'{show(key)} :> {show(item)}' for key, item in value))})"
    return f"{{{', '.join(sorted(map(show, value)))}}}"


# Comparing


def differences(path: str, left: "Value | None", right: "Value | None") -> Iterator[tuple[str, str, str]]:
    """Where two values differ: the path to it, and what each has there."""
    if left == right:
        return
    if isinstance(left, Function) and isinstance(right, Function):
        ours, theirs = dict(left), dict(right)
        for key in sorted({*ours, *theirs}, key=str):
            step = f".{key}" if isinstance(key, str) else f"[{key}]"
            yield from differences(path + step, ours.get(key), theirs.get(key))
    elif isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
            yield from differences(f"{path}[{number}]", one, other)
    else:
        yield path, "-" if left is None else show(left), "-" if right is None else show(right)
