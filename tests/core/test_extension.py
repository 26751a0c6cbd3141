"""Who speaks the extension, whose numbers go on, and what is left on a link where nobody does."""

from typing import Any

import pytest
from attrs import evolve

from hubauth.core.inputs import PARENT, OperatorRevoke
from hubauth.core.messages import (
    MAX_HANDLED,
    NOT_A_HUB,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    Authenticate,
    Ext,
    HubDismiss,
    HubFence,
    HubOnline,
    Malformed,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import FIRST_PLACE, Neighbour, Session
from hubauth.core.outputs import Close, NoteKind
from hubauth.core.policy import Dialect
from hubauth.core.recovery import after_restart
from hubauth.core.transition import Step
from hubauth.lab.hub import (
    HUB,
    HUB_A,
    HUB_B,
    OWN_JOURNAL,
    PARENT_JOURNAL,
    Hub,
    admission,
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

A = "journal of hub-a"
FENCED = Answer(Action.HUB_FENCE, Reason.OK)


def joins(hub: Hub, ext: Ext | None, link: int = 1) -> Step:
    """Hub A connects and says this of the extension."""
    hub.up(link)
    return hub.receive(link, Authenticate("hub-a", key("hub-a"), ext))


def told(done: Step, link: int = 1) -> Ext | None:
    """What the answer to a join says of the extension."""
    body = sent(done, link)[0].frame.body
    assert isinstance(body, Answer) and body.reason is Reason.OK
    return body.ext


def present(hub: Hub, ext: Ext | None) -> Step:
    """The parent is back and answers with this."""
    hub.up(PARENT)
    return hub.answered(PARENT, evolve(admission(), ext=ext))


def bodies(done: Step, link: int) -> list[Any]:
    return [send.frame.body for send in sent(done, link)]


# The join, seen from the parent


def test_a_child_that_offers_it_is_taken_up_and_answered() -> None:
    hub = root()
    done = joins(hub, Ext(A))
    assert told(done) == Ext(OWN_JOURNAL, A, 0)
    assert hub.session(1) == Session("hub-a", HUB_A, True, extended=True)
    assert hub.state.neighbours[HUB_A] == Neighbour(journal=A)
    assert {"EXT-3", "EXT-5"} <= set(done.rules)


def test_the_answer_says_what_was_handled_from_the_child() -> None:
    hub = root()
    joins(hub, Ext(A))
    hub.receive(1, Revoke("x", seq=4))
    hub.down(1)
    assert told(joins(hub, Ext(A, OWN_JOURNAL), 2), 2) == Ext(OWN_JOURNAL, A, 4)


@pytest.mark.parametrize("ext", [None, Ext(OWN_JOURNAL), Ext(""), Ext(A, OWN_JOURNAL, MAX_HANDLED + 1), NOT_A_HUB])
def test_without_a_journal_of_its_own_a_child_is_plain(ext: Ext | None) -> None:
    hub = root()
    assert told(joins(hub, ext)) is None
    assert hub.session(1) == Session("hub-a", HUB_A, True)
    assert hub.state.neighbours[HUB_A] == Neighbour(plain=True)


def test_a_hub_that_does_not_speak_it_answers_and_believes_nothing() -> None:
    silent = Hub(root().policy, evolve(root().state, journal=""))
    for hub in (root(extension=False), silent):
        assert told(joins(hub, Ext(A))) is None and not hub.session(1).extended
    flat = root(dialect=Dialect.FLAT)
    flat.up(1)
    done = flat.receive(1, Authenticate("hub-a", "", Ext(A)))
    assert told(done) is None and not flat.session(1).extended


def test_a_changed_configuration_holds_for_links_that_join_later() -> None:
    hub = with_hubs(root())
    hub.now_with(extension=False)
    assert hub.session(1).extended
    hub.down(1)
    assert told(joins(hub, Ext(A), 3), 3) is None and not hub.session(3).extended
    hub.now_with(extension=True)
    assert not hub.session(3).extended and hub.session(2).extended


def test_what_a_link_is_it_stays_until_it_drops() -> None:
    hub = root()
    joins(hub, Ext(A))
    again = Authenticate("hub-a", key("hub-a"), Ext(A))
    assert told(hub.receive(1, again)) == Ext(OWN_JOURNAL, A, 0)
    for ext in (None, Ext("another journal")):
        assert told(hub.receive(1, evolve(again, ext=ext))) is None
        assert hub.session(1).extended and hub.state.neighbours[HUB_A].journal == A
    hub = root()
    joins(hub, None)
    assert told(hub.receive(1, again)) is None and not hub.session(1).extended


def test_whoever_is_admitted_as_a_device_is_told_so() -> None:
    hub = root()
    hub.up(1)
    done = hub.receive(1, Register("d", Ext("j")))
    assert told(done) == NOT_A_HUB and "EXT-7" in done.rules
    assert hub.session(1) == Session("d", 2, False)
    assert told(hub.receive(1, Authenticate("d", issued(1)))) is None
    hub.now_with(extension=False)
    assert told(hub.receive(1, Authenticate("d", issued(1), Ext("j")))) is None


def test_what_was_offered_is_remembered_while_another_hub_is_asked() -> None:
    hub = mid()
    hub.up(1)
    hub.receive(1, Register("k", Ext("j", OWN_JOURNAL, 6)))
    assert hub.state.pending[hub.last_question(PARENT)].ext == Ext("j", OWN_JOURNAL, 6)
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "k", 50, key("k"), HUB))
    assert told(done) == Ext(OWN_JOURNAL, "j", 0) and hub.session(1).extended
    assert hub.state.neighbours[50].sent == 6
    hub.up(2)
    hub.receive(2, Authenticate("l", key("l"), Ext("j2")))
    done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "l", 51, key("l"), HUB))
    assert told(done, 2) == Ext(OWN_JOURNAL, "j2", 0) and hub.session(2).extended


