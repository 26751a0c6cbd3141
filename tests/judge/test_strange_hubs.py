"""Twenty-four hubs of other people, with habits that are declared and mistakes that are not: just these are found."""

from pathlib import Path

import pytest

from hubauth.forms.events import Order
from hubauth.judge.replay import Replay
from hubauth.judge.verdicts import Outcome
from tests.judge.strange_findings import taken
from tests.judge.strange_recipes import RECIPES
from tests.judge.strange_traces import Recipe
from tests.trace.harness import verdict_of


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_what_is_declared_is_no_news(recipe: Recipe, order: Order, tmp_path: Path) -> None:
    verdict = verdict_of(taken(recipe, order, tmp_path, faulty=False).rows)
    assert (verdict.outcome, verdict.findings, verdict.stopped) == (Outcome.CONFORMS, (), "")


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_what_is_behind_is_found_once(recipe: Recipe, order: Order, tmp_path: Path) -> None:
    one = taken(recipe, order, tmp_path, faulty=True)
    verdict = verdict_of(one.rows)
    assert verdict.stopped == ""
    assert {finding.outcome for finding in verdict.findings} == {Outcome.VIOLATES}
    for finding in verdict.findings:
        near = [row.sequence for row in finding.leads]
        assert finding.sequence in near and len(near) < 40 and near == sorted(near)
    assert one.told([(each.rule, each.what, each.sequence) for each in verdict.findings]) == one.expected()


@pytest.mark.parametrize("effort", [1, 3, 10, 30])
def test_whatever_the_effort_nothing_breaks_down(effort: int, tmp_path: Path) -> None:
    for recipe in RECIPES:
        rows = taken(recipe, Order.OBSERVED, tmp_path, faulty=True).rows
        replay = Replay(effort=effort)
        for row in rows:
            replay.feed(row)
        assert replay.finish().outcome is not Outcome.CONFORMS
