"""How every benchmark reports: a table for people, ``build/bench/NAME.json`` for machines."""

import json
import platform
from collections.abc import Sequence
from pathlib import Path

BENCH = Path("build/bench")


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with its columns aligned."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    print(f"\n{title}\n")
    for row in (header, ["-" * width for width in widths], *rows):
        first, *others = zip(row, widths, strict=True)
        print("  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]))


def save(name: str, result: dict[str, object]) -> Path:
    """Write the result where ``make`` promises it."""
    BENCH.mkdir(parents=True, exist_ok=True)
    path = BENCH / f"{name}.json"
    path.write_text(json.dumps({"bench": name, "python": platform.python_version(), **result}, indent=2) + "\n")
    return path
