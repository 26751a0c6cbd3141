"""The dialect ``flat``: ``login`` without credentials and presence, fields beside ``action``, answers without one."""

from collections.abc import Mapping, Sequence

import msgspec
from attrs import evolve

from hubauth.core.messages import Action, Major, Reason
from hubauth.wire.dialects import login
from hubauth.wire.dialects.codec import (
    AnswerReader,
    Codec,
    Decoded,
    Form,
    RequestReader,
    unknown_action,
    unreadable,
    unreadable_payload,
)
from hubauth.wire.dialects.fields import Device, DeviceId, KnownSubject, Outcome, RequestFields, Subject
from hubauth.wire.dialects.outcomes import FLAT_WORDINGS, Wording

_KEPT = frozenset({Action.REGISTER, Action.AUTHENTICATE, Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE})


class Word(msgspec.Struct):
    """The part of a request that says what the other fields are."""

    action: str


class WrittenRequest(msgspec.Struct):
    """A request as written."""

    action: str
    device_id: DeviceId


FORMS: tuple[Form, ...] = tuple(
    evolve(form, request=Device, request_rule="MSG-4", success=Subject, success_rule="MSG-3", needed=("node_id",))
    for form in login.FORMS
    if form.action in _KEPT
)

_ANY_ANSWER = evolve(FORMS[0], failure=KnownSubject, failure_rule="MSG-14")
"""An answer that does not say to what: the asker knows, and nothing that came with it is left out."""

_WORD = msgspec.json.Decoder(Word)
_ENCODER = msgspec.json.Encoder()


class FlatCodec(Codec):
    """Requests and answers differ by ``Major``; what an answer answers, only ``MsgID`` tells."""

    request_rule = "MSG-2"
    answer_rule = "MSG-3"

    def __init__(self, forms: Sequence[Form], wordings: Mapping[Reason, Wording]) -> None:
        super().__init__(forms, wordings)
        self._readers = {
            writing.form.word: RequestReader(writing.form, writing.request_rules) for writing in self._writings
        }
        any_answer = self._writing(_ANY_ANSWER)
        self._by_action[None] = any_answer
        self._answer_reader = AnswerReader(None, _ANY_ANSWER, any_answer.answer_rules)

    def decode(self, payload: bytes, major: Major) -> Decoded:
        is_answer = major in (Major.OK_RESP, Major.ERR_RESP)
        detail = unreadable(payload)
        if detail is not None:
            return unreadable_payload(detail, is_answer=is_answer)
        if is_answer:
            return self._answer_reader.read(payload)
        try:
            word = _WORD.decode(payload).action
        except msgspec.DecodeError as error:
            return unreadable_payload(str(error))
        reader = self._readers.get(word)
        return unknown_action(word) if reader is None else reader.read(payload)

    def _write_request(self, word: str, fields: RequestFields) -> bytes:
        assert isinstance(fields, Device)
        return _ENCODER.encode(WrittenRequest(word, fields.device_id))

    def _write_answer(self, word: str, fields: Outcome) -> bytes:  # noqa: ARG002 - flat answers do not name it
        return _ENCODER.encode(fields)


FLAT = FlatCodec(FORMS, FLAT_WORDINGS)
