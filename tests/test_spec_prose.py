"""The prose of ``spec/`` and the catalogue of rules name each other."""

import re
from pathlib import Path

import pytest

from hubauth.specification import SPEC, load_rules

CITATION = re.compile(r"\[([A-Z]+-[0-9]+(?:,\s[A-Z]+-[0-9]+)*)\]")
"""``[REG-3]`` or ``[REG-3, REG-4]``, also across a line break."""

RULE_LIKE = re.compile(r"\b([A-Z]+)-[0-9]+\b")

FLOWS = (
    "authenticate",
    "extension",
    "links",
    "offline",
    "permissions",
    "plain",
    "presence",
    "register",
    "revoke",
    "routing",
)


def written_by_hand() -> list[Path]:
    """Every page of the specification that is not generated."""
    return [page for page in sorted(SPEC.rglob("*.md")) if "enerated by" not in page.read_text()[:300]]


def citations(page: Path) -> set[str]:
    return {rule_id for group in CITATION.findall(page.read_text()) for rule_id in re.split(r",\s", group)}


@pytest.fixture(scope="module")
def rule_ids() -> set[str]:
    return {rule.id for rule in load_rules().rule}


def test_all_flows_are_there() -> None:
    assert tuple(page.stem for page in sorted((SPEC / "flows").glob("*.md"))) == FLOWS


@pytest.mark.parametrize("page", written_by_hand(), ids=lambda page: str(page.relative_to(SPEC)))
def test_cited_rules_exist(page: Path, rule_ids: set[str]) -> None:
    assert sorted(citations(page) - rule_ids) == []


@pytest.mark.parametrize("page", written_by_hand(), ids=lambda page: str(page.relative_to(SPEC)))
def test_whatever_looks_like_a_rule_is_one(page: Path, rule_ids: set[str]) -> None:
    families = {rule_id.partition("-")[0] for rule_id in rule_ids}
    named = {match[0] for match in RULE_LIKE.finditer(page.read_text()) if match[1] in families}
    assert sorted(named - rule_ids) == []


def test_every_rule_is_cited(rule_ids: set[str]) -> None:
    cited = set().union(*(citations(page) for page in written_by_hand()))
    assert sorted(rule_ids - cited) == []


@pytest.mark.parametrize("flow", FLOWS)
def test_every_flow_has_a_diagram_and_cites_rules(flow: str) -> None:
    page = SPEC / "flows" / f"{flow}.md"
    assert re.search(r"^```mermaid\nsequenceDiagram\n.+?^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert citations(page)


@pytest.mark.parametrize("page", written_by_hand(), ids=lambda page: str(page.relative_to(SPEC)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []
