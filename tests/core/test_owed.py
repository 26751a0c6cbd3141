"""What neighbouring hubs are owed goes out in batches, and nothing about a device overtakes its revoke."""

import pytest

from hubauth.core.inputs import PARENT, Input, LinkUp, OperatorRevoke, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Frame,
    HubFence,
    Reason,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE
from hubauth.core.policy import Assist
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.lab.hub import (
    HUB_A,
    HUB_B,
    Hub,
    admission,
    credentials,
    dropped,
    issued,
    listing,
    mid,
    root,
    sent,
    with_hubs,
)

FENCED = Answer(Action.HUB_FENCE, Reason.OK)
FENCE = "fence"


def away(batch: int, names: str, **changes: object) -> Hub:
    """Hub A is away, and everything of these devices is revoked."""
    hub = with_hubs(root(revoke_batch=batch, **changes))
    hub.down(1)
    for name in names:
        hub.happens(OperatorRevoke(Revoke(name)))
    return hub


def back(hub: Hub, link: int = 3) -> Step:
    """Hub A is back."""
    hub.up(link)
    return hub.receive(link, credentials("hub-a"))


def seen(done: Step, link: int = 3) -> list[tuple[str, int] | str]:
    """What a hub was sent in a step: names and numbers of revokes, fences, and the actions of everything else."""
    return [_seen(send.frame.body) for send in sent(done, link)]


def _seen(body: Body) -> tuple[str, int] | str:
    if isinstance(body, Revoke):
        return body.device_id, body.seq
    assert not isinstance(body, bytes) and body.action is not None
    return FENCE if isinstance(body, HubFence) else body.action.value


def fences(hub: Hub, link: int = 3) -> list[int]:
    return sorted(msg_id for msg_id, pending in hub.state.pending.items() if pending.asked == link)


def test_what_is_owed_to_a_hub_that_is_away_has_no_number_yet() -> None:
    hub = away(2, "ab")
    assert hub.owed(HUB_A) == {Revoke("a"): (FIRST_PLACE, 1), Revoke("b"): (FIRST_PLACE + 1, 1)}
    assert hub.state.neighbours[HUB_A].sent == 0 and hub.state.neighbours[HUB_B].sent == 2
    assert "REV-21" in hub.steps[-1].rules


def test_each_batch_is_brought_by_the_acknowledgement_of_the_one_before() -> None:
    hub = away(2, "abcde")
    done = back(hub)
    assert seen(done) == ["auth", ("a", 1), ("b", 2), FENCE]
    assert {"EXT-11", "EXT-12", "EXT-10", "REV-21"} <= set(done.rules)
    assert seen(hub.answered(3, FENCED)) == [("c", 3), ("d", 4), FENCE]
    assert list(hub.owed(HUB_A)) == [Revoke("c"), Revoke("d"), Revoke("e")]
    assert seen(hub.answered(3, FENCED)) == [("e", 5), FENCE]
    done = hub.answered(3, FENCED)
    assert seen(done) == [] and not hub.owed(HUB_A)
    assert hub.state.neighbours[HUB_A].batch == 0


def test_a_single_revoke_goes_at_once_while_few_are_unacknowledged() -> None:
    hub = with_hubs(root(revoke_batch=2))
    assert seen(hub.happens(OperatorRevoke(Revoke("a"))), 1) == [("a", 1), FENCE]
    assert seen(hub.happens(OperatorRevoke(Revoke("b"))), 1) == [("b", 2), FENCE]
    for name in "cde":
        done = hub.happens(OperatorRevoke(Revoke(name)))
        assert seen(done, 1) == [] and "REV-21" in done.rules
    # What waits goes in batches, whichever fence is answered first; more only when the whole batch is acknowledged.
    first, second = fences(hub, 1)
    assert seen(hub.answered(1, FENCED, msg_id=first), 1) == [("c", 3), ("d", 4), FENCE]
    assert seen(hub.answered(1, FENCED, msg_id=second), 1) == []
    assert seen(hub.answered(1, FENCED), 1) == [("e", 5), FENCE]


def test_a_single_revoke_waits_behind_what_waits() -> None:
    hub = away(1, "ab")
    back(hub)
    assert seen(hub.happens(OperatorRevoke(Revoke("c")))) == []
    assert seen(hub.answered(3, FENCED)) == [("b", 2), FENCE]
    assert seen(hub.answered(3, FENCED)) == [("c", 3), FENCE]


def test_a_neighbour_that_never_answers_is_sent_no_more() -> None:
    hub = with_hubs(root(revoke_batch=3))
    for number in range(20):
        hub.happens(OperatorRevoke(Revoke(f"d{number}")))
    assert hub.state.neighbours[HUB_A].sent == 3 and len(hub.owed(HUB_A)) == 20 and len(fences(hub, 1)) == 3


