"""Flowcharts: boxes in rows and arrows between them; the part of mermaid's language that the pages use."""

import re

from tools.docs_drawing import LINE, Box, line, picture, rectangle, text_width, words, wrap
from tools.docs_sequence import DiagramError

_HEAD = re.compile(r"(?:flowchart|graph)\s+(TD|TB|LR)")
_NODE = r"(\w+)(?:\[([^\]]+)\])?"
_EDGE = re.compile(rf"{_NODE}\s*--(?:>|-)\s*(?:\|([^|]+)\|\s*)?{_NODE}")
_ALONE = re.compile(_NODE)
_GAP, _BESIDE = 30.0, 14.0
"""Between two rows, and between two boxes of a row."""


def draw(source: str) -> str:
    """The chart as one ``<svg>`` in its frame; DiagramError names the first line that is not understood."""
    first, *rest = [text.strip() for text in source.strip().splitlines() if text.strip()]
    head = _HEAD.fullmatch(first)
    if head is None:
        raise DiagramError(f"not a flowchart: {first}")
    labels: dict[str, str] = {}
    edges: list[tuple[str, str, str]] = []
    for text in rest:
        if found := _EDGE.fullmatch(text):
            for name, label in ((found[1], found[2]), (found[4], found[5])):
                labels[name] = label or labels.get(name, name)
            edges.append((found[1], found[4], found[3] or ""))
        elif found := _ALONE.fullmatch(text):
            labels[found[1]] = found[2] or found[1]
        else:
            raise DiagramError(f"not understood: {text}")
    return _render(labels, edges, across=head[1] == "LR")


def _ranks(labels: dict[str, str], edges: list[tuple[str, str, str]]) -> dict[str, int]:
    """How many arrows lead to each box, by the longest way."""
    ranks = dict.fromkeys(labels, 0)
    for _ in labels:
        for source, target, _label in edges:
            ranks[target] = max(ranks[target], ranks[source] + 1)
    if max(ranks.values()) >= len(labels):
        raise DiagramError("the arrows form a circle")
    return ranks


def _lines(label: str) -> tuple[str, ...]:
    return tuple(part for row in label.split("<br>") for part in wrap(row, 130))


def _middle(box: Box) -> tuple[float, float]:
    return box.x + box.width / 2, box.y + box.height / 2


def _render(labels: dict[str, str], edges: list[tuple[str, str, str]], across: bool) -> str:
    ranks = _ranks(labels, edges)
    texts = {name: _lines(label) for name, label in labels.items()}
    sizes = {name: (max(map(text_width, text)) + 24, len(text) * LINE + 14) for name, text in texts.items()}
    rows = [[name for name in labels if ranks[name] == rank] for rank in range(max(ranks.values()) + 1)]
    along = 1 if across else 0
    # One row after the other, each centred on the longest.
    lengths = [sum(sizes[name][along] for name in row) + _BESIDE * (len(row) - 1) for row in rows]
    boxes: dict[str, Box] = {}
    depth = 2.0
    for row, length in zip(rows, lengths, strict=True):
        thick = max(sizes[name][1 - along] for name in row)
        at = 2 + (max(lengths) - length) / 2
        for name in row:
            wide, high = sizes[name]
            boxes[name] = Box(depth, at, thick, high) if across else Box(at, depth, wide, thick)
            at += sizes[name][along] + _BESIDE
        depth += thick + _GAP + (14 if any(label for *_, label in edges) else 0)
    parts = [_arrow(boxes[source], boxes[target], label, across) for source, target, label in edges]
    for name, box in boxes.items():
        top = box.y + (box.height - len(texts[name]) * LINE) / 2
        head, rest = texts[name][:1], texts[name][1:]
        middle = box.x + box.width / 2
        parts.append(rectangle(box, "who") + words(head, middle, top, "name") + words(rest, middle, top + LINE, "said"))
    width = max(box.x + box.width for box in boxes.values()) + 2
    height = max(box.y + box.height for box in boxes.values()) + 2
    return picture(
        parts, width, height, "Chart: " + ", ".join(" ".join(text) for text in texts.values()), narrowest=340.0
    )


def _arrow(source: Box, target: Box, label: str, across: bool) -> str:
    (x1, y1), (x2, y2) = _middle(source), _middle(target)
    start, end = ((x1, source.y + source.height), (x2, target.y))
    if across:
        start, end = ((source.x + source.width, y1), (target.x, y2))
    drawn = line(start, end, "arrow", arrow=True)
    if not label:
        return drawn
    return drawn + words((label,), (start[0] + end[0]) / 2 + 6, (start[1] + end[1]) / 2 - 12, "said", "start")
