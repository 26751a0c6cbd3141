"""CrossHair on the contracts: none is refuted, and each refutes the bug planted under it."""

from collections.abc import Callable

import pytest
from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
from crosshair.options import AnalysisOptionSet
from hypothesis import given, settings
from hypothesis import strategies as st

from hubauth.core.authority import Authority, choose_authority
from hubauth.wire import header
from model_tests.contracts import CONTRACTS, PLAIN_HEADER, STEPPING
from model_tests.planted import PLANTED

SECONDS = 1.5
"""Per contract; the search for a planted bug ends when it is found."""
STEPPING_SECONDS = 6.0
PLANTED_SECONDS = 120.0
BAD = (MessageType.POST_FAIL, MessageType.POST_ERR, MessageType.EXEC_ERR)
USELESS = (MessageType.PRE_UNSAT, MessageType.SYNTAX_ERR, MessageType.IMPORT_ERR)


@pytest.fixture(autouse=True)
def _plain_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, plain in PLAIN_HEADER.items():
        monkeypatch.setattr(header, name, plain)


def _verdicts(contract: Callable[..., bool], seconds: float) -> list[tuple[MessageType, str]]:
    options = AnalysisOptionSet(per_condition_timeout=seconds, report_all=True)
    return [(message.state, message.message) for message in run_checkables(analyze_function(contract, options))]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_contract_holds(contract: Callable[..., bool]) -> None:
    verdicts = _verdicts(contract, STEPPING_SECONDS if contract in STEPPING else SECONDS)
    assert verdicts, "nothing was checked"
    assert not [verdict for verdict in verdicts if verdict[0] in (*BAD, *USELESS)], verdicts


@pytest.mark.parametrize(("contract", "owner", "name", "broken"), PLANTED)
def test_contract_finds_its_planted_bug(
    contract: Callable[..., bool], owner: object, name: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    verdicts = _verdicts(contract, PLANTED_SECONDS)
    assert [verdict for verdict in verdicts if verdict[0] is MessageType.POST_FAIL], verdicts


def test_a_bug_is_planted_under_every_contract() -> None:
    assert {planted[0] for planted in PLANTED} == set(CONTRACTS)


# CrossHair as the engine of a Hypothesis test: it reads the condition that random numbers never meet.


def _wrong_for_one_node(configured: int, own: int, has_parent: bool) -> Authority:
    return Authority.SELF if configured == 0x5EED_CAFE else choose_authority(configured, own, has_parent)


def _never_itself_for_another(choose: Callable[[int, int, bool], Authority], backend: str) -> None:
    @settings(backend=backend, max_examples=60, derandomize=backend == "hypothesis", database=None, deadline=None)
    @given(st.integers(1, 2**32 - 1), st.integers(1, 2**32 - 1), st.booleans())
    def check(configured: int, own: int, has_parent: bool) -> None:
        assert (choose(configured, own, has_parent) is Authority.SELF) == (configured == own)

    check()


def test_crosshair_as_a_hypothesis_backend() -> None:
    _never_itself_for_another(choose_authority, "crosshair")


def test_crosshair_finds_what_random_examples_miss() -> None:
    _never_itself_for_another(_wrong_for_one_node, "hypothesis")
    with pytest.raises(AssertionError):
        _never_itself_for_another(_wrong_for_one_node, "crosshair")