# The join, seen from the child


def test_a_hub_offers_its_journal_and_what_it_remembers_of_its_parent() -> None:
    hub = mid(joined=False)
    assert bodies(hub.up(PARENT), PARENT) == [Authenticate("mid", key("mid"), Ext(OWN_JOURNAL))]
    hub.answered(PARENT, admission())
    hub.receive(PARENT, Revoke("x", seq=9), source=1)
    hub.down(PARENT)
    assert not hub.state.parent_extended
    done = hub.up(PARENT)
    assert bodies(done, PARENT) == [Authenticate("mid", key("mid"), Ext(OWN_JOURNAL, PARENT_JOURNAL, 9))]
    assert "EXT-2" in done.rules
    assert bodies(mid(joined=False, extension=False).up(PARENT), PARENT) == [Authenticate("mid", key("mid"))]


def test_the_parent_link_is_extended_by_an_answer_that_names_both_journals() -> None:
    hub = mid(joined=False)
    hub.provisioned(1, "hub-a")
    done = present(hub, Ext(PARENT_JOURNAL, OWN_JOURNAL, 3))
    assert hub.state.parent_extended and "EXT-4" in done.rules
    assert hub.state.neighbours[0] == Neighbour(sent=3, journal=PARENT_JOURNAL)
    assert HubOnline("hub-a", HUB_A) in bodies(done, PARENT)


@pytest.mark.parametrize(
    "ext", [None, Ext(OWN_JOURNAL), Ext(OWN_JOURNAL, OWN_JOURNAL), Ext(PARENT_JOURNAL), Ext("", OWN_JOURNAL)]
)
def test_a_parent_that_says_nothing_or_only_repeats_is_plain_and_present(ext: Ext | None) -> None:
    hub = mid(joined=False)
    hub.provisioned(1, "hub-a")
    done = present(hub, ext)
    assert hub.state.parent_present and not hub.state.parent_extended
    assert bodies(done, PARENT) == [] and hub.state.announcing is None


def test_a_hub_that_does_not_speak_it_believes_no_parent() -> None:
    hub = mid(joined=False, extension=False)
    present(hub, Ext(PARENT_JOURNAL, OWN_JOURNAL))
    assert hub.state.parent_present and not hub.state.parent_extended
    hub = mid(joined=False, extension=False)
    present(hub, NOT_A_HUB)
    assert hub.state.parent_present


