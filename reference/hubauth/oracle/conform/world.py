"""Everything around the hub under test, for one case: devices, child hubs, the parent, and the mirror.

Every frame that is sent goes through the mirror as well, and what comes back on any connection is compared with what
the mirror says.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from hubauth.core.credentials import is_well_formed
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, Received, TimerFired
from hubauth.core.messages import (
    Answer,
    AssistRegister,
    Authenticate,
    Ext,
    Frame,
    GetPerms,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.outputs import Close, Send
from hubauth.core.transition import Step
from hubauth.judge.declared import spoken
from hubauth.oracle.conform.compare import Difference, align, describe
from hubauth.oracle.conform.ear import Ear
from hubauth.oracle.conform.judge import Judge, Scene, is_answer
from hubauth.oracle.conform.mirror import Mirror, bind, show_free
from hubauth.oracle.conform.peers import ROLE, Outcome, Parent, Peer
from hubauth.oracle.conform.problems import Deviated, TooSlow, Violated
from hubauth.oracle.conform.profile import Known
from hubauth.oracle.conform.proof import TO_ACKNOWLEDGE, part
from hubauth.oracle.conform.record import HUB, Record
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Seen
from hubauth.wire.framing import read_frame
from hubauth.wire.header import Refused, Version


class World:
    """One case's view. Differences about ``rule`` end it, others are kept as ``aside``; without a rule, any ends it."""

    def __init__(self, subject: Subject, rule: str = "") -> None:
        self.subject, self.rule = subject, rule
        profile = subject.profile
        policy = spoken(profile.policy(subject.node_id), profile.declared)
        self.mirror = Mirror(policy, subject.journal, subject.neighbours())
        self.peers: dict[Link, Peer] = {}
        self.record = Record()
        self.aside: list[Difference] = []
        self._names = {known.device_id for known in profile.bindings} | {profile.hub.device_id}
        self._ear = Ear(subject, self._names, lambda peer, seen: self.record.frame(HUB, peer.name, seen))
        self._setting = 0
        self._next_link = 1
        self._next_msg_id = 0x1000
        if profile.parent is not None:
            if subject.parent is None or subject.parent.is_gone():
                subject.rejoin()
            assert subject.parent is not None
            ext = subject.answer_to_offer() if subject.parent.extended else None
            self.mirror.joined(profile.parent.node_id, subject.codec, ext)
            self._joined_extended = self.mirror.state.parent_extended
            self.peers[PARENT] = Parent(self, subject.parent, profile.parent.node_id)

    # Who is there

    @property
    def parent(self) -> Peer:
        return self.peers[PARENT]

    def connect(self, name: str = "peer", device_id: str = "", version: Version | None = None) -> Peer:
        """A new connection that has said nothing yet."""
        link = self._next_link
        self._next_link += 1
        peer = Peer(self, f"{name} {link}", self.subject.connect(version), link, device_id)
        self.peers[link] = peer
        self.mirror.settle([LinkUp(link)], {})
        return peer

    def device(self) -> Peer:
        """A connected device with a name of its own, not registered."""
        return self.connect("device", self.fresh_name())

    def fresh_name(self, length: int = 0) -> str:
        """A device_id that the hub under test has never heard, of at least this length."""
        name = self.subject.fresh_device().ljust(length, "x")
        self._names.add(name)
        return name

    def registered(self) -> Peer:
        """A device with a session."""
        device = self.device()
        with self.setting():
            device.register()
        return device

    def child_hub(self, at: int = 0, *, plain: bool = False) -> Peer:
        """A child hub with a session; a ``plain`` one does not speak the extension."""
        known = self.subject.profile.child_hub[at]
        return self._provisioned("child hub", known, None if plain else self.subject.offer(known.node_id))

    def admin(self) -> Peer:
        """A device that may revoke and invalidate, with a session."""
        assert self.subject.profile.admin is not None
        return self._provisioned("admin", self.subject.profile.admin)

    def _provisioned(self, name: str, known: Known, ext: Ext | None = None) -> Peer:
        peer = self.connect(name, known.device_id)
        peer.credential, peer.ext = known.credential, ext
        with self.setting():
            peer.authenticate()
        return peer

    def again(self, peer: Peer) -> Peer:
        """The same device on a new connection, not authenticated there."""
        other = self.connect(peer.name.rpartition(" ")[0], peer.device_id)
        other.node_id, other.credential, other.ext = peer.node_id, peer.credential, peer.ext
        return other

    @contextmanager
    def setting(self) -> Iterator[None]:
        """What happens inside only sets the scene: what goes wrong there is not what the case is about."""
        self._setting += 1
        try:
            yield
        finally:
            self._setting -= 1

    def next_msg_id(self) -> int:
        self._next_msg_id += 1
        return self._next_msg_id

    # What happens

    def transmit(self, peer: Peer, data: bytes) -> Outcome:
        """Send bytes and check everything that must follow."""
        inputs, payloads = list[Input](), list[bytes]()
        refused = False
        for raw in peer.decoder.feed(data):
            if isinstance(raw, Refused):
                self.mirror.rules.add(raw.rule)
                self.record.add(peer.name, HUB, "bytes that are no frame", data[:80].hex())
                inputs.append(LinkDown(peer.link))
                refused = True
            else:
                read = read_frame(self.subject.codec, raw)
                self.mirror.rules.update(raw.rules + read.rules)
                self.record.frame(peer.name, HUB, Seen(read.frame, raw.payload))
                inputs.append(Received(peer.link, read.frame))
                payloads.append(raw.payload)
        return self._exchange(peer, inputs, lambda: peer.wire.write(data), payloads, refused=refused)

    def hang_up(self, peer: Peer) -> Outcome:
        """Close a connection and check everything that must follow."""
        self.record.add(peer.name, HUB, "hangs up")
        del self.peers[peer.link]

        waits = self._waits(peer.link)

        def leave() -> None:
            part(self.subject, [] if waits else [peer.wire], [peer.wire] if waits else [])

        return self._exchange(peer, [LinkDown(peer.link)], leave)

    def leaving_shows(self, peer: Peer) -> bool:
        """Whether it can be seen that the hub has noticed the end of this connection."""
        return not self._waits(peer.link) or bool(_by_link(self.mirror.predict([LinkDown(peer.link)]))[0])

    def _waits(self, link: Link) -> bool:
        """Whether somebody waits for an answer on a link: the hub may keep it until that is sent."""
        return bool(self.mirror.state.index.waiting.get(link))

    def elapse(self) -> Outcome:
        """Wait until the hub gives up what it asked last, and check everything that must follow."""
        profile = self.subject.profile
        seconds = profile.limits.request_seconds
        self.record.add(HUB, HUB, f"waits {seconds:g} s in vain")
        timer = max(self.mirror.timers)
        del self.mirror.timers[timer]
        return self._exchange(None, [TimerFired(timer)], lambda: None, patience=seconds + profile.timeouts.answer)

    def check(self, holds: bool, what: str, expected: object, seen: object) -> None:
        """Something that the core leaves open and the rule does not."""
        if not holds:
            raise Violated([Difference(what, str(expected), str(seen))])

    # The parent's part

    def let_parent_admit(self, outcome: Outcome, asker: Peer) -> Answer:
        """Where the hub has a parent, answer its assist_register; the asker's answer either way."""
        if not any(isinstance(frame.body, AssistRegister) for frame in outcome.frames.get(PARENT, ())):
            return outcome.answer
        request = outcome.request(self.parent, AssistRegister)
        credential = self.subject.fresh_credential() if self.mirror.policy.has_credentials else ""
        given = self.parent.answer(request, node_id=self.subject.fresh_node(), credential=credential)
        return next(frame.body for frame in given.on(asker) if isinstance(frame.body, Answer))

    def let_parent_tell(self, outcome: Outcome, asker: Peer) -> Answer:
        """Where the hub asks its parent for the role of a device first, answer that; the asker's answer either way."""
        if not any(isinstance(frame.body, GetPerms) for frame in outcome.frames.get(PARENT, ())):
            return outcome.answer
        given = self.parent.answer(outcome.request(self.parent, GetPerms), grant=ROLE)
        return next(frame.body for frame in given.on(asker) if isinstance(frame.body, Answer))

    def parent_returns(self) -> Frame:
        """Wait for the hub to connect to its parent again; what it shows there."""
        table = self.subject.profile.parent
        assert table is not None
        parent = self.peers[PARENT] = Parent(self, self.subject.accept_live(), table.node_id)
        self.record.add(HUB, parent.name, "connects")
        return self._exchange(parent, [LinkUp(PARENT)], lambda: None).on(parent)[0]

    def parent_anew(self, *, plain: bool = False) -> None:
        """The parent link is lost and comes back: nothing of earlier cases waits there or is remembered of it.

        A ``plain`` parent does not speak the extension.
        """
        with self.setting():
            self.parent.hang_up()
            request = self.parent_returns()
            if plain:
                hub = self.subject.profile.hub
                self.parent.answer(request, node_id=hub.node_id, credential=hub.credential)
            else:
                self.answer_join(request)

    def answer_join(self, request: Frame, reason: Reason = Reason.OK, ext: Ext | None = None) -> Outcome:
        """Answer what the hub showed its parent: as one that speaks the extension if the hub does, or with this ext."""
        assert isinstance(request.body, Authenticate | Register)
        hub = self.subject.profile.hub
        if ext is None and reason is Reason.OK:
            ext = self.subject.answer_to_offer()
        outcome = self.parent.answer(request, reason, node_id=hub.node_id, credential=hub.credential, ext=ext)
        if PARENT in self.peers:
            self.parent.wire.extended = self.mirror.state.parent_extended
        return outcome

    def close(self) -> None:
        """Leave: every connection but the parent's ends, and what that leads to is heard but not judged any more.

        First those whose end the hub shows by ending them, too; then the others, whose end shows in reports.
        """
        leaving = {link: peer.wire for link, peer in self.peers.items() if link != PARENT}
        others = [link for link in leaving if self._waits(link) or not self.subject.ends_too]
        ending = [link for link in leaving if link not in others]
        steps = self.mirror.predict([LinkDown(link) for link in ending + others])
        reports = len(_by_link(steps[len(ending) :])[0].get(PARENT, []))
        has_parent = PARENT in self.peers and self.parent.is_open and self.mirror.state.parent_present
        part(self.subject, [leaving[link] for link in ending])
        if has_parent:
            self._ear.fence(self.parent, [])
        if others:
            part(self.subject, (), [leaving[link] for link in others])
        if has_parent:
            self._ear.hear([self.parent], {PARENT: reports}, set(), self.subject.patience)
            self._names.clear()
        self._let_debts_be_paid()
        if has_parent and not self._marks_parent():
            self._ear.fence(self.parent, [])
        elif self.subject.profile.parent is not None:
            self.subject.rejoin()

    def _marks_parent(self) -> bool:
        """Whether the parent link as this case leaves it would stand in the way of the next one."""
        state = self.mirror.state
        # What a plain parent has not answered counts for the hub until it is, or until the link drops.
        owing = not state.parent_extended and any(one.asked == PARENT for one in state.pending.values())
        crowded = len(state.pending) >= self.subject.profile.limits.pending
        return owing or crowded or state.parent_extended != self._joined_extended

    def _let_debts_be_paid(self) -> None:
        """What child hubs are owed because of this case must not stand before what the next one is about."""
        owed = {neighbour for neighbour, _ in self.mirror.state.owed}
        for known in self.subject.profile.child_hub:
            if known.node_id in owed:
                self.subject.visit(known)

    # The heart

    def _exchange(
        self,
        sender: Peer | None,
        inputs: Sequence[Input],
        transmit: Callable[[], None],
        payloads: Sequence[bytes] = (),
        *,
        refused: bool = False,
        patience: float = 0.0,
    ) -> Outcome:
        """Let something happen, hear what comes of it, and judge that."""
        before, running, began = self.mirror.state, dict(self.mirror.timers), time.monotonic()
        link = sender.link if sender is not None else None
        predicted, closing = _by_link(self.mirror.predict(inputs))
        if refused and link is not None:
            closing.add(link)
        transmit()
        sent = time.monotonic()
        counts = {at: len(frames) for at, frames in predicted.items()}
        peers = sorted(self.peers.values(), key=lambda peer: peer is not sender)
        heard = self._ear.hear(peers, counts, closing, patience or self.subject.patience)
        self.subject.witness.all_handled()
        bound = self._bound(predicted, heard)
        usable = {key: self.mirror.alias(value) if isinstance(value, str) else value for key, value in bound.items()}
        steps = self.mirror.settle(inputs, usable, payloads, began)
        expected = {at: [*map(self.mirror.as_seen, frames)] for at, frames in _by_link(steps)[0].items()}
        cited = tuple(rule for done in steps for rule in done.rules)
        scene = Scene(self.rule, self._setting > 0 or not self.rule, cited, before, self.mirror.state, link)
        judge = Judge(self.subject.codec, self.subject.profile.choices, scene)
        self._judge_issued(judge, bound)
        agreed = {
            at: self._judge(judge, at, expected.get(at, []), heard.get(at, []))
            for at in sorted(set(expected) | set(heard))
        }
        in_vain = any(len(agreed[at]) < len(expected[at]) for at in expected)
        in_vain |= any(at in self.peers and self.peers[at].wire.closed is None for at in closing)
        self._judge_closing(judge, closing)
        # Where this tool has waited in vain, it has itself let the time pass in which the hub's new timers ran out.
        started = {} if in_vain else self.mirror.timers
        self._conclude(judge, too_slow=self._has_run_out({**started, **running}, self._ear.first or sent))
        self._acknowledge(agreed)
        return Outcome(PARENT if link is None else link, agreed)

    def _bound(self, predicted: dict[Link, list[Frame]], heard: dict[Link, list[Seen]]) -> dict[Any, Any]:
        """What the free values are, as far as they were seen."""
        codec, bound = self.subject.codec, dict[Any, Any]()
        for link, frames in predicted.items():
            for pair in align(codec, frames, heard.get(link, []))[0]:
                if pair.expected is not None and pair.seen is not None and not isinstance(pair.expected.body, bytes):
                    bind(json.loads(codec.encode(pair.expected.body)), pair.seen.json, bound)
        return bound

    def _judge_issued(self, judge: Judge, bound: dict[Any, Any]) -> None:
        """What is free must still be what the rules say: a credential is new and has its shape."""
        for value in bound.values():
            if not isinstance(value, str):
                continue
            if not is_well_formed(value):
                judge.other(Difference("credential", "43 characters of base64url", value, "REG-4"))
            elif value in self.subject.credentials:
                judge.other(Difference("credential", "one never issued before", value, "REG-4"))
            self.subject.credentials.add(value)

    def _judge(self, judge: Judge, link: Link, expected: list[Frame], seen: list[Seen]) -> list[Frame]:
        """Compare one link; returns the expected frames with the MsgIDs that the hub chose."""
        codec = self.subject.codec
        name = self.peers[link].name if link in self.peers else f"connection {link}"
        pairs, in_order = align(codec, expected, seen)
        agreed = []
        for pair in pairs:
            if pair.seen is None:
                assert pair.expected is not None
                judge.missing(name, pair.expected)
                self.record.add(HUB, name, "(missing)", show_free(describe(codec, pair.expected)), wrong=True)
            elif pair.expected is None:
                judge.unexpected(name, link, pair.seen)
                self.record.mark_wrong(name, pair.seen)
            else:
                frame = self._with_chosen_id(judge, link, pair.expected, pair.seen)
                agreed.append(frame)
                if not isinstance(frame.body, bytes):
                    self.mirror.rules.update(codec.rules_for(frame.body))
                if judge.different(frame, pair.seen):
                    self.record.mark_wrong(name, pair.seen)
        if not in_order:
            judge.order(name, expected, seen)
        return agreed

    def _with_chosen_id(self, judge: Judge, link: Link, expected: Frame, seen: Seen) -> Frame:
        if is_answer(expected):
            return expected
        body, said = expected.body, seen.frame.body
        if isinstance(body, Revoke) and isinstance(said, Revoke) and body.seq and said.seq:
            expected = evolve(expected, body=evolve(body, seq=self._chosen_number(judge, link, body.seq, said.seq)))
        return evolve(expected, msg_id=self.mirror.chosen_id(link, expected.msg_id, seen.frame.msg_id))

    def _chosen_number(self, judge: Judge, link: Link, expected: int, seen: int) -> int:
        neighbour = self.mirror.neighbour(link)
        raised = expected > self.mirror.highest_number(neighbour) + 1
        number, is_new = self.mirror.chosen_number(neighbour, expected, seen)
        if is_new:
            last = self.subject.last_number.get(neighbour, 0)
            if number <= last:
                rule = "EXT-5" if raised else "EXT-10"
                judge.other(Difference("seq of the revoke", f"above {last}", str(number), rule))
            self.subject.last_number[neighbour] = max(last, number)
        return number

    def _judge_closing(self, judge: Judge, closing: set[Link]) -> None:
        for link, peer in list(self.peers.items()):
            if peer.wire.closed is None:
                if link in closing:
                    judge.closing(peer.name, expected=True)
                continue
            if peer.wire.closed.garbage:
                rule = "WIRE-1" if peer.wire.version is Version.V1 else "WIRE-2"
                judge.other(Difference(f"to {peer.name}", "a frame", peer.wire.closed.garbage, rule), fatal=True)
            elif link not in closing:
                self.subject.check_alive()
                judge.closing(peer.name, expected=False)
            self.record.add(HUB, peer.name, "closes", wrong=link not in closing)
            peer.wire.close()
            del self.peers[link]

    def _has_run_out(self, running: dict[int, float], handled: float) -> bool:
        """Whether one of these may have fired: before the hub handled what ends it, or by now if nothing does."""
        now = time.monotonic()
        return any(end < (now if timer in self.mirror.timers else handled) for timer, end in running.items())

    def _conclude(self, judge: Judge, *, too_slow: bool) -> None:
        """What is wrong with the case's own rule ends it; what is wrong with another is kept for that one."""
        found = [one for one in judge.found if not one.difference.informational]
        if found and too_slow:
            raise TooSlow("a timer of the hub may have run out meanwhile: limits.request_seconds is too short")
        own = [one.difference for one in found if not self.rule or one.rule == self.rule]
        others = [one for one in judge.found if one.difference not in own]
        self.aside += [one.difference for one in others]
        if own:
            raise Violated(own)
        for one in others:
            if one.fatal:
                raise Deviated(one.rule)

    def _acknowledge(self, agreed: dict[Link, list[Frame]]) -> None:
        """Hubs that this tool plays answer orders, reports and fences, each with a success."""
        for link, frames in agreed.items():
            for frame in frames:
                peer = self.peers.get(link)
                if peer is not None and peer.acknowledges and isinstance(frame.body, TO_ACKNOWLEDGE):
                    peer.answer(frame)


def _by_link(steps: Sequence[Step]) -> tuple[dict[Link, list[Frame]], set[Link]]:
    frames: dict[Link, list[Frame]] = {}
    closing: set[Link] = set()
    for done in steps:
        for output in done.outputs:
            if isinstance(output, Send):
                frames.setdefault(output.link, []).append(output.frame)
            elif isinstance(output, Close):
                closing.add(output.link)
    return frames, closing
