"""A hub that takes steps of its own, some of them wrong, and keeps its rows: what it did wrong it has really done."""

from collections.abc import Callable

from attrs import evolve
from msgspec.structs import replace

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import Input, Link, LinkDown, LinkUp, Received
from hubauth.core.messages import Answer, Authenticate, Body, Frame, Reason, Register, Revoke
from hubauth.core.model import Entry, Session, State
from hubauth.core.outputs import Close, Output, Send
from hubauth.core.policy import Policy, Provisioned
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.forms.events import Event, Kind, Order
from hubauth.wire.dialects import CODECS
from tests.trace.harness import frame as frame_row
from tests.trace.harness import numbered, start

Bend = Callable[[State, Step], tuple[tuple[Output, ...], State]]
"""From the state before and the right step to what the hub does and what it is then."""

ADMIN = Provisioned("admin", 900, "A" * 43, "admin")
ROOT = Policy(device_id="hub", provisioned=(ADMIN,), role_perms={"admin": ("*",)})


def right(_before: State, done: Step) -> tuple[tuple[Output, ...], State]:
    return done.outputs, done.state


class Foreign:
    """One root hub and the rows about it."""

    def __init__(self, policy: Policy = ROOT, always: Callable[[Output], Output] = lambda output: output) -> None:
        self.policy, self.state, self._always = policy, initial_state(policy, "journal"), always
        self.rows: list[Event] = [start(policy)]
        self._codec = CODECS[policy.dialect]
        self._fresh = 0
        self._msg_id = 0

    def happen(self, happened: Input, bend: Bend = right) -> tuple[Output, ...]:
        before = self.state
        outputs, self.state = bend(before, step(self.policy, before, happened))
        self.rows.append(self._cause(happened))
        for output in outputs:
            said = self._always(output)
            if isinstance(said, Send):
                self.rows.append(self._frame(Kind.FRAME_OUT, said.link, said.frame))
            elif isinstance(said, Close):
                self.rows.append(Event("t", "hub", 0, Kind.CLOSE, link=said.link))
        return outputs

    def up(self, link: Link) -> None:
        self.happen(LinkUp(link))

    def down(self, link: Link) -> None:
        self.happen(LinkDown(link))

    def say(self, link: Link, body: Body, bend: Bend = right, source: int = 0, target: int = 0) -> Answer:
        """Somebody asks; what the hub answers there, or an empty answer."""
        self._msg_id += 1
        self._fresh += 1
        frame = Frame(body, msg_id=self._msg_id, source=source, target=target)
        outputs = self.happen(Received(link, frame, f"{self._fresh:043d}"), bend)
        answers = [output.frame.body for output in outputs if isinstance(output, Send) and output.link == link]
        return next((body for body in answers if isinstance(body, Answer)), Answer(None, Reason.INTERNAL))

    def register(self, link: Link, device_id: str, bend: Bend = right) -> str:
        """A device comes on a new link and registers; its credential."""
        self.up(link)
        return self.say(link, Register(device_id), bend).credential

    def authenticate(self, link: Link, device_id: str, credential: str, bend: Bend = right) -> Answer:
        return self.say(link, Authenticate(device_id, credential), bend)

    def revoke(self, device_id: str, bend: Bend = right) -> Answer:
        """The operator's device, which is on link 1, revokes another one."""
        return self.say(1, Revoke(device_id), bend, source=ADMIN.node_id)

    def seen(self, order: Order = Order.HANDLED) -> list[Event]:
        rows = [start(self.policy, order), *self.rows[1:], Event("t", "hub", 0, Kind.END)]
        timed = [replace(event, time=1 + at * 1_000) for at, event in enumerate(rows)]
        timed[-1] = replace(timed[-1], time=timed[-1].time + 2_000_000)  # whatever was due would have come by then
        return numbered(timed)

    def _cause(self, happened: Input) -> Event:
        match happened:
            case Received(link, frame, _):
                return self._frame(Kind.FRAME_IN, link, frame)
            case LinkUp():
                return Event("t", "hub", 0, Kind.LINK_UP, link=happened.link)
            case LinkDown(link):
                return Event("t", "hub", 0, Kind.LINK_DOWN, link=link)
            case _:
                raise NotImplementedError

    def _frame(self, kind: Kind, link: Link, frame: Frame) -> Event:
        payload = frame.body if isinstance(frame.body, bytes) else self._codec.encode(frame.body)
        header = {"msg_id": frame.msg_id, "source": frame.source, "target": frame.target, "sub_proto": frame.sub_proto}
        return frame_row(kind, link, payload, major=int(frame.major), **header)


# What a hub may do wrong


def answering(**changes: object) -> Bend:
    """The answer says something else; the hub is as it should be."""

    def bend(_before: State, done: Step) -> tuple[tuple[Output, ...], State]:
        return tuple(with_answer(output, **changes) for output in done.outputs), done.state

    return bend


def with_answer(output: Output, **changes: object) -> Output:
    if not isinstance(output, Send) or not isinstance(output.frame.body, Answer):
        return output
    body = evolve(output.frame.body, **changes)  # type: ignore[arg-type]
    return Send(output.link, evolve(output.frame, body=body))


def silent(_before: State, done: Step) -> tuple[tuple[Output, ...], State]:
    """The hub does what it should, but does not answer."""
    kept = (one for one in done.outputs if not (isinstance(one, Send) and isinstance(one.frame.body, Answer)))
    return tuple(kept), done.state


def issuing(credential: str) -> Bend:
    """A registration is given this credential, and the hub keeps it."""

    def bend(_before: State, done: Step) -> tuple[tuple[Output, ...], State]:
        outputs = tuple(with_answer(output, credential=credential) for output in done.outputs)
        device_id, entry = next((key, new) for table, key, _, new in done.changes if table == "whitelist")
        entry = Entry(entry.node_id, credential, entry.is_hub)
        return outputs, evolve(done.state, whitelist=done.state.whitelist.set(device_id, entry))

    return bend


def staying_open(before: State, done: Step) -> tuple[tuple[Output, ...], State]:
    """Sessions that should end, and their links, stay as they were."""
    gone = [output.link for output in done.outputs if isinstance(output, Close)]
    links, of_node, directory = done.state.links, done.state.index.link_of_node, done.state.directory
    for link in gone:
        session = before.links[link]
        assert isinstance(session, Session)
        links, of_node = links.set(link, session), of_node.set(session.node_id, link)
        directory = directory.set(session.node_id, before.directory[session.node_id])
    index = evolve(done.state.index, link_of_node=of_node)
    state = evolve(done.state, links=links, directory=directory, index=index)
    return tuple(output for output in done.outputs if not isinstance(output, Close)), state
