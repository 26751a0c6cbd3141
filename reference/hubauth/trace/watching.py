"""Bytes of connections to and from a hub, seen from outside, as its rows."""

from typing import Any, TypeAlias

from attrs import define, field

from hubauth.core.inputs import PARENT, Link
from hubauth.core.policy import Policy
from hubauth.forms.events import Kind, Opening, Order, encode_opening
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.forms.policies import form_of
from hubauth.trace.rows import LOGGER, Recording, RowWriter
from hubauth.wire.framing import FrameDecoder, Limits
from hubauth.wire.header import Refused, Version

End: TypeAlias = tuple[str, int]
"""Host and port."""


def show(end: End) -> str:
    host, port = end
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


_LIMITS = Limits(auth=1 << 24, opaque=1 << 24)
"""Whoever watches reads what the hub may refuse."""


@define
class _Line:
    link: Link
    connection: str
    to_hub: FrameDecoder = field(factory=lambda: FrameDecoder(None, _LIMITS))
    from_hub: FrameDecoder = field(factory=lambda: FrameDecoder(None, _LIMITS))
    closed: bool = False
    unreadable: set[bool] = field(factory=set)
    """Directions (``to_hub``) in which something passed that is no frame."""


class Watch:
    """Rows of one hub as somebody outside sees them. ``key`` is anything that names a connection."""

    def __init__(
        self, recording: Recording, hub: str, policy: Policy | None, time: int, habits: Habits = AS_THE_RULES_SAY
    ) -> None:
        """Raises TraceError."""
        self._rows = RowWriter(recording, hub)
        self._lines: dict[object, _Line] = {}
        self._next_link = 1
        redactor = self._rows.redactor
        if policy is not None and redactor is not None:
            policy = redactor.policy(policy)
        form = None if policy is None else form_of(policy)
        declared = None if habits == AS_THE_RULES_SAY else habits
        opening = Opening(Order.OBSERVED, form, tokens=self._rows.tokens, habits=declared)
        self._add(Kind.START, time, payload=encode_opening(opening))

    def opened(self, key: object, connection: str, peer: str, time: int, *, is_parent: bool = False) -> None:
        """Somebody connected to the hub, or the hub to its parent."""
        link = PARENT if is_parent else self._next_link
        self._next_link += not is_parent
        self._lines[key] = _Line(link, connection)
        self._add(Kind.LINK_UP, time, link, connection, peer=peer)

    def passed(self, key: object, data: bytes, time: int, *, to_hub: bool) -> None:
        """Bytes went by. What cannot be read as frames is not recorded, which is said once."""
        line = self._lines.get(key)
        if line is None or to_hub in line.unreadable:
            return
        decoder = line.to_hub if to_hub else line.from_hub
        for raw in decoder.feed(data):
            if isinstance(raw, Refused):
                line.unreadable.add(to_hub)
                way = "to" if to_hub else "from"
                LOGGER.warning("%s: %s the hub, not recorded any further: %s", line.connection, way, raw.detail)
                break
            kind = Kind.FRAME_IN if to_hub else Kind.FRAME_OUT
            version = decoder.version or Version.V1
            self._rows.add_frame(kind, time, line.link, line.connection, raw.header, version, raw.payload)
        self._flush()

    def closed(self, key: object, time: int, *, by_hub: bool) -> None:
        """One end said that it says nothing more; only the first time counts. The other may still have something."""
        line = self._lines.get(key)
        if line is not None and not line.closed:
            line.closed = True
            self._add(Kind.CLOSE if by_hub else Kind.LINK_DOWN, time, line.link, line.connection)

    def gone(self, key: object) -> None:
        """Nothing more will pass."""
        self._lines.pop(key, None)

    def end(self, time: int) -> None:
        """Nobody watches any more."""
        self._rows.add(Kind.END, time)
        self._rows.close()

    def _add(self, kind: Kind, time: int, link: Link | None = None, connection: str = "", **said: Any) -> None:
        self._rows.add(kind, time, link, connection, **said)
        self._flush()

    def _flush(self) -> None:
        self._rows.seal()
        self._rows.release()
