"""Each of the twelve mistakes can be seen from outside, and the trace of it was recorded."""

from pathlib import Path

import pytest

from hubauth.forms.events import Kind
from hubauth.trace.lint import lint
from hubauth.trace.storage import events_files, read_events
from tests.oracle.tapped import STORIES, record
from tests.oracle.twelve import TWELVE


def test_there_is_a_story_for_each() -> None:
    assert list(STORIES) == list(TWELVE) and len(TWELVE) == 12


@pytest.mark.parametrize("name", TWELVE)
def test_a_mistake_shows_and_is_recorded(name: str, tmp_path: Path) -> None:
    assert record(name, tmp_path / "wrong") is True
    assert record(name, tmp_path / "right", planted=False) is False
    for trace in ("wrong", "right"):
        rows = [event for file in events_files(tmp_path / trace) for event in read_events(file)]
        assert sum(event.kind is Kind.FRAME_IN for event in rows) >= 2 and rows[-1].kind is Kind.END
        assert [finding for finding in lint(tmp_path / trace) if finding.is_error] == []
