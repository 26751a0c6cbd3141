"""All checks, one after the other: ``python -m tools.everything``. Ends with what each of them counted.

What a check prints is shown as it comes. The first that fails ends the run.
"""

import os
import subprocess
import sys
import time

from attrs import frozen

PYTHON = (sys.executable, "-m")


@frozen
class Check:
    """A command; its last line says how much it has checked."""

    name: str
    command: tuple[str, ...]


CHECKS = (
    Check("lint", (*PYTHON, "ruff", "check", ".")),
    Check("format", (*PYTHON, "ruff", "format", "--check", ".")),
    Check("types", (*PYTHON, "mypy")),
    Check("generated", (*PYTHON, "tools.generate", "--check")),
    Check("tests", (*PYTHON, "pytest", "-n", "2", "-m", "not e2e")),
    Check("TLC", (*PYTHON, "tools.tlc", "ci")),
    Check("TLA+ = Python", (*PYTHON, "tools.equivalence")),
    Check("properties", (*PYTHON, "pytest", "-q", "-n", "2", "model_tests")),
    Check("mutants", (*PYTHON, "tools.mutants")),
    Check("compiled", (*PYTHON, "tools.compiled")),
)


def run(check: Check) -> tuple[int, str]:
    """Exit code and last line."""
    environment = {"HYPOTHESIS_PROFILE": "ci", **os.environ, "PYTHONUNBUFFERED": "1"}
    last = ""
    with subprocess.Popen(check.command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return process.returncode, last.strip("= ")


def main() -> int:
    rows = []
    begun = time.monotonic()
    for check in CHECKS:
        print(f"\n--- {check.name}: {' '.join(check.command[1:])}", flush=True)
        started = time.monotonic()
        code, last = run(check)
        if code != 0 or not last:
            why = last or "it did not say what it checked"
            print(f"\n{check.name} failed with exit code {code}: {why}", file=sys.stderr)
            return 1
        rows.append(f"  {check.name:<14} {time.monotonic() - started:>5.0f} s  {last}")
    print("\n" + "\n".join(rows))
    print(f"\nAll {len(CHECKS)} checks passed in {(time.monotonic() - begun) / 60:.1f} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
