"""What was said in a case, in order: the raw material of every diagram."""

from attrs import evolve, frozen

from hubauth.core.messages import SUB_PROTO
from hubauth.oracle.conform.compare import describe_seen
from hubauth.oracle.conform.wire import Seen
from hubauth.report.conceal import conceal

HUB = "hub"
"""The hub under test, in an exchange."""


@frozen
class Event:
    """One arrow of an exchange."""

    sender: str
    receiver: str
    label: str
    detail: str = ""
    wrong: bool = False


class Record:
    """The arrows of one case."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add(self, sender: str, receiver: str, label: str, detail: str = "", *, wrong: bool = False) -> None:
        """Something that happened."""
        self.events.append(Event(sender, receiver, label, detail, wrong))

    def frame(self, sender: str, receiver: str, seen: Seen) -> None:
        """A frame that was sent."""
        self.add(sender, receiver, label_of(seen), describe_seen(seen))

    def mark_wrong(self, receiver: str, seen: Seen) -> None:
        """Let the last arrow of a frame from the hub under test stand out."""
        shown = describe_seen(seen)
        for at, event in reversed(list(enumerate(self.events))):
            if (event.sender, event.receiver, event.detail) == (HUB, receiver, shown) and not event.wrong:
                self.events[at] = evolve(event, wrong=True)
                return


def label_of(seen: Seen) -> str:
    """A frame in a few words."""
    if seen.frame.sub_proto != SUB_PROTO:
        return f"SubProto {seen.frame.sub_proto} to {seen.frame.target}"
    said = seen.json
    if not isinstance(said, dict):
        return "unreadable payload"
    data = said.get("data", said)
    action = str(said.get("action", "answer"))
    facts = [str(data[key]) for key in ("code", "device_id", "node_id") if isinstance(data, dict) and data.get(key)]
    return conceal(" ".join([action, *facts]))[:64]
