"""A scenario that fills every table, printed so that two processes can be compared byte for byte.

Run as ``python -m tests.core.scenario``.
"""

from hubauth.core.canonical import encode_state
from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import (
    Action,
    Answer,
    GetPerms,
    HubOnline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.lab.hub import NODE, Hub, key, mid, with_hubs


def eventful() -> Hub:
    """A hub with something in every table but the registry."""
    hub = with_hubs(mid(announce_batch=2))
    hub.admitted_from_above(3, "d", 30)
    hub.admitted_from_above(4, 'é\n"', 31)
    hub.found_below("leaf", 40, 1)
    hub.found_below("leaf", 40, 2)
    hub.happens(OperatorRevoke(Revoke("x", 9, key("x"))))
    hub.happens(OperatorRevoke(Revoke("admin")))
    hub.up(5)
    hub.receive(5, Register("e"), trace_id=9)
    hub.receive(3, GetPerms(50))
    hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 50, grant=NODE))
    hub.receive(3, Revoke("y", 1, "c"), msg_id=77, hop_limit=3, flags=1, timestamp=5)
    hub.receive(4, PermsInvalidate((1, 2), "why", refresh=True))
    return hub


def scenario() -> str:
    """What an eventful hub did and became, for a byte-for-byte comparison between processes."""
    hub = eventful()
    for number in range(10):
        hub.receive(1, HubOnline(f"many{number}", 1000 + number * 977))
        hub.happens(OperatorRevoke(Revoke(f"gone{number * 31}")))
    hub.down(PARENT)
    hub.joined()
    while hub.state.announcing is not None:
        hub.fires(hub.state.announce_timer)
    for link in (1, 3, 2):
        hub.down(link)
    hub.provisioned(8, "hub-a")
    lines = [repr((done.outputs, done.rules, [change[:2] for change in done.changes])) for done in hub.steps]
    return "\n".join([*lines, encode_state(hub.state).decode(), hub.digest.hex()])


if __name__ == "__main__":
    print(scenario())
