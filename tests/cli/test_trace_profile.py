"""One profile for traces, too: what it declares is no news, whatever wrote the rows."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from hubauth.forms.events import Event, Kind, Opening, Order, decode_opening, encode_opening
from hubauth.forms.lines import encode_event
from hubauth.trace.storage import read_events
from tests.cli.test_trace import say
from tests.judge.strange_findings import Taken, taken
from tests.judge.strange_recipes import RECIPES

EVERY_HABIT = next(recipe for recipe in RECIPES if recipe.name == "strange-16")


@pytest.fixture(params=list(Order), ids=lambda order: order.value)
def strange(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Taken, Taken]:
    """A hub with every habit, with mistakes and without."""
    return (
        taken(EVERY_HABIT, request.param, tmp_path, faulty=True),
        taken(EVERY_HABIT, request.param, tmp_path, faulty=False),
    )


def bare(rows: list[Event], file: Path) -> Path:
    """The rows as somebody writes them who knows nothing of the hub."""
    opening = decode_opening(rows[0].payload)
    start = replace(rows[0], payload=encode_opening(Opening(opening.order)))
    file.write_bytes(b"".join(map(encode_event, [start, *rows[1:]])))
    return file


def test_a_profile_says_what_is_known_of_a_hub(
    strange: tuple[Taken, Taken], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, right = (bare(one.rows, tmp_path / f"{name}.jsonl") for one, name in zip(strange, "wr", strict=True))
    profile = tmp_path / f"{EVERY_HABIT.name}.toml"
    assert say(capsys, "trace", "replay", right)[0] == 5
    assert say(capsys, "trace", "replay", right, "--profile", profile)[0] == 0
    code, out, _ = say(capsys, "trace", "replay", wrong, "--profile", profile, "--json")
    found = json.loads(out)["verdicts"][0]["findings"]
    assert code == 1
    assert strange[0].told([(one["rule"], one["what"], one["sequence"]) for one in found]) == strange[0].expected()
    small = tmp_path / "small.jsonl"
    code, out, _ = say(capsys, "trace", "shrink", wrong, "--profile", profile, "--out", small)
    assert code == 0 and sum(1 for _ in read_events(small)) < len(strange[0].rows) // 4
    assert say(capsys, "trace", "replay", small)[0] == 1  # it says by itself what was declared
    code, out, _ = say(capsys, "trace", "explain", wrong, "--profile", profile)
    assert code == 0 and "VIOLATES" in out


def test_what_is_known_to_fail_is_told_and_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = taken(EVERY_HABIT, Order.HANDLED, tmp_path, faulty=True)
    wrong, profile = bare(one.rows, tmp_path / "w.jsonl"), tmp_path / f"{EVERY_HABIT.name}.toml"
    rules = sorted({rule for rule, _, _ in one.expected()})
    profile.write_text(f"known_failing = {json.dumps(rules)}\n" + profile.read_text())
    code, out, _ = say(capsys, "trace", "replay", wrong, "--profile", profile)
    assert code == 0 and all(f"known: VIOLATES {rule}" in out for rule in rules) and "conforms" in out
    profile.write_text(profile.read_text().replace(json.dumps(rules), json.dumps(rules[1:])))
    code, out, _ = say(capsys, "trace", "replay", wrong, "--profile", profile, "--json")
    [verdict] = json.loads(out)["verdicts"]
    assert code == 1 and {finding["rule"] for finding in verdict["findings"]} == {rules[0]}
    assert {finding["rule"] for finding in verdict["known"]} == set(rules[1:])
    profile.write_text('known_failing = ["NO-1"]\n')
    code, _, said = say(capsys, "trace", "replay", wrong, "--profile", profile)
    assert code == 4 and "known_failing: no such rule or promise: NO-1" in said


def test_a_profile_that_cannot_be_used_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = taken(EVERY_HABIT, Order.HANDLED, tmp_path, faulty=False).rows
    right, profile = bare(rows, tmp_path / "r.jsonl"), tmp_path / "some.toml"
    profile.write_text('dialect = "login"\n')
    code, _, said = say(capsys, "trace", "replay", right, "--profile", profile)
    assert code == 4 and "hub.node_id is needed" in said
    code, _, said = say(capsys, "trace", "replay", right, "--profile", tmp_path / "none.toml")
    assert code == 4 and "cannot read" in said
    code, _, said = say(capsys, "trace", "replay", right, "--profile", profile, "--policy", profile)
    assert code == 2 and "not allowed with" in said


def test_rows_that_declare_something_keep_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = taken(EVERY_HABIT, Order.HANDLED, tmp_path, faulty=False)
    full = tmp_path / "full.jsonl"
    full.write_bytes(b"".join(map(encode_event, one.rows)))
    plain = tmp_path / "plain.toml"
    plain.write_text('dialect = "login"\n[hub]\nnode_id = 1\n')
    assert one.rows[0].kind is Kind.START
    assert say(capsys, "trace", "replay", full, "--profile", plain)[0] == 0
