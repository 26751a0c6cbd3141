"""root - mid - A and root - B: the stories the protocol exists for."""

import pytest

from hubauth.core import authenticate
from hubauth.core.inputs import OperatorRevoke, TimerFired
from hubauth.core.messages import Answer, Authenticate, Frame, GetPerms, Reason, Register, Revoke
from hubauth.core.policy import Dialect, Reregister
from hubauth.lab import tree
from hubauth.lab.planted import keeps_relayed
from hubauth.lab.story import FIRST_NODE, three_level_story
from hubauth.lab.tree import Way

MID, LEAF_A, LEAF_B = 2, 3, 4


def test_registration_through_two_leaves_gives_unique_ids() -> None:
    story = three_level_story()
    answers = [story.register(f"device-{count}", hub) for count, hub in enumerate(("A", "B", "mid", "root", "A"))]
    assert [answer.reason for answer in answers] == [Reason.OK] * 5
    assert [answer.node_id for answer in answers] == list(range(FIRST_NODE, FIRST_NODE + 5))
    assert len({answer.credential for answer in answers}) == 5
    assert story.route("root", FIRST_NODE) == (MID, True)
    assert story.route("mid", FIRST_NODE) == (LEAF_A, True)
    assert story.route("A", FIRST_NODE) == (FIRST_NODE, True)


def test_no_ancestor_holds_a_credential() -> None:
    story = three_level_story()
    story.register("sensor", "A")
    assert "sensor" in story.state("A").whitelist
    for ancestor in ("mid", "root", "B"):
        assert "sensor" not in story.state(ancestor).whitelist
    assert story.state("root").registry["sensor"].node_id == FIRST_NODE


def test_a_device_roams_and_its_old_place_lets_go() -> None:
    story = three_level_story()
    credential = story.register("sensor", "A").credential
    answer = story.authenticate("sensor", "B", credential)
    assert (answer.reason, answer.node_id, answer.credential) == (Reason.OK, FIRST_NODE, credential)
    assert story.route("root", FIRST_NODE) == (LEAF_B, True)
    assert story.route("mid", FIRST_NODE) == (LEAF_A, False)
    assert FIRST_NODE not in story.state("A").index.link_of_node
    assert story.state("A").whitelist["sensor"].credential == credential, "it may come back"


def test_roaming_with_a_wrong_credential_changes_nothing() -> None:
    story = three_level_story()
    story.register("sensor", "A")
    before = story.network.states
    answer = story.authenticate("sensor", "B", "guess")
    assert answer.reason is Reason.NOT_ADMITTED
    assert story.state("B").whitelist == before["B"].whitelist
    assert story.state("A").directory == before["A"].directory
    assert story.route("root", FIRST_NODE) == (MID, True)


def test_a_revoke_reaches_every_hub_that_knows_the_device() -> None:
    story = three_level_story()
    credential = story.register("sensor", "A").credential
    story.authenticate("sensor", "B", credential)
    story.feed("A", OperatorRevoke(Revoke("sensor")))
    story.settle()
    assert all("sensor" not in story.state(hub).whitelist for hub in ("root", "mid", "A", "B"))
    assert story.route("root", FIRST_NODE) == (LEAF_B, False)
    assert story.authenticate("sensor", "A", credential).reason is Reason.NOT_ADMITTED
    assert story.authenticate("sensor", "B", credential).reason is Reason.NOT_ADMITTED
    assert not any(state.owed for state in story.network.states.values())


def test_a_late_offline_does_not_erase_the_new_route() -> None:
    story = three_level_story()
    credential = story.register("sensor", "A").credential
    old = story.connection("sensor")
    story.offline("sensor", old, FIRST_NODE)
    story.deliver(old, Way.UP)
    # A's report is under way to mid, and slow; meanwhile the device is admitted at B.
    number = story.connect("sensor", "B")
    story.say(number, Authenticate("sensor", credential))
    up_from_a = story.connection("A")
    for _ in range(200):
        ready = [one for one in tree.waiting(story.network) if one != (up_from_a, Way.UP)]
        if not ready:
            break
        if story.network.inboxes.get("sensor") and story.route("root", FIRST_NODE)[0] == LEAF_B:
            break
        story.become(tree.deliver(story.network, *ready[0]))
        if not [one for one in tree.waiting(story.network) if one != (up_from_a, Way.UP)]:
            # The search goes through A as well: let one more message up.
            story.deliver(up_from_a, Way.UP)
    story.settle()
    assert story.heard("sensor").reason is Reason.OK
    assert story.route("root", FIRST_NODE) == (LEAF_B, True)


