"""The monitor alone, over hand-written events: what breaks each promise, and what only looks like it."""

from collections.abc import Iterable

from attrs import evolve

from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Authenticate,
    Body,
    Frame,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    Reason,
    Register,
    Revoke,
)
from hubauth.promises.events import Event, Setting
from hubauth.promises.monitor import Monitor

OLD, NEW = "o" * 43, "n" * 43


def tree(replaces: bool = True, extended: bool = True) -> Monitor:
    """A root, which issues, and a hub B below it, each with its links up."""
    hub = ("B", 2, "b" * 43)
    root = Setting("root", frozenset([hub]), frozenset(["B"]), replaces=replaces, extended=extended, searches=extended)
    settings = [("root", root), ("B", Setting("B", extended=extended, searches=extended))]
    configured = [Event("configured", name, setting=setting) for name, setting in settings]
    joins = ask("root", 1, Authenticate("B", "b" * 43), Answer(Action.AUTHENTICATE, Reason.OK, "B", 2, "b" * 43))
    return Monitor().watch([*configured, Event("up", "root", 1), Event("up", "B"), *joins, *up("root", 7), *up("B", 7)])


def up(hub: str, link: int) -> list[Event]:
    return [Event("up", hub, link)]


def said(hub: str, link: int, body: Body, **header: int) -> Event:
    return Event("sent", hub, link, Frame(body, **header))  # type: ignore[arg-type]


def heard(hub: str, link: int, body: Body, **header: int) -> Event:
    return Event("received", hub, link, Frame(body, **header))  # type: ignore[arg-type]


def ask(hub: str, link: int, request: Body, answer: Answer) -> list[Event]:
    return [heard(hub, link, request), said(hub, link, answer)]


def registers(hub: str, key: str, node_id: int = 10, device: str = "d", link: int = 7) -> list[Event]:
    return ask(hub, link, Register(device), Answer(Action.REGISTER, Reason.OK, device, node_id, key))


def enters(hub: str, key: str, reason: Reason = Reason.OK, device: str = "d") -> list[Event]:
    node_id = 10 if reason is Reason.OK else 0
    return ask(hub, 7, Authenticate(device, key), Answer(Action.AUTHENTICATE, reason, device, node_id))


def revoked(hub: str, target: int = 0) -> Event:
    return Event("commanded", hub, frame=Frame(Revoke("d"), target=target))


QUIET, IDLE = Event("quiet"), Event("idle")


def broken(monitor: Monitor, events: Iterable[Event]) -> list[str]:
    return [promise for promise, _, _ in monitor.watch(events).broken]


def test_a_tree_that_does_what_it_should_breaks_nothing() -> None:
    events = [*registers("root", OLD), *enters("root", OLD), *enters("B", OLD), IDLE, *enters("B", OLD)]
    assert broken(tree(), events) == []


# Bindings


def test_a_node_and_a_device_are_one_for_ever() -> None:
    assert broken(tree(), [*registers("root", OLD), *registers("root", NEW, device="e")]) == ["UniqueNodeIds"]
    assert broken(tree(), [*registers("root", OLD), *registers("root", NEW, node_id=11)]) == ["OneToOneBinding"]
    assert broken(tree(), registers("root", OLD, node_id=2)) == ["UniqueNodeIds"]
    at_rest = Event("rests", "B", place=("binding", 1), device_id="e", node_id=10)
    assert broken(tree(), [*registers("root", OLD), at_rest]) == ["UniqueNodeIds"]


def test_what_a_configuration_meant_is_not_given_out_when_it_is_forgotten() -> None:
    setting = Setting("root", reserved=frozenset([10]))
    seen = [Event("configured", "root", setting=setting), Event("configured", "root", setting=Setting("root"))]
    assert broken(tree(), [*seen, *registers("root", OLD)]) == ["UniqueNodeIds"]
    whom = Setting("root", frozenset([("d", 10, OLD)]))
    assert broken(tree(), [*seen, Event("configured", "root", setting=whom), *enters("root", OLD)]) == []


