"""Rewrites the generated files, or says which of them are stale.

``python -m tools.generate`` writes; ``python -m tools.generate --check`` writes nothing and exits 1 if a file differs
from what would be written.
"""

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

from tools.catalogue import ROOT

GENERATORS = (
    *("tools.seed_coverage", "tools.schemas", "tools.trace_schemas", "tools.vectors", "tools.evidence"),
    *("tools.promises", "tools.mistakes"),
)
"""Modules with a ``render() -> dict[str, str]``: path below the repository -> content."""

Render = Callable[[], dict[str, str]]


def render_all() -> dict[str, str]:
    """What every generated file should hold. Two generators must not claim one file."""
    files: dict[str, str] = {}
    for name in GENERATORS:
        render = cast(Render, importlib.import_module(name).render)
        for path, content in render().items():
            if path in files:
                raise ValueError(f"{name} renders {path}, which another generator renders too")
            files[path] = content
    return files


def stale_files(files: dict[str, str], root: Path = ROOT) -> list[str]:
    """The paths whose content on disk is missing or different."""
    return [path for path, content in sorted(files.items()) if _read(root / path) != content.encode()]


def write_files(files: dict[str, str], root: Path = ROOT) -> list[str]:
    """Write what differs; returns the paths written."""
    written = stale_files(files, root)
    for path in written:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(files[path].encode())
    return written


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description="Rewrite the generated files.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    options = parser.parse_args(arguments)
    files = render_all()
    if not options.check:
        for path in write_files(files):
            print(f"wrote {path}")
        return 0
    stale = stale_files(files)
    for path in stale:
        print(f"stale: {path} (run `make generate`)", file=sys.stderr)
    print(f"{len(files)} generated files, {len(stale)} of them stale")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
