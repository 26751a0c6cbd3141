"""Which frames are served at all, and how answers are matched."""

from hubauth.core.inputs import PARENT, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    Grant,
    HubOnline,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import Session
from hubauth.core.outputs import Note, NoteKind
from hubauth.core.policy import Policy, Trust
from hubauth.lab.hub import (
    HUB_A,
    HUB_B,
    NODE,
    Hub,
    dropped,
    issued,
    key,
    listing,
    mid,
    notes,
    reply,
    root,
    sent,
    with_hubs,
)

ASSISTS: tuple[Request, ...] = (
    AssistRegister("x"),
    AssistAuthenticate("x", key("x")),
    AssistQueryCredential("x"),
    AssistOffline("x", 9),
)
OTHERS: tuple[Request, ...] = (
    *ASSISTS,
    Revoke("x"),
    Offline("x"),
    GetPerms(9),
    ListRoles(),
    PermsInvalidate(),
)


def refused(message: Request) -> Answer:
    """What a link without a session is told."""
    if isinstance(message, Offline):
        return Answer(message.action, Reason.NOT_INDEXED, message.device_id, message.node_id)
    return forbidden(message)


def forbidden(message: Request) -> Answer:
    device_id, node_id = getattr(message, "device_id", ""), getattr(message, "node_id", 0)
    return Answer(message.action, Reason.FORBIDDEN, device_id, node_id)


def test_without_a_session_only_register_and_authenticate_are_served() -> None:
    for message in OTHERS:
        hub = root()
        hub.up(1)
        for source in (0, 99):
            done = hub.receive(1, message, source=source, trace_id=3)
            assert done.outputs == (reply(1, refused(message), hub, trace_id=3),)
            assert ("OFF-10" if isinstance(message, Offline) else "FRAME-23") in done.rules
            assert hub.unchanged


def test_register_and_authenticate_are_served_with_any_source_target_and_kind() -> None:
    for header in ({"source": 99}, {"target": 99}, {"major": Major.MSG}, {"source": 1, "target": 1}):
        hub = root()
        hub.registered(1, "other")
        done = hub.receive(1, Register("d"), **header)
        assert hub.session(1).device_id == "d" and "FRAME-10" in done.rules
        hub.registered(2, "e")
        done = hub.receive(2, Authenticate("d", issued(2)), **header)
        assert hub.session(2).device_id == "d" and "FRAME-10" in done.rules


def test_any_other_request_must_come_from_a_reachable_source() -> None:
    for message in (*ASSISTS, Offline("hub-a"), GetPerms(1), ListRoles(), PermsInvalidate()):
        hub = with_hubs(root(**listing(leaf=30)))
        hub.found_below("leaf", 30, 1)
        for source in (99, HUB_B):
            assert dropped("FRAME-22", 1, hub.receive(1, message, source=source))
            assert hub.unchanged
        assert "FRAME-22" not in hub.receive(1, message, source=30).rules


def test_on_a_devices_link_source_zero_means_that_device() -> None:
    for message in (GetPerms(1), ListRoles(), PermsInvalidate(), Revoke("x", credential=key("x")), Offline("admin")):
        named, unnamed = root(), root()
        for hub in (named, unnamed):
            hub.provisioned(1, "admin")
        done = unnamed.receive(1, message, source=0)
        assert done.outputs == named.receive(1, message).outputs and unnamed.state == named.state
        assert "FRAME-21" in done.rules and "FRAME-22" not in done.rules
    hub = root()
    hub.registered(1, "d")
    assert {"FRAME-21", "TRUST-3"} <= set(hub.receive(1, AssistRegister("x"), source=0).rules)


def test_a_held_request_with_source_zero_is_decided_for_the_session() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    assert "FRAME-21" in hub.receive(1, Revoke("x"), source=0).rules
    grant = Grant("admin", ("auth.revoke",))
    done = hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 30, grant=grant))
    assert [send.frame.source for send in sent(done, PARENT) if isinstance(send.frame.body, Revoke)] == [30]


