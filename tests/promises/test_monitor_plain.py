"""The monitor over hand-written events of a tree with a plain hub: what is promised there, and what is not."""

from hubauth.core.messages import Action, Answer, AssistRegister, Authenticate, Frame, Reason, Register, Revoke
from hubauth.promises.events import Event, Setting
from hubauth.promises.monitor import Monitor
from tests.promises.test_monitor import NEW, OLD, QUIET, ask, broken, enters, heard, registers, revoked

ABOUT_D = Revoke("d")


def mixed(upper_is_plain: bool = False, both: bool = False) -> Monitor:
    """A root and a hub B below it, one of them plain, or both, and a device's link 7 at each."""
    root = Setting("root", replaces=False, extended=False, plain=upper_is_plain or both)
    below = Setting("B", replaces=False, extended=False, plain=not upper_is_plain or both, parent="root")
    configured = [Event("configured", "root", setting=root), Event("configured", "B", setting=below)]
    return Monitor().watch([*configured, *joins(), Event("up", "root", 7), Event("up", "B", 7), QUIET])


def joins(number: int = 1) -> list[Event]:
    ends = (("root", number), ("B", 0))
    return [Event("up", hub, link, place=("hub", ""), device_id="B") for hub, link in ends]


def parts(number: int = 1) -> list[Event]:
    return [Event("down", "root", number), Event("down", "B", 0)]


def passed_on(link: int = 0, target: int = 0) -> Event:
    """B hears of the revoke from the root."""
    return heard("B", link, ABOUT_D, target=target)


def test_a_revoke_that_a_live_link_did_not_carry_is_missed() -> None:
    assert broken(mixed(), [revoked("root"), QUIET]) == ["RevokeArrives"]
    assert broken(mixed(), [revoked("root"), passed_on(), QUIET]) == []
    assert broken(mixed(), [revoked("root"), *parts(), *joins(2), QUIET]) == [], "lost with the link"


def test_what_is_kept_for_a_plain_child_arrives_and_for_a_plain_parent_if_it_names_a_credential() -> None:
    assert broken(mixed(), [*parts(), revoked("root"), *joins(2), QUIET]) == ["RevokeArrives"]
    below = mixed(upper_is_plain=True)
    assert broken(below, [*parts(), revoked("B"), *joins(2), QUIET]) == []
    named = Event("commanded", "B", frame=Frame(Revoke("d", credential=OLD)))
    assert broken(below, [*parts(), named, *joins(2), QUIET]) == ["RevokeArrives"]


def test_what_a_plain_hub_does_not_pass_on_is_its_own_affair() -> None:
    assert broken(mixed(upper_is_plain=True), [revoked("root"), QUIET]) == []


def test_whomever_a_plain_hub_addresses_it_means_all() -> None:
    known = mixed(upper_is_plain=True).watch([*registers("B", OLD), QUIET, revoked("root"), passed_on(target=2), QUIET])
    assert broken(known, enters("B", OLD)) == ["RevokedStaysOut"]


def test_a_revoked_credential_is_dead_once_all_have_heard_and_no_plain_hub_was_asking() -> None:
    known = mixed().watch([*registers("B", OLD), QUIET])
    dead = known.watch([revoked("root"), passed_on(), QUIET])
    assert broken(dead, enters("root", OLD)) == ["RevokedStaysOut"]
    assert broken(known, [revoked("root"), *parts(), *joins(2), QUIET, *enters("B", OLD)]) == [], "not all have heard"
    waits = Event("waits", "B", device_id="d")
    assert broken(known, [revoked("root"), waits, passed_on(), QUIET, *enters("B", OLD)]) == [], "a race of its own"
    assert broken(dead, [*registers("root", NEW), *enters("root", NEW)]) == []


def test_who_was_admitted_above_is_not_refused_below_unless_something_is_kept_there() -> None:
    known = mixed(upper_is_plain=True).watch([*registers("root", OLD), QUIET])
    assert broken(known, enters("B", OLD, Reason.NOT_ADMITTED)) == ["NoLockOut"]
    assert broken(known, enters("B", OLD, Reason.UNREACHABLE)) == []
    kept = Event("rests", "B", 0, Frame(b""), ("kept", ("whitelist", "d")), "d", 10, NEW)
    older = known.watch([*registers("B", NEW), *registers("root", OLD)])
    assert broken(older, [kept, *enters("B", OLD, Reason.NOT_ADMITTED)]) == []


def test_nobody_waits_in_vain_but_at_a_plain_hub_below_a_plain_one() -> None:
    idle, asks = Event("idle"), heard("B", 7, Authenticate("d", OLD))
    assert broken(mixed(both=True), [asks, idle]) == []
    assert broken(mixed(both=True), [heard("root", 7, Register("d")), idle]) == ["PendingEventuallyAnswered"]
    for upper_is_plain in (True, False):
        assert broken(mixed(upper_is_plain), [asks, idle]) == ["PendingEventuallyAnswered"]


def test_what_a_plain_authority_issues_ends_the_promise_for_what_was_before() -> None:
    known = mixed(both=True).watch([*registers("B", OLD), QUIET])
    assert broken(known, enters("B", OLD, Reason.NOT_ADMITTED)) == ["NoLockOut"]
    success = Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 10, NEW)
    issued = ask("root", 1, AssistRegister("d"), success)
    assert broken(known, [*issued, *enters("B", OLD, Reason.NOT_ADMITTED)]) == []


def test_a_name_that_was_enough_stays_enough() -> None:
    success = Answer(Action.REGISTER, Reason.OK, "d", 10)
    known = mixed().watch(ask("root", 7, Register("d"), success))
    refused = Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED)
    assert broken(known, ask("root", 7, Authenticate("d"), refused)) == ["NoLockOut"]
    assert broken(known, ask("B", 7, Authenticate("d"), refused)) == []
