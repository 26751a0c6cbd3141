"""offline and assist_offline."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    GetPerms,
    HubDismiss,
    HubOnline,
    Offline,
    Reason,
)
from hubauth.core.model import Pending, Purpose, Route
from hubauth.core.outputs import Close
from hubauth.core.policy import Dialect
from hubauth.lab.hub import HUB_A, HUB_B, NODE, key, listing, mid, question, reply, root, sent, with_hubs


def about(reason: Reason, node_id: int, action: Action = Action.OFFLINE, device_id: str = "d") -> Answer:
    return Answer(action, reason, device_id, node_id)


def test_a_device_that_says_offline_loses_its_session_and_keeps_its_entry() -> None:
    for node_id in (2, 0):
        hub = root()
        hub.registered(1, "d")
        before = hub.state
        done = hub.receive(1, Offline("d", node_id), trace_id=5)
        assert done.outputs == (reply(1, about(Reason.OK, 2), hub, trace_id=5),)
        assert hub.is_free(1)
        assert hub.state.directory[2] == Route("d", 2, False)
        assert (hub.state.whitelist, hub.state.registry) == (before.whitelist, before.registry)
        assert {"OFF-1", "OFF-2"} <= set(done.rules)


def test_an_offline_need_not_be_answered() -> None:
    hub = root(answer_offline=False)
    hub.registered(1, "d")
    done = hub.receive(1, Offline("d"))
    assert done.outputs == () and "OFF-2" not in done.rules
    assert hub.is_free(1) and not hub.is_online(2)


def test_an_offline_about_somebody_else_who_is_online_is_forbidden() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.registered(2, "e")
    for message in (Offline("e"), Offline("e", 2), Offline("e", 3), Offline("d", 3), Offline("x", 3)):
        done = hub.receive(1, message)
        assert done.outputs == (reply(1, about(Reason.FORBIDDEN, message.node_id, device_id=message.device_id), hub),)
        assert "OFF-11" in done.rules and not {"OFF-1", "OFF-10"} & set(done.rules)
        assert hub.unchanged


def test_an_offline_that_names_nobody_who_is_online_finds_nothing_in_the_index() -> None:
    hub = root()
    hub.registered(1, "d")
    hub.registered(2, "e")
    hub.down(2)
    for message in (Offline("e", 3), Offline("e"), Offline("x", 99), Offline("x", 2), Offline("d", 99)):
        done = hub.receive(1, message)
        assert done.outputs == (reply(1, about(Reason.NOT_INDEXED, message.node_id, device_id=message.device_id), hub),)
        assert "OFF-10" in done.rules and not {"OFF-1", "OFF-11"} & set(done.rules)
        assert hub.unchanged
    hub.up(3)
    for message in (Offline("d", 2), Offline("e", 3), Offline("x")):
        done = hub.receive(3, message)
        assert done.outputs == (reply(3, about(Reason.NOT_INDEXED, message.node_id, device_id=message.device_id), hub),)
        assert "OFF-10" in done.rules and hub.unchanged


def test_what_a_device_asked_before_it_left_is_not_told_to_a_link_without_a_session() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, GetPerms(40))
    question_id = hub.last_question(PARENT)
    hub.receive(1, Offline("d"))
    assert hub.is_free(1)
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 40, grant=NODE), msg_id=question_id)
    assert sent(done, 1) == []


def test_what_a_hub_asked_before_it_left_is_not_told_to_a_link_without_a_session() -> None:
    hub = mid()
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("d"))
    question_id = hub.last_question(PARENT)
    hub.receive(1, Offline("hub-a"))
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"))
    assert sent(hub.answered(PARENT, answer, msg_id=question_id), 1) == []


def test_a_link_with_a_session_that_goes_down_takes_its_device_offline() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    told = hub.next_id
    done = hub.down(1)
    assert done.outputs == (question(PARENT, AssistOffline("d", 30), hub, told, target=1),)
    assert 1 not in hub.state.links and not hub.is_online(30) and "d" in hub.state.whitelist
    assert {"OFF-4", "OFF-5"} <= set(done.rules)


def test_a_link_without_a_session_that_goes_down_takes_nobody_offline() -> None:
    hub = mid()
    hub.up(1)
    done = hub.down(1)
    assert done.outputs == () and "OFF-4" not in done.rules
    assert 1 not in hub.state.links


def test_a_device_that_leaves_is_reported_up_after_its_answer() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    told = hub.next_id
    done = hub.receive(1, Offline("d"))
    assert done.outputs == (
        reply(1, about(Reason.OK, 30), hub),
        question(PARENT, AssistOffline("d", 30), hub, told, target=1),
    )
    assert "OFF-5" in done.rules and not hub.state.pending


def test_nothing_is_reported_to_a_parent_that_is_away_or_has_no_word_for_it() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.down(PARENT)
    done = hub.down(1)
    assert done.outputs == () and "OFF-5" not in done.rules
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    hub.receive(1, AssistAuthenticate("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    done = hub.down(1)
    assert done.outputs == () and not hub.is_online(30)


def test_a_report_through_the_child_that_has_the_node_is_acted_on_answered_and_passed_up() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    told = hub.next_id
    done = hub.receive(1, AssistOffline("d", 30), trace_id=5)
    assert done.outputs == (
        reply(1, about(Reason.OK, 30, Action.ASSIST_OFFLINE), hub, target=HUB_A, trace_id=5),
        question(PARENT, AssistOffline("d", 30), hub, told, target=1),
    )
    assert hub.state.directory[30] == Route("d", HUB_A, False)
    assert {"OFF-6", "OFF-5"} <= set(done.rules)


def test_a_late_report_does_not_erase_a_newer_route() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    hub.found_below("d", 30, 2)
    done = hub.receive(1, AssistOffline("d", 30))
    assert done.outputs == (reply(1, about(Reason.NOT_INDEXED, 30, Action.ASSIST_OFFLINE), hub, target=HUB_A),)
    assert "OFF-7" in done.rules and "OFF-6" not in done.rules
    assert hub.unchanged


def test_a_report_about_an_unknown_or_offline_node_or_one_with_a_session_here_is_not_indexed() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "e", 31)
    hub.found_below("d", 30, 1)
    hub.receive(1, AssistOffline("d", 30))
    for device_id, node_id in (("d", 30), ("e", 31), ("x", 99), ("hub-a", HUB_A)):
        done = hub.receive(1, AssistOffline(device_id, node_id))
        answer = about(Reason.NOT_INDEXED, node_id, Action.ASSIST_OFFLINE, device_id)
        assert done.outputs == (reply(1, answer, hub, target=HUB_A),)
        assert "OFF-7" in done.rules
        assert hub.unchanged


def test_a_lost_hub_takes_everything_behind_it_offline_and_reports_each() -> None:
    hub = with_hubs(mid())
    for node_id in (32, 30, 31):
        hub.found_below(f"d{node_id}", node_id, 1)
    hub.found_below("e", 40, 2)
    told = hub.next_id
    done = hub.down(1)
    expected = [AssistOffline(f"d{node_id}", node_id) for node_id in (30, 31, 32)]
    expected.append(AssistOffline("hub-a", HUB_A))
    assert sent(done) == [question(PARENT, body, hub, told + number, target=1) for number, body in enumerate(expected)]
    assert not any(map(hub.is_online, (30, 31, 32, HUB_A))) and hub.is_online(40)
    assert hub.state.directory[30] == Route("d30", HUB_A, False)
    assert {"OFF-8", "OFF-4"} <= set(done.rules)


def test_the_answer_to_a_report_is_not_awaited_and_changes_nothing() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    told = hub.next_id
    hub.down(1)
    assert not hub.state.pending
    for reason in (Reason.OK, Reason.NOT_INDEXED):
        done = hub.receive(PARENT, about(reason, 30, Action.ASSIST_OFFLINE), msg_id=told, source=1)
        assert done.outputs == () and hub.unchanged
        assert {"OFF-9", "FRAME-16"} <= set(done.rules)


# A hub that says offline


def test_an_offline_from_a_child_hub_about_a_device_means_what_its_report_would() -> None:
    for message in (Offline("d", 30, "asleep"), Offline("d", 0, "asleep")):
        hub = with_hubs(mid())
        hub.found_below("d", 30, 1)
        told = hub.next_id
        done = hub.receive(1, message, trace_id=5)
        assert done.outputs == (
            reply(1, about(Reason.OK, 30), hub, target=HUB_A, trace_id=5),
            question(PARENT, AssistOffline("d", 30, "asleep"), hub, told, target=1),
        )
        assert hub.state.directory[30] == Route("d", HUB_A, False) and hub.session(1).node_id == HUB_A
        assert {"OFF-12", "OFF-6", "OFF-5"} <= set(done.rules) and "OFF-1" not in done.rules


def test_it_too_need_not_be_answered() -> None:
    hub = with_hubs(root(answer_offline=False, **listing(d=30)))
    hub.found_below("d", 30, 1)
    assert hub.receive(1, Offline("d", 30)).outputs == () and not hub.is_online(30)


def test_an_offline_from_a_child_hub_about_what_is_not_through_it_changes_nothing() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "e", 31)
    hub.found_below("d", 30, 2)
    for device_id, node_id in (("d", 30), ("d", 0), ("e", 31), ("e", 0), ("x", 99), ("x", 0), ("d", HUB_A)):
        done = hub.receive(1, Offline(device_id, node_id))
        assert done.outputs == (reply(1, about(Reason.NOT_INDEXED, node_id, device_id=device_id), hub, target=HUB_A),)
        assert {"OFF-12", "OFF-7"} <= set(done.rules) and hub.unchanged


def test_an_offline_from_a_child_hub_about_itself_is_its_own() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    done = hub.receive(1, Offline("hub-a", HUB_A, "maintenance"))
    assert "OFF-1" in done.rules and "OFF-12" not in done.rules and hub.is_free(1)
    reports = [send.frame.body for send in sent(done, PARENT)]
    assert reports == [AssistOffline("d", 30), AssistOffline("hub-a", HUB_A, "maintenance")]


def test_a_name_that_nobody_has_is_nobody_whatever_nodes_there_are() -> None:
    hub = root(node_id=4, first_node_id=1)
    assert (hub.registered(1, "d"), hub.registered(2, "e")) == (1, 2)
    assert hub.receive(2, Offline("x")).outputs == (reply(2, about(Reason.NOT_INDEXED, 0, device_id="x"), hub),)
    hub = with_hubs(root(node_id=4, **listing(leaf=1)))
    hub.found_below("leaf", 1, 1)
    assert "OFF-7" in hub.receive(1, Offline("x")).rules and hub.is_online(1)


# The reason


def test_the_reason_of_an_offline_is_passed_on_with_the_report() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(1, Offline("d", 30, "client disconnect"))
    assert [send.frame.body for send in sent(done, PARENT)] == [AssistOffline("d", 30, "client disconnect")]
    assert "OFF-13" in done.rules


def test_the_reason_of_a_report_is_passed_on_with_it() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    done = hub.receive(1, AssistOffline("d", 30, "client disconnect"))
    assert [send.frame.body for send in sent(done, PARENT)] == [AssistOffline("d", 30, "client disconnect")]
    assert "OFF-13" in done.rules


def test_a_report_without_a_node_is_about_the_device_it_names() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    done = hub.receive(1, AssistOffline("x"))
    assert [send.frame.body for send in sent(done)] == [about(Reason.NOT_INDEXED, 0, Action.ASSIST_OFFLINE, "x")]
    done = hub.receive(1, AssistOffline("d"))
    assert [send.frame.body for send in sent(done, PARENT)] == [AssistOffline("d", 30)]
    assert {"OFF-12", "OFF-6"} <= set(done.rules) and not hub.is_online(30)


def test_a_parent_has_nothing_to_report() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    for message in (AssistOffline("d", 30), AssistOffline("d"), AssistOffline("x", 99), AssistOffline("x")):
        done = hub.receive(PARENT, message, source=1)
        answer = about(Reason.NOT_INDEXED, message.node_id, Action.ASSIST_OFFLINE, message.device_id)
        assert done.outputs == (reply(PARENT, answer, hub, target=1),)
        assert "OFF-7" in done.rules and hub.unchanged


# Orders of the parent


def test_a_child_hub_gives_no_orders() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    done = hub.receive(2, HubDismiss("d", 30))
    assert done.outputs == (reply(2, about(Reason.FORBIDDEN, 30, Action.HUB_DISMISS), hub, target=HUB_B),)
    assert "EXT-9" in done.rules and hub.unchanged


def test_a_hub_told_that_its_own_node_is_superseded_ends_the_session_and_reports_nothing() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(PARENT, HubDismiss("d", 30), source=1, trace_id=5)
    answer = about(Reason.OK, 30, Action.HUB_DISMISS)
    assert done.outputs == (Close(1), reply(PARENT, answer, hub, target=1, trace_id=5))
    assert 1 not in hub.state.links and not hub.is_online(30) and "d" in hub.state.whitelist
    assert "BIND-12" in done.rules and "OFF-5" not in done.rules


def test_or_it_passes_the_order_down() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    order = hub.next_id
    done = hub.receive(PARENT, HubDismiss("d", 30), source=1)
    assert done.outputs == (
        question(1, HubDismiss("d", 30), hub, order, target=HUB_A),
        reply(PARENT, about(Reason.OK, 30, Action.HUB_DISMISS), hub, target=1),
    )
    assert hub.state.directory[30] == Route("d", HUB_A, False)
    assert hub.state.pending[order] == Pending(Purpose.DISMISS, Action.HUB_DISMISS, 1, device_id="d", node_id=30)
    assert "BIND-12" in done.rules


def test_an_order_about_a_node_that_is_not_online_here_is_not_indexed() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, Offline("d"))
    for device_id, node_id in (("d", 30), ("x", 99)):
        done = hub.receive(PARENT, HubDismiss(device_id, node_id), source=1)
        answer = about(Reason.NOT_INDEXED, node_id, Action.HUB_DISMISS, device_id)
        assert done.outputs == (reply(PARENT, answer, hub, target=1),)
        assert "EXT-9" in done.rules and "BIND-12" not in done.rules
        assert hub.unchanged


def test_an_order_is_obeyed_without_looking_at_the_name() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(PARENT, HubDismiss("x", 30), source=1)
    assert not hub.is_online(30)


def test_a_device_dismissed_from_above_can_authenticate_again() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(PARENT, HubDismiss("d", 30), source=1)
    hub.up(2)
    hub.receive(2, Authenticate("d", key("d")))
    done = hub.told_nothing(30)
    assert sent(done)[0].frame.body == HubOnline("d", 30)
    assert hub.session(2).node_id == 30
