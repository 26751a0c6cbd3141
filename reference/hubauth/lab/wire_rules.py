"""Runs the wire and the configuration keys through everything their rules decide, and says which rules did."""

from collections.abc import Iterator

from hubauth.core.keys import read_keys
from hubauth.core.messages import Answer, Body, Ext, Frame, Major, Reason, Register
from hubauth.core.policy import Dialect, Policy
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import FrameDecoder, RawFrame, encode_frame, read_frame
from hubauth.wire.header import Version

_BODIES: dict[str, object] = {
    "device_id": "mac-001122334455",
    "credential": "token",
    "node_id": 5,
    "reason": "why",
    "offset": 0,
    "limit": 10,
    "role": "node",
    "node_ids": (5,),
    "refresh": True,
    "seq": 1,
    "ext": Ext("journal", "another", 1),
}

_PAYLOADS = (
    b"\xff",
    b'{"action":"nonsense","data":{}}',
    b'{"action":"register","data":{}}',
    b'{"action":"register"}',
    b'{"action":"register_resp","data":{}}',
    b'{"action":"register_resp","data":{"code":77}}',
    b'{"code":77}',
    b'{"code":1}',
)

_KEYS = (
    {"auth.default_role": "node", "auth.default_perms": "p1,p2"},
    {"auth.node_roles": "1:admin;2:node", "auth.role_perms": "admin:p1,p2;node:p3"},
    {"authority.node_id": "1"},
    {"auth.nonsense": ""},
)


def exercised_rules() -> set[str]:
    """The rules that decided something here, as the results themselves report them."""
    return {rule for rules in (*_streams(), *_messages(), *_configurations()) for rule in rules}


def _streams() -> Iterator[tuple[str, ...]]:
    codec = CODECS[Dialect.AUTH]
    register = Frame(Register("d"))
    v1, v2 = (encode_frame(version, codec, register) for version in Version)
    longer = v2[:3] + b"\x21" + v2[4:32] + b"x" + v2[32:]
    reserved = v1[:22] + b"\x00\x01" + v1[24:]
    opaque = encode_frame(Version.V1, codec, Frame(b"", sub_proto=7))
    compressed = encode_frame(Version.V1, codec, Frame(b"", flags=2))
    too_long = v1[:18] + b"\xff\xff\xff\xff" + v1[22:]
    for stream in (v1, v2, longer, reserved, opaque, compressed, too_long, v2 + v1):
        for item in FrameDecoder().feed(stream):
            if isinstance(item, RawFrame):
                yield item.rules
                yield read_frame(codec, item).rules
            else:
                yield (item.rule,)


def _messages() -> Iterator[tuple[str, ...]]:
    for codec in CODECS.values():
        for form in codec.forms:
            request = form.message(**{name: _BODIES[name] for name in form.request.__struct_fields__})  # type: ignore[arg-type]
            answers = [Answer(form.action, reason, "d", 5, "token") for reason in Reason]
            bodies: list[Body] = [request, *answers]
            for body in bodies:
                yield codec.rules_for(body)
                major = Major.OK_RESP if isinstance(body, Answer) else Major.CMD
                yield codec.decode(codec.encode(body), major).rules
        for payload in _PAYLOADS:
            for major in Major:
                yield codec.decode(payload, major).rules


def _configurations() -> Iterator[tuple[str, ...]]:
    for keys in _KEYS:
        yield read_keys(keys, Policy()).rules
