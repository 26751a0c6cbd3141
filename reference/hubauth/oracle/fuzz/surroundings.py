"""Everybody around a hub, and what they know: devices, child hubs, a parent. Most of them are honest."""

from random import Random
from typing import Any

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import (
    NO_GRANT,
    NOT_A_HUB,
    Body,
    Ext,
    Grant,
    Major,
)
from hubauth.core.model import PARENT_NEIGHBOUR, Neighbour, Session, State, bound_node
from hubauth.oracle.forms import (
    HeaderForm,
    LinkUpForm,
    ReceivedForm,
    payload_values,
)
from hubauth.oracle.fuzz.play import JOURNAL, Play
from hubauth.oracle.fuzz.policies import ADMIN, AUTHORITY, HUB_A, HUB_B, OWN, PLAIN, ROLES, mostly
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import NotInDialect
from hubauth.wire.header import Version

DEVICES = ("d1", "d2", "d3")
NAMES = (*DEVICES, "d4", "hub-a", "hub-b", "admin", "self", "ünbekannt")
NODES = (0, 1, OWN, 10, 11, 12, HUB_A, HUB_B, ADMIN, AUTHORITY, PLAIN, 60, 77)
GRANTS = (NO_GRANT, Grant("node", ()), *(Grant(role, perms) for role, perms in ROLES.items()))
WRONG = "w" * 43


class Surroundings:
    """Who is around the hub of a play."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self._links = self._sent = 0

    @property
    def state(self) -> State:
        return self.play.state

    def connect(self, hubs: tuple[int, ...] = (), peer: str = "") -> Link:
        """A new connection."""
        self._links += 1
        self.play.happens(LinkUpForm(link=self._links, hubs=hubs, peer=peer))
        return self._links

    def say(self, draw: Random, link: Link, body: Body, **header: Any) -> None:
        """A frame, if the dialect has words for it."""
        try:
            payload = body if isinstance(body, bytes) else CODECS[self.play.policy.dialect].encode(body)
        except NotInDialect:
            return
        if isinstance(body, bytes):
            header |= {"sub_proto": draw.choice((1, 6)), "major": draw.choice(tuple(Major))}
            header |= {"target": draw.choice((0, self.state.node_id, *sorted(self.state.directory), *NODES))}
        self.send(draw, link, payload, **header)

    def send(self, draw: Random, link: Link, payload: bytes, **header: Any) -> None:
        """A frame with this payload."""
        self._sent += 1
        header.setdefault("msg_id", mostly(draw, 100 + self._sent, (0, 1, 2, 100), 0.95))
        header.setdefault("source", mostly(draw, self.honest_source(draw, link), (0, 0, 0, *NODES), 0.93))
        header.setdefault("target", mostly(draw, 0, (self.state.node_id, *NODES), 0.9))
        if self.play.version is Version.V2:
            header |= {"trace_id": draw.choice((0, 9)), "hop_limit": mostly(draw, 0, (1, 2, 255), 0.8)}
        fresh = f"c{self._sent:042d}"
        self.play.happens(ReceivedForm(link=link, header=HeaderForm(**header), **payload_values(payload), fresh=fresh))

    def honest_source(self, draw: Random, link: Link) -> int:
        """Who may be meant by a frame on this link."""
        if link == PARENT:
            return self.state.parent_node or 1
        session = self.state.links.get(link)
        if session is None:
            return 0
        below = [node for node, route in self.state.directory.items() if route.via == session.node_id]
        return mostly(draw, session.node_id, sorted(below), 0.7) if session.is_hub and below else session.node_id

    def sessions(self, *, hubs: bool) -> list[tuple[Link, Session]]:
        """The child links that are bound to a hub, or to a device."""
        found = ((link, session) for link, session in self.state.links.items() if session is not None)
        return sorted(((link, session) for link, session in found if session.is_hub is hubs), key=lambda pair: pair[0])

    def credentials_of(self, name: str) -> list[str]:
        """What a device may hold that is right here, or was issued to somebody."""
        entry = self.state.whitelist.get(name)
        binding = self.play.policy.provisioned_by_device.get(name)
        found = [one.credential for one in (entry, binding) if one is not None and one.credential]
        return found or [entry.credential for _, entry in sorted(self.state.whitelist.items())][-1:] or [WRONG]

    def node_of(self, draw: Random, name: str) -> int:
        """The node of a device, mostly."""
        known = bound_node(self.state, name) or self.state.index.node_of_device.get(name, 0)
        return int(mostly(draw, known or draw.choice(NODES), NODES, 0.9))

    def ext(self, draw: Random, key: int) -> Ext | None:
        """What a hub says of the extension when it joins."""
        known = self.state.neighbours.get(key, Neighbour())
        journal = mostly(draw, known.journal or f"journal of {key}", ("another journal", JOURNAL), 0.9)
        answers = key == PARENT_NEIGHBOUR  # a parent has just been told the journal of this hub
        peer = mostly(draw, JOURNAL if known.journal or answers else "", ("", "somebody else's"), 0.9)
        handled = mostly(draw, known.sent, (0, max(0, known.sent - 1), known.sent + 3), 0.8)
        return mostly(draw, Ext(journal, peer, handled if peer else 0), (None, None, NOT_A_HUB), 0.8)  # type: ignore[no-any-return]
