"""Credentials out of a trace, tokens in their place: it can be shared, and it still replays.

A token is a keyed digest, so the same credential gives the same token wherever it occurs under one key, and nothing
else tells which credential it was. The core only compares credentials and looks at their shape, so a replay of tokens
takes every decision that the hub took. What cannot be read, and what other sub-protocols carry, becomes
bytes of the same length.

Peers put credentials anywhere: in other fields, in a device_id, in text within text. Three things find them. A field
that is called like one holds one. Text of the form of a drawn credential is taken for one, so it need not have been
seen before, and a name is replaced from its first row on or never: only then do rows, checkpoints and replay agree
about who it is. A credential of any other form is found by its value, once somebody who must know has named it: the
policy, the state at the start, the operator, a hub's answer. What merely was presented is nobody's credential; were
it looked for, a stranger who presents a device's name would have that device change its name in the middle of a trace.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import blake2b, shake_256
from typing import Any, get_type_hints

import msgspec
from attrs import evolve, fields, has
from immutables import Map

from hubauth.core.credentials import is_well_formed
from hubauth.core.messages import SUB_PROTO, Action
from hubauth.core.model import Index, State
from hubauth.core.policy import Policy
from hubauth.report.conceal import NAMES, RUN, SHORTEST, looks_drawn
from hubauth.wire.dialects.fields import MAX_CREDENTIAL
from hubauth.wire.header import FLAG_COMPRESSED

KEY_BYTES = 32
_MARK = "."
"""No well-formed credential has it."""
_REMEMBERED = 100_000
_PHRASES = 100
_LEVELS = 2
"""Objects within objects in which a hub reads fields."""
_QUOTINGS = 4
"""How often text may have been quoted within text."""

_NAMES = frozenset(name.encode() for name in NAMES)
_DRAWN = 43
"""Characters of a drawn credential."""
_NAMED_IN_TEXT = re.compile(rf"""["'](?:{"|".join(NAMES)})["']\s*[:=]""", re.IGNORECASE)
_WORD = re.compile(r"""[^\s"'\\,:;{}()<>=&?|\[\]]{8,}""")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_WORDS = {action.value + end for action in Action for end in ("", "_resp")}
"""Of the protocol itself."""

_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Redactor:
    """Replaces credentials under one key."""

    def __init__(self, key: bytes, known: Iterable[str] = ()) -> None:
        self._key = key
        self._known: dict[str, None] = {}
        """Credentials that are looked for by their value, in the order in which they became known."""
        self._phrases: list[str] = []
        """Those among them that are no single word."""
        self._tokens: dict[str, str] = {}
        for credential in known:
            self.know(credential)

    @property
    def fingerprint(self) -> str:
        """Tells keys apart without giving one away."""
        return blake2b(self._key, digest_size=8, person=b"hubauth key").hexdigest()

    def alone(self) -> "Redactor":
        """Another one with the same key that knows as much, for another thread."""
        return Redactor(self._key, self._known)

    def know(self, credential: str) -> None:
        """Look for this credential, too, if its form alone does not give it away. The oldest are forgotten."""
        if len(credential) < SHORTEST or credential in _WORDS or _is_drawn(credential):
            return
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        if credential not in self._known and not _WORD.fullmatch(credential):
            self._phrases = [*self._phrases[-_PHRASES + 1 :], credential]
        self._known[credential] = None

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

    def text(self, said: str) -> str:
        """Any text that is not in the place of a credential; as long as it was, in bytes, so that it is as valid."""
        if len(said) < SHORTEST:
            return said
        if said in self._known or _NAMED_IN_TEXT.search(said) or any(phrase in said for phrase in self._phrases):
            return self._disguise(said)
        if "\\" in said and any(map(self._is_suspect, _unquoted(said))):
            return self._disguise(said)
        return _WORD.sub(self._word, said) if self._known else RUN.sub(self._run, said)

    def _word(self, found: "re.Match[str]") -> str:
        return self._disguise(found[0]) if found[0] in self._known else RUN.sub(self._run, found[0])

    def _run(self, found: "re.Match[str]") -> str:
        return self._disguise(found[0]) if looks_drawn(found[0]) else found[0]

    def _is_suspect(self, said: str) -> bool:
        return (
            _NAMED_IN_TEXT.search(said) is not None
            or any(phrase in said for phrase in self._phrases)
            or any(map(looks_drawn, RUN.findall(said)))
            or any(word in self._known for word in _WORD.findall(said))
        )

    def _disguise(self, said: str) -> str:
        if is_well_formed(said):
            return self.token(said)
        encoded = said.encode(errors="surrogatepass")
        return urlsafe_b64encode(shake_256(self._key + encoded).digest(len(encoded))).decode()[: len(encoded)]

    def payload(self, sub_proto: int, flags: int, payload: bytes, *, tells: bool = False) -> bytes:
        """The payload of a frame, read by every dialect as before but for the credentials in it.

        ``tells``: a success said by a hub, so that what it names is a credential.
        """
        if sub_proto != SUB_PROTO or flags & FLAG_COMPRESSED:
            return self._opaque(payload)
        try:
            fields = _decode_object(payload)
            payload.decode()
        except _UNREADABLE:
            return self._opaque(payload)
        if b"\\" not in payload and b"'" not in payload:
            redacted = self._plain(payload, tells)
            if redacted is not None:
                return redacted
        if tells:
            self._clean(fields, _LEVELS, self.know)
        return msgspec.json.encode(self._clean(fields, _LEVELS))

    def _plain(self, payload: bytes, tells: bool) -> bytes | None:
        """The quick way, for payloads that are written plainly; None if a named field holds something but text."""
        pieces = payload.split(b'"')
        strings = range(1, len(pieces), 2)
        named = [at + 2 for at in strings if pieces[at].lower() in _NAMES and pieces[at + 1].lstrip()[:1] == b":"]
        if any(pieces[at - 1].strip() != b":" for at in named):
            return None
        if tells:
            for at in named:
                self.know(pieces[at].decode())
        least = SHORTEST if self._known else _DRAWN
        for at in strings:
            if len(pieces[at]) >= least and at not in named:
                pieces[at] = self.text(pieces[at].decode()).encode()
        for at in named:
            pieces[at] = self.token(pieces[at].decode()).encode()
        return b'"'.join(pieces)

    def _clean(
        self, fields: dict[str, msgspec.Raw], levels: int, tell: Callable[[str], None] | None = None
    ) -> dict[str, Any]:
        """The slow way, for all others. What cannot be read becomes an empty object."""
        plain: dict[str, Any] = {}
        for name, raw in fields.items():
            try:
                plain |= self._walk({name: msgspec.json.decode(raw)}, tell)
            except _UNREADABLE:
                try:
                    plain[self.text(name)] = self._clean(_decode_object(raw), levels - 1, tell) if levels else {}
                except _UNREADABLE:
                    plain[self.text(name)] = {}
        return plain

    def _walk(self, value: Any, tell: Callable[[str], None] | None) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._walk(item, tell) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            self.text(name): self._hide(item, tell) if name.casefold() in NAMES else self._walk(item, tell)
            for name, item in value.items()
        }

    def _hide(self, value: Any, tell: Callable[[str], None] | None) -> Any:
        if isinstance(value, str):
            if tell is not None:
                tell(value)
            return self.token(value)
        return value if value is None or isinstance(value, bool) else 0 if isinstance(value, int | float) else []

    def _opaque(self, payload: bytes) -> bytes:
        return shake_256(self._key + payload).digest(len(payload))

    # What the core holds

    def policy(self, policy: Policy) -> Policy:
        """What it provisions is known from then on."""
        self._learn(policy)
        redacted: Policy = self.value(policy)
        return redacted

    def state(self, state: State) -> State:
        """Without its indexes. Costs as much as the state is large; what it holds is known from then on."""
        state = evolve(state, index=Index())
        self._learn(state)
        for credential in state.beaten.values():
            self.know(credential)
        beaten = {self.text(name): self.token(credential) for name, credential in state.beaten.items()}
        redacted: State = evolve(self.value(evolve(state, beaten=Map())), beaten=Map(beaten))
        return redacted

    def value(self, value: Any) -> Any:
        """Anything of the core: what is called a credential becomes its token, all other text stays as it may."""
        kind: Any = type(value)
        if kind is str:
            return self.text(value)
        if kind is tuple:
            return tuple(map(self.value, value))
        if kind is Map:
            return Map({self.value(key): self.value(item) for key, item in value.items()})
        changed = {}
        for name, is_credential in _fields(kind):
            old = getattr(value, name)
            new = self.token(old) if is_credential else self.value(old)
            if new is not old and new != old:
                changed[name] = new
        return evolve(value, **changed) if changed else value

    def _learn(self, value: Any) -> None:
        kind: Any = type(value)
        if kind is tuple:
            for item in value:
                self._learn(item)
        elif kind is Map:
            for key, item in value.items():
                self._learn(key)
                self._learn(item)
        else:
            for name, is_credential in _fields(kind):
                if is_credential:
                    self.know(getattr(value, name))
                else:
                    self._learn(getattr(value, name))


_CREDENTIALS = ("credential", "fresh")
_WITHOUT_TEXT = (int, bool, float, bytes)


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool], ...]:
    """The fields of a value of the core that may hold text, and whether each holds a credential."""
    if not has(kind):
        return ()
    hints = get_type_hints(kind)
    names = [attribute.name for attribute in fields(kind)]
    return tuple((name, name in _CREDENTIALS) for name in names if hints[name] not in _WITHOUT_TEXT)


def _is_drawn(credential: str) -> bool:
    return RUN.fullmatch(credential) is not None and looks_drawn(credential)


def _unquoted(said: str) -> Iterable[str]:
    """What a text says to somebody who reads it as quoted text, and what that says, and so on."""
    for _ in range(_QUOTINGS):
        said = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], said)
        yield said
        if "\\" not in said:
            return
