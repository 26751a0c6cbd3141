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
from hubauth.wire.dialects import CODECS, LOGIN_AND_PERMS
from hubauth.wire.dialects.codec import Codec

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
    speech = _speech(frames)
    if speech is None:
        raise TraceError(f"{path} has no message of this protocol from a device or child hub")
    ours = [row for row in frames if row.sub_proto == SUB_PROTO]
    dialect, codec = speech
    said = [(row, codec.decode(row.payload, Major(row.major)).body) for row in ours]
    answers = [(row, body) for row, body in said if row.kind is Kind.FRAME_OUT and isinstance(body, Answer)]
    nodes = Counter(row.source for row, _ in answers)
    found = Learnt(dialect, sorted({row.header for row in frames}), nodes.most_common(1)[0][0] if nodes else 0)
    seen = set(_features(frames, [body for _, body in said], [body for _, body in answers]))
    found.features = [feature for feature in FEATURES if feature in seen]
    if any(isinstance(body, Offline) for row, body in said if row.kind is Kind.FRAME_IN):
        found.choices["answer_offline"] = any(body.action is Action.OFFLINE for _, body in answers)
    found.habits = dict(_habits(frames, answers, found.node_id))
    refusals = [row.payload for row, body in answers if _is_refusal(body)]
    if refusals:
        found.choices["extra_fields"] = any(_fields(payload) - {"code", "msg"} for payload in refusals)
    found.notes += ["features are those that were seen; the hub may have more"]
    found.notes += ["parent, child_hub, admin and limits are for you to add"]
    return found


def _speech(frames: Iterable[Event]) -> tuple[Dialect, Codec] | None:
    """How most can be read; words that two dialects have in common count for both."""
    ways = [*CODECS.items(), (Dialect.LOGIN, LOGIN_AND_PERMS)]
    counts = [0 for _ in ways]
    for row in frames:
        if row.sub_proto == SUB_PROTO:
            for at, (_, codec) in enumerate(ways):
                counts[at] += not isinstance(codec.decode(row.payload, Major(row.major)).body, Malformed)
    best = max(counts)
    return ways[counts.index(best)] if best else None


def _habits(
    frames: Iterable[Event], answers: Iterable[tuple[Event, Answer]], node_id: int
) -> Iterator[tuple[str, bool | list[int]]]:
    """What the hub does otherwise than the rules say, and cannot have done by chance."""
    answers = list(answers)
    refused = [row for row, body in answers if body.reason is not Reason.OK]
    if refused and all(row.major == Major.OK_RESP for row in refused):
        yield "refusals_as_ok", True
    if len(answers) > 1 and not any(row.msg_id for row, _ in answers):
        yield "answers_without_msg_id", True
    own = {row.sub_proto for row in frames if row.kind is Kind.FRAME_OUT and node_id and row.source == node_id}
    if own - {SUB_PROTO}:
        yield "serves", sorted(own - {SUB_PROTO})


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
