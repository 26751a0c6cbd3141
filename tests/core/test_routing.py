"""Frames of other sub-protocols."""

from typing import Any

from hubauth.core.inputs import PARENT
from hubauth.core.messages import AssistOffline, Authenticate, Frame, Major, Register
from hubauth.core.outputs import Note, NoteKind, Send
from hubauth.core.routing import lower_hop_limit
from hubauth.lab.hub import HUB_A, HUB_B, Hub, dropped, journal_of, listing, mid, root, sent, with_hubs

LEAF = 30


def busy_mid() -> Hub:
    """Hub A with a leaf on link 1, hub B on link 2, a device (31) on link 3, and link 4 without a session."""
    hub = with_hubs(mid())
    hub.found_below("leaf", LEAF, 1)
    hub.admitted_from_above(3, "d", 31)
    hub.up(4)
    return hub


def test_without_a_source_nothing_else_than_this_protocol_passes() -> None:
    hub = busy_mid()
    for link in (1, 3, 4, PARENT):
        for target in (0, 5, LEAF):
            assert dropped("FRAME-1", link, hub.receive(link, b"x", source=0, target=target))
            assert hub.unchanged


def test_a_source_must_be_reachable_through_the_link() -> None:
    hub = busy_mid()
    for link, source in ((3, 30), (3, 99), (4, 31), (1, 31), (1, 99), (2, LEAF), (2, HUB_A)):
        assert dropped("FRAME-2", link, hub.receive(link, b"x", source=source, target=1))
    for link, source in ((3, 31), (1, HUB_A), (1, LEAF)):
        done = hub.receive(link, b"x", source=source, target=99)
        assert [send.link for send in sent(done)] == [PARENT]
        assert "FRAME-2" not in done.rules


def test_a_device_speaks_for_itself_only() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.registered(2, "e")
    assert dropped("FRAME-2", 1, hub.receive(1, b"x", source=3, target=1))
    assert sent(hub.receive(1, b"x", source=2, target=3))[0].link == 2


def test_a_node_last_seen_behind_a_hub_is_still_reachable_through_it() -> None:
    hub = busy_mid()
    hub.receive(1, AssistOffline("leaf", LEAF))
    assert not hub.is_online(LEAF)
    assert "FRAME-2" not in hub.receive(1, b"x", source=LEAF, target=31).rules


def test_a_plain_device_speaks_for_nobody_else() -> None:
    hub = root(**listing(leaf=LEAF))
    hub.registered(1, "k")
    for roles in ({2: "hub"}, {}):
        hub.now_with(node_roles=roles)
        hub.up(1)
        hub.receive(1, Authenticate("k", hub.state.whitelist["k"].credential, journal_of("k")))
        if roles:
            hub.found_below("leaf", LEAF, 1)
    # It was a hub, and the directory still says through whom the leaf was last seen.
    assert hub.state.directory[LEAF].via == hub.session(1).node_id
    assert dropped("FRAME-2", 1, hub.receive(1, b"x", source=LEAF, target=1))


def test_from_the_parent_any_source_is_accepted() -> None:
    hub = busy_mid()
    done = hub.receive(PARENT, b"x", source=4_000_000, target=31)
    assert [send.link for send in sent(done)] == [3]


def test_what_is_addressed_to_this_hub_is_delivered_here_and_not_forwarded() -> None:
    hub = busy_mid()
    done = hub.receive(3, b"x", target=5, sub_proto=9)
    assert done.outputs == (Note(NoteKind.DELIVERED, "FRAME-3", "sub-protocol 9 for this hub", 3),)
    assert hub.unchanged


def test_a_node_that_is_online_is_reached_by_its_next_hop_and_nothing_else_changes() -> None:
    hub = busy_mid()
    header: dict[str, Any] = {"major": Major.MSG, "msg_id": 12, "trace_id": 3, "flags": 1, "timestamp": 9}
    for target, link in ((LEAF, 1), (31, 3), (HUB_A, 1), (HUB_B, 2)):
        done = hub.receive(PARENT, b"payload", source=77, target=target, hop_limit=5, sub_proto=9, **header)
        expected = Frame(b"payload", Major.MSG, 12, 77, target, 9, 3, 4, 1, 9)
        assert done.outputs == (Send(link, expected),)
        assert {"FRAME-4", "FRAME-8"} <= set(done.rules) and "FRAME-5" not in done.rules
        assert hub.unchanged


