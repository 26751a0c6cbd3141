"""What the core expects on a link against what came: every difference, and the rule it belongs to.

Header fields and the outer shape of a payload have rules of their own, whatever a case is about: a wrong Major is a
matter of FRAME-13 also in a case about revokes. Which frame goes where, and what it says, is the case's own matter.
"""

import json
from collections.abc import Iterable
from typing import Any

from attrs import evolve, frozen

from hubauth.core.messages import (
    SUB_PROTO,
    Answer,
    Authenticate,
    Body,
    Frame,
    Major,
    Malformed,
    PermsInvalidate,
    Register,
    Request,
    Revoke,
)
from hubauth.oracle.conform.mirror import FREE
from hubauth.oracle.conform.profile import ChoicesTable
from hubauth.oracle.conform.wire import Seen
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.header import Version

NOTHING = "nothing"
_GRANT = ("role", "perms")


@frozen
class Difference:
    """One thing that is not as expected. ``rule`` empty: what the frame says, or that it came at all."""

    what: str
    expected: str
    seen: str
    rule: str = ""
    informational: bool = False
    behind: str = ""
    """The rule that decided what differs, whatever the case is about."""


@frozen
class Pair:
    """An expected frame and the one that came in its place; either may be missing."""

    expected: Frame | None
    seen: Seen | None


def align(codec: Codec, expected: list[Frame], seen: list[Seen]) -> tuple[list[Pair], bool]:
    """Who answers whom: first by what a frame says and its MsgID, then by what it says, then by place.

    The MsgID of a request is the hub's own choice and tells nothing. The flag: whether the frames
    that were found came in the expected order.
    """
    left = list(range(len(seen)))
    found: dict[int, int] = {}
    kinds = [_kind(codec, frame) for frame in expected]
    seen_kinds = [_seen_kind(one) for one in seen]
    for same_id in (True, False):
        for at, frame in enumerate(expected):
            if at in found or (same_id and isinstance(frame.body, Request)):
                continue
            for candidate in left:
                same = seen_kinds[candidate] == kinds[at]
                if same and (not same_id or seen[candidate].frame.msg_id == frame.msg_id):
                    found[at] = candidate
                    left.remove(candidate)
                    break
    places = [found[at] for at in sorted(found)]
    in_order = places == sorted(places)
    for at in range(len(expected)):
        if at not in found and left:
            found[at] = left.pop(0)
    pairs = [Pair(frame, seen[found[at]] if at in found else None) for at, frame in enumerate(expected)]
    return pairs + [Pair(None, seen[at]) for at in left], in_order


def _kind(codec: Codec, frame: Frame) -> object:
    if frame.sub_proto != SUB_PROTO or isinstance(frame.body, bytes):
        return (frame.sub_proto, frame.body)
    said = json.loads(codec.encode(frame.body))
    return _said(said)


def _seen_kind(seen: Seen) -> object:
    if seen.frame.sub_proto != SUB_PROTO:
        return (seen.frame.sub_proto, seen.payload)
    return _said(seen.json)


def _said(payload: Any) -> object:
    """Which message it is, about whom."""
    if not isinstance(payload, dict):
        return None
    data = payload.get("data", payload)
    action = payload.get("action", "answer")
    device_id = data.get("device_id", "") if isinstance(data, dict) else ""
    return (action, "" if str(action).endswith("_resp") or action == "answer" else device_id)


def compare(codec: Codec, expected: Frame, seen: Seen, choices: ChoicesTable) -> list[Difference]:
    """Every difference between the frame the core would send and the one that came."""
    if expected.sub_proto != seen.frame.sub_proto:
        return [Difference("SubProto", str(expected.sub_proto), str(seen.frame.sub_proto))]
    if isinstance(expected.body, bytes):
        differences = list(_header(expected, seen, "FRAME-4", "FRAME-4", "FRAME-4", "FRAME-4"))
        if expected.body != seen.payload:
            differences.append(Difference("payload", expected.body.hex(), seen.payload.hex(), "WIRE-8"))
        if seen.version is Version.V2 and seen.frame.hop_limit != expected.hop_limit:
            hops = str(expected.hop_limit), str(seen.frame.hop_limit)
            differences.append(Difference("HopLimit", *hops, "FRAME-8"))
        return differences
    wanted, got = json.loads(codec.encode(expected.body)), seen.json
    if decides_otherwise(expected.body, wanted, seen):
        # What else is different follows from that; only Major must go with the code that was sent.
        answer = Difference("answer", json.dumps(wanted), shown_payload(seen))
        frame = evolve(expected, major=_major_of(got))
        return [answer, *_header(frame, seen, "FRAME-13", "FRAME-12", "FRAME-12", None)]
    differences = list(_payload(codec, expected, wanted, seen, choices))
    if isinstance(expected.body, Answer):
        if seen.version is Version.V2 and seen.frame.trace_id != expected.trace_id:
            traces = str(expected.trace_id), str(seen.frame.trace_id)
            differences.append(Difference("TraceID", *traces, "FRAME-12"))
        return [*_header(expected, seen, "FRAME-13", "FRAME-12", "FRAME-12", "FRAME-14"), *differences]
    source = "REV-17" if isinstance(expected.body, Revoke) else "FRAME-15"
    target = "PERM-18" if isinstance(expected.body, PermsInvalidate) else "FRAME-15"
    return [*_header(expected, seen, "FRAME-15", "", source, target), *differences]


