"""An exchange as a sequence diagram: plain SVG, for a page that loads nothing else."""

from collections.abc import Sequence

from hubauth.oracle.conform.results import Arrow
from hubauth.report.escape import markup

_COLUMN = 190
_ROW = 30
_TOP = 34
_MARGIN = 80
_LABEL = 30
"""Characters of a label that fit between two lifelines."""


def diagram(exchange: Sequence[Arrow], subject: str) -> str:
    """The exchange between ``subject``, in the first column, and everybody else; what is wrong stands out."""
    names = [
        subject,
        *dict.fromkeys(name for one in exchange for name in (one.sender, one.receiver) if name != subject),
    ]
    column = {name: _MARGIN + at * _COLUMN for at, name in enumerate(names)}
    width = 2 * _MARGIN + (len(names) - 1) * _COLUMN
    height = _TOP + _ROW * (len(exchange) + 1)
    parts = [
        f'<svg class="diagram" role="img" aria-label="sequence diagram" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" xmlns="http://www.w3.org/2000/svg">'
    ]
    for name, x in column.items():
        shown = "hub under test" if name == subject else name
        parts.append(f'<text class="name" x="{x}" y="16" text-anchor="middle">{markup(shown)}</text>')
        parts.append(f'<line class="life" x1="{x}" y1="24" x2="{x}" y2="{height}"/>')
    for at, one in enumerate(exchange):
        parts.append(_arrow(one, column[one.sender], column[one.receiver], _TOP + _ROW * (at + 1)))
    return "".join([*parts, "</svg>"])


def _arrow(one: Arrow, start: int, end: int, y: int) -> str:
    kind = "arrow wrong" if one.wrong else "arrow"
    label = (
        one.label if len(one.label) <= _LABEL * max(abs(end - start) // _COLUMN, 1) else one.label[: _LABEL - 1] + "…"
    )
    if start == end:
        return f'<g class="{kind}"><text x="{start + 8}" y="{y - 2}">{markup(label)}</text></g>'
    tip = end - 7 if end > start else end + 7
    line = f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>'
    head = f'<path d="M{end} {y} L{tip} {y - 4} L{tip} {y + 4} Z"/>'
    text = f'<text x="{(start + end) // 2}" y="{y - 5}" text-anchor="middle">{markup(label)}</text>'
    return f'<g class="{kind}">{line}{head}{text}</g>'
