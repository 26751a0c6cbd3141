"""One hub seen alone: what its neighbours say excuses it, and nothing else does; the guard stays within its bounds."""

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistRegister,
    Authenticate,
    Body,
    Frame,
    Reason,
    Register,
    Revoke,
)
from hubauth.promises.events import Setting
from hubauth.seen import Broken, Guard, Onlooker, tell

OLD, NEW = "o" * 43, "n" * 43
CHILD, ADMIN = ("child", 3, "c" * 43), ("admin", 9, "a" * 43)
SETTING = Setting("hub", frozenset([CHILD, ADMIN]), frozenset(["child"]))


class Watched:
    """A guard, and what it has found so far."""

    def __init__(self, replaces: bool = False, **bounds: int) -> None:
        setting = Setting("hub", SETTING.bindings, SETTING.hubs, replaces=replaces)
        self.known: dict[str, tuple[int, str]] = {}
        self.guard = Guard(Onlooker("hub", setting), lambda name: self.known.get(name, (0, "")), **bounds)
        self.found: list[Broken] = []
        for link in (0, 1, 2, 7):
            self.found += self.guard.link("up", link)
        self.ask(1, Authenticate("child", CHILD[2]), Answer(Action.AUTHENTICATE, Reason.OK, "child", 3, CHILD[2]))
        self.ask(2, Authenticate("admin", ADMIN[2]), Answer(Action.AUTHENTICATE, Reason.OK, "admin", 9, ADMIN[2]))

    def hears(self, link: int, body: Body, msg_id: int = 1) -> None:
        self.found += self.guard.received(link, Frame(body, msg_id=msg_id, source=1)) + self.guard.handled()

    def says(self, link: int, body: Body, msg_id: int = 1) -> None:
        self.found += self.guard.sent(link, Frame(body, msg_id=msg_id))

    def ask(self, link: int, request: Body, answer: Answer) -> None:
        self.hears(link, request)
        self.says(link, answer)

    def registers(self, key: str = OLD, node_id: int = 10, device: str = "d") -> None:
        self.ask(7, Register(device), Answer(Action.REGISTER, Reason.OK, device, node_id, key))

    def enters(self, key: str = OLD, reason: Reason = Reason.OK) -> None:
        self.ask(7, Authenticate("d", key), Answer(Action.AUTHENTICATE, reason, "d", 10))

    @property
    def broken(self) -> list[str]:
        return [promise for promise, _, _ in self.found]


def test_who_is_admitted_was_issued_a_credential_or_a_neighbour_has_vouched() -> None:
    hub = Watched()
    hub.enters()
    assert hub.broken == ["AdmittedByCredential"]
    hub = Watched()
    hub.hears(7, Authenticate("d", OLD))
    hub.says(0, AssistAuthenticate("d", OLD), 5)
    hub.hears(0, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 10, OLD), 5)
    hub.says(7, Answer(Action.AUTHENTICATE, Reason.OK, "d", 10))
    assert hub.broken == []


def test_the_revoked_are_out_whoever_has_revoked_them() -> None:
    for link, answers in ((0, False), (1, False), (2, True)):
        hub = Watched()
        hub.registers()
        hub.hears(link, Revoke("d", seq=0 if answers else 1))
        if answers:
            hub.says(link, Answer(Action.REVOKE, Reason.OK, "d", 10))
        hub.found += hub.guard.handled()
        hub.enters(reason=Reason.NOT_ADMITTED)
        assert hub.broken == [], link
        hub.enters()
        assert hub.broken == ["RevokedStaysOut"], link
        later, earlier = hub.found[0][1:]
        assert earlier is not None and isinstance(earlier.frame.body, Revoke) and later.kind == "sent"
        assert "d" in tell(*hub.found[0]) and OLD not in tell(*hub.found[0])


def test_a_revoke_that_the_hub_has_no_need_to_obey_says_nothing() -> None:
    for reason in (Reason.OK, Reason.NOT_ADMITTED):
        hub = Watched()
        hub.hears(1, Revoke("d", seq=1))
        hub.registers()
        hub.hears(1, Revoke("d", seq=1))
        hub.enters(reason=reason)
        assert hub.broken == [], "it may be repeated, or of another journal"


