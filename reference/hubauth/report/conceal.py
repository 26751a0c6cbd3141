"""Credentials out of what people get to see, whatever it is made from.

A credential is known by where it stands (``"credential": "..."``, also within text that is itself quoted), by its
form (43 characters of base64url as they are drawn at random), and by its value, once it was seen in such a place.
"""

import re
from collections.abc import Iterable

HIDDEN = "(secret)"
NAMES = ("credential", "credentials", "password", "secret", "token")
"""What a field with a secret is called, in any mixture of capitals."""
SHORTEST = 8
"""Characters from which on a credential is looked for by its value: shorter ones are found in ordinary words."""

_QUOTE = r"""(?:\\{0,8}["']|\\{1,8}u002[27])"""
_NAME = rf"{_QUOTE}(?:{'|'.join(NAMES)}){_QUOTE}\s*[:=]\s*"
# Backslashes are counted: a pattern that took any number of them would read a long row of them again and again.
_NAMED = re.compile(rf"({_NAME}({_QUOTE}))(?!\2)(.+?)(?=(?<!\\)\2|$)", re.IGNORECASE | re.DOTALL)
_NUMBERED = re.compile(rf"({_NAME})-?[0-9][0-9.eE+-]*", re.IGNORECASE)
RUN = re.compile(r"[A-Za-z0-9_-]{43,}")
_ESCAPED = re.compile(r"\\{1,8}u00([2-7][0-9A-Fa-f])")
_KEPT = ("22", "27", "5c")
"""Quotes and backslashes: without their escapes the text would be another one."""


def looks_drawn(run: str) -> bool:
    """Whether a run of base64url may be, or hold, 32 random bytes: without capitals, or small letters, it is a name."""
    return run.lower() != run and run.upper() != run


def secrets_in(text: str) -> set[str]:
    """The credentials in a text, by where they stand."""
    return {found[3] for found in _NAMED.finditer(_unescaped(text)) if len(found[3]) >= SHORTEST} - {HIDDEN}


def conceal(text: str, known: Iterable[str] = ()) -> str:
    """The text without credentials; ``known`` ones are looked for by their value."""
    text = _NUMBERED.sub(r"\g<1>0", _NAMED.sub(rf"\g<1>{HIDDEN}", _unescaped(text)))
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return RUN.sub(lambda found: HIDDEN if looks_drawn(found[0]) else found[0], text)


def _unescaped(text: str) -> str:
    """Letters and digits that are written as ``\\u0041`` as what they are: nothing hides behind that."""
    if "\\" not in text:
        return text
    return _ESCAPED.sub(lambda found: found[0] if found[1].lower() in _KEPT else chr(int(found[1], 16)), text)
