"""``hubauth profile check`` tells a wrong profile from a wrong hub; conform judges by none that cannot fit."""

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hubauth.cli import main
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.profile import Profile
from tests.oracle.conform.hubs import CHILD_HUBS, Described, describe, in_thread, patient, profile_toml


def run(*arguments: str) -> tuple[int, str, str]:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(arguments)
    return code, out.getvalue(), err.getvalue()


def checked(described: Described, profile: Profile, folder: Path) -> tuple[int, dict[str, str]]:
    """The exit code, and key -> what was seen of everything that does not fit."""
    path = folder / "profile.toml"
    path.write_text(profile_toml(profile))
    with in_thread(described) as address:
        code, out, err = run("profile", "check", str(address), str(path), "--json")
    assert out, err
    said = json.loads(out)
    assert said["fits"] == (code == 0) == (not said["misfits"])
    return code, {one["key"]: one["seen"] for one in said["misfits"]}


@pytest.mark.parametrize("role", ["root", "middle"])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_profile_that_tells_the_truth_fits(role: str, dialect: Dialect, tmp_path: Path) -> None:
    described = describe(role, dialect)
    assert checked(described, patient(described.profile), tmp_path) == (0, {})


WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "dialect": ({"dialect": Dialect.LOGIN}, {"dialect": "it answers auth"}),
    "flat": ({"dialect": Dialect.FLAT}, {"dialect": "it answers auth"}),
    "header": ({"header": (2,)}, {"header": "it answers version 1"}),
    "one of two headers": ({"header": (1, 2)}, {"header": "it answers version 1"}),
    "credential": (
        {"child_hub": (replace(CHILD_HUBS[0], credential="z" * 43), CHILD_HUBS[1])},
        {"child_hub child-a": "refused (not_admitted): another device_id or credential"},
    ),
    "node of a child hub": (
        {"child_hub": (replace(CHILD_HUBS[0], node_id=33), CHILD_HUBS[1])},
        {"child_hub child-a, node_id": "it is node 3"},
    ),
    "role": (
        {"child_hub": (replace(CHILD_HUBS[0], role="boss"), CHILD_HUBS[1])},
        {"child_hub child-a, role": "hub"},
    ),
    "admin": (
        {"admin": replace(CHILD_HUBS[0], role="")},
        {"admin child-a, role": "hub without it"},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_so_is_named(name: str, tmp_path: Path) -> None:
    changes, found = WRONG[name]
    if name == "admin":
        changes = {**changes, "child_hub": CHILD_HUBS[1:]}
    described = describe("root")
    short = replace(described.profile.timeouts, answer=1.0)
    assert checked(described, replace(described.profile, timeouts=short, **changes), tmp_path) == (1, found)


def test_the_node_of_the_hub(tmp_path: Path) -> None:
    described = describe("root")
    profile = replace(described.profile, hub=replace(described.profile.hub, node_id=44))
    assert checked(described, profile, tmp_path) == (1, {"hub.node_id": "it answers as node 1"})


def test_what_it_shows_its_parent(tmp_path: Path) -> None:
    described = describe("child")
    hub = replace(described.profile.hub, credential="z" * 43, device_id="somebody")
    code, found = checked(described, replace(described.profile, hub=hub), tmp_path)
    shown = {"hub.device_id": "it calls itself under-test", "hub.credential": "it shows its parent another one"}
    assert code == 1 and found == shown


def test_a_hub_that_does_not_speak_the_extension(tmp_path: Path) -> None:
    described = describe("root", extension=False)
    code, found = checked(described, described.profile, tmp_path)
    assert code == 1 and list(found) == ["features"] and "a plain hub" in found["features"]


def test_nobody_is_there(tmp_path: Path) -> None:
    described = describe("root")
    (tmp_path / "profile.toml").write_text(profile_toml(described.profile))
    code, _, err = run("profile", "check", "127.0.0.1:1", str(tmp_path / "profile.toml"))
    assert code == 3 and "cannot connect to 127.0.0.1:1" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--dialect", "login"), "speaks dialect auth with header 1, not dialect login with header 1"),
        (("--header", "2"), "speaks dialect auth with header 1, not dialect auth with header 2"),
    ],
)
def test_conform_says_first_that_it_was_told_the_wrong_language(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    described = describe("root")
    path = tmp_path / "profile.toml"
    path.write_text(profile_toml(replace(described.profile, timeouts=replace(described.profile.timeouts, answer=1.0))))
    path.chmod(0o600)
    with in_thread(described) as address:
        code, out, err = run("conform", str(address), "--profile", str(path), *options)
    assert (code, out) == (3, "") and words in err.splitlines()[0]