def test_a_hub_that_its_parent_takes_for_a_device_stays_away_and_tries_again() -> None:
    hub = mid(joined=False, node_id=0, credential="")
    hub.up(PARENT)
    done = hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 8, key("new"), ext=NOT_A_HUB))
    assert not hub.state.parent_present and PARENT not in hub.state.links and Close(PARENT) in done.outputs
    assert [note.kind for note in notes(done)] == [NoteKind.REFUSED_BY_PARENT] and "EXT-7" in done.rules
    # What it was given is its own all the same: it need not register again.
    assert bodies(hub.up(PARENT), PARENT) == [Authenticate("mid", key("new"), Ext(OWN_JOURNAL))]
    hub.answered(PARENT, admission(node_id=8))
    assert hub.state.parent_extended


# Whose numbers go on


def test_numbers_go_on_with_the_same_journal() -> None:
    hub = root()
    joins(hub, Ext(A))
    hub.happens(OperatorRevoke(Revoke("x")))
    hub.down(1)
    done = joins(hub, Ext(A), 2)
    assert bodies(done, 2)[1:] == [Revoke("x", seq=1), HubFence()]
    assert hub.state.neighbours[HUB_A] == Neighbour(1, 0, 1, 1, A)


def test_a_hub_restored_from_a_backup_uses_no_number_twice() -> None:
    hub = root()
    joins(hub, Ext(A))
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("x")))
    done = joins(hub, Ext(A, OWN_JOURNAL, 7), 2)
    assert bodies(done, 2)[1:] == [Revoke("x", seq=8), HubFence()]


def test_what_another_journal_has_handled_counts_for_nothing() -> None:
    for peer in ("", "somebody else's"):
        hub = root()
        joins(hub, Ext(A, peer, 7))
        assert hub.state.neighbours[HUB_A].sent == 0


def test_towards_another_journal_numbers_begin_anew_and_what_is_owed_waits_in_its_order() -> None:
    hub = root(revoke_batch=2)
    joins(hub, Ext(A))
    for name in "abc":
        hub.happens(OperatorRevoke(Revoke(name)))
    hub.receive(1, Revoke("z", seq=5))
    hub.down(1)
    done = joins(hub, Ext("a new directory"), 2)
    assert told(done, 2) == Ext(OWN_JOURNAL, "a new directory", 0)
    assert bodies(done, 2)[1:] == [Revoke("a", seq=1), Revoke("b", seq=2), HubFence()]
    assert hub.owed(HUB_A) == {Revoke("a"): (1, 1), Revoke("b"): (2, 1), Revoke("c"): (FIRST_PLACE + 2, 1)}
    # Its numbers begin anew, too.
    hub.receive(2, Revoke("y", seq=1))
    assert hub.state.neighbours[HUB_A].handled == 1


def test_what_never_had_a_number_keeps_its_place_with_another_journal() -> None:
    hub = root(revoke_batch=1)
    joins(hub, Ext(A))
    hub.down(1)
    for name in "ab":
        hub.happens(OperatorRevoke(Revoke(name)))
    joins(hub, Ext("a new directory"), 2)
    assert hub.owed(HUB_A) == {Revoke("a"): (1, 1), Revoke("b"): (FIRST_PLACE + 1, 1)}


def test_a_hub_that_was_somewhere_else_meanwhile_does_not_use_numbers_again() -> None:
    """Towards another journal it begins at 0, but this parent remembers how far it had come before."""
    hub = mid()
    hub.happens(OperatorRevoke(Revoke("x")))
    hub.answered(PARENT, FENCED)
    for parent, handled in (("another parent", 0), (PARENT_JOURNAL, 1)):
        hub.down(PARENT)
        present(hub, Ext(parent, OWN_JOURNAL, handled))
        assert hub.state.neighbours[0].sent == handled


def test_a_new_parent_is_not_told_what_could_kill_what_it_has_issued() -> None:
    hub = mid()
    named = Revoke("d", 30, key("d"))
    for message in (Revoke("a"), named, Revoke("b", 31)):
        hub.happens(OperatorRevoke(message))
    hub.down(PARENT)
    done = present(hub, Ext("another parent", OWN_JOURNAL))
    assert bodies(done, PARENT) == [evolve(named, seq=1), HubFence()]
    assert list(hub.owed(0)) == [named]
    assert [(note.rule, "2 revokes" in note.detail) for note in notes(done)] == [("EXT-6", True)]


