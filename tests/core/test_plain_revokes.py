"""Revokes between this hub and plain ones: told once, kept where that is safe, echoes and confirmations."""

from typing import Any

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    Ext,
    Frame,
    HubFence,
    Major,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import Purpose
from hubauth.core.outputs import Send, StartTimer, Tell, Unconfirmed
from hubauth.core.recovery import after_restart
from hubauth.core.transition import Step
from hubauth.lab.hub import ADMIN, HUB_A, HUB_B, Hub, dropped, key, mid, notes, root, sent

NAMED = Revoke("n", 0, key("n"))
OWN_JOURNAL = root().state.journal
OWN = Answer(Action.AUTHENTICATE, Reason.OK, "mid", 5, key("mid"))


def returns(hub: Hub, link: int, device_id: str = "hub-a", ext: Ext | None = None) -> Step:
    """A child hub connects and authenticates: plain, unless it says something of the extension."""
    hub.up(link)
    return hub.receive(link, Authenticate(device_id, key(device_id), ext))


def parent_returns(hub: Hub) -> Step:
    """A plain parent admits this hub."""
    hub.up(PARENT)
    return hub.answered(PARENT, OWN)


def between(**changes: Any) -> Hub:
    """A hub with a plain parent, a plain child A on link 1 and an extended child B on link 2."""
    hub = mid(joined=False, **changes)
    parent_returns(hub)
    returns(hub, 1)
    hub.provisioned(2, "hub-b")
    assert not hub.state.parent_extended and not hub.session(1).extended and hub.session(2).extended
    return hub


def bodies(done: Step, link: int) -> list[Any]:
    return [send.frame.body for send in sent(done, link)]


def revokes(done: Step, link: int) -> list[Request]:
    return [body for body in bodies(done, link) if isinstance(body, Revoke)]


def operator(hub: Hub, *messages: Revoke) -> Step:
    for message in messages:
        done = hub.happens(OperatorRevoke(message))
    return done


def told(done: Step) -> list[Unconfirmed]:
    return [output for output in done.outputs if isinstance(output, Unconfirmed)]


def timers(hub: Hub, purpose: Purpose) -> list[int]:
    return sorted(msg_id for msg_id, pending in hub.state.pending.items() if pending.purpose is purpose)


# To a plain neighbour


def test_a_revoke_is_sent_once_to_a_plain_neighbour_and_owed_to_no_such() -> None:
    hub = between()
    own = hub.next_id
    done = operator(hub, Revoke("d"))
    assert [send for send in sent(done) if not isinstance(send.frame.body, HubFence)] == [
        Send(PARENT, Frame(Revoke("d"), Major.CMD, own, 5, 0)),
        Send(1, Frame(Revoke("d"), Major.CMD, own + 1, 5, 0)),
        Send(2, Frame(Revoke("d", seq=1), Major.CMD, own + 2, 5, 0)),
    ]
    assert not hub.owed(0) and not hub.owed(HUB_A) and "REV-23" in done.rules
    hub.down(1)
    assert revokes(returns(hub, 4), 4) == []


def test_a_plain_child_that_was_away_hears_first_what_was_kept() -> None:
    hub = root()
    returns(hub, 1)
    hub.down(1)
    operator(hub, Revoke("d"), NAMED, Revoke("d"))
    assert list(hub.owed(HUB_A)) == [Revoke("d"), NAMED]
    done = returns(hub, 2)
    assert revokes(done, 2) == [Revoke("d"), NAMED] and not hub.owed(HUB_A)
    hub.down(2)
    assert revokes(returns(hub, 3), 3) == []


def test_that_it_was_plain_outlasts_a_restart() -> None:
    hub = mid(joined=False)
    parent_returns(hub)
    again = Hub(hub.policy, after_restart(hub.policy, hub.state))
    assert again.state.neighbours[0].plain
    operator(again, Revoke("d"), NAMED)
    assert list(again.owed(0)) == [NAMED]


def test_what_was_kept_is_paced() -> None:
    hub = root(revoke_batch=2)
    returns(hub, 1)
    hub.down(1)
    operator(hub, *(Revoke(name) for name in "abcde"))
    done = returns(hub, 2)
    assert revokes(done, 2) == [Revoke("a"), Revoke("b")]
    for expected in (["c", "d"], ["e"]):
        [timer] = timers(hub, Purpose.PACE)
        assert StartTimer(timer, 0.0) in done.outputs
        done = hub.fires(timer)
        assert revokes(done, 2) == [Revoke(name) for name in expected] and "REV-23" in done.rules
    assert not timers(hub, Purpose.PACE) and not hub.owed(HUB_A)


