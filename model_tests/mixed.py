"""Random walks through trees of two kinds: one hub is this project's core, the other a machine of the documents alone.

Everything travels as JSON, through the codec of a dialect. What is judged is what is promised next to plain hubs: a
device has one node for ever, nobody is locked out who was not revoked, and a credential whose revoke the link has
carried is admitted nowhere.
"""

import json
from collections import deque
from random import Random
from typing import Any

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, OperatorRevoke, Received, TimerFired
from hubauth.core.invariants import check_state, check_step
from hubauth.core.messages import SUB_PROTO, Frame, Major, Revoke
from hubauth.core.outputs import CancelTimer, Close, Send, StartTimer
from hubauth.core.policy import Dialect, Policy
from hubauth.core.step import step
from hubauth.lab import plain
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header

PLAIN_NODE, UPPER, LOWER = 10, "upper", "lower"
NAMES = ("cam", "lamp", "lock")


class Ours:
    """This project's hub: a policy and a state, moved by ``step`` and checked after every step."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.state = policy, initial_state(policy, "journal of ours")
        self.timers: dict[int, None] = {}
        self.rules: set[str] = set()
        self._issued = 0

    def happens(self, happened: Input) -> list[tuple[Link, plain.Frame | None]]:
        before, done = self.state, step(self.policy, self.state, happened)
        wrong = check_step(self.policy, before, happened, done) + check_state(self.policy, done.state)
        assert not wrong, wrong
        self.state = done.state
        self.rules.update(done.rules)
        said: list[tuple[Link, plain.Frame | None]] = []
        for output in done.outputs:
            match output:
                case Send(link, frame):
                    said.append((link, self._written(frame)))
                case Close(link):
                    said.append((link, None))
                case StartTimer(timer, _):
                    self.timers[timer] = None
                case CancelTimer(timer):
                    self.timers.pop(timer, None)
        return said

    def link_up(self, link: Link, known: bool = False) -> list[tuple[Link, plain.Frame | None]]:
        return self.happens(LinkUp(link, (PLAIN_NODE,), "here") if known else LinkUp(link))

    def link_down(self, link: Link) -> list[tuple[Link, plain.Frame | None]]:
        return self.happens(LinkDown(link)) if link in self.state.links else []

    def receive(self, link: Link, frame: plain.Frame) -> list[tuple[Link, plain.Frame | None]]:
        payload = json.dumps(frame.body).encode()
        fields = Major(frame.major), SUB_PROTO, 0, frame.msg_id, frame.source, frame.target, 0
        header = Header((), 0, len(payload), *fields)
        self._issued += 1
        body = read_frame(CODECS[self.policy.dialect], RawFrame(header, payload, ())).frame
        return self.happens(Received(link, body, f"o{self._issued:042d}")) if link in self.state.links else []

    def revoke(self, message: Revoke) -> list[tuple[Link, plain.Frame | None]]:
        return self.happens(OperatorRevoke(message))

    def fire(self) -> list[tuple[Link, plain.Frame | None]]:
        """Every timer runs out."""
        said: list[tuple[Link, plain.Frame | None]] = []
        for timer in list(self.timers):
            if self.timers.pop(timer, timer) is None:
                said += self.happens(TimerFired(timer))
        return said

    def _written(self, frame: Frame) -> plain.Frame:
        assert not isinstance(frame.body, bytes)
        body = json.loads(CODECS[self.policy.dialect].encode(frame.body))
        return plain.Frame(body, frame.source, frame.target, frame.msg_id, int(frame.major))


class Strange(plain.PlainHub):
    """The machine of the documents, as far as its surroundings differ from ours."""

    def revoke(self, message: Revoke) -> list[tuple[int, plain.Frame]]:
        said = {"device_id": message.device_id, "credential": message.credential}
        return self.operate("revoke", **{name: value for name, value in said.items() if value})

    def fire(self) -> list[tuple[int, plain.Frame]]:
        return self.flush()


class Mixed:
    """Two hubs, one of each kind, the link between them, and devices that ask one thing at a time."""

    def __init__(self, seed: int, dialect: Dialect, ours_above: bool, msg_id: str) -> None:
        self.random, self.dialect = Random(seed), dialect
        issued = iter(range(10**6))
        kind: dict[str, Any] = {"fresh": lambda: f"p{next(issued):042d}", "dialect": dialect.value, "msg_id": msg_id}
        if ours_above:
            ours: dict[str, Any] = {"plain_hubs": (PLAIN_NODE,), "first_node_id": 100}
            strange = Strange(node_id=PLAIN_NODE, has_parent=True, **kind)
        else:
            ours = {"device_id": "ours", "has_parent": True}
            strange = Strange(hub_devices=("ours",), **kind)
        self.ours = Ours(Policy(dialect=dialect, **ours))
        upper, lower = (self.ours, strange) if ours_above else (strange, self.ours)
        self.hubs: dict[str, Any] = {UPPER: upper, LOWER: lower}
        self.between: Link | None = None
        """The number that the upper hub has for the link between the two."""
        self.wires: deque[tuple[str, Link, plain.Frame]] = deque()
        self.heard: dict[tuple[str, Link], list[dict[str, Any]]] = {}
        self.links = 0
        self.nodes: dict[str, int] = {}
        self.live: dict[str, tuple[str, str]] = {}
        """Device -> where it was given the credential that it may use, and that credential."""
        self.dead: dict[str, set[str]] = {name: set() for name in NAMES}
        """Credentials whose revoke every link has carried."""

    # What moves

    def _say(self, hub: str, said: list[tuple[Link, plain.Frame | None]]) -> None:
        for link, frame in said:
            joint = (hub == UPPER and link == self.between) or (hub == LOWER and link == PARENT)
            if frame is None and joint:
                self.drop()
            elif frame is not None and joint and self.between is not None:
                self.wires.append((LOWER, PARENT, frame) if hub == UPPER else (UPPER, self.between, frame))
            elif frame is not None and not joint:
                body = frame.body if self.dialect is Dialect.FLAT else frame.body["data"]
                self.heard.setdefault((hub, link), []).append(body)

    def deliver(self) -> bool:
        """Let one frame arrive between the hubs; whether there was one."""
        if not self.wires:
            return False
        hub, link, frame = self.wires.popleft()
        self._say(hub, self.hubs[hub].receive(link, frame))
        return True

    def settle(self) -> None:
        """Let everything arrive, and every timer run out that is still running then."""
        for _ in range(50):
            while self.deliver():
                pass
            # Before anybody's patience ends, answers that a plain hub has held back.
            strange, ours = (LOWER, UPPER) if self.hubs[UPPER] is self.ours else (UPPER, LOWER)
            self._say(strange, self.hubs[strange].fire())
            if not self.wires and not self.ours.timers:
                return
            if not self.wires:
                self._say(ours, self.ours.fire())
        raise AssertionError(f"it never ends: {self.ours.state.pending}")

    def join(self) -> None:
        if self.between is None:
            self.links += 1
            self.between = self.links
            known = {"known": True} if isinstance(self.hubs[UPPER], Ours) else {}
            self._say(UPPER, self.hubs[UPPER].link_up(self.between, **known))
            self._say(LOWER, self.hubs[LOWER].link_up(PARENT))
            if known:
                # A hub that never authenticates is nobody before its first assist_*.
                introduction = self.ask(LOWER, "register", "introduction")
                self.settle()
                self.answer(introduction)

    def drop(self) -> None:
        """The link between the hubs is lost, with all that is under way."""
        if self.between is not None:
            link, self.between = self.between, None
            self.wires.clear()
            self._say(UPPER, self.hubs[UPPER].link_down(link))
            self._say(LOWER, self.hubs[LOWER].link_down(PARENT))

    # What devices and operators do

    def ask(self, hub: str, action: str, name: str, credential: str = "") -> tuple[str, Link]:
        """A device connects and asks; where its answer will be."""
        self.links += 1
        self._say(hub, self.hubs[hub].link_up(self.links))
        data = {"device_id": name, **({"credential": credential} if credential else {})}
        body = {"action": action, **data} if self.dialect is Dialect.FLAT else {"action": action, "data": data}
        self._say(hub, self.hubs[hub].receive(self.links, plain.Frame(body, msg_id=1)))
        return hub, self.links

    def answer(self, place: tuple[str, Link]) -> dict[str, Any]:
        """What the device was told, which then leaves."""
        told = [body for body in self.heard.pop(place, []) if "code" in body]
        self._say(place[0], self.hubs[place[0]].link_down(place[1]))
        return told[0] if told else {}

    def register(self, hub: str, name: str, *, loses: bool) -> None:
        place = self.ask(hub, "register", name)
        if loses:
            for _ in range(self.random.randrange(3)):
                self.deliver()
            self.drop()
        self.settle()
        told = self.answer(place)
        if told.get("code") == 1:
            assert self.nodes.setdefault(name, told["node_id"]) == told["node_id"], f"OneToOneBinding: {name}"
            assert list(self.nodes.values()).count(told["node_id"]) == 1, f"UniqueNodeIds: {told}"
            self.live[name] = hub, told.get("credential", "")
        elif self.between is None or loses:
            self.live.pop(name, None)  # another credential may have been issued

    def authenticate(self, hub: str, name: str, credential: str) -> int:
        place = self.ask(hub, "auth" if self.dialect is Dialect.AUTH else "login", name, credential)
        self.settle()
        return int(self.answer(place).get("code", 0))

    def revoke(self, hub: str, name: str, *, names_credential: bool) -> None:
        """Revoke at one of the hubs, with the link between them up and everything before it handled."""
        _, credential = self.live.pop(name, (hub, ""))
        said = Revoke(name, credential=credential if names_credential else "")
        self._say(hub, self.hubs[hub].revoke(said))
        self.settle()
        if credential:
            self.dead[name].add(credential)

    def judge(self) -> None:
        """With the hubs joined and nothing under way: who is admitted, and who is not."""
        self.join()
        self.settle()
        for name, (hub, credential) in self.live.items():
            assert self.authenticate(hub, name, credential) == 1, f"NoLockOut: {name} at {hub}"
        for name, credentials in self.dead.items():
            for credential in sorted(credentials):
                for hub in (UPPER, LOWER):
                    assert self.authenticate(hub, name, credential) != 1, f"RevokedStaysOut: {name} at {hub}"


def walk(seed: int, dialect: Dialect, ours_above: bool, msg_id: str, moves: int = 12) -> Mixed:
    """One random walk, judged after every few moves."""
    tree = Mixed(seed, dialect, ours_above, msg_id)
    tree.join()
    tree.settle()
    for _ in range(moves):
        choice = tree.random.random()
        hub, name = tree.random.choice((UPPER, LOWER)), tree.random.choice(NAMES)
        if choice < 0.45:
            tree.join()
            tree.settle()
            tree.register(hub, name, loses=tree.random.random() < 0.2)
        elif choice < 0.6 and name in tree.live:
            tree.join()
            tree.settle()
            tree.authenticate(hub, name, tree.live[name][1])
        elif choice < 0.8 and dialect is not Dialect.FLAT:
            tree.join()
            tree.settle()
            revoked = tree.random.choice(sorted(tree.live) or NAMES)
            tree.revoke(hub, revoked, names_credential=tree.random.random() < 0.5)
        else:
            tree.drop()
            tree.settle()
        tree.judge()
    return tree