def test_a_node_that_is_not_online_is_sought_upwards() -> None:
    hub = busy_mid()
    hub.receive(1, AssistOffline("leaf", LEAF))
    for target in (LEAF, 99):
        done = hub.receive(3, b"x", target=target)
        assert sent(done) == [Send(PARENT, Frame(b"x", Major.CMD, 7, 31, target, 6, hop_limit=15))]
        assert "FRAME-5" in done.rules and "FRAME-4" not in done.rules


def test_without_a_parent_that_is_present_there_is_no_way() -> None:
    hub = root()
    hub.registered(1, "d")
    assert dropped("FRAME-5", 1, hub.receive(1, b"x", target=99))
    hub = busy_mid()
    hub.down(PARENT)
    assert dropped("FRAME-5", 3, hub.receive(3, b"x", target=99))
    hub.up(PARENT)
    assert dropped("FRAME-5", 3, hub.receive(3, b"x", target=99))


def test_target_zero_goes_to_every_child_with_a_session_and_to_no_other_link() -> None:
    hub = busy_mid()
    done = hub.receive(PARENT, b"x", source=1)
    assert [send.link for send in sent(done)] == [1, 2, 3]
    assert all(send.frame == Frame(b"x", Major.CMD, 7, 1, 0, 6, hop_limit=15) for send in sent(done))
    assert "FRAME-6" in done.rules and "FRAME-7" not in done.rules
    done = hub.receive(1, b"x", source=LEAF)
    assert [send.link for send in sent(done)] == [2, 3]
    assert {"FRAME-6", "FRAME-7"} <= set(done.rules)


def test_a_broadcast_that_reaches_nobody_is_no_complaint() -> None:
    hub = root()
    hub.registered(1, "d")
    done = hub.receive(1, b"x")
    assert done.outputs == () and "FRAME-7" in done.rules
    done = mid().receive(PARENT, b"x", source=1)
    assert done.outputs == () and "FRAME-6" in done.rules


def test_no_frame_goes_back_where_it_came_from() -> None:
    hub = busy_mid()
    for link, source, target in ((1, LEAF, LEAF), (1, HUB_A, LEAF), (3, 31, 31), (PARENT, 1, 99)):
        done = hub.receive(link, b"x", source=source, target=target)
        assert dropped("FRAME-7", link, done)


def test_every_forward_lowers_the_hop_limit() -> None:
    hub = busy_mid()
    for limit, left in ((0, 15), (2, 1), (255, 254)):
        for target in (LEAF, 0, 99):
            done = hub.receive(3, b"x", target=target, hop_limit=limit)
            assert sent(done) and all(send.frame.hop_limit == left for send in sent(done))
    for target in (LEAF, 0, 99):
        done = hub.receive(3, b"x", target=target, hop_limit=1)
        assert dropped("FRAME-8", 3, done)


def test_the_last_hop_to_this_hub_needs_no_limit() -> None:
    hub = busy_mid()
    done = hub.receive(3, b"x", target=5, hop_limit=1)
    assert "FRAME-3" in done.rules and "FRAME-8" not in done.rules


def test_lowering_in_numbers() -> None:
    assert [lower_hop_limit(Frame(b"", hop_limit=limit)) for limit in (0, 1, 2, 16, 255)] == [15, None, 1, 15, 254]


def test_a_payload_is_opaque_by_its_number_or_by_its_kind() -> None:
    hub = busy_mid()
    done = hub.receive(3, b"x", target=5, sub_proto=2)
    assert "FRAME-3" in done.rules
    done = hub.receive(3, Register("x"), target=5, sub_proto=3)
    assert "FRAME-3" in done.rules
