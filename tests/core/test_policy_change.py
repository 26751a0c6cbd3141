"""A configuration that is replaced while the hub runs."""

from itertools import product
from typing import Any

from attrs import evolve

from hubauth.core.inputs import PARENT, PolicyChanged
from hubauth.core.messages import (
    Action,
    Answer,
    AssistOffline,
    Authenticate,
    Grant,
    HubOnline,
    PermsInvalidate,
    Reason,
    Revoke,
)
from hubauth.core.model import Entry, Neighbour, Registration, Session
from hubauth.core.outputs import Close, Note, NoteKind
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.core.transition import Step
from hubauth.lab.hub import (
    HUB,
    PROVISIONED,
    Hub,
    dropped,
    journal_of,
    key,
    listing,
    mid,
    numbered,
    question,
    root,
    sent,
    with_hubs,
)


def refused(hub: Hub, **changes: Any) -> str:
    """Why a changed policy is refused; nothing may have changed."""
    before = hub.policy
    done = hub.now_with(**changes)
    assert done.policy is before
    assert len(done.outputs) == 1 and isinstance(done.outputs[0], Note)
    note = done.outputs[0]
    assert (note.kind, note.rule, note.link) == (NoteKind.POLICY_REFUSED, "LINK-8", None)
    assert hub.unchanged
    return note.detail


# Refused


def test_dialect_and_parent_cannot_change() -> None:
    hub = root()
    assert refused(hub, dialect=Dialect.LOGIN) == "dialect and parent cannot change while the hub lives"
    assert refused(hub, has_parent=True) == "dialect and parent cannot change while the hub lives"
    assert refused(mid(), has_parent=False) == "dialect and parent cannot change while the hub lives"


def test_the_hubs_own_node_cannot_change_once_it_is_known() -> None:
    assert refused(root(), node_id=9) == "this hub is node 1, not 9"
    hub = mid(joined=False, node_id=0)
    done = hub.now_with(node_id=9, credential=key("nine"))
    assert (done.policy.node_id, done.policy.credential) == (9, key("nine"))
    assert (hub.state.node_id, hub.state.credential) == (9, key("nine"))
    hub.now_with(node_id=0, credential="")
    assert (hub.state.node_id, hub.state.credential) == (9, key("nine"))


def test_a_node_or_device_that_is_bound_cannot_be_provisioned_otherwise() -> None:
    hub = root()
    hub.registered(1, "d")
    assert refused(hub, provisioned=(Provisioned("x", 2, key("x")),)) == "node 2 is bound to d"
    assert refused(hub, provisioned=(Provisioned("d", 3, key("d")),))
    assert refused(hub, provisioned=(Provisioned("y", 9), Provisioned("x", 2))) == "node 2 is bound to d"
    done = hub.now_with(provisioned=(Provisioned("d", 2, key("d")),))
    assert "LINK-8" not in done.rules
    assert hub.state.whitelist["d"] == Entry(2, key("d"), False)


def test_what_is_provisioned_at_the_authority_is_bound_for_ever_seen_or_not() -> None:
    for credential in (key("p"), ""):
        hub = root(provisioned=(*PROVISIONED, Provisioned("p", 9, credential)))
        assert refused(hub, provisioned=(*PROVISIONED, Provisioned("q", 9, key("q")))) == "node 9 is bound to p"
        moved = (*PROVISIONED, Provisioned("p", 8, credential))
        assert refused(hub, provisioned=moved) == "p and node 8 are not bound to each other"
    hub = mid(provisioned=(Provisioned("p", 9, key("p")),))
    hub.now_with(provisioned=(Provisioned("q", 9, key("q")),))
    assert list(hub.state.whitelist) == ["q"], "below the authority a name may be put right until it was seen"


def test_below_the_authority_too_a_bound_node_or_device_cannot_be_provisioned_otherwise() -> None:
    for binding in (Provisioned("d", 31, key("d")), Provisioned("x", 30, key("x"))):
        hub = mid()
        hub.admitted_from_above(1, "d", 30)
        refused(hub, provisioned=(*PROVISIONED, binding))


def test_below_the_authority_what_is_known_of_other_hubs_cannot_be_provisioned_otherwise() -> None:
    for binding in (Provisioned("d", 31, key("d")), Provisioned("x", 30, key("x"))):
        hub = with_hubs(mid())
        hub.found_below("d", 30, 1)
        refused(hub, provisioned=(*PROVISIONED, binding))


# Provisioned bindings


