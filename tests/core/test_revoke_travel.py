"""revoke: how it travels, is numbered, acknowledged, owed and answered."""

from typing import Any

from attrs import evolve

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import Action, Answer, Authenticate, Frame, HubFence, Major, Reason, Revoke
from hubauth.core.model import Neighbour, Pending, Purpose
from hubauth.core.outputs import Note, NoteKind, Send, StartTimer, Tell
from hubauth.core.policy import Dialect
from hubauth.lab.hub import (
    ADMIN,
    HUB_A,
    HUB_B,
    PROVISIONED,
    Hub,
    admission,
    credentials,
    dropped,
    key,
    listing,
    mid,
    numbered,
    question,
    reply,
    root,
    sent,
    with_hubs,
)


def told(reason: Reason, device_id: str = "d", node_id: int = 0) -> Answer:
    return Answer(Action.REVOKE, reason, device_id, node_id)


FENCE = HubFence()
FENCED = Answer(Action.HUB_FENCE, Reason.OK)


def test_a_devices_broadcast_goes_to_every_hub_and_the_parent_each_with_a_fence() -> None:
    hub = with_hubs(mid())
    hub.provisioned(3, "admin")
    hub.admitted_from_above(4, "e", 40)
    revoke = Revoke("d", 30, key("d"))
    asked = hub.next_id
    done = hub.receive(3, revoke, msg_id=77, trace_id=5)
    assert done.outputs == (
        StartTimer(asked, 30.0),
        numbered(PARENT, revoke, 1, ADMIN, asked + 1, trace_id=5),
        question(PARENT, FENCE, hub, asked + 2, target=1),
        numbered(1, revoke, 1, ADMIN, asked + 3, trace_id=5),
        question(1, FENCE, hub, asked + 4, target=HUB_A),
        numbered(2, revoke, 1, ADMIN, asked + 5, trace_id=5),
        question(2, FENCE, hub, asked + 6, target=HUB_B),
    )
    assert hub.state.neighbours[HUB_A] == Neighbour(1, 0, written=1, journal="journal of hub-a")
    assert hub.owed(HUB_A) == {revoke: (1, ADMIN)}
    assert hub.state.pending[asked + 4] == Pending(Purpose.FENCE, Action.HUB_FENCE, 1, number=1)
    assert {"REV-2", "EXT-11", "EXT-12", "EXT-10", "REV-18"} <= set(done.rules)


def test_a_broadcast_does_not_go_back_where_it_came_from() -> None:
    hub = with_hubs(mid())
    done = hub.receive(1, Revoke("d"), msg_id=4, source=99)
    assert [send.link for send in sent(done)] == [PARENT, PARENT, 2, 2]
    assert [send.frame.source for send in sent(done)] == [99, 5, 99, 5]
    done = hub.receive(PARENT, Revoke("e"), msg_id=4, source=1)
    assert [send.link for send in sent(done)] == [1, 1, 2, 2]
    assert "TRUST-6" in done.rules
    assert hub.state.neighbours[0].sent == 1 and hub.state.neighbours[HUB_A].sent == 1


def test_a_hub_that_is_taken_for_a_device_is_never_told_what_it_said_itself() -> None:
    hub = with_hubs(root())
    hub.now_with(provisioned=(evolve(PROVISIONED[0], role="admin"), *PROVISIONED[1:]))
    hub.provisioned(3, "hub-a")
    assert not hub.session(3).is_hub
    done = hub.receive(3, Revoke("d"), msg_id=1)
    assert [send.frame.body for send in sent(done)] == [Revoke("d", seq=1), FENCE] and not sent(done, 3)
    assert not hub.owed(HUB_A)
    assert list(hub.owed(HUB_B)) == [Revoke("d")]


def test_an_operators_broadcast_goes_everywhere() -> None:
    hub = with_hubs(mid())
    done = hub.happens(OperatorRevoke(Revoke("d")))
    assert [(send.link, send.frame.source) for send in sent(done)] == [
        (link, 5) for link in (PARENT, PARENT, 1, 1, 2, 2)
    ]


