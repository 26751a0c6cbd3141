"""Promises.tla and the variants: a promise that nothing breaks or reaches must be noticed."""

import re

import pytest
from attrs import evolve

from tools import promised
from tools.models import Model, read_catalogue
from tools.promises import promises as judged
from tools.tlc import gaps, read_outcome, select

BUG = next(model for model in read_catalogue().models if model.name == "BugNothingOwed")
ALL = frozenset(promised.kinds_of_steps())


def test_the_promises_are_those_of_the_monitor() -> None:
    assert set(promised.promises()) - set(promised.STRUCTURE) == set(judged())


def test_every_promise_is_broken_by_a_variant() -> None:
    broken = {model.breaks for model in read_catalogue().models}
    assert set(promised.promises()) - broken == {"Replacement"}


@pytest.mark.parametrize("name", promised.promises())
def test_a_definition_is_found_whole(name: str) -> None:
    text = promised.definition(name)
    assert len(re.findall(r"^\w+ ==", text, re.MULTILINE)) == 1
    assert not text.endswith("\n")


def test_a_definition_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="does not define Nothing"):
        promised.definition("Nothing")


def _gaps(model: Model) -> list[str]:
    return gaps(evolve(read_catalogue(), models=(model,)))


def test_a_variant_is_asked_for_its_promise_in_a_run_of_its_own() -> None:
    catalogue = evolve(read_catalogue(), models=(evolve(BUG, breaks="RevokeArrives"),))
    _, asking = select(catalogue, "bugs", "")
    assert asking.violates == "KeepsRevokeArrives"
    assert asking.configuration.text.endswith("SPECIFICATION FairSpec\nPROPERTIES\n    KeepsRevokeArrives\n")
    assert "Recording = FALSE" in asking.configuration.text
    stepwise = evolve(asking, violates="KeepsNoLockOut").configuration.text
    assert stepwise.endswith("SPECIFICATION Spec\nVIEW View\nPROPERTIES\n    KeepsNoLockOut\n")
    assert "Recording = TRUE" in stepwise
    of_states = evolve(asking, violates="KeepsAdmittedAnywhere").configuration.text
    assert of_states.endswith("INVARIANTS\n    KeepsAdmittedAnywhere\n")


def test_gaps_are_seen() -> None:
    assert any("breaks a promise or says why it breaks none" in gap for gap in _gaps(evolve(BUG, breaks="")))
    assert any("breaks a promise or says why it breaks none" in gap for gap in _gaps(evolve(BUG, unpromised="x")))
    assert "Luck is no promise" in _gaps(evolve(BUG, breaks="Luck"))
    unrefined = evolve(BUG, kind="ci", violates="", breaks="", claims=("NoLockOut",))
    assert "BugNothingOwed does not check Refines" in _gaps(unrefined)


def test_what_is_reached() -> None:
    reached = read_outcome(0, ['<<"reached", "NoLockOut", "EndsCredential">>']).reached
    assert reached == {("NoLockOut", "EndsCredential")}
    assert "1: MCX" in promised.reached_table({"MCX": reached})
    assert "NONE" in promised.reached_table({"MCX": reached})
    assert promised.unreached({"MCX": ALL}) == []
    assert promised.unreached({"MCX": ALL - reached}) == ["NoLockOut: no model reaches EndsCredential"]
