"""What models.toml says of a model, and what TLC is told."""

import re
from pathlib import Path

import pytest
from attrs import evolve

from tools.models import TLA, Model, misfits, read_catalogue, write

MODELS = {model.name: model for model in read_catalogue().models}
SMALL = MODELS["MCTwoOwed"]
DECLARED = {"MCTrees": "HubAuth", "MCPlainTrees": "HubAuth", "MCPermsTrees": "HubPerms"}


def test_a_model_as_tlc_reads_it() -> None:
    assert (
        MODELS["BugCacheKept"].configuration.text
        == """\
CONSTANTS
    Hubs = {"root", "mid", "A"}
    Root = "root"
    ParentOf <- ChainParents
    Authority = "root"
    Nodes = {10}
    AskAt = {"A"}
    CheckAt = {}
    CommandAt = {}
    DropAt = {}
    TimeoutAt = {}
    Asks = 1
    Checks = 0
    Changes = 1
    Commands = 0
    Drops = 0
    Timeouts = 0
    Leaves = 0
    Refreshing = {FALSE}
    Bug = "CacheKept"
SPECIFICATION Spec
VIEW View
INVARIANTS
    InvalidatedPermsNotServed
"""
    )


@pytest.mark.parametrize("name", ["MCTwoLevels", "MCPlainChild", "MCPerms"])
def test_every_constant_of_a_module_has_a_default(name: str) -> None:
    text = (TLA / f"{DECLARED[MODELS[name].module]}.tla").read_text()
    _, _, after = text.partition("CONSTANTS\n")
    declared = re.sub(r"\\\*.*", "", after.partition("\n\n")[0])
    assert list(MODELS[name].configuration.constants) == re.findall(r"\w+", declared)


def test_whole_behaviours_are_checked_with_fairness_and_without_a_view() -> None:
    text = MODELS["MCLiveness"].configuration.text
    assert "SPECIFICATION FairSpec\nPROPERTIES\n    PendingEventuallyAnswered" in text
    assert "Recording = FALSE" in text


def test_what_is_printed_of_promises_is_printed_where_they_are_checked() -> None:
    for model in MODELS.values():
        text = model.configuration.text
        assert ("Refines" in text) == ("ACTION_CONSTRAINT Reaching" in text), model.name


def test_constants_that_stand_for_themselves() -> None:
    text = MODELS["MCPermsNodesLong"].configuration.text
    assert "Nodes = {n1, n2}\n" in text and "    n1 = n1\n    n2 = n2\n" in text
    assert "SYMMETRY AlikeNodes\n" in text


def test_a_definition_is_replaced() -> None:
    assert "LateEnd <- ChildEnd\n" in MODELS["MCChildNoticesLate"].configuration.text


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (evolve(SMALL, constants={"Dropped": 1}), "MCTrees has no constant Dropped"),
        (evolve(SMALL, constants={"Authority": "root"}), "Authority is so anyway"),
        (evolve(SMALL, constants={"ParentOf": "OneParent"}), "ParentOf is so anyway"),
        (evolve(SMALL, also=["NoLockOut"]), "NoLockOut is claimed anyway"),
        (evolve(SMALL, unclaimed=["NobodyShutOut"]), "NobodyShutOut would not be claimed"),
        (evolve(SMALL, tree="palm"), "unknown tree palm"),
    ],
)
def test_what_is_said_in_vain(model: Model, complaint: str) -> None:
    assert complaint in " ".join(misfits(model))


def test_configurations_are_written(tmp_path: Path) -> None:
    write(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(MODELS)
