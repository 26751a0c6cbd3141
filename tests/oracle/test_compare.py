"""What another hub did is judged by what it did, not by what it is free to choose."""

import re
from collections.abc import Iterator

import msgspec
import pytest

from hubauth.core.inputs import LinkUp
from hubauth.core.model import State
from hubauth.core.policy import Dialect, Policy, Provisioned
from hubauth.judge.verdicts import Outcome
from hubauth.oracle.compare import Model
from hubauth.oracle.forms import (
    CloseForm,
    HeaderForm,
    InputForm,
    LinkDownForm,
    LinkUpForm,
    OutputForm,
    PolicyChangedForm,
    ReceivedForm,
    RevokeForm,
    SendForm,
    TimerForm,
    Unsayable,
    input_form,
    policy_form,
    read_input,
)
from hubauth.oracle.vectors import Case, StepForm, begin
from hubauth.oracle.vectors_files import load_cases
from hubauth.specification import rules
from hubauth.wire.header import Version


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found = [case for case in load_cases() if isinstance(case, Case)]
    assert len(found) > 900
    return found


def visible(one: StepForm) -> list[OutputForm]:
    return [output for output in one.outputs if isinstance(output, SendForm | CloseForm)]


@pytest.mark.parametrize("version", Version)
def test_what_the_reference_did_conforms_and_leads_to_the_same_state(cases: list[Case], version: Version) -> None:
    for case in cases:
        model = model_of(case, version)
        for one in case.steps:
            found = model.compare(one.input, one.outputs)
            assert found.outcome is Outcome.CONFORMS, (case.id, found.difference)
            assert found.did == one
            assert model.digest == one.digest


def model_of(case: Case, version: Version = Version.V1) -> Model:
    policy, state = begin(case)
    return Model(policy, version, state)


# Free choices

CREDENTIAL = re.compile(rb'"c([0-9]{42})"')


def chosen_otherwise(case: Case) -> Iterator[StepForm]:
    """The case as a hub plays it that issues other credentials and counts its own requests from another number."""
    encoded = CREDENTIAL.sub(rb'"Z\1"', msgspec.json.encode(case.steps))
    names: dict[tuple[int, int], int] = {}
    for one in msgspec.json.decode(encoded, type=tuple[StepForm, ...]):
        happened = _renamed_input(one.input, names)
        yield msgspec.structs.replace(one, input=happened, outputs=[_renamed(output, names) for output in one.outputs])


def _renamed(output: OutputForm, names: dict[tuple[int, int], int]) -> OutputForm:
    if not isinstance(output, SendForm) or output.header.major != 3 or output.header.sub_proto != 2:
        return output
    if b'"action":"revoke"' in output.content:
        return output  # its MsgID is a number that says more
    number = names[output.link, output.header.msg_id] = output.header.msg_id + 70_000
    return msgspec.structs.replace(output, header=msgspec.structs.replace(output.header, msg_id=number))


def _renamed_input(happened: InputForm, names: dict[tuple[int, int], int]) -> InputForm:
    answers = isinstance(happened, ReceivedForm) and happened.header.major in (0, 1)
    if isinstance(happened, ReceivedForm) and answers and b'"revoke_resp"' not in happened.content:
        number = names.get((happened.link, happened.header.msg_id))
        if number is not None:
            return msgspec.structs.replace(happened, header=msgspec.structs.replace(happened.header, msg_id=number))
    if isinstance(happened, TimerForm):
        renamed = [number for (_, own), number in names.items() if own == happened.timer]
        return TimerForm(timer=renamed[-1]) if renamed else happened
    return happened


def test_other_credentials_and_msg_ids_conform(cases: list[Case]) -> None:
    renamed = 0
    for case in cases:
        model = model_of(case)
        for one, written in zip(chosen_otherwise(case), case.steps, strict=True):
            found = model.compare(one.input, one.outputs)
            assert found.outcome is Outcome.CONFORMS, (case.id, one, found.difference)
            renamed += one != written
    assert renamed > 1000


def test_a_credential_must_be_well_formed_and_new() -> None:
    model = Model(Policy())
    for link in (1, 2):
        model.compare(LinkUpForm(link=link), [])
    short = model.compare(*registering(1, "d", 2, "short"))
    assert short.outcome is Outcome.VIOLATES
    assert short.difference is not None and short.difference.rule == "REG-4"
    assert model.compare(*registering(1, "d", 2, "A" * 43)).outcome is Outcome.CONFORMS
    again = model.compare(*registering(2, "e", 3, "A" * 43))
    assert again.outcome is Outcome.VIOLATES
    assert again.difference is not None and again.difference.rule == "REG-4"
    assert model.compare(*registering(2, "e", 3, "B" * 43)).outcome is Outcome.CONFORMS


