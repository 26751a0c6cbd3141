"""Policies, inputs, outputs and states as JSON says them: in the vectors and on the oracle's lines.

Fields at their default are left out. A frame is its header fields and its payload: ``payload`` where that is JSON, else
``payload_hex``. What JSON cannot say, or says wrongly, raises ``Unsayable`` with the place.
"""

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from hubauth.core.canonical import decode_state, encode_state
from hubauth.core.inputs import (
    Input,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    Received,
    TimerFired,
)
from hubauth.core.messages import (
    MAX_DEVICE_ID_BYTES,
    MAX_JOURNAL_BYTES,
    MAX_NODE_ID,
    SUB_PROTO,
    Answer,
    Frame,
    Major,
    PermsInvalidate,
    Reason,
    Revoke,
)
from hubauth.core.model import State
from hubauth.core.outputs import CancelTimer, Close, Note, NoteKind, Output, Send, StartTimer, Tell, Unconfirmed
from hubauth.core.policy import Dialect, Policy
from hubauth.forms.policies import PolicyForm, decode_policy, encode_policy
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header, HeaderFields

NodeId: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NODE_ID)]
Uint32: TypeAlias = Annotated[int, Meta(ge=0, le=0xFFFFFFFF)]
Byte: TypeAlias = Annotated[int, Meta(ge=0, le=0xFF)]
LinkNumber: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""0 is the parent."""
TimerNumber: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
DeviceName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_DEVICE_ID_BYTES)]
Credential: TypeAlias = Annotated[str, Meta(max_length=256)]
Journal: TypeAlias = Annotated[str, Meta(max_length=MAX_JOURNAL_BYTES)]
Hex: TypeAlias = Annotated[str, Meta(pattern=r"^([0-9a-f]{2})*$")]


class Unsayable(ValueError):
    """JSON that is no such form, or a value that has none."""


class Form(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One JSON object."""


# Policies


def policy_form(policy: Policy) -> PolicyForm:
    """The form of a policy; ``Unsayable`` if no configuration could say it."""
    try:
        return msgspec.json.decode(encode_policy(policy), type=PolicyForm)
    except msgspec.ValidationError as problem:
        raise Unsayable(str(problem)) from None


def read_policy(form: PolicyForm) -> Policy:
    """The policy. A device or a node that is provisioned twice is ``Unsayable``."""
    policy = decode_policy(msgspec.json.encode(form))
    for name, known in (("device_id", policy.provisioned_by_device), ("node_id", policy.provisioned_by_node)):
        if len(known) < len(policy.provisioned):
            raise Unsayable(f"a {name} is provisioned twice - at `$.policy.provisioned`")
    if policy.node_id in policy.provisioned_by_node:
        raise Unsayable("the hub's own node is provisioned - at `$.policy.provisioned`")
    return policy


# Frames


class HeaderForm(Form, frozen=True, kw_only=True):
    """A header, without its length. ``trace_id`` and ``hop_limit`` travel in version 2 only."""

    major: Annotated[int, Meta(ge=0, le=3)] = int(Major.CMD)
    sub_proto: Annotated[int, Meta(ge=0, le=63)] = SUB_PROTO
    flags: Byte = 0
    msg_id: Uint32 = 0
    source: Uint32 = 0
    target: Uint32 = 0
    trace_id: Uint32 = 0
    hop_limit: Byte = 0
    timestamp: Uint32 = 0


class FrameForm(Form, frozen=True, kw_only=True):
    """A frame on a link, with ``payload`` or ``payload_hex``."""

    link: LinkNumber
    header: HeaderForm = HeaderForm()
    payload: Raw | UnsetType = UNSET
    payload_hex: Hex | UnsetType = UNSET

    @property
    def content(self) -> bytes:
        """The payload's bytes."""
        return payload_bytes(self.payload, self.payload_hex)


