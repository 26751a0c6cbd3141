"""What hypothesis draws in the tests of the wire."""

from typing import Any

from hypothesis import strategies as st

from hubauth.core.messages import (
    MAX_DEVICE_ID_BYTES,
    MAX_HANDLED,
    MAX_JOURNAL_BYTES,
    MAX_NODE_ID,
    NOT_A_HUB,
    Action,
    Answer,
    Body,
    Ext,
    Frame,
    Grant,
    Major,
    Reason,
    RoleOfNode,
    reason_of_code,
)
from hubauth.wire.dialects.codec import Codec, Form
from hubauth.wire.dialects.fields import MAX_CREDENTIAL, MAX_TEXT

UINT8 = st.integers(0, 2**8 - 1)
UINT32 = st.integers(0, MAX_NODE_ID)

device_ids = st.text(min_size=1, max_size=MAX_DEVICE_ID_BYTES).filter(
    lambda text: len(text.encode()) <= MAX_DEVICE_ID_BYTES
)
names = st.text(max_size=20)
grants = st.builds(Grant, names, st.lists(names, max_size=4).map(tuple))
rows = st.builds(RoleOfNode, UINT32, grants)

journals = st.text(max_size=MAX_JOURNAL_BYTES).filter(lambda text: len(text.encode()) <= MAX_JOURNAL_BYTES)
exts = st.none() | st.builds(Ext, journals.filter(bool), journals, st.integers(0, MAX_HANDLED))

_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "device_id": device_ids,
    "node_id": UINT32,
    "credential": st.text(max_size=MAX_CREDENTIAL),
    "reason": st.text(max_size=MAX_TEXT),
    "offset": UINT32,
    "limit": UINT32,
    "role": names,
    "node_ids": st.lists(UINT32, max_size=5).map(tuple),
    "refresh": st.booleans(),
    "seq": UINT32,
    "ext": exts,
    "total": UINT32,
    "roles": st.lists(rows, max_size=4).map(tuple),
}
_NEEDED: dict[str, st.SearchStrategy[Any]] = {
    "node_id": st.integers(1, MAX_NODE_ID),
    "credential": st.text(min_size=1, max_size=MAX_CREDENTIAL),
}

CANONICAL_REASONS = [reason for reason in Reason if reason in {reason_of_code(code) for code in range(5000)}]
"""One reason per code: the others cannot be told from a received answer."""


def _request(form: Form) -> st.SearchStrategy[Body]:
    return st.builds(form.message, **{name: _FIELDS[name] for name in form.request.__struct_fields__})


def _answer(form: Form, reason: Reason) -> st.SearchStrategy[Body]:
    fields = form.success if reason is Reason.OK else form.failure
    drawn: dict[str, st.SearchStrategy[Any]] = {}
    for name in fields.__struct_fields__:
        if name == "perms":
            drawn["grant"] = grants
        elif name == "ext":
            drawn["ext"] = exts | st.just(NOT_A_HUB)
        elif name not in ("code", "msg", "role"):
            drawn[name] = _NEEDED[name] if reason is Reason.OK and name in form.needed else _FIELDS[name]
    return st.builds(Answer, action=st.just(form.action), reason=st.just(reason), **drawn)


def requests(codec: Codec) -> st.SearchStrategy[Body]:
    """Every request the dialect can say."""
    return st.sampled_from(codec.forms).flatmap(_request)


def answers(codec: Codec) -> st.SearchStrategy[Body]:
    """Every answer the dialect can say, holding only fields that it writes."""
    cases = st.tuples(st.sampled_from(codec.forms), st.sampled_from(CANONICAL_REASONS))
    return cases.flatmap(lambda case: _answer(*case))


any_answer: st.SearchStrategy[Answer] = st.builds(
    Answer,
    st.sampled_from(Action),
    st.sampled_from(Reason),
    st.text(max_size=40),
    UINT32,
    st.text(max_size=50),
    grants,
    UINT32,
    st.lists(rows, max_size=3).map(tuple),
    exts,
)
"""Also answers with fields that do not belong there."""

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)

_ext_like = st.fixed_dictionaries(
    {}, optional={"v": UINT8, "journal": names | UINT8, "peer": names, "handled": st.integers(), "hub": st.booleans()}
)
_odd = _ext_like | json_values | UINT32 | device_ids | st.lists(UINT32, max_size=3) | st.lists(names, max_size=3)


def near_messages(codec: Codec) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with the dialect's own words and field names, and any values."""
    words = [word for form in codec.forms for word in (form.word, form.word + "_resp")]
    keys = sorted({*_FIELDS, "code", "msg", "perms"})
    fields = st.dictionaries(st.sampled_from(keys), _odd, max_size=6) | st.builds(
        lambda device_id, code, rest: {**rest, "device_id": device_id, "code": code},
        device_ids,
        st.sampled_from([1, 1, 400, 4001, 7]),
        st.dictionaries(st.sampled_from(keys), _odd, max_size=4),
    )
    return st.builds(
        lambda word, data, flat: {"action": word, **data} if flat else {"action": word, "data": data},
        st.sampled_from(words),
        fields,
        st.booleans(),
    )


def frames(bodies: st.SearchStrategy[Body], sub_protos: st.SearchStrategy[int]) -> st.SearchStrategy[Frame]:
    """Frames with any header."""
    return st.builds(
        Frame,
        body=bodies,
        major=st.sampled_from(Major),
        msg_id=UINT32,
        source=UINT32,
        target=UINT32,
        sub_proto=sub_protos,
        trace_id=UINT32,
        hop_limit=UINT8,
        flags=UINT8,
        timestamp=UINT32,
    )
