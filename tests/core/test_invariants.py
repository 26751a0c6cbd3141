"""Each invariant bites: a state or step that is wrong in one way is found by exactly that name."""

from typing import Any

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import PARENT, Input, LinkDown, OperatorInvalidate, PolicyChanged, Received
from hubauth.core.invariants import STATE_INVARIANTS, STEP_INVARIANTS, check_state, check_step, unique_node_ids
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    HubFence,
    HubOnline,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, Index, Neighbour, Pending, Purpose, Registration, Route, Session, State
from hubauth.core.outputs import Note, NoteKind, Output, Send
from hubauth.core.policy import Dialect, Policy, Provisioned, Trust
from hubauth.core.transition import Change, Step
from hubauth.lab.hub import HUB_A, NODE, Hub, key, listing, mid, root, with_hubs


def names(findings: list[str]) -> list[str]:
    return sorted({finding.partition(":")[0] for finding in findings})


def broken(hub: Hub, **changes: Any) -> list[str]:
    """What is found when part of a good state is replaced; the indexes are not looked at."""
    assert check_state(hub.policy, hub.state) == []
    findings = check_state(hub.policy, evolve(hub.state, **changes))
    return [name for name in names(findings) if name != "IndexesAgree"]


def settled() -> Hub:
    """A root with a device (node 2) on link 1 and hub A on link 2."""
    hub = root()
    hub.registered(1, "d")
    hub.provisioned(2, "hub-a")
    return hub


def test_every_hub_invariant_is_here_under_its_name() -> None:
    assert list(STATE_INVARIANTS) == [
        "UniqueNodeIds",
        "OneToOneBinding",
        "RegistryHoldsNoCredential",
        "SessionImpliesWhitelist",
        "CredentialsNeverCachedUpstream",
        "IndexesAgree",
    ]
    assert list(STEP_INVARIANTS) == [
        "NodeIdsNeverReused",
        "LateOfflineKeepsNewRoute",
        "NoAnswerWithoutRequest",
        "InvalidatedPermsNotServed",
        "UnauthenticatedSeesOnlyRegisterAndAuth",
        "RevokeNeverReachesDevices",
        "RestartLosesNothing",
        "CredentialsNeverCachedUpstream",
    ]


# States


def test_a_node_given_out_twice() -> None:
    hub = settled()
    assert "UniqueNodeIds" in broken(hub, registry=hub.state.registry.set("e", Registration(2)))
    assert broken(hub, registry=hub.state.registry.set("e", Registration(1))) == ["UniqueNodeIds"]
    assert broken(hub, registry=hub.state.registry.set("e", Registration(3))) == []


def test_a_node_given_out_that_the_configuration_means_somebody_by() -> None:
    state = evolve(State(), registry=Map({"d": Registration(5)}))
    assert not unique_node_ids(Policy(provisioned=(Provisioned("d", 5),)), state)
    assert unique_node_ids(Policy(provisioned=(Provisioned("cam", 5),)), state) == [
        "node 5 is both d and cam, as configured"
    ]
    assert unique_node_ids(Policy(authority=5, has_parent=True), state) == ["node 5 is a hub's own"]


def test_tables_that_disagree_about_a_binding() -> None:
    hub = settled()
    state = hub.state
    for changes in (
        {"whitelist": state.whitelist.set("e", Entry(2, "c"))},
        {"whitelist": state.whitelist.set("d", Entry(3, "c"))},
        {"directory": state.directory.set(2, Route("e", 2, True))},
        {"directory": state.directory.set(9, Route("d", 2, True))},
        {"registry": Map({"d": Registration(3)})},
        {"directory": state.directory.set(9, Route("admin", 9, False))},
        {"whitelist": state.whitelist.set("x", Entry(20, "c"))},
    ):
        assert "OneToOneBinding" in broken(hub, **changes)


