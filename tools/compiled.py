"""A part of the tests on what is compiled: ``python -m tools.compiled``. All of them: ``make test-compiled``.

Compiles first, if the sources have changed since. Where nothing can be compiled it says so, and that is no failure.
"""

import os
import subprocess
import sys

from compiling.build import ROOT, CannotCompile, build

PART = (
    *(
        "tests/compiling/test_natives.py",
        "tests/compiling/test_running.py",
        "tests/core",
        "tests/wire",
        "tests/network",
        "tests/judge/test_replay.py",
    ),
    *("tests/trace/test_recording.py", "tests/shell/test_restart.py", "tests/shell/test_pipelining.py"),
)


def main() -> int:
    try:
        build(scratch=ROOT / "build" / "compiling")
    except CannotCompile as problem:
        print(f"skipped, the sources run as they are: {str(problem).splitlines()[0]}")
        return 0
    environment = {name: value for name, value in os.environ.items() if name != "HUBAUTH_PURE"}
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow and not e2e", *PART]
    return subprocess.run(command, cwd=ROOT, env={**environment, "HUBAUTH_COMPILED": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
