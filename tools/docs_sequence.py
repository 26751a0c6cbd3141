"""Sequence diagrams: the part of mermaid's language that the pages use, drawn as SVG when the site is built."""

import re
from collections.abc import Iterator

from attrs import frozen

from tools.docs_drawing import LINE, Box, line, picture, rectangle, text_width, words, wrap

_PARTICIPANT = re.compile(r"(?:participant|actor)\s+(\w+)(?:\s+as\s+(.+))?")
_MESSAGE = re.compile(r"(\w+)\s*(--?>>|--?>|--?x)\s*(\w+)\s*:\s*(.+)")
_NOTE = re.compile(r"Note over (\w+)(?:\s*,\s*(\w+))?\s*:\s*(.+)", re.IGNORECASE)
_BLOCK = re.compile(r"(alt|opt|loop)\b\s*(.*)")
_ELSE = re.compile(r"else\b\s*(.*)")

_NARROWEST, _WIDEST = 110.0, 205.0
"""Between two neighbouring participants."""
_BESIDE = 76.0
"""Left of the first and right of the last: room for a note."""
_MARGIN = 12.0


class DiagramError(ValueError):
    """A line that is not understood."""


@frozen
class Message:
    source: str
    target: str
    text: str
    dashed: bool


@frozen
class DrawnNote:
    first: str
    last: str
    text: str


@frozen
class Begin:
    kind: str
    text: str


@frozen
class Otherwise:
    text: str


@frozen
class End:
    pass


Event = Message | DrawnNote | Begin | Otherwise | End


@frozen
class Sequence:
    """Who takes part, and what happens from top to bottom."""

    participants: dict[str, str]
    events: tuple[Event, ...]


def parse(source: str) -> Sequence:
    """Read a ``sequenceDiagram``; DiagramError names the first line that is not understood."""
    participants: dict[str, str] = {}
    events: list[Event] = []
    depth = 0
    for text in _statements(source):
        if found := _PARTICIPANT.fullmatch(text):
            participants[found[1]] = found[2] or found[1]
            continue
        event = _event(text)
        named = (event.source, event.target) if isinstance(event, Message) else ()
        named = (event.first, event.last) if isinstance(event, DrawnNote) else named
        for name in named:
            participants.setdefault(name, name)
        depth += isinstance(event, Begin) - isinstance(event, End)
        if depth < 0 or (isinstance(event, Otherwise) and not depth):
            raise DiagramError(f"nothing was begun: {text}")
        events.append(event)
    if depth:
        raise DiagramError("a block without its end")
    if not participants:
        raise DiagramError("nobody takes part")
    return Sequence(participants, tuple(events))


def _statements(source: str) -> Iterator[str]:
    lines = (text.strip() for text in source.strip().splitlines())
    if next(lines, "") != "sequenceDiagram":
        raise DiagramError("not a sequenceDiagram")
    return (text for text in lines if text and not text.startswith("%%"))


def _event(text: str) -> Event:
    if found := _NOTE.fullmatch(text):
        return DrawnNote(found[1], found[2] or found[1], found[3])
    if found := _MESSAGE.fullmatch(text):
        return Message(found[1], found[3], found[4], found[2].startswith("--"))
    if found := _BLOCK.fullmatch(text):
        return Begin(found[1], found[2])
    if found := _ELSE.fullmatch(text):
        return Otherwise(found[1])
    if text == "end":
        return End()
    raise DiagramError(f"not understood: {text}")


def draw(source: str) -> str:
    """The diagram as one ``<svg>`` in its frame."""
    return _Drawing(parse(source)).render()


