"""Text of others, made safe to show: on a terminal, in XML, HTML and SVG.

Names come from peers, files and profiles. A terminal obeys what it is sent, a line break forges a line, XML cannot
hold every character: so each character that is not plainly visible becomes ``\\uXXXX``, which is also what JSON writes
for it. JSON that went through here means the same as before.
"""

import re
from html import escape
from unicodedata import category

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Controls, formats (with what turns the direction of text), halves of characters, private and unassigned ones."""
_SUSPECT = re.compile(r"[^ -~]")
_SUSPECT_IN_LINES = re.compile(r"[^ -~\n]")


def is_unseen(one: str) -> bool:
    """Whether a character cannot be seen for what it is."""
    return category(one) in _UNSEEN


def visible(text: str) -> str:
    """One line: whatever it holds, it stays one, and steers nothing."""
    return text if text.isascii() and text.isprintable() else _SUSPECT.sub(_written, text)


def visible_lines(text: str) -> str:
    """Likewise for text of several lines, each of which is known to be one."""
    return _SUSPECT_IN_LINES.sub(_written, text)


def markup(text: str) -> str:
    """For an element or a quoted attribute of XML, HTML or SVG."""
    return escape(visible(text), quote=True)


def markup_lines(text: str) -> str:
    """Likewise for text of several lines."""
    return escape(visible_lines(text), quote=True)


def _written(found: "re.Match[str]") -> str:
    one = found[0]
    if not is_unseen(one):
        return one
    number = ord(one)
    if number <= 0xFFFF:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
