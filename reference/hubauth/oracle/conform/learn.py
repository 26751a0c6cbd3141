"""A profile proposed from what a running hub is seen to do, for a person to read and to complete.

Nobody is known to the hub beforehand: two devices with names of their own register and try what devices can try.
"""

import json
import secrets
from typing import Any

from attrs import define, field

from hubauth.core.messages import (
    Answer,
    Authenticate,
    Body,
    Frame,
    GetPerms,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.speech import Speech, ask
from hubauth.oracle.conform.subject import NotServing
from hubauth.oracle.conform.wire import Closed, Patience, Seen, Wire, write_frame
from hubauth.wire.dialects import CODECS
from hubauth.wire.dialects.codec import NotInDialect
from hubauth.wire.header import Version

_OPAQUE = 7


@define
class Learnt:
    """What was seen. ``notes`` are for people: what was not seen, and what this has left behind."""

    dialect: Dialect
    header: list[int]
    node_id: int
    features: list[str] = field(factory=list)
    choices: dict[str, Any] = field(factory=dict)
    habits: dict[str, Any] = field(factory=dict)
    roles: dict[str, Any] = field(factory=dict)
    notes: list[str] = field(factory=list)

    def toml(self) -> str:
        """The file."""
        lines = [f"# {note}" for note in self.notes]
        lines += [f'dialect = "{self.dialect.value}"', f"header = {json.dumps(self.header)}"]
        lines += [f"features = {json.dumps(self.features)}"]
        lines += ["", "[hub]", f"node_id = {self.node_id}"]
        for name, table in (("roles", self.roles), ("choices", self.choices), ("habits", self.habits)):
            if table:
                lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """JSON is TOML as long as no character is written as two; what cannot be seen is written as its number."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(mark if mark.isprintable() and ord(mark) < 0x10000 else f"\\U{ord(mark):08x}" for mark in text)


def learn(host: str, port: int, seconds: float) -> Learnt:
    """Look at a hub; ``seconds`` is how long it may take to answer. Raises Unreachable or NotServing."""
    ways = [Speech(dialect, version) for dialect in Dialect for version in Version]
    answers = {way: seen for way in ways if (seen := ask(host, port, way, seconds)) is not None}
    if not answers:
        raise NotServing(f"{host}:{port} answers nothing in any dialect or header version")
    first = next(iter(answers))
    header = [int(way.version) for way in answers if way.dialect is first.dialect]
    learner = _Learner(host, port, first, seconds, Learnt(first.dialect, header, answers[first].frame.source))
    try:
        learner.look()
    finally:
        learner.close()
    return learner.found


class _Learner:
    """Two devices at a hub."""

    def __init__(self, host: str, port: int, speech: Speech, seconds: float, found: Learnt) -> None:
        self._where, self._speech, self._seconds = (host, port), speech, seconds
        self._codec = CODECS[speech.dialect]
        self.found = found
        self._wires: list[Wire] = []
        self._numbers = 0

    def close(self) -> None:
        for wire in self._wires:
            wire.close()

    def look(self) -> None:
        name, other = (f"learn-{secrets.token_hex(4)}" for _ in range(2))
        wire = self._connect()
        admitted = self._ask(wire, Register(name))
        if admitted is None or admitted.reason is not Reason.OK:
            said = "nothing" if admitted is None else admitted.reason.value
            self.found.notes.append(f"a device that registers is answered {said}: nothing more was looked at")
            return
        self.found.notes.append(f"{name} and {other} are registered there now")
        self.found.notes.append("parent, child_hub, admin, limits and the feature extension are for you to add")
        self.found.features.append("register")
        if self._speech.dialect is Dialect.AUTH:
            self.found.roles = {"default_role": admitted.grant.role, "default_perms": list(admitted.grant.perms)}
        wire = self._supersede(wire, name, admitted)
        self._serve(wire, admitted.node_id)
        self._route(wire, admitted.node_id, other)
        self._leave(wire, name, admitted.node_id)
        again = self._ask(self._connect(), Register(name))
        if again is not None:
            self.found.choices["reregister"] = "open" if again.reason is Reason.OK else "after_revoke"

    def _supersede(self, wire: Wire, name: str, admitted: Answer) -> Wire:
        """The device comes back on another connection."""
        self._look_at_a_refusal(name)
        newer = self._connect()
        back = self._ask(newer, Authenticate(name, admitted.credential))
        if back is None or back.reason is not Reason.OK:
            self.found.notes.append("a device that authenticates with what it was given is not admitted")
            return wire
        self.found.features.append("authenticate")
        got = wire.read(Patience(self._seconds))
        self.found.choices["close_superseded"] = isinstance(got, Closed)
        return newer

    def _look_at_a_refusal(self, name: str) -> None:
        seen = self._seen(self._connect(), Authenticate(name, ""))
        said = seen.json if seen is not None else None
        fields = said.get("data", said) if isinstance(said, dict) else {}
        if isinstance(seen, Seen) and isinstance(seen.frame.body, Answer) and seen.frame.body.reason is not Reason.OK:
            self.found.choices["extra_fields"] = bool(set(fields) - {"code", "msg"})

    def _serve(self, wire: Wire, node_id: int) -> None:
        """What is answered at all, be it with a refusal, is there."""
        requests: dict[str, Body] = {
            "perms": GetPerms(node_id),
            "list_roles": ListRoles(),
            "revoke": Revoke("learn-nobody"),
            "perms_invalidate": PermsInvalidate((node_id,)),
        }
        for feature, body in requests.items():
            answer = self._ask(wire, body, node_id)
            if answer is not None:
                self.found.features.append(feature)
                if feature in ("revoke", "perms_invalidate") and answer.reason is not Reason.FORBIDDEN:
                    self.found.notes.append(f"any device may ask for {feature}: answered {answer.reason.value}")

    def _route(self, wire: Wire, node_id: int, other: str) -> None:
        far = self._connect()
        admitted = self._ask(far, Register(other))
        if admitted is None or not admitted.node_id:
            return
        header = Frame(b"", Major.MSG, self._number(), node_id, admitted.node_id, sub_proto=_OPAQUE)
        wire.write(write_frame(self._speech.version, header, b"learn"))
        got = far.read(Patience(self._seconds))
        if isinstance(got, Seen) and got.frame.sub_proto == _OPAQUE:
            self.found.features.append("routing")

    def _leave(self, wire: Wire, name: str, node_id: int) -> None:
        if self._speech.dialect is Dialect.FLAT:
            return
        answer = self._ask(wire, Offline(name, node_id), node_id)
        self.found.features.append("offline")
        self.found.choices["answer_offline"] = answer is not None

    # Asking

    def _connect(self) -> Wire:
        self._wires.append(Wire.connect(*self._where, self._speech.version, self._codec, self._seconds))
        return self._wires[-1]

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _ask(self, wire: Wire, body: Body, source: int = 0) -> Answer | None:
        seen = self._seen(wire, body, source)
        return seen.frame.body if seen is not None and isinstance(seen.frame.body, Answer) else None

    def _seen(self, wire: Wire, body: Body, source: int = 0) -> Seen | None:
        """What comes for a request; None: nothing, or the dialect has no such request."""
        assert not isinstance(body, bytes)
        try:
            payload = self._codec.encode(body)
        except NotInDialect:
            return None
        wire.write(write_frame(self._speech.version, Frame(b"", msg_id=self._number(), source=source), payload))
        seen = wire.read(Patience(self._seconds))
        return seen if isinstance(seen, Seen) else None
