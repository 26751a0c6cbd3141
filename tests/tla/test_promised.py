"""Promises.tla and the variants: a promise that nothing breaks or reaches must be noticed."""

import re

import pytest
from attrs import evolve

from tools import promised, tlc
from tools.promises import promises as judged
from tools.tlc import Catalogue, Model, gaps, read_outcome, select

BUG = Model("BugNothingOwed", "MCTrees", "bug", "", "RevokedStaysOut", breaks="RevokeArrives")
ALL = frozenset(promised.kinds_of_steps())


def test_the_promises_are_those_of_the_monitor() -> None:
    assert set(promised.promises()) - set(promised.STRUCTURE) == set(judged())


def test_every_promise_is_broken_by_a_variant() -> None:
    broken = {model.breaks for model in tlc.read_catalogue().models}
    assert set(promised.promises()) - broken == {"Replacement"}


@pytest.mark.parametrize("name", promised.promises())
def test_a_definition_is_found_whole(name: str) -> None:
    text = promised.definition(name)
    assert len(re.findall(r"^\w+ ==", text, re.MULTILINE)) == 1
    assert not text.endswith("\n")


def test_a_definition_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="does not define Nothing"):
        promised.definition("Nothing")


def test_a_variant_is_asked_for_its_promise_in_a_run_of_its_own() -> None:
    _, asking = select(Catalogue((), (BUG,)), "bugs", "")
    assert asking.violates == "KeepsRevokeArrives"
    assert tlc.checked_by(asking.config_text) == ["KeepsRevokeArrives"]
    stepwise = evolve(asking, breaks="NoLockOut")
    assert tlc.checked_by(stepwise.config_text) == ["KeepsNoLockOut"]
    assert "Recording = TRUE" in stepwise.config_text
    assert "Recording = FALSE" in asking.config_text


def test_gaps_are_seen() -> None:
    unsaid = Catalogue((), (evolve(BUG, breaks=""),))
    assert any("breaks a promise or says why it breaks none" in gap for gap in gaps(unsaid))
    both = Catalogue((), (evolve(BUG, unpromised="x"),))
    assert any("breaks a promise or says why it breaks none" in gap for gap in gaps(both))
    assert "Luck is no promise" in gaps(Catalogue((), (evolve(BUG, breaks="Luck"),)))
    unrefined = Model("BugNothingOwed", "MCTrees", "ci", "")
    assert "BugNothingOwed does not check Refines" in gaps(Catalogue((), (unrefined,)))


def test_what_is_reached() -> None:
    reached = read_outcome(0, ['<<"reached", "NoLockOut", "EndsCredential">>']).reached
    assert reached == {("NoLockOut", "EndsCredential")}
    assert "1: MCX" in promised.reached_table({"MCX": reached})
    assert "NONE" in promised.reached_table({"MCX": reached})
    assert promised.unreached({"MCX": ALL}) == []
    assert promised.unreached({"MCX": ALL - reached}) == ["NoLockOut: no model reaches EndsCredential"]
