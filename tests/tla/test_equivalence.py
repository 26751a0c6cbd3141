"""The core and the models through TLC itself: small ones are equal, and a mistake on one side is told in words."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attrs import evolve

from hubauth.core import presence
from tools import equivalence
from tools.equivalence import ComparisonRow, check_graph, check_variant, check_walks, gaps, table
from tools.models import read_catalogue

MODELS = {model.name: model for model in read_catalogue().models}
EQUAL = ComparisonRow("MCBelow", "graph", 1, 60_000, 100_000, 1.0)


def test_a_graph_of_the_tree_is_equal() -> None:
    row = check_graph(MODELS["MCLateNotice"])
    assert row.complaint == ()
    assert row.states > 600
    assert {"HubLinkDropsSilently", "ParentNoticesLate"} <= {name for name, _ in row.actions}


def test_one_model_may_be_compared_twice_at_once() -> None:
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(check_graph, [MODELS["MCLateNotice"]] * 2))
    assert [row.complaint for row in rows] == [(), ()]


def test_a_mistake_in_the_model_is_told() -> None:
    assert check_graph(MODELS["BugSilentReturn"]).complaint == (
        "After 3 steps:",
        "  HubLinkDrops(A)",
        "  HubReconnects(A, A)",
        "  FrameGoesUp(A)",
        "FrameGoesDown(A) leads elsewhere:",
        "         TLA+  Python",
        '  up[A]  <<>>  <<[dev |-> "d", node |-> 10, t |-> "hub_online"]>>',
    )


def test_a_mistake_in_the_model_of_permissions_is_told() -> None:
    told = check_graph(MODELS["BugReturnTellsNobody"]).complaint
    assert "FrameGoesDown(mid) leads elsewhere:" in told
    assert '  down[A]  <<>>  <<[nodes |-> {}, refresh |-> FALSE, t |-> "inval"]>>' in told


def test_a_mistake_in_the_core_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "dismiss", lambda *_: None)
    told = check_graph(MODELS["MCLateNotice"]).complaint
    assert any(line.startswith("  hub[root].dismissed") for line in told)


@pytest.mark.parametrize("name", ["BugLossKeepsRoutes", "BugReturnTellsNobody"])
def test_walks_notice_a_mistake_both_ways(name: str) -> None:
    replayed, walked = check_walks(MODELS[name], behaviours=60)
    assert replayed.steps > 100 and walked.steps > 100
    assert any("leads elsewhere" in line for line in replayed.complaint)
    assert any("is no step of TLA+" in line for line in walked.complaint)
    assert "The closest step that there is leads elsewhere:" in walked.complaint


def test_a_mistake_that_only_devices_see_is_noticed() -> None:
    row = check_variant(MODELS["BugRevokeToAll"])
    assert (row.verdict, row.complaint) == ("noticed", ())
    assert row.steps > 100


def test_a_variant_without_a_mistake_is_unnoticed() -> None:
    row = check_variant(evolve(MODELS["MCLateNotice"], violates="NoLockOut"))
    assert (row.verdict, row.complaint) == ("UNNOTICED", equivalence.UNNOTICED)


def test_a_variant_that_tlc_cannot_run_is_not_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "_tlc", lambda *_, **__: (150, "Parsing failed"))
    monkeypatch.setattr(equivalence, "WORK", tmp_path)
    row = check_variant(MODELS["BugRevokeToAll"])
    assert row.verdict == "UNNOTICED"
    assert "Parsing failed" in row.complaint


# What the runner makes of it


def test_every_action_and_enough_states_must_be_compared() -> None:
    assert "RequestTimesOut of MCTrees was never compared" in gaps([EQUAL])
    assert f"only 10 states were compared, not {equivalence.ENOUGH:,}" in gaps([evolve(EQUAL, states=10)])
    assert gaps([evolve(EQUAL, what="walks")]) == []


def test_comparing_nothing_is_a_failure() -> None:
    nothing = evolve(EQUAL, states=1, steps=0)
    assert nothing.complaint == ("Nothing was compared.",)
    assert "DIFFERENT" in table([nothing])
    assert "equal" in table([EQUAL])


def test_nothing_selected_is_a_failure() -> None:
    assert equivalence.main(["graphs", "--only", "Nothing"]) == 1


def test_every_kind_of_comparison_is_asked_for() -> None:
    assert {model.equality for model in MODELS.values()} == {"", "graph", "walks"}
