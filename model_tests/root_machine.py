"""The root and authority against the naive model: every outcome is predicted and compared."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hubauth.core.inputs import LinkDown, LinkUp, OperatorRevoke, TimerFired
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Frame,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.outputs import Close, Send, StartTimer
from hubauth.core.policy import Dialect, Policy, Provisioned, Reregister
from hubauth.core.transition import Step
from model_tests.exercised import Tally
from model_tests.hub import OneHub, fresh
from model_tests.naive import SILENCE, NaiveRoot, Said

TALLY = Tally()
DEVICES = ("d1", "d2", "d3", "admin", "star")
PERMS = {"admin": ("auth.revoke", "auth.perms_invalidate"), "star": ("*",)}
BINDINGS = (Provisioned("admin", 20, "A" * 43, "admin"), Provisioned("star", 3, "B" * 43, "star"))

devices = st.sampled_from(DEVICES)
links = st.integers(1, 4)
nodes = st.sampled_from((0, 1, 2, 4, 5, 20, 77))
sources = st.sampled_from(("own", "own", "own", "own", 0, 2, 20))
policies = st.builds(
    Policy,
    dialect=st.sampled_from((Dialect.AUTH, Dialect.AUTH, Dialect.LOGIN, Dialect.FLAT)),
    provisioned=st.just(BINDINGS),
    role_perms=st.just(PERMS),
    node_roles=st.sampled_from(({}, {4: "admin"}, {2: "node", 4: "admin", 5: "node"})),
    default_perms=st.sampled_from(((), (), ("p.read",), ("auth.list",))),
    first_node_id=st.sampled_from((2, 2, 2**32 - 2)),
    reregister=st.sampled_from((Reregister.OPEN, Reregister.OPEN, Reregister.AFTER_REVOKE)),
    revoke_on_reregister=st.booleans(),
    close_superseded=st.booleans(),
    close_on_revoke=st.booleans(),
    answer_offline=st.booleans(),
    answer_mismatch=st.booleans(),
    pending_limit=st.sampled_from((256, 2)),
)


class RootMachine(RuleBasedStateMachine):
    """Four links, three free devices, an administrator and one that may do everything."""

    def __init__(self) -> None:
        super().__init__()
        TALLY.examples += 1
        self.msg_id = 100
        self.known: dict[str, list[str]] = {binding.device_id: [binding.credential] for binding in BINDINGS}

    @initialize(policy=policies)
    def start(self, policy: Policy) -> None:
        self.hub = OneHub(policy, TALLY)
        self.naive = NaiveRoot(policy)

    # Comparing

    def receive(self, link: int, body: Body, source: object, **header: Any) -> Step:
        """A frame with the node of the link's device as source, or with another node that the device claims to be."""
        self.msg_id += 1
        self.naive.closed = []
        claimed = self.naive.node_on(link) if source == "own" else source
        return self.hub.receive(link, body, msg_id=self.msg_id, source=claimed, **header)

    def compare(self, done: Step, expected: list[Said]) -> None:
        answers = [(output.link, output.frame) for output in done.outputs if isinstance(output, Send)]
        said = [
            (link, frame.body.action, frame.body.reason, frame.body.node_id)
            for link, frame in answers
            if isinstance(frame.body, Answer)
        ]
        assert said == expected
        assert all(frame.msg_id == self.msg_id for _, frame in answers if isinstance(frame.body, Answer))
        closed = [output.link for output in done.outputs if isinstance(output, Close)]
        assert sorted(closed) == sorted(self.naive.closed)
        state = self.hub.state
        assert {link: session and session.device_id for link, session in state.links.items()} == self.naive.links
        assert {device: known.node_id for device, known in state.registry.items()} == self.naive.nodes
        whitelist = {device: (entry.node_id, entry.credential) for device, entry in state.whitelist.items()}
        assert whitelist == self.naive.entries
        online = {route.device_id for route in state.directory.values() if route.online}
        assert online == set(self.naive.links.values()) - {None}

    def timer_started(self, done: Step, link: int) -> None:
        self.naive.remembered += [(output.timer, link) for output in done.outputs if isinstance(output, StartTimer)]

    def is_up(self, link: int) -> bool:
        return link in self.naive.links

    def claimed(self, link: int, source: object) -> int:
        return self.naive.node_on(link) if source == "own" else int(str(source))

    def has_presence(self) -> bool:
        return self.hub.policy.has_presence

    # Links

    @rule(link=links)
    def up(self, link: int) -> None:
        self.naive.closed = []
        done = self.hub.happens(LinkUp(link))
        self.naive.links.setdefault(link, None)
        self.compare(done, SILENCE)

    @rule(link=links)
    def down(self, link: int) -> None:
        self.naive.closed = []
        done = self.hub.happens(LinkDown(link))
        if self.is_up(link):
            self.naive.leave(link)
            del self.naive.links[link]
        self.compare(done, SILENCE)

    # Register and authenticate

    @rule(link=links, device=devices, source=sources, usable=st.sampled_from((True, True, True, True, False)))
    def register(self, link: int, device: str, source: object, usable: bool) -> None:
        if not self.is_up(link):
            self.up(link)
        credential = fresh(self.hub.inputs + 1) if usable else "short"
        done = self.receive(link, Register(device), source, credential=credential)
        self.compare(done, self.naive.register(link, device, credential))
        self.known.setdefault(device, []).append(credential)

    @rule(link=links, device=devices, source=sources, age=st.sampled_from((-1, -1, -1, 0, None)), foreign=devices)
    def authenticate(self, link: int, device: str, source: object, age: int | None, foreign: str) -> None:
        """With the newest credential, the oldest, none, or somebody else's."""
        if not self.is_up(link):
            self.up(link)
        keys = self.known.get(device if age is not None else foreign, [""])
        credential = "" if self.hub.policy.dialect is Dialect.FLAT else keys[age or 0]
        done = self.receive(link, Authenticate(device, credential), source)
        self.compare(done, self.naive.authenticate(link, device, credential))

    # What needs a session

    @precondition(has_presence)
    @rule(link=links, device=devices, node_id=nodes, own=st.booleans(), source=sources)
    def offline(self, link: int, device: str, node_id: int, own: bool, source: object) -> None:
        if not self.is_up(link):
            return
        if own:
            device, node_id = self.naive.links[link] or device, self.naive.node_on(link)
        claimed = self.claimed(link, source)
        done = self.receive(link, Offline(device, node_id), source)
        self.compare(done, self.naive.offline(link, device, node_id, claimed))

    @precondition(has_presence)
    @rule(
        link=st.sampled_from((None, 1, 2, 3, 4)),
        device=devices,
        node_id=st.sampled_from((0, 0, 2, 5, 20)),
        with_credential=st.sampled_from((False, False, True)),
        foreign=devices,
        towards=st.sampled_from((0, 0, 1, 2, 77)),
        source=sources,
    )
    def revoke(
        self,
        link: int | None,
        device: str,
        node_id: int,
        with_credential: bool,
        foreign: str,
        towards: int,
        source: object,
    ) -> None:
        credential = self.known.get(foreign, [""])[-1] if with_credential else ""
        message = Revoke(device, node_id, credential)
        if link is None:
            self.naive.closed = []
            done = self.hub.happens(OperatorRevoke(message, towards))
            self.compare(done, self.naive.revoke(None, device, node_id, credential, towards))
        elif self.is_up(link):
            claimed = self.claimed(link, source)
            done = self.receive(link, message, source, target=towards)
            expected = self.naive.revoke(link, device, node_id, credential, towards, claimed)
            if self.naive.links.get(link) is not None:
                self.timer_started(done, link)
            self.compare(done, expected)

    @rule(index=st.integers(0, 3))
    def fire(self, index: int) -> None:
        if index < len(self.naive.remembered):
            timer, _ = self.naive.remembered.pop(index)
            self.naive.closed = []
            self.compare(self.hub.happens(TimerFired(timer)), SILENCE)

    @precondition(lambda self: self.hub.policy.has_perms)
    @rule(link=links, node_id=nodes, source=sources)
    def get_perms(self, link: int, node_id: int, source: object) -> None:
        if self.is_up(link):
            claimed = self.claimed(link, source)
            done = self.receive(link, GetPerms(node_id), source)
            expected = self.naive.get_perms(link, node_id, claimed)
            self.compare(done, expected)
            if expected and expected[0][2] is Reason.OK:
                assert _only_answer(done).grant.perms == self.naive.perms_of(node_id)

    @precondition(lambda self: self.hub.policy.has_perms)
    @rule(
        link=links,
        offset=st.integers(0, 3),
        limit=st.sampled_from((0, 1, 100, 5000)),
        role=st.sampled_from(("", "", "node", "admin", "nobody")),
        wanted=st.lists(nodes, max_size=3).map(tuple),
    )
    def list_roles(self, link: int, offset: int, limit: int, role: str, wanted: tuple[int, ...]) -> None:
        if self.naive.links.get(link) is not None:
            done = self.receive(link, ListRoles(offset, limit, role, wanted), "own")
            self.compare(done, [(link, Action.LIST_ROLES, Reason.OK, 0)])
            answer = _only_answer(done)
            assert (answer.total, [row.node_id for row in answer.roles]) == self.naive.page(offset, limit, role, wanted)

    @precondition(lambda self: self.hub.policy.has_perms)
    @rule(link=links, source=sources)
    def invalidate(self, link: int, source: object) -> None:
        if self.is_up(link):
            action = Action.PERMS_INVALIDATE
            expected = self.naive.refused_at_the_door(link, action, self.claimed(link, source))
            if expected is None:
                may = self.naive.may(link, "auth.perms_invalidate")
                expected = SILENCE if may else [(link, action, Reason.FORBIDDEN, 0)]
            self.compare(self.receive(link, PermsInvalidate(()), source), expected)

    # Hostile

    @rule(link=links, device=devices, which=st.integers(0, 7), source=sources)
    def pretend_to_be_a_hub(self, link: int, device: str, which: int, source: object) -> None:
        bodies: tuple[Any, ...] = (AssistRegister(device), AssistAuthenticate(device, "x" * 43))
        if self.has_presence():
            bodies += (AssistAuthenticate(device), AssistQueryCredential(device), AssistOffline(device))
            bodies += (HubOnline(device, 2), HubDismiss(device, 2), HubFence())
        if self.is_up(link):
            body = bodies[which % len(bodies)]
            expected = self.naive.refused_at_the_door(link, body.action, self.claimed(link, source))
            self.compare(self.receive(link, body, source), expected or SILENCE)

    @rule(link=links, device=devices, action=st.sampled_from(list(Action)), source=sources, msg_id=st.integers(0, 5))
    def answer_what_nobody_asked(self, link: int, device: str, action: Action, source: object, msg_id: int) -> None:
        if self.is_up(link):
            self.naive.closed = []
            frame = Frame(Answer(action, Reason.OK, device, 2, "x" * 43), msg_id=msg_id)
            self.compare(self.hub.receive(link, frame.body, msg_id=msg_id, source=self.claimed(link, source)), SILENCE)

    @rule(link=links, action=st.sampled_from((None, *Action)), is_answer=st.booleans(), source=sources)
    def babble(self, link: int, action: Action | None, is_answer: bool, source: object) -> None:
        """A payload that cannot be read."""
        if not self.is_up(link):
            return
        expected: list[Said] = SILENCE
        if action is not None and not is_answer:
            refused = None
            if action not in (Action.REGISTER, Action.AUTHENTICATE):
                refused = self.naive.refused_at_the_door(link, action, self.claimed(link, source))
            expected = [(link, action, Reason.INVALID_REQUEST, 0)] if refused is None else refused
        self.compare(self.receive(link, Malformed(action, "bad", is_answer), source), expected)

    @rule(link=links, towards=nodes, source=sources, hop_limit=st.sampled_from((0, 0, 1, 2)))
    def opaque(self, link: int, towards: int, source: object, hop_limit: int) -> None:
        if self.is_up(link):
            expected = self.naive.forwarded(link, self.claimed(link, source), towards, hop_limit)
            done = self.receive(link, b"opaque", source, target=towards, hop_limit=hop_limit)
            self.compare(done, SILENCE)
            assert sorted(output.link for output in done.outputs if isinstance(output, Send)) == expected


def _only_answer(done: Step) -> Answer:
    (answer,) = [output.frame.body for output in done.outputs if isinstance(output, Send)]
    assert isinstance(answer, Answer)
    return answer