def test_a_devices_revoke_must_come_from_itself_and_a_hubs_may_come_from_anybody() -> None:
    hub = with_hubs(root())
    hub.provisioned(3, "admin")
    assert dropped("FRAME-22", 3, hub.receive(3, Revoke("x"), source=99))
    done = hub.receive(1, Revoke("x"), source=99)
    assert "FRAME-22" not in done.rules and "REV-2" in done.rules
    done = hub.receive(1, Answer(Action.REVOKE, Reason.OK, "x"), source=99, target=HUB_B, major=Major.OK_RESP)
    assert [send.link for send in sent(done)] == [2]


def test_of_several_faults_the_first_in_the_list_decides() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    hub.up(4)
    bad = Malformed(Action.ASSIST_REGISTER, "?")
    in_order = (
        ("FRAME-20", 9, Malformed(None, "?"), 99),
        ("FRAME-16", 3, Answer(Action.REVOKE, Reason.OK, "x"), 99),
        ("FRAME-22", 3, Answer(Action.ASSIST_REGISTER, Reason.OK, "x"), 99),
        ("FRAME-16", 4, Answer(Action.ASSIST_REGISTER, Reason.OK, "x"), 99),
        ("FRAME-18", 4, Malformed(None, "?"), 99),
        ("FRAME-18", 3, Malformed(Action.ASSIST_REGISTER, "?", is_answer=True), 99),
        ("FRAME-19", PARENT, Malformed(Action.OFFLINE, "?"), 99),
        ("FRAME-17", PARENT, bad, 99),
        ("FRAME-17", 4, Malformed(Action.REGISTER, "?"), 99),
        ("FRAME-23", 4, bad, 99),
        ("OFF-10", 4, Malformed(Action.OFFLINE, "?"), 99),
        ("FRAME-22", 3, bad, 99),
        ("TRUST-3", 3, bad, 30),
        ("FRAME-17", 1, bad, HUB_A),
        ("FRAME-17", 3, Malformed(Action.REVOKE, "?"), 30),
    )
    told = {"FRAME-10", "FRAME-12", "FRAME-13", "FRAME-14"}
    for rule, link, body, source in in_order:
        done = hub.receive(link, body, source=source)
        assert set(done.rules) - told == {rule}, (rule, done.rules)
        assert hub.unchanged


def test_an_answer_too_must_come_from_a_reachable_source() -> None:
    hub = with_hubs(root(**listing(d=30)))
    hub.found_below("d", 30, 1)
    hub.found_below("d", 30, 2)
    done = hub.answered(1, Answer(Action.ASSIST_OFFLINE, Reason.OK, "d", 30), source=99)
    assert dropped("FRAME-22", 1, done)
    assert hub.unchanged


def test_assists_are_for_hub_links_and_the_parent_link() -> None:
    for message in ASSISTS:
        hub = root()
        hub.registered(1, "d")
        done = hub.receive(1, message)
        assert done.outputs == (reply(1, forbidden(message), hub),)
        assert "TRUST-3" in done.rules
        assert hub.unchanged
        hub = with_hubs(mid())
        for link, source in ((1, HUB_A), (PARENT, 1)):
            assert "TRUST-3" not in hub.receive(link, message, source=source).rules


def test_an_announcement_from_a_device_is_dropped() -> None:
    hub = root()
    hub.registered(1, "d")
    done = hub.receive(1, HubOnline("e", 9))
    assert dropped("EXT-1", 1, done) and hub.unchanged


def test_what_only_devices_ask_is_forbidden_on_the_parent_link() -> None:
    for message in (Register("d"), Authenticate("d", key("d")), Offline("d")):
        hub = mid()
        done = hub.receive(PARENT, message, source=1)
        target = 1 if isinstance(message, Offline) else 0
        assert done.outputs == (reply(PARENT, forbidden(message), hub, target=target),)
        assert "FRAME-19" in done.rules
        assert hub.unchanged


def test_other_requests_of_the_parent_are_served_even_before_it_is_present() -> None:
    hub = mid(joined=False)
    hub.up(PARENT)
    for message in (AssistAuthenticate("x", key("x")), GetPerms(20), ListRoles()):
        done = hub.receive(PARENT, message, source=1)
        assert "FRAME-19" not in done.rules and sent(done, PARENT)


def test_a_frame_on_a_link_that_is_not_up_is_ignored_with_a_note() -> None:
    hub = root()
    for body in (Register("d"), b"x", Answer(Action.REGISTER, Reason.OK), Malformed(None, "?")):
        assert dropped("FRAME-20", 9, hub.receive(9, body))
        assert hub.unchanged


