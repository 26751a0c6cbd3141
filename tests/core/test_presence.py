"""Binding, announcements, and the place a device was before."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Frame,
    HubDismiss,
    HubOnline,
    Major,
    Offline,
    Reason,
    Register,
)
from hubauth.core.model import Pending, Purpose, Route, Session
from hubauth.core.outputs import Close, Send
from hubauth.core.policy import Dialect
from hubauth.lab.hub import (
    HUB_A,
    HUB_B,
    NODE,
    credentials,
    dropped,
    issued,
    key,
    listing,
    mid,
    notes,
    question,
    reply,
    root,
    sent,
    with_hubs,
)


def announcement(device_id: str, node_id: int) -> HubOnline:
    return HubOnline(device_id, node_id)


# Binding


def test_a_link_bound_to_another_device_first_takes_that_one_offline() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Register("e"))
    told = hub.next_id
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "e", 31, key("e"), NODE))
    assert sent(done) == [
        question(PARENT, AssistOffline("d", 30), hub, told, target=1),
        question(PARENT, announcement("e", 31), hub, told + 1, target=1),
        reply(1, Answer(Action.REGISTER, Reason.OK, "e", 31, key("e"), NODE), hub),
    ]
    assert hub.state.directory[30] == Route("d", 30, False)
    assert hub.state.directory[31] == Route("e", 31, True)
    assert hub.session(1) == Session("e", 31, False)
    assert {"BIND-2", "OFF-5", "EXT-8"} <= set(done.rules)


def test_the_same_device_again_on_its_link_supersedes_nobody() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30, NODE)
    told = hub.next_id
    done = hub.receive(1, Authenticate("d", key("d")))
    assert sent(done)[0] == question(PARENT, announcement("d", 30), hub, told, target=1)
    assert len(sent(done)) == 2 and not any(isinstance(output, Close) for output in done.outputs)
    assert not {"BIND-2", "BIND-3"} & set(done.rules)


def test_a_device_on_a_new_link_loses_its_session_on_the_old_one_which_is_closed() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.up(2)
    done = hub.receive(2, Authenticate("d", issued(1)))
    assert done.outputs[0] == Close(1)
    assert 1 not in hub.state.links and hub.session(2).node_id == 2
    assert hub.is_online(2)
    assert "BIND-3" in done.rules and "BIND-4" not in done.rules


def test_or_else_the_old_link_is_told_offline() -> None:
    hub = root(close_superseded=False)
    hub.registered(1, "d")
    hub.up(2)
    told = hub.next_id
    done = hub.receive(2, Authenticate("d", issued(1)))
    message = Offline("d", 2, "superseded")
    assert done.outputs[0] == Send(1, Frame(message, Major.MSG, told, 1, 0))
    assert hub.is_free(1) and hub.session(2).node_id == 2


def test_without_a_message_for_it_the_old_link_is_told_nothing() -> None:
    hub = root(close_superseded=False, dialect=Dialect.FLAT)
    hub.registered(1, "d")
    hub.up(2)
    done = hub.receive(2, Authenticate("d"))
    assert [send.link for send in sent(done)] == [2]
    assert hub.is_free(1)


def test_the_old_link_of_a_hub_is_closed_all_the_same() -> None:
    hub = with_hubs(root(close_superseded=False))
    hub.up(3)
    done = hub.receive(3, credentials("hub-a"))
    assert done.outputs[0] == Close(1) and 1 not in hub.state.links
    assert {"BIND-3", "BIND-4", "LINK-11"} <= set(done.rules)


def test_a_superseded_session_is_announced_and_not_reported_offline() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30, NODE)
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert [send.frame.body for send in sent(done, PARENT)] == [announcement("d", 30)]


def test_what_a_superseded_link_had_asked_is_forgotten() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30, NODE)
    hub.receive(1, Authenticate("x", key("x")))
    assert hub.state.pending
    hub.up(2)
    done = hub.receive(2, Authenticate("d", key("d")))
    assert not hub.state.pending
    assert "LINK-7" in done.rules


def test_a_hub_that_binds_again_on_its_link_keeps_what_is_behind_it() -> None:
    hub = mid()
    hub.provisioned(1, "hub-a")
    hub.found_below("d", 30, 1)
    done = hub.receive(1, credentials("hub-a"))
    assert hub.is_online(30) and "OFF-8" not in done.rules


def test_a_hub_on_a_new_link_counts_as_the_loss_of_its_old_one() -> None:
    hub = mid()
    hub.provisioned(1, "hub-a")
    hub.found_below("d", 30, 1)
    hub.up(3)
    told = hub.next_id
    done = hub.receive(3, credentials("hub-a"))
    assert sent(done, PARENT) == [
        question(PARENT, AssistOffline("d", 30), hub, told, target=1),
        question(PARENT, announcement("hub-a", HUB_A), hub, told + 1, target=1),
    ]
    assert not hub.is_online(30) and hub.is_online(HUB_A)
    assert Close(1) in done.outputs and hub.session(3).is_hub
    assert {"BIND-3", "BIND-4", "OFF-8"} <= set(done.rules)


# Announcements


def test_every_binding_is_announced_upwards_before_it_is_answered() -> None:
    for dialect in (Dialect.AUTH, Dialect.LOGIN):
        hub = mid(dialect=dialect)
        hub.up(1)
        hub.receive(1, Register("d"))
        told = hub.next_id
        done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE))
        assert sent(done) == [
            question(PARENT, announcement("d", 30), hub, told, target=1),
            reply(1, Answer(Action.REGISTER, Reason.OK, "d", 30, key("d"), NODE), hub),
        ]
        assert not hub.state.pending
        assert "EXT-8" in done.rules


def test_nothing_is_announced_to_nobody_or_without_presence_messages() -> None:
    hub = mid(joined=False)
    hub.up(PARENT)
    hub.up(1)
    done = hub.receive(1, Authenticate("admin", key("admin")))
    assert sent(done, PARENT) == [] and "EXT-8" not in done.rules
    hub = mid(dialect=Dialect.FLAT)
    hub.up(1)
    hub.receive(1, Register("d"))
    done = hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert sent(done, PARENT) == []
    hub.down(1)
    assert hub.state.directory[30] == Route("d", 30, False)


def test_an_announcement_points_the_directory_at_the_sender_and_is_passed_up() -> None:
    hub = with_hubs(mid())
    told = hub.next_id
    done = hub.receive(1, announcement("d", 30))
    assert done.outputs == (question(PARENT, announcement("d", 30), hub, told, target=1),)
    assert hub.state.directory[30] == Route("d", HUB_A, True)
    assert not hub.state.pending
    assert "BIND-6" in done.rules


def test_an_announcement_is_never_answered() -> None:
    hub = with_hubs(root(**listing(d=30, e=31)))
    done = hub.receive(1, announcement("d", 30))
    assert done.outputs == ()


def test_an_announcement_that_cannot_be_true_is_dropped() -> None:
    hub = with_hubs(root())
    hub.receive(1, AssistRegister("d"))
    for message in (announcement("d", 3), announcement("e", 0), announcement("hub", 1)):
        assert dropped("BIND-10", 1, hub.receive(1, message))
        assert hub.unchanged
    hub = mid()
    assert dropped("BIND-10", PARENT, hub.receive(PARENT, announcement("d", 30), source=1))
    assert hub.unchanged


def test_a_hub_cannot_announce_itself() -> None:
    hub = with_hubs(root())
    assert dropped("BIND-10", 1, hub.receive(1, announcement("hub-a", HUB_A)))
    assert hub.unchanged and hub.session(1).node_id == HUB_A
    assert sent(hub.receive(2, b"hello", target=HUB_A))[0].link == 1


def test_a_hub_below_cannot_announce_the_one_above_by_its_name() -> None:
    hub = with_hubs(mid())
    for node_id in (5, 30):
        assert dropped("BIND-10", 1, hub.receive(1, announcement("mid", node_id)))


def test_a_binding_that_the_authority_makes_beats_what_other_hubs_said() -> None:
    hub = with_hubs(root())
    for device_id, node_id in (("stranger", 2), ("d", 40), ("e", 3), ("f", 41)):
        hub.found_below(device_id, node_id, 1)
    hub.receive(1, AssistOffline("f", 41))
    assert [hub.registered(3, "d"), hub.registered(4, "e"), hub.registered(5, "f")] == [2, 3, 4]
    assert not {40, 41} & set(hub.state.directory)
    assert hub.state.directory[2] == Route("d", 2, True)


def test_an_announcement_against_the_configuration_is_dropped() -> None:
    hub = with_hubs(mid(**listing(listed=30)))
    for device_id, node_id in (("admin", 21), ("x", 20), ("listed", 31), ("x", 30)):
        assert dropped("BIND-10", 1, hub.receive(1, announcement(device_id, node_id)))
    hub.found_below("admin", 20, 1)


def test_an_announcement_against_a_binding_known_here_is_dropped() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    hub.found_below("leaf", 40, 2)
    for device_id, node_id in (("d", 31), ("e", 30), ("leaf", 41), ("x", 40)):
        assert dropped("BIND-10", 1, hub.receive(1, announcement(device_id, node_id)))
        assert hub.unchanged


def test_a_node_that_was_online_through_another_hub_is_taken_from_it() -> None:
    hub = with_hubs(root(**listing(d=30, e=31)))
    hub.found_below("d", 30, 1)
    order = hub.next_id
    done = hub.receive(2, announcement("d", 30))
    assert done.outputs == (question(1, HubDismiss("d", 30), hub, order, target=HUB_A),)
    assert hub.state.directory[30] == Route("d", HUB_B, True)
    assert hub.state.pending[order] == Pending(Purpose.DISMISS, Action.HUB_DISMISS, asked=1, device_id="d", node_id=30)
    assert {"BIND-6", "EXT-9"} <= set(done.rules)


def test_a_device_that_binds_here_is_taken_from_the_hub_below() -> None:
    hub = with_hubs(root())
    hub.receive(1, AssistRegister("d"))
    hub.found_below("d", 2, 1)
    hub.up(3)
    done = hub.receive(3, Register("d"))
    orders = [send for send in sent(done, 1) if send.frame.body == HubDismiss("d", 2)]
    assert len(orders) == 1 and "EXT-9" in done.rules
    assert hub.state.directory[2] == Route("d", 2, True)


def test_the_same_hub_again_or_a_node_that_was_offline_is_no_reason_for_an_order() -> None:
    hub = with_hubs(root(**listing(d=30, e=31)))
    hub.found_below("d", 30, 1)
    done = hub.receive(1, announcement("d", 30))
    assert done.outputs == () and "EXT-9" not in done.rules
    hub.receive(1, AssistOffline("d", 30))
    done = hub.receive(2, announcement("d", 30))
    assert done.outputs == () and "EXT-9" not in done.rules


def test_an_announced_node_with_a_session_here_loses_it_without_a_report() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    told = hub.next_id
    done = hub.receive(1, announcement("d", 30))
    assert done.outputs == (Close(3), question(PARENT, announcement("d", 30), hub, told, target=1))
    assert hub.state.directory[30] == Route("d", HUB_A, True)
    assert "d" in hub.state.whitelist
    assert "BIND-8" in done.rules and "OFF-5" not in done.rules


def test_while_an_order_is_unanswered_that_hubs_announcements_of_the_node_are_ignored() -> None:
    hub = with_hubs(root(**listing(d=30, e=31)))
    hub.found_below("d", 30, 1)
    hub.receive(2, announcement("d", 30))
    assert dropped("BIND-9", 1, hub.receive(1, announcement("d", 30)))
    assert hub.unchanged
    hub.receive(1, announcement("e", 31))
    assert hub.state.directory[31].via == HUB_A
    hub.receive(2, announcement("d", 30))
    done = hub.answered(1, Answer(Action.HUB_DISMISS, Reason.OK, "d", 30))
    assert done.outputs == () and not hub.state.pending
    hub.receive(1, announcement("d", 30))
    assert hub.state.directory[30].via == HUB_A


def test_an_order_ends_with_the_link_it_was_sent_on() -> None:
    hub = with_hubs(root(**listing(d=30, e=31)))
    hub.found_below("d", 30, 1)
    hub.receive(2, announcement("d", 30))
    done = hub.down(1)
    assert done.outputs == () and not hub.state.pending
    hub.provisioned(3, "hub-a")
    hub.found_below("d", 30, 3)
    assert hub.state.directory[30].via == HUB_A


def test_notes_about_announcements_name_the_node() -> None:
    hub = with_hubs(root())
    note = notes(hub.receive(1, announcement("hub", 1)))[0]
    assert "node 1 " in note.detail


def test_the_authority_believes_nobody_who_announces_what_it_has_given_to_another() -> None:
    hub = with_hubs(root())
    hub.receive(1, AssistRegister("lamp"))
    assert dropped("BIND-10", 2, hub.receive(2, announcement("stranger", 2)))
    assert hub.unchanged
    hub.found_below("lamp", 2, 1)


def test_nor_if_the_configuration_names_that_node_too() -> None:
    hub = with_hubs(root())
    hub.receive(1, AssistRegister("lamp"))
    hub.now_with(node_roles={2: "node", 40: "node"})
    assert dropped("BIND-10", 2, hub.receive(2, announcement("stranger", 2)))
    hub.found_below("lamp", 2, 1)
    # Named, and given to nobody: whoever is provisioned as that node elsewhere.
    hub.found_below("porter", 40, 2)
