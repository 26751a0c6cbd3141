"""Twenty-four hubs of other people, with habits that are declared and mistakes that are not: just these are found."""

from pathlib import Path

import pytest

from hubauth.forms.events import Order
from hubauth.judge.verdicts import Outcome
from tests.judge.strange_findings import taken
from tests.judge.strange_recipes import RECIPES
from tests.judge.strange_traces import Recipe
from tests.trace.harness import verdict_of

SHORT = {
    "silent": "in observed order a missing answer is told as a wrong one of the next question",
    "twice": "in observed order a second answer is told under the rules of the next question, or under none",
    "session_kept": "in observed order a link that stays is told at the row where that is seen",
}
"""Mistake -> what the judge lacks."""


def by_order(order: Order) -> list[object]:
    def marks(recipe: Recipe) -> list[pytest.MarkDecorator]:
        lacks = [SHORT[fault] for fault in recipe.faults if fault in SHORT and (recipe.name, fault) not in TOLD]
        return [pytest.mark.xfail(reason="; ".join(lacks), strict=True)] if lacks and order is Order.OBSERVED else []

    return [pytest.param(recipe, order, id=f"{recipe.name}-{order.value}", marks=marks(recipe)) for recipe in RECIPES]


TOLD = {("strange-17", "session_kept"), ("strange-18", "silent"), ("strange-22", "silent")}
"""Nothing else comes soon on the links of these."""


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_what_is_declared_is_no_news(recipe: Recipe, order: Order, tmp_path: Path) -> None:
    verdict = verdict_of(taken(recipe, order, tmp_path, faulty=False).rows)
    assert (verdict.outcome, verdict.findings, verdict.stopped) == (Outcome.CONFORMS, (), "")


@pytest.mark.parametrize(("recipe", "order"), [*by_order(Order.HANDLED), *by_order(Order.OBSERVED)])
def test_what_is_behind_is_found_once(recipe: Recipe, order: Order, tmp_path: Path) -> None:
    one = taken(recipe, order, tmp_path, faulty=True)
    verdict = verdict_of(one.rows)
    assert verdict.stopped == ""
    assert {finding.outcome for finding in verdict.findings} == {Outcome.VIOLATES}
    assert one.told([(each.rule, each.what, each.sequence) for each in verdict.findings]) == one.expected()
