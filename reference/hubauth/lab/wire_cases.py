"""The cases below the protocol, by hand: ``test_wire_cases`` asserts them, ``tools/vectors.py`` writes them down."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from hubauth.core.messages import Action, Reason
from hubauth.core.policy import Dialect
from hubauth.forms.policies import PolicyForm
from hubauth.oracle.forms import HeaderForm
from hubauth.oracle.vectors_wire import CutFrame, FrameCase, KeysCase, Reading, StreamCase, WireCase

AUTH, LOGIN, FLAT = Dialect.AUTH, Dialect.LOGIN, Dialect.FLAT
NESTED = (AUTH, LOGIN)
DEVICE, TOKEN = "mac-001122334455", "A" * 43
OK, ERR, MSG, CMD = 0, 1, 2, 3
COMPRESSED = 2


# Streams

REGISTER = b'{"action":"register","data":{"device_id":"mac-001122334455"}}'
LENGTH = f"{len(REGISTER):08x}"
V1 = f"0b00 00000007 00000000 00000000 00000000 {LENGTH} 0000 {REGISTER.hex()}"
V2 = f"4d48 0220 0b00 1000 00000007 00000000 00000000 00000009 00000000 {LENGTH} {REGISTER.hex()}"
CUT_V1 = CutFrame(header=HeaderForm(msg_id=7), payload=Raw(REGISTER))
CUT_V2 = CutFrame(header=HeaderForm(msg_id=7, trace_id=9, hop_limit=16), payload=Raw(REGISTER))
EVERY_V1 = "1d01 01020304 05060708 090a0b0c 0d0e0f10 00000002 0000 ff00"
CUT_EVERY = CutFrame(
    header=HeaderForm(
        major=1,
        sub_proto=7,
        flags=1,
        msg_id=0x01020304,
        source=0x05060708,
        target=0x090A0B0C,
        timestamp=0x0D0E0F10,
    ),
    payload_hex="ff00",
)
EVERY_V2 = "4d48 0220 1d01 0300 01020304 05060708 090a0b0c 11121314 0d0e0f10 00000002 ff00"
CUT_EVERY_V2 = msgspec.structs.replace(
    CUT_EVERY, header=msgspec.structs.replace(CUT_EVERY.header, trace_id=0x11121314, hop_limit=3)
)


def _stream(case_id: str, data: str, *frames: CutFrame, rules: str, **more: Any) -> StreamCase:
    return StreamCase(
        id=f"wire/streams/{case_id}",
        hex=data.replace(" ", ""),
        frames=frames,
        rules=tuple(rules.split()),
        **more,
    )


STREAMS = (
    _stream("version_1", V1, CUT_V1, version=1, written=True, rules="WIRE-1"),
    _stream("version_2", V2, CUT_V2, version=2, written=True, rules="WIRE-2"),
    _stream("version_1_every_field", EVERY_V1, CUT_EVERY, version=1, written=True, rules="WIRE-1"),
    _stream("version_2_every_field", EVERY_V2, CUT_EVERY_V2, version=2, written=True, rules="WIRE-2"),
    _stream("two_frames", V1 + EVERY_V1, CUT_V1, CUT_EVERY, version=1, written=True, rules="WIRE-1"),
    _stream("nothing", "", rules="", version=1),
    _stream("half_a_frame", V1[:-2], version=1, held=23 + len(REGISTER), rules=""),
    _stream("a_frame_and_a_half", V2 + "4d480220", CUT_V2, version=2, held=4, rules="WIRE-2"),
    _stream(
        "longer_header",
        V2.replace("0220", "0222").replace(LENGTH, LENGTH + "abcd"),
        CUT_V2,
        rules="WIRE-2 WIRE-3 WIRE-7",
    ),
    _stream("reserved_1", V1.replace(f"{LENGTH} 0000", f"{LENGTH} beef"), CUT_V1, version=1, rules="WIRE-1 WIRE-4"),
    _stream("reserved_2", V2.replace("0b00 1000", "0b00 10ff"), CUT_V2, version=2, rules="WIRE-2 WIRE-4"),
    _stream("wrong_magic", V2.replace("4d48", "4d49"), version=2, refused="WIRE-5", rules="WIRE-5"),
    _stream("wrong_version", V2.replace("0220", "0320"), version=2, refused="WIRE-5", rules="WIRE-5"),
    _stream("header_too_short", V2.replace("0220", "021f"), version=2, refused="WIRE-5", rules="WIRE-5"),
    _stream("wrong_by_its_first_four_bytes", "4d480120", version=2, refused="WIRE-5", rules="WIRE-5"),
    _stream("nothing_after_a_wrong_frame", V2 + V1 + V2, CUT_V2, version=2, refused="WIRE-5", rules="WIRE-2 WIRE-5"),
    _stream("at_the_limit", V1, CUT_V1, version=1, limit=len(REGISTER), written=True, rules="WIRE-1"),
    _stream("over_the_limit", V1, version=1, limit=len(REGISTER) - 1, refused="WIRE-6", rules="WIRE-6"),
    _stream(
        "over_the_limit_by_its_header", V1[: -2 * len(REGISTER)], version=1, limit=9, refused="WIRE-6", rules="WIRE-6"
    ),
    _stream("opaque_limit", V1 + EVERY_V1, CUT_V1, version=1, opaque_limit=1, refused="WIRE-6", rules="WIRE-1 WIRE-6"),
    _stream("largest_length", V2.replace(LENGTH, "ffffffff"), version=2, refused="WIRE-6", rules="WIRE-6"),
    _stream("shown_1", V1 + V1, CUT_V1, CUT_V1, written=True, rules="WIRE-1 WIRE-7"),
    _stream("shown_2", V2 + V2, CUT_V2, CUT_V2, written=True, rules="WIRE-2 WIRE-7"),
    _stream("shown_2_holds_for_the_connection", V2 + V1, CUT_V2, refused="WIRE-5", rules="WIRE-2 WIRE-7 WIRE-5"),
)


# Frames


def _word(word: str, dialect: Dialect) -> str:
    return word if dialect is AUTH else word.replace("auth", "login")


def _encode(content: Any) -> dict[str, Any]:
    if isinstance(content, bytes):
        return {"payload_hex": content.hex()}
    return {"payload": Raw(msgspec.json.encode(content))}


def _frame(case_id: str, dialect: Dialect, content: Any, reads: Reading, rules: str, **more: Any) -> FrameCase:
    header = HeaderForm(**more.pop("header", {}))
    name = f"wire/{dialect.value}/{case_id}"
    return FrameCase(
        id=name, dialect=dialect, header=header, **_encode(content), reads=reads, rules=tuple(rules.split()), **more
    )


def _nested(word: str, data: Any, dialect: Dialect) -> dict[str, Any]:
    return {"action": _word(word, dialect), "data": data}


WHO = {"device_id": DEVICE}
WHOM = {"device_id": DEVICE, "node_id": 5}
KNOWN = {"device_id": DEVICE, "credential": TOKEN}
EVERYWHERE = (
    ("register", Action.REGISTER, WHO, "MSG-4"),
    ("auth", Action.AUTHENTICATE, KNOWN, "MSG-5"),
    ("assist_register", Action.ASSIST_REGISTER, WHO, "MSG-4"),
    ("assist_auth", Action.ASSIST_AUTHENTICATE, KNOWN, "MSG-5"),
    ("assist_query_credential", Action.ASSIST_QUERY_CREDENTIAL, WHOM, "MSG-7"),
    ("revoke", Action.REVOKE, {**WHOM, "credential": TOKEN}, "MSG-7"),
    ("offline", Action.OFFLINE, {**WHOM, "reason": "bye"}, "MSG-7"),
    ("assist_offline", Action.ASSIST_OFFLINE, WHOM, "MSG-7"),
    ("hub_online", Action.HUB_ONLINE, WHOM, "EXT-15"),
    ("hub_dismiss", Action.HUB_DISMISS, WHOM, "EXT-15"),
)
ABOUT_PERMS = (
    ("get_perms", Action.GET_PERMS, {"node_id": 5}, "MSG-8"),
    ("list_roles", Action.LIST_ROLES, {"offset": 1, "limit": 2, "role": "node", "node_ids": [5, 6]}, "MSG-8"),
    ("perms_invalidate", Action.PERMS_INVALIDATE, {"node_ids": [5], "reason": "new", "refresh": True}, "MSG-9"),
)


REQUEST = Reading.REQUEST


def _requests() -> Iterator[FrameCase]:
    for dialect in NESTED:
        for word, action, data, rule in (*EVERYWHERE, *(ABOUT_PERMS if dialect is AUTH else ())):
            content = _nested(word, data, dialect)
            more: dict[str, Any] = {"action": action, "fields": data, "written": True}
            yield _frame(f"request_{word}", dialect, content, Reading.REQUEST, f"MSG-1 {rule}", **more)
        yield from _requests_of_extension(dialect)
        extra = {"action": "register", "data": {**WHO, "colour": "red"}, "more": 1}
        about = {"action": Action.REGISTER, "fields": WHO}
        yield _frame("unknown_fields_are_ignored", dialect, extra, Reading.REQUEST, "MSG-1 MSG-4", **about)
        twice = b'{"action":"register","data":{"device_id":"first","device_id":"mac-001122334455"}}'
        yield _frame("the_last_of_a_repeated_field", dialect, twice, Reading.REQUEST, "MSG-1 MSG-4", **about)
        whole = {**about, "written": True, "header": {"major": MSG}}
        yield _frame("as_a_msg", dialect, _nested("register", WHO, dialect), Reading.REQUEST, "MSG-1 MSG-4", **whole)
        no_credential = {"action": Action.AUTHENTICATE, "fields": WHO, "written": True}
        content = _nested("auth", WHO, dialect)
        yield _frame("absent_credential", dialect, content, Reading.REQUEST, "MSG-1 MSG-5", **no_credential)
    listing: dict[str, Any] = {"action": Action.LIST_ROLES, "written": True}
    yield _frame(
        "list_roles_defaults", AUTH, _nested("list_roles", {}, AUTH), Reading.REQUEST, "MSG-1 MSG-8", **listing
    )
    null = _nested("perms_invalidate", {"node_ids": None}, AUTH)
    yield _frame("a_null_list", AUTH, null, Reading.REQUEST, "MSG-1 MSG-9", action=Action.PERMS_INVALIDATE)
    for word, action, _, _ in EVERYWHERE[:4]:
        content = {"action": _word(word, FLAT), **WHO}
        flat: dict[str, Any] = {"action": action, "fields": WHO, "written": True}
        yield _frame(f"request_{word}", FLAT, content, Reading.REQUEST, "MSG-2 MSG-4", **flat)
    extra_flat = {"action": "login", **KNOWN}
    about_flat = {"action": Action.AUTHENTICATE, "fields": WHO}
    yield _frame("unknown_fields_are_ignored", FLAT, extra_flat, Reading.REQUEST, "MSG-2 MSG-4", **about_flat)


MET = {"v": 1, "journal": "a journal", "peer": "another", "handled": 3}
NO_EXT: tuple[tuple[str, Any], ...] = (
    ("no_object", "yes"),
    ("null", None),
    ("another_version", {**MET, "v": 2}),
    ("no_version", {"journal": "a journal"}),
    ("no_journal", {"v": 1, "peer": "another"}),
    ("empty_journal", {**MET, "journal": ""}),
    ("journal_of_65_bytes", {**MET, "journal": "é" * 32 + "x"}),
    ("peer_of_65_bytes", {**MET, "peer": "x" * 65}),
    ("negative_handled", {**MET, "handled": -1}),
    ("handled_too_high", {**MET, "handled": 2**31}),
    ("refusal_in_a_request", {"hub": False}),
)
"""What stands for ``ext`` and is none."""


def _requests_of_extension(dialect: Dialect) -> Iterator[FrameCase]:
    fence: dict[str, Any] = {"action": Action.HUB_FENCE, "written": True}
    yield _frame("request_hub_fence", dialect, _nested("hub_fence", {}, dialect), REQUEST, "MSG-1 EXT-15", **fence)
    numbered = {**WHO, "seq": 7}
    revoke: dict[str, Any] = {"action": Action.REVOKE, "fields": numbered, "written": True}
    yield _frame("a_numbered_revoke", dialect, _nested("revoke", numbered, dialect), REQUEST, "MSG-1 MSG-7", **revoke)
    for word, action, data, rule in EVERYWHERE[:2]:
        met: dict[str, Any] = {**data, "ext": MET}
        about: dict[str, Any] = {"action": action, "fields": met, "written": True}
        content = _nested(word, met, dialect)
        yield _frame(f"{word}_with_ext", dialect, content, REQUEST, f"MSG-1 {rule}", **about)
    short = {**WHO, "ext": {"v": 1, "journal": "a journal"}}
    first = {**WHO, "ext": {"v": 1, "journal": "a journal", "peer": "", "handled": 0}}
    read: dict[str, Any] = {"action": Action.REGISTER, "fields": first}
    yield _frame("ext_of_the_first_time", dialect, _nested("register", short, dialect), REQUEST, "MSG-1 MSG-4", **read)
    for name, ext in NO_EXT:
        content, about = _nested("register", {**WHO, "ext": ext}, dialect), {"action": Action.REGISTER, "fields": WHO}
        yield _frame(f"ext_{name}", dialect, content, REQUEST, "MSG-1 MSG-4", **about)


GRANTED = {"role": "node", "perms": ["p.read"]}


def _successes() -> Iterator[FrameCase]:
    for dialect in NESTED:
        grant = GRANTED if dialect is AUTH else {}
        successes: list[tuple[str, Action, dict[str, Any], str]] = [
            (word, action, {**WHOM, "credential": TOKEN, **grant}, "MSG-10") for word, action, _, _ in EVERYWHERE[:4]
        ]
        query = {**WHOM, "credential": TOKEN}
        successes.append(("assist_query_credential", Action.ASSIST_QUERY_CREDENTIAL, query, "MSG-11"))
        successes += [(word, action, WHOM, "MSG-11") for word, action, _, _ in EVERYWHERE[5:8]]
        if dialect is AUTH:
            successes.append(("get_perms", Action.GET_PERMS, {"node_id": 5, **GRANTED}, "MSG-12"))
            rows = {"total": 1, "roles": [{"node_id": 5, **GRANTED}]}
            successes.append(("list_roles", Action.LIST_ROLES, rows, "MSG-12"))
        successes.append(("hub_dismiss", Action.HUB_DISMISS, WHOM, "EXT-15"))
        successes.append(("hub_fence", Action.HUB_FENCE, {}, "EXT-15"))
        for word, action, data, rule in successes:
            content = _nested(f"{word}_resp", {"code": 1, "msg": "ok", **data}, dialect)
            more = {"action": action, "reason": Reason.OK, "fields": data, "written": True, "header": {"major": OK}}
            yield _frame(f"success_{word}", dialect, content, Reading.ANSWER, f"MSG-1 {rule} CODE-1", **more)
        for name, ext in (("a_hub", MET), ("no_hub", {"hub": False})):
            data = {**WHOM, "credential": TOKEN, **grant, "ext": ext}
            content = _nested("register_resp", {"code": 1, "msg": "ok", **data}, dialect)
            more = {"action": Action.REGISTER, "reason": Reason.OK, "fields": data, "written": True}
            more["header"] = {"major": OK}
            yield _frame(f"success_of_{name}", dialect, content, Reading.ANSWER, "MSG-1 MSG-10 CODE-1", **more)
    content = {"code": 1, "msg": "ok", **WHOM}
    flat: dict[str, Any] = {"reason": Reason.OK, "fields": WHOM, "written": True, "header": {"major": OK}}
    yield _frame("success", FLAT, content, Reading.ANSWER, "MSG-3 MSG-3 CODE-1", **flat)


REFUSALS: tuple[tuple[str, Action, int, str, Reason, str], ...] = (
    ("auth", Action.AUTHENTICATE, 4001, "invalid credential", Reason.NOT_ADMITTED, "MSG-13 CODE-2"),
    ("register", Action.REGISTER, 4002, "upstream unavailable", Reason.UNREACHABLE, "MSG-13 CODE-5"),
    ("register", Action.REGISTER, 4500, "internal error", Reason.INTERNAL, "MSG-13 CODE-6"),
    ("register", Action.REGISTER, 400, "invalid request", Reason.INVALID_REQUEST, "MSG-13 CODE-10"),
    ("revoke", Action.REVOKE, 4401, "not found", Reason.NOT_WHITELISTED, "MSG-14 CODE-7"),
    ("revoke", Action.REVOKE, 4402, "credential mismatch", Reason.CREDENTIAL_MISMATCH, "MSG-14 CODE-7"),
    ("revoke", Action.REVOKE, 403, "permission denied", Reason.FORBIDDEN, "MSG-14 CODE-9"),
    ("offline", Action.OFFLINE, 4700, "internal error", Reason.OFFLINE_INTERNAL, "MSG-14 CODE-8"),
    ("assist_offline", Action.ASSIST_OFFLINE, 4701, "not online", Reason.NOT_INDEXED, "MSG-14 CODE-8"),
    ("hub_dismiss", Action.HUB_DISMISS, 4701, "not online", Reason.NOT_INDEXED, "MSG-14 CODE-8"),
)


def _failures() -> Iterator[FrameCase]:
    header = {"major": ERR}
    for dialect in NESTED:
        for word, action, code, msg, reason, rules in REFUSALS:
            about = WHOM if "MSG-14" in rules else {}
            content = _nested(f"{word}_resp", {"code": code, "msg": msg, **about}, dialect)
            more = {"action": action, "reason": reason, "fields": about, "written": True, "header": header}
            yield _frame(f"failure_{word}_{code}", dialect, content, Reading.ANSWER, f"MSG-1 {rules}", **more)
        # Read alike, though no hub that keeps the rules writes it so.
        content = _nested("register_resp", {"code": 4001, "msg": "already registered"}, dialect)
        more = {"action": Action.REGISTER, "reason": Reason.NOT_ADMITTED, "header": header}
        yield _frame("msg_decides_nothing", dialect, content, Reading.ANSWER, "MSG-1 MSG-13 CODE-2", **more)
        content = _nested("register_resp", {"code": 77}, dialect)
        more["reason"] = Reason.INTERNAL
        yield _frame("a_code_of_nobody", dialect, content, Reading.ANSWER, "MSG-1 MSG-13 CODE-11", **more)
    data = {"code": 4404, "msg": "unknown node", "node_id": 5, "role": "", "perms": []}
    unknown = {"action": Action.GET_PERMS, "reason": Reason.UNKNOWN_NODE, "fields": {"node_id": 5}, "written": True}
    content = _nested("get_perms_resp", data, AUTH)
    yield _frame(
        "failure_get_perms_4404", AUTH, content, Reading.ANSWER, "MSG-1 MSG-12 CODE-9", header=header, **unknown
    )
    for code, msg, reason, rule in (
        (4001, "unregistered device", Reason.NOT_ADMITTED, "CODE-3"),
        (4002, "upstream unavailable", Reason.UNREACHABLE, "CODE-5"),
        (4500, "internal error", Reason.INTERNAL, "CODE-6"),
        (403, "permission denied", Reason.FORBIDDEN, "CODE-9"),
        (400, "invalid request", Reason.INVALID_REQUEST, "CODE-10"),
    ):
        flat: dict[str, Any] = {"reason": reason, "written": True, "header": header}
        content = {"code": code, "msg": msg}
        yield _frame(f"failure_{code}", FLAT, content, Reading.ANSWER, f"MSG-3 MSG-14 {rule}", **flat)
    foreign: dict[str, Any] = {"reason": Reason.INTERNAL, "header": header}
    yield _frame("a_code_of_nobody", FLAT, {"code": 77}, Reading.ANSWER, "MSG-3 MSG-14 CODE-11", **foreign)


UNREADABLE: tuple[tuple[str, bytes], ...] = (
    ("not_utf_8", b'{"action":"register\xff"}'),
    ("not_json", b"{"),
    ("nothing", b""),
    ("no_object", b"[1]"),
    ("no_action", b"{}"),
    ("action_no_string", b'{"action":7,"data":{}}'),
    ("half_a_surrogate_pair", rb'{"action":"register","data":{"device_id":"\ud800"}}'),
    ("too_deep", b'{"action":"register","data":' + b"[" * 33 + b"]" * 33 + b"}"),
)
BAD_FIELDS: tuple[tuple[str, str, Any, str], ...] = (
    ("no_device_id", "register", {}, "MSG-4"),
    ("empty_device_id", "register", {"device_id": ""}, "MSG-4"),
    ("device_id_no_string", "register", {"device_id": 7}, "MSG-4"),
    ("device_id_null", "register", {"device_id": None}, "MSG-4"),
    ("device_id_of_129_bytes", "register", {"device_id": "é" * 64 + "x"}, "MSG-4"),
    ("credential_too_long", "auth", {"device_id": DEVICE, "credential": "x" * 257}, "MSG-5"),
    ("credential_null", "assist_auth", {"device_id": DEVICE, "credential": None}, "MSG-5"),
    ("node_id_too_large", "revoke", {"device_id": DEVICE, "node_id": 2**32}, "MSG-7"),
    ("node_id_negative", "assist_query_credential", {"device_id": DEVICE, "node_id": -1}, "MSG-7"),
    ("reason_too_long", "offline", {**WHOM, "reason": "x" * 1025}, "MSG-7"),
    ("no_node_to_announce", "hub_online", WHO, "EXT-15"),
)
BAD_PERMS: tuple[tuple[str, str, Any, str], ...] = (
    ("no_node_id", "get_perms", {}, "MSG-8"),
    ("negative_offset", "list_roles", {"offset": -1}, "MSG-8"),
    ("limit_no_integer", "list_roles", {"limit": 1.5}, "MSG-8"),
    ("refresh_no_boolean", "perms_invalidate", {"refresh": 1}, "MSG-9"),
)
BAD_ANSWERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("no_code", "register_resp", {"msg": "ok"}),
    ("code_no_integer", "revoke_resp", {"code": "1"}),
    ("registered_without_node_id", "register_resp", {"code": 1, **KNOWN}),
    ("registered_without_credential", "register_resp", {"code": 1, **WHOM}),
    ("admitted_without_node_id", "auth_resp", {"code": 1, **KNOWN}),
    ("queried_without_credential", "assist_query_credential_resp", {"code": 1, **WHOM}),
)


def _malformed() -> Iterator[FrameCase]:
    bad = Reading.MALFORMED
    for dialect in Dialect:
        for name, payload in UNREADABLE:
            if dialect is FLAT and name == "half_a_surrogate_pair":
                payload = rb'{"action":"register","device_id":"\ud800"}'
            yield _frame(f"unreadable_{name}", dialect, payload, bad, "MSG-15")
        yield _frame("unknown_action", dialect, _nested("dance", WHO, AUTH), bad, "MSG-16")
        compressed = {"header": {"flags": COMPRESSED}}
        yield _frame("compressed", dialect, _nested("register", WHO, AUTH), bad, "WIRE-9", **compressed)
        other = {"header": {"sub_proto": 7}}
        yield _frame("another_sub_proto", dialect, _nested("register", WHO, AUTH), Reading.OPAQUE, "WIRE-8", **other)
    yield _frame("a_word_of_another_dialect", AUTH, _nested("login", KNOWN, AUTH), bad, "MSG-16")
    yield _frame("a_word_of_another_dialect", LOGIN, _nested("get_perms", {"node_id": 5}, LOGIN), bad, "MSG-16")
    yield _frame("a_word_of_another_dialect", FLAT, {"action": "revoke", **WHO}, bad, "MSG-16")
    words = {word: action for word, action, _, _ in (*EVERYWHERE, *ABOUT_PERMS)}
    for dialect in NESTED:
        no_data = {"action": "register"}
        yield _frame("no_data", dialect, no_data, bad, "MSG-1 MSG-4 MSG-17", action=Action.REGISTER)
        for name, word, data, rule in (*BAD_FIELDS, *(BAD_PERMS if dialect is AUTH else ())):
            content = _nested(word, data, dialect)
            yield _frame(f"invalid_{name}", dialect, content, bad, f"MSG-1 {rule} MSG-17", action=words[word])
        for name, word, data in BAD_ANSWERS:
            content = _nested(word, data, dialect)
            action = words[word.removesuffix("_resp")]
            more: dict[str, Any] = {"action": action, "header": {"major": OK}}
            yield _frame(f"invalid_{name}", dialect, content, bad, "MSG-1 MSG-18", **more)
    for name, word, data, _ in BAD_FIELDS[:5]:
        content = {"action": word, **data}
        yield _frame(f"invalid_{name}", FLAT, content, bad, "MSG-2 MSG-4 MSG-17", action=Action.REGISTER)
    answer = {"header": {"major": OK}}
    yield _frame("invalid_no_code", FLAT, {"msg": "ok"}, bad, "MSG-3 MSG-18", **answer)
    yield _frame("invalid_admitted_without_node_id", FLAT, {"code": 1, **WHO}, bad, "MSG-3 MSG-18", **answer)


FRAMES = (*_requests(), *_successes(), *_failures(), *_malformed())


# Configuration keys


def _keys(case_id: str, keys: dict[str, str], rules: str, *problems: str, **policy: Any) -> KeysCase:
    made = UNSET if problems else PolicyForm(**policy)
    return KeysCase(id=f"wire/keys/{case_id}", keys=keys, policy=made, problems=problems, rules=tuple(rules.split()))


ROLES, PERMS, AUTHORITY = "auth.node_roles", "auth.role_perms", "authority.node_id"
KEYS = (
    _keys("defaults", {"auth.default_role": "guest"}, "CFG-1", default_role="guest"),
    _keys("default_perms", {"auth.default_perms": "p1, p2"}, "CFG-1", default_perms=("p1", "p2")),
    _keys("empty_permission", {"auth.default_perms": "p1,,p2"}, "CFG-1 CFG-6", "auth.default_perms"),
    _keys("node_roles", {ROLES: "1:admin;2:node;"}, "CFG-2", node_roles={1: "admin", 2: "node"}),
    _keys("node_named_twice", {ROLES: "1:admin;1:node"}, "CFG-2 CFG-6", ROLES),
    _keys("node_0", {ROLES: "0:admin"}, "CFG-2 CFG-6", ROLES),
    _keys("node_too_large", {ROLES: "4294967296:admin"}, "CFG-2 CFG-6", ROLES),
    _keys("role_perms", {PERMS: "admin:p1,p2;node:"}, "CFG-3", role_perms={"admin": ("p1", "p2"), "node": ()}),
    _keys("role_named_twice", {PERMS: "a:p;a:q"}, "CFG-3 CFG-6", PERMS),
    _keys("authority", {AUTHORITY: "9"}, "CFG-4", authority=9),
    _keys("authority_0", {AUTHORITY: "0"}, "CFG-4 CFG-6", AUTHORITY),
    _keys("unknown_key", {"auth.defaultrole": "x"}, "CFG-5 CFG-6", "auth.defaultrole"),
    _keys("other_families", {"listen.port": "x"}, ""),
    _keys("all_or_none", {"auth.default_role": "guest", AUTHORITY: "x"}, "CFG-1 CFG-4 CFG-6", AUTHORITY),
)

WIRE_CASES: tuple[WireCase, ...] = (*STREAMS, *FRAMES, *KEYS)