def registering(link: int, device_id: str, node_id: int, credential: str) -> tuple[InputForm, list[OutputForm]]:
    """A register, and the answer of a hub that issues this."""
    asked = {"action": "register", "data": {"device_id": device_id}}
    data = {"code": 1, "msg": "welcome", "device_id": device_id, "node_id": node_id, "credential": credential}
    answered = {"action": "register_resp", "data": {**data, "role": "node", "perms": []}}
    happened = {"kind": "frame", "link": link, "header": {"msg_id": 7}, "payload": asked}
    output = {"kind": "send", "link": link, "header": {"major": 0, "msg_id": 7, "source": 1}, "payload": answered}
    encode, decode = msgspec.json.encode, msgspec.json.decode
    return decode(encode(happened), type=ReceivedForm), [decode(encode(output), type=SendForm)]


# Violations


def test_what_is_left_out_violates_or_cannot_be_told_and_changes_nothing(cases: list[Case]) -> None:
    judged = 0
    for case in cases:
        *before, last = case.steps
        due = visible(last)
        if not due:
            continue
        model = model_of(case)
        for one in before:
            model.compare(one.input, one.outputs)
        digest = model.digest
        found = model.compare(last.input, due[:-1])
        assert found.outcome is Outcome.VIOLATES, case.id
        assert found.difference is not None and found.difference.rule in rules(), case.id
        open_ended = model.compare(last.input, due[:-1], complete=False)
        assert open_ended.outcome is Outcome.CANNOT_TELL and open_ended.difference is not None
        assert model.digest == digest
        assert model.compare(last.input, due).outcome is Outcome.CONFORMS
        assert model.digest == last.digest
        judged += 1
    assert judged > 700


def test_what_nothing_asked_for_violates(cases: list[Case]) -> None:
    for case in cases[::10]:
        model = model_of(case)
        for one in case.steps:
            up = sorted(model.state.links)
            if up:
                more = [*one.outputs, CloseForm(link=up[0])]
                assert model.compare(one.input, more).outcome is Outcome.VIOLATES, case.id
            model.compare(one.input, one.outputs)


def test_the_header_version_decides_whether_trace_id_counts() -> None:
    happened, (output,) = registering(1, "d", 2, "A" * 43)
    assert isinstance(happened, ReceivedForm)
    traced = msgspec.structs.replace(happened, header=msgspec.structs.replace(happened.header, trace_id=9))
    for version, outcome in ((Version.V1, Outcome.CONFORMS), (Version.V2, Outcome.VIOLATES)):
        model = Model(Policy(), version)
        model.take(LinkUpForm(link=1))
        assert model.compare(traced, [output]).outcome is outcome


# The rest of the model


def test_taking_and_comparing_may_be_mixed() -> None:
    model = Model(Policy(provisioned=(Provisioned("admin", 9, "s" * 43, "admin"),)))
    model.take(LinkUpForm(link=1))
    model.compare(*registering(1, "d", 2, "A" * 43))
    done = model.take(RevokeForm(device_id="d"))
    assert "REV-5" in done.rules
    assert model.compare(LinkDownForm(link=5), []).outcome is Outcome.CONFORMS
    changed = policy_form(Policy(default_role="guest"))
    assert "LINK-9" in model.take(PolicyChangedForm(policy=changed)).rules
    assert model.policy.default_role == "guest"
    refused = PolicyChangedForm(policy=policy_form(Policy(dialect=Dialect.FLAT)))
    assert "LINK-8" in model.compare(refused, []).did.rules
    assert model.policy.dialect is Dialect.AUTH
    model.reset()
    assert model.policy.default_role == "node" and not model.state.links


def test_a_state_that_no_hub_is_in_is_refused() -> None:
    policy = Policy()
    model = Model(policy)
    model.take(LinkUpForm(link=1))
    model.compare(*registering(1, "d", 2, "A" * 43))
    state = model.state
    assert Model(policy, state=state).digest == model.digest
    with pytest.raises(Unsayable, match="no hub is in such a state"):
        Model(policy, state=State(node_id=1, links=state.links))