def test_a_cut_off_hub_serves_its_own_and_catches_up() -> None:
    story = three_level_story()
    credential = story.register("sensor", "A").credential
    other = story.register("other", "A").credential
    story.drop("mid")
    assert story.route("root", FIRST_NODE) == (MID, False)
    # Cut off: known devices are admitted, new ones are not, and nobody replaces the authority.
    assert story.authenticate("sensor", "A", credential).reason is Reason.OK
    assert story.register("newcomer", "A").reason is Reason.UNREACHABLE
    story.feed("root", OperatorRevoke(Revoke("other")))
    story.settle()
    assert story.authenticate("other", "A", other).reason is Reason.OK, "it has not heard yet"
    story.hubs_join("mid")
    assert "other" not in story.state("A").whitelist
    assert story.authenticate("other", "A", other).reason is Reason.NOT_ADMITTED
    assert story.route("root", FIRST_NODE) == (MID, True)
    assert story.register("newcomer", "A").reason is Reason.OK


def test_two_concurrent_registrations_of_one_device() -> None:
    story = three_level_story()
    at_a, at_b = story.connect("sensor", "A"), story.connect("sensor", "B")
    story.say(at_a, Register("sensor"))
    story.say(at_b, Register("sensor"))
    story.settle()
    answers = [frame.body for frame in story.network.inboxes["sensor"] if isinstance(frame.body, Answer)]
    assert [(answer.reason, answer.node_id) for answer in answers] == [(Reason.OK, FIRST_NODE)] * 2
    live = [hub for hub in ("A", "B") if "sensor" in story.state(hub).whitelist]
    assert len(live) == 1, "the later registration revoked the earlier credential"


def test_a_repeated_registration_keeps_the_node_and_ends_the_old_credential() -> None:
    story = three_level_story()
    first = story.register("sensor", "A")
    second = story.register("sensor", "B")
    assert second.node_id == first.node_id
    assert second.credential != first.credential
    assert story.authenticate("sensor", "A", first.credential).reason is Reason.NOT_ADMITTED
    assert story.authenticate("sensor", "A", second.credential).reason is Reason.OK


def test_a_device_is_admitted_anywhere_whatever_it_registered_at_before() -> None:
    hubs = ("root", "mid", "A", "B")
    for first in hubs:
        for second in hubs:
            story = three_level_story()
            story.register("sensor", first)
            credential = story.register("sensor", second).credential
            for third in hubs:
                assert story.authenticate("sensor", third, credential).reason is Reason.OK, (first, second, third)


def test_a_registration_whose_answer_was_lost_may_be_made_again() -> None:
    story = three_level_story(reregister=Reregister.AFTER_REVOKE)
    number = story.connect("sensor", "A")
    story.say(number, Register("sensor"))
    story.deliver(number, Way.UP)
    story.deliver(story.connection("A"), Way.UP)
    story.deliver(story.connection("mid"), Way.UP)
    assert "sensor" in story.state("root").registry
    story.drop("mid")
    assert story.heard("sensor").reason is Reason.UNREACHABLE
    story.hubs_join("mid")
    answer = story.register("sensor", "A")
    assert answer.reason is Reason.OK
    assert story.state("root").registry["sensor"].confirmed
    assert story.register("sensor", "B").reason is Reason.PROTECTED, "only its owner has the credential now"
    assert story.authenticate("sensor", "B", answer.credential).reason is Reason.OK


