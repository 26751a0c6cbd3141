"""Arrows point one way, and what is pure does no I/O: read from the source, not from good intentions."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.catalogue import ROOT

PACKAGE = ROOT / "reference" / "hubauth"

_BELOW = {"specification", "seen", "promises", "wire", "core"}
MAY_IMPORT = {
    "compiled": {"compiled"},
    "private": {"private"},
    "bounded": {"bounded"},
    "report": {"report"},
    "specification": {"specification"},
    "core": {"core"},
    "promises": {"promises", "core"},
    "seen": {"seen", "promises", "core"},
    "wire": {"wire", "core"},
    "forms": {"forms", "report", "wire", "core"},
    "judge": {"judge", "forms", "seen", "promises", "report", "specification", "wire", "core"},
    "trace": {"trace", "judge", "forms", "report", "private", "bounded", *_BELOW},
    "spark": {"spark", "trace", "judge", "forms", "report", "private", *_BELOW},
    "oracle": {"oracle", "trace", "judge", "forms", "report", "private", "bounded", *_BELOW},
    "shell": {"shell", "trace", "forms", "report", "private", "bounded", "seen", "promises", "wire", "core"},
    "lab": {"lab", "oracle", "forms", "seen", "promises", "wire", "core"},
    "pytest": {"pytest", "oracle", "shell", "trace", "judge", "forms", "report", "specification", "wire", "core"},
    "cli": {
        "cli",
        "compiled",
        "shell",
        "oracle",
        "spark",
        "trace",
        "judge",
        "forms",
        "report",
        "private",
        "bounded",
        *_BELOW,
    },
}
"""Each room of the house, and the rooms it may know of. No other room knows the laboratory."""

AROUND = {
    "model_tests": {"model_tests"},
    "tools": {"tools", "model_tests"},
    "tests": {"tests", "tools", "model_tests"},
}
"""What surrounds the package. Tools run the model tests, and both are tested; nothing points back."""
EXCEPTED = {"tools": {"tests.oracle.conform.hubs"}}
"""Planted mistakes are shown to the conformance run as its own tests do."""

PURE = ("core", "promises", "seen", "wire", "lab", "forms", "judge")
WORLDLY = {
    "asyncio",
    "builtins",
    "ctypes",
    "datetime",
    "http",
    "importlib",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
WORLDLY_CALLS = {"print", "open", "input", "exec", "eval", "__import__", "breakpoint", "id", "hash"}


def rooms() -> list[str]:
    """Every package and top-level module of the project."""
    inside = [path for path in PACKAGE.iterdir() if path.name not in ("__init__.py", "__pycache__", "py.typed")]
    return sorted(path.stem for path in inside if path.suffix == ".py" or any(path.rglob("*.py")))


def sources(room: str) -> list[Path]:
    single = PACKAGE / f"{room}.py"
    return [single] if single.exists() else sorted((PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, by its full name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it points"
            module = node.module or ""
            yield from (f"{module}.{alias.name}" for alias in node.names)


def called(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_every_room_has_its_place_in_the_house() -> None:
    found = rooms()
    assert {"core", "lab", "wire"} <= set(found)
    assert set(found) <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", rooms())
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = sources(room)
    assert files
    for path in files:
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "hubauth":
                assert parts[0] not in ("tests", "tools", "model_tests"), f"{path} imports {name}"
                continue
            is_root = name in ("hubauth", "hubauth.__version__")
            assert is_root or parts[1] in MAY_IMPORT[room], f"{path} imports {name}"


def test_promises_are_judged_by_messages_alone_and_fit_on_a_few_pages() -> None:
    files = sources("promises")
    names = {name for path in files for name in imported(path) if name.startswith("hubauth.core")}
    assert names and all(name.startswith("hubauth.core.messages.") for name in names)
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 380


@pytest.mark.parametrize("room", PURE)
def test_what_is_pure_imports_nothing_of_the_world(room: str) -> None:
    for path in sources(room):
        worldly = {name for name in imported(path) if name.split(".")[0] in WORLDLY}
        assert not worldly, f"{path} imports {sorted(worldly)}"


@pytest.mark.parametrize("room", PURE)
def test_what_is_pure_calls_nothing_of_the_world(room: str) -> None:
    for path in sources(room):
        calls = set(called(path)) & WORLDLY_CALLS
        if path.name == "ordered.py":
            calls -= {"hash"}  # of integers only: the same in every process
        if path.name == "values.py":
            calls -= {"exec"}  # of constructors that it writes itself, once, when a class is made
        assert not calls, f"{path} calls {sorted(calls)}"


@pytest.mark.parametrize("room", ["private", "report"])
def test_what_everybody_uses_needs_nothing_but_python(room: str) -> None:
    for path in sources(room):
        others = {name.split(".")[0] for name in imported(path)} - {"hubauth"}
        assert others <= sys.stdlib_module_names, f"{path} imports {sorted(others)}"


def test_the_plain_hub_knows_the_documents_and_nothing_of_ours() -> None:
    others = {name.split(".")[0] for name in imported(PACKAGE / "lab" / "plain.py")}
    assert others and others <= sys.stdlib_module_names


@pytest.mark.parametrize("folder", sorted(AROUND))
def test_what_surrounds_the_package_shares_the_laboratory_and_nothing_else(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    found = {name for path in files for name in imported(path) if name.split(".")[0] in AROUND}
    foreign = {name for name in found if name.split(".")[0] not in AROUND[folder]}
    assert {name.rpartition(".")[0] for name in foreign} == EXCEPTED.get(folder, set())


@pytest.mark.parametrize("room", rooms())
def test_there_is_one_way_to_write_for_people(room: str) -> None:
    """Through ``hubauth.cli.terminal`` to a terminal, and through ``hubauth.report.escape`` into any markup."""
    for path in sources(room):
        assert "print" not in called(path), f"{path} prints"
        markup = {name for name in imported(path) if name.startswith(("html.", "xml.sax"))}
        assert not markup or path == PACKAGE / "report" / "escape.py", f"{path} imports {sorted(markup)}"


def test_the_arrows_form_no_circle() -> None:
    settled: set[str] = set()
    while len(settled) < len(MAY_IMPORT):
        free = {room for room, others in MAY_IMPORT.items() if others - {room} <= settled} - settled
        assert free
        settled |= free


def test_the_root_of_the_package_imports_nothing_but_what_finds_the_rest() -> None:
    program = "import sys, hubauth; print(sorted(name for name in sys.modules if name.startswith('hubauth')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['hubauth', 'hubauth.compiled']"