def payload_bytes(payload: Raw | UnsetType, payload_hex: str | UnsetType) -> bytes:
    """The bytes of whichever of the two is given."""
    if isinstance(payload_hex, UnsetType) == isinstance(payload, UnsetType):
        raise Unsayable("a frame has payload or payload_hex, one of them")
    return bytes.fromhex(payload_hex) if isinstance(payload_hex, str) else bytes(payload)  # type: ignore[arg-type]


def header_form(frame: HeaderFields) -> HeaderForm:
    return HeaderForm(**{name: int(getattr(frame, name)) for name in HeaderForm.__struct_fields__})


def payload_values(payload: bytes) -> dict[str, Any]:
    """The payload as JSON where it is a compact JSON object, else as hexadecimal digits."""
    try:
        plain = msgspec.json.decode(payload)
        if isinstance(plain, dict) and msgspec.json.encode(plain) == payload:
            return {"payload": Raw(payload)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return {"payload_hex": payload.hex()}


def raw_frame(form: HeaderForm, payload: bytes) -> RawFrame:
    """The frame before anybody has looked into it."""
    values = msgspec.structs.asdict(form) | {"major": Major(form.major)}
    return RawFrame(Header((), 0, len(payload), **values), payload, ())


def read_sent(form: FrameForm, dialect: Dialect) -> Frame:
    """The frame that a form describes, its payload read by the dialect's codec, whatever that is."""
    return read_frame(CODECS[dialect], raw_frame(form.header, form.content)).frame


# Inputs


class LinkUpForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="link_up"):
    """``hubs``: as which plain hubs the other end may name itself, by where it comes from, which is ``peer``."""

    link: LinkNumber
    hubs: tuple[NodeId, ...] = ()
    peer: str = ""


class LinkDownForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="link_down"):
    link: LinkNumber


class ReceivedForm(FrameForm, frozen=True, kw_only=True, tag_field="kind", tag="frame"):
    """``fresh`` is the credential to issue if this frame makes the hub issue one."""

    fresh: Credential = ""


class TimerForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="timer"):
    """A timer, by its number; where ``link`` is given (to the oracle and to adapters only), by what it is for.

    That is the revoke that the device on the link sent with the MsgID ``timer`` or, without ``timer``, what is still
    to be sent on the link.
    """

    timer: TimerNumber = 0
    link: LinkNumber | UnsetType = UNSET


class RevokeForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="revoke"):
    """The operator's revoke."""

    device_id: DeviceName
    node_id: NodeId = 0
    credential: Credential = ""
    target: NodeId = 0


class InvalidateForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="invalidate"):
    """The operator's perms_invalidate."""

    node_ids: tuple[NodeId, ...] = ()
    reason: str = ""
    refresh: bool = False


class PolicyChangedForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="policy"):
    policy: PolicyForm


InputForm: TypeAlias = (
    LinkUpForm | LinkDownForm | ReceivedForm | TimerForm | RevokeForm | InvalidateForm | PolicyChangedForm
)


def input_form(happened: Input, payload: bytes = b"") -> InputForm:
    """The form of an input; a frame's payload is given as the bytes that say it."""
    match happened:
        case LinkUp(link, hubs, peer):
            return LinkUpForm(link=link, hubs=hubs, peer=peer)
        case LinkDown(link):
            return LinkDownForm(link=link)
        case TimerFired(timer):
            return TimerForm(timer=timer)
        case OperatorRevoke(revoke, target):
            return RevokeForm(
                device_id=revoke.device_id, node_id=revoke.node_id, credential=revoke.credential, target=target
            )
        case OperatorInvalidate(message):
            return InvalidateForm(node_ids=message.node_ids, reason=message.reason, refresh=message.refresh)
        case PolicyChanged(policy):
            return PolicyChangedForm(policy=policy_form(policy))
        case Received(link, frame, fresh):
            return ReceivedForm(link=link, header=header_form(frame), **payload_values(payload), fresh=fresh)