def test_permissions_are_found_at_the_authority_and_cached_on_the_way() -> None:
    story = three_level_story(node_roles={7: "admin"})
    node_id = story.register("sensor", "A").node_id
    number = story.connection("sensor")
    story.say(number, GetPerms(4), source=node_id)
    story.settle()
    assert story.heard("sensor").grant.role == "hub"
    story.say(number, GetPerms(77), source=node_id)
    story.settle()
    assert story.heard("sensor").reason is Reason.UNKNOWN_NODE
    assert 77 not in story.state("A").perms


def test_a_restarted_hub_goes_on_where_it_was() -> None:
    story = three_level_story()
    credential = story.register("sensor", "A").credential
    story.become(tree.restart(story.network, "mid"))
    story.settle()
    assert story.route("root", FIRST_NODE) == (MID, False)
    story.hubs_join("mid")
    story.hubs_join("A")
    assert story.route("root", FIRST_NODE) == (MID, True), "the device never noticed"
    assert story.authenticate("sensor", "B", credential).reason is Reason.OK


def test_a_request_that_nobody_answers_ends_with_its_timer() -> None:
    story = three_level_story()
    number = story.connect("sensor", "A")
    msg_id = story.say(number, Register("sensor"))
    story.deliver(number, Way.UP)
    timers = [timer for hub, timer in story.network.timers if hub == "A"]
    assert len(timers) == 1
    story.feed("A", TimerFired(timers[0]))
    story.deliver(number, Way.DOWN)
    assert story.heard("sensor").reason is Reason.UNREACHABLE
    assert story.network.inboxes["sensor"][-1].msg_id == msg_id
    story.settle()
    assert "sensor" not in story.state("A").whitelist, "the late answer matches nothing"


def test_other_sub_protocols_find_their_way_across_the_tree() -> None:
    story = three_level_story()
    sender = story.register("sensor", "A").node_id
    receiver = story.register("actor", "B").node_id
    frame = Frame(b"payload", source=sender, target=receiver, sub_proto=7)
    story.become(tree.say(story.network, story.connection("sensor"), frame))
    story.settle()
    arrived = story.network.inboxes["actor"][-1]
    assert (arrived.body, arrived.source, arrived.target) == (b"payload", sender, receiver)


def test_the_login_dialect_tells_the_same_stories() -> None:
    story = three_level_story(Dialect.LOGIN)
    credential = story.register("sensor", "A").credential
    assert story.authenticate("sensor", "B", credential).reason is Reason.OK
    assert story.route("root", FIRST_NODE) == (LEAF_B, True)
    story.feed("root", OperatorRevoke(Revoke("sensor")))
    story.settle()
    assert story.authenticate("sensor", "A", credential).reason is Reason.NOT_ADMITTED


def test_the_flat_dialect_needs_no_credential() -> None:
    story = three_level_story(Dialect.FLAT)
    first = story.register("sensor", "A")
    assert (first.reason, first.node_id, first.credential) == (Reason.OK, FIRST_NODE, "")
    assert story.route("root", FIRST_NODE) == (MID, True)
    again = story.authenticate("sensor", "B", "")
    assert (again.reason, again.node_id) == (Reason.OK, FIRST_NODE)
    assert story.route("root", FIRST_NODE) == (LEAF_B, True)
    assert story.authenticate("stranger", "A", "").reason is Reason.NOT_ADMITTED


def test_an_authority_below_the_root_serves_the_whole_tree() -> None:
    story = three_level_story(authority=MID)
    answers = [story.register(f"device-{count}", hub) for count, hub in enumerate(("A", "B", "root", "mid"))]
    assert [answer.reason for answer in answers] == [Reason.OK] * 4
    assert [answer.node_id for answer in answers] == list(range(FIRST_NODE, FIRST_NODE + 4))
    assert len(story.state("mid").registry) == 4
    assert not story.state("root").registry
    story.drop("mid")
    assert story.register("late", "B").reason is Reason.UNREACHABLE


def test_story_checks_bite(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ancestor that keeps a credential is caught by the very event."""
    story = three_level_story()
    monkeypatch.setattr(authenticate, "on_relayed_answer", keeps_relayed)
    with pytest.raises(AssertionError, match="CredentialsNeverCachedUpstream"):
        story.register("sensor", "A")