def decides_otherwise(body: Body, wanted: Any, seen: Seen) -> bool:
    """Whether another decision was made: another code, or quite another message."""
    said, got = seen.frame.body, seen.json
    if not isinstance(got, dict):
        return False
    if not isinstance(body, Answer):
        return wanted.get("action") != got.get("action") and not isinstance(said, Malformed)
    if wanted.get("action") != got.get("action") and not isinstance(said, Malformed):
        return True
    return _code(got) is not None and _code(got) != _code(wanted)


def _code(payload: Any) -> object:
    data = payload.get("data", payload)
    return data.get("code") if isinstance(data, dict) else None


def _major_of(payload: Any) -> Major:
    """What Major must be, going by what the payload says."""
    if _code(payload) is None:
        return Major.CMD
    return Major.OK_RESP if _code(payload) == 1 else Major.ERR_RESP


def _header(
    expected: Frame, seen: Seen, major: str, msg_id: str, source: str, target: str | None
) -> Iterable[Difference]:
    """Differences in the header, each under the rule given for that field; None: not looked at."""
    for name, rule in (("major", major), ("msg_id", msg_id), ("source", source), ("target", target)):
        wanted, got = getattr(expected, name), getattr(seen.frame, name)
        if rule is not None and wanted != got:
            yield Difference(_LABELS[name], _show(wanted), _show(got), rule)
    if seen.reserved:
        yield Difference("Reserved or RouteFlags", "0", "not 0", "WIRE-4")


_LABELS = {"major": "Major", "msg_id": "MsgID", "source": "SourceID", "target": "TargetID"}


def _show(value: object) -> str:
    return value.name if isinstance(value, Major) else str(value)


def _payload(codec: Codec, expected: Frame, wanted: Any, seen: Seen, choices: ChoicesTable) -> Iterable[Difference]:
    """Differences in a payload that says the same in principle."""
    got = seen.json
    shape, content, *code = codec.rules_for(expected.body)
    if not isinstance(got, dict):
        yield Difference("payload", json.dumps(wanted), shown_payload(seen), shape)
        return
    if wanted.get("action") != got.get("action"):
        yield Difference("action", _text(wanted.get("action")), _text(got.get("action")), shape)
    if "data" in wanted:
        wanted, got = wanted["data"], got.get("data")
        if not isinstance(got, dict):
            yield Difference("data", json.dumps(wanted), _text(got), shape)
            return
    is_answer = isinstance(expected.body, Answer)
    yield from _extension(expected.body, wanted, got)
    for name, value in wanted.items():
        if name in ("ext", "seq"):
            continue
        if name == "action" or (isinstance(value, str) and value in FREE):
            continue  # what stayed free could not be bound, and that was told
        if name not in got:
            if value or is_answer:
                yield Difference(name, _text(value), "is missing", content)
        elif got[name] != value and not (value in ("", 0, []) and not got[name]):
            if name == "msg":
                yield Difference(name, _text(value), _text(got[name]), code[0], informational=not choices.texts)
            else:
                rule = "AUTH-26" if name in _GRANT and content == "MSG-10" else ""
                yield Difference(name, _text(value), _text(got[name]), rule)
    known = {"action", "ext", *wanted}
    extra = sorted(name for name, value in got.items() if name not in known and value)
    if extra and is_answer:
        strict = not choices.extra_fields and content in ("MSG-13", "MSG-14")
        yield Difference("fields", "none besides " + ", ".join(wanted), ", ".join(extra), content, not strict)


def _extension(body: Body, wanted: dict[str, Any], got: dict[str, Any]) -> Iterable[Difference]:
    """Differences in what the documents do not have: the number of a revoke, and what hubs say when they meet."""
    if isinstance(body, Revoke) and body.seq != got.get("seq", 0):
        yield Difference("seq", _text(body.seq or None), _text(got.get("seq")), "EXT-10")
    said = {"peer": "", "handled": 0, **got["ext"]} if isinstance(got.get("ext"), dict) else {}
    if isinstance(body, Register | Authenticate | Answer):
        due = wanted.get("ext", {})
        if any(said.get(name) != value for name, value in due.items()) or (said and not due):
            rule = "EXT-2" if not isinstance(body, Answer) else "EXT-7" if "hub" in due else "EXT-3"
            yield Difference("ext", _text(due or None), _text(got.get("ext")), rule)


def _text(value: object) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False)


def shown_payload(seen: Seen) -> str:
    """The payload for people."""
    return seen.payload.decode("utf-8", "backslashreplace")


def describe(codec: Codec, frame: Frame) -> str:
    """An expected frame for people."""
    payload = frame.body.hex() if isinstance(frame.body, bytes) else codec.encode(frame.body).decode()
    return described(frame, payload)


def describe_seen(seen: Seen) -> str:
    """A frame that came, for people."""
    is_auth = seen.frame.sub_proto == SUB_PROTO
    return described(seen.frame, shown_payload(seen) if is_auth else seen.payload.hex())


def described(frame: Frame, payload: str) -> str:
    """Header fields that matter, and the payload."""
    sub = "" if frame.sub_proto == SUB_PROTO else f" SubProto {frame.sub_proto}"
    header = f"{frame.major.name}{sub} MsgID {frame.msg_id} {frame.source}->{frame.target}"
    return f"{payload}  [{header}]"
