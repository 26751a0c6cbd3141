"""A hub below a parent, on another napkin: who waits for whom, and what every answer, late or wrong, must do.

Like ``naive``, this shares nothing with the core but the words. Devices d1, d2, d3 have the nodes that the authority
above would give them; one child hub may be connected.
"""

from collections.abc import Callable
from typing import TypeAlias

from attrs import Factory, define, evolve, frozen

from hubauth.core.messages import Action, Answer, Reason
from hubauth.core.policy import Assist, Policy
from model_tests.debts import NaiveDebts

PARENT, CHILD, NOBODY = 0, 9, -1
NODES = {"d1": 30, "d2": 31, "d3": 32}
Said: TypeAlias = tuple[int, Action, Reason]
"""(link, what was asked, how it is answered)"""
PASSED_ON = (Reason.NOT_ADMITTED, Reason.PROTECTED, Reason.UNREACHABLE, Reason.INTERNAL, Reason.EXHAUSTED, Reason.BUSY)


@frozen
class Question:
    """What this hub has asked on behalf of a link."""

    asked: int
    link: int
    action: Action
    device: str = ""
    credential: str = ""
    node_id: int = 0
    stale: bool = False
    waits: bool = False
    """The device is as good as in: only its role is missing."""
    begun: int = 0
    """How much had been forgotten when this was asked."""
    climbs: bool = False
    """The child is asked since the device was last seen there: the parent is asked, too, if the child cannot help."""
    missed: bool = False
    """The child could not be asked, or would not look: a search that finds nobody has not looked everywhere."""
    ended: bool = False
    """Given up, and then the device was revoked."""


