"""A proposed profile says what is so, as far as two devices can see it."""

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hubauth.cli import main
from hubauth.core.policy import Dialect
from hubauth.forms.events import Order
from hubauth.forms.lines import encode_event
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.learn_trace import learn_trace
from hubauth.oracle.conform.profile import Profile, load_profile
from tests.judge.strange_findings import taken
from tests.judge.strange_recipes import RECIPES
from tests.oracle.conform.hubs import Described, describe, in_thread, judge
from tests.oracle.tapped import record

ALWAYS = {"register", "authenticate", "routing"}
SEEN_IN = {
    Dialect.AUTH: ALWAYS | {"offline", "revoke", "perms", "list_roles", "perms_invalidate"},
    Dialect.LOGIN: ALWAYS | {"offline", "revoke"},
    Dialect.FLAT: ALWAYS,
}


def learnt(address: object, folder: Path) -> Profile:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main(["profile", "learn", str(address), "--timeout", "0.5"])
    assert code == 0, err.getvalue()
    path = folder / "learnt.toml"
    path.write_text(out.getvalue())
    path.chmod(0o600)
    return load_profile(path)


@pytest.mark.parametrize("headers", [(1,), (2,), (1, 2)])
@pytest.mark.parametrize("dialect", list(Dialect))
def test_how_it_speaks(dialect: Dialect, headers: tuple[int, ...], tmp_path: Path) -> None:
    described = describe("root", dialect, headers)
    with in_thread(described) as address:
        profile = learnt(address, tmp_path)
        with redirect_stdout(StringIO()) as said:
            assert main(["profile", "check", str(address), str(tmp_path / "learnt.toml")]) == 0, said.getvalue()
    assert profile.dialect is dialect and profile.header == headers and profile.hub.node_id == 1
    assert set(profile.features) == SEEN_IN[dialect]


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"close_superseded": False},
        {"answer_offline": False},
        {"reregister": "after_revoke"},
    ],
)
def test_which_way_it_chose(chosen: dict[str, Any], tmp_path: Path) -> None:
    described: Described = describe("root", **chosen)
    with in_thread(described) as address:
        profile = learnt(address, tmp_path)
        assert profile.choices == msgspec.convert(chosen, type(profile.choices))
        judgement = judge(address, profile, [CASES["FRAME-10"], CASES["BIND-3"], CASES["REG-9"], CASES["AUTH-1"]])
    assert {result.verdict for result in judgement.results} <= {"pass", "skipped"}


def test_a_hub_that_registers_nobody_is_described_as_far_as_it_shows(tmp_path: Path) -> None:
    described = describe("child")  # its parent is not there
    with in_thread(described) as address:
        profile = learnt(address, tmp_path)
    assert profile.dialect is Dialect.AUTH and profile.features == ()
    assert "a device that registers is answered unreachable" in (tmp_path / "learnt.toml").read_text()


def test_a_trace_is_read_like_a_hub(tmp_path: Path) -> None:
    assert record("total is counted before filtering", tmp_path / "trace", planted=False) is False
    profile = learnt(tmp_path / "trace", tmp_path)
    assert profile.dialect is Dialect.AUTH and profile.header == (2,) and profile.hub.node_id == 1
    assert profile.features == ("register", "authenticate", "perms", "list_roles")
    assert profile.choices.extra_fields is False


@pytest.mark.parametrize("name", ["strange-16", "strange-01", "strange-17", "strange-24"])
def test_what_a_strange_hub_does_otherwise_is_proposed(name: str, tmp_path: Path) -> None:
    recipe = next(one for one in RECIPES if one.name == name)
    one = taken(recipe, Order.OBSERVED, tmp_path, faulty=False)
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b"".join(map(encode_event, one.rows)))
    proposed = tmp_path / "proposed.toml"
    proposed.write_text(learn_trace(rows).toml())
    said, true = load_profile(proposed), one.profile
    assert (said.dialect, said.hub.node_id, said.declared.perms) == (true.dialect, 1, true.declared.perms)
    for habit in ("refusals_as_ok", "answers_without_msg_id", "serves", "extra_fields"):
        assert getattr(said.declared, habit) == getattr(true.declared, habit), habit
