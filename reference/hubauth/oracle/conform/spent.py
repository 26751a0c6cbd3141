"""Before a hub is blamed that did not act on a numbered revoke: whether it may think that it has handled it before.

Every run numbers higher than those before it (``numbers``), unless the clock was set back in between. Then a right hub
drops what this tool numbers, and acts on the same revoke without a number.
"""

from contextlib import suppress

from hubauth.core.messages import Revoke
from hubauth.oracle.conform.problems import Deviated, TooSlow, Violated
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.conform.world import World

SPENT = (
    "the hub under test obeys a revoke without a number from {}, and not one with a number of this run: it remembers a "
    "higher number, from a run under a later clock. Start it with an empty state, or set the clock of this machine. "
    "(With an empty state it would be a hub that obeys no numbered revoke.)"
)


def why_spent(subject: Subject, numbered: set[str]) -> str:
    """Why nothing can be said about revokes that these hubs numbered; empty if they were not in vain."""
    for neighbour in sorted(numbered):
        if neighbour not in subject.spent:
            subject.spent[neighbour] = not _obeys(subject, neighbour) and _obeys(subject, neighbour, unnumbered=True)
        if subject.spent[neighbour]:
            return SPENT.format(neighbour or "its parent")
    return ""


def _obeys(subject: Subject, neighbour: str, *, unnumbered: bool = False) -> bool:
    """Whether the hub does what it must when this neighbour revokes a device of its own."""
    obeys = False
    with suppress(Violated, Deviated, TooSlow, Unreachable, LookupError):
        world = World(subject)
        try:
            device = world.registered()
            names = [known.device_id for known in subject.profile.child_hub]
            hub = world.child_hub(names.index(neighbour)) if neighbour else world.parent
            hub.pass_on(Revoke(device.device_id), number=0 if unnumbered else None)
            obeys = True
        finally:
            world.close()
    return obeys
