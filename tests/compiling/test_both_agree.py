"""The sources and what is compiled from them say the same of the same traces, to the last digest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiling.both import SHAPES
from hubauth.compiled import BUILT, PACKAGE, PURE, fits
from tools.catalogue import ROOT


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    running = fits(PACKAGE, BUILT)
    if not running.modules:
        pytest.skip(f"nothing to compare: {running.why}")


@pytest.mark.parametrize("shape", SHAPES)
def test_they_say_the_same(shape: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in (PURE, "HUBAUTH_COMPILED")}
    program = [sys.executable, "-m", "compiling.both", "--events", "1500", "--shape", shape, "--out", str(tmp_path)]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["differ"] == [] and said["rows"] > 1000
