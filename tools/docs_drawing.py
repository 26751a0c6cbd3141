"""The pieces of a drawing as SVG: text of known size, boxes, arrows. Their colours are in docs/assets/site.css."""

from html import escape

from attrs import frozen

FONT = 13
"""Height of the letters, in pixels."""
LINE = 17
"""From one line of text to the next."""

_NARROW = frozenset("ijl.,:;'|!()[]{}ftr I-")
_WIDE = frozenset("mwMW@%")


def text_width(text: str) -> float:
    """About how wide a line is in a common sans-serif font; rather too wide than too narrow."""
    return sum(5.2 if letter in _NARROW else 12.5 if letter in _WIDE else 8.0 for letter in text)


def wrap(text: str, width: float) -> tuple[str, ...]:
    """Words on as few lines as fit into ``width``; a word that is wider stands alone."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return tuple(lines)


@frozen
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float


def words(lines: tuple[str, ...], x: float, top: float, style: str = "", anchor: str = "middle") -> str:
    """Lines of text below each other, the first one beginning at ``top``."""
    return "".join(
        f'<text class="{style}" x="{x:.0f}" y="{top + FONT + number * LINE:.0f}" text-anchor="{anchor}">'
        f"{escape(line)}</text>"
        for number, line in enumerate(lines)
    )


def rectangle(box: Box, style: str) -> str:
    return (
        f'<rect class="{style}" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" '
        'rx="4"/>'
    )


def line(start: tuple[float, float], end: tuple[float, float], style: str, arrow: bool = False) -> str:
    """A straight line, with a head at its end if it is an arrow."""
    (x1, y1), (x2, y2) = start, end
    drawn = f'<line class="{style}" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>'
    if not arrow:
        return drawn
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    along, across = ((x2 - x1) / length, (y2 - y1) / length), (-(y2 - y1) / length, (x2 - x1) / length)
    corners = [(x2, y2)] + [
        (x2 - 9 * along[0] + side * 4 * across[0], y2 - 9 * along[1] + side * 4 * across[1]) for side in (1, -1)
    ]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return f'{drawn}<polygon class="head" points="{points}"/>'


def picture(parts: list[str], width: float, height: float, label: str, narrowest: float = 560.0) -> str:
    """The whole drawing. On a narrow page it shrinks, at most to ``narrowest``, and from there on scrolls sideways."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" font-size="{FONT}"'
    style = f"min-width:{min(width, narrowest):.0f}px"
    said = f'role="img" aria-label="{escape(label)}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}" {said}>{"".join(parts)}</svg>'
    return f'<div class="drawing">{svg}</div>'
