"""What people and machines are shown: whole, safe to open, and the worst first."""

import re
from xml.etree import ElementTree

import msgspec
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from hubauth.forms.events import Event, Kind
from hubauth.forms.lines import encode_event
from hubauth.judge.verdicts import Outcome, worst
from hubauth.spark.junit import junit
from hubauth.spark.report import DRAWN, html, worst_hubs
from hubauth.spark.results import (
    Check,
    ExitCode,
    Finding,
    HubFinding,
    HubResult,
    Summary,
    TraceResult,
    encode_summary,
    exit_code,
    merge_verdicts,
    result_of,
    summary_schema,
    with_problems,
)
from hubauth.spark.rows import Problem, plain_path, problem_of
from hubauth.spark.run import draw

_LEADS = tuple(
    encode_event(event).decode().rstrip()
    for event in (
        Event("t", "hub-1", 4, Kind.LINK_UP, link=3, peer="<b>device</b>"),
        Event("t", "hub-1", 5, Kind.FRAME_IN, link=3, header=1, sub_proto=2, payload=b'{"action":"auth","data":{}}'),
    )
)
_EVIL = '<script>alert("&")</script>\x00\x1b'


def hub(name: str = "hub-1", outcome: Outcome = Outcome.VIOLATES, rule: str = "AUTH-1", trace: str = "t") -> HubResult:
    finding = HubFinding(outcome=outcome, sequence=5, rule=rule, seen=_EVIL, leads=_LEADS)
    return result_of(trace, name, 9, [] if outcome is Outcome.CONFORMS else [finding])


def summary(*hubs: HubResult) -> Summary:
    finding = Finding(
        check="UniqueNodeIds",
        outcome=Outcome.VIOLATES,
        trace="t",
        hub="hub-1",
        sequence=None,
        rule="REG-2",
        expected="one",
        seen=_EVIL,
    )
    check = Check(name="UniqueNodeIds", text="…", outcome=Outcome.VIOLATES, looked_at=3, findings=1)
    return Summary(
        path=_EVIL,
        master="local[2]",
        outcome=Outcome.VIOLATES,
        exit_code=1,
        rows=18,
        hubs=2,
        segments=2,
        seconds=1.5,
        rows_per_second=12,
        outcomes={"conforms": 1, "violates": 1, "cannot_tell": 0},
        traces=(TraceResult(trace="t", outcome=Outcome.VIOLATES, hubs=2, rows=18, rules=1),),
        not_conforming=hubs,
        findings=(finding,),
        checks=(check,),
        coverage={"AUTH-1": 7},
        not_covered=("REG-1",),
        unreadable=(f"file: {_EVIL}",),
    )


def test_the_page_stands_alone_and_nothing_in_a_trace_can_run_in_it() -> None:
    bad = hub()
    page = html(summary(bad), {("t", "hub-1"): draw(bad)})
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)
    assert "https://" not in page and "http://" not in page.replace('"http://www.w3.org/2000/svg"', "")
    assert page.count("<svg") >= 4
    for expected in ("AUTH-1", "UniqueNodeIds", "7", "REG-1", "violates", "hub-1"):
        assert expected in page


def test_junit_counts_failures_and_errors() -> None:
    hubs = (hub("a", Outcome.CONFORMS, ""), hub("b"), hub("c", Outcome.CANNOT_TELL, "TRACE-1"), hub("d", trace="u"))
    root = ElementTree.fromstring(junit(summary(*hubs), hubs))
    first, second = root.findall("testsuite")
    assert (first.get("tests"), first.get("failures"), first.get("errors")) == ("4", "2", "1")
    assert (second.get("tests"), second.get("failures"), second.get("errors")) == ("2", "1", "0")
    failure = first.findall("testcase")[1].find("failure")
    assert failure is not None and failure.get("type") == "AUTH-1" and "script" in (failure.text or "")


def test_the_summary_is_what_its_schema_says() -> None:
    schema = msgspec.json.decode(summary_schema())
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(msgspec.json.decode(encode_summary(summary(hub()))))
    assert "outcome" in schema["$defs"]["Summary"]["required"]


