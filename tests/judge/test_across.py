"""Promises judged by facts: each is broken by some, and by none that are only close to those."""

import pytest

from hubauth.judge.across import Broken, judge_all
from hubauth.judge.facts import FactKind
from hubauth.seen import promised
from tests.judge.stories import BROKEN, FINE


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_promise_is_told_with_both_rows(name: str) -> None:
    story = BROKEN[name]
    (broken,) = judge_all(story.facts)
    said = (broken.promise, broken.hub, broken.sequence, broken.other, broken.since)
    assert said == (story.promise, story.hub, story.sequence, story.other, story.since)
    assert broken.rule and broken.expected and broken.seen
    assert broken.once_settled == (name == "an entry is left")


@pytest.mark.parametrize("name", FINE)
def test_what_is_close_to_that_breaks_none(name: str) -> None:
    assert list(judge_all(FINE[name])) == []


def test_the_order_in_which_facts_are_given_makes_no_difference() -> None:
    facts = [seen for story in BROKEN.values() for seen in story.facts]

    def plain(broken: Broken) -> tuple[str, ...]:
        return tuple(str(getattr(broken, name)) for name in Broken.__struct_fields__)

    assert sorted(map(plain, judge_all(facts))) == sorted(map(plain, judge_all(facts[::-1])))


def test_every_promise_judged_is_one_of_those_that_are_written_down() -> None:
    assert {story.promise for story in BROKEN.values()} - {"IssuedOnce"} <= set(promised())
    assert {fact.kind for story in BROKEN.values() for _, fact in story.facts} >= set(FactKind) - {
        FactKind.KNOWN,
        FactKind.SETTLED,
    }
