"""Where a device registered is remembered, and a search that a child hub does not settle goes on to the parent."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Pending, Purpose
from hubauth.core.policy import Assist, Dialect
from hubauth.lab.hub import HUB_A, HUB_B, NODE, Hub, key, mid, question, reply, root, sent, with_hubs

SEARCH = AssistAuthenticate("d", key("d"))
FOUND = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"), NODE)


def refused(reason: Reason, action: Action = Action.ASSIST_AUTHENTICATE) -> Answer:
    return Answer(action, reason, "d")


def registered_below(hub: Hub, link: int) -> None:
    """The hub on ``link`` has registered d, through this one."""
    hub.receive(link, AssistRegister("d"))
    hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))


def searching(link: int = 1) -> Hub:
    """A hub in between that d registered through, at the hub on link 2, and that has been asked about it."""
    hub = with_hubs(mid())
    registered_below(hub, 2)
    hub.receive(link, SEARCH, msg_id=9, trace_id=5)
    return hub


def test_the_authority_remembers_which_child_hub_it_answered() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, AssistRegister("d"))
    assert hub.state.homes["d"] == HUB_A and "REG-15" in done.rules
    hub.receive(2, AssistRegister("d"))
    assert hub.state.homes["d"] == HUB_B
    hub.registered(3, "e")
    assert "e" not in hub.state.homes


def test_a_hub_in_between_remembers_whom_it_passed_a_success_to() -> None:
    hub = with_hubs(mid())
    registered_below(hub, 1)
    assert hub.state.homes["d"] == HUB_A
    hub.receive(2, AssistRegister("d"))
    done = hub.answered(PARENT, refused(Reason.PROTECTED, Action.ASSIST_REGISTER))
    assert hub.state.homes["d"] == HUB_A and "REG-15" not in done.rules


def test_a_registration_for_the_parent_has_no_home_here() -> None:
    hub = mid(authority=5)
    done = hub.receive(PARENT, AssistRegister("d"), source=1)
    assert sent(done)[0].frame.body.reason is Reason.OK  # type: ignore[union-attr]
    assert "d" not in hub.state.homes and "REG-15" not in done.rules


def test_without_credentials_nobody_needs_a_home() -> None:
    hub = with_hubs(root(dialect=Dialect.FLAT))
    done = hub.receive(1, AssistRegister("d"))
    assert not hub.state.homes and "REG-15" not in done.rules


def test_the_home_goes_before_where_a_device_was_last_seen() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    hub.receive(1, Revoke("d"), source=HUB_A, msg_id=1)
    hub.down(1)
    hub.provisioned(3, "hub-a")
    registered_below(hub, 2)
    hub.up(4)
    asked = hub.next_id
    done = hub.receive(4, Authenticate("d", key("d")))
    assert sent(done) == [question(2, SEARCH, hub, asked, target=HUB_B)]
    assert "AUTH-20" in done.rules


def test_where_a_device_is_online_goes_before_its_home_and_the_parent_is_next() -> None:
    """A plain authority further up may have replaced the credential, and has told nobody."""
    hub = with_hubs(mid())
    registered_below(hub, 2)
    hub.found_below("d", 30, 1)
    hub.up(4)
    asked = hub.next_id
    done = hub.receive(4, Authenticate("d", key("d")), msg_id=9)
    assert sent(done) == [question(1, SEARCH, hub, asked, target=HUB_A)]
    asked = hub.next_id
    done = hub.answered(1, refused(Reason.NOT_ADMITTED))
    assert sent(done) == [question(PARENT, SEARCH, hub, asked, target=1)]
    assert "AUTH-21" in done.rules
    done = hub.answered(PARENT, FOUND)
    assert hub.session(4).node_id == 30 and "AUTH-12" in done.rules


def test_a_search_goes_not_back_to_the_home_that_it_came_from() -> None:
    hub = with_hubs(mid())
    registered_below(hub, 1)
    asked = hub.next_id
    done = hub.receive(1, SEARCH)
    assert sent(done) == [question(PARENT, SEARCH, hub, asked, target=1)]


def test_what_a_child_hub_does_not_settle_is_put_to_the_parent() -> None:
    hub = searching()
    (first,) = hub.state.pending
    assert hub.state.pending[first] == Pending(
        Purpose.RELAY, Action.ASSIST_AUTHENTICATE, 2, 1, 9, 5, device_id="d", credential=key("d"), climbs=True
    )
    asked = hub.next_id
    done = hub.answered(2, refused(Reason.NOT_ADMITTED))
    assert sent(done) == [question(PARENT, SEARCH, hub, asked, target=1, trace_id=5)]
    assert hub.state.pending[asked] == Pending(
        Purpose.RELAY, Action.ASSIST_AUTHENTICATE, PARENT, 1, 9, 5, device_id="d"
    ), "what was presented is forgotten when nobody is left to present it to"
    assert "AUTH-21" in done.rules
    done = hub.answered(PARENT, FOUND)
    assert sent(done) == [reply(1, FOUND, hub, msg_id=9, target=HUB_A, trace_id=5)]
    assert "AUTH-11" in done.rules


def test_a_child_hub_that_finds_it_ends_the_search() -> None:
    hub = searching()
    done = hub.answered(2, FOUND)
    assert sent(done) == [reply(1, FOUND, hub, msg_id=9, target=HUB_A, trace_id=5)]
    assert not hub.state.pending


def test_found_nowhere_is_not_admitted_only_if_everybody_could_be_asked() -> None:
    for reason, told in (
        (Reason.NOT_ADMITTED, Reason.NOT_ADMITTED),
        (Reason.UNREACHABLE, Reason.UNREACHABLE),
        (Reason.FORBIDDEN, Reason.UNREACHABLE),
        (Reason.BUSY, Reason.UNREACHABLE),
    ):
        hub = searching()
        hub.answered(2, refused(reason))
        done = hub.answered(PARENT, refused(Reason.NOT_ADMITTED))
        assert sent(done) == [reply(1, refused(told), hub, msg_id=9, target=HUB_A, trace_id=5)]


def test_a_child_hub_that_is_away_or_lost_leaves_the_parent() -> None:
    hub = with_hubs(mid())
    registered_below(hub, 2)
    hub.down(2)
    asked = hub.next_id
    done = hub.receive(1, SEARCH)
    assert sent(done) == [question(PARENT, SEARCH, hub, asked, target=1)]
    assert hub.state.pending[asked].missed and "AUTH-21" in done.rules
    hub = searching()
    asked = hub.next_id
    done = hub.down(2)
    assert question(PARENT, SEARCH, hub, asked, target=1, trace_id=5) in sent(done)
    assert hub.state.pending[asked].missed and "AUTH-21" in done.rules
    done = hub.answered(PARENT, refused(Reason.NOT_ADMITTED))
    assert sent(done) == [reply(1, refused(Reason.UNREACHABLE), hub, msg_id=9, target=HUB_A, trace_id=5)]


def test_a_timer_ends_a_search_without_a_second_question() -> None:
    hub = searching()
    (first,) = hub.state.pending
    done = hub.fires(first)
    assert sent(done) == [reply(1, refused(Reason.UNREACHABLE), hub, msg_id=9, target=HUB_A, trace_id=5)]
    assert not hub.state.pending and "AUTH-21" not in done.rules


def test_a_search_from_the_parent_ends_with_the_child_hub() -> None:
    hub = searching(PARENT)
    done = hub.answered(2, refused(Reason.NOT_ADMITTED))
    assert sent(done) == [reply(PARENT, refused(Reason.NOT_ADMITTED), hub, msg_id=9, target=1, trace_id=5)]
    assert "AUTH-21" not in done.rules


def test_a_parent_that_is_away_cannot_be_asked_either() -> None:
    hub = searching()
    hub.down(PARENT)
    done = hub.answered(2, refused(Reason.NOT_ADMITTED))
    assert sent(done) == [reply(1, refused(Reason.UNREACHABLE), hub, msg_id=9, target=HUB_A, trace_id=5)]
    assert {"AUTH-21", "AUTH-10"} <= set(done.rules)


def test_a_devices_own_search_has_both_legs_and_a_revoke_ends_either() -> None:
    hub = with_hubs(mid())
    registered_below(hub, 2)
    hub.up(4)
    hub.receive(4, Authenticate("d", key("d")), msg_id=9)
    hub.answered(2, refused(Reason.NOT_ADMITTED))
    done = hub.answered(PARENT, FOUND)
    assert hub.session(4).node_id == 30 and "AUTH-12" in done.rules
    for leg in (2, PARENT):
        hub = with_hubs(mid())
        registered_below(hub, 2)
        hub.up(4)
        hub.receive(4, Authenticate("d", key("d")), msg_id=9)
        if leg == PARENT:
            hub.answered(2, refused(Reason.NOT_ADMITTED))
        question_asked = hub.last_question(leg)
        done = hub.receive(PARENT, Revoke("d"), source=1, msg_id=1)
        assert reply(4, refused(Reason.NOT_ADMITTED, Action.AUTHENTICATE), hub, msg_id=9) in sent(done)
        assert "REV-11" in done.rules
        hub.answered(leg, FOUND, msg_id=question_asked)
        assert hub.state.links[4] is None, "the answer comes too late"


def test_a_query_goes_on_where_a_hub_does_not_serve_it() -> None:
    hub = with_hubs(mid(assist=Assist.QUERY))
    registered_below(hub, 2)
    query = AssistQueryCredential("d", 30)
    hub.receive(1, query, msg_id=9)
    asked = hub.next_id
    forbidden = Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.FORBIDDEN, "d", 30)
    done = hub.answered(2, forbidden)
    assert sent(done) == [question(PARENT, query, hub, asked, target=1)]
    assert {"AUTH-21"} <= set(done.rules)
    done = hub.answered(PARENT, Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.NOT_ADMITTED, "d", 30))
    answer = Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.UNREACHABLE, "d", 30)
    assert sent(done) == [reply(1, answer, hub, msg_id=9, target=HUB_A)]


def test_without_presence_a_search_goes_on_to_the_parent_too() -> None:
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    hub.receive(2, AssistRegister("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert hub.is_online(30)
    hub.receive(1, AssistAuthenticate("d"))
    asked = hub.next_id
    done = hub.answered(2, Answer(None, Reason.NOT_ADMITTED))
    assert sent(done) == [question(PARENT, AssistAuthenticate("d"), hub, asked, target=1)]


def test_a_hub_whose_own_device_registers_again_keeps_serving_it() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Register("d"))
    hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))
    assert "d" not in hub.state.homes and hub.session(1).node_id == 30