def test_a_root_owes_nothing_to_a_parent() -> None:
    hub = with_hubs(root())
    hub.happens(OperatorRevoke(Revoke("d")))
    assert sorted(hub.state.neighbours) == [HUB_A, HUB_B]


def test_numbers_increase_per_neighbour_and_direction() -> None:
    hub = with_hubs(root())
    for number, device_id in enumerate("abc", start=1):
        done = hub.happens(OperatorRevoke(Revoke(device_id)))
        revokes = [send.frame.body for send in sent(done) if isinstance(send.frame.body, Revoke)]
        assert [body.seq for body in revokes] == [number] * 2
    hub.receive(1, Revoke("d", seq=50), source=HUB_A)
    assert (hub.state.neighbours[HUB_A].sent, hub.state.neighbours[HUB_A].handled) == (3, 50)
    assert (hub.state.neighbours[HUB_B].sent, hub.state.neighbours[HUB_B].handled) == (4, 0)


def test_a_number_that_was_handled_before_is_ignored() -> None:
    hub = mid()
    hub.receive(PARENT, Revoke("x", seq=5), source=1)
    hub.admitted_from_above(1, "d", 30)
    for number in (1, 4, 5):
        done = hub.receive(PARENT, Revoke("d", seq=number), source=1)
        assert dropped("EXT-10", PARENT, done)
        assert hub.unchanged
    done = hub.receive(PARENT, Revoke("d", seq=6), source=1)
    assert "d" not in hub.state.whitelist and hub.state.neighbours[0].handled == 6
    assert "EXT-10" in done.rules


def test_what_a_child_hub_repeats_spares_a_credential_issued_since() -> None:
    hub = with_hubs(root())
    hub.registered(3, "d")
    hub.receive(1, Revoke("d", seq=5))
    assert "d" not in hub.state.whitelist
    # The acknowledgement is lost with the link, so the child hub says it again when it is back.
    hub.down(1)
    hub.registered(4, "d")
    hub.provisioned(5, "hub-a")
    for number in (4, 5):
        done = hub.receive(5, Revoke("d", seq=number))
        assert dropped("EXT-10", 5, done)
        assert hub.unchanged
    assert hub.session(4).device_id == "d"
    hub.receive(5, Revoke("d", seq=6))
    assert "d" not in hub.state.whitelist and hub.state.neighbours[HUB_A].handled == 6


def test_a_revoke_without_a_number_is_always_acted_on() -> None:
    hub = mid()
    hub.receive(PARENT, Revoke("x", seq=5), source=1)
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(PARENT, Revoke("d"), msg_id=1, source=1)
    assert "d" not in hub.state.whitelist and hub.state.neighbours[0].handled == 5
    assert "EXT-10" not in done.rules


def test_a_number_that_a_device_gives_means_nothing_and_goes_no_further() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    for device_id in ("x", "y"):
        done = hub.receive(3, Revoke(device_id, seq=5), msg_id=5)
        assert "EXT-10" in done.rules  # by this hub's own numbers
    assert len(hub.owed(HUB_A)) == 2 and list(hub.owed(HUB_A)) == [Revoke("x"), Revoke("y")]


def test_a_fence_is_always_answered_and_has_no_effect() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    for link, peer in ((1, HUB_A), (PARENT, 1)):
        done = hub.receive(link, FENCE, source=peer, trace_id=5)
        answer = Answer(Action.HUB_FENCE, Reason.OK)
        assert done.outputs == (reply(link, answer, hub, target=peer, trace_id=5),)
        assert "EXT-11" in done.rules
        assert hub.unchanged


def test_the_answer_to_a_fence_acknowledges_what_went_before_it_and_nothing_after() -> None:
    hub = with_hubs(root())
    fences = []
    for device_id in "abc":
        hub.happens(OperatorRevoke(Revoke(device_id)))
        fences.append(hub.last_question(1))
    done = hub.answered(1, FENCED, msg_id=fences[1])
    assert hub.owed(HUB_A) == {Revoke("c"): (3, 1)}
    assert len(hub.owed(HUB_B)) == 3
    assert done.outputs == () and "EXT-12" in done.rules
    hub.answered(1, FENCED, msg_id=fences[0])
    assert hub.owed(HUB_A) == {Revoke("c"): (3, 1)}
    hub.answered(1, FENCED, msg_id=fences[2])
    assert not hub.owed(HUB_A)
    assert hub.state.neighbours[HUB_A].sent == 3