def test_a_binding_that_is_no_longer_named_loses_entry_and_session() -> None:
    hub = mid()
    hub.provisioned(1, "admin")
    told = hub.next_id
    done = hub.now_with(provisioned=PROVISIONED[:2])
    assert done.outputs == (
        question(PARENT, AssistOffline("admin", 20), hub, told, target=1),
        Close(1),
    )
    assert "admin" not in hub.state.whitelist and 1 not in hub.state.links
    assert "LINK-9" in done.rules


def test_a_binding_without_a_session_only_loses_its_entry() -> None:
    hub = root()
    done = hub.now_with(provisioned=())
    assert done.outputs == () and not hub.state.whitelist


def test_at_the_authority_a_device_that_is_no_longer_provisioned_keeps_its_node() -> None:
    hub = root(provisioned=(*PROVISIONED, Provisioned("p", 2, key("p")), Provisioned("q", 3)))
    hub.registered(1, "other")
    done = hub.now_with(provisioned=PROVISIONED)
    assert (hub.state.registry["p"], hub.state.registry["q"]) == (Registration(2), Registration(3))
    assert "LINK-9" in done.rules and "p" not in hub.state.whitelist
    assert {2, 3} <= set(hub.state.index.roster)
    assert hub.registered(2, "new") == 5
    assert hub.registered(3, "q") == 3
    hub = mid(provisioned=(*PROVISIONED, Provisioned("p", 2, key("p"))))
    hub.now_with(provisioned=PROVISIONED)
    assert not hub.state.registry


def test_a_node_that_was_provisioned_once_is_not_given_to_another_device() -> None:
    hub = root(provisioned=(Provisioned("p", 2),))
    hub.now_with(provisioned=())
    assert [hub.registered(1, "new"), hub.registered(2, "p")] == [3, 2]


def test_the_part_of_the_authority_can_be_neither_gained_nor_lost() -> None:
    assert "authority" in refused(mid(), authority=5)
    assert "authority" in refused(root(), authority=30)
    assert "authority" in refused(root(authority=30), authority=0)


def test_a_binding_that_stays_keeps_its_session() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    done = hub.now_with(provisioned=PROVISIONED[2:])
    assert done.outputs == () and hub.session(1) == Session("admin", 20, False)


def test_a_new_credential_ends_the_session_of_the_old_one() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    done = hub.now_with(provisioned=(evolve(PROVISIONED[2], credential=key("new")),))
    assert Close(1) in done.outputs
    assert hub.state.whitelist["admin"].credential == key("new")


def test_a_binding_that_is_only_listed_gets_no_entry() -> None:
    hub = root(provisioned=())
    done = hub.now_with(provisioned=(Provisioned("p", 50), Provisioned("q", 51, key("q"))))
    assert sorted(hub.state.whitelist) == ["q"]
    assert list(hub.state.index.roster) == [1, 50, 51]
    assert "LINK-9" in done.rules
    hub = root(provisioned=(), dialect=Dialect.FLAT)
    hub.now_with(provisioned=(Provisioned("p", 50),))
    assert hub.state.whitelist["p"] == Entry(50, "", False)


def test_a_revoked_binding_comes_back_with_another_credential_only() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    hub.receive(1, Revoke("admin"))
    done = hub.now_with(pending_limit=9)
    assert "admin" not in hub.state.whitelist and "TRUST-4" in done.rules
    hub.now_with(provisioned=PROVISIONED[:2])
    hub.now_with(provisioned=PROVISIONED)
    assert "admin" not in hub.state.whitelist
    done = hub.now_with(provisioned=(*PROVISIONED[:2], evolve(PROVISIONED[2], credential=key("new"))))
    assert hub.state.whitelist["admin"].credential == key("new")
    assert not hub.state.beaten and "TRUST-4" not in done.rules


# Hubs


def promoted(is_hub: bool = True) -> Hub:
    """A root where the registered device k, node 2, may be a hub."""
    hub = root(**listing(leaf=30))
    hub.registered(1, "k")
    if is_hub:
        hub.now_with(node_roles={2: "hub"})
        joins_again(hub)
    return hub


def joins_again(hub: Hub) -> Step:
    hub.up(1)
    return hub.receive(1, Authenticate("k", hub.state.whitelist["k"].credential, journal_of("k")))


def test_a_node_that_becomes_a_hub_joins_anew_as_one() -> None:
    hub = promoted(is_hub=False)
    assert not hub.session(1).is_hub
    done = hub.now_with(node_roles={2: "hub"})
    assert Close(1) in done.outputs and not hub.is_online(2)
    assert {"TRUST-2", "LINK-11"} <= set(done.rules)
    joins_again(hub)
    assert hub.session(1).is_hub and hub.state.whitelist["k"].is_hub
    assert hub.state.neighbours[2] == Neighbour(journal="journal of k")
    hub.found_below("leaf", 30, 1)


