"""The wheel for the machine that builds it, installed in a clean place; and a machine where nothing can be compiled."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from compiling.build import CannotCompile, build, compiled_modules
from tools.catalogue import ROOT

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "HUBAUTH_PURE", "HUBAUTH_COMPILED")
    clean = {name: value for name, value in os.environ.items() if name not in dropped}
    given = list(map(str, command))
    done = subprocess.run(given, capture_output=True, text=True, cwd=cwd, env={**clean, **variables}, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def wheel(place: Path, **variables: str) -> Path:
    command = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT)
    run(*command, cwd=place, **variables)
    (made,) = place.glob("*.whl")
    return made


def installed(place: Path, made: Path) -> Path:
    """An interpreter that has the wheel, and borrows what it needs from the one that runs the tests."""
    venv.create(place / "clean", with_pip=True)
    python = place / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", made, cwd=place)
    (packages,) = (place / "clean" / "lib").glob("python*/site-packages")
    here = Path(pytest.__file__).resolve().parents[1]
    for name in ("attrs", "attr", "immutables", "msgspec"):
        (packages / name).symlink_to(here / name)
    return python


def test_the_wheel_of_this_machine_is_compiled_and_still_has_its_sources(tmp_path: Path) -> None:
    try:
        build(scratch=ROOT / "build" / "compiling")
    except CannotCompile as problem:
        pytest.skip(f"nothing can be compiled: {str(problem).splitlines()[0]}")
    made = wheel(tmp_path)
    assert not made.name.endswith("-none-any.whl")
    python = installed(tmp_path, made)
    said = run(python, "-m", "hubauth.cli", "--version", cwd=tmp_path)
    assert f"(compiled: {len(compiled_modules())} modules" in said
    assert "pure Python: HUBAUTH_PURE is set" in run(
        python, "-m", "hubauth.cli", "--version", cwd=tmp_path, HUBAUTH_PURE="1"
    )
    assert "0 mismatches" in run(python, "-m", "hubauth.cli", "vectors", "run", "--rule", "REG-9", cwd=tmp_path)


def test_without_a_compiler_the_wheel_is_pure_and_nobody_complains(tmp_path: Path) -> None:
    made = wheel(tmp_path, CC="no-such-compiler")
    assert made.name.endswith("-py3-none-any.whl")
    python = installed(tmp_path, made)
    said = run(python, "-m", "hubauth.cli", "--version", cwd=tmp_path)
    assert "(pure Python: nothing is compiled here)" in said
    assert "0 mismatches" in run(python, "-m", "hubauth.cli", "vectors", "run", "--rule", "REG-9", cwd=tmp_path)
