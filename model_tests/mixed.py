"""Trees of two kinds: some hubs are this project's core, the others machines of the documents alone.

Every connection is two queues, and everything travels as JSON, through the codec of a dialect. The hubs of this project
are shown to the monitor of promises as in every other tree; of a plain hub it sees whom it admits, and which revokes it
hears of.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from attrs import evolve

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, OperatorRevoke, Received, TimerFired
from hubauth.core.invariants import check_state, check_step
from hubauth.core.messages import (
    SUB_PROTO,
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    Major,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose, State, is_plain
from hubauth.core.outputs import CancelTimer, Close, Send, StartTimer
from hubauth.core.policy import Dialect, Policy
from hubauth.core.recovery import after_restart
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.lab import plain
from hubauth.lab.observed import observe, setting_of
from hubauth.promises.events import Event, Setting
from hubauth.promises.monitor import Monitor
from hubauth.seen import tell
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header
from model_tests import outcomes

Said: TypeAlias = Iterable[tuple[Link, plain.PlainFrame | None]]
"""What a hub sends; None: it closes the link."""


def read(dialect: Dialect, frame: plain.PlainFrame) -> Frame:
    """A frame of the wire, as the core takes it."""
    payload = json.dumps(frame.body).encode() if frame.sub_proto == SUB_PROTO else frame.body
    fields = Major(frame.major), frame.sub_proto, 0, frame.msg_id, frame.source, frame.target, 0
    return read_frame(CODECS[dialect], RawFrame(Header((), 0, len(payload), *fields), payload, ())).frame


def written(dialect: Dialect, frame: Frame) -> plain.PlainFrame:
    """A frame of the core, as it is on the wire."""
    body = frame.body if isinstance(frame.body, bytes) else json.loads(CODECS[dialect].encode(frame.body))
    return plain.PlainFrame(body, frame.source, frame.target, frame.msg_id, int(frame.major), frame.sub_proto)


@dataclass
class MixedConnection:
    """A child (device or hub) at a hub, which knows it as the link of its own number; None in a queue is its end."""

    child: str
    parent: str
    up: deque[plain.PlainFrame | None] = field(default_factory=deque)
    down: deque[plain.PlainFrame | None] = field(default_factory=deque)
    child_open: bool = True
    parent_open: bool = True


class EndedSearches:
    """What plain hubs have asked one hub, and whether a revoke has gone to them since: then no success may follow.

    A plain hub has no memory of revokes: it would store what the revoke has ended (REV-11). What was kept for it while
    it was away is older than what it asks now.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[Link, int], tuple[str, str, bool]] = {}

    def follow(self, before: State, happened: Input, done: Step) -> list[str]:
        found: list[str] = []
        body = happened.frame.body if isinstance(happened, Received) else None
        if isinstance(happened, Received) and isinstance(body, AssistAuthenticate | AssistQueryCredential):
            self._asked[happened.link, happened.frame.msg_id] = body.device_id, getattr(body, "credential", ""), False
        kept = {message for _, message in before.owed}
        for link, frame in [(one.link, one.frame) for one in done.outputs if isinstance(one, Send)]:
            said = frame.body
            if isinstance(said, Revoke) and said not in kept and is_plain(done.state, link):
                for key, (device_id, shown, _) in list(self._asked.items()):
                    is_meant = not said.credential or shown in ("", said.credential)
                    if key[0] == link and device_id == said.device_id and is_meant:
                        self._asked[key] = device_id, shown, True
            elif isinstance(said, Answer) and (link, frame.msg_id) in self._asked:
                device_id, _, ended = self._asked.pop((link, frame.msg_id))
                if ended and said.reason is Reason.OK:
                    found.append(f"EndedSearches: link {link} is told of a success, and {device_id} was revoked since")
        self._asked = {key: one for key, one in self._asked.items() if key[0] in done.state.links}
        return found


