"""The report of a conformance run in a real browser: a failing case is clicked open and read."""

from pathlib import Path

import pytest

from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.report_html import page
from hubauth.oracle.report_summary import summarize
from hubauth.shell import engine
from hubauth.wire.header import Version
from tests.e2e.browser import browser
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.hubs import describe, in_thread, judge

CASE = "#REV-2-v1"


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The report about a hub that sends revokes to devices."""
    monkeypatch.setattr(engine, "step", BROKEN["broadcasts revoke to devices"].decide())
    described = describe("root")
    with in_thread(described) as address:
        judgement = judge(address, described.profile)
        subject = Subject(*address, described.profile, Version.V1)
    path = tmp_path / "report.html"
    path.write_text(page(summarize(judgement, subject)), encoding="utf-8")
    return path


@pytest.mark.e2e
def test_a_failing_case_can_be_clicked_open(report: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "browser") as chromium:
        chromium.open(report)
        assert chromium.value("document.querySelector('.outcome').textContent") == "violates the rules"
        visible = f"document.querySelector('{CASE} svg').checkVisibility()"
        assert chromium.value(f"document.querySelector('{CASE}').open") is False
        assert chromium.value(visible) is False

        chromium.click(f"{CASE} > summary")
        assert chromium.value(f"document.querySelector('{CASE}').open") is True
        assert chromium.value(visible) is True
        shown = chromium.value(f"document.querySelector('{CASE}').innerText")
        assert "never to devices" in shown and "expected" in shown and "seen" in shown
        assert "hubauth conform" in shown and "--only REV-2" in shown
        assert chromium.value(f"document.querySelectorAll('{CASE} svg .wrong').length") >= 2

        count = "[...document.querySelectorAll('details.case')].filter((one) => !one.hidden).length"
        before = chromium.value(count)
        chromium.click("input[value=pass]")
        passed = chromium.value("document.querySelectorAll('details.case[data-verdict=pass]').length")
        assert passed > 50 and chromium.value(count) == before - passed
        assert chromium.value(f"document.querySelector('{CASE}').hidden") is False

        for width in (1280, 390):
            chromium.resize(width)
            assert chromium.value("document.scrollingElement.scrollWidth") <= width
        assert [url for url in chromium.requests if not url.startswith("file:")] == []
        assert chromium.requests
