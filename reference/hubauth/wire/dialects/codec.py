"""One codec for all dialects: payload bytes to core messages and back, driven by a dialect's table of forms.

Reading goes in two stages, so that a request with bad fields can still be answered: first the action word, then the
fields that word asks for. It never raises. Every result names the rules that decided it; they are put together once
per form, not once per message.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from attrs import frozen
from msgspec.structs import astuple

from hubauth.core.messages import CODES, Action, Answer, Body, Major, Malformed, Reason, Request, reason_of_code
from hubauth.wire.depth import MAX_DEPTH, nests_too_deep
from hubauth.wire.dialects.extension import read_ext, write_ext
from hubauth.wire.dialects.fields import Fields, Outcome, RequestFields, device_id_fits
from hubauth.wire.dialects.outcomes import Wording

_OK = CODES[Reason.OK]


class NotInDialect(LookupError):
    """The dialect has no words for this body. The core does not send such a body under that dialect's policy."""


class Decoded(msgspec.Struct, frozen=True):
    """What a payload says, and the rules by which it was read."""

    body: Body
    rules: tuple[str, ...]


@frozen
class Form:
    """How one action travels in one dialect."""

    word: str
    message: type[Request]
    request: type[RequestFields]
    success: type[Outcome]
    failure: type[Outcome]
    needed: tuple[str, ...]
    """What a success must say for its receiver to act on it."""
    request_rule: str
    success_rule: str
    failure_rule: str

    @property
    def action(self) -> Action:
        return self.message.action

    @property
    def may_extend(self) -> bool:
        """Whether a request may offer the extension."""
        return "ext" in self.request.__struct_fields__


def unreadable(payload: bytes) -> str | None:
    """Why the payload is no text that could be JSON, if so."""
    if not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            return "not UTF-8"
    if nests_too_deep(payload):
        return f"nested deeper than {MAX_DEPTH}"
    return None


class Reader(ABC):
    """Reads the fields of one action word."""

    def __init__(self, fields: type[Fields], refusal: tuple[str, ...]) -> None:
        self._decode: Callable[[bytes | msgspec.Raw], Any] = msgspec.json.Decoder(fields).decode
        self._names_device = "device_id" in fields.__struct_fields__
        self._refusal = refusal

    def read(self, fields: bytes | msgspec.Raw) -> Decoded:
        try:
            data = self._decode(fields)
        except msgspec.DecodeError as error:
            return self._refuse(str(error))
        if self._names_device and not device_id_fits(data.device_id):
            return self._refuse("device_id is longer than 128 bytes")
        return self._accept(data)

    @abstractmethod
    def _accept(self, data: Any) -> Decoded: ...

    def _refuse(self, detail: str) -> Decoded:
        return Decoded(self._malformed(detail), self._refusal)

    @abstractmethod
    def _malformed(self, detail: str) -> Malformed: ...


class AnswerRules:
    """The rules behind the answers of one form: the shape, which fields, and the code."""

    def __init__(self, form: Form, shape_rule: str, wordings: Mapping[Reason, Wording]) -> None:
        def rules(code: int, code_rule: str) -> tuple[str, ...]:
            return (shape_rule, form.success_rule if code == _OK else form.failure_rule, code_rule)

        self.shape_rule = shape_rule
        self._by_reason = {reason: rules(wording.code, wording.rule) for reason, wording in wordings.items()}
        self._by_code = {code: self._by_reason[reason_of_code(code)] for code in CODES.values()}
        self._foreign = (shape_rule, form.failure_rule, "CODE-11")

    def of_code(self, code: int) -> tuple[str, ...]:
        """Of an answer that was received."""
        return self._by_code.get(code, self._foreign)

    def of_reason(self, reason: Reason) -> tuple[str, ...]:
        """Of an answer that is written."""
        return self._by_reason[reason]


class RequestReader(Reader):
    """Reads the requests of one action."""

    def __init__(self, form: Form, rules: tuple[str, ...]) -> None:
        super().__init__(form.request, (*rules, "MSG-17"))
        self._message: Callable[..., Request] = form.message
        self._action = form.action
        self._rules = rules
        self._may_extend = form.may_extend

    def _accept(self, data: Any) -> Decoded:
        if self._may_extend:
            data.ext = read_ext(data.ext)
        return Decoded(self._message(*astuple(data)), self._rules)

    def _malformed(self, detail: str) -> Malformed:
        return Malformed(self._action, detail)


