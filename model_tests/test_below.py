"""Walks of the machine below a parent that chance takes too seldom: naive model and core must agree on each of them."""

import pytest

from hubauth.core.messages import Action, Reason
from hubauth.core.policy import Assist, Policy, Provisioned
from model_tests.below import PARENT
from model_tests.below_machine import CHILD_KEY, CHILD_NODE, OWN, OWN_KEY, BelowMachine

SEARCHES = {Assist.AUTH: Action.ASSIST_AUTHENTICATE, Assist.QUERY: Action.ASSIST_QUERY_CREDENTIAL}


def machine(assist: Assist, pending_limit: int = 256, revoke_batch: int = 256) -> BelowMachine:
    """A hub that has joined its parent, with a child hub and its device d1, which the parent has ordered off."""
    policy = Policy(
        device_id="self",
        node_id=OWN,
        credential=OWN_KEY,
        has_parent=True,
        provisioned=(Provisioned("hub-a", CHILD_NODE, CHILD_KEY, "hub"),),
        role_perms={"hub": ("auth.assist",)},
        assist=assist,
        pending_limit=pending_limit,
        revoke_batch=revoke_batch,
    )
    walked = BelowMachine()
    walked.start(policy, joined=True, child=True)
    walked.announce("d1")
    walked.order_off("d1")
    return walked


def asked_of_parent(walked: BelowMachine) -> list[Action]:
    return [action for link, action in walked.naive.asked if link == PARENT and action in SEARCHES.values()]


@pytest.mark.parametrize("assist", SEARCHES)
@pytest.mark.parametrize("reason", [Reason.NOT_ADMITTED, Reason.UNREACHABLE, Reason.FORBIDDEN])
def test_a_search_that_the_last_known_child_refuses_goes_on_to_the_parent(assist: Assist, reason: Reason) -> None:
    walked = machine(assist)
    walked.authenticate(1, "d1", 0, empty=False)
    walked.answer(0, reason, "", 0, 1, told=True)
    assert asked_of_parent(walked) == [SEARCHES[assist]]
    walked.answer(0, Reason.NOT_ADMITTED, "", 0, 1, told=True)
    found_nobody = Reason.NOT_ADMITTED if reason is Reason.NOT_ADMITTED else Reason.UNREACHABLE
    assert walked.naive.said == [(1, Action.AUTHENTICATE, found_nobody)]
    walked.teardown()


@pytest.mark.parametrize("assist", SEARCHES)
def test_a_search_whose_child_is_lost_goes_on_to_the_parent(assist: Assist) -> None:
    walked = machine(assist)
    walked.announce("d2")
    walked.authenticate(1, "d1", 0, empty=False)
    walked.authenticate(2, "d1", 1, empty=False)
    walked.disturb("child", 0)
    assert asked_of_parent(walked) == [SEARCHES[assist]] * 2
    walked.answer(0, Reason.OK, "", 0, 1, told=True)
    walked.answer(0, Reason.NOT_ADMITTED, "", 0, 1, told=True)
    assert walked.naive.said == [(2, Action.AUTHENTICATE, Reason.UNREACHABLE)]
    walked.teardown()


@pytest.mark.parametrize("assist", SEARCHES)
def test_a_search_whose_child_is_away_goes_to_the_parent_at_once(assist: Assist) -> None:
    walked = machine(assist)
    walked.disturb("child", 0)
    walked.authenticate(1, "d1", 0, empty=False)
    assert asked_of_parent(walked) == [SEARCHES[assist]]
    walked.answer(0, Reason.NOT_ADMITTED, "", 0, 1, told=True)
    assert walked.naive.said == [(1, Action.AUTHENTICATE, Reason.UNREACHABLE)]
    walked.teardown()


def test_a_search_goes_on_to_the_parent_also_if_the_device_is_online_at_the_lost_child() -> None:
    walked = machine(Assist.AUTH)
    walked.announce("d2")
    walked.authenticate(1, "d2", 0, empty=False)
    walked.disturb("child", 0)
    assert not walked.naive.said and asked_of_parent(walked) == [Action.ASSIST_AUTHENTICATE]
    walked.teardown()


def test_a_search_that_cannot_go_on_since_too_much_waits_is_answered_busy() -> None:
    walked = machine(Assist.AUTH, pending_limit=2)
    walked.authenticate(1, "d1", 0, empty=False)
    walked.authenticate(1, "d1", 1, empty=False)
    walked.register(2, "d2")
    walked.register(3, "d3")
    walked.disturb("child", 0)
    assert walked.naive.said == [(1, Action.AUTHENTICATE, Reason.BUSY)]
    assert asked_of_parent(walked) == [Action.ASSIST_AUTHENTICATE]
    walked.teardown()


def test_a_search_by_assist_auth_is_only_believed_if_it_repeats_the_credential() -> None:
    walked = machine(Assist.AUTH)
    walked.authenticate(1, "d2", 0, empty=False)
    walked.answer(0, Reason.OK, "", 1, 1, told=True)
    assert walked.naive.said == [(1, Action.AUTHENTICATE, Reason.UNREACHABLE)]
    walked.teardown()


def test_what_a_plain_child_missed_is_kept_and_told_in_batches_at_its_return() -> None:
    walked = machine(Assist.AUTH, revoke_batch=1)
    walked.disturb("child", 0)
    walked.child_up("")
    walked.disturb("child", 0)
    for device in ("d1", "d2", "d3", "d1"):
        walked.revoke(device, None, 6)
    walked.child_up("")
    assert [action for _, action in walked.naive.asked].count(Action.REVOKE) == 1
    walked.authenticate(1, "d1", 0, empty=False)
    walked.revoke("d2", None, 6)
    walked.go_on_telling()
    assert [action for _, action in walked.naive.asked] == [Action.REVOKE]
    walked.teardown()


def test_what_was_sent_to_a_child_that_returns_plain_is_told_again_only_with_a_credential() -> None:
    walked = machine(Assist.AUTH)
    walked.revoke("d1", None, 6)
    walked.revoke("d2", 0, 6)
    walked.disturb("child", 0)
    walked.child_up("")
    assert [action for _, action in walked.naive.asked].count(Action.REVOKE) == 1
    walked.teardown()
