"""Compile the package: ``python -m compiling.build``. ``hatch_build.py`` calls the same when a wheel is built.

A copy of the sources with their values native (``compiling.natives``) goes through mypyc to C and through this
machine's C compiler to one library. It is put beside the sources with a manifest that says what it was made of.
"""

import ast
import contextlib
import importlib.util
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from compiling.natives import VALUES, NotCompilable, rewrite

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PACKAGE = ROOT / "reference" / "hubauth"
GROUP = "hubauth"
"""What the library is named after."""

ROOMS = ("core", "wire")
"""What is compiled whole, but for what is left out."""
MODULES: tuple[str, ...] = (
    "forms/reading.py",
    *(f"judge/{name}.py" for name in ("aliases", "blame", "compare", "declared", "ledger", "mending", "observed")),
    *(f"judge/{name}.py" for name in ("reasons", "replay", "search", "takeover", "taking", "witness")),
    *(f"shell/{name}.py" for name in ("connection", "engine", "entropy", "outgoing", "peers", "records", "turn")),
    *(f"trace/{name}.py" for name in ("ends", "judge")),
)
"""What else is compiled: what handles every row of a trace, or every frame at a hub."""
LEFT_OUT = {
    "core/keys.py": "it reads configuration, once, and mypyc takes no surrogates in a text",
    "wire/dialects/fields.py": "msgspec makes its classes, with options that mypyc does not pass on",
    "core/values.py": "it makes the values of the sources that are interpreted",
}
"""Why a module of these rooms stays interpreted."""
STRUCTS = frozenset({"Limits", "RawFrame", "ReadFrame", "Header", "Refused", "Decoded", "Wording"})
"""Classes of msgspec that are made and read by nobody but the code around them."""


class CannotCompile(Exception):
    """Why there is no build."""


def compiled_files(package: Path = PACKAGE) -> list[str]:
    """Paths below the package of what is compiled."""
    found = [path for room in ROOMS for path in (package / room).rglob("*.py") if path.name != "__init__.py"]
    below = {path.relative_to(package).as_posix() for path in found} | set(MODULES)
    return sorted(below - LEFT_OUT.keys())


def compiled_modules(package: Path = PACKAGE) -> set[str]:
    """Their names, and that of the library that holds them."""
    return {_module(file) for file in compiled_files(package)} | {f"{GROUP}__mypyc"}


