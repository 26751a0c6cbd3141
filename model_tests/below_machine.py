"""A hub below a parent that answers late, wrongly, twice or never: every outcome is predicted and compared."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hubauth.core.inputs import LinkDown, LinkUp, TimerFired
from hubauth.core.messages import (
    NO_GRANT,
    Action,
    Answer,
    AssistOffline,
    Authenticate,
    Body,
    Ext,
    GetPerms,
    Grant,
    HubDismiss,
    HubFence,
    HubOnline,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose
from hubauth.core.outputs import Close, Send
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned
from hubauth.core.transition import Step
from hubauth.lab.hub import OWN_JOURNAL
from hubauth.promises.events import Event, Setting
from model_tests.below import CHILD, NODES, PARENT, NaiveHub
from model_tests.exercised import Tally
from model_tests.hub import OneHub

TALLY = Tally()
OWN, CHILD_NODE = 5, 20
OWN_KEY, CHILD_KEY = "S" * 43, "A" * 43
LINKS = (1, 2, 3)
VERSIONS = range(3)
READER = Grant("reader", ("p.read",))

links = st.sampled_from(LINKS)
devices = st.sampled_from(sorted(NODES))
indexes = st.integers(0, 5)
journals = st.sampled_from(("one", "one", "one", "", "another"))
"""Who is at the other end; "" does not speak the extension."""
numbers = st.integers(1, 6)
policies = st.builds(
    Policy,
    device_id=st.just("self"),
    node_id=st.just(OWN),
    credential=st.just(OWN_KEY),
    has_parent=st.just(True),
    dialect=st.sampled_from((Dialect.AUTH, Dialect.AUTH, Dialect.LOGIN)),
    provisioned=st.just((Provisioned("hub-a", CHILD_NODE, CHILD_KEY, "hub"),)),
    role_perms=st.just({"hub": ("auth.assist",)}),
    assist=st.sampled_from((Assist.AUTH, Assist.AUTH, Assist.QUERY, Assist.NONE)),
    close_superseded=st.booleans(),
    close_on_revoke=st.booleans(),
    answer_mismatch=st.booleans(),
    pending_limit=st.sampled_from((256, 1, 2, 3)),
    revoke_batch=st.sampled_from((256, 1, 1, 2)),
)


def _nth(options: list[int], index: int) -> int:
    return options[index % len(options)]


def key_of(device: str, version: int) -> str:
    """A credential that the authority above has issued."""
    return f"{device}{version:041d}"


ISSUED = frozenset(
    (device, node_id, key_of(device, version)) for device, node_id in NODES.items() for version in VERSIONS
)
ELSEWHERE = (Event("configured", "above", setting=Setting(bindings=ISSUED)), Event("configured", "above"))
"""What the monitor is told of the tree: these credentials are the devices'; which of them still holds is unknown."""