def test_where_a_plain_hub_connects_from_is_part_of_a_link() -> None:
    known = LinkUpForm(link=1, hubs=(12,), peer="10.0.0.5")
    happened = read_input(known, Dialect.AUTH)
    assert happened == LinkUp(1, (12,), "10.0.0.5") and input_form(happened) == known
    model = Model(Policy(plain_hubs=(12,)))
    model.take(known)
    assert model.state.plain[1].hubs == (12,)


# Timers


def test_the_timer_of_a_remembered_revoke_is_called_by_the_revoke_that_the_device_sent() -> None:
    admin = Provisioned("admin", 9, "s" * 43, "admin")
    model = Model(Policy(provisioned=(admin,), role_perms={"admin": ("auth.revoke",)}))
    for link, credential in ((4, "s" * 43), (5, "s" * 43)):
        model.take(LinkUpForm(link=link))
        shown = {"action": "auth", "data": {"device_id": "admin", "credential": credential}}
        model.take(ReceivedForm(link=link, payload=msgspec.Raw(msgspec.json.encode(shown))))
    revoke = msgspec.Raw(msgspec.json.encode({"action": "revoke", "data": {"device_id": "d"}}))
    for number in (31, 32):
        model.take(ReceivedForm(link=5, header=HeaderForm(msg_id=number, source=9), payload=revoke))
    assert sorted(one.msg_id for one in model.state.pending.values()) == [31, 32]
    elsewhere = model.compare(TimerForm(timer=32, link=4), [])
    assert elsewhere.outcome is Outcome.CONFORMS and not elsewhere.did.rules
    found = model.compare(TimerForm(timer=32, link=5), [])
    assert found.outcome is Outcome.CONFORMS and "REV-18" in found.did.rules
    assert [one.msg_id for one in model.state.pending.values()] == [31]
    assert "REV-18" in model.take(TimerForm(timer=31, link=5)).rules and not model.state.pending
    with pytest.raises(Unsayable, match="known to the oracle only"):
        read_input(TimerForm(timer=31, link=5), Dialect.AUTH)


# Journals


def said(link: int, msg_id: int, payload: object, **header: int) -> SendForm:
    content = msgspec.Raw(msgspec.json.encode(payload))
    return SendForm(link=link, header=HeaderForm(msg_id=msg_id, **header), payload=content)


def joins(msg_id: int, journal: str, peer: str = "") -> SendForm:
    """What a hub shows its parent."""
    ext = {"v": 1, "journal": journal, "peer": peer, "handled": 0}
    data = {"device_id": "hub", "credential": "c" * 43, "ext": ext}
    return said(0, msg_id, {"action": "auth", "data": data})


def test_a_journal_is_what_the_hub_says_first_and_ever_after() -> None:
    model = Model(Policy(device_id="hub", node_id=5, credential="c" * 43, has_parent=True))
    up, down = LinkUpForm(link=0), LinkDownForm(link=0)
    assert model.compare(up, [joins(9, "drawn by that hub")]).outcome is Outcome.CONFORMS
    ext = {"v": 1, "journal": "of the parent", "peer": "drawn by that hub", "handled": 0}
    answer = {"action": "auth_resp", "data": {"code": 1, "device_id": "hub", "node_id": 5, "ext": ext}}
    header = HeaderForm(major=0, msg_id=9, source=1)
    welcome = ReceivedForm(link=0, header=header, payload=msgspec.Raw(msgspec.json.encode(answer)))
    assert model.compare(welcome, []).outcome is Outcome.CONFORMS
    assert model.state.parent_extended
    assert model.compare(down, []).outcome is Outcome.CONFORMS
    other = model.compare(up, [joins(10, "another", "of the parent")])
    assert other.outcome is Outcome.VIOLATES and other.difference is not None and other.difference.rule == "EXT-2"
    assert model.compare(up, [joins(10, "drawn by that hub", "of the parent")]).outcome is Outcome.CONFORMS


def test_a_hub_that_is_to_speak_the_extension_and_does_not_is_found_out() -> None:
    model = Model(Policy(device_id="hub", node_id=5, credential="c" * 43, has_parent=True))
    plain = said(0, 9, {"action": "auth", "data": {"device_id": "hub", "credential": "c" * 43}})
    found = model.compare(LinkUpForm(link=0), [plain])
    assert found.outcome is Outcome.VIOLATES and found.difference is not None and found.difference.rule == "EXT-2"