def test_a_fence_that_is_refused_acknowledges_nothing() -> None:
    hub = mid()
    hub.happens(OperatorRevoke(Revoke("d")))
    done = hub.answered(PARENT, Answer(Action.HUB_FENCE, Reason.FORBIDDEN))
    assert hub.owed(0) == {Revoke("d"): (1, 5)}
    assert dropped("EXT-12", PARENT, done) and not hub.state.pending


def test_the_parent_acknowledges_likewise() -> None:
    hub = mid()
    hub.happens(OperatorRevoke(Revoke("d")))
    hub.answered(PARENT, FENCED)
    assert not hub.owed(0)


def test_of_two_equal_revokes_only_the_newer_one_is_owed() -> None:
    hub = with_hubs(root())
    hub.happens(OperatorRevoke(Revoke("d")))
    first = hub.last_question(1)
    hub.happens(OperatorRevoke(Revoke("d")))
    assert hub.owed(HUB_A) == {Revoke("d"): (2, 1)}
    hub.answered(1, FENCED, msg_id=first)
    assert hub.owed(HUB_A) == {Revoke("d"): (2, 1)}


def test_what_is_owed_is_sent_again_in_order_with_its_numbers_and_one_fence() -> None:
    hub = with_hubs(root())
    for device_id in "cab":
        hub.happens(OperatorRevoke(Revoke(device_id, 30)))
    hub.answered(1, FENCED, msg_id=min(m for m, p in hub.state.pending.items() if p.asked == 1))
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("z")))
    assert not [pending for pending in hub.state.pending.values() if pending.asked == 1]
    hub.up(3)
    asked = hub.next_id
    done = hub.receive(3, credentials("hub-a"))
    assert isinstance(done.outputs[0], Send) and isinstance(done.outputs[0].frame.body, Answer)
    assert done.outputs[1:] == (
        numbered(3, Revoke("a", 30), 2, 1, asked),
        numbered(3, Revoke("b", 30), 3, 1, asked + 1),
        numbered(3, Revoke("z"), 4, 1, asked + 2),
        question(3, FENCE, hub, asked + 3, target=HUB_A),
    )
    assert hub.state.pending[asked + 3] == Pending(Purpose.FENCE, Action.HUB_FENCE, 3, number=4)
    assert {"EXT-11", "EXT-12"} <= set(done.rules)
    hub.answered(3, FENCED)
    assert not hub.owed(HUB_A)


def test_what_is_owed_to_the_parent_is_sent_before_announcements() -> None:
    hub = mid(joined=False)
    hub.provisioned(1, "admin")
    hub.receive(1, Revoke("d"))
    hub.up(PARENT)
    first = hub.next_id
    done = hub.answered(PARENT, admission())
    assert [send.frame.body.action for send in sent(done)] == [  # type: ignore[union-attr]
        Action.REVOKE,
        Action.HUB_FENCE,
        Action.HUB_ONLINE,
    ]
    assert sent(done)[0] == numbered(PARENT, Revoke("d"), 1, ADMIN, first)


def test_a_hub_that_binds_again_on_its_link_is_not_sent_everything_again() -> None:
    hub = with_hubs(root())
    hub.happens(OperatorRevoke(Revoke("d")))
    done = hub.receive(1, credentials("hub-a"))
    assert len(sent(done)) == 1


def test_a_new_neighbour_owes_and_is_owed_nothing() -> None:
    hub = root()
    hub.provisioned(1, "hub-a")
    assert hub.state.neighbours[HUB_A] == Neighbour(journal="journal of hub-a")
    hub.provisioned(2, "admin")
    assert ADMIN not in hub.state.neighbours


def test_without_presence_messages_there_are_no_neighbours() -> None:
    hub = with_hubs(root(dialect=Dialect.FLAT))
    assert not hub.state.neighbours


# Addressed


