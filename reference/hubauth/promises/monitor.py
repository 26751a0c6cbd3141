"""The promises, each a method without an underscore, and the few facts by which they are judged.

A monitor is a value: ``watch`` returns another. It knows no hub's state and nothing of how hubs decide. A credential is
issued when a registration's success first holds it, admitted where a hub says so on its own link, doomed by a revoke
said while it is admitted somewhere, and dead once all is quiet after that. Nothing is promised of one in doubt: on its
way when a revoke was said, issued where that had not come yet, revoked at one hub alone, replaced, or configured away.

In a tree with plain hubs a revoked credential is dead once all is quiet, every hub has heard of the revoke, and no
plain hub has asked about the device meanwhile. A plain hub promises nothing; it is watched for what is done to it.
"""

from collections.abc import Iterable
from copy import copy
from typing import Any

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.messages import Action, Answer, AssistRegister, Authenticate, Reason, Register, Revoke
from hubauth.promises.events import PARENT, UNANSWERED, Event, Setting

_BINDING = (Action.REGISTER, Action.AUTHENTICATE, Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE)


@frozen
class Credential:
    device_id: str
    node_id: int
    issued: Event
    admitted: Map[str, Event] = field(factory=Map)  # by which hubs
    doubtful: bool = False
    doomed: Event | None = None

    @property
    def is_live(self) -> bool:
        return bool(self.admitted) and not self.doubtful and self.doomed is None

    def is_meant(self, key: str, revoke: Revoke) -> bool:
        said = (revoke.device_id, revoke.node_id or self.node_id, revoke.credential or key)
        return said == (self.device_id, self.node_id, key)