class AnswerReader(Reader):
    """Reads the answers to one action; to any, where the dialect's answers do not name it (``action`` None)."""

    def __init__(self, action: Action | None, form: Form, rules: AnswerRules) -> None:
        super().__init__(form.success, (rules.shape_rule, "MSG-18"))
        self._action = action
        self._needed = form.needed
        self._rules = rules

    def _accept(self, data: Any) -> Decoded:
        code: int = data.code
        if code == _OK:
            for name in self._needed:
                if not getattr(data, name):
                    return self._refuse(f"success without {name}")
        return Decoded(data.to_answer(self._action, reason_of_code(code)), self._rules.of_code(code))

    def _malformed(self, detail: str) -> Malformed:
        return Malformed(self._action, detail, is_answer=True)


class Writing(NamedTuple):
    """A form with what writing it takes."""

    form: Form
    answers: dict[Reason, tuple[type[Outcome], int, str]]
    """How an answer is written: its fields, code and msg."""
    values: Callable[[Any], tuple[Any, ...]]
    """The fields of the core message, in the order of ``form.request``."""
    may_extend: bool
    request_rules: tuple[str, ...]
    answer_rules: AnswerRules


class Codec(ABC):
    """A dialect: what its payloads mean, and how messages are written in it."""

    request_rule: str
    """The rule about the shape of every request."""
    answer_rule: str
    """The rule about the shape of every answer."""

    def __init__(self, forms: Sequence[Form], wordings: Mapping[Reason, Wording]) -> None:
        self.forms = tuple(forms)
        self.wordings = wordings
        self._writings = [self._writing(form) for form in self.forms]
        self._by_message: dict[type[Body], Writing] = {writing.form.message: writing for writing in self._writings}
        self._by_action: dict[Action | None, Writing] = {writing.form.action: writing for writing in self._writings}

    @abstractmethod
    def decode(self, payload: bytes, major: Major) -> Decoded:
        """What the payload says; a ``Malformed`` body if it cannot be read. Never raises."""

    def encode(self, body: Body) -> bytes:
        """The payload that says ``body``, its fields in a fixed order.

        Raises ``NotInDialect`` for what the dialect cannot say, and for nothing else the core produces.
        """
        writing = self._writing_of(body)
        if isinstance(body, Answer):
            fields, code, msg = writing.answers[body.reason]
            return self._write_answer(writing.form.word, fields.of(code, msg, body))
        request: Any = writing.form.request(*writing.values(body))
        if writing.may_extend:
            request.ext = write_ext(request.ext)
        return self._write_request(writing.form.word, request)

    def rules_for(self, body: Body) -> tuple[str, ...]:
        """The rules by which ``encode`` writes ``body``."""
        writing = self._writing_of(body)
        return writing.answer_rules.of_reason(body.reason) if isinstance(body, Answer) else writing.request_rules

    def _writing_of(self, body: Body) -> Writing:
        writing = self._by_action.get(body.action) if isinstance(body, Answer) else self._by_message.get(type(body))
        if writing is None:
            raise NotInDialect(f"{type(body).__name__} cannot be said in this dialect")
        return writing

    def _writing(self, form: Form) -> Writing:
        return Writing(
            form,
            {
                reason: (form.success if reason is Reason.OK else form.failure, wording.code, wording.msg)
                for reason, wording in self.wordings.items()
            },
            _values_of(form.request.__struct_fields__),
            form.may_extend,
            (self.request_rule, form.request_rule),
            AnswerRules(form, self.answer_rule, self.wordings),
        )

    @abstractmethod
    def _write_request(self, word: str, fields: RequestFields) -> bytes: ...

    @abstractmethod
    def _write_answer(self, word: str, fields: Outcome) -> bytes: ...


def _values_of(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Takes the named attributes of a message, as a tuple also if it is only one, or none."""
    if not names:
        return lambda message: ()  # noqa: ARG005
    values: Callable[[Any], Any] = attrgetter(*names)
    return values if len(names) > 1 else lambda message: (values(message),)


def unreadable_payload(detail: str, *, is_answer: bool = False) -> Decoded:
    """A payload of which not even the action is known."""
    return Decoded(Malformed(None, detail, is_answer), ("MSG-15",))


def unknown_action(word: str) -> Decoded:
    """An action word the dialect does not have; never shown, since a peer may have put a credential in its place."""
    return Decoded(Malformed(None, f"unknown action of {len(word)} characters"), ("MSG-16",))
