"""Sequence diagrams: who said what to whom, as text and as SVG."""

from collections.abc import Iterable

from attrs import evolve, field, frozen

from hubauth.report.escape import markup, visible

_GAP = 4
_COLUMN = 190
_ROW = 34
_TOP = 64
_LEFT = 90


@frozen
class Arrow:
    """One participant says something to another, both by their place."""

    start: int
    end: int
    label: str = field(converter=visible)
    margin: str = ""
    """What stands at the side: a number, a time."""
    wrong: bool = False
    """This is what the diagram is about."""
    absent: bool = False
    """It should have been there."""

    def moved(self, places: int) -> "Arrow":
        """The same, so many places further to the right."""
        return evolve(self, start=self.start + places, end=self.end + places)


@frozen
class Mark:
    """Something that happens at one participant."""

    at: int
    label: str = field(converter=visible)
    margin: str = ""
    wrong: bool = False

    def moved(self, places: int) -> "Mark":
        """The same, so many places further to the right."""
        return evolve(self, at=self.at + places)


def _all_visible(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(visible, names))


@frozen
class Diagram:
    participants: tuple[str, ...] = field(converter=_all_visible)
    steps: tuple[Arrow | Mark, ...] = field(default=())


def to_text(diagram: Diagram) -> str:
    """For a terminal. Absent arrows are dotted; wrong ones have an exclamation mark at the side."""
    labels = [step.label for step in diagram.steps]
    width = max([len(label) + 6 for label in labels] + [len(name) + 2 for name in diagram.participants] + [12])
    margin = max([len(step.margin) for step in diagram.steps] + [0]) + 3
    lines = [" " * margin + "".join(name.center(width) for name in diagram.participants).rstrip()]
    for step in diagram.steps:
        canvas = list(" " * (width * len(diagram.participants)))
        for place in range(len(diagram.participants)):
            canvas[_center(place, width)] = "|"
        if isinstance(step, Mark):
            _write(canvas, _center(step.at, width) + 2, f"[{step.label}]")
            canvas[_center(step.at, width)] = "*"
        else:
            _draw_arrow(canvas, step, width)
        sign = "!" if step.wrong else " "
        lines.append(f"{sign} {step.margin.rjust(margin - 3)} {''.join(canvas)}".rstrip())
    return "\n".join(lines) + "\n"


def _center(place: int, width: int) -> int:
    return place * width + width // 2


def _write(canvas: list[str], at: int, text: str) -> None:
    end = at + len(text)
    canvas.extend(" " * (end - len(canvas)))
    canvas[at:end] = text


def _draw_arrow(canvas: list[str], arrow: Arrow, width: int) -> None:
    low, high = sorted((_center(arrow.start, width), _center(arrow.end, width)))
    stroke = "." if arrow.absent else "-"
    for at in range(low + 1, high):
        canvas[at] = stroke
    canvas[low + 1 if arrow.end < arrow.start else high - 1] = "<" if arrow.end < arrow.start else ">"
    text = f" {arrow.label} "
    _write(canvas, (low + high) // 2 - len(text) // 2 + 1, text)


def to_svg(diagram: Diagram) -> str:
    """One self-contained ``<svg>``, which follows the reader's light or dark scheme."""
    longest = max([len(step.label) for step in diagram.steps] + [10])
    column = max(_COLUMN, 7 * longest + 30)
    width = _LEFT + column * len(diagram.participants) + 20
    height = _TOP + _ROW * (len(diagram.steps) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{markup(' - '.join(diagram.participants))}</title>",
        _STYLE,
    ]
    for place, name in enumerate(diagram.participants):
        x = _x(place, column)
        parts.append(f'<line class="life" x1="{x}" y1="{_TOP - 18}" x2="{x}" y2="{height - 10}"/>')
        parts.append(f'<rect class="head" x="{x - 75}" y="14" width="150" height="30" rx="6"/>')
        parts.append(f'<text class="name" x="{x}" y="34">{markup(name)}</text>')
    for number, step in enumerate(diagram.steps):
        parts += _svg_step(step, _TOP + _ROW * number + 14, column)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(place: int, column: int) -> int:
    return _LEFT + column * place + column // 2


def _svg_step(step: Arrow | Mark, y: int, column: int) -> list[str]:
    kind = ("wrong" if step.wrong else "") + (" absent" if isinstance(step, Arrow) and step.absent else "")
    parts = [f'<g class="step {kind.strip()}">', f'<text class="margin" x="8" y="{y + 4}">{markup(step.margin)}</text>']
    if isinstance(step, Mark):
        x = _x(step.at, column)
        parts.append(f'<circle cx="{x}" cy="{y}" r="4"/>')
        parts.append(f'<text class="note" x="{x + 10}" y="{y + 4}">{markup(step.label)}</text>')
    else:
        start, end = _x(step.start, column), _x(step.end, column)
        tip = 8 if end < start else -8
        parts.append(f'<line class="arrow" x1="{start}" y1="{y}" x2="{end}" y2="{y}"/>')
        parts.append(f'<path d="M{end},{y} l{tip},-4 l0,8 z"/>')
        parts.append(f'<text class="label" x="{(start + end) // 2}" y="{y - 5}">{markup(step.label)}</text>')
    return [*parts, "</g>"]


_STYLE = """<style>
svg{color-scheme:light dark;font:12px system-ui,sans-serif}
text{fill:light-dark(#222,#ddd)} .name{font-weight:600;text-anchor:middle} .label{text-anchor:middle}
.margin{fill:light-dark(#777,#999);font-family:monospace} .life{stroke:light-dark(#bbb,#555)}
.head{fill:light-dark(#eef3fa,#26303d);stroke:light-dark(#8aa,#678)}
.arrow{stroke:light-dark(#357,#8bd);stroke-width:1.5} path,circle{fill:light-dark(#357,#8bd)}
.absent .arrow{stroke-dasharray:5 4} .wrong .arrow{stroke:#d33} .wrong path,.wrong circle{fill:#d33}
.wrong text{fill:#d33}
</style>"""
