"""Charts as SVG text: bars, nothing else, in the colours of the page they stand in."""

from collections.abc import Sequence

from attrs import frozen

from hubauth.report.escape import markup

_ROW, _LABEL, _WIDTH, _VALUE = 22, 190, 420, 120


@frozen
class Bar:
    """One line of a chart: parts of the whole, each with the name of its colour."""

    label: str
    parts: tuple[tuple[int, str], ...]
    note: str


def bars(title: str, lines: Sequence[Bar]) -> str:
    """Horizontal bars, drawn to one scale."""
    largest = max((sum(size for size, _ in line.parts) for line in lines), default=0) or 1
    height = _ROW * len(lines) + 4
    total = _LABEL + _WIDTH + _VALUE
    drawn = [f'<svg viewBox="0 0 {total} {height}" role="img" aria-label="{markup(title)}" class="bars">']
    for row, line in enumerate(lines):
        top = row * _ROW
        drawn.append(f'<text x="{_LABEL - 8}" y="{top + 15}" text-anchor="end">{markup(_short(line.label))}</text>')
        left = float(_LABEL)
        for size, colour in line.parts:
            width = _WIDTH * size / largest
            if size:
                drawn.append(
                    f'<rect x="{left:.1f}" y="{top + 3}" width="{max(width, 1):.1f}" height="16" class="{colour}"/>'
                )
            left += width
        drawn.append(f'<text x="{left + 6:.1f}" y="{top + 15}" class="note">{markup(line.note)}</text>')
    return "\n".join([*drawn, "</svg>"])


def _short(label: str) -> str:
    return label if len(label) <= 26 else f"{label[:25]}…"
