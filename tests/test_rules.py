"""Code, tests and catalogue speak of the same rules.

Which rules a test exercises is taken from what the steps themselves return, never from a comment.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from hubauth.judge.verdicts import CHECKS
from hubauth.lab import hub as lab_hub
from hubauth.lab import story as lab_story
from hubauth.lab.wire_rules import exercised_rules
from hubauth.specification import load_rules
from tools.catalogue import ROOT
from tools.plain_tests import plain_tests

REFERENCE = ROOT / "reference" / "hubauth"
RULE_ID = re.compile(r"[A-Z]+-[0-9]+")
RECORDS = (lab_hub.EXERCISED, lab_story.EXERCISED)


def catalogue() -> set[str]:
    written = {rule.id for rule in load_rules().rule}
    assert written
    return written


# Code and catalogue


def cited_in(path: Path) -> Iterator[str]:
    """Every rule id that stands in a file as a value; documentation does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in prose or not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if RULE_ID.fullmatch(node.value):
            yield node.value


def decided_in(path: Path) -> Iterator[str]:
    """The first argument of ``note`` and all of ``cite``: these must be rules, whatever they look like."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        arguments = {"cite": node.args, "note": node.args[:1]}.get(node.func.attr, [])
        for argument in arguments:
            yield from (part.value for part in ast.walk(argument) if _is_text(part))  # type: ignore[attr-defined]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def sources(*rooms: str) -> list[Path]:
    found = [path for room in rooms for path in sorted((REFERENCE / room).rglob("*.py"))]
    assert found
    return found


def test_the_code_cites_no_rule_that_nobody_wrote_down() -> None:
    written = catalogue() | set(CHECKS)
    for path in sources("."):
        unknown = {*cited_in(path), *decided_in(path)} - written
        assert not unknown, f"{path} cites {sorted(unknown)}"


def test_every_rule_has_a_place_in_the_code() -> None:
    # What judges other hubs cites rules too, but decides none.
    cited = {rule for path in sources("core", "wire", "shell") for rule in cited_in(path)}
    assert sorted(catalogue() - cited) == []


# Tests and catalogue


def rules_of(function: Callable[[], None]) -> set[str]:
    """What the steps of one test returned; nothing if the test fails, which is reported where it stands."""
    for record in RECORDS:
        record.clear()
    try:
        function()
    except Exception:
        return set()
    return {rule for record in RECORDS for rule in record}


def test_every_rule_is_exercised_by_a_test_that_passes() -> None:
    exercised = exercised_rules()
    for folder in ("core", "network"):
        functions = list(plain_tests(folder))
        assert functions, f"no tests in {folder}"
        for _, function in functions:
            exercised |= rules_of(function)
    assert sorted(exercised - catalogue()) == []
    assert sorted(catalogue() - exercised) == []


def test_the_collection_finds_the_tests_it_should() -> None:
    names = {name for name, _ in plain_tests("core")}
    assert "test_register.test_the_authority_binds_an_unknown_device_to_a_new_node" in names
    assert not any("hypothesis" in name for name in names)
    assert len(names) > 300