# Bad payloads


def test_a_request_with_bad_fields_is_answered_and_changes_nothing() -> None:
    hub = root()
    hub.up(1)
    for action in (Action.REGISTER, Action.AUTHENTICATE):
        done = hub.receive(1, Malformed(action, "no device_id"), trace_id=3)
        assert done.outputs == (reply(1, Answer(action, Reason.INVALID_REQUEST), hub, trace_id=3),)
        assert "FRAME-17" in done.rules
        assert hub.unchanged
    hub = with_hubs(root())
    done = hub.receive(1, Malformed(Action.ASSIST_REGISTER, "no device_id"))
    answer = Answer(Action.ASSIST_REGISTER, Reason.INVALID_REQUEST)
    assert done.outputs == (reply(1, answer, hub, target=HUB_A),)
    assert hub.unchanged


def test_a_bad_request_that_would_not_be_served_anyway_is_forbidden() -> None:
    hub = root()
    hub.up(1)
    done = hub.receive(1, Malformed(Action.REVOKE, "?"))
    assert "FRAME-23" in done.rules
    hub.registered(2, "d")
    assert "TRUST-3" in hub.receive(2, Malformed(Action.ASSIST_OFFLINE, "?")).rules
    assert dropped("FRAME-22", 2, hub.receive(2, Malformed(Action.OFFLINE, "?"), source=9))


def test_what_cannot_be_read_at_all_is_dropped_with_a_note() -> None:
    hub = root()
    hub.up(1)
    for body in (Malformed(None, "not JSON"), Malformed(Action.REVOKE, "not JSON", is_answer=True)):
        done = hub.receive(1, body)
        assert done.outputs == (Note(NoteKind.DROPPED, "FRAME-18", "unreadable payload: not JSON", 1),)
        assert hub.unchanged
    hub = mid()
    assert dropped("FRAME-18", PARENT, hub.receive(PARENT, Malformed(Action.OFFLINE, "?", is_answer=True)))


# Answers


def test_an_answer_must_match_by_number_link_and_kind() -> None:
    hub = with_hubs(mid())
    hub.up(3)
    hub.receive(3, Register("d"))
    asked = hub.last_question(PARENT)
    right = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE)
    wrong_kind = Answer(Action.REGISTER, Reason.OK, "d", 30, key("d"))
    for link, msg_id, answer in ((PARENT, asked + 1, right), (1, asked, right), (PARENT, asked, wrong_kind)):
        done = hub.receive(link, answer, msg_id=msg_id, major=Major.OK_RESP)
        assert dropped("FRAME-16", link, done)
        assert hub.unchanged
    hub.answered(PARENT, right)
    assert hub.session(3).node_id == 30
    done = hub.receive(PARENT, right, msg_id=asked, major=Major.OK_RESP)
    assert dropped("FRAME-16", PARENT, done)


def test_each_purpose_wants_its_own_kind_of_answer() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Authenticate("d", key("d")))
    asked = hub.last_question(PARENT)
    for action in (Action.AUTHENTICATE, Action.ASSIST_QUERY_CREDENTIAL, Action.GET_PERMS):
        hub.receive(PARENT, Answer(action, Reason.OK, "d", 30, key("d")), msg_id=asked)
        assert hub.unchanged
    hub.receive(PARENT, Answer(None, Reason.OK, "d", 30, key("d"), NODE), msg_id=asked)
    assert hub.session(1).node_id == 30


def test_a_revoke_that_is_remembered_is_settled_by_no_other_answer() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    hub.receive(1, Revoke("d"))
    done = hub.receive(1, Answer(None, Reason.OK, "d", 30), msg_id=1)
    assert dropped("FRAME-16", 1, done)


def test_an_unmatched_answer_to_a_report_needs_no_note() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, Answer(Action.ASSIST_OFFLINE, Reason.OK), msg_id=99)
    assert done.outputs == () and {"FRAME-16", "OFF-9"} <= set(done.rules)
    assert hub.unchanged


