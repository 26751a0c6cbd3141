"""The evidence is complete: no rule is without a place in code and model, or without a word why."""

from collections.abc import Callable

import pytest

from hubauth.specification import load_rules
from tools.evidence import Places, case_places, code_places, model_places, unmodelled, unmodelled_groups

RULES = {rule.id for rule in load_rules().rule}


@pytest.mark.parametrize("places", [code_places, model_places, unmodelled, case_places])
def test_places_are_of_rules_that_exist(places: Callable[[], Places]) -> None:
    assert places()
    assert places().keys() <= RULES


def test_every_rule_is_decided_somewhere() -> None:
    assert RULES - code_places().keys() == set()


def test_every_rule_is_in_a_model_or_it_is_said_why_not() -> None:
    assert RULES - model_places().keys() - unmodelled().keys() == set()


def test_no_rule_is_both_in_a_model_and_said_to_be_in_none() -> None:
    assert unmodelled().keys() & model_places().keys() == set()
    assert [rule for rule, groups in unmodelled().items() if len(groups) > 1] == []


def test_every_group_of_unmodelled_rules_says_why() -> None:
    groups = unmodelled_groups()
    assert groups
    assert all(group["name"] and group["why"].endswith(".") and group["rules"] for group in groups)