# Requests


def test_an_answer_is_asked_for_on_its_link_and_given_once() -> None:
    answer = said("root", 7, Answer(Action.REGISTER, Reason.PROTECTED, "d"))
    assert broken(tree(), [answer]) == ["NoAnswerWithoutRequest"]
    assert broken(tree(), [heard("root", 7, Register("d")), answer]) == []
    assert broken(tree(), [heard("root", 7, Register("d")), answer, answer]) == ["NoAnswerWithoutRequest"]
    assert broken(tree(), [heard("root", 1, Register("d")), answer]) == ["NoAnswerWithoutRequest"]


def test_a_request_is_answered_before_everybody_rests() -> None:
    asked = heard("B", 7, Register("d"))
    assert broken(tree(), [asked, QUIET]) == []
    assert broken(tree(), [asked, IDLE]) == ["PendingEventuallyAnswered"]
    for gone in (Event("down", "B", 7), Event("restarted", "B"), Event("closed", "B", 7)):
        assert broken(tree(), [asked, gone, IDLE]) == []
    assert broken(tree(), [heard("B", 7, GetPerms(3), source=9), IDLE]) == []


def test_what_hubs_say_to_each_other_alone_or_without_a_name_need_not_be_answered() -> None:
    for body in (HubOnline("d", 10), HubDismiss("d", 10), HubFence(), Revoke("d", seq=1)):
        assert broken(tree(), [heard("B", 0, body, source=1), IDLE]) == []
    assert broken(tree(), [heard("B", 0, GetPerms(3), source=1), IDLE]) == ["PendingEventuallyAnswered"]
    assert broken(tree(), [heard("B", 0, GetPerms(3)), IDLE]) == []


def test_a_revoke_does_not_cut_a_registration_off() -> None:
    asked, closed = heard("B", 7, Register("e")), Event("closed", "B", 7)
    assert broken(tree(), [asked, revoked("B"), closed]) == ["PendingEventuallyAnswered"]
    assert broken(tree(), [asked, revoked("B"), Event("late", "B"), closed]) == []


# Admission


def test_nobody_is_admitted_by_a_credential_of_nobody_or_of_another() -> None:
    assert broken(tree(), enters("root", NEW)) == ["AdmittedByCredential"]
    others = [*registers("root", OLD, 11, "e"), *enters("root", OLD)]
    assert broken(tree(), others) == ["AdmittedByCredential"]


def test_the_revoked_are_out_when_all_is_quiet_and_not_before() -> None:
    events = [*registers("root", OLD), revoked("root"), heard("B", 0, Revoke("d", seq=1))]
    assert broken(tree(), [*events, *enters("B", OLD)]) == []
    assert broken(tree(), [*events, QUIET, *enters("B", OLD)]) == ["RevokedStaysOut"]
    kept = Event("rests", "root", place=("kept", "d"), device_id="d", node_id=10, credential=OLD)
    assert broken(tree(), [*events[:2], kept, *events[2:], QUIET]) == ["RevokedStaysOut"]
    assert (
        broken(tree(), [*events[:2], kept, evolve(kept, device_id="", node_id=0, credential=""), *events[2:], QUIET])
        == []
    )


def test_registering_again_revokes_what_was_issued_before() -> None:
    twice = [*registers("root", OLD), *registers("root", NEW), heard("B", 0, Revoke("d", 10, seq=1)), QUIET]
    assert broken(tree(), [*twice, *enters("root", OLD)]) == ["RevokedStaysOut"]
    assert broken(tree(replaces=False), [*twice, *enters("root", OLD)]) == []


def test_nobody_is_locked_out_for_asking() -> None:
    refused = enters("root", OLD, Reason.NOT_ADMITTED)
    asks = [*registers("root", OLD), heard("root", 7, Register("d"))]
    assert broken(tree(), [*asks, *refused]) == ["NoLockOut"]
    assert broken(tree(), [*asks, said("root", 7, Answer(Action.REGISTER, Reason.OK, "d", 10, NEW)), *refused]) == []
    assert broken(tree(), [*registers("root", OLD), revoked("B", 1), *refused]) == []
    assert broken(tree(), [*registers("root", OLD), revoked("B"), *refused]) == []