class _Drawing:
    """Goes through the events once, from top to bottom."""

    def __init__(self, sequence: Sequence) -> None:
        self.sequence = sequence
        self.names = list(sequence.participants)
        self.x = self._columns()
        self.width = self.x[self.names[-1]] + max(self._half(self.names[-1]), _BESIDE) + _MARGIN
        self.parts: list[str] = []
        self.frames: list[tuple[float, int]] = []
        """Of every open block: where it begins, and how many blocks are around it."""

    def _half(self, name: str) -> float:
        return max(text_width(part) for part in wrap(self.sequence.participants[name], 120)) / 2 * 1.1 + 10

    def _columns(self) -> dict[str, float]:
        """Where each participant stands: apart enough for what neighbours say to each other."""
        x = {self.names[0]: _MARGIN + max(self._half(self.names[0]), _BESIDE)}
        for left, right in zip(self.names, self.names[1:], strict=False):
            said = [
                text_width(event.text) + 28
                for event in self.sequence.events
                if isinstance(event, Message) and {event.source, event.target} == {left, right}
            ]
            room = self._half(left) + self._half(right) + 14
            x[right] = x[left] + max(room, min(_WIDEST, max(said, default=0.0)), _NARROWEST)
        return x

    def render(self) -> str:
        heads = {name: wrap(label, 120) for name, label in self.sequence.participants.items()}
        height = max(len(head) for head in heads.values()) * LINE + 14
        y = height + 14.0
        for event in self.sequence.events:
            y = self._event(event, y)
        lives = [line((x, height), (x, y), "life") for x in self.x.values()]
        boxes: list[str] = []
        for name, head in heads.items():
            box = Box(self.x[name] - self._half(name), 1, 2 * self._half(name), height - 1)
            boxes.append(rectangle(box, "who") + words(head, self.x[name], (height - len(head) * LINE) / 2, "name"))
        spoken = ", ".join(self.sequence.participants.values())
        return picture(lives + self.parts + boxes, self.width, y + 4, f"Sequence diagram between {spoken}")

    def _event(self, event: Event, y: float) -> float:
        match event:
            case Message():
                return self._message(event, y)
            case DrawnNote():
                return self._note(event, y)
            case Begin(kind, text):
                self.frames.append((y, len(self.frames)))
                return self._caption(f"{kind}: {text}" if text else kind, y)
            case Otherwise(text):
                inset = 3.0 + 6 * self.frames[-1][1]
                self.parts.append(line((inset, y), (self.width - inset, y), "rule"))
                return self._caption(f"else: {text}" if text else "else", y)
            case End():
                top, around = self.frames.pop()
                inset = 3.0 + 6 * around
                self.parts.append(rectangle(Box(inset, top, self.width - 2 * inset, y - top), "block"))
                return y + 12

    def _caption(self, text: str, y: float) -> float:
        self.parts.append(words((text,), 11.0 + 6 * len(self.frames), y + 3, "caption", "start"))
        return y + LINE + 10

    def _message(self, event: Message, y: float) -> float:
        start, end = self.x[event.source], self.x[event.target]
        style = "dashed" if event.dashed else "arrow"
        if start == end:
            text = wrap(event.text, 140)
            self.parts.append(words(text, start + 12, y, "said", "start"))
            return y + len(text) * LINE + 8
        text = wrap(event.text, abs(end - start) - 10)
        below = y + len(text) * LINE + 4
        self.parts.append(words(text, (start + end) / 2, y, "said"))
        self.parts.append(line((start, below), (end, below), style, arrow=True))
        return below + 13

    def _note(self, event: DrawnNote, y: float) -> float:
        ends = sorted((self.x[event.first], self.x[event.last]))
        middle = sum(ends) / 2
        room = 2 * min(middle, self.width - middle) - 2 * _MARGIN
        text = wrap(event.text, min(room, max(150.0, ends[1] - ends[0] + 60)))
        wide = max(max(map(text_width, text)) + 16, ends[1] - ends[0] + 40 if ends[0] != ends[1] else 0)
        box = Box(middle - wide / 2, y, wide, len(text) * LINE + 8)
        self.parts.append(rectangle(box, "note") + words(text, middle, y + 2, "aside"))
        return y + box.height + 12