@define
class NaiveHub:
    """Everything a hub between others knows, in dictionaries."""

    policy: Policy
    present: bool = False
    heeds: bool = False
    """Whether the parent speaks the extension, and so can be told where devices are."""
    links: dict[int, str | None] = Factory(dict)
    entries: dict[str, str] = Factory(dict)
    """device -> credential"""
    places: dict[str, tuple[str, bool]] = Factory(dict)
    """device -> ("here" or "child", online)"""
    questions: dict[int, Question] = Factory(dict)
    dismissed: set[str] = Factory(set)
    """Devices that the child was told to let go and has not confirmed."""
    cache: set[int] = Factory(set)
    """Nodes whose permissions are known."""
    forgotten: int = 0
    """How often this hub was told to forget permissions, whichever."""
    joined: int = 0
    """How much had been forgotten when the parent became present."""
    child_joined: int = 0
    """How much had been forgotten when the child did."""
    unheard: dict[int, Question] = Factory(dict)
    """What a neighbour that does not speak the extension was asked and nobody waits for any more."""
    handled: int = 0
    """The last revoke taken from the parent."""
    debts: NaiveDebts = Factory(lambda self: NaiveDebts(self.policy.revoke_batch), takes_self=True)
    """What the child is owed."""
    said: list[Said] = Factory(list)
    asked: list[tuple[int, Action]] = Factory(list)
    """The requests that the last event made this hub send: (link, action)"""
    closed: list[int] = Factory(list)

    def begin(self) -> None:
        self.said, self.asked, self.closed = [], [], []

    # Pieces

    def answer(self, link: int, action: Action, reason: Reason) -> None:
        if link in self.links or link == PARENT:
            self.said.append((link, action, reason))

    def tell_parent(self, action: Action) -> None:
        if self.present:
            self.asked.append((PARENT, action))

    def announce(self) -> None:
        if self.present and self.heeds:
            self.asked.append((PARENT, Action.HUB_ONLINE))

    def tell_child(self, actions: list[Action]) -> None:
        self.asked += [(CHILD, action) for action in actions]

    def link_of(self, device: str) -> int | None:
        return next((link for link, there in self.links.items() if there == device), None)

    def busy(self, link: int, whom: int = PARENT, *, enters: bool = True) -> bool:
        """Whether a device must wait before more is asked for it; if it wants to enter, others count, too."""
        own = [asked for asked in self.questions.values() if asked.link == link]
        entering = [asked for asked in self.questions.values() if asked.asked == whom and asked.device]
        crowded = enters and bool(own) and len(entering) >= self.policy.pending_limit
        return crowded or len(own) >= self.policy.pending_limit

    def leave(self, link: int, *, report: bool, stays: bool = True) -> None:
        """The device on the link is gone from here; whether the link stays, and hears that its questions are void."""
        device = self.links[link]
        assert device is not None
        self.links[link] = None
        self.places[device] = ("here", False)
        for key, asked in list(self.questions.items()):
            if asked.link == link and asked.action not in (Action.REGISTER, Action.AUTHENTICATE):
                self.give_up(key)
                if stays:
                    self.answer(link, asked.action, Reason.FORBIDDEN)
        if report:
            self.tell_parent(Action.ASSIST_OFFLINE)

    def forget_link(self, link: int) -> None:
        del self.links[link]
        for key in [key for key, asked in sorted(self.questions.items()) if asked.link == link]:
            self.give_up(key)

    def close(self, link: int) -> None:
        self.forget_link(link)
        self.closed.append(link)

    def displace(self, link: int) -> None:
        self.leave(link, report=False, stays=not self.policy.close_superseded)
        if self.policy.close_superseded:
            self.close(link)
        else:
            self.asked.append((link, Action.OFFLINE))

    def dismiss(self, device: str) -> None:
        if CHILD in self.links and self.debts.speaks:
            self.asked.append((CHILD, Action.HUB_DISMISS))
            self.dismissed.add(device)

    def enter(self, link: int, device: str) -> None:
        if self.links[link] not in (None, device):
            self.leave(link, report=True)
        other = self.link_of(device)
        if other not in (None, link):
            assert other is not None
            self.displace(other)
        if self.places.get(device) == ("child", True):
            self.dismiss(device)
        self.links[link] = device
        self.places[device] = ("here", True)
        self.announce()

    def let_in(self, asked: Question) -> None:
        """Admit a device, after it has waited for its role or without a wait."""
        self.entries[asked.device] = asked.credential
        self.enter(asked.link, asked.device)
        self.answer(asked.link, asked.action, Reason.OK)

    def admit(self, asked: Question, number: int, *, told: bool = False) -> None:
        """A device has proved who it is."""
        self.end_waiting(lambda other: other.device == asked.device)
        node_id = NODES[asked.device]
        asks = not told and node_id not in self.cache and self.present and self.policy.has_perms
        if asks and not self.busy(asked.link):
            self.asked.append((PARENT, Action.GET_PERMS))
            self.questions[number] = evolve(asked, asked=PARENT, node_id=node_id, waits=True)
        else:
            self.let_in(asked)

    def end_waiting(self, is_meant: Callable[[Question], bool], reason: Reason = Reason.UNREACHABLE) -> None:
        """Devices that wait for their role are sent away."""
        for key, question in sorted(self.questions.items()):
            if question.waits and is_meant(question):
                self.give_up(key)
                self.answer(question.link, question.action, reason)

    def fail(self, asked: int, number: int = 0) -> None:
        """A neighbour is gone: each that waits is refused or admitted without a role, or the parent asked."""
        lost = {key: question for key, question in sorted(self.questions.items()) if question.asked == asked}
        for key, question in lost.items():
            del self.questions[key]
            if question.climbs:
                self.ask_parent(evolve(question, missed=True), number)
                number += number in self.questions
            elif not question.waits:
                self.answer(question.link, question.action, Reason.UNREACHABLE)
        for question in lost.values():
            if question.waits:
                self.let_in(question)

    # What devices do. The number is the MsgID that the hub will use if it has to ask.

    def register(self, link: int, device: str, number: int) -> None:
        self.end_waiting(lambda other: other.link == link)
        if not self.present:
            self.answer(link, Action.REGISTER, Reason.UNREACHABLE)
        elif self.busy(link):
            self.answer(link, Action.REGISTER, Reason.BUSY)
        else:
            self.asked.append((PARENT, Action.ASSIST_REGISTER))
            self.questions[number] = Question(PARENT, link, Action.REGISTER, device, begun=self.forgotten)

    def authenticate(self, link: int, device: str, credential: str, number: int) -> None:
        self.end_waiting(lambda other: other.link == link)
        if device in self.entries or not credential:
            if credential and self.entries.get(device) == credential:
                self.admit(Question(PARENT, link, Action.AUTHENTICATE, device, credential), number)
            else:
                self.answer(link, Action.AUTHENTICATE, Reason.NOT_ADMITTED)
            return
        if self.policy.assist is Assist.NONE:
            self.answer(link, Action.AUTHENTICATE, Reason.NOT_ADMITTED)
            return
        question = Question(PARENT, link, Action.AUTHENTICATE, device, credential, begun=self.forgotten)
        place, _ = self.places.get(device, ("", False))
        if place != "child":
            self.ask_parent(question, number)
        elif CHILD not in self.links:
            self.ask_parent(evolve(question, missed=True), number)
        elif self.busy(link, CHILD):
            self.answer(link, Action.AUTHENTICATE, Reason.BUSY)
        else:
            first = self.debts.hears_of(device)
            self.tell_child(first)
            number += len(first)  # each has a MsgID, too
            self.asked.append((CHILD, self.search))
            self.questions[number] = evolve(question, asked=CHILD, climbs=True)

    def ask_parent(self, question: Question, number: int) -> None:
        """A search ends with the parent."""
        if not self.present:
            self.answer(question.link, question.action, Reason.UNREACHABLE)
        elif self.busy(question.link):
            self.answer(question.link, question.action, Reason.BUSY)
        else:
            self.asked.append((PARENT, self.search))
            self.questions[number] = evolve(question, asked=PARENT, climbs=False)

    @property
    def search(self) -> Action:
        query = self.policy.assist is Assist.QUERY
        return Action.ASSIST_QUERY_CREDENTIAL if query else Action.ASSIST_AUTHENTICATE

    def get_perms(self, link: int, node_id: int, number: int) -> None:
        if node_id in self.cache:
            self.answer(link, Action.GET_PERMS, Reason.OK)
        elif not self.present:
            self.answer(link, Action.GET_PERMS, Reason.UNREACHABLE)
        elif self.busy(link, enters=False):
            self.answer(link, Action.GET_PERMS, Reason.BUSY)
        else:
            self.asked.append((PARENT, Action.GET_PERMS))
            self.questions[number] = Question(PARENT, link, Action.GET_PERMS, node_id=node_id)

    # What comes back

    def kind(self, question: Question) -> Action:
        """What the neighbour calls it."""
        if question.waits or question.action is Action.GET_PERMS:
            return Action.GET_PERMS
        return Action.ASSIST_REGISTER if question.action is Action.REGISTER else self.search

    def is_plain(self, link: int) -> bool:
        return not (self.heeds if link == PARENT else self.debts.speaks)

    def meant(self, link: int, number: int, answer: Answer) -> int | None:
        """Which question an answer is about: without the extension numbers are worth less than names."""
        same = {key: one for key, one in sorted((self.questions | self.unheard).items()) if one.asked == link}
        same = {key: one for key, one in same.items() if self.kind(one) is answer.action}
        if not self.is_plain(link):
            return number if number in same else None
        asks_perms, succeeds = answer.action is Action.GET_PERMS, answer.reason is Reason.OK
        about = answer.node_id if asks_perms else answer.device_id
        fits = [key for key, one in same.items() if about == (one.node_id if asks_perms else one.device)]
        if number in (fits if about else same):
            return number
        if not about:
            return next(iter(same)) if not succeeds and len(same) == 1 else None
        if succeeds and answer.action is Action.ASSIST_AUTHENTICATE:
            fits = [key for key in fits if key in self.unheard or same[key].credential == answer.credential]
        fits.sort(key=lambda key: 1 if key in self.questions else 0 if same[key].ended else 2)
        return fits[0] if fits and (succeeds or len(fits) == 1) else None

    def give_up(self, key: int) -> Question:
        """Forget who asked. On a plain link remember the request, since its answer may come without a MsgID."""
        question = self.questions.pop(key)
        if self.is_plain(question.asked):
            older = sorted(other for other, one in self.unheard.items() if one.asked == question.asked)
            if len(older) >= self.policy.pending_limit:
                del self.unheard[older[0]]
            self.unheard[key] = question
        return question

    def answered(self, asked: int, number: int, answer: Answer, next_number: int) -> None:
        """A neighbour answers, under this number."""
        key = self.meant(asked, number, answer)
        if key is None:
            return
        if key in self.unheard:
            del self.unheard[key]
            return
        question = self.questions.pop(key)
        doubted = key != number and self.forgotten != (self.joined if asked == PARENT else self.child_joined)
        reason, stale = answer.reason, question.stale or doubted
        link, action = question.link, question.action
        if question.waits:
            if reason is Reason.OK and not stale:
                self.cache.add(question.node_id)
            self.let_in(question)
        elif action is Action.GET_PERMS:
            if reason is Reason.OK and not stale:
                self.cache.add(question.node_id)
            self.answer(link, action, reason)
        elif reason is not Reason.OK and question.climbs:
            self.ask_parent(evolve(question, missed=reason is not Reason.NOT_ADMITTED), next_number)
        elif reason is Reason.NOT_ADMITTED and question.missed:
            self.answer(link, action, Reason.UNREACHABLE)
        elif reason is not Reason.OK:
            passed = action is Action.REGISTER or reason in PASSED_ON
            self.answer(link, action, reason if passed else Reason.UNREACHABLE)
        elif not self.is_usable(question, answer):
            self.answer(link, action, Reason.UNREACHABLE)
        elif action is Action.AUTHENTICATE and answer.credential != question.credential:
            query = self.policy.assist is Assist.QUERY
            self.answer(link, action, Reason.NOT_ADMITTED if query else Reason.UNREACHABLE)
        elif (
            action is Action.AUTHENTICATE
            and self.entries.get(question.device, question.credential) != question.credential
        ):
            self.answer(link, action, Reason.NOT_ADMITTED)  # it has registered meanwhile
        else:
            told = bool(answer.grant.role) and not doubted and question.begun == self.forgotten
            if action is Action.REGISTER:
                question = evolve(question, credential=answer.credential)
                if told and self.policy.has_perms:
                    self.cache.add(NODES[question.device])
            self.admit(question, next_number, told=told)

    def is_usable(self, question: Question, answer: Answer) -> bool:
        """Whether a success says everything that it must, and of the right device."""
        complete = bool(answer.credential) or question.action is not Action.REGISTER
        return complete and (answer.device_id, answer.node_id) == (question.device, NODES[question.device])

    def timed_out(self, key: int) -> None:
        question = self.give_up(key)
        if question.waits:
            self.let_in(question)
        else:
            self.answer(question.link, question.action, Reason.UNREACHABLE)

    # What the other hubs do

    def announced(self, device: str) -> None:
        """By the child."""
        if device in self.dismissed or not self.debts.speaks:
            return
        own = self.link_of(device)
        if own is not None:
            self.displace(own)
        self.places[device] = ("child", True)
        self.announce()

    def reported_gone(self, device: str, action: Action) -> None:
        """By the child."""
        if self.places.get(device) == ("child", True):
            self.places[device] = ("child", False)
            if action is Action.ASSIST_OFFLINE or self.policy.answer_offline:
                self.answer(CHILD, action, Reason.OK)
            self.tell_parent(Action.ASSIST_OFFLINE)
        else:
            self.answer(CHILD, action, Reason.NOT_INDEXED)

    def ordered_off(self, device: str) -> None:
        """By the parent: the device is elsewhere."""
        if not self.heeds:
            return
        place, online = self.places.get(device, ("", False))
        if not online:
            self.answer(PARENT, Action.HUB_DISMISS, Reason.NOT_INDEXED)
            return
        if place == "child":
            self.dismiss(device)
            self.places[device] = ("child", False)
        else:
            own = self.link_of(device)
            assert own is not None
            self.displace(own)
        self.answer(PARENT, Action.HUB_DISMISS, Reason.OK)

    def revoked(self, device: str, credential: str, number: int) -> None:
        """By the parent."""
        if number <= self.handled and self.heeds:
            return
        if self.heeds:
            self.handled = number
        self.tell_child(self.debts.revoked(device, credential))
        for key, question in sorted(self.questions.items()):
            enters = question.action is Action.AUTHENTICATE or question.waits
            if enters and question.device == device and credential in ("", question.credential):
                self.give_up(key)
                self.answer(question.link, question.action, Reason.NOT_ADMITTED)
        for key, question in self.unheard.items():
            if question.asked == CHILD and question.device == device:
                self.unheard[key] = evolve(question, ended=True)
        if device in self.entries and credential in ("", self.entries[device]):
            del self.entries[device]
            self.answer(PARENT, Action.REVOKE, Reason.OK)
            link = self.link_of(device)
            if link is not None:
                closes = self.policy.close_on_revoke and not self._registers(link)
                self.leave(link, report=True, stays=not closes)
                if closes:
                    self.close(link)
        elif device in self.entries and self.policy.answer_mismatch:
            self.answer(PARENT, Action.REVOKE, Reason.CREDENTIAL_MISMATCH)

    def _registers(self, link: int) -> bool:
        return any(asked.link == link and asked.action is Action.REGISTER for asked in self.questions.values())

    def invalidated(self, nodes: tuple[int, ...], number: int, *, refresh: bool) -> None:
        """By the parent, which may want what was known to be asked for again."""
        known = sorted(self.cache & set(nodes))
        self.cache -= set(nodes) or set(self.cache)
        self.forgotten += 1
        for key, asked in self.questions.items():
            if (asked.action is Action.GET_PERMS or asked.waits) and (not nodes or asked.node_id in nodes):
                self.questions[key] = evolve(asked, stale=True)
        if CHILD in self.links:
            self.asked.append((CHILD, Action.PERMS_INVALIDATE))
            number += 1
        for at, node_id in enumerate(known if refresh else ()):
            self.asked.append((PARENT, Action.GET_PERMS))
            self.questions[number + at] = Question(PARENT, NOBODY, Action.GET_PERMS, node_id=node_id)

    def forget_unheard(self, link: int) -> None:
        self.unheard = {key: one for key, one in self.unheard.items() if one.asked != link}

    def parent_gone(self) -> None:
        self.present = self.heeds = False
        self.forget_unheard(PARENT)
        self.fail(PARENT)

    def child_gone(self, number: int) -> None:
        for device, (place, online) in sorted(self.places.items()):
            if place == "child" and online:
                self.places[device] = ("child", False)
                self.tell_parent(Action.ASSIST_OFFLINE)
        self.fail(CHILD, number + len(self.asked))  # each report has a MsgID
        self.forget_unheard(CHILD)
        self.dismissed = set()
        self.debts.leaves()
        del self.links[CHILD]