def test_a_revoke_that_comes_again_excuses_nothing() -> None:
    once = heard("root", 1, Revoke("d", seq=5))
    refused = enters("root", NEW, Reason.NOT_ADMITTED)
    assert broken(tree(), [revoked("B"), once, *registers("root", NEW), once, *refused]) == ["NoLockOut"]
    renumbered = heard("root", 1, Revoke("d", seq=6))
    assert broken(tree(), [revoked("B"), once, *registers("root", NEW), renumbered, *refused]) == ["NoLockOut"]
    assert broken(tree(), [revoked("B"), *registers("root", NEW), once, *refused]) == []
    two = [revoked("B"), once, revoked("B"), *registers("root", NEW), renumbered]
    assert broken(tree(), [*two, *refused]) == [], "the second was said before, and had not come yet"


def test_the_live_are_admitted_everywhere_when_all_is_quiet() -> None:
    refused = enters("B", OLD, Reason.NOT_ADMITTED)
    assert broken(tree(), [*registers("root", OLD), *refused]) == []
    assert broken(tree(), [*registers("root", OLD), QUIET, *refused]) == ["AdmittedAnywhere"]
    assert broken(tree(), [*registers("root", OLD), QUIET, refused[0], Event("late", "B"), refused[1]]) == []
    silent = [*registers("root", OLD), QUIET, refused[0], QUIET]
    assert broken(tree(), silent) == ["PendingEventuallyAnswered"]


# Credentials at rest


def test_a_credential_rests_where_it_admitted_somebody() -> None:
    issued = [heard("root", 1, AssistRegister("d"), source=2)]
    issued += [said("root", 1, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 10, OLD))]
    kept = Event("rests", "root", place=("kept", "d"), device_id="d", node_id=10, credential=OLD)
    wrong = ["CredentialsNeverCachedUpstream"]
    assert broken(tree(), [*issued, kept]) == wrong
    assert broken(tree(), [*issued, *registers("B", OLD), evolve(kept, hub="B")]) == []
    for place in ("owed", "memory"):
        elsewhere = evolve(kept, place=(place, 1))
        assert broken(tree(), [*issued, elsewhere]) == wrong
        assert broken(tree(), [*issued, heard("root", 1, Revoke("d", 0, OLD, seq=1)), elsewhere]) == []
    remembered = evolve(kept, place=("memory", 1), node_id=0)
    assert broken(tree(), [*issued, heard("root", 7, Authenticate("d", OLD)), remembered]) == []
    assert broken(tree(), [*issued, *enters("root", OLD, Reason.BUSY), remembered]) == wrong
    for device, found in (("d", []), ("e", wrong)):
        waits = heard("B", 7, Register(device))
        assert broken(tree(), [waits, *issued, evolve(remembered, hub="B")]) == found, "its role is asked for"


# Revokes


def test_a_revoke_arrives_at_every_hub() -> None:
    assert broken(tree(), [revoked("root"), QUIET]) == ["RevokeArrives"]
    assert broken(tree(), [revoked("root"), heard("B", 0, Revoke("d", seq=1)), QUIET]) == []
    assert broken(tree(), [revoked("root", 2), QUIET]) == [], "it was not for all"


def test_among_plain_hubs_a_revoke_may_be_lost_but_nobody_is_locked_out() -> None:
    plain = tree(extended=False)
    lost = [*registers("root", OLD), revoked("root"), QUIET, *enters("B", OLD)]
    assert broken(tree(), lost) == ["RevokeArrives", "RevokedStaysOut"]
    assert broken(plain, lost) == []
    assert broken(plain, [*registers("root", OLD), QUIET, *enters("B", OLD, Reason.NOT_ADMITTED)]) == []
    assert broken(plain, [*registers("root", OLD), *enters("root", OLD, Reason.NOT_ADMITTED)]) == ["NoLockOut"]
