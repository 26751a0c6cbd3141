"""What a faulty hub, or a faulty recording, may do wrong once; and which rule must be found for it."""

from collections.abc import Callable
from random import Random

import msgspec
from attrs import evolve, frozen

from hubauth.core.inputs import PARENT, Input, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Frame,
    Major,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, State
from hubauth.core.outputs import Close, Output, Send
from hubauth.core.transition import Step
from hubauth.trace.events import Checkpoint, Event
from hubauth.trace.world import Node, Wire, World

INNER_HUB = "hub-1"
"""Has a parent, and children in a tree of six hubs or more."""
NEVER_THERE = "never-there"
"""A device that no hub has ever seen."""

Outputs = tuple[Output, ...]
Rows = Callable[[Event], None]


@frozen
class Moment:
    """A step that a hub takes, before it does anything."""

    node: Node
    happened: Input
    done: Step


Bend = Callable[[Moment], Outputs | None]


@frozen
class Fault:
    """One kind of mistake."""

    about: str
    rule: str
    """The rule that a replay must name."""
    bend: Bend | None = None
    """What the hub does instead; None: not the moment."""
    tamper: Callable[[Event, Event], tuple[Event, ...] | None] | None = None
    """What stands in the log instead of two consecutive rows of a hub."""
    keep: Callable[[Checkpoint], Checkpoint | None] | None = None
    """What is kept instead of a checkpoint."""
    kept: Callable[[Node], State | None] | None = None
    """What a hub begins with that it should not have."""
    reuses_credential: bool = False
    loses_frame: bool = False
    unrecorded: bool = False
    """``INNER_HUB`` does it, again and again, and has no log: it shows at other hubs only."""
    spans: str = ""
    """The check between hubs that finds it, where every log is right in itself."""

    def plan(self, random: Random, events: int) -> "Plan":
        """To be planted somewhere in the first half of a trace."""
        return Plan(self, random.randrange(events // 8, max(events // 2, events // 8 + 1)))


class Plan:
    """A fault that waits for its moment; where it was planted, once ``done``."""

    def __init__(self, fault: Fault, after: int) -> None:
        self.fault = fault
        self.done = False
        self.hub = ""
        """The hub that the replay must accuse."""
        self.sequence = 0
        """The row around which it happens."""
        self._after = after
        self._seen = 0
        self._held: Event | None = None
        self._issued: dict[str, str] = {}

    def attach(self, world: World) -> None:
        if self.fault.bend is not None:
            world.bend = self._bend
        if self.fault.reuses_credential:
            world.bend = self._watch
            world.reuse_credential = self._issued.get
        if self.fault.loses_frame:
            world.lose = self._lose

    def kept(self, node: Node) -> State | None:
        """What a hub begins with, if that is not an empty state."""
        state = self.fault.kept(node) if self.fault.kept is not None else None
        if state is not None:
            self._planted(node.name, 0)
        return state

    def tampering(self, rows: Rows) -> Rows:
        """Between the world and whoever writes the rows."""
        if self.fault.unrecorded:
            return lambda event: None if event.hub == INNER_HUB else rows(event)
        if self.fault.tamper is None:
            return rows

        def tampered(event: Event) -> None:
            self._seen += 1
            held, tamper = self._held, self.fault.tamper
            assert tamper is not None
            if held is not None and held.hub == event.hub:
                self._held = None
                instead = tamper(held, event)
                if instead is not None:
                    self._planted(event.hub, event.sequence)
                for row in (held, event) if instead is None else instead:
                    rows(row)
                return
            if held is None and not self.done and self._seen > self._after:
                self._held = event
                return
            rows(event)

        return tampered

    def tampering_checkpoints(self, keep: Callable[[Checkpoint], None] | None) -> Callable[[Checkpoint], None] | None:
        if keep is None or (self.fault.keep is None and not self.fault.unrecorded):
            return keep
        change, write = self.fault.keep, keep
        if change is None:
            return lambda checkpoint: None if checkpoint.hub == INNER_HUB else write(checkpoint)

        def tampered(checkpoint: Checkpoint) -> None:
            if self.done:
                write(checkpoint)
                return
            self._planted(checkpoint.hub, checkpoint.sequence)
            changed = change(checkpoint)
            if changed is not None:
                write(changed)

        return tampered

    def _planted(self, hub: str, sequence: int) -> None:
        self.done, self.hub, self.sequence = True, hub, sequence

    def _bend(self, world: World, node: Node, happened: Input, done: Step) -> Outputs | None:
        assert self.fault.bend is not None
        again = self.fault.unrecorded and self.done
        if (self.done and not again) or world.count < self._after:
            return None
        instead = self.fault.bend(Moment(node, happened, done))
        if instead is not None and not again:
            self._planted(node.name, node.sequence - 1)
        return instead

    def _watch(self, world: World, node: Node, happened: Input, done: Step) -> Outputs | None:
        """See which credentials are issued; the second one for a device is the first once more."""
        if self.done or not isinstance(happened, Received) or "REG-4" not in done.rules:
            return None
        body = happened.frame.body
        if isinstance(body, Register | AssistRegister) and any(
            isinstance(sent, Answer) and sent.credential == happened.fresh for sent in _sent(done.outputs)
        ):
            if self._issued.get(body.device_id) == happened.fresh:
                self._planted(node.name, node.sequence - 1)
                world.reuse_credential = lambda _: None
            self._issued[body.device_id] = happened.fresh
        return None

    def _lose(self, wire: Wire, event: Event) -> bool:
        self._seen += 1
        between_hubs = isinstance(wire.child, Node) and event.hub != ""
        if self.done or not between_hubs or self._seen < self._after // 8:
            return False
        receiver = wire.parent if event.link == PARENT else wire.child
        assert isinstance(receiver, Node)
        self._planted(receiver.name, receiver.sequence)
        return True


def _sent(outputs: Outputs) -> list[object]:
    return [output.frame.body for output in outputs if isinstance(output, Send)]


def _change(outputs: Outputs, wanted: Callable[[Send], bool], change: Callable[[Send], Outputs]) -> Outputs | None:
    """The outputs with the first wanted one replaced."""
    for at, output in enumerate(outputs):
        if isinstance(output, Send) and wanted(output):
            return (*outputs[:at], *change(output), *outputs[at + 1 :])
    return None


def _answers(action: Action, reason: Reason | None = None) -> Callable[[Send], bool]:
    def is_it(send: Send) -> bool:
        body = send.frame.body
        return isinstance(body, Answer) and body.action is action and reason in (None, body.reason)

    return is_it


def _with_body(send: Send, **changes: object) -> Outputs:
    body = send.frame.body
    assert isinstance(body, Answer)
    return (Send(send.link, evolve(send.frame, body=evolve(body, **changes))),)  # type: ignore[arg-type]


def _with_header(send: Send, **changes: object) -> Outputs:
    return (Send(send.link, evolve(send.frame, **changes)),)  # type: ignore[arg-type]


def _reply(received: Received, node: Node, answer: Answer) -> Send:
    ok = answer.reason is Reason.OK
    major = Major.OK_RESP if ok else Major.ERR_RESP
    return Send(received.link, Frame(answer, major, received.frame.msg_id, node.state.node_id, received.frame.source))


# What hubs do wrong


def _answer_revoke(moment: Moment) -> Outputs | None:
    node, happened, done = moment.node, moment.happened, moment.done
    if not isinstance(happened, Received) or "REV-9" not in done.rules or happened.link != PARENT:
        return None
    body = happened.frame.body
    if not isinstance(body, Revoke):
        return None
    return (*done.outputs, _reply(happened, node, Answer(Action.REVOKE, Reason.NOT_WHITELISTED, body.device_id)))


def _allocate_when_asked(moment: Moment) -> Outputs | None:
    node, happened, done = moment.node, moment.happened, moment.done
    if not isinstance(happened, Received) or not isinstance(happened.frame.body, AssistRegister):
        return None
    if not any(isinstance(body, AssistRegister) for body in _sent(done.outputs)):
        return None
    device_id = happened.frame.body.device_id
    answer = Answer(Action.ASSIST_REGISTER, Reason.OK, device_id, 4_000_000, happened.fresh or "A" * 43)
    return (_reply(happened, node, answer),)


def _answer_from_cache(moment: Moment) -> Outputs | None:
    node, happened, done = moment.node, moment.happened, moment.done
    if not isinstance(happened, Received) or not isinstance(happened.frame.body, AssistAuthenticate):
        return None
    body = happened.frame.body
    route = node.state.index.node_of_device.get(body.device_id)
    if (
        not body.credential
        or "AUTH-9" not in done.rules
        or not any(isinstance(sent, AssistAuthenticate) for sent in _sent(done.outputs))
    ):
        return None
    answer = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, body.device_id, route or 4_000_001, body.credential)
    return (_reply(happened, node, answer),)


def _admit_revoked(moment: Moment) -> Outputs | None:
    node, happened, done = moment.node, moment.happened, moment.done
    if not isinstance(happened, Received) or not isinstance(happened.frame.body, Authenticate):
        return None
    body = happened.frame.body
    registration = node.state.registry.get(body.device_id)
    if registration is None or not registration.revoked or body.device_id in node.state.whitelist:
        return None
    return _change(
        done.outputs,
        _answers(Action.AUTHENTICATE, Reason.NOT_ADMITTED),
        lambda send: (
            Send(
                send.link,
                evolve(
                    send.frame,
                    major=Major.OK_RESP,
                    body=Answer(Action.AUTHENTICATE, Reason.OK, body.device_id, registration.node_id, body.credential),
                ),
            ),
        ),
    )


def _take_node_of_another(moment: Moment) -> Outputs | None:
    node, done = moment.node, moment.done
    if "REG-1" not in done.rules or len(node.state.registry) < 2:
        return None
    taken = min(registration.node_id for registration in node.state.registry.values())
    for action in (Action.REGISTER, Action.ASSIST_REGISTER):
        changed = _change(done.outputs, _answers(action, Reason.OK), lambda send: _with_body(send, node_id=taken))
        if changed is not None:
            return changed
    return None


def _answer_first(moment: Moment) -> Outputs | None:
    """The answer to a repeated registration before the revoke, on the asking hub's link."""
    happened, done = moment.happened, moment.done
    if "REG-10" not in done.rules or not isinstance(happened, Received) or isinstance(happened.frame.body, Register):
        return None
    sent = [output for output in done.outputs if isinstance(output, Send) and output.link == happened.link]
    if len(sent) < 2 or not _answers(Action.ASSIST_REGISTER, Reason.OK)(sent[-1]):
        return None
    return (sent[-1], *(output for output in done.outputs if output is not sent[-1]))


def _without(wanted: Callable[[Send], bool], rule: str = "") -> Bend:
    def bend(moment: Moment) -> Outputs | None:
        done = moment.done
        if rule and rule not in done.rules:
            return None
        return _change(done.outputs, wanted, lambda _: ())

    return bend


def _altered(wanted: Callable[[Send], bool], change: Callable[[Send], Outputs], rule: str = "") -> Bend:
    def bend(moment: Moment) -> Outputs | None:
        done = moment.done
        return _change(done.outputs, wanted, change) if not rule or rule in done.rules else None

    return bend


def _revoke_to_device(moment: Moment) -> Outputs | None:
    done = moment.done
    sent = [output for output in done.outputs if isinstance(output, Send) and isinstance(output.frame.body, Revoke)]
    devices = [link for link, session in done.state.links.items() if session is not None and not session.is_hub]
    if "REV-2" not in done.rules or not sent or not devices:
        return None
    return (*done.outputs, Send(min(devices), sent[0].frame))


def _pass_late_offline_on(moment: Moment) -> Outputs | None:
    node, happened, done = moment.node, moment.happened, moment.done
    if "OFF-7" not in done.rules or not isinstance(happened, Received) or not done.state.parent_present:
        return None
    body = happened.frame.body
    assert isinstance(body, AssistOffline)
    onward = Frame(AssistOffline(body.device_id, body.node_id), Major.CMD, 9_999_999, node.state.node_id)
    return (*done.outputs, Send(PARENT, evolve(onward, target=done.state.parent_node)))


def _believe_source(moment: Moment) -> Outputs | None:
    happened, done = moment.happened, moment.done
    if "FRAME-2" not in done.rules or not isinstance(happened, Received):
        return None
    links = [link for link, session in done.state.links.items() if session is not None and link != happened.link]
    return (Send(min(links), evolve(happened.frame, hop_limit=15)),) if links else None


def _keep_open(moment: Moment) -> Outputs | None:
    done = moment.done
    if "BIND-3" not in done.rules or not any(isinstance(output, Close) for output in done.outputs):
        return None
    return tuple(output for output in done.outputs if not isinstance(output, Close))


def _swallow_revokes(moment: Moment) -> Outputs | None:
    """Nothing of it goes down; the fences do, and make believe that it did."""
    if moment.node.name != INNER_HUB:
        return None
    outputs = moment.done.outputs
    left = tuple(
        output
        for output in outputs
        if not (isinstance(output, Send) and isinstance(output.frame.body, Revoke) and output.link != PARENT)
    )
    return left if len(left) < len(outputs) else None


def _cached(node: Node) -> State | None:
    if node.name != INNER_HUB:
        return None
    return evolve(node.state, whitelist=node.state.whitelist.set(NEVER_THERE, Entry(4_000_002, "A" * 43)))


def _is(kind: type, link: int | None = None) -> Callable[[Send], bool]:
    return lambda send: isinstance(send.frame.body, kind) and link in (None, send.link)


def _is_announcement(send: Send) -> bool:
    return isinstance(send.frame.body, AssistAuthenticate) and not send.frame.body.credential


def _is_fence(send: Send) -> bool:
    return isinstance(send.frame.body, AssistOffline) and not send.frame.body.node_id


def _damaged(checkpoint: Checkpoint) -> Checkpoint:
    """One node id in it is another, and its digest is that of the damaged state's neighbour."""
    lines = checkpoint.state.split(b"\n")
    altered = [line.replace(b'"next_msg_id",', b'"next_msg_id",1') for line in lines]
    return msgspec.structs.replace(checkpoint, state=b"\n".join(altered))


FAULTS: dict[str, Fault] = {
    "same_credential": Fault("a repeated registration is given the former credential", "REG-9", reuses_credential=True),
    "answers_revoke": Fault("a broadcast revoke that finds nothing is answered", "REV-9", _answer_revoke),
    "allocates_when_asked": Fault("a hub in between hands out a node id by itself", "AUTHY-4", _allocate_when_asked),
    "answers_from_cache": Fault(
        "a hub in between answers a search that it should pass on", "AUTH-9", _answer_from_cache
    ),
    "admits_revoked": Fault("a device is admitted with a revoked credential", "AUTH-9", _admit_revoked),
    "node_id_twice": Fault("two devices are given one node id", "REG-2", _take_node_of_another),
    "answer_before_revoke": Fault(
        "a repeated registration is answered before the old credential is revoked", "REG-10", _answer_first
    ),
    "lost_answer": Fault(
        "an admitted device is not told", "AUTH-1", _without(_answers(Action.AUTHENTICATE, Reason.OK), "AUTH-1")
    ),
    "wrong_msg_id": Fault(
        "an answer carries another MsgID than its request",
        "FRAME-12",
        _altered(_answers(Action.REGISTER), lambda send: _with_header(send, msg_id=send.frame.msg_id + 1)),
    ),
    "wrong_major": Fault(
        "a refusal travels as OKResp",
        "FRAME-13",
        _altered(
            _answers(Action.AUTHENTICATE, Reason.NOT_ADMITTED), lambda send: _with_header(send, major=Major.OK_RESP)
        ),
    ),
    "wrong_code": Fault(
        "a wrong credential is answered 4002",
        "AUTH-2",
        _altered(
            _answers(Action.AUTHENTICATE, Reason.NOT_ADMITTED),
            lambda send: _with_body(send, reason=Reason.UNREACHABLE),
            "AUTH-2",
        ),
    ),
    "no_announcement": Fault("a binding is not announced", "BIND-5", _without(_is_announcement, "BIND-1")),
    "no_report": Fault(
        "a lost device is not reported",
        "OFF-4",
        _without(lambda send: isinstance(send.frame.body, AssistOffline) and send.link == PARENT, "OFF-4"),
    ),
    "no_fence": Fault("a revoke is not followed by a fence", "REV-13", _without(_is_fence)),
    "revoke_stops": Fault("a revoke is not passed on", "REV-2", _without(_is(Revoke), "TRUST-6")),
    "revoke_to_device": Fault("a device is shown a revoke", "REV-2", _revoke_to_device),
    "late_offline": Fault("a report that is too late is passed on", "OFF-7", _pass_late_offline_on),
    "keeps_link": Fault("the link of a superseded session stays open", "BIND-3", _keep_open),
    "believes_source": Fault(
        "a frame whose sender cannot be where it came from is forwarded", "FRAME-2", _believe_source
    ),
    "wrong_perms": Fault(
        "a node is said to have another role",
        "PERM-1",
        _altered(_answers(Action.GET_PERMS, Reason.OK), lambda send: _with_body(send, node_id=3), "PERM-1"),
    ),
    "invalidation_stops": Fault(
        "an invalidation is not passed down", "PERM-7", _without(_is(PermsInvalidate), "PERM-7")
    ),
    "swallows_revokes": Fault(
        "a hub without a log keeps revokes from those below it",
        "REV-5",
        _swallow_revokes,
        unrecorded=True,
        spans="RevokedStaysOut",
    ),
    "caches_upstream": Fault(
        "a hub begins with the credential of a device that was never there",
        "REG-7",
        kept=_cached,
        spans="CredentialsNeverCachedUpstream",
    ),
    "frame_lost": Fault("a frame between two hubs never arrives", "TRACE-4", loses_frame=True, spans="SentIsReceived"),
    "row_missing": Fault("a row is missing in the log", "TRACE-1", tamper=lambda a, _: (a,)),
    "row_twice": Fault("a row stands twice in the log", "TRACE-1", tamper=lambda a, b: (a, a, b)),
    "rows_swapped": Fault("two rows of the log are swapped", "TRACE-1", tamper=lambda a, b: (b, a)),
    "wrong_checkpoint": Fault("a checkpoint holds another state", "TRACE-3", keep=_damaged),
    "missing_checkpoint": Fault("a checkpoint is not there", "TRACE-3", keep=lambda _: None),
}
"""By name."""
