"""The page about conformance says what is true."""

import re
import tomllib
from pathlib import Path

import msgspec

from hubauth.oracle.conform.profile import FEATURES, Profile, load_profile
from hubauth.oracle.conform.results import Verdict

PAGE = (Path(__file__).parents[3] / "docs" / "conform.md").read_text(encoding="utf-8")
EXAMPLE = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]


def test_the_example_is_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "profile.toml"
    path.write_text(EXAMPLE, encoding="utf-8")
    profile = load_profile(path)
    assert {"parent", "child_hub", "admin", *FEATURES} <= profile.available


def test_the_example_shows_every_key_and_every_default() -> None:
    shown, defaults = tomllib.loads(EXAMPLE), msgspec.json.decode(msgspec.json.encode(Profile()))
    assert set(shown) == set(defaults)
    for name in ("choices", "habits", "limits", "timeouts"):
        assert shown[name] == defaults[name]
    assert set(shown["features"]) == set(defaults["features"])
    assert set(shown["roles"]) == set(defaults["roles"])


def test_every_verdict_is_explained() -> None:
    for verdict in Verdict.__args__:  # type: ignore[attr-defined]
        assert f"| `{verdict}` |" in PAGE
