"""Which of the two runs: the sources, interpreted, or what was compiled from these very sources.

A build stands beside the sources, in ``_compiled``, with a manifest that says which modules it holds and of which
sources it was made. It is used whole or not at all: not when the sources are no longer those, not by another Python,
and not where ``HUBAUTH_PURE`` is set. So whoever edits a source runs what stands there.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent
BUILT = PACKAGE / "_compiled"
MANIFEST = "manifest.json"
PURE = "HUBAUTH_PURE"


class Running(NamedTuple):
    """What runs, and why."""

    modules: frozenset[str]
    """Those that are taken from the build; none where the sources run."""
    why: str

    def __str__(self) -> str:
        return f"compiled: {self.why}" if self.modules else f"pure Python: {self.why}"


def digest(package: Path, sources: Iterable[str]) -> str:
    """What these sources come to: paths below the package, and what is in them."""
    from hashlib import sha256

    whole = sha256()
    for name in sorted(sources):
        content = (package / name).read_bytes()
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()


def look(package: Path = PACKAGE, built: Path = BUILT) -> Running:
    """Whether what was built there is to be used."""
    if os.environ.get(PURE, "") not in ("", "0"):
        return Running(frozenset(), f"{PURE} is set")
    return fits(package, built)


def fits(package: Path, built: Path) -> Running:
    """Whether it can be: it is whole, for this Python, and of these sources."""
    nothing: frozenset[str] = frozenset()
    try:
        said = json.loads((built / MANIFEST).read_bytes())
        modules, sources, made_of, suffix = (said[name] for name in ("modules", "sources", "digest", "suffix"))
        if suffix not in EXTENSION_SUFFIXES:
            return Running(nothing, "what is compiled here is for another Python")
        if digest(package, sources) != made_of:
            return Running(nothing, "the sources have changed since they were compiled")
    except FileNotFoundError:
        return Running(nothing, "nothing is compiled here")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return Running(nothing, "what is compiled here is not whole")
    return Running(frozenset(modules), f"{len(modules)} modules, from the sources beside them")


class Finder:
    """Takes modules from the build. It looks when the first module of the package is asked for, and once."""

    def __init__(self) -> None:
        self._running: Running | None = None

    @property
    def running(self) -> Running:
        if self._running is None:
            self._running = look()
        return self._running

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("hubauth") or name not in self.running.modules:
            return None
        below = name.removeprefix("hubauth.").split(".")
        return PathFinder.find_spec(name, [str(BUILT.joinpath(*below[:-1]))], target)


_FINDER = Finder()


def install() -> None:
    """Before any other module of the package is imported."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def running() -> Running:
    """Which of the two runs in this process."""
    return _FINDER.running
