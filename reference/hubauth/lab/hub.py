"""One hub under test. Every step it takes is checked against everything that must hold after any step.

``EXERCISED`` collects the rules that the steps themselves say decided; ``tests/test_rules.py`` reads it.
``LISTENERS`` and ``DEFAULT_DIALECT`` are for ``tools/vectors.py``: the same tests yield the vectors.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from hubauth.core.indexes import derive_index, initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, PolicyChanged, Received, TimerFired
from hubauth.core.messages import (
    NO_GRANT,
    SUB_PROTO,
    Action,
    Answer,
    Authenticate,
    Body,
    Ext,
    Frame,
    Grant,
    HubOnline,
    Major,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import Purpose, Session, State
from hubauth.core.outputs import CancelTimer, Note, NoteKind, Output, Send, StartTimer
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.core.transition import Step
from hubauth.lab.stepping import SteppedHub

EXERCISED: set[str] = set()

LISTENERS: list[Callable[["Hub", Input, Step], None]] = []
"""Told of every step, with the hub's policy and state still as they were before it."""
DEFAULT_DIALECT: list[Dialect] = [Dialect.AUTH]
"""One item: what ``root`` and ``mid`` speak unless a test says otherwise."""

ASK = 7
"""The MsgID that peers use unless a test says otherwise."""
OWN_JOURNAL, PARENT_JOURNAL = "journal of this hub", "journal of the parent"
HUB_A, HUB_B, ADMIN = 10, 11, 20
ROLES = {"hub": ("auth.assist",), "admin": ("auth.revoke", "auth.perms_invalidate"), "node": ("p.read",)}
NODE = Grant("node", ("p.read",))
HUB = Grant("hub", ("auth.assist",))


def issued(number: int) -> str:
    """The credential that comes with a hub's n-th input."""
    return f"c{number:042d}"


def key(device_id: str) -> str:
    """The configured credential of a provisioned device."""
    return f"{device_id:k<43}"


def credentials(device_id: str) -> Authenticate:
    """How a provisioned device authenticates; a hub, by its name, speaks the extension."""
    return Authenticate(device_id, key(device_id), journal_of(device_id) if device_id.startswith("hub-") else None)


def journal_of(device_id: str) -> Ext:
    """How a hub of this name begins to speak the extension."""
    return Ext(f"journal of {device_id}")


def admission(device_id: str = "mid", node_id: int = 5, *, handled: int = 0) -> Answer:
    """How a parent that speaks the extension admits a hub."""
    ext = Ext(PARENT_JOURNAL, OWN_JOURNAL, handled)
    return Answer(Action.AUTHENTICATE, Reason.OK, device_id, node_id, ext=ext)


PROVISIONED = (
    Provisioned("hub-a", HUB_A, key("hub-a"), "hub"),
    Provisioned("hub-b", HUB_B, key("hub-b"), "hub"),
    Provisioned("admin", ADMIN, key("admin"), "admin"),
)
LISTED = tuple(evolve(binding, credential="") for binding in PROVISIONED)