class Ours:
    """This project's hub: a policy and a state, moved by ``step`` and checked after every step."""

    def __init__(self, tree: "MixedTree", name: str, policy: Policy, peers: dict[str, int], setting: Setting) -> None:
        """``peers`` are the plain hubs that are known by where they connect from."""
        self._tree, self.name, self.policy, self._peers = tree, name, policy, peers
        self.state, self.timers = initial_state(policy, f"journal of {name}"), dict[int, float]()
        self._ended = EndedSearches()
        known = setting_of({name: policy}, name, self.state)
        replaces = known.replaces and setting.replaces
        known = evolve(known, parent=setting.parent, extended=False, searches=False, replaces=replaces)
        tree.show([Event("configured", name, setting=known)])

    def up(self, link: Link, child: str) -> None:
        known = (self._peers[child],) if child in self._peers else ()
        self.happens(LinkUp(link, known, child if known else ""), child)

    def down(self, link: Link) -> None:
        self.happens(LinkDown(link))

    def receive(self, link: Link, frame: plain.PlainFrame) -> None:
        self.happens(Received(link, read(self.policy.dialect, frame), self._tree.fresh()))

    def revoke(self, message: Revoke) -> None:
        self.happens(OperatorRevoke(message))

    def fire(self, timer: int) -> None:
        del self.timers[timer]
        self.happens(TimerFired(timer))

    def restart(self) -> None:
        self.state, self.timers, self._ended = after_restart(self.policy, self.state), {}, EndedSearches()
        self._tree.show([Event("restarted", self.name)])

    def happens(self, happened: Input, child: str = "") -> None:
        before, done = self.state, step(self.policy, self.state, happened)
        self.state = done.state
        self._tree.rules.update(done.rules)
        said: list[tuple[Link, plain.PlainFrame | None]] = []
        for output in done.outputs:
            match output:
                case Send(link, frame):
                    said.append((link, written(self.policy.dialect, frame)))
                case Close(link):
                    said.append((link, None))
                case StartTimer(timer, seconds):
                    self.timers[timer] = seconds
                case CancelTimer(timer):
                    self.timers.pop(timer, None)
        seen = observe({self.name: self.policy}, self.name, before, happened, done)
        self._tree.show(self._tree.met(one, child) if one.kind == "up" else one for one in seen)
        wrong = check_step(self.policy, before, happened, done) + check_state(self.policy, done.state)
        wrong += outcomes.check(self.policy, before, happened, done) + self._ended.follow(before, happened, done)
        assert not wrong, wrong
        self._tree.say(self.name, said)

    def is_joined(self) -> bool:
        return self.state.parent_present and self.state.announcing is None

    def has_hub(self, link: Link) -> bool:
        session = self.state.links.get(link)
        return session is not None and session.is_hub

    def due(self, *, patience: bool) -> list[int]:
        """Timers that may run out: of no length, others, or (with ``patience``) also the memory of sent revokes.

        An echo comes within request_seconds, so that memory outlasts whatever is under way.
        """
        remembered = {at for at, one in self.state.pending.items() if one.purpose is Purpose.SENT}
        return sorted(timer for timer in self.timers if patience or timer not in remembered)

    def remembers(self, device_id: str) -> bool:
        """Whether an equal revoke would be taken for an echo."""
        pending = self.state.pending.values()
        return any(one.purpose is Purpose.SENT and one.device_id == device_id for one in pending)


