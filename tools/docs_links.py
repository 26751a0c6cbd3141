"""Links that work on a code host and in the site: written as paths of the repository, rewritten when the site is built.

A page of the site is a markdown file of ``docs/``, ``spec/`` or ``tla/``, or one of the papers at the root. Whatever
else of the repository a page links to becomes a page that shows the file, or the list of a folder.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from hubauth.specification import rules

ROOT = Path(__file__).resolve().parent.parent
PAPERS = ("CHANGELOG.md", "CONTRIBUTING.md")
RULES_PAGE = "reference/rules.md"

_LINK = re.compile(r"(\]\()([^)\s]+)((?:\s+\"[^\"]*\")?\))")
"""The end of a link: its words may hold code, which is not looked at."""
_CITATION = re.compile(r"\[([A-Z]+-\d+(?:,\s+[A-Z]+-\d+)*)\](?![(\[:])")
_CODE = re.compile(r"(^ *(```+|~~~+).*?^ *\2\s*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {".py": "python", ".json": "json", ".toml": "toml", ".js": "javascript", ".mjs": "javascript", ".go": "go"}


def pages() -> dict[str, str]:
    """Every page: its path in the repository -> its path in the site."""
    found = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs")) for path in _markdown("docs")}
    for path in (*_markdown("spec"), *_markdown("tla"), *(ROOT / name for name in PAPERS)):
        found[str(path.relative_to(ROOT))] = str(path.relative_to(ROOT))
    found["README.md"] = "index.md"
    return found


def _markdown(folder: str) -> Iterator[Path]:
    return iter(sorted((ROOT / folder).rglob("*.md")))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply ``change`` to everything that is not code."""
    pieces = _CODE.split(text)
    # Each match leaves the code and its fence behind: text, code, fence, text, code, fence, ...
    return "".join(change(piece) if place % 3 == 0 else piece for place, piece in enumerate(pieces) if place % 3 != 2)


def targets(path: str, text: str) -> Iterator[str]:
    """The files and folders of the repository that a page links to."""
    found: list[str] = []

    def note(piece: str) -> str:
        found.extend(link[2] for link in _LINK.finditer(piece))
        return piece

    outside_code(text, note)
    return (where for link in found if (where := _resolve(path, link)[0]) is not None)


def _resolve(path: str, link: str) -> tuple[str | None, str]:
    """A link as a path of the repository and a fragment; None if it leads elsewhere or stays on the page."""
    target, hash_sign, fragment = link.partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return None, ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target)), hash_sign + fragment


def shown_at(target: str) -> str:
    """The site's page for a file or folder that is not a page itself."""
    if (ROOT / target).is_dir():
        return f"source/{target}/index.md"
    return f"source/{target}.md" if not target.endswith(".md") else f"source/{target}"


def shown(target: str) -> str:
    """What that page says."""
    path = ROOT / target
    head = f"---\nsearch:\n  exclude: true\nhide: [toc]\n---\n\n# `{target}`\n\n"
    if path.is_dir():
        files = sorted(inside for inside in path.iterdir() if not inside.name.startswith((".", "__")))
        return head + "\n".join(f"- [{inside.name}]({inside.name})" for inside in files) + "\n"
    text = path.read_text(encoding="utf-8")
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"{head}{fence}{_LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def everything() -> tuple[dict[str, str], dict[str, str]]:
    """Repository path -> site path of the pages, and of all that must be shown because a page links to it."""
    known = pages()
    extra: dict[str, str] = {}
    todo = [(path, (ROOT / path).read_text(encoding="utf-8")) for path in known if path != "README.md"]
    while todo:
        path, text = todo.pop()
        for target in targets(path, text):
            readme = f"{target}/README.md"
            if readme in known:
                known[target] = known[readme]
            if target in known or target in extra or not (ROOT / target).exists():
                continue
            extra[target] = shown_at(target)
            if (ROOT / target).is_dir():
                todo.append((f"{target}/index.md", shown(target)))
    return known, extra


def rewrite(path: str, uri: str, text: str, where: Mapping[str, str]) -> str:
    """A page's text with links as the site has them, and every cited rule linked to its text."""

    def relative(target: str) -> str:
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    def link(found: re.Match[str]) -> str:
        target, fragment = _resolve(path, found[2])
        site = where.get(target) if target is not None else None
        return found[0] if site is None else f"{found[1]}{relative(site)}{fragment}{found[3]}"

    def cite(found: re.Match[str]) -> str:
        cited = [linked(name) for name in re.split(r",\s+", found[1])]
        return f"\\[{', '.join(cited)}\\]"

    def linked(name: str) -> str:
        rule = rules().get(name)
        if rule is None:
            return name
        text = f"{rule.level} {rule.text}".replace('"', "&quot;").replace("\n", " ").replace("`", "")
        return f'[{name}]({relative(RULES_PAGE)}#{name} "{text}"){{ .rule }}'

    return outside_code(text, lambda piece: _CITATION.sub(cite, _LINK.sub(link, piece)))
