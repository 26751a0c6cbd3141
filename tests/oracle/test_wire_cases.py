"""What the vectors below the protocol say is what the reference does, however the bytes arrive."""

import pytest

from hubauth.lab.wire_cases import STREAMS, WIRE_CASES
from hubauth.oracle.vectors import plain
from hubauth.oracle.vectors_wire import StreamCase, WireCase, answered, cut


@pytest.mark.parametrize("case", WIRE_CASES, ids=lambda case: case.id)
def test_the_reference_answers_as_the_case_says(case: WireCase) -> None:
    assert plain(answered(case)) == plain(case)


@pytest.mark.parametrize("size", [1, 3, 24, 1000])
@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
def test_how_the_bytes_arrive_makes_no_difference(case: StreamCase, size: int) -> None:
    assert plain(cut(case, size)) == plain(case)


def test_no_two_cases_have_one_name() -> None:
    names = [case.id for case in WIRE_CASES]
    assert len(names) == len(set(names)) > 150