class Strange:
    """A machine of the documents alone. It may also send a revoke back to where it came from."""

    def __init__(self, tree: "MixedTree", name: str, machine: plain.PlainHub, echoes: bool, setting: Setting) -> None:
        self._tree, self.name, self.machine, self._echoes = tree, name, machine, echoes
        self._dialect, self._asked = Dialect(machine.dialect), dict[Link, tuple[int, Action]]()
        alone = evolve(setting, extended=False, searches=False, replaces=False, plain=True)
        tree.show([Event("configured", name, setting=alone)])

    def up(self, link: Link, child: str) -> None:
        self._tree.show([self._tree.met(Event("up", self.name, link), child)])
        self._says(self.machine.link_up(link))

    def down(self, link: Link) -> None:
        self._asked.pop(link, None)
        self._tree.show([Event("down", self.name, link)])
        self._says(self.machine.link_down(link))

    def receive(self, link: Link, frame: plain.PlainFrame) -> None:
        seen = read(self._dialect, frame)
        is_hub, echo = link == PARENT or link in self.machine.hubs, list[tuple[Link, plain.PlainFrame]]()
        if isinstance(seen.body, Revoke) and is_hub:
            self._tree.show([Event("received", self.name, link, seen)])
            if self._echoes and isinstance(self._tree.hubs[self._tree.neighbour(self.name, link)], Ours):
                echo = [(link, frame._replace(source=self.machine.node_id, target=0))]
        elif isinstance(seen.body, Register | Authenticate) and not self._tree.is_between(link):
            self._tree.show([Event("received", self.name, link, seen)])
            self._asked[link] = seen.msg_id, seen.body.action
        said = self.machine.receive(link, frame) + echo
        self._tree.show(Event("waits", self.name, device_id=asked.device_id) for asked in self.machine.waiting)
        self._says(said)

    def revoke(self, message: Revoke) -> None:
        said = {"device_id": message.device_id, "node_id": message.node_id, "credential": message.credential}
        self._tree.show([Event("commanded", self.name, frame=Frame(message))])
        self._says(self.machine.operate("revoke", **{name: value for name, value in said.items() if value}))

    def flush(self) -> bool:
        """Send answers that were held back; whether there were any."""
        return self._says(self.machine.flush())

    def restart(self) -> None:
        self._asked = {}
        self._tree.show([Event("restarted", self.name)])
        for link in self._tree.links_of(self.name):
            self.machine.link_down(link)

    def is_joined(self) -> bool:
        return self.machine.parent_present

    def has_hub(self, link: Link) -> bool:
        return link in self.machine.hubs

    def _says(self, said: list[tuple[Link, plain.PlainFrame]]) -> bool:
        for link, frame in said:
            if frame.sub_proto == SUB_PROTO:
                self._shows(link, read(self._dialect, frame))
        self._tree.say(self.name, said)
        return bool(said)

    def _shows(self, link: Link, seen: Frame) -> None:
        """The monitor sees what devices are told, and what a plain authority issues for a hub below it."""
        if not isinstance(seen.body, Answer):
            return
        msg_id, action = self._asked.get(link, (0, None))
        if action is not None and seen.body.action in (None, action):
            del self._asked[link]
            told = evolve(seen, msg_id=msg_id, body=evolve(seen.body, action=action))
            self._tree.show([Event("sent", self.name, link, told)])
        elif seen.body.action is Action.ASSIST_REGISTER and seen.body.credential and not self.machine.has_parent:
            asked = evolve(seen, body=AssistRegister(seen.body.device_id))
            self._tree.show([Event("received", self.name, link, asked), Event("sent", self.name, link, seen)])


Hub: TypeAlias = Ours | Strange