def test_an_addressed_revoke_is_routed_and_handled_nowhere_else() -> None:
    hub = with_hubs(mid())
    hub.provisioned(3, "admin")
    hub.admitted_from_above(4, "d", 30)
    asked = hub.next_id
    done = hub.receive(3, Revoke("d"), target=HUB_B, msg_id=77, trace_id=5, hop_limit=3)
    onward = Frame(Revoke("d"), Major.CMD, asked + 1, ADMIN, HUB_B, trace_id=5, hop_limit=2)
    assert done.outputs == (StartTimer(asked, 30.0), Send(2, onward))
    assert "d" in hub.state.whitelist
    assert hub.state.neighbours[HUB_B].sent == 0
    assert "REV-3" in done.rules and not {"REV-2", "REV-4", "EXT-10", "EXT-11"} & set(done.rules)


def test_the_way_to_another_hub_is_the_directory_or_up_and_never_back() -> None:
    hub = with_hubs(mid())
    hub.found_below("leaf", 50, 1)
    own = hub.next_id
    done = hub.receive(PARENT, Revoke("d", seq=3), target=50, msg_id=1, source=1)
    assert sent(done) == [Send(1, Frame(Revoke("d"), Major.CMD, own, 1, 50, hop_limit=15))]
    assert hub.state.neighbours[0].handled == 0
    done = hub.receive(1, Revoke("d"), target=99, msg_id=1, source=50)
    assert [(send.link, send.frame.source, send.frame.msg_id) for send in sent(done)] == [(PARENT, 50, own + 1)]
    for link, target in ((1, 50), (PARENT, 99)):
        done = hub.receive(link, Revoke("d"), target=target, msg_id=9, source=1)
        assert dropped("REV-20", link, done)


def test_an_addressed_revoke_that_cannot_be_routed_is_answered_at_the_originators_hub() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    hub.registered(2, "e")
    for target in (99, ADMIN, 2):
        done = hub.receive(1, Revoke("d", 9), target=target)
        assert done.outputs == (reply(1, told(Reason.UNREACHABLE, "d", 9), hub),)
        assert "REV-20" in done.rules
        assert hub.unchanged


def test_an_addressed_revoke_whose_hops_are_used_up_is_answered_at_the_originators_hub() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    done = hub.receive(3, Revoke("d"), target=HUB_A, hop_limit=1)
    assert [send.frame.body for send in sent(done)] == [told(Reason.UNREACHABLE)]


def test_an_addressed_revoke_that_a_hub_in_between_cannot_route_is_dropped() -> None:
    hub = with_hubs(root())
    hub.registered(3, "e")
    for number, (target, hops) in enumerate(((99, 0), (HUB_A, 0), (2, 0), (HUB_B, 1)), start=1):
        done = hub.receive(1, Revoke("d"), target=target, msg_id=number, source=99, hop_limit=hops)
        assert dropped("REV-20", 1, done)
        assert hub.state.neighbours[HUB_B].sent == 0


def test_an_operator_learns_that_there_is_no_way() -> None:
    hub = root()
    done = hub.happens(OperatorRevoke(Revoke("d"), target=99))
    assert done.outputs == (Note(NoteKind.COMMAND_REFUSED, "REV-20", "no way to hub 99 for a revoke"),)
    assert hub.unchanged


def test_an_addressed_revoke_is_not_owed() -> None:
    hub = with_hubs(root())
    hub.happens(OperatorRevoke(Revoke("d"), target=HUB_A))
    assert not hub.state.owed and not hub.state.pending


# Answers


def test_an_answer_is_addressed_to_the_originator_and_routed_by_the_directory() -> None:
    hub = with_hubs(root(**listing(admin2=60)))
    hub.registered(3, "d")
    hub.found_below("admin2", 60, 2)
    done = hub.receive(1, Revoke("d"), msg_id=4, source=60, trace_id=5)
    answer = Frame(told(Reason.OK, "d", 2), Major.OK_RESP, 4, 1, 60, trace_id=5)
    assert sent(done)[0] == Send(2, answer)
    assert {"REV-17", "FRAME-12", "FRAME-13"} <= set(done.rules) and "REV-18" not in done.rules


