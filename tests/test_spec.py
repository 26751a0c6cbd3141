"""The catalogues of ``spec/`` hold together, and nothing generated from them is stale."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from hubauth.specification import DECISION, SPEC, Rule, Rules, load_rules
from tools.catalogue import ROOT, Item, Seeds, Span, citing, load_seeds, parse_span, spans_of
from tools.generate import main, render_all, stale_files, write_files
from tools.seed_coverage import render_coverage

LINES = {"000": 111, "001": 93, "002": 134}
"""How long the source documents are."""

RULE_ID = re.compile(r"[A-Z]+-[0-9]+")


@pytest.fixture(scope="module")
def seeds() -> Seeds:
    return load_seeds()


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


def test_every_document_is_listed_with_its_length(seeds: Seeds) -> None:
    assert {document.id: document.lines for document in seeds.document} == LINES


def test_item_ids_are_unique_and_name_the_first_line(seeds: Seeds) -> None:
    ids = [item.id for item in seeds.item]
    assert len(ids) == len(set(ids))
    assert ids == [f"{item.document}:{item.lines[0]}" for item in seeds.item]


def test_items_lie_inside_their_documents(seeds: Seeds) -> None:
    for item in seeds.item:
        first, last = item.lines
        assert 1 <= first <= last <= LINES[item.document], item.id


@pytest.mark.parametrize("document", LINES)
def test_items_are_ordered_and_disjoint_and_reach_both_ends(seeds: Seeds, document: str) -> None:
    items = seeds.items_of(document)
    for before, after in pairwise(items):
        assert before.lines[1] < after.lines[0], f"{before.id} and {after.id}"
    assert items[0].lines[0] == 1
    assert items[-1].lines[1] == LINES[document]


@pytest.mark.parametrize("document", LINES)
def test_between_two_items_there_is_at_most_one_blank_line(seeds: Seeds, document: str) -> None:
    for before, after in pairwise(seeds.items_of(document)):
        assert after.lines[0] - before.lines[1] <= 2, f"between {before.id} and {after.id}"


def test_rule_ids_are_unique_and_well_formed(rules: Rules) -> None:
    assert rules.rule
    ids = [rule.id for rule in rules.rule]
    assert len(ids) == len(set(ids))
    assert [rule_id for rule_id in ids if not RULE_ID.fullmatch(rule_id)] == []


def test_the_numbers_of_dropped_rules_are_never_used_again(rules: Rules) -> None:
    assert {rule.id for rule in rules.rule} & set(rules.dropped) == set()
    assert len(rules.dropped) == len(set(rules.dropped))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert [rule_id for rule_id in rules.dropped if not re.search(rf"\b{rule_id}\b", changes)] == []


def test_rules_name_each_dialect_and_source_once(rules: Rules) -> None:
    for rule in rules.rule:
        assert len(rule.dialects) == len(set(rule.dialects)), rule.id
        assert len(rule.source) == len(set(rule.source)), rule.id


def test_sources_of_rules_point_into_items(seeds: Seeds, rules: Rules) -> None:
    astray = [
        f"{rule.id}: {source}"
        for rule in rules.rule
        for source in rule.source
        if source != DECISION and not _lies_in_items(parse_span(source), seeds)
    ]
    assert astray == []


def _lies_in_items(span: Span, seeds: Seeds) -> bool:
    """Whether both ends of the span are lines that carry content."""
    items = seeds.items_of(span.document)
    ends = (Span(span.document, line, line) for line in (span.first, span.last))
    return all(any(end.overlaps(item.span) for item in items) for end in ends)


def test_every_statement_and_example_has_a_rule(seeds: Seeds, rules: Rules) -> None:
    assert [item.id for item in seeds.item if item.needs_rule and not citing(rules, item)] == []


def test_rules_speak_for_the_dialect_they_cite(seeds: Seeds, rules: Rules) -> None:
    dialect_of = {document.id: document.dialect for document in seeds.document}
    astray = [
        f"{rule.id} cites {span.document} but does not hold in {dialect_of[span.document]}"
        for rule in rules.rule
        for span in spans_of(rule)
        if dialect_of[span.document] not in rule.dialects
    ]
    assert astray == []


def test_generated_files_are_not_stale() -> None:
    assert stale_files(render_all()) == []
    assert main(["--check"]) == 0


def test_generated_files_say_what_generated_them() -> None:
    for path, content in render_all().items():
        assert "enerated by" in content[:300], path


def test_a_stale_or_missing_file_is_noticed_and_rewritten(tmp_path: Path) -> None:
    files = {"a.md": "one\n", "b/c.md": "two\n"}
    assert stale_files(files, tmp_path) == ["a.md", "b/c.md"]
    assert write_files(files, tmp_path) == ["a.md", "b/c.md"]
    assert stale_files(files, tmp_path) == []
    (tmp_path / "a.md").write_text("other\n")
    assert write_files(files, tmp_path) == ["a.md"]


@pytest.mark.parametrize("text", ["000", "000:", "000:0", "000:5-4", "0:1", "000:1-", "000:1 ", "decision", "000:1\n"])
def test_a_source_that_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_span(text)


def test_spans_overlap_within_one_document_only() -> None:
    assert parse_span("000:5-8").overlaps(parse_span("000:8"))
    assert not parse_span("000:5-8").overlaps(parse_span("000:9"))
    assert not parse_span("000:5").overlaps(parse_span("001:5"))


def test_coverage_shows_an_item_without_a_rule() -> None:
    document = load_seeds().document[0]
    bare = Item(id="000:6", lines=(6, 6), section="S", kind="statement", text="bare")
    held = Item(id="000:7", lines=(7, 9), section="S", kind="example", text="a|b")
    rule = Rule(id="REG-1", level="MUST", text="x", dialects=("auth",), source=("000:8-20",))
    page = render_coverage(Seeds(document=(document,), item=(bare, held)), Rules(rule=(rule,)))
    assert "| 6 | S | bare | **none** | honours it |" in page
    assert "| 7-9 | S | a\\|b | REG-1 | honours it |" in page
    assert "1 of 2 statements" in page


def test_coverage_shows_and_counts_what_a_hub_does_about_an_item() -> None:
    document = load_seeds().document[0]
    says = {"section": "S", "text": "x"}
    items = (
        Item(id="000:5", lines=(5, 5), kind="heading", **says),
        Item(id="000:6", lines=(6, 6), kind="statement", **says),
        Item(id="000:7", lines=(7, 7), kind="statement", setting="a = 1", **says),
        Item(id="000:8", lines=(8, 8), kind="example", otherwise="Why, then?", **says),
    )
    page = render_coverage(Seeds(document=(document,), item=items), Rules(rule=()))
    assert "| all | 1 | 1 | 1 |" in page
    assert "| honours it with `a = 1` |" in page
    assert "| decided otherwise: [Why, then?](decisions.md#why-then) |" in page


def test_what_is_decided_otherwise_is_a_heading_of_the_decisions(seeds: Seeds) -> None:
    headings = re.findall(r"^### (.+)$", (SPEC / "decisions.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {item.otherwise for item in seeds.item if item.otherwise} <= set(headings)
    assert [item.id for item in seeds.item if item.setting and item.otherwise] == []


def test_every_rule_has_a_basis(rules: Rules) -> None:
    """Lines of the documents, or a heading of the decisions that lists the rule; what is decided says so."""
    text = (SPEC / "decisions.md").read_text(encoding="utf-8")
    listed = {}
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        heading, _, told = section.partition("\n")
        groups = re.findall(r"^Rules: \[([^]]+)\]", told, re.MULTILINE)
        listed[heading] = {rule_id for group in groups for rule_id in re.split(r",\s+", group)}
    assert len(listed) > 40
    for rule in rules.rule:
        assert rule.basis, rule.id
        assert (DECISION in rule.source) == bool(rule.decision), rule.id
        assert not rule.decision or rule.id in listed[rule.decision], rule.id
