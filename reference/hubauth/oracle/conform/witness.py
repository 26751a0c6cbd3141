"""The promises, watched on everything that this tool sends to the hub under test and reads from it, in a whole run."""

import sys

import msgspec
from attrs import frozen

from hubauth.core.inputs import PARENT, Link
from hubauth.core.messages import Frame
from hubauth.judge.declared import spoken
from hubauth.oracle.conform.profile import Profile
from hubauth.oracle.conform.results import Finding
from hubauth.seen import Broken, Guard, Onlooker, setting_of, words
from hubauth.wire.framing import FrameDecoder, Limits, RawFrame, read_frame
from hubauth.wire.header import FLAG_COMPRESSED, Refused, Version


class Witness:
    """Hears of every connection of this tool. It knows nothing of the cases and of what they expect."""

    def __init__(self, profile: Profile) -> None:
        setting = setting_of(spoken(profile.policy(profile.hub.node_id), profile.declared), profile.hub.node_id)
        # Never anew: nobody could say what the hub has, and a run ends by itself.
        self._guard = Guard(Onlooker("the hub", setting), most=sys.maxsize)
        self._limits = Limits(profile.limits.payload, profile.limits.opaque_payload)
        self._codec = profile.codec
        self._next_link = PARENT + 1
        self._open: dict[Link, Line] = {}
        self._broken: list[Broken] = []

    def meet(self, version: Version, *, as_parent: bool = False) -> "Line":
        """A connection has begun."""
        link = PARENT if as_parent else self._next_link
        self._next_link += not as_parent
        self._broken += self._guard.link("up", link)
        line = Line(self, link, FrameDecoder(version, self._limits))
        self._open[link] = line
        return line

    def all_handled(self) -> None:
        """The hub has shown that it has handled everything that it was sent."""
        self._broken += self._guard.handled()

    def take(self) -> list[Finding]:
        """The promises found broken since the last time, with the two events that contradict each other."""
        broken, self._broken = self._broken, []
        return [
            Finding(
                promise, f"after {words(earlier)}: not so" if earlier else "a request for it", words(later), promise
            )
            for promise, later, earlier in broken
        ]


@frozen(eq=False)
class Line:
    """What passes on one connection."""

    _witness: Witness
    _link: Link
    _to_hub: FrameDecoder

    def told(self, data: bytes) -> None:
        """The hub is sent bytes; from what is no frame on it cannot read any more."""
        witness = self._witness
        for raw in self._to_hub.feed(data):
            if not isinstance(raw, Refused):
                frame = read_frame(witness._codec, _uncompressed(raw)).frame
                witness._broken += witness._guard.received(self._link, frame)

    def said(self, frame: Frame) -> None:
        """The hub has sent a frame."""
        self._witness._broken += self._witness._guard.sent(self._link, frame)

    def ended(self, *, by_hub: bool) -> None:
        """The connection is over; if the hub has come to its parent again meanwhile, that is no news any more."""
        if self._witness._open.get(self._link) is not self:
            return
        del self._witness._open[self._link]
        self._witness._broken += self._witness._guard.link("closed" if by_hub else "down", self._link)


def _uncompressed(raw: RawFrame) -> RawFrame:
    """The frame without that flag: this tool compresses nothing, and a hub that overlooks the flag may answer."""
    header = raw.header
    return msgspec.structs.replace(raw, header=msgspec.structs.replace(header, flags=header.flags & ~FLAG_COMPRESSED))