def test_a_registration_with_a_secret_in_it() -> None:
    invariant = STATE_INVARIANTS["RegistryHoldsNoCredential"]
    secret = Registration("secret")  # type: ignore[arg-type]
    assert invariant(Policy(), State(registry=Map({"d": Registration(2, True), "e": secret}))) != []
    assert invariant(Policy(), State(registry=Map({"d": Registration(2, True)}))) == []


def test_a_session_without_its_entry() -> None:
    hub = settled()
    state = hub.state
    for whitelist in (
        state.whitelist.delete("d"),
        state.whitelist.set("d", Entry(2, "c", True)),
        state.whitelist.set("d", Entry(3, "c", False)),
    ):
        assert "SessionImpliesWhitelist" in broken(hub, whitelist=whitelist)
    assert broken(hub, links=Map({1: None, 5: None})) == []
    lenient = evolve(hub.policy, trust=Trust.OPEN)
    missing = evolve(state, whitelist=state.whitelist.delete("d"))
    assert "SessionImpliesWhitelist" not in names(check_state(lenient, missing))


def test_a_relay_that_keeps_a_credential() -> None:
    hub = mid()
    relay = Pending(Purpose.RELAY, Action.ASSIST_REGISTER, PARENT, 1)
    for pending in (evolve(relay, credential="c"), evolve(relay, held=Frame(Revoke("d")))):
        assert broken(hub, pending=Map({9: pending})) == ["CredentialsNeverCachedUpstream"]
    assert broken(hub, pending=Map({9: relay})) == []
    assert broken(hub, pending=Map({9: evolve(relay, purpose=Purpose.QUERY, credential="c")})) == []


def test_an_index_that_was_forgotten() -> None:
    hub = with_hubs(mid())
    hub.found_below("leaf", 30, 1)
    hub.found_below("leaf", 30, 2)
    hub.receive(1, GetPerms(41))
    hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 41, grant=Grant("node", ())))
    hub.receive(1, GetPerms(40))
    tables = ("link_of_node", "node_of_device", "online_via", "waiting", "asking", "dismissed")
    for name in ("named", "cached", "of_role"):
        others = evolve(hub.state.index.others, **{name: getattr(Index().others, name)})
        forgotten = evolve(hub.state, index=evolve(hub.state.index, others=others))
        assert names(check_state(hub.policy, forgotten)) == ["IndexesAgree"]
    for name in tables:
        index = evolve(hub.state.index, **{name: getattr(Index(), name)})
        assert names(check_state(hub.policy, evolve(hub.state, index=index))) == ["IndexesAgree"]
    hub = settled()
    for name in ("roster", "roster_of_role"):
        index = evolve(hub.state.index, **{name: getattr(Index(), name)})
        assert names(check_state(hub.policy, evolve(hub.state, index=index))) == ["IndexesAgree"]


# Steps


def after(hub: Hub, happened: Input, *outputs: Output, rules: tuple[str, ...] = (), **changes: Any) -> list[str]:
    """What is found about a step that did this."""
    state = evolve(hub.state, **changes)
    record: list[Change] = []
    if state.next_node_id != hub.state.next_node_id:
        record.append(("hub", "next_node_id", hub.state.next_node_id, state.next_node_id))
    for table in ("registry", "whitelist", "perms", "directory"):
        old, new = getattr(hub.state, table), getattr(state, table)
        for each in sorted({*old, *new}, key=str):
            if old.get(each) != new.get(each):
                record.append((table, each, old.get(each), new.get(each)))
    done = Step(hub.policy, state, outputs, rules, tuple(record))
    return names(check_step(hub.policy, hub.state, happened, done))


def received(link: int, body: object, msg_id: int = 7) -> Received:
    return Received(link, Frame(body, msg_id=msg_id))  # type: ignore[arg-type]


QUIET = LinkDown(99)


def test_a_step_that_does_nothing_is_right() -> None:
    assert after(settled(), QUIET) == []