def test_a_hubs_answers_bear_its_own_number_and_its_askers_msg_id() -> None:
    hub = with_hubs(root(node_id=8, provisioned=root().policy.provisioned))
    done = hub.receive(1, GetPerms(20), msg_id=123, trace_id=45, source=HUB_A, target=99)
    frame = sent(done)[0].frame
    assert (frame.msg_id, frame.trace_id, frame.source, frame.target) == (123, 45, 8, HUB_A)
    assert frame.major is Major.OK_RESP and (frame.hop_limit, frame.flags, frame.sub_proto) == (0, 0, 2)
    assert {"FRAME-12", "FRAME-13", "FRAME-14"} <= set(done.rules)


# Trust of laboratories


def test_open_trust_believes_an_unknown_link_that_it_is_a_hub() -> None:
    hub = root(trust=Trust.OPEN, provisioned=())
    hub.up(1)
    done = hub.receive(1, AssistRegister("d"), source=77)
    assert hub.session(1) == Session("hub:77", 77, True)
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 2, issued(1), hub.policy.resolve(2))
    assert sent(done) == [reply(1, answer, hub, target=77)]
    assert "TRUST-5" in done.rules and 77 in hub.state.neighbours


def test_the_id_of_a_hub_that_was_believed_is_given_to_nobody_else() -> None:
    hub = root(trust=Trust.OPEN, provisioned=())
    hub.up(1)
    hub.receive(1, AssistRegister("d"), source=3)
    assert hub.registered(2, "e") == 4
    assert hub.session(1).node_id == 3 and hub.is_online(3)


def test_open_trust_is_off_by_default_and_for_assists_with_a_source_only() -> None:
    assert Policy().trust is Trust.LINKS
    for trust, message, source in (
        (Trust.LINKS, AssistRegister("d"), 77),
        (Trust.OPEN, AssistRegister("d"), 0),
        (Trust.OPEN, AssistRegister("d"), 1),
        (Trust.OPEN, Revoke("d"), 77),
        (Trust.OPEN, GetPerms(1), 77),
    ):
        hub = root(trust=trust)
        hub.up(1)
        done = hub.receive(1, message, source=source)
        assert "FRAME-23" in done.rules and "TRUST-5" not in done.rules
        assert hub.unchanged


def test_open_trust_gives_nobody_an_id_that_is_live_or_registered() -> None:
    hub = with_hubs(root(trust=Trust.OPEN))
    hub.found_below("leaf", 30, 1)
    hub.registered(3, "d")
    hub.down(3)
    hub.up(4)
    for source in (HUB_A, 30, 2):
        done = hub.receive(4, AssistRegister("x"), source=source)
        assert "FRAME-23" in done.rules and hub.unchanged
    hub.down(1)
    assert "TRUST-5" in hub.receive(4, AssistRegister("x"), source=HUB_A).rules


def test_open_trust_knows_a_hub_by_the_name_it_had() -> None:
    hub = with_hubs(root(trust=Trust.OPEN, **listing(listed=40)))
    hub.found_below("leaf", 30, 1)
    hub.down(1)
    for link, node_id, name in ((3, 30, "leaf"), (4, 40, "listed"), (5, 50, "hub:50")):
        hub.up(link)
        hub.receive(link, AssistOffline("x", 9), source=node_id)
        assert hub.session(link) == Session(name, node_id, True)


def test_open_trust_does_not_give_away_a_registered_device_that_was_given_a_role() -> None:
    hub = root(trust=Trust.OPEN)
    hub.registered(1, "d")
    hub.down(1)
    hub.now_with(node_roles={2: "admin"})
    hub.up(3)
    done = hub.receive(3, AssistOffline("x", 9), source=2)
    assert "FRAME-23" in done.rules and hub.unchanged


def test_open_trust_is_not_given_for_a_bad_payload() -> None:
    hub = root(trust=Trust.OPEN)
    hub.up(1)
    hub.receive(1, Malformed(Action.ASSIST_REGISTER, "?"), source=77)
    assert hub.unchanged


def test_a_link_with_a_session_is_not_rebound_by_open_trust() -> None:
    hub = root(trust=Trust.OPEN)
    hub.registered(1, "d")
    assert dropped("FRAME-22", 1, hub.receive(1, AssistRegister("x"), source=77))


def test_a_step_that_changes_nothing_returns_the_very_same_state() -> None:
    hub = Hub(Policy())
    before = hub.state
    done = hub.happens(Received(3, Frame(Register("d"))))
    assert done.state is before and done.changes == ()
    assert [note.rule for note in notes(done)] == ["FRAME-20"]
