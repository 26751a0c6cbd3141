"""A conversation with the oracle: every line is answered, and a bad one costs nothing."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from hubauth.oracle.process import MAX_LINE, Lines, Session, answers
from hubauth.oracle.vectors import Case, plain
from hubauth.oracle.vectors_files import FOLDER, load_cases

SCHEMA = msgspec.json.decode((FOLDER / "oracle.schema.json").read_bytes())
REQUESTS = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/request"}]})
ANSWERS = Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": "#/$defs/answer"}]})

CREDENTIAL = "A" * 43
UP = {"kind": "link_up", "link": 1}
REGISTER: dict[str, Any] = {
    "kind": "frame",
    "link": 1,
    "header": {"msg_id": 7},
    "payload": {"action": "register", "data": {"device_id": "d"}},
    "fresh": CREDENTIAL,
}
ADMITTED = {
    "kind": "send",
    "link": 1,
    "header": {"major": 0, "msg_id": 7, "source": 1},
    "payload": {
        "action": "register_resp",
        "data": {
            "code": 1,
            "msg": "ok",
            "device_id": "d",
            "node_id": 2,
            "credential": CREDENTIAL,
            "role": "node",
            "perms": [],
        },
    },
}


class Conversation:
    """Asks in JSON, and holds every line against the schema."""

    def __init__(self) -> None:
        self.session = Session()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        request = {"do": do, **fields}
        REQUESTS.validate(request)
        return self.say(json.dumps(request).encode())

    def say(self, line: bytes) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.session.answer(line))
        ANSWERS.validate(answer)
        return answer


def begun(**policy: Any) -> Conversation:
    conversation = Conversation()
    assert conversation.ask("init", policy=policy)["did"] == "init"
    assert conversation.ask("input", input=UP)["rules"] == ["LINK-1"]
    return conversation


def test_an_input_is_answered_with_outputs_rules_and_digest() -> None:
    answer = begun().ask("input", id=5, input=REGISTER)
    assert (answer["did"], answer["id"]) == ("input", 5)
    assert answer["outputs"] == [ADMITTED]
    assert "REG-1" in answer["rules"]
    assert len(answer["digest"]) == 64


def test_a_refusal_names_its_neutral_reason() -> None:
    wrong = {**REGISTER, "payload": {"action": "auth", "data": {"device_id": "x", "credential": "wrong"}}}
    (output,) = begun().ask("input", input=wrong)["outputs"]
    assert (output["reason"], output["payload"]["data"]["code"]) == ("not_admitted", 4001)


def test_a_state_can_be_taken_elsewhere() -> None:
    one = begun()
    digest = one.ask("input", input=REGISTER)["digest"]
    told = one.ask("state")
    assert told["digest"] == digest
    assert ["registry", "d", [2, False, True]] in told["state"]
    other = Conversation()
    assert other.ask("init", policy=told["policy"], state=told["state"])["digest"] == digest
    back = other.ask("input", input={"kind": "link_down", "link": 1})
    assert back == one.ask("input", input={"kind": "link_down", "link": 1})


def test_reset_goes_back_to_the_beginning() -> None:
    conversation = begun()
    before = conversation.ask("state")
    conversation.ask("input", input=REGISTER)
    conversation.ask("reset")
    conversation.ask("input", input=UP)
    assert conversation.ask("state") == before


def test_every_vector_is_answered_as_it_is_written() -> None:
    """The same JSON in the vectors and on the lines."""
    cases = [case for case in load_cases() if isinstance(case, Case)][::20]
    assert len(cases) > 40
    for case in cases:
        session = Session()
        begins = {"journal": case.journal} if isinstance(case.state, msgspec.UnsetType) else {"state": case.state}
        begin = msgspec.json.encode({"do": "init", "policy": case.policy, **begins})
        assert json.loads(session.answer(begin))["digest"] == case.digest
        for one in case.steps:
            answer = json.loads(session.answer(msgspec.json.encode({"do": "input", "input": one.input})))
            assert answer["outputs"] == plain(one.outputs)
            assert (answer["rules"], answer["digest"]) == (list(one.rules), one.digest)


# Comparing


def test_what_a_hub_did_is_judged_with_the_rule_its_text_and_both_sides() -> None:
    conversation = begun()
    before = conversation.ask("state")["digest"]
    wrong = json.loads(json.dumps(ADMITTED).replace('"node_id": 2', '"node_id": 1'))
    answer = conversation.ask("compare", input=REGISTER, outputs=[wrong])
    assert (answer["verdict"], answer["digest"]) == ("violates", before)
    why = answer["why"]
    assert (why["rule"], why["level"]) == ("REG-2", "MUST")
    assert why["text"].startswith("Node ids are allocated")
    assert '"node_id":2' in why["expected"] and '"node_id":1' in why["seen"].replace(" ", "")
    assert answer["outputs"] == [ADMITTED]


def test_what_conforms_is_taken() -> None:
    conversation = begun()
    answer = conversation.ask("compare", input=REGISTER, outputs=[ADMITTED])
    assert answer["verdict"] == "conforms" and "why" not in answer
    assert answer["digest"] == begun().ask("input", input=REGISTER)["digest"]


def test_what_may_still_come_cannot_be_told() -> None:
    conversation = begun()
    answer = conversation.ask("compare", input=REGISTER, outputs=[], complete=False)
    assert answer["verdict"] == "cannot_tell"
    assert answer["why"]["missing"] == "whether the hub does nothing more"
    assert conversation.ask("compare", input=REGISTER, outputs=[ADMITTED])["verdict"] == "conforms"


def test_timers_and_notes_of_a_hub_are_its_own_business() -> None:
    timer, note = {"kind": "start_timer", "timer": 99, "seconds": 1}, {"kind": "note", "note": "dropped", "rule": "X-1"}
    answer = begun().ask("compare", input=REGISTER, outputs=[timer, ADMITTED, note])
    assert answer["verdict"] == "conforms"


# Bad lines

BAD_LINES: tuple[tuple[str, bytes, str], ...] = (
    ("not JSON", b"{", "truncated"),
    ("not UTF-8", b'{"do":"state\xff"}', ""),
    ("no object", b"[]", "object"),
    ("nothing to do", b"{}", "do"),
    ("unknown request", b'{"do":"dance"}', "dance"),
    ("unknown field", b'{"do":"reset","now":true}', "now"),
    ("no input", b'{"do":"input"}', "input"),
    ("unknown input", b'{"do":"input","input":{"kind":"earthquake"}}', "earthquake"),
    ("no link", b'{"do":"input","input":{"kind":"link_up"}}', "link"),
    ("a negative link", b'{"do":"input","input":{"kind":"link_up","link":-1}}', "$.input.link"),
    ("no payload", b'{"do":"input","input":{"kind":"frame","link":1}}', "payload"),
    ("two payloads", b'{"do":"input","input":{"kind":"frame","link":1,"payload":{},"payload_hex":""}}', "one of them"),
    ("odd hexadecimal", b'{"do":"input","input":{"kind":"frame","link":1,"payload_hex":"abc"}}', "payload_hex"),
    (
        "a header too far",
        b'{"do":"input","input":{"kind":"frame","link":1,"header":{"major":4},"payload":{}}}',
        "major",
    ),
    ("an unknown policy", b'{"do":"init","policy":{"dialect":"klingon"}}', "dialect"),
    ("an unknown policy key", b'{"do":"init","policy":{"dialekt":"auth"}}', "dialekt"),
    (
        "a device provisioned twice",
        b'{"do":"init","policy":{"provisioned":[{"device_id":"a","node_id":2},{"device_id":"a","node_id":3}]}}',
        "device_id is provisioned twice",
    ),
    (
        "a node provisioned twice",
        b'{"do":"init","policy":{"provisioned":[{"device_id":"a","node_id":2},{"device_id":"b","node_id":2}]}}',
        "node_id is provisioned twice",
    ),
    ("its own node provisioned", b'{"do":"init","policy":{"provisioned":[{"device_id":"a","node_id":1}]}}', "own node"),
    ("an empty state", b'{"do":"init","state":[]}', "$.state"),
    ("half a state", b'{"do":"init","state":[["hub","node_id",1]]}', "$.state"),
    ("no entries", b'{"do":"init","state":[1,{}]}', "$.state"),
    ("a header version", b'{"do":"init","version":3}', "version"),
    (
        "outputs that are inputs",
        b'{"do":"compare","input":{"kind":"link_up","link":2},"outputs":[{"kind":"timer"}]}',
        "timer",
    ),
    ("deep nesting", b'{"do":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ("a policy that is wrong inside", b'{"do":"input","input":{"kind":"policy","policy":{"assist":7}}}', "assist"),
)


@pytest.mark.parametrize(("line", "part"), [row[1:] for row in BAD_LINES], ids=[row[0] for row in BAD_LINES])
def test_a_bad_line_gets_an_error_and_changes_nothing(line: bytes, part: str) -> None:
    conversation = begun()
    before = conversation.ask("state")
    answer = conversation.say(line)
    assert answer["did"] == "error" and part in answer["error"]
    assert conversation.ask("state") == before
    assert conversation.ask("input", input=REGISTER)["outputs"] == [ADMITTED]


def test_before_init_there_is_nothing_to_ask() -> None:
    for request in ("state", "reset"):
        assert "init" in Conversation().ask(request)["error"]
    assert "init" in Conversation().ask("input", input=UP)["error"]


def test_an_error_answers_to_the_name_of_its_request_where_that_can_be_read() -> None:
    conversation = Conversation()
    assert conversation.say(b'{"do":"dance","id":"x"}')["id"] == "x"
    assert "id" not in conversation.say(b'{"do":"dance","id":[]}')
    assert "id" not in conversation.say(b'{"id":"x"')


def test_a_state_that_leads_nowhere_is_an_error_and_not_the_end() -> None:
    conversation = Conversation()
    policy = {"has_parent": True, "node_id": 5, "credential": "c" * 43}
    conversation.ask("init", policy=policy)
    conversation.ask("input", input={"kind": "link_up", "link": 0})
    held = ["pending", 9, ["held", "revoke", 0, 1, 0, 0, "", 7, "", None, 0, 0, False, False, False, None, False, 0]]
    state = [*conversation.ask("state")["state"], held]
    assert conversation.ask("init", policy=policy, state=state)["did"] == "init"
    before = conversation.ask("state")
    data = {"code": 1, "node_id": 7, "role": "", "perms": []}
    header = {"major": 0, "msg_id": 9, "source": 1}
    answer = {"action": "get_perms_resp", "data": data}
    happened = {"kind": "frame", "link": 0, "header": header, "payload": answer}
    assert "cannot go on" in conversation.ask("input", input=happened)["error"]
    assert "cannot go on" in conversation.ask("compare", input=happened)["error"]
    assert conversation.ask("state") == before


words = st.sampled_from(
    ["do", "init", "input", "compare", "state", "kind", "frame", "link", "payload", "policy", "header"]
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)
requests = st.fixed_dictionaries(
    {"do": st.sampled_from(["init", "input", "compare", "state", "reset"])},
    optional={"input": st.sampled_from([UP, REGISTER]) | anything, "outputs": anything, "policy": anything},
)


@given(st.lists(st.binary(max_size=30) | st.one_of(anything, requests).map(msgspec.json.encode), max_size=8))
def test_any_line_is_answered_by_one_line(lines: list[bytes]) -> None:
    session = begun().session
    for line in lines:
        answer = session.answer(line)
        assert b"\n" not in answer
        assert "did" in json.loads(answer)


links = st.integers(0, 3)
happenings = st.one_of(
    st.fixed_dictionaries({"kind": st.sampled_from(["link_up", "link_down"]), "link": links}),
    st.fixed_dictionaries({"kind": st.just("timer"), "timer": st.integers(0, 5)}),
    st.fixed_dictionaries({"kind": st.just("revoke"), "device_id": st.sampled_from("ab")}),
    st.fixed_dictionaries(
        {
            "kind": st.just("frame"),
            "link": links,
            "header": st.fixed_dictionaries({"major": st.integers(0, 3), "msg_id": st.integers(0, 4)}),
            "payload": st.fixed_dictionaries(
                {
                    "action": st.sampled_from(["register", "auth", "auth_resp", "revoke", "offline", "assist_auth"]),
                    "data": st.fixed_dictionaries(
                        {}, optional={"device_id": st.sampled_from("ab"), "code": st.just(1), "node_id": links}
                    ),
                }
            ),
            "fresh": st.just(CREDENTIAL),
        }
    ),
)


@given(st.booleans(), st.lists(happenings, max_size=12))
def test_what_the_reference_did_conforms_to_itself(has_parent: bool, inputs: list[dict[str, Any]]) -> None:
    """Unless it issues one credential twice, as it is told to here."""
    one, other = Session(), Session()
    policy = {"has_parent": has_parent, "node_id": 5, "credential": "c" * 43} if has_parent else {}
    for session in (one, other):
        session.answer(msgspec.json.encode({"do": "init", "policy": policy}))
    for number, happened in enumerate(inputs):
        told = {**happened, "fresh": f"{number:043d}"} if "fresh" in happened else happened
        took = json.loads(one.answer(msgspec.json.encode({"do": "input", "input": told})))
        assert took["did"] == "input"
        request = {"do": "compare", "input": told, "outputs": took["outputs"]}
        judged = json.loads(other.answer(msgspec.json.encode(request)))
        assert judged["verdict"] == "conforms", judged
        assert judged["digest"] == took["digest"]


# Lines


@given(st.lists(st.binary(max_size=12)), st.integers(1, 20))
def test_how_a_stream_is_cut_makes_no_difference(parts: list[bytes], limit: int) -> None:
    whole = b"".join(parts)
    lines, at_once = Lines(limit), Lines(limit)
    cut = [line for part in parts for line in lines.feed(part)] + list(lines.end())
    assert cut == list(at_once.feed(whole)) + list(at_once.end())
    expected = [line if len(line) <= limit else None for line in whole.split(b"\n")]
    assert cut == (expected[:-1] if expected[-1] == b"" else expected)


def test_a_line_that_is_too_long_is_answered_once_and_the_next_is_served() -> None:
    session, lines = Session(), Lines()
    chunk = b"x" * 65536
    said: list[bytes] = []
    for _ in range(MAX_LINE // len(chunk) + 2):
        said += answers(session, lines.feed(chunk))
    assert said == []
    said += answers(session, lines.feed(b'\n\n  \n{"do":"init"}\n{"do":"st'))
    said += answers(session, lines.feed(b'ate"}'))
    said += answers(session, lines.end())
    assert [json.loads(line)["did"] for line in said] == ["error", "init", "state"]