def test_a_revoke_with_a_number_below_the_highest_may_have_been_handled() -> None:
    hub = Watched()
    hub.hears(1, Revoke("e", seq=7))
    hub.registers()
    hub.hears(1, Revoke("d", seq=5))
    hub.enters()
    assert hub.broken == []


def test_a_device_that_may_not_revoke_excuses_nothing() -> None:
    hub = Watched()
    hub.registers()
    hub.ask(2, Revoke("d"), Answer(Action.REVOKE, Reason.FORBIDDEN, "d"))
    hub.enters(reason=Reason.NOT_ADMITTED)
    assert hub.broken == ["NoLockOut"]


def test_a_neighbour_may_vouch_for_what_was_revoked() -> None:
    hub = Watched()
    hub.registers()
    hub.hears(0, Revoke("d", seq=1))
    hub.hears(7, Authenticate("d", OLD), 2)
    hub.hears(0, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 10, OLD), 5)
    hub.says(7, Answer(Action.AUTHENTICATE, Reason.OK, "d", 10), 2)
    assert hub.broken == []


def test_who_asked_before_the_credential_was_known_here_may_be_refused_by_others() -> None:
    hub = Watched()
    hub.hears(7, Authenticate("d", OLD), 2)
    hub.hears(0, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 10, OLD), 5)
    hub.hears(2, Authenticate("d", OLD), 3)
    hub.says(7, Answer(Action.AUTHENTICATE, Reason.OK, "d", 10), 2)
    hub.says(2, Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED), 3)
    assert hub.broken == []
    hub.enters(reason=Reason.NOT_ADMITTED)
    assert hub.broken == ["NoLockOut"]


def test_a_node_and_a_device_are_one() -> None:
    hub = Watched()
    hub.registers()
    hub.registers(NEW, 10, "e")
    assert hub.broken == ["UniqueNodeIds"]
    hub.registers("m" * 43, 11)
    assert hub.broken == ["UniqueNodeIds", "OneToOneBinding"]
    hub = Watched()
    hub.registers(node_id=9)
    assert hub.broken == ["UniqueNodeIds"], "the configuration names it"


def test_answers_without_numbers_or_actions_belong_to_the_oldest_request() -> None:
    for action in (Action.REGISTER, None):
        hub = Watched()
        hub.hears(7, Register("d"), 17)
        hub.says(7, Answer(action, Reason.OK, "d", 10, OLD), 0)
        assert hub.broken == []
        hub.says(7, Answer(action, Reason.OK, "d", 10, OLD), 0)
        assert hub.broken == ["NoAnswerWithoutRequest"]


def test_what_is_issued_to_others_replaces_what_a_device_had() -> None:
    hub = Watched(replaces=True)
    hub.registers()
    hub.ask(1, AssistRegister("d"), Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 10, NEW))
    hub.found += hub.guard.handled()
    hub.enters(reason=Reason.NOT_ADMITTED)
    assert hub.broken == []
    hub.enters()
    assert hub.broken == ["RevokedStaysOut"]


def test_a_guard_begins_anew_within_bounds_and_accuses_nobody_of_what_it_has_forgotten() -> None:
    hub = Watched(most=50)
    for number in range(10, 400):
        device, key = f"d{number}", f"k{number:042}"
        hub.ask(7, Register(device), Answer(Action.REGISTER, Reason.OK, device, number, key))
        hub.known[device] = number, key
        hub.hears(7, Authenticate(device, key), number)  # in flight when it begins anew
        hub.says(7, Answer(Action.AUTHENTICATE, Reason.OK, device, number), number)
        early = f"d{10 + (number - 10) // 2}"
        hub.ask(
            7,
            Authenticate(early, hub.known[early][1]),
            Answer(Action.AUTHENTICATE, Reason.OK, early, hub.known[early][0]),
        )
    assert hub.broken == []
    monitor = hub.guard._monitor
    assert len(monitor.bound) + len(monitor.credentials) + len(monitor.asked) < 200
    hub.ask(7, Authenticate("d300", "x" * 43), Answer(Action.AUTHENTICATE, Reason.OK, "d300", 300))
    assert "AdmittedByCredential" in hub.broken
