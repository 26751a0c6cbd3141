"""What cannot be seen is written out; what can be seen stays."""

import json
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from hubauth.report.escape import markup, markup_lines, visible, visible_lines
from tests.report.hostile import HOSTILE, assert_harmless

TEXT = st.text(st.characters(), max_size=50) | st.text(st.sampled_from(HOSTILE + "\ud800ab"), max_size=50)


@given(TEXT)
def test_a_line_stays_one_line_and_steers_nothing(text: str) -> None:
    shown = visible(text)
    assert_harmless(shown)
    assert "\n" not in shown and visible(shown) == shown
    shown.encode()


@given(TEXT)
def test_lines_stay_lines(text: str) -> None:
    assert visible_lines(text).count("\n") == text.count("\n")
    assert_harmless(visible_lines(text))


@given(TEXT)
def test_json_means_the_same(text: str) -> None:
    assert json.loads(visible(json.dumps([text], ensure_ascii=False).replace("\x7f", "\\u007f"))) == [text]


@given(TEXT)
def test_xml_and_html_can_hold_it(text: str) -> None:
    element = ElementTree.fromstring(f'<a b="{markup(text)}">{markup(text)}</a>')
    assert element.get("b") == element.text or not text
    assert (element.text or "") == visible(text)
    lines = ElementTree.fromstring(f"<a>{markup_lines(text)}</a>")
    assert (lines.text or "") == visible_lines(text)
    heard: list[str] = []
    parser = HTMLParser()
    parser.handle_data = heard.append  # type: ignore[method-assign,assignment]
    parser.feed(f"<p>{markup(text)}</p>")
    assert "".join(heard) == visible(text)


def test_ordinary_text_is_left_alone() -> None:
    for text in ("sensor-1", "Küche, 2. Stock", "温度传感器", "a\\b", "👍 ok", ""):
        assert visible(text) == visible_lines(text) == text
