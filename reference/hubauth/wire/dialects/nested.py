"""The shape ``auth`` and ``login`` share: ``{"action": ..., "data": {...}}``, also for answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hubauth.core.messages import Major, Reason
from hubauth.wire.dialects.codec import (
    AnswerReader,
    Codec,
    Decoded,
    Form,
    Reader,
    RequestReader,
    unknown_action,
    unreadable,
    unreadable_payload,
)
from hubauth.wire.dialects.fields import Outcome, RequestFields
from hubauth.wire.dialects.outcomes import Wording


class Envelope(msgspec.Struct):
    """The outer object as read. Absent ``data`` reads as null, so that the action is known when it is refused."""

    action: str
    data: msgspec.Raw = msgspec.Raw(b"null")


class Written(msgspec.Struct):
    """The outer object as written."""

    action: str
    data: Any


_ENVELOPE = msgspec.json.Decoder(Envelope)
_ENCODER = msgspec.json.Encoder()


class NestedCodec(Codec):
    """Fields inside ``data``; an answer's action is the request's word and ``_resp``."""

    request_rule = "MSG-1"
    answer_rule = "MSG-1"

    def __init__(self, forms: Sequence[Form], wordings: Mapping[Reason, Wording]) -> None:
        super().__init__(forms, wordings)
        self._readers: dict[str, Reader] = {}
        for writing in self._writings:
            form = writing.form
            self._readers[form.word] = RequestReader(form, writing.request_rules)
            self._readers[answer_word(form.word)] = AnswerReader(form.action, form, writing.answer_rules)

    def decode(self, payload: bytes, major: Major) -> Decoded:  # noqa: ARG002 - the action word decides
        detail = unreadable(payload)
        if detail is not None:
            return unreadable_payload(detail)
        try:
            envelope = _ENVELOPE.decode(payload)
        except msgspec.DecodeError as error:
            return unreadable_payload(str(error))
        reader = self._readers.get(envelope.action)
        if reader is None:
            return unknown_action(envelope.action)
        return reader.read(envelope.data)

    def _write_request(self, word: str, fields: RequestFields) -> bytes:
        return _ENCODER.encode(Written(word, fields))

    def _write_answer(self, word: str, fields: Outcome) -> bytes:
        return _ENCODER.encode(Written(answer_word(word), fields))


def answer_word(word: str) -> str:
    """The action of the answer to a request."""
    return word + "_resp"