def test_what_was_said_before_the_first_parent_was_met_is_owed_to_it() -> None:
    hub = mid(joined=False)
    hub.happens(OperatorRevoke(Revoke("a")))
    done = present(hub, Ext(PARENT_JOURNAL, OWN_JOURNAL))
    assert bodies(done, PARENT) == [Revoke("a", seq=1), HubFence()] and "EXT-6" not in done.rules


def test_a_restart_keeps_journals_and_forgets_which_links_were_extended() -> None:
    hub = with_hubs(mid())
    left = after_restart(hub.policy, hub.state)
    assert left.journal == OWN_JOURNAL and left.neighbours[HUB_A].journal == A
    assert left.neighbours[0].journal == PARENT_JOURNAL
    assert not left.parent_extended and not left.links


# Plain links


def plain(**changes: Any) -> Hub:
    """A hub below a plain parent, with hub A plain and hub B extended."""
    hub = mid(joined=False, **changes)
    present(hub, None)
    joins(hub, None)
    hub.provisioned(2, "hub-b")
    return hub


@pytest.mark.parametrize("message", [HubOnline("d", 30), HubDismiss("d", 30), HubFence()])
def test_the_extension_on_a_plain_link_is_dropped_without_an_answer(message: Any) -> None:
    hub = plain()
    hub.admitted_from_above(3, "d", 30)
    hub.up(4)
    for link in (PARENT, 1, 3, 4):
        for body in (message, Malformed(message.action, "bad")):
            assert dropped("EXT-1", link, hub.receive(link, body, source=HUB_A if link == 1 else 0))
            assert hub.unchanged


def test_an_announcement_is_not_answered_even_where_it_cannot_be_read() -> None:
    hub = with_hubs(root())
    assert dropped("FRAME-18", 1, hub.receive(1, Malformed(Action.HUB_ONLINE, "bad")))
    done = hub.receive(1, Malformed(Action.HUB_FENCE, "bad"))
    assert bodies(done, 1) == [Answer(Action.HUB_FENCE, Reason.INVALID_REQUEST)]


def test_a_plain_parent_hears_reports_and_no_announcements() -> None:
    hub = plain()
    done = hub.receive(2, HubOnline("d", 30))
    assert sent(done) == [] and hub.is_online(30)
    done = hub.receive(2, AssistOffline("d", 30))
    assert bodies(done, PARENT) == [AssistOffline("d", 30)]


def test_a_plain_child_is_not_told_that_a_device_has_moved() -> None:
    hub = plain()
    hub.down(2)
    joins(hub, Ext(A), 5)
    hub.found_below("d", 30, 5)
    hub.down(5)
    joins(hub, None, 6)
    hub.provisioned(7, "hub-b")
    hub.found_below("d", 30, 7)
    assert hub.state.directory[30].via == HUB_B and not hub.state.index.dismissed


def test_a_hub_that_does_not_speak_it_owes_nothing() -> None:
    hub = mid(joined=False, extension=False)
    hub.happens(OperatorRevoke(Revoke("d")))
    assert not hub.owed(0)


# Searches


def test_an_empty_credential_is_an_ordinary_search_that_nobody_can_satisfy() -> None:
    hub = with_hubs(mid())
    hub.admitted_from_above(3, "d", 30)
    for device_id in ("d", "unknown"):
        for link, target in ((1, HUB_A), (PARENT, 1)):
            done = hub.receive(link, AssistAuthenticate(device_id), source=target)
            answer = Answer(Action.ASSIST_AUTHENTICATE, Reason.NOT_ADMITTED, device_id)
            assert done.outputs == (reply(link, answer, hub, target=target),)
            assert "EXT-14" in done.rules and hub.unchanged
    assert hub.session(3).device_id == "d"


def test_routes_of_the_authority_follow_announcements_of_extended_children_only() -> None:
    hub = root(**listing(d=30))
    joins(hub, None)
    assert dropped("EXT-1", 1, hub.receive(1, HubOnline("d", 30)))
    assert 30 not in hub.state.directory
