"""What a faulty hub, or a faulty recording, may do wrong; and which rule must be found for it."""

from collections.abc import Callable

import msgspec
from attrs import evolve

from hubauth.core.inputs import PARENT, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Frame,
    HubFence,
    HubOnline,
    Major,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, State
from hubauth.core.outputs import Close, Send
from hubauth.forms.events import Checkpoint
from hubauth.trace.planting import INNER_HUB, Bend, Fault, Moment, Outputs, sent_by
from hubauth.trace.world import Node

NEVER_THERE = "never-there"
"""A device that no hub has ever seen."""


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
    assert isinstance(body, Answer | Revoke)
    return (Send(send.link, evolve(send.frame, body=evolve(body, **changes))),)  # type: ignore[arg-type]


def _with_header(send: Send, **changes: object) -> Outputs:
    return (Send(send.link, evolve(send.frame, **changes)),)  # type: ignore[arg-type]


def _as_success(send: Send) -> Outputs:
    assert isinstance(send.frame.body, Answer)
    return _with_header(send, body=evolve(send.frame.body, reason=Reason.OK), major=Major.OK_RESP)


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
    if not any(isinstance(body, AssistRegister) for body in sent_by(done.outputs)):
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
    if "AUTH-9" not in done.rules or not any(isinstance(sent, AssistAuthenticate) for sent in sent_by(done.outputs)):
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


def _leave_unreported(moment: Moment) -> Outputs | None:
    done = moment.done
    if "OFF-4" not in done.rules or "OFF-8" in done.rules:
        return None
    return _change(done.outputs, lambda send: isinstance(send.frame.body, AssistOffline), lambda _: ())


def _revoke_to_device(moment: Moment) -> Outputs | None:
    done = moment.done
    sent = [output for output in done.outputs if isinstance(output, Send) and isinstance(output.frame.body, Revoke)]
    devices = [link for link, session in done.state.links.items() if session is not None and not session.is_hub]
    if "REV-2" not in done.rules or not sent or not devices:
        return None
    return (*done.outputs, Send(min(devices), sent[0].frame))


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


def _is_numbered_later(send: Send) -> bool:
    return isinstance(send.frame.body, Revoke) and send.frame.body.seq > 1


def _takes_up_extension(send: Send) -> bool:
    body = send.frame.body
    return isinstance(body, Answer) and body.ext is not None and body.ext.hub


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
    "no_announcement": Fault("a binding is not announced", "EXT-8", _without(_is(HubOnline), "BIND-1")),
    "no_report": Fault("a lost device is not reported", "OFF-5", _leave_unreported),
    "no_fence": Fault("a revoke is not followed by a fence", "EXT-11", _without(_is(HubFence))),
    "number_again": Fault(
        "a revoke is given a number that another one had",
        "EXT-10",
        _altered(_is_numbered_later, lambda send: _with_body(send, seq=1), "EXT-10"),
    ),
    "no_extension": Fault(
        "a hub that joins is not told that its parent speaks the extension",
        "EXT-3",
        _altered(_takes_up_extension, lambda send: _with_body(send, ext=None)),
    ),
    "revoke_stops": Fault("a revoke is not passed on", "REV-2", _without(_is(Revoke), "TRUST-6")),
    "revoke_to_device": Fault("a device is shown a revoke", "REV-2", _revoke_to_device),
    "late_offline": Fault(
        "a report that is too late is believed",
        "OFF-7",
        _altered(_answers(Action.ASSIST_OFFLINE, Reason.NOT_INDEXED), _as_success, "OFF-7"),
    ),
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