def test_every_rule_is_drawn_before_one_is_drawn_twice() -> None:
    hubs = [hub(f"a{n}") for n in range(9)] + [hub(f"b{n}", rule="REG-1") for n in range(2)]
    hubs += [hub("c", Outcome.CANNOT_TELL, "TRACE-1"), hub("d", Outcome.CONFORMS, "")]
    drawn = [result.hub for result in worst_hubs(tuple(hubs))]
    assert drawn == ["a0", "b0", "a1", "b1", "a2"] and len(drawn) == DRAWN


def test_exit_codes() -> None:
    assert exit_code(Outcome.CONFORMS, unreadable=False) is ExitCode.CONFORMS
    assert exit_code(Outcome.VIOLATES, unreadable=True) is ExitCode.VIOLATES
    assert exit_code(Outcome.CANNOT_TELL, unreadable=False) is ExitCode.CANNOT_TELL
    assert exit_code(Outcome.CANNOT_TELL, unreadable=True) is ExitCode.UNREADABLE
    assert worst([]) is Outcome.CANNOT_TELL


def test_the_first_that_was_decided_is_the_verdict_of_a_hub() -> None:
    def segment(outcome: Outcome, sequence: int | None, rule: str = "") -> tuple[str, int]:
        finding = {"outcome": outcome.value, "sequence": sequence, "last": sequence, "rule": rule}
        stopped = "nothing more was judged" if outcome is Outcome.CANNOT_TELL else ""
        plain = {"trace": "t", "hub": "h", "outcome": outcome.value, "stopped": stopped}
        return msgspec.json.encode({**plain, "findings": [finding] if rule else []}).decode(), 10

    fine, late = segment(Outcome.CONFORMS, None), segment(Outcome.VIOLATES, 90, "REG-1")
    lost, early = segment(Outcome.CANNOT_TELL, 50, "TRACE-3"), segment(Outcome.VIOLATES, 50, "TRACE-3")
    assert merge_verdicts([fine, fine], 20).outcome is Outcome.CONFORMS
    assert merge_verdicts([fine, late, lost], 30).rule == "TRACE-3"
    merged = merge_verdicts([lost, early], 20)
    assert (merged.outcome, merged.segments, merged.rows) == (Outcome.VIOLATES, 2, 20)
    assert merged.text.startswith("A checkpoint")
    often = merge_verdicts([late, segment(Outcome.VIOLATES, 190, "REG-1")], 20).findings
    assert [(one.rule, one.times, one.sequence, one.last) for one in often] == [("REG-1", 2, 90, 190)]


def test_what_only_a_decision_forbids_stands_apart_by_the_documents() -> None:
    decided = HubFinding(outcome=Outcome.VIOLATES, sequence=5, rule="FRAME-2")
    documented = HubFinding(outcome=Outcome.VIOLATES, sequence=7, rule="FRAME-1")
    alone = result_of("t", "h", 9, [decided], basis="documents")
    assert alone.outcome is Outcome.CONFORMS and [one.rule for one in alone.apart] == ["FRAME-2"]
    assert alone.apart[0].basis.startswith("decision: ")
    both = result_of("t", "h", 9, [decided, documented], basis="documents")
    assert (both.outcome, both.rule) == (Outcome.VIOLATES, "FRAME-1")


def test_what_cannot_be_read_spoils_a_verdict_but_hides_no_violation() -> None:
    problems = [Problem("f", "torn", "t", "a"), Problem("g", "torn", "t", "b"), Problem("h", "torn", "", "")]
    judged = with_problems([hub("a", Outcome.CONFORMS), hub("b"), hub("c", Outcome.CONFORMS)], problems)
    assert {result.hub: result.outcome for result in judged} == {
        "a": Outcome.CANNOT_TELL,
        "b": Outcome.VIOLATES,
        "c": Outcome.CONFORMS,
        "h": Outcome.CANNOT_TELL,
    }


def test_whose_a_file_is() -> None:
    assert problem_of("file:/x/tree/events/hub%2F1-0000.parquet", "") == Problem(
        "file:/x/tree/events/hub%2F1-0000.parquet", "", "tree", "hub/1"
    )
    assert problem_of("s3a://b/tree/events/part-0003.jsonl", "").hub == ""
    assert problem_of("s3a://b/tree/events/part-0003.jsonl", "").trace == "tree"
    assert problem_of("file:/x/one.jsonl", "").trace == ""
    assert plain_path("file:///x/a%20b/hub%252F1.jsonl") == "file:/x/a b/hub%2F1.jsonl"
