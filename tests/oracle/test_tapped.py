"""Each of the twelve mistakes can be seen from outside, and the judge tells it from what a tap has recorded."""

from pathlib import Path

import pytest

from hubauth.forms.events import Kind
from hubauth.judge.verdicts import Outcome
from hubauth.trace.judge import judge
from hubauth.trace.lint import lint
from hubauth.trace.storage import events_files, read_events
from tests.oracle.tapped import STORIES, record
from tests.oracle.twelve import TWELVE

TOLD = {
    "a revoke keeps the session": "REV-6",
    "a late offline erases a newer route": "OFF-7",
    "a node id is used again after a revoke": "REG-2",
    "one answer in fifty is late": "FRAME-12",
    "credentials are compared by prefix": "AUTH-2",
    "permissions are served after an invalidation": "PERM-12",
    "a revoke that is sent again is acted on twice": "EXT-10",
    "an announcement older than the order to let go is believed": "BIND-9",
    "a search survives a revoke": "REV-11",
    "ids are allocated though the authority is elsewhere": "REG-5",
    "total is counted before filtering": "PERM-9",
    "the hop limit is not lowered": "FRAME-8",
}
"""The rule under which each must be told."""
ATTEMPTS = 3
"""Where a machine stalls between two rows, another order explains them, too, and another rule may be told."""
NOISY = list(TWELVE)[:2] + list(TWELVE)[3:9]
"""Recorded without their mistake once more, with more going on beside it: twenty right hubs in all."""


def test_there_is_a_story_for_each() -> None:
    assert list(STORIES) == list(TWELVE) == list(TOLD) and len(TWELVE) == 12 and len(TWELVE) + len(NOISY) == 20


@pytest.mark.parametrize("name", TWELVE)
def test_a_mistake_shows_and_is_recorded_and_told(name: str, tmp_path: Path) -> None:
    assert record(name, tmp_path / "right", planted=False) is False
    for attempt in range(ATTEMPTS):
        assert record(name, tmp_path / f"wrong{attempt}") is True
        wrong = judge([tmp_path / f"wrong{attempt}"])
        assert wrong.outcome is Outcome.VIOLATES and wrong.verdicts[0].stopped == ""
        if (told := [finding.rule for finding in wrong.verdicts[0].findings]) == [TOLD[name]]:
            break
    for trace in (f"wrong{attempt}", "right"):
        rows = [event for file in events_files(tmp_path / trace) for event in read_events(file)]
        assert sum(event.kind is Kind.FRAME_IN for event in rows) >= 2 and rows[-1].kind is Kind.END
        assert [finding for finding in lint(tmp_path / trace) if finding.is_error] == []
    right = judge([tmp_path / "right"])
    assert (right.outcome, right.verdicts[0].findings, right.breaches) == (Outcome.CONFORMS, (), ())
    assert told == [TOLD[name]]
    assert {breach.broken.promise for breach in wrong.breaches} == TWELVE[name].promises


@pytest.mark.parametrize("name", NOISY)
def test_a_right_hub_conforms_whatever_else_goes_on(name: str, tmp_path: Path) -> None:
    assert record(name, tmp_path / "right", planted=False, noise=120) is False
    said = judge([tmp_path / "right"])
    assert (said.outcome, said.verdicts[0].findings, said.breaches) == (Outcome.CONFORMS, (), ())
