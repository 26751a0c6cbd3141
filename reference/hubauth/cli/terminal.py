"""The only place where a command writes for people: whatever names it has been given, they steer no terminal."""

import sys
from typing import TextIO

from hubauth.report.escape import visible


def tell(*lines: str, to: TextIO | None = None) -> None:
    """Lines, each of which stays one. JSON still means the same."""
    stream = to or sys.stdout
    stream.write("".join(visible(line) + "\n" for line in lines))
    stream.flush()


def tell_text(text: str) -> None:
    """Text whose lines are known to be lines."""
    tell(*text.removesuffix("\n").split("\n"))


def draw_over(text: str) -> None:
    """A line on a terminal that the next one replaces; nothing anywhere else."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{visible(text)}\r")
        sys.stderr.flush()