def test_an_answer_to_a_hubs_operator_goes_to_that_hub() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, Revoke("d"), msg_id=4, source=HUB_A, target=1)
    answer = Frame(told(Reason.NOT_WHITELISTED), Major.ERR_RESP, 4, 1, HUB_A)
    assert sent(done) == [Send(1, answer)]


def test_an_answer_passes_through_towards_its_target() -> None:
    hub = with_hubs(mid())
    hub.found_below("admin2", 60, 2)
    frame: dict[str, Any] = {"msg_id": 4, "source": 77, "trace_id": 5}
    for came_from, target, to in ((1, 60, 2), (PARENT, 60, 2), (1, 99, PARENT)):
        done = hub.receive(
            came_from, told(Reason.OK), target=target, major=Major.OK_RESP, hop_limit=2, flags=1, timestamp=3, **frame
        )
        passed = Frame(told(Reason.OK), Major.OK_RESP, 4, 77, target, trace_id=5, hop_limit=1, flags=1, timestamp=3)
        assert done.outputs == (Send(to, passed),)
        assert hub.unchanged


def test_an_answer_that_leads_back_or_nowhere_or_too_far_is_dropped() -> None:
    hub = with_hubs(mid())
    hub.found_below("admin2", 60, 2)
    for link, target, hops in ((2, 60, 0), (PARENT, 99, 0), (1, 60, 1)):
        done = hub.receive(link, told(Reason.OK), target=target, major=Major.OK_RESP, hop_limit=hops, source=1)
        assert dropped("REV-17", link, done)


def test_the_originators_hub_puts_the_requests_own_number_on_every_answer() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    hub.receive(3, Revoke("d"), msg_id=77, trace_id=5)
    for link in (1, 2, 1):
        done = hub.receive(link, told(Reason.OK, "d", 30), msg_id=1, target=ADMIN, major=Major.OK_RESP)
        assert done.outputs == (reply(3, told(Reason.OK, "d", 30), hub, msg_id=77, trace_id=5),)
        assert "REV-18" in done.rules
    done = hub.receive(1, told(Reason.CREDENTIAL_MISMATCH, "d"), target=ADMIN, major=Major.ERR_RESP)
    assert done.outputs == (reply(3, told(Reason.CREDENTIAL_MISMATCH, "d"), hub, msg_id=77, trace_id=5),)


def test_the_newest_of_several_equal_requests_is_answered() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    for msg_id in (77, 78):
        hub.receive(3, Revoke("d"), msg_id=msg_id)
    done = hub.receive(1, told(Reason.OK), target=ADMIN, major=Major.OK_RESP)
    assert [send.frame.msg_id for send in sent(done)] == [78]


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    assert dropped("REV-18", 1, hub.receive(1, told(Reason.OK), target=ADMIN, major=Major.OK_RESP))
    hub.receive(3, Revoke("d"))
    assert dropped("REV-18", 1, hub.receive(1, told(Reason.OK, "e"), target=ADMIN, major=Major.OK_RESP))
    hub.up(4)
    hub.receive(4, Authenticate("admin", key("admin")))
    assert dropped("REV-18", 1, hub.receive(1, told(Reason.OK), target=ADMIN, major=Major.OK_RESP))


def test_this_hubs_operator_is_told_who_answered_what() -> None:
    hub = with_hubs(mid())
    for link in (1, PARENT):
        done = hub.receive(link, told(Reason.OK, "d", 30), target=5, source=9, major=Major.OK_RESP)
        assert done.outputs == (Tell(9, "d", 30, Reason.OK),)
        assert done.rules == ("REV-17",) and hub.unchanged


def test_devices_answer_no_revokes() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.up(2)
    for link in (1, 2):
        done = hub.receive(link, told(Reason.OK), target=1, major=Major.OK_RESP)
        assert dropped("FRAME-16", link, done)
        assert hub.unchanged


def test_a_hub_that_was_refused_its_place_hears_of_a_revoke_when_it_is_back() -> None:
    hub: Hub = with_hubs(root())
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("d")))
    hub.up(4)
    hub.receive(4, Authenticate("hub-a", "x" * 43))
    own = hub.next_id
    done = hub.receive(4, credentials("hub-a"))
    assert numbered(4, Revoke("d"), 1, 1, own) in sent(done)
