"""One mistake is told once, however many cases stumble over it."""

from typing import Any

import pytest
from attrs import evolve
from msgspec.structs import replace

from hubauth.core.messages import Action, Answer, Frame
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.causes import causes_of, signature_of
from hubauth.oracle.conform.results import Finding, Result
from hubauth.oracle.report import table
from hubauth.shell import engine
from hubauth.wire.framing import encode_frame
from tests.oracle.conform.breaking import answering, spoiling
from tests.oracle.conform.hubs import describe, in_thread, judge

REFUSED = '{"action":"register_resp","data":{"code":%d,"msg":"no"}}'


def without_400(payload: dict[str, Any]) -> dict[str, Any]:
    if payload["data"].get("code") == 400:
        payload["data"]["code"] = 4500
    return payload


def test_a_hub_without_400_has_one_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    described = describe("root")
    monkeypatch.setattr(engine, "encode_frame", spoiling(without_400, encode_frame))
    cases = [CASES[name] for name in ("FRAME-10", "FRAME-12", "FRAME-17", "MSG-5", "MSG-17", "MSG-4")]
    with in_thread(described) as address:
        judgement = judge(address, described.profile, cases)
    (cause,) = causes_of(judgement.results)
    assert cause.rule == "FRAME-17" and cause.differs == "data.code 400 -> 4500"
    assert cause.count == 5 and set(cause.cases) == {"FRAME-12", "FRAME-17", "MSG-5", "MSG-17", "MSG-4"}
    said = table(judgement)
    assert said.count("expected  ") == 1 and "the same  5 times, also under FRAME-12" in said
    assert "5 failed for 1 different reason:" in said


def test_again_names_the_case_that_was_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """The case about TargetID passes at a hub that has it wrong for permissions only; the one about those shows it."""

    def wrong(frame: Frame, answer: Answer) -> Frame:
        return evolve(frame, target=77) if answer.action is Action.GET_PERMS else frame

    monkeypatch.setattr(engine, "step", answering(wrong)())
    described = describe("root")
    with in_thread(described) as address:
        judgement = judge(address, described.profile, [CASES["FRAME-14"], CASES["PERM-1"]])
    (failed,) = [result for result in judgement.results if result.verdict == "fail"]
    assert failed.id == "FRAME-14" and failed.findings[0].case == "PERM-1"
    assert failed.command.endswith("--only PERM-1")


def result(case: str, *findings: tuple[str, str, str]) -> Result:
    told = tuple(Finding(*one, rule=case) for one in findings)
    return Result(case, case, "MUST", "", "A rule.", 1, "fail", findings=told)


def test_names_and_numbers_of_a_case_make_no_other_mistake() -> None:
    first = result("REV-6", ("connection of device 2", "closed by the hub", "still open"))
    second = result("REV-7", ("connection of device 17", "closed by the hub", "still open"))
    other = result("BIND-3", ("connection of device 2", "stays open", "closed by the hub"))
    assert [(cause.case, cause.count) for cause in causes_of([first, second, other])] == [("REV-6", 2), ("BIND-3", 1)]
    assert causes_of([replace(first, verdict="pass")]) == []
    (told,) = causes_of([first, replace(second, text="The link of a revoked device is closed.")])
    assert told.case == "REV-7" and told.cases == ("REV-7", "REV-6")


@pytest.mark.parametrize(
    ("expected", "seen", "signature"),
    [
        (REFUSED % 400, REFUSED % 4500, ("data.code", "400 -> 4500")),
        (REFUSED % 400 + "  [CMD]", REFUSED % 400, ("answer", "register_resp 400 -> register_resp 400")),
        (REFUSED % 400, '{"action":"register_resp","data":{"code":400}}', ("data.msg", "is missing")),
        ("nothing", REFUSED % 400, ("answer", "nothing -> register_resp 400")),
    ],
)
def test_signatures(expected: str, seen: str, signature: tuple[str, ...]) -> None:
    assert signature_of(Finding("answer", expected, seen, "REG-1")) == signature