def test_what_waits_and_is_revoked_again_keeps_its_place() -> None:
    hub = away(1, "abc")
    hub.happens(OperatorRevoke(Revoke("a")))
    assert list(hub.owed(HUB_A)) == [Revoke("a"), Revoke("b"), Revoke("c")]
    assert seen(back(hub)) == ["auth", ("a", 1), FENCE]


def test_what_was_sent_and_is_revoked_again_gets_a_new_number() -> None:
    hub = away(1, "ab")
    back(hub)
    hub.happens(OperatorRevoke(Revoke("a")))
    assert hub.owed(HUB_A) == {Revoke("b"): (FIRST_PLACE + 1, 1), Revoke("a"): (FIRST_PLACE + 2, 1)}
    assert seen(hub.answered(3, FENCED)) == [("b", 2), FENCE]
    assert seen(hub.answered(3, FENCED)) == [("a", 3), FENCE]


def test_a_link_that_drops_in_the_middle_of_a_batch_begins_with_it_again() -> None:
    hub = away(2, "abcde")
    back(hub)
    hub.answered(3, FENCED)
    hub.down(3)
    assert not fences(hub)
    assert seen(back(hub, 4), 4) == ["auth", ("c", 3), ("d", 4), FENCE]
    assert seen(hub.answered(4, FENCED), 4) == [("e", 5), FENCE]


def test_what_was_sent_before_goes_again_in_batches_before_what_never_was() -> None:
    hub = with_hubs(root(revoke_batch=5))
    for name in "abcde":
        hub.happens(OperatorRevoke(Revoke(name)))
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("f")))
    hub.now_with(revoke_batch=2)
    assert seen(back(hub)) == ["auth", ("a", 1), ("b", 2), FENCE]
    assert seen(hub.answered(3, FENCED)) == [("c", 3), ("d", 4), FENCE]
    assert seen(hub.answered(3, FENCED)) == [("e", 5), ("f", 6), FENCE]


def test_a_refused_fence_brings_nothing() -> None:
    hub = away(1, "ab")
    back(hub)
    done = hub.answered(3, Answer(Action.HUB_FENCE, Reason.FORBIDDEN))
    assert dropped("EXT-12", 3, done) and len(hub.owed(HUB_A)) == 2
    hub.down(3)
    assert seen(back(hub, 4), 4) == ["auth", ("a", 1), FENCE]


def test_a_hub_that_is_taken_for_a_device_is_owed_what_it_missed() -> None:
    hub = away(1, "ab")
    back(hub)
    hub.now_with(role_perms={})
    assert 3 not in hub.state.links and not fences(hub)
    assert seen(back(hub, 4), 4) == ["auth"]
    assert list(hub.owed(HUB_A)) == [Revoke("a"), Revoke("b")]


def test_another_bound_holds_from_the_next_batch_on() -> None:
    hub = away(1, "abcde")
    back(hub)
    hub.now_with(revoke_batch=3)
    assert seen(hub.answered(3, FENCED)) == [("b", 2), ("c", 3), ("d", 4), FENCE]


def test_a_parent_is_owed_likewise() -> None:
    hub = mid(joined=False, revoke_batch=1)
    for name in "ab":
        hub.happens(OperatorRevoke(Revoke(name)))
    hub.up(PARENT)
    done = hub.answered(PARENT, admission())
    assert seen(done, PARENT) == [("a", 1), FENCE]
    assert seen(hub.answered(PARENT, FENCED), PARENT) == [("b", 2), FENCE]


# Nothing about a device overtakes its revoke


def test_the_answer_of_a_registration_comes_after_the_revokes_of_that_device() -> None:
    hub = away(1, "xyz")
    hub.registered(4, "d")
    hub.registered(5, "e")
    hub.happens(OperatorRevoke(Revoke("d")))
    hub.happens(OperatorRevoke(Revoke("e")))
    back(hub)
    done = hub.receive(3, AssistRegister("d"))
    # The operator's and the registration's own, both unnumbered until now; what is about others waits on.
    assert seen(done) == [("d", 2), ("d", 3), FENCE, "assist_register"]
    assert "REV-22" in done.rules
    assert list(hub.owed(HUB_A)) == [Revoke("x"), Revoke("d"), Revoke("d", 2), Revoke("y"), Revoke("z"), Revoke("e")]
    assert seen(hub.answered(3, FENCED)) == [("y", 4), FENCE]
    done = hub.receive(3, AssistRegister("new"))
    assert seen(done) == ["assist_register"] and "REV-22" not in done.rules


def test_a_refusal_may_overtake() -> None:
    hub = away(1, "xd")
    back(hub)
    assert seen(hub.receive(3, AssistAuthenticate("d", "c" * 43))) == ["assist_auth"]


