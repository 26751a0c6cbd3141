"""Diagrams: what is understood is drawn, what is not is an error with its line."""

import re

import pytest

from tools import docs_flowchart, docs_sequence
from tools.docs_drawing import text_width, wrap
from tools.docs_sequence import DiagramError, DrawnNote, Message

REGISTER = """
sequenceDiagram
    participant D as device
    participant H as direct hub
    D->>H: register {device_id} & more
    Note over D,H: both
    alt known
        H-->>D: register_resp {1}
    else
        H->>H: drops it
    end
"""


def test_a_sequence_is_read() -> None:
    read = docs_sequence.parse(REGISTER)
    assert read.participants == {"D": "device", "H": "direct hub"}
    assert read.events[0] == Message("D", "H", "register {device_id} & more", dashed=False)
    assert read.events[1] == DrawnNote("D", "H", "both")
    assert len(read.events) == 7


def test_a_sequence_is_drawn_with_every_word_and_arrow() -> None:
    drawn = docs_sequence.draw(REGISTER)
    text = " ".join(re.findall(r">([^<]+)<", drawn))
    for word in ("device", "direct", "register {device_id} &amp;", "both", "alt: known", "else", "drops it"):
        assert word in text
    assert drawn.count('class="head"') == 2 and drawn.count('class="block"') == 1
    assert 'role="img"' in drawn and "Sequence diagram between device, direct hub" in drawn


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("classDiagram", "not a sequenceDiagram"),
        ("sequenceDiagram", "nobody takes part"),
        ("sequenceDiagram\nA->>B: x\nactivate A", "not understood: activate A"),
        ("sequenceDiagram\nalt x\nA->>B: x", "without its end"),
        ("sequenceDiagram\nA->>B: x\nend", "nothing was begun"),
        ("sequenceDiagram\nA->>B: x\nelse y", "nothing was begun"),
    ],
)
def test_what_is_not_understood_is_an_error(source: str, said: str) -> None:
    with pytest.raises(DiagramError, match=said):
        docs_sequence.draw(source)


def test_a_flowchart_is_drawn_in_rows() -> None:
    drawn = docs_flowchart.draw("flowchart TD\na[one<br>first] --> b\na -->|why| c[three]\nb --> d\nc --> d")
    tops = {word: float(y) for y, word in re.findall(r'y="(\d+)" text-anchor="middle">(\w+)<', drawn)}
    assert tops["one"] < tops["first"] < tops["b"] < tops["d"] and "three" in tops
    assert drawn.count('class="head"') == 4 and ">why<" in drawn


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("flowchart XY\na --> b", "not a flowchart"),
        ("flowchart TD\na --> b\nb --> a", "circle"),
        ("flowchart TD\na ==> b", "not understood"),
    ],
)
def test_what_is_no_flowchart_is_an_error(source: str, said: str) -> None:
    with pytest.raises(DiagramError, match=said):
        docs_flowchart.draw(source)


def test_lines_are_wrapped_by_words() -> None:
    assert wrap("one two three", 1000) == ("one two three",)
    assert wrap("one two three", 1) == ("one", "two", "three")
    assert wrap("one two three", text_width("one two")) == ("one two", "three")
