"""Names that peers choose in order to do harm, and traces in which they and credentials occur."""

import json
from pathlib import Path
from typing import Any
from unicodedata import category
from xml.etree import ElementTree

from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind
from hubauth.forms.lines import encode_event
from tests.trace.harness import frame, numbered, start

HOSTILE = (
    "\x1b[31mred\x1b]8;;http://evil/\x07link\x1b]8;;\x07\x1b]0;title\x1b\\ \r\n\x08\x07\x00\x7f\x85\x9b2J "
    "\u202e\u2066\u200b\u2028\ufffe\uffff\U000e0001 <&\"'> ]]>"
)
"""Colours, links, titles, line breaks, C0, DEL, C1, turned directions, invisible and impossible characters, markup."""
DRAWN = "gf0v6QH8v5QxvdSx38RyVpDTlUh4SLxqXYTZ8hiuwZ4"
CHOSEN = "hunter2-and-some-more"
"""A credential that looks like nothing in particular."""


LONG = [b'"token":"' * 7000, b'{"x":"' + b"\\\\" * 30000 + b'"}', b'{"x":"' + b"aB" * 32000 + b'"}']
"""Payloads that a careless pattern reads again and again."""


def assert_harmless(text: str) -> None:
    """Nothing but what can be seen, and line breaks."""
    found = {
        hex(ord(one)) for one in text if one != "\n" and category(one) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    }
    assert not found, f"{found} in {text[:2000]!a}"


def assert_well_formed(path: Path) -> None:
    """A report that every reader can read: XML and SVG parse, JSON is JSON, HTML holds no controls."""
    content = path.read_text(encoding="utf-8")
    assert_harmless(content)
    if path.suffix in (".xml", ".svg"):
        ElementTree.fromstring(content)
    elif path.suffix == ".json":
        json.loads(content)
    for drawing in content.split("<svg")[1:] if path.suffix == ".html" else []:
        ElementTree.fromstring("<svg" + drawing.partition("</svg>")[0] + "</svg>")


def rows(name: str, credential: str, policy: Policy | None = None) -> list[Event]:
    """A hub that refuses a device for no reason: everything is called ``name``, and the credential is everywhere."""

    def said(**fields: object) -> bytes:
        return json.dumps(fields, ensure_ascii=False).encode()

    known = {"device_id": name, "credential": credential}
    up = Event("t", "hub", 0, Kind.LINK_UP, 1, 1, connection=name, peer=name)
    answer = said(action="register_resp", data={"code": 1, "msg": name, "node_id": 2, "role": name, **known})
    return numbered(
        [
            start(policy or Policy(device_id=name)),
            up,
            frame(Kind.FRAME_IN, 1, said(action="register", data={"device_id": name}), msg_id=1),
            frame(Kind.FRAME_IN, 1, said(action="auth", data={"Token": credential, "device_id": credential}), msg_id=3),
            frame(Kind.FRAME_OUT, 1, answer, msg_id=9, major=0, source=1),
            frame(Kind.FRAME_OUT, 1, said(action=credential, data={"device_id": credential}), msg_id=3, source=1),
        ]
    )


def write_trace(directory: Path, name: str, credential: str, policy: Policy | None = None) -> Path:
    (directory / "events").mkdir(parents=True)
    written = b"".join(map(encode_event, rows(name, credential, policy)))
    named = json.dumps(name, ensure_ascii=False).encode()
    (directory / "events" / "hub-0000.jsonl").write_bytes(written.replace(b'"hub":"hub"', b'"hub":' + named))
    return directory


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(one):04x}" for one in text)


def hidings(secret: str, name: str = "cam") -> list[str]:
    """One request after the other, each with the secret in another place."""
    plain: list[dict[str, Any]] = [
        {"device_id": name, "Credential": secret},
        {"device_id": name, "CREDENTIAL": secret, "credential": secret},
        {"device_id": name, "token": secret},
        {"device_id": name, "Password": [secret, {"x": secret}]},
        {"device_id": name, "note": secret},
        {"device_id": name, "note": {secret: [secret]}},
        {"device_id": name, "note": json.dumps({"credential": secret})},
        {"device_id": name, "note": json.dumps({"x": json.dumps([secret])})},
        {"device_id": name, "note": f"Bearer {secret}"},
        {"device_id": secret},
        {"device_id": secret, "node_id": 3},
        {"device_id": name, "node_id": secret},
    ]
    requests = [json.dumps({"action": "register", "data": data}) for data in plain]
    requests += [json.dumps({"action": secret, "data": {"device_id": name}})]
    requests += [json.dumps({"action": "register", "data": secret}), json.dumps({"action": "register", secret: 1})]
    once = f'{{"action":"register","data":{{"device_id":"{name}","note":"%s"}}}}'
    within = escaped(secret).replace("\\", "\\\\")
    return [*requests, once % escaped(secret), once % f'{{\\"x\\":\\"{within}\\"}}']