def test_node_ids_that_come_back_or_go_away() -> None:
    hub = settled()
    reused = ["NodeIdsNeverReused"]
    assert after(hub, QUIET, next_node_id=2) == reused
    assert after(hub, QUIET, registry=Map()) == reused
    assert after(hub, QUIET, registry=Map({"d": Registration(9)})) == reused
    assert after(hub, QUIET, registry=hub.state.registry.set("e", Registration(2))) == reused
    assert after(hub, QUIET, registry=hub.state.registry.set("e", Registration(3)), next_node_id=4) == []
    assert after(hub, QUIET, registry=Map({"d": Registration(2, True)})) == []


def test_a_late_report_that_erases_a_newer_route() -> None:
    hub = with_hubs(root(**listing(leaf=30)))
    hub.found_below("leaf", 30, 2)
    offline = hub.state.directory.set(30, Route("leaf", 11, False))
    late = ["LateOfflineKeepsNewRoute"]
    assert after(hub, received(1, AssistOffline("leaf", 30)), directory=offline) == late
    assert after(hub, received(1, AssistOffline("leaf", 30)), directory=hub.state.directory.delete(30)) == late
    assert after(hub, received(2, AssistOffline("leaf", 30)), directory=offline) == []
    assert after(hub, received(PARENT, AssistOffline("leaf", 30)), directory=offline) == []
    assert after(hub, received(1, Offline("leaf", 30)), directory=offline) == late
    assert after(hub, received(1, Offline("leaf")), directory=offline) == late
    assert after(hub, received(2, Offline("leaf")), directory=offline) == []
    assert after(hub, QUIET, directory=offline) == []


def ok(link: int, action: Action, msg_id: int = 7, reason: Reason = Reason.OK) -> Send:
    return Send(link, Frame(Answer(action, reason), msg_id=msg_id))


def test_an_answer_that_nobody_asked_for() -> None:
    hub = settled()
    unasked = ["NoAnswerWithoutRequest"]
    assert after(hub, QUIET, ok(1, Action.GET_PERMS)) == unasked
    assert after(hub, received(1, GetPerms(1)), ok(1, Action.GET_PERMS)) == []
    assert after(hub, received(1, GetPerms(1)), ok(1, Action.GET_PERMS, 8)) == unasked
    assert after(hub, received(2, GetPerms(1)), ok(1, Action.GET_PERMS)) == unasked
    assert after(hub, QUIET, ok(1, Action.REVOKE)) == unasked
    assert after(hub, QUIET, ok(2, Action.REVOKE)) == []
    assert after(hub, QUIET, ok(PARENT, Action.REVOKE)) == []
    assert after(hub, QUIET, ok(2, Action.GET_PERMS)) == unasked
    waiting = mid()
    waiting.admitted_from_above(1, "d", 30)
    waiting.receive(1, GetPerms(40), msg_id=9)
    assert after(waiting, QUIET, ok(1, Action.GET_PERMS, 9)) == []
    assert after(waiting, QUIET, ok(1, Action.GET_PERMS, 8)) == unasked


def test_an_answer_given_twice() -> None:
    hub = settled()
    answer, twice = ok(1, Action.GET_PERMS), ["NoAnswerWithoutRequest"]
    assert after(hub, received(1, GetPerms(1)), answer, answer) == twice
    waiting = mid()
    waiting.admitted_from_above(1, "d", 30)
    waiting.receive(1, GetPerms(40), msg_id=7)
    assert after(waiting, QUIET, answer, answer) == twice
    assert after(waiting, received(1, GetPerms(41)), answer, answer) == []
    assert after(waiting, received(1, GetPerms(41)), answer, answer, answer) == twice


