"""The runner of the TLA+ models: it must notice every way in which a run proves less than it seems to."""

import re
import tomllib
from pathlib import Path

import pytest
from attrs import evolve

from tools import tlc
from tools.models import CATALOGUE, KINDS, TLA, Model, read_catalogue
from tools.tlc import LIVENESS, TlcOutcome, gaps, judge, read_outcome

ROOT = Path(__file__).resolve().parents[2]
MODELS = {model.name: model for model in read_catalogue().models}
RIGHT, BUG, LIMIT = (MODELS[name] for name in ("MCTwoLevels", "BugNothingOwed", "LimitUnread"))
LIVE = MODELS["BugOrderReannounces"]
EXPLORED = TlcOutcome(0, distinct=10, depth=3)


def test_the_catalogue_has_no_gaps() -> None:
    assert gaps(read_catalogue()) == []


def test_every_kind_is_there() -> None:
    catalogue = read_catalogue()
    assert {model.kind for model in catalogue.models} == set(KINDS)
    assert {model.name for model in tlc.select(catalogue, "ci", "")} >= {"MCTwoLevels", "BugNothingOwed"}
    assert {model.kind for model in tlc.select(catalogue, "bugs", "")} == {"bug", "limit"}
    assert tlc.select(catalogue, "bugs", "MCTwoLevels") == []
    assert not any(model.kind == "sim" for model in tlc.select(catalogue, "long", ""))


def test_each_switch_is_used_by_a_variant_and_each_variant_has_a_switch() -> None:
    for module, trees in (("HubAuth", ("MCTrees", "MCPlainTrees")), ("HubPerms", ("MCPermsTrees",))):
        text = (TLA / f"{module}.tla").read_text()
        switches = set(re.findall(r'Bug [=#] "(\w+)"', text))
        variants = [model for model in read_catalogue().models if model.kind == "bug" and model.module in trees]
        named = {model.configuration.constants["Bug"].strip('= "') for model in variants}
        assert named == switches


def test_rules_that_the_models_name_exist() -> None:
    known = {rule["id"] for rule in tomllib.loads((ROOT / "spec" / "rules.toml").read_text())["rule"]}
    for path in [*TLA.glob("*.tla"), CATALOGUE]:
        families = r"\b(?:FRAME|TRUST|AUTHY|REG|AUTH|BIND|OFF|REV|PERM|LINK|TIME|EXT)-\d+"
        named = set(re.findall(families, path.read_text()))
        assert named <= known, f"{path.name}: {named - known}"


def test_gaps_are_seen() -> None:
    catalogue = read_catalogue()

    def found(*models: Model) -> list[str]:
        return gaps(evolve(catalogue, models=models))

    without = [model for model in catalogue.models if model.violates != "NoLockOut"]
    assert "no variant breaks NoLockOut" in found(*without)
    assert "no model checks Unheard" in gaps(evolve(catalogue, states=("Unheard",)))
    idle = MODELS["MCPerms"]
    assert "MCPerms checks nothing" in found(evolve(idle, unclaimed=idle.checked))
    assert "BugNothingOwed: Root is so anyway" in found(evolve(BUG, constants={"Root": "root"}))
    assert "MCTwoLevels is listed twice" in found(RIGHT, RIGHT)
    assert "no variant breaks RevokedEverywhere" in found(LIMIT)
    assert any("says what it violates" in gap for gap in found(evolve(LIMIT, violates="")))
    assert "MCTwoLevels is to be compared in the unknown way guess" in found(evolve(RIGHT, equality="guess"))
    assert "Luck is not a listed invariant" in found(evolve(BUG, violates="Luck"))


@pytest.mark.parametrize(
    ("model", "outcome", "complaint"),
    [
        (RIGHT, EXPLORED, ""),
        (RIGHT, TlcOutcome(0), "no states"),
        (RIGHT, evolve(EXPLORED, queued=1), "not explored to the end"),
        (RIGHT, evolve(EXPLORED, exit_code=12, violated=("NoLockOut",)), "violates NoLockOut"),
        (RIGHT, evolve(EXPLORED, exit_code=75, errors=("Error: x",)), "TLC ended with 75"),
        (BUG, evolve(EXPLORED, exit_code=12, violated=("RevokedStaysOut",)), ""),
        (BUG, EXPLORED, "but passes"),
        (LIMIT, EXPLORED, "but passes"),
        (LIMIT, evolve(EXPLORED, exit_code=12, violated=("RevokedEverywhere",)), ""),
        (BUG, evolve(EXPLORED, exit_code=12, violated=("NoLockOut",)), "but violates NoLockOut"),
        (BUG, evolve(EXPLORED, exit_code=75, errors=("Error: x",)), "but violates Error: x"),
        (LIVE, evolve(EXPLORED, exit_code=13, violated=("NoLockOut",)), "but violates NoLockOut"),
        (LIVE, evolve(EXPLORED, exit_code=13, violated=(LIVENESS,)), ""),
    ],
)
def test_judgement(model: Model, outcome: TlcOutcome, complaint: str) -> None:
    assert complaint in judge(model, outcome)
    assert bool(complaint) == bool(judge(model, outcome))


def test_reading_what_tlc_says() -> None:
    outcome = read_outcome(
        12,
        [
            "Error: Invariant NoLockOut is violated.",
            "Error: The behavior up to this point is:",
            "1,234 states generated, 567 distinct states found, 8 states left on queue.",
            "The depth of the complete state graph search is 25.",
        ],
    )
    assert (outcome.distinct, outcome.queued, outcome.depth) == (567, 8, 25)
    assert outcome.violated == ("NoLockOut",)
    assert read_outcome(13, ["Error: Action property X is violated."]).violated == ("X",)
    assert read_outcome(13, ["Error: Temporal properties were violated."]).violated == (LIVENESS,)
    assert tlc.progress(
        "Progress(9) at x: 5 states generated, 2,064 distinct states found (1 ds/min), 8 states left on queue."
    ) == ("depth 9, 2,064 distinct states, 8 in the queue")


def test_no_two_runs_share_a_folder() -> None:
    one, other = (tlc.start_tlc("1g", 1, tlc.WORK / name) for name in ("one", "other"))
    assert [part for part in one if part not in other] == [
        f"-Djava.io.tmpdir={tlc.WORK / 'one'}",
        str(tlc.WORK / "one"),
    ]


def test_tlc_runs_and_refutes() -> None:
    result = tlc.run(BUG, 1)
    assert result.complaint == ""
    assert result.outcome.distinct > 0
    assert "BugNothingOwed" in tlc.table([result])


def test_nothing_selected_is_a_failure() -> None:
    assert tlc.main(["ci", "--only", "Nothing"]) == 1
