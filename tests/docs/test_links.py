"""Links are written for a code host and rewritten for the site."""

from pathlib import Path

from tools import docs_links
from tools.docs_links import everything, outside_code, pages, rewrite, targets

WHERE = {
    "docs/howto/x.md": "howto/x.md",
    "spec/README.md": "spec/README.md",
    "reference/a.py": "source/reference/a.py.md",
}


def test_a_link_is_rewritten_from_repository_to_site() -> None:
    text = "[a](../../spec/README.md#words), [`b`](../../reference/a.py) and [c](https://example.org/x.md)"
    assert rewrite("docs/howto/x.md", "howto/x.md", text, WHERE) == (
        "[a](../spec/README.md#words), [`b`](../source/reference/a.py.md) and [c](https://example.org/x.md)"
    )


def test_a_citation_becomes_a_link_and_code_stays() -> None:
    done = rewrite("spec/README.md", "spec/README.md", "so [REG-1, REG-2] but `[REG-1]`\n\n```\n[REG-1]\n```\n", {})
    assert done.startswith('so \\[[REG-1](../reference/rules.md#REG-1 "MUST ')
    assert done.count("rules.md#REG-") == 2
    assert "`[REG-1]`" in done and "\n[REG-1]\n" in done


def test_what_is_not_a_rule_stays_words() -> None:
    assert rewrite("a.md", "a.md", "[XYZ-99]", {}) == "\\[XYZ-99\\]"


def test_code_is_left_alone() -> None:
    text = "a `b` c\n```python\nb\n```\nb\n"
    assert outside_code(text, str.upper) == "A `b` C\n```python\nb\n```\nB\n"


def test_targets_are_paths_of_the_repository() -> None:
    text = "[a](../spec/README.md) [b](#here) [c](mailto:x@y) `[d](e.md)`"
    assert list(targets("docs/x.md", text)) == ["spec/README.md"]


def test_every_page_exists_and_has_a_place_of_its_own() -> None:
    found = pages()
    assert all((docs_links.ROOT / path).is_file() for path in found)
    places = [uri for path, uri in found.items() if path != "README.md"]
    assert len(places) == len(set(places)) > 30


def test_what_pages_link_to_is_shown() -> None:
    known, extra = everything()
    assert "spec/rules.toml" in extra and "spec/schemas" in extra
    assert "spec/schemas/auth.schema.json" in extra, "what the list of a folder links to is shown too"
    assert not set(known) & set(extra)
    for target in extra:
        assert docs_links.shown(target).startswith("---\n")


def test_links_work_on_a_code_host_too() -> None:
    """As paths of the repository; the site's own are checked when it is built."""
    for path in pages():
        text = (docs_links.ROOT / path).read_text(encoding="utf-8")
        for target in targets(path, text):
            assert (docs_links.ROOT / Path(target)).exists(), f"{path} links to {target}"
