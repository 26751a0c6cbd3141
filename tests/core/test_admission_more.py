"""Admissions in the cases that a mutation run found untested."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import Action, Answer, Authenticate, Reason
from hubauth.core.model import Session
from hubauth.core.outputs import Close
from hubauth.lab.hub import credentials, key, mid, root, sent


def test_a_link_that_was_a_devices_is_extended_as_soon_as_a_hub_joins_over_it() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.receive(1, credentials("hub-a"))
    assert hub.session(1).is_hub and hub.session(1).extended


def test_whoever_waits_on_a_link_that_an_admission_has_just_closed_is_not_admitted() -> None:
    hub = mid(close_superseded=True)
    hub.admitted_from_above(2, "d", 30)
    hub.up(3)
    hub.receive(3, Authenticate("d", key("d")))
    hub.receive(2, Authenticate("e", key("e")))
    hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "e", 31, key("e")))
    assert hub.waits(2) and hub.waits(3)
    done = hub.down(PARENT)
    assert hub.session(3) == Session("d", 30, False) and Close(2) in done.outputs
    assert not sent(done, 2) and "e" not in hub.state.whitelist