class Hub(SteppedHub):
    """A hub with words for what happens to it in a test."""

    def __init__(self, policy: Policy, state: State | None = None) -> None:
        state = initial_state(policy, OWN_JOURNAL) if state is None else state
        super().__init__(policy, evolve(state, index=derive_index(policy, state)))
        self.steps: list[Step] = []

    def wrong_with_step(self, before: State, happened: Input, done: Step) -> list[str]:
        EXERCISED.update(done.rules)
        for listener in LISTENERS:
            listener(self, happened, done)
        self.steps.append(done)
        return super().wrong_with_step(before, happened, done)

    def secrets(self, happened: Input) -> set[str]:
        given = (
            {happened.fresh, getattr(happened.frame.body, "credential", "")}
            if isinstance(happened, Received)
            else set()
        )
        return super().secrets(happened) | given

    @property
    def unchanged(self) -> bool:
        """Whether the last step left the very same state behind."""
        return self.state is self.before

    # What happens to a hub

    def up(self, link: Link) -> Step:
        return self.happens(LinkUp(link))

    def down(self, link: Link) -> Step:
        return self.happens(LinkDown(link))

    def fires(self, timer: int) -> Step:
        return self.happens(TimerFired(timer))

    def receive(self, link: Link, body: Body, *, msg_id: int = ASK, fresh: str | None = None, **header: Any) -> Step:
        """A frame arrives; its source is the node of the link (the parent's is 1) unless said otherwise."""
        self.inputs += 1
        session = self.state.links.get(link)
        header.setdefault("source", session.node_id if session is not None else int(link == PARENT))
        header.setdefault("sub_proto", 6 if isinstance(body, bytes) else SUB_PROTO)
        frame = Frame(body, msg_id=msg_id, **header)
        return self.happens(Received(link, frame, issued(self.inputs) if fresh is None else fresh))

    def now_with(self, **changes: Any) -> Step:
        """The operator changes the configuration."""
        return self.happens(PolicyChanged(evolve(self.policy, **changes)))

    # Situations

    def registered(self, link: Link, device_id: str) -> int:
        """A device of its own connects and registers, at the authority; its node."""
        self.up(link)
        self.receive(link, Register(device_id))
        return self.session(link).node_id

    def provisioned(self, link: Link, device_id: str) -> None:
        """A device or hub from the configuration connects and authenticates."""
        self.up(link)
        flat = self.policy.dialect is Dialect.FLAT
        self.receive(link, Authenticate(device_id) if flat else credentials(device_id))
        assert self.session(link).device_id == device_id

    def found_below(self, device_id: str, node_id: int, link: Link) -> None:
        """The hub on ``link`` announces that a device is with it."""
        self.receive(link, HubOnline(device_id, node_id))
        assert self.state.directory[node_id].online

    def admitted_from_above(self, link: Link, device_id: str, node_id: int, grant: Grant = NO_GRANT) -> str:
        """A device (with the grant of a hub: a hub) registers through the parent, which may tell its role."""
        if link not in self.state.links:
            self.up(link)
        self.receive(link, Register(device_id, journal_of(device_id) if grant == HUB else None))
        credential = key(device_id)
        self.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, device_id, node_id, credential, grant))
        if self.waits(link):
            self.told_nothing(node_id)
        assert self.session(link).node_id == node_id
        return credential

    def joined(self) -> "Hub":
        """The parent link is up and this hub was admitted there, by a parent that speaks the extension."""
        done = self.up(PARENT)
        request = sent(done, PARENT)[0].frame
        assert isinstance(request.body, Authenticate)
        about = admission(request.body.device_id, self.policy.node_id)
        about = about if self.policy.has_extension else evolve(about, ext=None)
        self.receive(PARENT, about, msg_id=request.msg_id, source=1, major=Major.OK_RESP)
        assert self.state.parent_present
        return self

    def answered(self, link: Link, answer: Answer, **header: Any) -> Step:
        """The newest question put to ``link`` is answered."""
        msg_id = header.pop("msg_id", None) or self.last_question(link)
        header.setdefault("source", 1 if link == PARENT else self.session(link).node_id)
        header.setdefault("major", Major.OK_RESP if answer.reason is Reason.OK else Major.ERR_RESP)
        return self.receive(link, answer, msg_id=msg_id, **header)

    def told_nothing(self, node_id: int) -> Step:
        """The parent is asked about a device that waits to be admitted, and does not know its node."""
        return self.answered(PARENT, Answer(Action.GET_PERMS, Reason.UNKNOWN_NODE, "", node_id))

    # What a hub knows

    def waits(self, link: Link) -> bool:
        """Whether a device on this link waits to be admitted."""
        return any(pending.purpose is Purpose.ADMIT for pending in self.state.pending.values() if pending.asker == link)

    def session(self, link: Link) -> Session:
        found = self.state.links[link]
        assert found is not None
        return found

    def last_question(self, link: Link) -> int:
        return max(msg_id for msg_id, pending in self.state.pending.items() if pending.asked == link)

    @property
    def next_id(self) -> int:
        """The MsgID of the hub's next own request."""
        return self.state.next_msg_id

    def owed(self, key: int) -> dict[Revoke, tuple[int, int]]:
        """What a neighbour is owed, by turns: number or place, and originator."""
        rows = sorted(self.state.owed.items(), key=lambda row: row[1].turn)
        return {message: (owed.turn, owed.originator) for (to, message), owed in rows if to == key}

    def is_online(self, node_id: int) -> bool:
        return self.state.directory[node_id].online

    def is_free(self, link: Link) -> bool:
        """Whether the link is up without a session."""
        return self.state.links.get(link, 0) is None


def root(**changes: Any) -> Hub:
    """The root and authority, node 1, knowing two hubs and an administrator."""
    usual = {"provisioned": PROVISIONED, "role_perms": ROLES, "dialect": DEFAULT_DIALECT[0]}
    return Hub(Policy(**{**usual, **changes}))


def mid(*, joined: bool = True, **changes: Any) -> Hub:
    """Node 5 below the root, which is node 1, knowing the same two hubs and the administrator."""
    own = {"device_id": "mid", "node_id": 5, "credential": key("mid"), "has_parent": True}
    hub = root(**{**own, **changes})
    return hub.joined() if joined else hub


def listing(**nodes: int) -> dict[str, Any]:
    """A configuration that lists these devices too: the authority believes no announcement of a stranger."""
    return {"provisioned": (*PROVISIONED, *(Provisioned(device_id, node_id) for device_id, node_id in nodes.items()))}


def with_hubs(hub: Hub) -> Hub:
    """Hub A on link 1 and hub B on link 2."""
    hub.provisioned(1, "hub-a")
    hub.provisioned(2, "hub-b")
    return hub


# What a step did


def sent(done: Step, link: Link | None = None) -> list[Send]:
    sends = [output for output in done.outputs if isinstance(output, Send)]
    return sends if link is None else [send for send in sends if send.link == link]


def notes(done: Step) -> list[Note]:
    return [output for output in done.outputs if isinstance(output, Note)]


def without_timers(done: Step) -> list[Output]:
    return [output for output in done.outputs if not isinstance(output, StartTimer | CancelTimer)]


def reply(
    link: Link, answer: Answer, hub: Hub, *, msg_id: int = ASK, source: int = 0, target: int = 0, trace_id: int = 0
) -> Send:
    """An answer as every answer must look."""
    major = Major.OK_RESP if answer.reason is Reason.OK else Major.ERR_RESP
    return Send(link, Frame(answer, major, msg_id, source or hub.state.node_id, target, trace_id=trace_id))


def question(link: Link, body: Request, hub: Hub, msg_id: int, *, target: int, trace_id: int = 0) -> Send:
    """A request to another hub as every one must look."""
    return Send(link, Frame(body, Major.CMD, msg_id, hub.state.node_id, target, trace_id=trace_id))


def numbered(link: Link, body: Revoke, number: int, originator: int, msg_id: int, *, trace_id: int = 0) -> Send:
    """A broadcast revoke on an extended link."""
    return Send(link, Frame(evolve(body, seq=number), Major.CMD, msg_id, originator, 0, trace_id=trace_id))


def dropped(rule: str, link: Link | None, done: Step) -> bool:
    """Whether all the step did was to note that a frame was dropped."""
    return [(note.kind, note.rule, note.link) for note in notes(done)] == [(NoteKind.DROPPED, rule, link)] and len(
        done.outputs
    ) == 1