def sources_of(files: list[str], package: Path = PACKAGE) -> list[str]:
    """These files and those that they import from: what is known of a module may have been compiled into another."""
    found = set(files)
    for file in files:
        for node in ast.walk(ast.parse((package / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hubauth."):
                below = (node.module or "").split(".")[1:]
                names = ["/".join(below), *("/".join([*below, each.name]) for each in node.names)]
                found |= {f"{name}.py" for name in names if (package / f"{name}.py").exists()}
    return sorted(found)


def build(package: Path = PACKAGE, scratch: Path | None = None, jobs: int | None = None) -> Path:
    """Compile, unless what is there is of these very sources. The directory of the build. Raises CannotCompile."""
    runtime = _runtime(package)
    built = package / str(runtime.BUILT.name)
    files = compiled_files(package)
    modules = compiled_modules(package)
    tools = runtime.digest(HERE, ["build.py", "natives.py"])
    if runtime.fits(package, built).modules == modules and _manifest(built / runtime.MANIFEST).get("tools") == tools:
        return built
    compiler = _compiler()
    made_of = runtime.digest(package, sources_of(files, package))
    with contextlib.ExitStack() as stack:
        place = scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hubauth-")))
        copy = _copy(package, files, place)
        libraries = _compile(copy, files, compiler, jobs or os.cpu_count() or 1)
        unfinished = built.with_name(f"{built.name}.{os.getpid()}")
        shutil.rmtree(unfinished, ignore_errors=True)
        for library, target in libraries:
            (unfinished / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(library, unfinished / target)
    said = {
        "digest": made_of,
        "modules": sorted(modules),
        "sources": sources_of(files, package),
        "tools": tools,
        "suffix": sysconfig.get_config_var("EXT_SUFFIX"),
    }
    (unfinished / runtime.MANIFEST).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(built, ignore_errors=True)
    unfinished.rename(built)
    return built


def _manifest(path: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


def _runtime(package: Path) -> ModuleType:
    """``hubauth.compiled`` by itself: what it needs is there also where the package's own requirements are not."""
    spec = importlib.util.spec_from_file_location("_hubauth_compiled", package / "compiled.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiler() -> list[str]:
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "")
    if not command or shutil.which(command[0]) is None:
        raise CannotCompile("there is no C compiler")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise CannotCompile("the headers of Python are missing")
    if importlib.util.find_spec("mypyc") is None:
        raise CannotCompile("mypy is not installed")
    return command


def _module(file: str) -> str:
    return "hubauth." + file.removesuffix(".py").replace("/", ".")


_STUB = """
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar
T = TypeVar("T")
UNSET: Any
def frozen(maybe_class: Any = ..., **options: Any) -> Any: ...
def describe(cls: type, said: tuple[Any, ...]) -> None: ...
def evolve(value: T, **changes: Any) -> T: ...
def fields(cls: type) -> Any: ...
def has(cls: type) -> bool: ...
def astuple(value: Any, **options: Any) -> tuple[Any, ...]: ...
class Choice(Enum):  # type: ignore[misc]
    def __hash__(self) -> int: ...
"""
"""What mypy is told of ``hubauth.core.values`` when it looks at native values, which are no attrs classes to it."""


def _copy(package: Path, files: list[str], place: Path) -> Path:
    """The sources as they are compiled, in a directory of their own."""
    copy = place / "hubauth"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("_compiled*", "__pycache__", "spec"))
    for file in files:
        source = (package / file).read_text(encoding="utf-8")
        try:
            (copy / file).write_text(
                rewrite(source, STRUCTS, constants=not file.startswith("shell/")), encoding="utf-8"
            )
        except NotCompilable as problem:
            raise CannotCompile(f"{file}: {problem}") from problem
    (copy / f"{VALUES.removeprefix('hubauth.').replace('.', '/')}.pyi").write_text(_STUB, encoding="utf-8")
    return place


def _compile(copy: Path, files: list[str], compiler: list[str], jobs: int) -> list[tuple[Path, Path]]:
    """Each library, and where in the build it belongs."""
    config = copy / "mypy.ini"
    config.write_text(
        "[mypy]\nmypy_path = .\nexplicit_package_bases = True\nnamespace_packages = True\nfollow_imports = silent\n"
        "ignore_missing_imports = True\ncache_dir = cache\nlocal_partial_types = True\nwarn_unreachable = True\n"
    )
    paths = [f"hubauth/{file}" for file in files]
    program = [sys.executable, "-c", _GENERATE, json.dumps([paths, GROUP])]
    done = subprocess.run(program, cwd=copy, capture_output=True, text=True)
    if done.returncode:
        raise CannotCompile(f"mypyc refused:\n{done.stdout}{done.stderr}")
    extensions = json.loads(done.stdout.splitlines()[-1])
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    command = [*compiler, *_flags()]
    made = []
    for name, sources, arguments, directories in extensions:
        includes = [f"-I{directory}" for directory in (*directories, sysconfig.get_path("include"))]
        for source in sources:
            object_file = f"{source}.o"
            made.append((name, object_file, [*command, *includes, *arguments, "-c", source, "-o", object_file]))
    with ThreadPoolExecutor(jobs) as pool:
        for finished in [pool.submit(_run, each, copy) for _, _, each in made]:
            finished.result()
    found = []
    for name in dict.fromkeys(name for name, _, _ in made):
        library = copy / f"{name}{suffix}"
        linker = shlex.split(sysconfig.get_config_var("LDSHARED") or f"{compiler[0]} -shared")
        objects = [object_file for each, object_file, _ in made if each == name]
        _run([*linker, *objects, "-o", str(library)], copy)
        below = name.split(".")
        inside = below[1:] if below[0] == "hubauth" else below
        found.append((library, Path(*inside[:-1], f"{inside[-1]}{suffix}")))
    return found


def _flags() -> Iterator[str]:
    """What Python itself was compiled with, but for what makes the result large and compiling slow."""
    said = f"{sysconfig.get_config_var('CFLAGS') or ''} {sysconfig.get_config_var('CCSHARED') or ''}"
    dropped = ("-g", "-O", "-W", "-flto", "-fprofile", "-fuse-linker", "-ffat-lto")
    yield from (each for each in shlex.split(said) if not each.startswith(dropped))
    yield from ("-O2", "-g0", "-w")


_GENERATE = """
import json, sys
from mypyc.build import mypycify
paths, group = json.loads(sys.argv[1])
made = mypycify(
    ["--config-file", "mypy.ini", *paths],
    opt_level="2", debug_level="0", multi_file=True, group_name=group, target_dir="c",
)
print(json.dumps([[each.name, each.sources, each.extra_compile_args, each.include_dirs] for each in made]))
"""


def _run(command: list[str], place: Path) -> None:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise CannotCompile(f"{command[0]} failed:\n{done.stderr}")


def main() -> int:
    begun, used = time.monotonic(), os.times()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            built = build(scratch=ROOT / "build" / "compiling")
    except CannotCompile as problem:
        print(f"not compiled, the sources run as they are: {problem}")
        return 0
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    print(f"{built}: {time.monotonic() - begun:.0f} s, {cpu:.0f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
