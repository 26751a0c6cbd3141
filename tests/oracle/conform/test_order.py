"""A hub reads its connections in any order: whatever depends on the order waits until the first was handled."""

import pytest

from hubauth.core.policy import Dialect
from hubauth.oracle.report import table
from tests.oracle.conform.hubs import describe, in_thread, judge, patient
from tests.oracle.conform.reordering import reordered


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "dialect"),
    [("root", Dialect.AUTH), ("child", Dialect.AUTH), ("middle", Dialect.LOGIN), ("middle", Dialect.FLAT)],
)
def test_the_reference_passes_in_the_wrong_order(role: str, dialect: Dialect) -> None:
    described = describe(role, dialect)
    with reordered(described) as hub, in_thread(hub.described) as address:
        judgement = judge(hub.before(address), patient(described.profile), sequences=5)
    assert {result.verdict for result in judgement.results} <= {"pass", "info", "skipped"}, table(judgement)
    assert judgement.trouble == "" and judgement.sequences == 5