def test_an_answer_to_what_is_no_request() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    unasked = ["NoAnswerWithoutRequest"]
    for body in (
        HubOnline("d", 30),
        Answer(Action.GET_PERMS, Reason.OK),
        Malformed(None, "bad"),
        Malformed(Action.GET_PERMS, "bad", is_answer=True),
        b"x",
    ):
        assert after(hub, received(1, body), ok(1, Action.GET_PERMS)) == unasked
    for link, request, found in (
        (1, AssistAuthenticate("d", "c"), []),
        (1, Malformed(Action.GET_PERMS, "bad"), []),
        (1, PermsInvalidate(), []),
        (PARENT, PermsInvalidate(), unasked),
        (PARENT, HubOnline("d", 30), unasked),
        (PARENT, AssistAuthenticate("d", "c"), []),
        (99, GetPerms(40), unasked),
        (1, HubFence(), []),
        (3, HubFence(), unasked),
        (3, HubDismiss("d", 30), unasked),
        (3, Malformed(Action.HUB_FENCE, "bad"), unasked),
        (1, Malformed(Action.HUB_ONLINE, "bad"), unasked),
    ):
        judged = after(hub, received(link, request), ok(link, Action.ASSIST_AUTHENTICATE, reason=Reason.FORBIDDEN))
        assert judged == found


def knowing() -> Hub:
    """A hub below a parent that has the permissions of node 40 in its cache."""
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    hub.receive(1, GetPerms(40))
    hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 40, grant=NODE))
    return hub


def test_permissions_served_after_their_invalidation() -> None:
    hub = knowing()
    outdated = ["InvalidatedPermsNotServed"]
    for message, found in (
        (PermsInvalidate(), outdated),
        (PermsInvalidate((40,)), outdated),
        (PermsInvalidate((41,)), []),
    ):
        assert after(hub, OperatorInvalidate(message)) == found
        assert after(hub, received(PARENT, message)) == found
        assert after(hub, received(1, message)) == found
        assert after(hub, received(99, message)) == []
        assert after(hub, OperatorInvalidate(message), perms=Map()) == []


def test_an_invalidation_that_was_not_accepted_takes_nothing() -> None:
    hub = knowing()
    message = received(1, PermsInvalidate())
    held = Pending(Purpose.HELD, Action.PERMS_INVALIDATE, PARENT, 1, 7, held=message.frame)
    assert after(hub, message, ok(1, Action.PERMS_INVALIDATE, reason=Reason.FORBIDDEN)) == []
    assert after(hub, message, Note(NoteKind.DROPPED, "FRAME-22", "unreachable", 1)) == []
    assert after(hub, message, pending=Map({50: held})) == []
    from_above, note = received(PARENT, PermsInvalidate()), Note(NoteKind.DROPPED, "FRAME-22", "no excuse", PARENT)
    assert after(hub, from_above, note) == ["InvalidatedPermsNotServed"], "the parent is always believed"
    # Later its originator's permissions are known, and either it is refused or it is carried out.
    waiting = Hub(hub.policy, evolve(hub.state, pending=Map({50: held})))
    known = received(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 30, grant=NODE), 50)
    assert after(waiting, known, pending=Map()) == ["InvalidatedPermsNotServed"]
    assert after(waiting, known, ok(1, Action.PERMS_INVALIDATE, reason=Reason.FORBIDDEN), pending=Map()) == []
    assert after(waiting, known) == []


def test_permissions_kept_over_an_absence_of_the_parent() -> None:
    hub = knowing()
    away = Hub(hub.policy, evolve(hub.state, parent_present=False))
    assert after(away, QUIET, parent_present=True) == ["InvalidatedPermsNotServed"]
    assert after(away, QUIET, parent_present=True, perms=Map()) == []
    login = Hub(evolve(away.policy, dialect=Dialect.LOGIN), away.state)
    assert after(login, QUIET, parent_present=True) == []
    authority = Hub(evolve(away.policy, authority=away.state.node_id), away.state)
    assert after(authority, QUIET, parent_present=True) == []


