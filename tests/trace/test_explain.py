"""What happened, as a picture: the same every time."""

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.trace.drawing import Arrow, Diagram, Mark, to_svg, to_text
from hubauth.trace.explain import diagram_of, diagram_of_rows, in_words, parts_of, summary, to_html
from hubauth.trace.generate import Blueprint
from hubauth.trace.shrink import replayed, shrink
from tests.trace.harness import Generated, frame, numbered, start, verdict_of

GOLDEN = Path(__file__).parent / "golden" / "explained.txt"


def failing() -> Verdict:
    request = b'{"action":"auth","data":{"device_id":"sensor","credential":"x"}}'
    answer = b'{"action":"auth_resp","data":{"code":1,"msg":"ok","device_id":"sensor","node_id":7}}'
    rows = [
        start(Policy(device_id="hub")),
        Event("t", "hub", 0, Kind.LINK_UP, 1, 1, peer="10.0.0.7:5000"),
        frame(Kind.FRAME_IN, 1, request, msg_id=4),
        frame(Kind.FRAME_OUT, 1, answer, major=0, msg_id=4, source=1),
        Event("t", "hub", 0, Kind.END, 1),
    ]
    return verdict_of(numbered(rows))


def test_the_picture_in_the_terminal() -> None:
    verdict = failing()
    assert verdict.outcome is Outcome.VIOLATES
    drawn = to_text(diagram_of(verdict.main.leads, verdict.main)) + in_words(verdict) + "\n"
    assert drawn == GOLDEN.read_text(encoding="utf-8")


def test_the_picture_in_a_file() -> None:
    verdict = failing()
    diagram = diagram_of(verdict.main.leads, verdict.main)
    svg = to_svg(diagram)
    root = ElementTree.fromstring(svg)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "hub" in texts and any("auth device_id=sensor" in text for text in texts)
    html = to_html(verdict, parts_of(verdict, diagram))
    assert verdict.main.text in html and "<svg" in html
    assert "src=" not in html and all(link.startswith("#") for link in re.findall(r'href="([^"]*)', html))
    assert "http" not in html.replace("http://www.w3.org/2000/svg", "")


def test_the_rows_of_two_hubs_in_one_picture() -> None:
    """Those that matter are marked, with what the hub did at once, and with the rows of the same link around them."""
    revoke = b'{"action":"revoke","data":{"device_id":"sensor"}}'
    admission = b'{"action":"auth_resp","data":{"code":1,"device_id":"sensor","node_id":7}}'
    other_link = frame(Kind.FRAME_IN, 4, b'{"action":"offline","data":{"device_id":"unrelated"}}')
    above = numbered([start(Policy()), frame(Kind.FRAME_IN, 1, revoke), frame(Kind.FRAME_OUT, 2, revoke), other_link])
    below = numbered([start(Policy()), other_link, frame(Kind.FRAME_OUT, 3, admission, major=0)])
    below = [msgspec.structs.replace(event, hub="leaf") for event in below]
    drawn = to_text(diagram_of_rows([(1, tuple(above)), (2, tuple(below))], "RevokedStaysOut"))
    lines = drawn.splitlines()
    assert lines[0].split("  ")[0] == "" and [name.strip() for name in lines[0].split("  ") if name.strip()] == [
        *("hub", "links of hub", "leaf", "links of leaf")
    ]
    marked = [line for line in lines if line.startswith("!")]
    assert len(marked) == 3 and "unrelated" not in drawn
    assert "revoke device_id=sensor" in marked[0] and "code=1" in marked[1] and "RevokedStaysOut" in marked[2]
    assert len(lines) == 5
    assert to_text(diagram_of_rows([(9, tuple(above))], "RevokedStaysOut")).strip() == ""


def test_what_peers_say_cannot_break_the_picture() -> None:
    wicked = '<script>"&\u202e'
    steps = (Arrow(0, 1, wicked, "1"), Arrow(1, 0, wicked, absent=True), Mark(1, wicked, wrong=True))
    diagram = Diagram(("a", wicked), steps)
    ElementTree.fromstring(to_svg(diagram))
    assert "<script>" not in to_svg(diagram)
    assert "<. " in to_text(diagram) and "\n! " in to_text(diagram)


def test_a_row_in_a_few_words() -> None:
    said = frame(Kind.FRAME_IN, 1, b'{"action":"auth","data":{"device_id":"d","credential":"secret"}}', msg_id=9)
    assert summary(said) == "auth device_id=d #9"
    assert summary(frame(Kind.FRAME_IN, 1, b'{"code":4001,"msg":"no"}')) == "answer code=4001 #0"
    assert summary(frame(Kind.FRAME_IN, 1, b"\xff")) == "unreadable"
    assert summary(frame(Kind.FRAME_IN, 1, b"12", sub_proto=7, source=3, target=4)) == "SubProto 7, 2 bytes, 3 to 4"


def test_many_links_share_a_column() -> None:
    rows = [Event("t", "hub", n, Kind.LINK_UP, 1, n) for n in range(6)]
    diagram = diagram_of(tuple(rows))
    assert diagram.participants == ("parent", "hub", "links of hub")


def test_a_shrunken_trace_fails_in_the_same_way() -> None:
    for fault in ("wrong_msg_id", "answers_revoke", "same_credential", "no_fence"):
        trace = Generated(Blueprint(hubs=4, devices=30, events=2500, seed=7, fault=fault))
        assert trace.plan is not None
        rows = trace.rows[trace.plan.hub]
        small = shrink(rows)
        verdict = replayed(small)
        assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, trace.plan.fault.rule)
        assert len(small) <= 20 < len(rows)
        assert [event.sequence for event in small] == list(range(len(small)))
        assert shrink(small) == small
