"""Credentials out of a trace, tokens in their place: it can be shared, and it still replays.

A token is a keyed digest, so the same credential gives the same token wherever it occurs under one key, and nothing
else tells which credential it was. The core only compares credentials and looks at their shape, so a replay of tokens
takes every decision that the hub took. What cannot be read, and what other sub-protocols carry, becomes
bytes of the same length.
"""

import re
from base64 import urlsafe_b64encode
from hashlib import blake2b, shake_256
from typing import Any

import msgspec
from attrs import evolve
from immutables import Map

from hubauth.core.credentials import is_well_formed
from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import SUB_PROTO, Revoke
from hubauth.core.model import Entry, Neighbour, Pending, State
from hubauth.core.policy import Policy
from hubauth.wire.dialects.fields import MAX_CREDENTIAL
from hubauth.wire.header import FLAG_COMPRESSED

KEY_BYTES = 32
_MARK = "."
"""No well-formed credential has it."""
_REMEMBERED = 100_000
_LEVELS = 2
"""Objects within objects in which a hub reads fields."""

_NAMED = re.compile(rb'"credential"\s*:')
_STRING = re.compile(rb'("credential"\s*:\s*")([^"\\]*)(?=")')

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Redactor:
    """Replaces credentials under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._tokens: dict[str, str] = {}

    @property
    def fingerprint(self) -> str:
        """Tells keys apart without giving one away."""
        return blake2b(self._key, digest_size=8, person=b"hubauth key").hexdigest()

    def alone(self) -> "Redactor":
        """Another one with the same key, for another thread."""
        return Redactor(self._key)

    def token(self, credential: str) -> str:
        """The token of a credential: of the same shape, as far as a hub looks at that."""
        if not credential:
            return credential
        token = self._tokens.get(credential)
        if token is None:
            if len(self._tokens) >= _REMEMBERED:
                self._tokens.clear()
            token = self._tokens[credential] = self._make(credential)
        return token

    def _make(self, credential: str) -> str:
        digest = blake2b(credential.encode(errors="surrogatepass"), key=self._key, digest_size=32).digest()
        token = urlsafe_b64encode(digest).decode().rstrip("=")
        if is_well_formed(credential):
            return token
        return _MARK + token if len(credential) <= MAX_CREDENTIAL else token + _MARK * MAX_CREDENTIAL

    def payload(self, sub_proto: int, flags: int, payload: bytes) -> bytes:
        """The payload of a frame, read by every dialect as before but for the credentials in it."""
        if sub_proto != SUB_PROTO or flags & FLAG_COMPRESSED:
            return self._opaque(payload)
        try:
            fields = _decode_object(payload)
            payload.decode()
        except _UNREADABLE:
            return self._opaque(payload)
        if b"\\" not in payload:
            replaced, strings = _STRING.subn(self._replace, payload)
            if strings == len(_NAMED.findall(payload)):
                return replaced
        return msgspec.json.encode(self._clean(fields, _LEVELS))

    def _replace(self, match: "re.Match[bytes]") -> bytes:
        return match[1] + self.token(match[2].decode()).encode()

    def _clean(self, fields: dict[str, msgspec.Raw], levels: int) -> dict[str, Any]:
        """The slow way, for payloads that are written strangely. What cannot be read becomes an empty object."""
        plain: dict[str, Any] = {}
        for name, raw in fields.items():
            try:
                plain[name] = self._walk({name: msgspec.json.decode(raw)})[name]
            except _UNREADABLE:
                try:
                    plain[name] = self._clean(_decode_object(raw), levels - 1) if levels else {}
                except _UNREADABLE:
                    plain[name] = {}
        return plain

    def _walk(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {name: self._hide(item) if name == "credential" else self._walk(item) for name, item in value.items()}

    def _hide(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.token(value)
        return value if value is None or isinstance(value, bool) else 0 if isinstance(value, int | float) else []

    def _opaque(self, payload: bytes) -> bytes:
        return shake_256(self._key + payload).digest(len(payload))

    def policy(self, policy: Policy) -> Policy:
        provisioned = tuple(evolve(b, credential=self.token(b.credential)) for b in policy.provisioned)
        return evolve(policy, credential=self.token(policy.credential), provisioned=provisioned)

    def command(self, command: OperatorRevoke) -> OperatorRevoke:
        return evolve(command, revoke=self._revoke(command.revoke))

    def _revoke(self, revoke: Revoke) -> Revoke:
        return evolve(revoke, credential=self.token(revoke.credential))

    def state(self, state: State) -> State:
        """Costs as much as the state is large. The indexes hold no credential."""
        return evolve(
            state,
            credential=self.token(state.credential),
            whitelist=Map({name: self._entry(entry) for name, entry in state.whitelist.items()}),
            pending=Map({msg_id: self._pending(pending) for msg_id, pending in state.pending.items()}),
            neighbours=Map({node_id: self._neighbour(other) for node_id, other in state.neighbours.items()}),
            beaten=Map({name: self.token(credential) for name, credential in state.beaten.items()}),
        )

    def _entry(self, entry: Entry) -> Entry:
        return Entry(entry.node_id, self.token(entry.credential), entry.is_hub)

    def _pending(self, pending: Pending) -> Pending:
        held = pending.held
        if held is not None and isinstance(held.body, Revoke):
            held = evolve(held, body=self._revoke(held.body))
        return evolve(pending, credential=self.token(pending.credential), held=held)

    def _neighbour(self, other: Neighbour) -> Neighbour:
        return evolve(other, owed=Map({self._revoke(revoke): about for revoke, about in other.owed.items()}))
