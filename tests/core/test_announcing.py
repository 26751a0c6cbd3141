"""Everything that is online, told to a parent that returns."""

from typing import Any

from hubauth.core.inputs import PARENT
from hubauth.core.messages import HubOnline, PermsInvalidate
from hubauth.core.outputs import Send, StartTimer
from hubauth.core.policy import Dialect
from hubauth.lab.hub import HUB_A, HUB_B, Hub, admission, mid, question, sent, with_hubs, without_timers


def announcement(device_id: str, node_id: int) -> HubOnline:
    return HubOnline(device_id, node_id)


def full_hub(count: int, **changes: Any) -> Hub:
    """A hub whose parent is away, with devices here and behind two hubs."""
    hub = with_hubs(mid(joined=False, **changes))
    for number in range(count):
        hub.receive(1, announcement(f"a{number}", 100 + number))
    hub.receive(2, announcement("b", 50))
    hub.provisioned(3, "admin")
    return hub


def join(hub: Hub) -> list[tuple[str, int]]:
    """The parent returns; what it is told, batch after batch."""
    hub.up(PARENT)
    own = admission()
    return bodies(sent(hub.answered(PARENT, own)))


def bodies(sends: list[Send]) -> list[tuple[str, int]]:
    found = [send.frame.body for send in sends if send.link == PARENT]
    return [(body.device_id, body.node_id) for body in found if isinstance(body, HubOnline)]


IN_ORDER = [("hub-a", HUB_A), ("hub-b", HUB_B), ("admin", 20), ("a0", 100), ("a1", 101), ("b", 50)]


def test_when_the_parent_becomes_present_everything_online_is_announced_in_order() -> None:
    hub = full_hub(2)
    first = hub.next_id + 1
    assert join(hub) == IN_ORDER
    assert hub.state.announcing is None and not hub.timers
    child_hubs = sum(session is not None and session.is_hub for session in hub.state.links.values())
    assert child_hubs and hub.next_id == first + child_hubs + len(IN_ORDER)


def test_announcements_of_a_returning_parent_cite_their_rule_and_look_like_all_others() -> None:
    hub = full_hub(0)
    hub.up(PARENT)
    first = hub.next_id
    done = hub.answered(PARENT, admission())
    at_a, at_b, announced, *_ = without_timers(done)
    assert at_a == question(1, PermsInvalidate((), "parent is back"), hub, first, target=0)
    assert at_b == question(2, PermsInvalidate((), "parent is back"), hub, first + 1, target=0)
    assert announced == question(PARENT, announcement("hub-a", HUB_A), hub, first + 2, target=1)
    assert {"BIND-11", "EXT-8"} <= set(done.rules)


def test_batches_are_bounded_and_a_timer_of_no_length_brings_the_next() -> None:
    for batch in (1, 2, 3, 4, 5):
        hub = full_hub(2, announce_batch=batch)
        told = join(hub)
        assert len(told) == batch
        while hub.state.announcing is not None:
            timer = hub.state.announce_timer
            assert timer > 0
            done = hub.fires(timer)
            told += bodies(sent(done))
            assert len(bodies(sent(done))) <= batch
            starts = [output for output in done.outputs if isinstance(output, StartTimer)]
            assert starts == ([StartTimer(hub.state.announce_timer, 0.0)] if hub.state.announcing else [])
        assert told == IN_ORDER
        assert hub.state.announce_timer == 0 and not hub.timers


def test_a_batch_that_ends_exactly_needs_no_timer() -> None:
    hub = full_hub(2, announce_batch=6)
    assert join(hub) == IN_ORDER
    assert hub.state.announcing is None and not hub.timers


def test_a_batch_says_what_is_online_when_its_turn_comes() -> None:
    hub = full_hub(2, announce_batch=2)
    told = join(hub)
    hub.down(1)
    while hub.state.announcing is not None:
        told += bodies(sent(hub.fires(hub.state.announce_timer)))
    assert told == [("hub-a", HUB_A), ("hub-b", HUB_B), ("admin", 20), ("b", 50)]


def test_a_parent_that_goes_away_ends_the_announcing() -> None:
    hub = full_hub(2, announce_batch=2)
    join(hub)
    timer = hub.state.announce_timer
    hub.down(PARENT)
    assert hub.state.announcing is None and hub.state.announce_timer == 0 and not hub.timers
    done = hub.fires(timer)
    assert done.outputs == () and hub.unchanged
    assert join(hub) == IN_ORDER[:2]


def test_where_nothing_is_online_nothing_is_announced() -> None:
    hub = mid(joined=False)
    assert join(hub) == []
    hub = with_hubs(mid(joined=False, dialect=Dialect.FLAT))
    assert join(hub) == [] and hub.state.announcing is None
    assert "BIND-11" not in hub.steps[-1].rules