def read_input(form: InputForm, dialect: Dialect) -> Input:
    """The input that a form describes."""
    match form:
        case LinkUpForm():
            return LinkUp(form.link, form.hubs, form.peer)
        case LinkDownForm():
            return LinkDown(form.link)
        case TimerForm():
            if not isinstance(form.link, UnsetType):
                raise Unsayable("a timer that is called by its link is known to the oracle only")
            return TimerFired(form.timer)
        case RevokeForm():
            return OperatorRevoke(Revoke(form.device_id, form.node_id, form.credential), form.target)
        case InvalidateForm():
            return OperatorInvalidate(PermsInvalidate(form.node_ids, form.reason, form.refresh))
        case PolicyChangedForm():
            return PolicyChanged(read_policy(form.policy))
        case ReceivedForm():
            return Received(form.link, read_sent(form, dialect), form.fresh)


# Outputs


class SendForm(FrameForm, frozen=True, kw_only=True, tag_field="kind", tag="send"):
    """``reason`` is the neutral one behind the code of a refusal."""

    reason: Reason = Reason.OK


class CloseForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="close"):
    link: LinkNumber


class StartTimerForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="start_timer"):
    timer: TimerNumber
    seconds: Annotated[float, Meta(ge=0)]


class CancelTimerForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="cancel_timer"):
    timer: TimerNumber


class NoteForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="note"):
    """What the audit log is told; its wording is nobody's business."""

    note: NoteKind
    rule: str
    link: LinkNumber | None = None


class TellForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="tell"):
    """What the hub's own operator is told that ``hub`` has answered to a revoke."""

    hub: NodeId
    device_id: str
    node_id: NodeId = 0
    reason: Reason = Reason.OK


class UnconfirmedForm(Form, frozen=True, kw_only=True, tag_field="kind", tag="unconfirmed"):
    """A plain hub has not confirmed a revoke of the hub's own operator: it was ``sent`` once, or never will be."""

    hub: NodeId
    device_id: str
    node_id: NodeId = 0
    sent: bool = False


OutputForm: TypeAlias = SendForm | CloseForm | StartTimerForm | CancelTimerForm | NoteForm | TellForm | UnconfirmedForm


def output_form(output: Output, dialect: Dialect) -> OutputForm:
    """The form of an output; raises ``NotInDialect`` for a message that the dialect has no words for."""
    match output:
        case Send(link, frame):
            body = frame.body
            payload = body if isinstance(body, bytes) else CODECS[dialect].encode(body)
            reason = body.reason if isinstance(body, Answer) else Reason.OK
            return SendForm(link=link, header=header_form(frame), **payload_values(payload), reason=reason)
        case Close(link):
            return CloseForm(link=link)
        case StartTimer(timer, seconds):
            return StartTimerForm(timer=timer, seconds=seconds)
        case CancelTimer(timer):
            return CancelTimerForm(timer=timer)
        case Note(kind, rule, _, link):
            return NoteForm(note=kind, rule=rule, link=link)
        case Tell(hub, device_id, node_id, reason):
            return TellForm(hub=hub, device_id=device_id, node_id=node_id, reason=reason)
        case Unconfirmed(hub, device_id, node_id, sent):
            return UnconfirmedForm(hub=hub, device_id=device_id, node_id=node_id, sent=sent)


# States


def state_form(state: State) -> list[Raw]:
    """The entries of a state, ``[table, key, value]`` each, in canonical order."""
    return [Raw(line) for line in encode_state(state).split(b"\n")]


def read_state(policy: Policy, entries: list[Raw]) -> State:
    """The state of these entries; what is no state is ``Unsayable``."""
    try:
        lines = [msgspec.json.encode(msgspec.json.decode(entry)) for entry in entries]
        return decode_state(policy, b"\n".join(lines))
    except (ValueError, RecursionError) as problem:
        raise Unsayable(f"{problem} - at `$.state`") from None
