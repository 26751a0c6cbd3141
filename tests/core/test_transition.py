"""What a step in the making must never get wrong: numbers, indexes, and the record of changes."""

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import PARENT
from hubauth.core.messages import Action, GetPerms, Grant, Major, Register
from hubauth.core.model import Pending, Purpose, Registration, Route, Session, State, subjects_of
from hubauth.core.ordered import OrderedIds
from hubauth.core.outputs import Close
from hubauth.core.policy import Policy
from hubauth.core.transition import Transition
from hubauth.lab.hub import NODE, Hub, key, mid, sent

LAST = 2**32 - 1


def test_own_numbers_wrap_and_skip_zero_and_what_is_still_pending() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, GetPerms(40))
    pending = hub.last_question(PARENT)
    hub = Hub(hub.policy, evolve(hub.state, next_msg_id=LAST))
    done = hub.receive(1, GetPerms(41))
    assert sent(done)[0].frame.msg_id == LAST
    assert hub.state.next_msg_id == 1
    taken = [sent(hub.receive(1, GetPerms(50 + number)))[0].frame.msg_id for number in range(pending + 1)]
    assert taken == [number for number in range(1, pending + 3) if number != pending]


def test_own_numbers_skip_the_timer_of_the_announcements() -> None:
    hub = Hub(Policy(has_parent=True, node_id=5), State(node_id=5, announce_timer=9, announcing=(0, 1), next_msg_id=9))
    t = Transition(hub.policy, hub.state)
    assert t.take_msg_id() == 10 and t.next_msg_id == 11


def test_nothing_changed_means_the_very_same_state_and_no_changes() -> None:
    state = Hub(Policy()).state
    t = Transition(Policy(), state)
    t.cite("X-1", "X-2", "X-1")
    t.close(3)
    done = t.finish()
    assert done.state is state and done.changes == ()
    assert done.rules == ("X-1", "X-2") and done.outputs == (Close(3),)


def test_changes_name_table_key_old_and_new() -> None:
    state = Hub(Policy()).state
    t = Transition(Policy(), state)
    t.put_registration("d", Registration(2))
    t.enroll(2, "node")
    t.next_node_id = 3
    t.open_link(1)
    t.set_session(1, Session("d", 2, False))
    t.put_route(2, Route("d", 2, True))
    t.mark_offline(2)
    t.set_session(1, None)
    t.forget_link(1)
    t.delete_entry("nobody")
    done = t.finish()
    assert done.changes == (
        ("registry", "d", None, Registration(2)),
        ("links", 1, None, False),
        ("links", 1, False, Session("d", 2, False)),
        ("directory", 2, None, Route("d", 2, True)),
        ("directory", 2, Route("d", 2, True), Route("d", 2, False)),
        ("links", 1, Session("d", 2, False), False),
        ("links", 1, False, None),
        ("hub", "next_node_id", 0, 3),
    )
    assert list(done.state.index.roster) == [1, 2]
    assert done.state.index.online_via == Map() and done.state.index.link_of_node == Map()
    assert state.registry == Map() and list(state.index.roster) == [1]


def test_putting_the_very_same_value_is_no_change() -> None:
    registration = Registration(2)
    state = evolve(Hub(Policy()).state, registry=Map({"d": registration}))
    t = Transition(Policy(), state)
    t.put_registration("d", registration)
    assert t.finish().state is state


def test_the_indexes_of_pending_requests_come_and_go_with_them() -> None:
    t = Transition(Policy(), Hub(Policy()).state)
    held = Pending(Purpose.HELD, Action.REVOKE, 1, 2, node_id=30)
    order = Pending(Purpose.DISMISS, Action.ASSIST_OFFLINE, 1, node_id=30)
    search = Pending(Purpose.QUERY, Action.AUTHENTICATE, 1, 2, device_id="d")
    for msg_id, pending in enumerate((held, order, search), start=1):
        t.put_pending(msg_id, pending)
    assert t.waiting == Map({2: OrderedIds.of((1, 3))})
    assert t.asking == Map({30: OrderedIds.of((1,)), "d": OrderedIds.of((3,))})
    assert dict(t.dismissed.items()) == {(1, 30): 2}
    for msg_id in (1, 2, 3):
        t.take_pending(msg_id)
    assert (t.waiting, t.asking, t.dismissed, t.pending) == (Map(), Map(), Map(), Map())


def test_what_a_pending_request_is_looked_up_by() -> None:
    about = {"device_id": "d", "node_id": 3}
    subjects = {
        purpose: subjects_of(Pending(purpose, Action.REVOKE, 1, **about))  # type: ignore[arg-type]
        for purpose in Purpose
    }
    assert {purpose: found for purpose, found in subjects.items() if found} == {
        Purpose.AUTHENTICATE: ("d",),
        Purpose.QUERY: ("d",),
        Purpose.CONFIRM: ("d",),
        Purpose.ADMIT: ("d", 3),
        Purpose.PERMS: (3,),
        Purpose.HELD: (3,),
        Purpose.REVOKE: ((3, "d"),),
    }


def test_cached_grants_are_listed_under_their_role_until_they_go() -> None:
    policy = Policy(has_parent=True, node_id=5)
    t = Transition(policy, Hub(policy).state)
    t.put_perms(40, NODE)
    t.put_perms(41, Grant("hub", ()))
    t.put_perms(40, Grant("hub", ()))
    assert t.others.of_role == Map({"hub": OrderedIds.of((40, 41))})
    assert t.delete_perms(40) and not t.delete_perms(40)
    assert list(t.others.cached) == [41]
    t.clear_perms()
    assert (t.perms, t.others.of_role, len(t.others.cached)) == (Map(), Map(), 0)
    changes = len(t.changes)
    t.clear_perms()
    assert len(t.changes) == changes


def test_who_is_a_hub_and_where() -> None:
    t = Transition(Policy(), Hub(Policy()).state)
    for link, is_hub in ((1, True), (2, False)):
        t.open_link(link)
        t.set_session(link, Session(f"d{link}", link + 10, is_hub))
    assert [t.hub_link(node_id) for node_id in (11, 12, 13)] == [1, None, None]
    assert t.session_of_node(12) == (2, Session("d2", 12, False)) and t.session_of_node(13) is None


def test_a_frame_says_cmd_unless_told_otherwise() -> None:
    hub = mid()
    hub.up(1)
    assert sent(hub.receive(1, Register("d")))[0].frame.major is Major.CMD
    assert key("d") == "d" + "k" * 42