@pytest.mark.parametrize("assist", [Assist.AUTH, Assist.QUERY])
def test_a_search_comes_after_the_revokes_of_that_device(assist: Assist) -> None:
    hub = with_hubs(root(revoke_batch=1, assist=assist, **listing(d=30)))
    hub.found_below("d", 30, 1)
    for name in "xd":
        hub.happens(OperatorRevoke(Revoke(name)))
    hub.up(3)
    done = hub.receive(3, Authenticate("d", issued(9)))
    asks = {Assist.AUTH: "assist_auth", Assist.QUERY: "assist_query_credential"}[assist]
    assert seen(done, 1) == [("d", 2), FENCE, asks]
    assert "REV-22" in done.rules
    # So does one that is passed on for another hub.
    hub.happens(OperatorRevoke(Revoke("d")))
    body = AssistAuthenticate("d", issued(9)) if assist is Assist.AUTH else AssistQueryCredential("d")
    assert seen(hub.receive(2, body), 1) == [("d", 3), FENCE, asks]


def test_a_registration_and_its_answer_pass_a_hub_in_between_after_the_revokes() -> None:
    hub = with_hubs(mid(revoke_batch=1))
    for name in "xd":
        hub.happens(OperatorRevoke(Revoke(name)))
    done = hub.receive(1, AssistRegister("d"))
    assert seen(done, PARENT) == [("d", 2), FENCE, "assist_register"]
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, issued(9))
    assert seen(hub.answered(PARENT, answer), 1) == [("d", 2), FENCE, "assist_register"]


def test_what_was_sent_before_goes_again_before_anything_out_of_turn() -> None:
    hub = with_hubs(root(revoke_batch=3, **listing(d=30)))
    for name in "abc":
        hub.happens(OperatorRevoke(Revoke(name)))
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("d")))
    hub.now_with(revoke_batch=1)
    back(hub)
    hub.found_below("d", 30, 3)
    hub.up(5)
    # A hub that sees number 4 takes 2 and 3 for handled: they must come first.
    done = hub.receive(5, Authenticate("d", issued(9)))
    assert seen(done) == [("b", 2), ("c", 3), ("d", 4), FENCE, "assist_auth"]


def test_an_addressed_revoke_has_no_number_and_waits_for_nothing() -> None:
    hub = away(1, "ab")
    back(hub)
    assert seen(hub.happens(OperatorRevoke(Revoke("d", seq=9), target=HUB_A))) == [("d", 0)]
    assert seen(hub.answered(3, FENCED)) == [("b", 2), FENCE]


def test_what_is_on_its_way_already_is_not_sent_twice() -> None:
    hub = away(9, "d")
    back(hub)
    hub.registered(4, "d")
    done = hub.receive(3, AssistRegister("d"))
    assert seen(done) == [("d", 2), FENCE, "assist_register"]


# What it costs


class Counted:
    """A hub without the harness, whose checks cost as much as the state is large."""

    def __init__(self, hub: Hub) -> None:
        self.policy, self.state = hub.policy, hub.state

    def happens(self, happened: Input) -> Step:
        done = step(self.policy, self.state, happened)
        self.state = done.state
        assert len(done.changes) <= 40 and len(done.outputs) <= 20, "more than a batch of eight can cost"
        return done

    def receive(self, body: Body, msg_id: int = 7) -> Step:
        return self.happens(Received(3, Frame(body, msg_id=msg_id, source=HUB_A), issued(1)))

    def acknowledges(self) -> Step:
        return self.receive(FENCED, max(msg_id for msg_id, one in self.state.pending.items() if one.asked == 3))


def drain(hub: Counted, owed: int) -> None:
    """Hub A is away while much is revoked, some of it again; at its return all of it arrives, once and in order."""
    for number in range(owed):
        hub.happens(OperatorRevoke(Revoke(f"d{number}")))
    assert len(hub.happens(OperatorRevoke(Revoke("d7"))).changes) == 1
    assert len(hub.state.owed) == owed
    hub.happens(LinkUp(3))
    done = hub.happens(Received(3, Frame(credentials("hub-a"))))
    heard: list[tuple[str, int] | str] = []
    while hub.state.owed:
        heard += [one for one in seen(done) if isinstance(one, tuple)]
        done = hub.acknowledges()
        if len(heard) == 80:
            # Out of turn, and no dearer for all that is before it.
            last = hub.happens(OperatorRevoke(Revoke("last")))
            assert seen(last) == [] and seen(hub.receive(AssistRegister("new"))) == ["assist_register"]
    assert heard == [(f"d{number}", number + 1) for number in range(owed)] + [("last", owed + 1)]


def away_alone() -> Counted:
    hub = root(revoke_batch=8)
    hub.provisioned(1, "hub-a")
    hub.down(1)
    return Counted(hub)


@pytest.mark.parametrize("owed", [2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_step_does_more_for_more_that_is_owed(owed: int) -> None:
    drain(away_alone(), owed)


def test_a_revoke_that_is_repeated_before_its_acknowledgement_goes_at_once_in_its_own_place() -> None:
    hub = with_hubs(root(revoke_batch=1))
    hub.happens(OperatorRevoke(Revoke("a")))
    done = hub.happens(OperatorRevoke(Revoke("a")))
    assert seen(done, 1) == [("a", 2), FENCE]
    assert seen(hub.happens(OperatorRevoke(Revoke("b"))), 1) == []