def test_a_link_without_a_session_that_learns_something() -> None:
    hub = settled()
    hub.up(5)
    request = received(5, GetPerms(1))
    seen = ["UnauthenticatedSeesOnlyRegisterAndAuth"]
    assert after(hub, request, ok(5, Action.GET_PERMS)) == seen
    assert after(hub, request, Send(5, Frame(Offline("d")))) == seen
    assert after(hub, request, Send(5, Frame(b"x"))) == seen
    for action, reason in (
        (Action.REGISTER, Reason.OK),
        (Action.AUTHENTICATE, Reason.NOT_ADMITTED),
        (Action.REVOKE, Reason.FORBIDDEN),
        (Action.GET_PERMS, Reason.INVALID_REQUEST),
    ):
        assert after(hub, request, ok(5, action, reason=reason)) == []
    assert after(hub, received(1, GetPerms(1)), ok(1, Action.GET_PERMS)) == []
    assert after(mid(), received(PARENT, GetPerms(1)), ok(PARENT, Action.GET_PERMS)) == []
    bound = hub.state.links.set(5, Session("d", 2, False))
    assert after(hub, request, ok(5, Action.GET_PERMS), links=bound) == []


def test_a_revoke_that_reaches_a_device() -> None:
    hub = settled()
    hub.up(5)
    revoke = Frame(Revoke("x"))
    assert after(hub, QUIET, Send(1, revoke)) == ["RevokeNeverReachesDevices"]
    assert "RevokeNeverReachesDevices" in after(hub, QUIET, Send(5, revoke))
    assert after(hub, QUIET, Send(2, revoke)) == []
    assert after(hub, QUIET, Send(PARENT, revoke)) == []
    now_hub = hub.state.links.set(1, Session("d", 2, True))
    assert after(hub, QUIET, Send(1, revoke), links=now_hub) == []


def test_a_change_that_a_restart_would_lose() -> None:
    hub = settled()
    lost = ["RestartLosesNothing"]
    for state in (
        evolve(hub.state, node_id=9),
        evolve(hub.state, whitelist=hub.state.whitelist.delete("d")),
        evolve(hub.state, directory=hub.state.directory.set(2, Route("d", 11, True))),
        evolve(hub.state, neighbours=Map({3: Neighbour(1)})),
    ):
        assert names(check_step(hub.policy, hub.state, QUIET, Step(hub.policy, state, (), (), ()))) == lost
    for state in (
        evolve(hub.state, next_msg_id=9, parent_present=True, links=Map(), perms=Map({2: NODE})),
        evolve(hub.state, directory=hub.state.directory.set(2, Route("d", 2, False))),
    ):
        assert check_step(hub.policy, hub.state, QUIET, Step(hub.policy, state, (), (), ())) == []


def test_a_credential_that_comes_to_stay_where_its_device_is_not() -> None:
    hub = settled()
    kept, state = ["CredentialsNeverCachedUpstream"], hub.state
    assert after(hub, QUIET, whitelist=state.whitelist.set("e", Entry(3, "c"))) == kept
    assert after(hub, QUIET, whitelist=state.whitelist.set("d", Entry(2, "c")), links=Map({1: None})) == kept
    assert after(hub, QUIET, whitelist=state.whitelist.set("d", Entry(2, "c"))) == []
    known = state.whitelist["d"]
    assert after(hub, QUIET, whitelist=state.whitelist.set("d", evolve(known, is_hub=True)), links=Map()) == []
    assert after(hub, PolicyChanged(hub.policy), whitelist=state.whitelist.set("e", Entry(3, "c"))) == []


def test_findings_name_the_invariant_and_say_what_is_wrong() -> None:
    hub = settled()
    findings = check_state(hub.policy, evolve(hub.state, registry=hub.state.registry.set("e", Registration(1))))
    assert findings[0].startswith("UniqueNodeIds: ") and "node 1" in findings[0]


def test_configured_bindings_count_even_where_no_table_has_them() -> None:
    policy = Policy(provisioned=(Provisioned("p", 50),))
    state = State(node_id=1, directory=Map({50: Route("q", 50, False)}))
    assert "OneToOneBinding" in names(check_state(policy, state))
    assert key("p") and HUB_A and Register("d")
