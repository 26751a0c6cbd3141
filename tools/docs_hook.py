"""What mkdocs asks while it builds the site: which files there are, how their links read, how diagrams are drawn."""

import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import docs_flowchart, docs_links, docs_pages, docs_sequence

_where: dict[str, str] = {}
"""Path in the repository -> page of the site."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {})
    fences["custom_fences"] = [{"name": "mermaid", "class": "drawing", "format": _draw}]
    return config


def _draw(source: str, *_: Any, **__: Any) -> str:
    if source.lstrip().startswith("sequenceDiagram"):
        return docs_sequence.draw(source)
    return docs_flowchart.draw(source)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Beside docs/: the specification, the model's papers, and whatever else of the repository a page links to."""
    known, shown = docs_links.everything()
    _where.clear()
    _where.update(known | shown)
    for path, uri in known.items():
        if not path.startswith("docs/") and (docs_links.ROOT / path).is_file() and path != "README.md":
            files.append(File.generated(config, uri, abs_src_path=str(docs_links.ROOT / path)))
    for path, uri in shown.items():
        page = File.generated(config, uri, content=docs_links.shown(path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(page)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    uri = page.file.src_uri
    path = next((path for path, site in _where.items() if site == uri and path != "README.md"), uri)
    if uri.startswith("source/"):
        path = f"{path}/index.md" if uri.endswith("/index.md") else path
    if uri in ("index.md", "tutorial.md"):
        page.meta["hide"] = ["navigation"]
    return docs_pages.fill(docs_links.rewrite(path, uri, markdown, _where))