class Monitor:
    """What was seen, as far as it matters."""

    def __init__(self) -> None:
        self.now = self.quiet = self.alone = 0  # alone: when the one request came that followed quiet; -1: none did yet
        self.broken: tuple[tuple[str, Event, Event | None], ...] = ()  # promise, and what contradicts what
        self.hubs: Map[str, Setting] = Map()
        self.told: Map[str, Event] = Map()  # hub -> the last thing that it was told
        self.bound: Map[str | int, tuple[str | int, Event]] = Map()  # device -> node, and node -> device
        self.credentials: Map[str, Credential] = Map()
        self.given: Map[str, tuple[str, ...]] = Map()  # device -> its credentials, the newest last
        self.sessions: Map[tuple[str, int], tuple[str, int]] = Map()  # the device and node that were admitted last
        self.asked: Map[tuple[str, int], tuple[tuple[Event, bool], ...]] = Map()  # requests; must it answer?
        self.said: Map[Revoke, tuple[tuple[Event, frozenset[str]], ...]] = Map()  # since all was quiet, and to whom
        self.heard: Map[tuple[str, Revoke], tuple[int, int]] = Map()  # how often, repetitions not counted; when last
        self.numbers: frozenset[tuple[str, str, int]] = frozenset()  # of revokes: at, from, number
        self.named: frozenset[tuple[str, str]] = frozenset()  # hub, and a credential that a revoke has named there
        self.resting: Map[tuple[str, object], Event] = Map()
        self.welcome: Map[tuple[str, str], Event] = Map()  # hub and device that was admitted there by its name alone
        self.between: Map[tuple[str, int], str] = Map()  # the links among hubs, each with the lower one
        self.joined: Map[str, int] = Map()  # hub -> when either end of its link to its parent came up last
        self.parted: Map[str, int] = Map()  # hub -> when either end of that link was lost last
        self.awaited: frozenset[str] = frozenset()  # devices that a plain hub has asked about since all was quiet

    def watch(self, events: Iterable[Event]) -> "Monitor":
        """The monitor that has seen these, too; ``broken`` is everything that was ever found."""
        after = copy(self)
        for event in events:
            after.now += 1
            after._see(evolve(event, at=after.now), event.frame.body, (event.hub, event.link))
        return after

    def _see(self, event: Event, body: object, link: tuple[str, int]) -> None:
        if event.kind in ("received", "commanded", "late", "configured", "down", "restarted"):
            self.told = self.told.set(event.hub, event)
            if event.kind != "received" or isinstance(body, Register | Authenticate | Revoke):
                self.alone = self.now if self.alone == -1 and isinstance(body, Authenticate) else 0
        device_id, node_id = self.sessions.get(link, ("", 0))
        match event.kind:
            case "configured":
                self._configure(event)
            case "up":
                self.asked, self.sessions = self.asked.set(link, ()), self.sessions.set(link, ("", 0))
                if event.place[0] == "hub":
                    self.between = self.between.set(link, event.device_id)
                    self.joined = self.joined.set(event.device_id, self.now)
            case "down" | "closed" | "restarted":
                restarts = event.kind == "restarted"
                for gone in [each for each in self.asked if each == link or (restarts and each[0] == event.hub)]:
                    self.pending_eventually_answered(event, gone)
                    self.asked = self.asked.delete(gone)
                    if gone in self.between:
                        self.parted = self.parted.set(self.between[gone], self.now)
                        self.between = self.between.delete(gone)
            case "commanded" | "received" if isinstance(body, Revoke):
                self.named |= {(event.hub, body.credential)}
                number, body = (event.hub, device_id, body.seq), evolve(body, seq=0)
                is_hub = event.link == PARENT or link in self.between or device_id in self.hubs[event.hub].hubs
                if event.kind == "commanded":
                    self._say(event, body, everywhere=event.frame.target == 0)
                elif is_hub and self._means_all(event) and (number[2] == 0 or number not in self.numbers):
                    self.numbers |= {number}
                    self._count(event.hub, body)
            case "received" if not isinstance(body, Answer | bytes) and not getattr(body, "is_answer", False):
                known = event.frame.source != 0 and (event.link == PARENT or node_id == event.frame.source)
                must = not isinstance(body, UNANSWERED) and (known or isinstance(body, Register | Authenticate))
                self.asked = self.asked.set(link, (*self.asked.get(link, ()), (event, must)))
            case "sent" if isinstance(body, Answer) and body.action is not Action.REVOKE:
                self.no_answer_without_request(event, body, link)
            case "waits":
                self.awaited |= {event.device_id}
            case "rests":
                self.credentials_never_cached_upstream(event)
            case "vouched":
                self._change(self.given.get(event.device_id, ()), doubtful=True)
                self._put(event.credential, Credential(event.device_id, event.node_id, event, Map({event.hub: event})))
            case "handled":
                self.quiet = self.now
            case "quiet" | "idle":
                self.revoke_arrives(event)
                self._bury()
                for rest in self.resting.values():
                    doomed = self.credentials[rest.credential].doomed if rest.credential in self.credentials else None
                    if rest.place[0] == "kept" and doomed is not None:
                        self._breaks("RevokedStaysOut", rest, doomed)
                for each in self.asked:
                    self.pending_eventually_answered(event, each)
                self.said, self.heard, self.quiet, self.alone = Map(), Map(), self.now, -1
                self.awaited = frozenset()

    def _configure(self, event: Event) -> None:
        old, new = self.hubs.get(event.hub, Setting()), event.setting
        self.hubs = self.hubs.set(event.hub, new)
        self.bound = self.bound.update({node_id: ("", event) for node_id in new.reserved if node_id not in self.bound})
        for device_id, node_id, key in sorted(old.bindings ^ new.bindings):
            self._change(self.given.get(device_id, ()), doubtful=True)
            self.welcome = Map({at: since for at, since in self.welcome.items() if at[1] != device_id})
            if (device_id, node_id, key) in new.bindings:
                self.one_to_one_binding(event, device_id, node_id)
                known = self.credentials.get(key, Credential(device_id, node_id, event))
                here = evolve(known, admitted=known.admitted.set(event.hub, event))
                self._put(key, evolve(here, doubtful=self._is_outrun(event.hub, key, known)))

    def _put(self, key: str, known: Credential) -> None:
        given = tuple(other for other in self.given.get(known.device_id, ()) if other != key)
        self.given = self.given.set(known.device_id, (*given, key)) if key else self.given
        self.credentials = self.credentials.set(key, known) if key else self.credentials

    def _change(self, keys: Iterable[str], **changes: Any) -> None:
        for key in keys:
            self.credentials = self.credentials.set(key, evolve(self.credentials[key], **changes))

    def _issue(self, event: Event, key: str, new: Credential) -> None:
        new, earlier = evolve(new, doubtful=self._is_outrun(event.hub, key, new)), self.given.get(new.device_id, ())
        self._change(earlier, doubtful=True)
        if earlier and self.hubs[event.hub].replaces:
            self._say(event, Revoke(new.device_id, new.node_id), everywhere=True)
        self._put(key, new)

    def _is_outrun(self, hub: str, key: str, new: Credential) -> bool:
        said = [(revoke, len(said)) for revoke, said in self.said.items() if new.is_meant(key, revoke)]
        return any(often > self.heard.get((hub, revoke), (0, 0))[0] for revoke, often in said)

    def _say(self, event: Event, revoke: Revoke, everywhere: bool) -> None:
        everywhere = everywhere and all(setting.extended for setting in self.hubs.values())
        to = frozenset(hub for hub, _ in self.sessions) if everywhere else frozenset()
        self.said = self.said.set(revoke, (*self.said.get(revoke, ()), (event, to)))
        self._count(event.hub, revoke)
        for key, known in [(key, self.credentials[key]) for key in self.given.get(revoke.device_id, ())]:
            if known.is_meant(key, revoke):
                doomed = known.doomed or (event if everywhere and known.admitted else None)
                self._change([key], doomed=doomed, doubtful=known.doubtful or doomed is None)

    def _count(self, hub: str, revoke: Revoke) -> None:
        self.heard = self.heard.set((hub, revoke), (self.heard.get((hub, revoke), (0, 0))[0] + 1, self.now))

    def _bury(self) -> None:
        """In a tree with plain hubs: what a revoke has meant is dead now, if all have heard of it."""
        for revoke, since in self._said_once():
            if revoke.device_id not in self.awaited and all((hub, revoke) in self.heard for hub in self.hubs):
                for key in self.given.get(revoke.device_id, ()):
                    known = self.credentials[key]
                    if known.issued.at < since.at and known.is_meant(key, revoke):
                        self._change([key], doomed=known.doomed or since)

    def _said_once(self) -> list[tuple[Revoke, Event]]:
        """The revokes to all since all was quiet, in a tree with plain hubs; none that was said again meanwhile."""
        if not any(setting.plain for setting in self.hubs.values()):
            return []
        once = [(revoke, said[0][0]) for revoke, said in self.said.items() if len(said) == 1]
        return [(revoke, event) for revoke, event in once if event.kind != "commanded" or event.frame.target == 0]

    def _means_all(self, event: Event) -> bool:
        """Whether a revoke that a hub has received goes on to all; a plain hub has no other."""
        lower = self.between.get((event.hub, event.link), "")
        sender = self.hubs[event.hub].parent if lower == event.hub else lower
        return event.frame.target == 0 or (sender in self.hubs and self.hubs[sender].plain)

    def _must_reach(self, other: str, lower: str, revoke: Revoke, since: Event) -> bool:
        """Whether a revoke reaches the other end of the link above ``lower``: a plain hub is told once, and a parent
        that was away only what names a credential.
        """
        if not self.hubs[other].plain:
            return True
        kept = other == lower or revoke.credential or self.joined.get(lower, 0) < self.quiet
        return bool(kept) and self.parted.get(lower, 0) < since.at

    def _breaks(self, promise: str, later: Event, earlier: Event | None) -> None:
        self.broken = (*self.broken, (promise, later, earlier))

    def one_to_one_binding(self, event: Event, device_id: str, node_id: int) -> None:
        """OneToOneBinding: A device is one node for ever.

        UniqueNodeIds: A node is one device for ever, also if only a configuration has ever named it; none is reused.
        """
        for promise, key, value in (("OneToOneBinding", device_id, node_id), ("UniqueNodeIds", node_id, device_id)):
            bound, since = self.bound.get(key, (value, event))
            if bound != value and (bound or event.kind != "configured"):
                self._breaks(promise, event, since)
            else:
                self.bound = self.bound.set(key, (value, since))

    def no_answer_without_request(self, event: Event, answer: Answer, link: tuple[str, int]) -> None:
        """NoAnswerWithoutRequest: A hub answers only what was asked on that link, and once."""
        asked = sorted(self.asked.get(link, ()), key=lambda each: not each[1])
        same = (each for each in asked if each[0].frame.msg_id == event.frame.msg_id)
        found = next((each for each in same if getattr(each[0].frame.body, "action", None) is answer.action), None)
        if found is None:
            self._breaks("NoAnswerWithoutRequest", event, None)
            return
        request, body, key = found[0], found[0].frame.body, answer.credential
        self.asked = self.asked.set(link, tuple(each for each in asked if each is not found))
        if answer.reason is Reason.OK and answer.action in _BINDING:
            self.one_to_one_binding(event, answer.device_id, answer.node_id)
            if isinstance(body, Register | AssistRegister) and key and key not in self.credentials:
                self._issue(event, key, Credential(answer.device_id, answer.node_id, event))
            if isinstance(body, Register | Authenticate):
                self.sessions = self.sessions.set(link, (answer.device_id, answer.node_id))
                self.admitted_by_credential(event, request, answer.device_id, getattr(body, "credential", key))
        elif isinstance(body, Authenticate):
            self.no_lock_out(event, request, body, answer.reason)

    def admitted_by_credential(self, event: Event, request: Event, device_id: str, key: str) -> None:
        """AdmittedByCredential: A device is admitted only by a credential that was issued to it or configured for it.

        RevokedStaysOut: Once all is quiet after a revoke, no hub admits by a credential that it meant, nor keeps it.
        """
        known = self.credentials.get(key)
        if not key:
            self.welcome = self.welcome.set((event.hub, device_id), self.welcome.get((event.hub, device_id), event))
        elif known is None or known.device_id != device_id:
            self._breaks("AdmittedByCredential", event, request)
        elif known.doomed is not None and known.doomed.at < self.quiet < request.at:
            self._breaks("RevokedStaysOut", event, known.doomed)
        else:
            self._change([key], admitted=known.admitted.set(event.hub, known.admitted.get(event.hub, event)))

    def no_lock_out(self, event: Event, request: Event, body: Authenticate, reason: Reason) -> None:
        """NoLockOut: Where a device was admitted it is admitted again by the same credential, until the authority has
        issued another to it, or somebody has revoked this one. In a tree with plain hubs it is not refused one below,
        either, where nothing is kept about it; and where there are no credentials, its name is enough.

        AdmittedAnywhere: When all is quiet such a device is admitted at every hub that searches its tree.
        """
        known, named = self.credentials.get(body.credential), self.welcome.get((event.hub, body.device_id))
        if named is not None and named.at < request.at and not body.credential and reason is Reason.NOT_ADMITTED:
            self._breaks("NoLockOut", event, named)
        if known is None or known.device_id != body.device_id or not known.is_live:
            return
        parent, keeps = (
            self.hubs[event.hub].parent,
            self.resting.get((event.hub, ("kept", ("whitelist", body.device_id)))),
        )
        climbs = parent != "" and parent in known.admitted and (keeps is None or not keeps.credential)
        if climbs and reason is Reason.NOT_ADMITTED and not self.hubs[event.hub].plain:
            self._breaks("NoLockOut", event, known.admitted[parent])
        is_alone = request.at == self.alone and reason is not Reason.BUSY and known.issued.kind == "sent"
        since = known.admitted.get(event.hub)
        if since is not None and since.at < request.at and reason is Reason.NOT_ADMITTED:
            self._breaks("NoLockOut", event, since)
        elif is_alone and self.hubs[event.hub].searches:
            self._breaks("AdmittedAnywhere", event, known.issued)

    def credentials_never_cached_upstream(self, event: Event) -> None:
        """CredentialsNeverCachedUpstream: A hub keeps a credential only if it admitted the device by it on a link of
        its own or is configured to. It owes only what a revoke named, and remembers only what it is still asked about.
        """
        self.resting = self.resting.set((event.hub, event.place), event)
        if event.node_id:
            self.one_to_one_binding(event, event.device_id, event.node_id)
        key, known, place = event.credential, self.credentials.get(event.credential), event.place[0]
        asked = (each.frame.body for link, asked in self.asked.items() if link[0] == event.hub for each, _ in asked)
        mine = known.device_id if known is not None else ""
        waits = place == "memory" and any(
            body.device_id == mine if isinstance(body, Register) else getattr(body, "credential", "") == key
            for body in asked
        )
        named = place in ("memory", "owed") and (event.hub, key) in self.named
        if key and not waits and not named and (known is None or event.hub not in known.admitted):
            self._breaks("CredentialsNeverCachedUpstream", event, known.issued if known is not None else None)

    def pending_eventually_answered(self, event: Event, link: tuple[str, int]) -> None:
        """PendingEventuallyAnswered: A request is answered, be it with a refusal; no revoke cuts a registration off.
        What a plain hub makes of the answers of a plain parent is their own affair.
        """
        told = self.told.get(event.hub, event)
        cut = event.kind == "closed" and isinstance(told.frame.body, Revoke) and not self._is_first_word(told)
        setting = self.hubs[link[0]]
        between_plain = setting.plain and setting.parent in self.hubs and self.hubs[setting.parent].plain
        for asked, must in self.asked[link] if not between_plain else ():
            due = must and (event.kind == "idle" or (event.kind == "quiet" and asked.at == self.alone))
            if due or (cut and isinstance(asked.frame.body, Register)):
                self._breaks("PendingEventuallyAnswered", event, asked)

    def _is_first_word(self, told: Event) -> bool:
        """Whether a plain hub has shown itself by this, and may displace its own earlier connection."""
        at = told.hub, told.link
        return told.kind == "received" and told.link != PARENT and at not in self.between and not self.sessions[at][1]

    def revoke_arrives(self, event: Event) -> None:
        """RevokeArrives: When all is quiet among extended hubs, each has heard of every revoke that was said to all; so
        have the plain neighbours of one that has heard of it, unless the link was lost after it.
        """
        for revoke, (since, to) in [(revoke, each) for revoke, said in self.said.items() for each in said]:
            if any(self.heard.get((hub, revoke), (0, 0))[1] < since.at for hub in to):
                self._breaks("RevokeArrives", event, since)
        for revoke, since in self._said_once():
            above = [(lower, setting.parent) for lower, setting in self.hubs.items() if setting.parent]
            for lower, hub, other in [(pair[0], *ends) for pair in above for ends in (pair, pair[::-1])]:
                told = not self.hubs[hub].plain and (hub, revoke) in self.heard
                if told and (other, revoke) not in self.heard and self._must_reach(other, lower, revoke, since):
                    self._breaks("RevokeArrives", event, since)