class MixedTree:
    """Hubs of both kinds, their connections, and what devices have received."""

    def __init__(self, dialect: Dialect, parents: dict[str, str]) -> None:
        self.dialect, self.parents = dialect, parents
        self.hubs: dict[str, Hub] = {}
        self.connections: dict[int, MixedConnection] = {}
        self.inboxes: dict[str, list[Answer]] = {}
        self.waits: set[int] = set()
        """Connections of devices that are owed an answer."""
        self.monitor = Monitor()
        self.rules: set[str] = set()
        self.log: list[str] = []
        self._numbers, self._issued = 0, 0

    def fresh(self) -> str:
        self._issued += 1
        return f"c{self._issued:042d}"

    def show(self, events: Iterable[Event]) -> None:
        self.monitor = self.monitor.watch(events)
        assert not self.monitor.broken, [tell(*broken) for broken in self.monitor.broken]

    def met(self, up: Event, child: str) -> Event:
        """The link that came up, with the name of the hub that is below it."""
        return evolve(up, device_id=child, place=("hub", "")) if child in self.hubs else up

    # Connections

    def connect(self, child: str, parent: str) -> int:
        self._numbers += 1
        number = self._numbers
        self.connections[number] = MixedConnection(child, parent)
        self.log.append(f"{child} connects to {parent} ({number})")
        self.hubs[parent].up(number, child)
        if child in self.hubs and number in self.connections:
            self.hubs[child].up(PARENT, child)
        return number

    def put(self, number: int, frame: plain.PlainFrame) -> None:
        """A device says something."""
        self.log.append(f"({number}) {frame.body}")
        if self.connections[number].parent_open:
            self.connections[number].up.append(frame)

    def drop(self, number: int) -> None:
        """A connection breaks: what is in flight is lost, and each end will notice."""
        connection = self.connections[number]
        self.log.append(f"({number}) is lost")
        connection.up = deque([None] if connection.parent_open else [])
        connection.down = deque([None] if connection.child_open else [])

    def restart(self, name: str) -> None:
        """A hub stops and begins again; nobody hears a word of it."""
        self.log.append(f"{name} begins again")
        mine = [number for number, one in self.connections.items() if name in (one.child, one.parent)]
        self.hubs[name].restart()
        for number in mine:
            self.drop(number)
            self._shut(number, child=self.connections[number].child == name)

    def say(self, name: str, said: Said) -> None:
        for link, frame in said:
            number = self._number(name, link)
            if number is None:
                continue
            connection, is_child = self.connections[number], link == PARENT
            if connection.parent_open if is_child else connection.child_open:
                (connection.up if is_child else connection.down).append(frame)
            if frame is None:
                self._shut(number, child=is_child)

    def ways(self) -> list[tuple[int, bool]]:
        """Every delivery that could come next: connection, and whether it goes up."""
        both = ((number, up) for number in self.connections for up in (True, False))
        return [(number, up) for number, up in both if self._queue(number, up)]

    def deliver(self, number: int, up: bool) -> None:
        connection, frame = self.connections[number], self._queue(number, up).popleft()
        name, link = (connection.parent, number) if up else (connection.child, PARENT)
        self.log.append(f"({number}) -> {name}: {'end' if frame is None else frame.body}")
        if frame is None:
            if name in self.hubs:
                self.hubs[name].down(link)
            self._shut(number, child=not up)
        elif name in self.hubs:
            self.hubs[name].receive(link, frame)
        elif frame.sub_proto == SUB_PROTO:
            body = read(self.dialect, frame).body
            assert not isinstance(body, Revoke), "RevokeNeverReachesDevices"
            if isinstance(body, Answer):
                self.inboxes.setdefault(name, []).append(body)
                self.waits.discard(number)

    def is_between(self, link: Link) -> bool:
        return link == PARENT or self.connections[link].child in self.hubs

    def neighbour(self, name: str, link: Link) -> str:
        return self.parents[name] if link == PARENT else self.connections[link].child

    def links_of(self, name: str) -> list[Link]:
        numbers = [number for number, one in self.connections.items() if one.parent == name and one.parent_open]
        return [*numbers, *([PARENT] if self._number(name, PARENT) is not None else [])]

    def hub_connection(self, name: str) -> int | None:
        """The connection by which a hub is at its parent; None: it is away, or an end has not noticed."""
        numbers = [number for number, one in self.connections.items() if one.child == name]
        if len(numbers) != 1 or not (one := self.connections[numbers[0]]).child_open or not one.parent_open:
            return None
        return numbers[0]

    def is_quiet(self) -> bool:
        """Whether nothing is on its way, and every hub is a hub at its parent."""
        if self.ways() or any(0.0 in hub.timers.values() for hub in self.ours()):
            return False
        for name, parent in self.parents.items():
            number = self.hub_connection(name)
            if number is None or not self.hubs[name].is_joined() or not self.hubs[parent].has_hub(number):
                return False
        return True

    def ours(self) -> Iterator[Ours]:
        return (hub for hub in self.hubs.values() if isinstance(hub, Ours))

    def strangers(self) -> Iterator[Strange]:
        return (hub for hub in self.hubs.values() if isinstance(hub, Strange))

    def _queue(self, number: int, up: bool) -> deque[plain.PlainFrame | None]:
        return self.connections[number].up if up else self.connections[number].down

    def _number(self, name: str, link: Link) -> int | None:
        if link != PARENT:
            return link if link in self.connections and self.connections[link].parent_open else None
        return max((at for at, one in self.connections.items() if one.child == name and one.child_open), default=None)

    def _shut(self, number: int, *, child: bool) -> None:
        """An end takes nothing more; with both ends shut the connection is gone."""
        connection = self.connections[number]
        if child:
            connection.child_open, connection.down = False, deque()
        else:
            connection.parent_open, connection.up = False, deque()
        self.waits.discard(number)
        if not connection.child_open and not connection.parent_open:
            del self.connections[number]
