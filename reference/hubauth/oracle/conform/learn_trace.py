"""A profile proposed from a trace: what a hub was seen to answer, and how."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    SUB_PROTO,
    Action,
    Answer,
    Body,
    HubFence,
    HubOnline,
    Major,
    Malformed,
    Offline,
    Reason,
)
from hubauth.core.policy import Dialect
from hubauth.forms.events import Event, Kind, TraceError
from hubauth.oracle.conform.learn import Learnt
from hubauth.oracle.conform.profile import FEATURES
from hubauth.trace.storage import events_files, read_events
from hubauth.wire.dialects import CODECS

_FRAMES = (Kind.FRAME_IN, Kind.FRAME_OUT)
_FEATURE_OF = {
    Action.REGISTER: "register",
    Action.AUTHENTICATE: "authenticate",
    Action.OFFLINE: "offline",
    Action.REVOKE: "revoke",
    Action.GET_PERMS: "perms",
    Action.LIST_ROLES: "list_roles",
    Action.PERMS_INVALIDATE: "perms_invalidate",
}


def learn_trace(path: Path) -> Learnt:
    """What the one hub of a trace showed. Raises TraceError, also if nothing can be told from it."""
    rows = [row for file in events_files(path) for row in read_events(file) if row.kind in _FRAMES]
    hubs = sorted({row.hub for row in rows})
    if len(hubs) > 1:
        raise TraceError(f"{path} has {len(hubs)} hubs: {', '.join(hubs)}; a profile is about one")
    frames = [row for row in rows if row.link != PARENT]
    dialect = _dialect(frames)
    if dialect is None:
        raise TraceError(f"{path} has no message of this protocol from a device or child hub")
    ours = [row for row in frames if row.sub_proto == SUB_PROTO]
    said = [(row, CODECS[dialect].decode(row.payload, Major(row.major)).body) for row in ours]
    answers = [(row, body) for row, body in said if row.kind is Kind.FRAME_OUT and isinstance(body, Answer)]
    nodes = Counter(row.source for row, _ in answers)
    found = Learnt(dialect, sorted({row.header for row in frames}), nodes.most_common(1)[0][0] if nodes else 0)
    seen = set(_features(frames, [body for _, body in said], [body for _, body in answers]))
    found.features = [feature for feature in FEATURES if feature in seen]
    if any(isinstance(body, Offline) for row, body in said if row.kind is Kind.FRAME_IN):
        found.choices["answer_offline"] = any(body.action is Action.OFFLINE for _, body in answers)
    refusals = [row.payload for row, body in answers if _is_refusal(body)]
    if refusals:
        found.choices["extra_fields"] = any(_fields(payload) - {"code", "msg"} for payload in refusals)
    found.notes += ["features are those that were seen; the hub may have more"]
    found.notes += ["parent, child_hub, admin and limits are for you to add"]
    return found


def _dialect(frames: Iterable[Event]) -> Dialect | None:
    """The dialect in which most can be read; words that two have in common count for both."""
    counts: Counter[Dialect] = Counter()
    for row in frames:
        if row.sub_proto == SUB_PROTO:
            for dialect, codec in CODECS.items():
                counts[dialect] += not isinstance(codec.decode(row.payload, Major(row.major)).body, Malformed)
    best = counts.most_common(1)
    return best[0][0] if best and best[0][1] else None


def _features(frames: Iterable[Event], said: Iterable[Body], answers: Iterable[Answer]) -> Iterator[str]:
    for answer in answers:
        if answer.action in _FEATURE_OF:
            yield _FEATURE_OF[answer.action]
        elif answer.action is None:
            yield from ("register", "authenticate")
        if answer.ext is not None and answer.ext.hub:
            yield "extension"
    if any(isinstance(body, HubOnline | HubFence) for body in said):
        yield "extension"
    if any(row.kind is Kind.FRAME_OUT and row.sub_proto != SUB_PROTO for row in frames):
        yield "routing"


def _is_refusal(answer: Answer) -> bool:
    return answer.reason is not Reason.OK and answer.action in (None, Action.REGISTER, Action.AUTHENTICATE)


def _fields(payload: bytes) -> set[str]:
    said = json.loads(payload)
    return set(said.get("data", said))