class BelowMachine(RuleBasedStateMachine):
    """Three links for devices, one for a child hub, and the parent."""

    def __init__(self) -> None:
        super().__init__()
        TALLY.examples += 1
        self.msg_id = 100
        self.parents = self.children = ""
        """The journals under which parent and child were last known."""

    @initialize(policy=policies, joined=st.sampled_from((True, True, True, False)), child=st.booleans())
    def start(self, policy: Policy, joined: bool, child: bool) -> None:
        self.hub = OneHub(policy, TALLY)
        assert not self.hub.see(ELSEWHERE)
        self.naive = NaiveHub(policy)
        if joined:
            self.parent_answers_the_join(Reason.OK, "one")
        if child:
            self.child_up("one")

    # Comparing

    def receive(self, link: int, body: Body, **header: Any) -> Step:
        self.msg_id += 1
        header.setdefault("msg_id", self.msg_id)
        header.setdefault(
            "source", {PARENT: 1, CHILD: CHILD_NODE}.get(link, NODES.get(self.naive.links.get(link) or "", 0))
        )
        self.naive.begin()
        return self.hub.receive(link, body, **header)

    def compare(self, done: Step) -> None:
        naive, state = self.naive, self.hub.state
        said, asked = [], []
        for output in done.outputs:
            if isinstance(output, Send):
                body: Any = output.frame.body
                if isinstance(body, Answer):
                    said.append((output.link, body.action, body.reason))
                else:
                    asked.append((output.link, body.action))
        assert sorted(said, key=repr) == sorted(naive.said, key=repr)
        assert sorted(asked, key=repr) == sorted(naive.asked, key=repr)
        assert sorted(output.link for output in done.outputs if isinstance(output, Close)) == sorted(naive.closed)
        sessions = {link: session and session.device_id for link, session in state.links.items() if link != PARENT}
        assert sessions == naive.links
        entries = {device: entry.credential for device, entry in state.whitelist.items() if device in NODES}
        assert entries == naive.entries
        online = {route.device_id for route in state.directory.values() if route.online and route.device_id in NODES}
        assert online == {device for device, (_, there) in naive.places.items() if there}
        assert state.parent_present == naive.present
        assert set(state.perms) == naive.cache
        debts = naive.debts
        assert len(state.owed) == len(debts.before) + len(debts.flying) + len(debts.queue)
        waiting = {
            key
            for key, pending in state.pending.items()
            if pending.asker is not None or pending.purpose is Purpose.PERMS
        }
        assert waiting == set(naive.questions)
        unheard = {key for key, pending in state.pending.items() if pending.purpose is Purpose.UNHEARD}
        assert unheard == set(naive.unheard)

    def own_requests(self) -> list[int]:
        joins = (Purpose.SELF_AUTHENTICATE, Purpose.SELF_REGISTER)
        return sorted(key for key, pending in self.hub.state.pending.items() if pending.purpose in joins)

    def orders(self) -> list[int]:
        """What the child has not confirmed."""
        outstanding = (Purpose.DISMISS, Purpose.FENCE)
        return sorted(key for key, asked in self.hub.state.pending.items() if asked.purpose in outstanding)

    def paced(self) -> list[int]:
        """The timer of what is kept for the child."""
        return [key for key, waits in self.hub.state.pending.items() if waits.purpose is Purpose.PACE]

    def device_links(self) -> list[int]:
        return sorted(link for link in self.naive.links if link != CHILD)

    def sessions(self) -> list[int]:
        return [link for link in self.device_links() if self.naive.links[link] is not None]

    def is_up(self, link: int) -> bool:
        return link in self.naive.links

    def ensure_up(self, link: int) -> None:
        if not self.is_up(link):
            self.naive.begin()
            done = self.hub.happens(LinkUp(link))
            self.naive.links[link] = None
            self.compare(done)

    # The parent comes and goes

    @rule(
        reason=st.sampled_from((Reason.OK, Reason.OK, Reason.OK, Reason.NOT_ADMITTED, Reason.UNREACHABLE)),
        journal=journals,
    )
    def parent_answers_the_join(self, reason: Reason, journal: str) -> None:
        if PARENT not in self.hub.state.links:
            self.hub.happens(LinkUp(PARENT))
        if not self.own_requests():
            return
        ext = Ext(journal, OWN_JOURNAL, 0) if journal else None
        answer = Answer(Action.AUTHENTICATE, reason, "self", OWN, OWN_KEY, ext=ext)
        done = self.receive(PARENT, answer, msg_id=self.own_requests()[0])
        if reason is Reason.OK:
            self.naive.present, self.naive.heeds = True, bool(journal)
            if journal and journal != self.parents:
                self.naive.handled, self.parents = 0, journal
            self.naive.cache = set()
            self.naive.forgotten += 1
            self.naive.joined = self.naive.forgotten
            for device, (_, online) in self.naive.places.items():
                if online and device in NODES:
                    self.naive.announce()
            if CHILD in self.naive.links:
                self.naive.announce()
                if self.hub.policy.has_perms:
                    self.naive.asked.append((CHILD, Action.PERMS_INVALIDATE))
        elif reason is Reason.UNREACHABLE:
            self.naive.closed.append(PARENT)
        self.compare(done)

    def parent_down(self) -> None:
        self.naive.begin()
        done = self.hub.happens(LinkDown(PARENT))
        self.naive.parent_gone()
        self.compare(done)

    @rule(what=st.sampled_from(("parent", "child", "device")), index=indexes)
    def disturb(self, what: str, index: int) -> None:
        """A link goes down."""
        if what == "parent" and PARENT in self.hub.state.links:
            self.parent_down()
        elif what == "child" and self.is_up(CHILD):
            self.child_down()
        elif what == "device" and self.device_links():
            self.down(index)

    # Devices

    def down(self, index: int) -> None:
        link = _nth(self.device_links(), index)
        self.naive.begin()
        done = self.hub.happens(LinkDown(link))
        if self.naive.links[link] is not None:
            self.naive.leave(link, report=True, stays=False)
        self.naive.forget_link(link)
        self.compare(done)

    @rule(link=links, device=devices)
    def register(self, link: int, device: str) -> None:
        self.ensure_up(link)
        number = self.hub.state.next_msg_id
        done = self.receive(link, Register(device))
        self.naive.register(link, device, number)
        self.compare(done)

    @rule(
        link=links,
        device=devices,
        version=st.sampled_from(VERSIONS),
        empty=st.sampled_from((False, False, False, True)),
    )
    def authenticate(self, link: int, device: str, version: int, empty: bool) -> None:
        self.ensure_up(link)
        number = self.hub.state.next_msg_id
        credential = "" if empty else key_of(device, version)
        done = self.receive(link, Authenticate(device, credential))
        self.naive.authenticate(link, device, credential, number)
        self.compare(done)

    @precondition(lambda self: self.naive.present)
    @rule(link=links, device=devices, version=st.sampled_from(VERSIONS))
    def admit(self, link: int, device: str, version: int) -> None:
        """A registration that goes well from end to end, if nothing is in its way."""
        number = self.hub.state.next_msg_id
        self.register(link, device)
        if number in self.naive.questions:
            self._answer(number, Reason.OK, "", version, 1)

    @precondition(lambda self: self.naive.present and CHILD in self.naive.links)
    @rule(link=links, device=devices)
    def move_here(self, link: int, device: str) -> None:
        """The child says a device is with it, the device comes here, and the child, not knowing yet, says it again."""
        self.announce(device)
        self.admit(link, device, 0)
        self.announce(device)

    @precondition(lambda self: self.naive.present and self.hub.policy.has_perms and self.sessions())
    @rule(index=indexes, nodes=st.sampled_from(((30,), (30, 31))), refresh=st.booleans())
    def learn_and_forget(self, index: int, nodes: tuple[int, ...], refresh: bool) -> None:
        """Permissions become known, and then are not to be trusted any more."""
        number = self.hub.state.next_msg_id
        self.get_perms(index, 30)
        if number in self.naive.questions:
            self._answer(number, Reason.OK, "", 0, 1)
        self.invalidate(nodes, refresh)

    @precondition(lambda self: self.hub.policy.has_perms and self.sessions())
    @rule(index=indexes, node_id=st.sampled_from((30, 31, 77)))
    def get_perms(self, index: int, node_id: int) -> None:
        link = _nth(self.sessions(), index)
        number = self.hub.state.next_msg_id
        done = self.receive(link, GetPerms(node_id))
        self.naive.get_perms(link, node_id, number)
        self.compare(done)

    # Answers from above and below

    @precondition(lambda self: self.naive.questions)
    @rule(
        index=indexes,
        reason=st.sampled_from((*[Reason.OK] * 14, *Reason)),
        wrong=st.sampled_from(("", "", "", "", "device", "node", "own node", "credential")),
        version=st.sampled_from(VERSIONS),
        times=st.sampled_from((1, 1, 2)),
        told=st.booleans(),
    )
    def answer(self, index: int, reason: Reason, wrong: str, version: int, times: int, told: bool) -> None:
        """What was asked is answered, perhaps wrongly, perhaps twice, perhaps without a role."""
        self._answer(_nth(sorted(self.naive.questions), index), reason, wrong, version, times, told)

    def _answer(self, number: int, reason: Reason, wrong: str, version: int, times: int, told: bool = True) -> None:
        question = self.naive.questions[number]
        device = "d9" if wrong == "device" else question.device
        node_id = {"node": 0, "own node": OWN}.get(wrong, NODES.get(question.device, question.node_id))
        credential = "" if wrong == "credential" else key_of(question.device, version)
        grant = READER if told else NO_GRANT
        body = Answer(self.naive.kind(question), reason, device, node_id, credential, grant)
        for _ in range(times):
            if question.asked in self.hub.state.links:
                self._answers(question.asked, body, number)

    def _answers(self, link: int, answer: Answer, number: int) -> None:
        next_number = self.hub.state.next_msg_id
        done = self.receive(link, answer, msg_id=number)
        self.naive.answered(link, number, answer, next_number)
        self.compare(done)

    @rule(number=numbers, link=st.sampled_from((PARENT, *LINKS)), device=devices, action=st.sampled_from(list(Action)))
    def answer_of_another(self, number: int, link: int, device: str, action: Action) -> None:
        """An answer that no request waits for, or that comes from another link than was asked."""
        question = self.naive.questions.get(number)
        expected = question is not None and question.asked == link
        if link not in self.hub.state.links or expected or number in self.hub.state.pending or action is Action.REVOKE:
            return
        answer = Answer(action, Reason.OK, device, NODES[device], key_of(device, 0), READER)
        self._answers(link, answer, number)

    @precondition(lambda self: self.naive.questions)
    @rule(index=indexes)
    def never(self, index: int) -> None:
        """No answer comes, and the timer fires."""
        number = _nth(sorted(self.naive.questions), index)
        self.naive.begin()
        done = self.hub.happens(TimerFired(number))
        self.naive.timed_out(number)
        self.compare(done)

    # The parent's own wishes

    @precondition(lambda self: self.naive.present)
    @rule(device=devices)
    def order_off(self, device: str) -> None:
        done = self.receive(PARENT, HubDismiss(device, NODES[device]))
        self.naive.ordered_off(device)
        self.compare(done)

    @precondition(lambda self: self.naive.present)
    @rule(device=devices, version=st.sampled_from((None, None, 0, 1)), number=numbers)
    def revoke(self, device: str, version: int | None, number: int) -> None:
        credential = "" if version is None else key_of(device, version)
        number += self.naive.handled - 2
        if number <= 0:
            return
        done = self.receive(PARENT, Revoke(device, 0, credential, number))
        self.naive.revoked(device, credential, number)
        self.compare(done)

    @precondition(lambda self: self.naive.present and self.hub.policy.has_perms)
    @rule(nodes=st.sampled_from(((), (30,), (30, 31, 77))), refresh=st.booleans())
    def invalidate(self, nodes: tuple[int, ...], refresh: bool) -> None:
        number = self.hub.state.next_msg_id
        done = self.receive(PARENT, PermsInvalidate(nodes, refresh=refresh))
        self.naive.invalidated(nodes, number, refresh=refresh)
        self.compare(done)

    # The child hub

    @precondition(lambda self: CHILD not in self.naive.links)
    @rule(journal=journals)
    def child_up(self, journal: str) -> None:
        self.ensure_up(CHILD)
        done = self.receive(CHILD, Authenticate("hub-a", CHILD_KEY, Ext(journal) if journal else None), source=0)
        self.naive.links[CHILD] = "hub-a"
        self.naive.announce()
        self.naive.answer(CHILD, Action.AUTHENTICATE, Reason.OK)
        anew = journal not in ("", self.children)
        self.children = journal or self.children
        self.naive.child_joined = self.naive.forgotten
        self.naive.tell_child(self.naive.debts.arrives(speaks=bool(journal), anew=anew))
        self.compare(done)

    @rule(link=st.sampled_from((PARENT, CHILD)))
    def fence(self, link: int) -> None:
        """Another hub wants to know whether it was heard."""
        if link in self.hub.state.links and (link == PARENT or self.is_up(link)):
            done = self.receive(link, HubFence())
            if self.naive.heeds if link == PARENT else self.naive.debts.speaks:
                self.naive.answer(link, Action.HUB_FENCE, Reason.OK)
            self.compare(done)

    def child_down(self) -> None:
        self.naive.begin()
        number = self.hub.state.next_msg_id
        done = self.hub.happens(LinkDown(CHILD))
        self.naive.child_gone(number)
        self.naive.tell_parent(Action.ASSIST_OFFLINE)
        self.compare(done)

    @precondition(lambda self: CHILD in self.naive.links)
    @rule(device=devices)
    def announce(self, device: str) -> None:
        done = self.receive(CHILD, HubOnline(device, NODES[device]))
        self.naive.announced(device)
        self.compare(done)

    @precondition(lambda self: CHILD in self.naive.links)
    @rule(device=devices, plainly=st.booleans(), named=st.booleans())
    def report_gone(self, device: str, plainly: bool, named: bool) -> None:
        """As ``assist_offline``, or as ``offline``; either may leave the node out."""
        kind = Offline if plainly else AssistOffline
        done = self.receive(CHILD, kind(device, NODES[device] if named else 0, "gone"))
        self.naive.reported_gone(device, kind.action)
        self.compare(done)

    @precondition(lambda self: self.orders())
    @rule(reason=st.sampled_from((Reason.OK, Reason.NOT_INDEXED)))
    def child_confirms(self, reason: Reason) -> None:
        """The child answers the oldest order or fence."""
        number = self.orders()[0]
        order = self.hub.state.pending[number]
        done = self.receive(CHILD, Answer(order.action, reason, order.device_id), msg_id=number)
        self.naive.dismissed.discard(order.device_id)
        if order.purpose is Purpose.FENCE and reason is Reason.OK:
            self.naive.tell_child(self.naive.debts.answers_fence())
        elif order.purpose is Purpose.FENCE:
            self.naive.debts.refuses_fence()
        self.compare(done)

    @precondition(lambda self: self.paced())
    @rule()
    def go_on_telling(self) -> None:
        """It is time for more of what was kept for a child that does not speak the extension."""
        (number,) = self.paced()
        self.naive.begin()
        done = self.hub.happens(TimerFired(number))
        self.naive.tell_child(self.naive.debts.tell_kept())
        self.compare(done)

    def teardown(self) -> None:
        if hasattr(self, "hub"):
            for link in sorted(self.hub.state.links, reverse=True):
                self.hub.happens(LinkDown(link))
            assert not self.hub.state.pending, "somebody would wait for ever"
