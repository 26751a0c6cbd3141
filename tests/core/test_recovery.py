"""What outlives a hub's process: every field of a state does or does not, and most steps change nothing that does."""

from typing import Any

from hubauth.core.messages import Authenticate, Offline, Register, Revoke
from hubauth.core.model import FIRST_PLACE, Owed
from hubauth.core.policy import Policy
from hubauth.core.recovery import LASTING_SCALARS, LASTING_TABLES, Recovery, after_restart, lasting_changes, lets_go
from hubauth.core.transition import STATE_FIELDS, Step
from hubauth.lab.hub import Hub, issued, mid, root, with_hubs

ENDING = {
    "next_msg_id",
    "parent_present",
    "parent_extended",
    "parent_node",
    "perms_epoch",
    "invalidations",
    "announcing",
    "announce_timer",
}
ENDING |= {"links", "plain", "learnt", "perms", "pending"}


def lasting(done: Step) -> list[tuple[str, Any]]:
    return [(table, key) for table, key, _ in lasting_changes(done.changes)]


def test_every_field_lasts_or_ends_with_the_process() -> None:
    assert {*LASTING_SCALARS, *LASTING_TABLES, *ENDING} == set(STATE_FIELDS)
    assert not ENDING & {*LASTING_SCALARS, *LASTING_TABLES}


def test_a_registration_lasts_and_an_authentication_changes_nothing() -> None:
    hub = Hub(Policy())
    assert lasting(hub.up(1)) == []
    done = hub.receive(1, Register("d"))
    assert lasting(done) == [("registry", "d"), ("whitelist", "d"), ("directory", 2), ("hub", "next_node_id")]
    credential = hub.state.whitelist["d"].credential
    assert lasting(hub.receive(1, Offline("d"), source=2)) == []
    assert lasting(hub.receive(1, Authenticate("d", credential))) == []
    assert lasting(hub.down(1)) == [] and lasting(hub.up(2)) == []
    assert lasting(hub.receive(2, Authenticate("d", credential))) == []
    assert lasting(hub.receive(2, Authenticate("d", issued(99)))) == []


def test_where_a_node_is_lasts_and_whether_it_is_there_does_not() -> None:
    hub = with_hubs(root())
    hub.found_below("leaf", 30, 1)
    assert hub.state.directory[30].online
    left = after_restart(hub.policy, hub.state)
    assert (left.directory[30].via, left.directory[30].online) == (hub.state.directory[30].via, False)


def test_a_relayed_credential_is_in_no_change_that_lasts() -> None:
    hub = with_hubs(mid())
    before = len(hub.steps)
    hub.admitted_from_above(3, "d", 30)
    kept = [change for done in hub.steps[before:] for change in lasting_changes(done.changes)]
    assert ("whitelist", "d", hub.state.whitelist["d"]) in kept
    hub.receive(1, Register("x"))
    assert "x" not in repr(lasting_changes(hub.steps[-1].changes))


def test_what_a_revoke_named_is_let_go_when_it_is_owed_no_more() -> None:
    named, plain = Revoke("d", 0, "c"), Revoke("d")
    waits, sent = Owed(FIRST_PLACE, 1), Owed(1, 1)
    assert lets_go([("owed", (3, named), sent, None)]) and not lets_go([("owed", (3, plain), sent, None)])
    assert not lets_go(
        [("owed", (3, named), None, waits), ("owed", (3, named), waits, sent), ("registry", "d", None, 1)]
    )
    assert lets_go([("owed", (3, plain), sent, None), ("owed", (4, named), sent, None)])
    recovery = Recovery(after_restart(Policy(), Hub(Policy()).state))
    recovery.apply(("owed", (3, named), waits))
    recovery.apply(("owed", (3, named), sent))
    assert not recovery.forgets
    recovery.apply(("owed", (3, named), None))
    recovery.apply(("owed", (3, named), waits))
    assert recovery.forgets