def test_a_child_that_leaves_in_between_hears_the_rest_later() -> None:
    hub = root(revoke_batch=1)
    returns(hub, 1)
    hub.down(1)
    operator(hub, Revoke("a"), Revoke("b"))
    returns(hub, 2)
    hub.down(2)
    assert not hub.state.pending and list(hub.owed(HUB_A)) == [Revoke("b")]
    assert revokes(returns(hub, 3), 3) == [Revoke("b")]


def test_nothing_about_a_device_overtakes_what_was_kept_about_it() -> None:
    hub = root(revoke_batch=1)
    hub.registered(5, "d")
    returns(hub, 1)
    hub.down(1)
    operator(hub, Revoke("a"), Revoke("d", credential=key("old")), Revoke("c"))
    returns(hub, 2)
    done = hub.receive(2, AssistAuthenticate("d", hub.state.whitelist["d"].credential))
    assert [type(body) for body in bodies(done, 2)] == [Revoke, Answer] and "REV-22" in done.rules
    assert list(hub.owed(HUB_A)) == [Revoke("c")]
    assert revokes(operator(hub, Revoke("c")), 2) == [Revoke("c")] and not hub.owed(HUB_A)
    assert revokes(hub.fires(timers(hub, Purpose.PACE)[0]), 2) == []


def test_a_repeated_registration_revokes_first_at_the_plain_child_that_asks() -> None:
    hub = root()
    returns(hub, 1)
    hub.receive(1, AssistRegister("d"))
    done = hub.receive(1, AssistRegister("d"))
    assert [type(body) for body in bodies(done, 1)] == [Revoke, Answer]


def test_a_plain_parent_that_is_away_is_told_only_what_names_a_credential() -> None:
    hub = mid(joined=False)
    parent_returns(hub)
    hub.down(PARENT)
    done = operator(hub, Revoke("d", 7))
    assert [note.rule for note in notes(done)] == ["REV-23"] and told(done) == [Unconfirmed(1, "d", 7, sent=False)]
    operator(hub, NAMED)
    assert list(hub.owed(0)) == [NAMED]
    assert revokes(parent_returns(hub), PARENT) == [NAMED] and not hub.owed(0)


def test_a_revoke_of_somebody_else_is_nothing_to_tell_the_operator() -> None:
    hub = mid(joined=False, extension=False)
    hub.provisioned(3, "admin")
    done = hub.receive(3, Revoke("d"))
    assert [note.rule for note in notes(done)] == ["REV-23"] and not told(done)
    assert hub.session(3).node_id == ADMIN


def test_a_child_that_was_extended_and_is_plain_now() -> None:
    hub = root(revoke_batch=2)
    returns(hub, 1, ext=Ext("journal of a"))
    operator(hub, Revoke("sent"), NAMED, Revoke("never sent"))
    hub.down(1)
    operator(hub, Revoke("away"))
    done = returns(hub, 2)
    assert revokes(done, 2) == [NAMED]
    assert told(done) == [Unconfirmed(HUB_A, "sent", 0, sent=True)]
    assert [note.detail.split(", ")[2] for note in notes(done)] == [
        "may not have heard of a revoke that names no credential"
    ]
    assert revokes(hub.fires(timers(hub, Purpose.PACE)[0]), 2) == [Revoke("never sent"), Revoke("away")]
    # Its numbers are not forgotten for that.
    hub.down(2)
    returns(hub, 3, ext=Ext("journal of a", OWN_JOURNAL, 2))
    assert hub.state.neighbours[HUB_A].sent == 2 and not hub.state.neighbours[HUB_A].plain


def test_a_child_that_was_plain_and_is_extended_now_is_owed_what_was_kept() -> None:
    hub = root()
    returns(hub, 1)
    hub.down(1)
    operator(hub, Revoke("d"))
    done = returns(hub, 2, ext=Ext("journal of a"))
    assert revokes(done, 2) == [Revoke("d", seq=1)] and list(hub.owed(HUB_A)) == [Revoke("d")]


def test_a_parent_that_was_never_here_and_is_plain() -> None:
    hub = mid(joined=False)
    operator(hub, Revoke("d"), NAMED)
    done = parent_returns(hub)
    assert revokes(done, PARENT) == [NAMED] and not hub.owed(0)
    assert told(done) == [Unconfirmed(1, "d", 0, sent=False)]
    assert [note.detail.split(", ")[2] for note in notes(done)] == [
        "will not hear of a revoke that names no credential"
    ]


# From a plain neighbour


def test_every_revoke_from_a_plain_link_is_acted_on_and_passed_on() -> None:
    hub = between()
    for link, source, name in ((1, HUB_A, "c"), (PARENT, 1, "d")):
        for msg_id in (500, 3, 3):
            done = hub.receive(link, Revoke(name, seq=2), msg_id=msg_id, source=source)
            assert "REV-2" in done.rules and "EXT-10" in done.rules  # towards hub B
    assert hub.state.neighbours[HUB_A].handled == hub.state.neighbours[0].handled == 0
    assert hub.state.neighbours[HUB_B].sent == 6


