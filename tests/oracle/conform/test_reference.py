"""The reference hub, a process of its own, passes everything: every dialect, both headers, root, child and middle."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.profile import FEATURES, Profile
from hubauth.oracle.conform.results import VIOLATIONS, exit_code
from hubauth.oracle.conform.run import choose
from hubauth.oracle.conform.unasked import UNASKED
from hubauth.oracle.report import table
from hubauth.shell import engine
from hubauth.specification import rules
from hubauth.wire.dialects import LOGIN_AND_PERMS
from tests.oracle.conform.hubs import ROLES, as_process, describe, in_thread, judge, patient

CHOICES: dict[str, dict[str, Any]] = {
    "assist none": {"assist": "none"},
    "assist query": {"assist": "query"},
    "register after revoke": {"reregister": "after_revoke"},
    "quiet": {"answer_offline": False, "answer_mismatch": False},
    "keeps connections": {"close_superseded": False, "close_on_revoke": False},
    "no revoke on register": {"revoke_on_reregister": False},
}


FLOWS = ("REG", "AUTH", "BIND", "OFF", "REV", "EXT")
ALL = [(role, dialect, 1) for role in ROLES for dialect in Dialect]
ALL += [(role, dialect, 2) for role in ROLES if role != "root" for dialect in Dialect]
"""Role, dialect, and the header version towards the parent, which a root has not; devices speak both."""


@pytest.mark.slow
@pytest.mark.parametrize(("role", "dialect", "upwards"), ALL)
def test_the_reference_passes(role: str, dialect: Dialect, upwards: int, tmp_path: Path) -> None:
    described = describe(role, dialect, (upwards, 3 - upwards))
    with as_process(described, tmp_path) as address:
        judgement = judge(address, patient(described.profile), sequences=10)
    verdicts = {result.verdict for result in judgement.results}
    assert verdicts <= {"pass", "info", "skipped"}, table(judgement)
    assert exit_code(judgement.results) == 0
    assert {result.header for result in judgement.results if result.verdict == "pass"} == {1, 2}
    assert judgement.sequences == 20 and judgement.steps > 100


@pytest.mark.parametrize("role", ["root", "child"])
def test_permissions_in_login_are_asked_about(role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    described = describe(role, Dialect.AUTH)
    monkeypatch.setattr(engine, "CODECS", {Dialect.AUTH: LOGIN_AND_PERMS})
    profile = replace(patient(described.profile), dialect=Dialect.LOGIN, features=FEATURES[::-1])
    about = [case for case in CASES.values() if case.rule.id.startswith(("PERM-", "AUTH-", "MSG-", "FRAME-"))]
    with in_thread(described) as address:
        judgement = judge(address, profile, about, sequences=5)
    passed = {result.rule for result in judgement.results if result.verdict == "pass"}
    assert {result.verdict for result in judgement.results} <= {"pass", "info", "skipped"}, table(judgement)
    assert sum(rule.startswith("PERM-") for rule in passed) >= 6
    assert not any("not in the dialect" in result.reason for result in judgement.results if result.rule[:4] == "PERM")
    assert not replace(profile, features=FEATURES).available & {"perms", "list_roles", "perms_invalidate"}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("role", ["root", "middle"])
def test_the_reference_passes_whichever_way_it_chose(choice: str, role: str, tmp_path: Path) -> None:
    described = describe(role, **CHOICES[choice])
    about = [case for case in CASES.values() if case.rule.id.partition("-")[0] in FLOWS]
    with as_process(described, tmp_path) as address:
        judgement = judge(address, patient(described.profile), about)
    assert {result.verdict for result in judgement.results} <= {"pass", "info", "skipped"}, table(judgement)


def without_extension(profile: Profile) -> Profile:
    return replace(profile, features=tuple(feature for feature in profile.features if feature != "extension"))


@pytest.mark.parametrize("role", ROLES)
def test_a_plain_hub_is_judged_as_one(role: str, tmp_path: Path) -> None:
    described = describe(role, extension=False)
    with as_process(described, tmp_path) as address:
        judgement = judge(address, patient(without_extension(described.profile)), sequences=5)
    assert {result.verdict for result in judgement.results} <= {"pass", "info", "skipped"}, table(judgement)
    about = [result for result in judgement.results if result.rule.startswith("EXT-")]
    assert about and all(result.verdict == "skipped" and "extension" in result.reason for result in about)
    assert judgement.sequences == 5


@pytest.mark.parametrize(("role", "rule"), [("root", "EXT-3"), ("child", "EXT-2")])
def test_a_plain_hub_that_claims_the_extension_is_found_out(role: str, rule: str) -> None:
    described = describe(role, extension=False)
    with in_thread(described) as address:
        judgement = judge(address, described.profile, choose(CASES.values(), ["FRAME-10", "LINK-2", "TRUST-1", rule]))
    assert rule in {result.rule for result in judgement.results if result.verdict in VIOLATIONS}, table(judgement)


def test_every_rule_is_asked_about_or_has_a_reason_not_to_be() -> None:
    asked = {case.rule.id for case in CASES.values()}
    assert asked | set(UNASKED) == set(rules())
    assert not asked & set(UNASKED)


def test_what_a_hub_remembers_of_an_earlier_run_makes_no_difference(tmp_path: Path) -> None:
    """The first run ends with the journals that it began with: cases in which a neighbour loses its data come later."""
    described = describe("middle")
    first = [case for case in CASES.values() if case.rule.id.partition("-")[0] in ("REV", "BIND", "PERM")]
    then = [*first, *(case for case in CASES.values() if case.rule.id.startswith("EXT-"))]
    with as_process(described, tmp_path) as address:
        for about in (first, then):
            judgement = judge(address, patient(described.profile), about, sequences=5)
            assert {result.verdict for result in judgement.results} <= {"pass", "skipped"}, table(judgement)