def test_a_node_that_is_no_hub_any_more_joins_anew_as_a_device() -> None:
    hub = promoted()
    hub.found_below("leaf", 30, 1)
    done = hub.now_with(node_roles={})
    assert Close(1) in done.outputs and not hub.is_online(30) and not hub.is_online(2)
    assert {"TRUST-2", "LINK-11", "OFF-8"} <= set(done.rules)
    joins_again(hub)
    assert not hub.session(1).is_hub and not hub.state.whitelist["k"].is_hub
    done = hub.receive(1, HubOnline("leaf", 30))
    assert dropped("EXT-1", 1, done)


def test_a_hub_that_becomes_one_again_hears_what_it_missed() -> None:
    hub = promoted()
    hub.provisioned(3, "admin")
    hub.now_with(node_roles={})
    joins_again(hub)
    hub.receive(3, Revoke("x"))
    assert list(hub.owed(2)) == [Revoke("x")]
    hub.now_with(node_roles={2: "hub"})
    own = hub.next_id
    assert numbered(1, Revoke("x"), 1, 20, own) in sent(joins_again(hub))


def test_a_policy_that_changes_no_role_leaves_sessions_as_they_are() -> None:
    hub = promoted()
    done = hub.now_with(pending_limit=9)
    assert done.outputs == () and "TRUST-2" not in done.rules
    assert hub.session(1).is_hub


def test_links_without_a_session_are_passed_over() -> None:
    hub = promoted()
    hub.up(7)
    hub.now_with(node_roles={})
    assert hub.is_free(7) and 1 not in hub.state.links


def test_a_role_that_only_another_hub_knows_survives_a_policy_change() -> None:
    hub = mid()
    hub.admitted_from_above(1, "k", 50, HUB)
    hub.now_with(pending_limit=9)
    assert hub.session(1).is_hub and hub.state.whitelist["k"].is_hub


def test_a_provisioned_hub_whose_role_only_another_hub_knows_survives_a_policy_change() -> None:
    hub = mid(provisioned=(Provisioned("k", 50, key("k")),))
    hub.up(1)
    hub.receive(1, Authenticate("k", key("k")))
    hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, "", 50, grant=HUB))
    assert hub.session(1).is_hub
    hub.receive(PARENT, PermsInvalidate(), source=1)
    hub.now_with(pending_limit=9)
    assert hub.state.whitelist["k"].is_hub is hub.session(1).is_hub


def test_whoever_is_provisioned_without_a_role_stays_what_the_authority_made_it() -> None:
    for grant, forgotten in product((HUB, Grant("node", ("x",))), (False, True)):
        is_hub = grant is HUB
        hub = mid(default_role="node" if is_hub else "hub")
        credential = hub.admitted_from_above(1, "k", 50, grant)
        if forgotten:
            hub.receive(PARENT, PermsInvalidate(), source=1)
        done = hub.now_with(provisioned=(Provisioned("k", 50, credential),))
        assert ("TRUST-2" in done.rules) is forgotten and not done.outputs
        assert hub.session(1).is_hub is hub.state.whitelist["k"].is_hub is is_hub
        hub.now_with(provisioned=(Provisioned("k", 50, key("new")),))
        assert 1 not in hub.state.links, "another credential"
        hub.up(2)
        hub.receive(2, Authenticate("k", key("new")))
        if forgotten:
            hub.told_nothing(50)
        assert hub.session(2).is_hub is is_hub


def test_a_provisioned_device_that_is_given_another_role_is_bound_as_what_it_is_now() -> None:
    hub = root()
    hub.provisioned(1, "admin")
    hub.now_with(provisioned=(*PROVISIONED[:2], evolve(PROVISIONED[2], role="hub")))
    assert hub.state.whitelist["admin"].is_hub
    if 1 in hub.state.links:
        assert hub.session(1).is_hub


# The rest


def test_an_accepted_policy_holds_from_the_next_step_on() -> None:
    hub = root()
    hub.now_with(answer_offline=False)
    assert not hub.policy.answer_offline
    refused(hub, dialect=Dialect.FLAT)
    assert hub.policy.dialect is Dialect.AUTH


def test_the_same_policy_again_does_nothing_to_anybody() -> None:
    hub = with_hubs(root())
    hub.registered(3, "d")
    before = hub.state
    done = hub.happens(PolicyChanged(hub.policy))
    assert done.outputs == () and hub.state == before


def test_a_policy_may_name_the_node_that_a_hub_registered_as() -> None:
    hub = Hub(Policy(device_id="mid", has_parent=True))
    hub.up(PARENT)
    hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 9, key("mid")))
    done = hub.now_with(node_id=9)
    assert "LINK-8" not in done.rules