def test_a_revoke_that_a_plain_hub_addresses_to_this_one_goes_on_from_here() -> None:
    hub = between()
    for link, source, other in ((1, HUB_A, PARENT), (PARENT, 1, 1)):
        about = Revoke(f"d{link}")
        done = hub.receive(link, about, source=source, target=hub.state.node_id)
        assert revokes(done, other) == [about] and len(revokes(done, 2)) == 1 and not bodies(done, link)
        assert {"REV-2", "REV-24"} <= set(done.rules) and "REV-4" not in done.rules
        echo = hub.receive(other, about, target=hub.state.node_id, source=HUB_A if other == 1 else 1)
        assert dropped("REV-24", other, echo)


def test_an_echo_is_ignored_as_long_as_it_can_be_one() -> None:
    hub = between()
    done = operator(hub, Revoke("d", 7, key("d")))
    for link, source in ((1, HUB_A), (PARENT, 1)):
        for _ in range(2):
            assert dropped("REV-24", link, hub.receive(link, Revoke("d", 7, key("d")), source=source))
    for other in (Revoke("d", 7), Revoke("d", 8, key("d")), Revoke("e", 7, key("d"))):
        assert "REV-2" in hub.receive(1, other).rules
    first = timers(hub, Purpose.SENT)[0]
    assert StartTimer(first, 5.0) in done.outputs
    for timer in timers(hub, Purpose.SENT):
        hub.fires(timer)
    assert "REV-2" in hub.receive(1, Revoke("d", 7, key("d"))).rules


def test_what_was_sent_over_another_connection_has_no_echo() -> None:
    hub = root()
    returns(hub, 1)
    operator(hub, Revoke("d"))
    hub.down(1)
    returns(hub, 2)
    assert "REV-2" in hub.receive(2, Revoke("d")).rules


def test_an_extended_hub_has_no_echoes() -> None:
    hub = between()
    operator(hub, Revoke("d"))
    assert "REV-2" in hub.receive(2, Revoke("d", seq=1)).rules


def test_echoes_are_remembered_up_to_a_bound() -> None:
    hub = root(pending_limit=2)
    returns(hub, 1)
    done = operator(hub, Revoke("a"), Revoke("b"), Revoke("c"))
    assert told(done) == [Unconfirmed(HUB_A, "a", 0, sent=True)]
    assert "REV-2" in hub.receive(1, Revoke("a")).rules
    assert dropped("REV-24", 1, hub.receive(1, Revoke("c")))


# Confirmations


def test_an_answer_confirms() -> None:
    hub = root()
    returns(hub, 1)
    operator(hub, Revoke("d", 7))
    [memory] = timers(hub, Purpose.SENT)
    for target in (0, 1):
        done = hub.receive(1, Answer(Action.REVOKE, Reason.OK, "d", 7), target=target, major=Major.OK_RESP)
        assert done.outputs == (Tell(HUB_A, "d", 7, Reason.OK),) and "REV-25" in done.rules
    done = hub.fires(memory)
    assert not told(done) and "REV-25" in done.rules


def test_silence_does_not() -> None:
    hub = root()
    returns(hub, 1)
    operator(hub, Revoke("d", 7))
    [memory] = timers(hub, Purpose.SENT)
    hub.receive(1, Answer(Action.REVOKE, Reason.OK, "e", 7), major=Major.OK_RESP)
    assert told(hub.fires(memory)) == [Unconfirmed(HUB_A, "d", 7, sent=True)]
    operator(hub, Revoke("d", 7))
    assert told(hub.down(1)) == [Unconfirmed(HUB_A, "d", 7, sent=True)]


def test_an_answer_goes_to_who_revoked() -> None:
    hub = root()
    returns(hub, 1)
    hub.provisioned(3, "admin")
    hub.receive(3, Revoke("d"), msg_id=77)
    done = hub.receive(1, Answer(Action.REVOKE, Reason.OK, "d", 7), major=Major.OK_RESP)
    assert [(send.link, send.frame.msg_id) for send in sent(done)] == [(3, 77)]
    for memory in timers(hub, Purpose.SENT):
        assert not told(hub.fires(memory))


def test_a_registration_waits_for_nobody_on_a_plain_link() -> None:
    hub = between()
    hub.up(5)
    hub.receive(5, Register("d"))
    operator(hub, Revoke("d"))
    running = {msg_id for msg_id, one in hub.state.pending.items() if one.asked in (PARENT, 1)}
    assert running and running <= hub.timers
