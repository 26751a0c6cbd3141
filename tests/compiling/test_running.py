"""Which of the two runs: what is compiled, only if it was compiled from the sources that are there."""

import json
import shutil
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from compiling import build
from hubauth.compiled import MANIFEST, PURE, digest, look


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two sources, and what is said to be compiled from them."""
    monkeypatch.delenv(PURE, raising=False)
    (tmp_path / "core").mkdir()
    for name in ("core/a.py", "core/b.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    say(tmp_path)
    return tmp_path


def say(package: Path, **otherwise: object) -> None:
    sources = ["core/a.py", "core/b.py"]
    said = {"modules": ["hubauth.core.a"], "sources": sources, "digest": digest(package, sources)}
    (package / "_compiled").mkdir(exist_ok=True)
    manifest = {**said, "suffix": EXTENSION_SUFFIXES[0], **otherwise}
    (package / "_compiled" / MANIFEST).write_text(json.dumps(manifest))


def seen(package: Path) -> str:
    return str(look(package, package / "_compiled"))


def test_what_was_compiled_from_these_sources_runs(package: Path) -> None:
    assert look(package, package / "_compiled").modules == {"hubauth.core.a"}
    assert seen(package).startswith("compiled: ")


def test_whoever_edits_a_source_runs_it(package: Path) -> None:
    (package / "core/b.py").write_text("# core/b.pY\n")
    assert seen(package) == "pure Python: the sources have changed since they were compiled"
    (package / "core/b.py").write_text("# core/b.py\n")
    assert seen(package).startswith("compiled")


def test_whoever_wants_the_sources_gets_them(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PURE, "1")
    assert seen(package) == "pure Python: HUBAUTH_PURE is set"
    monkeypatch.setenv(PURE, "0")
    assert seen(package).startswith("compiled")


DAMAGE: list[tuple[str, Callable[[Path], Any]]] = [
    ("nothing is compiled here", lambda package: shutil.rmtree(package / "_compiled")),
    ("what is compiled here is for another Python", lambda package: say(package, suffix=".other.so")),
    ("what is compiled here is not whole", lambda package: say(package, sources=5)),
    ("what is compiled here is not whole", lambda package: (package / "_compiled" / MANIFEST).write_text("[]")),
    ("what is compiled here is not whole", lambda package: (package / "_compiled" / MANIFEST).write_bytes(b"\xff")),
    ("nothing is compiled here", lambda package: (package / "core/a.py").unlink()),
]


@pytest.mark.parametrize(("why", "damage"), DAMAGE)
def test_what_cannot_be_used_is_not_used(package: Path, why: str, damage: Callable[[Path], Any]) -> None:
    damage(package)
    assert seen(package) == f"pure Python: {why}"


def test_without_a_compiler_nothing_is_compiled_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(build.CannotCompile, match="no C compiler"):
        build._compiler()


def test_what_is_compiled_depends_on_all_that_it_imports() -> None:
    files = build.compiled_files()
    sources = build.sources_of(files)
    assert set(files) < set(sources) and {"core/values.py", "forms/events.py"} <= set(sources) - set(files)
    assert all((build.PACKAGE / file).exists() for file in (*sources, *build.LEFT_OUT))
