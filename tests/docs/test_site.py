"""The site builds without a warning, and a browser needs nothing but its files."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hubauth.cli.grammar import commands
from hubauth.cli.main import parser
from hubauth.specification import rules
from tools.catalogue import ROOT
from tools.docs_links import pages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=quiet, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


class Fetched(HTMLParser):
    """Collects what a browser fetches for a page by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        wanted = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}.get(tag)
        if wanted is not None and named.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(named.get(wanted) or "")


def written(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 30
    return found


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    for page in written(site):
        away = [link for link in Fetched(page.read_text(encoding="utf-8")).found if re.match(r"(https?:)?//", link)]
        assert not away, f"{page}: {away}"


def test_no_style_fetches_anything_from_elsewhere(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        assert not re.search(r"(@import|url\()\s*[\"']?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_every_diagram_is_drawn(site: Path) -> None:
    """What is left to the browser would be fetched from elsewhere."""
    blocks = {uri: (ROOT / path).read_text(encoding="utf-8").count("```mermaid") for path, uri in pages().items()}
    drawn = 0
    for page in written(site):
        text = page.read_text(encoding="utf-8")
        assert 'class="mermaid"' not in text and "sequenceDiagram" not in text
        drawn += text.count('<div class="drawing">')
    del blocks["index.md"]
    in_front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").count("```mermaid")
    assert drawn == sum(blocks.values()) + in_front > 20


def test_every_page_of_the_specification_is_there(site: Path) -> None:
    for path in sorted((ROOT / "spec").rglob("*.md")):
        where = path.relative_to(ROOT).with_suffix(".html")
        name = "index.html" if path.name == "README.md" else where.name
        assert (site / where.with_name(name)).is_file(), path


def test_every_rule_can_be_linked_to(site: Path) -> None:
    text = (site / "reference" / "rules.html").read_text(encoding="utf-8")
    assert [rule for rule in rules() if f'id="{rule}"' not in text] == []


def test_every_command_is_described(site: Path) -> None:
    text = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    missing = [command.path for command in commands(parser()) if f">{' '.join(command.path)}<" not in text]
    assert not missing


def test_a_cited_rule_is_a_link_that_shows_its_text(site: Path) -> None:
    text = (site / "spec" / "flows" / "register.html").read_text(encoding="utf-8")
    assert re.search(r'href="\.\./\.\./reference/rules\.html#REG-9" title="MUST [^"]+"', text)
    assert "[REG-9]" not in text


def test_a_source_file_that_a_page_links_to_is_shown(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="source/reference/hubauth/core/step.py.html"' in text
    assert (site / "source" / "reference" / "hubauth" / "core" / "step.py.html").is_file()
