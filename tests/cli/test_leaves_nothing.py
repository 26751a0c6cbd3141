"""A command that only looks leaves nothing behind where it was typed."""

import subprocess
import sys
from pathlib import Path

from tests.oracle.conform.hubs import describe, in_thread, profile_toml


def test_conform_leaves_nothing_behind(tmp_path: Path) -> None:
    described = describe("root")
    profile = tmp_path / "profile.toml"
    profile.write_text(profile_toml(described.profile), encoding="utf-8")
    where = tmp_path / "here"
    where.mkdir()
    with in_thread(described) as address:
        words = ["conform", str(address), "--profile", str(profile), "--only", "REG-13", "--examples", "2"]
        command = [sys.executable, "-m", "hubauth.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=where, timeout=120)
    assert done.returncode == 0 and "random: 2 sequences" in done.stdout, done.stdout + done.stderr
    assert list(where.iterdir()) == []
