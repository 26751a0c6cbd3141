"""How deep a payload nests, found before JSON is read: a reader that recurses must never meet a payload of brackets.

Strangers choose the payload, so the cost counts: a few passes over the bytes, each inside the interpreter's own loops,
however the brackets and quotes lie.
"""

from itertools import accumulate
from operator import add

MAX_DEPTH = 32
"""Levels of nesting in a payload. Fixed, because the JSON reader's own limit moves with the caller's stack."""

_ALIKE = bytes.maketrans(b"{}", b"[]")
_NEITHER_BRACKET_NOR_QUOTE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_BITS = bytes.maketrans(b"[]", b"10")


def _change(eight: int) -> int:
    """By how much eight brackets, a bit each, change the level."""
    return 2 * eight.bit_count() - 8


def _peak(eight: int) -> int:
    """The highest level that eight brackets reach, from the level before them."""
    return max(accumulate((1 if eight >> at & 1 else -1 for at in range(7, -1, -1)), initial=0))


_CHANGES = bytes(_change(eight) % 256 for eight in range(256))
_PEAKS = bytes(map(_peak, range(256)))


def nests_too_deep(payload: bytes) -> bool:
    """Whether brackets outside strings nest deeper than ``MAX_DEPTH``, or cannot match; then it is no JSON either."""
    if payload.count(b"[") + payload.count(b"{") <= MAX_DEPTH:
        return False
    brackets = _outside_strings(payload)
    half, odd = divmod(len(brackets), 2)
    if odd or brackets.count(b"[") != half:
        return True
    return half > MAX_DEPTH and _highest(brackets) > MAX_DEPTH


def _outside_strings(payload: bytes) -> bytes:
    """The brackets outside strings, in order, curly ones as square ones."""
    if b"\\" in payload:
        # First pairs of backslashes, so that of every run only an odd one is left: that one escapes a quote.
        payload = payload.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = payload.translate(_ALIKE, _NEITHER_BRACKET_NOR_QUOTE)
    # Two quotes side by side change nothing about what else is inside a string and what is not.
    marks = marks.replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2]) if b'"' in marks else marks


def _highest(brackets: bytes) -> int:
    """The highest level, eight brackets at a time."""
    padded = brackets + b"[]" * (-len(brackets) % 8 // 2)
    eights = int(padded.translate(_BITS), 2).to_bytes(len(padded) // 8, "big")
    levels = accumulate(memoryview(eights.translate(_CHANGES)).cast("b"), initial=0)
    highest: int = max(map(add, levels, eights.translate(_PEAKS)))
    return highest
