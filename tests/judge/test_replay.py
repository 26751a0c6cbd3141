"""What hubs did is judged by the rules: right is right, and every planted fault is found with its rule."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import msgspec
import pytest

from hubauth.core.canonical import digest_of_encoding
from hubauth.core.policy import Dialect, Policy
from hubauth.forms.events import OUTPUTS, Checkpoint, Event, Kind, Opening, Order, encode_opening
from hubauth.forms.policies import encode_policy, form_of
from hubauth.judge.facts import FactKind
from hubauth.judge.replay import Replay, seal_of
from hubauth.judge.verdicts import CHECKS, Outcome, rule_text
from hubauth.trace.ends import Ends
from hubauth.trace.faults import FAULTS
from hubauth.trace.generate import Blueprint, generate
from tests.trace.harness import Generated, frame, numbered, start, verdict_of

REGISTER = b'{"action":"register","data":{"device_id":"d"}}'
ROOT = Policy(device_id="hub")


def registered(credential: str, node_id: int = 2, **header: int) -> Event:
    answer = b'{"action":"register_resp","data":{"code":1,"msg":"ok","device_id":"d","node_id":%d,"credential":"%s",'
    payload = answer % (node_id, credential.encode()) + b'"role":"node","perms":[]}}'
    return frame(Kind.FRAME_OUT, 1, payload, major=0, msg_id=7, source=1, **header)


def story(*rows: Event, policy: Policy = ROOT) -> list[Event]:
    up = Event("t", "hub", 0, Kind.LINK_UP, 1, 1)
    return numbered([start(policy), up, frame(Kind.FRAME_IN, 1, REGISTER, msg_id=7), *rows])


END = Event("t", "hub", 0, Kind.END, 1)


@cache
def clean(dialect: Dialect = Dialect.AUTH) -> Generated:
    return Generated(Blueprint(hubs=11, devices=80, events=6000, seed=3, dialect=dialect, checkpoint_events=400))


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_clean_trace_conforms(dialect: Dialect) -> None:
    trace = clean(dialect)
    verdicts = trace.verdicts()
    assert len(verdicts) == 11
    assert {verdict.outcome for verdict in verdicts.values()} == {Outcome.CONFORMS}
    assert sum(map(len, trace.seals.values())) > 8
    ends = Ends()
    for event in trace.all:
        ends.feed(event)
    assert ends.verdicts() == []


BETWEEN_HUBS = [name for name, fault in FAULTS.items() if fault.spans and not fault.loses_frame]
"""What is wrong only between hubs is found by the checks that span them: see the tests of ``hubauth.spark``."""


@pytest.mark.parametrize("name", BETWEEN_HUBS)
def test_what_is_wrong_between_hubs_is_no_fault_of_any_one(name: str) -> None:
    trace = Generated(Blueprint(hubs=11, devices=80, events=6000, seed=5, fault=name, checkpoint_events=400))
    assert trace.plan is not None and trace.plan.done
    verdicts = trace.verdicts()
    assert len(verdicts) == (10 if trace.plan.fault.unrecorded else 11)
    assert {verdict.outcome for verdict in verdicts.values()} == {Outcome.CONFORMS}


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in BETWEEN_HUBS])
def test_every_planted_fault_is_found_with_its_rule(name: str) -> None:
    fault = FAULTS[name]
    trace = Generated(Blueprint(hubs=11, devices=80, events=6000, seed=5, fault=name, checkpoint_events=400))
    assert trace.plan is not None and trace.plan.done
    found = {hub: verdict for hub, verdict in trace.verdicts().items() if verdict.outcome is not Outcome.CONFORMS}
    if fault.loses_frame:
        ends = Ends()
        for event in trace.all:
            ends.feed(event)
        found |= {verdict.hub: verdict for verdict in ends.verdicts()}
    assert [(hub, verdict.rule) for hub, verdict in found.items()] == [(trace.plan.hub, fault.rule)]
    verdict = found[trace.plan.hub]
    damaged = fault.rule == "TRACE-1" or name == "missing_checkpoint"
    assert verdict.outcome is (Outcome.CANNOT_TELL if damaged else Outcome.VIOLATES)
    assert (
        verdict.main.text
        and verdict.main.leads
        and (verdict.main.missing or (verdict.main.expected and verdict.main.seen))
    )


def test_the_rules_of_the_faults_exist() -> None:
    assert len(FAULTS) >= 12
    assert all(rule_text(fault.rule) for fault in FAULTS.values())
    assert set(CHECKS) >= {fault.rule for fault in FAULTS.values() if fault.rule.startswith("TRACE")}


def test_the_same_seed_gives_the_same_trace() -> None:
    again = Generated(Blueprint(hubs=11, devices=80, events=6000, seed=3, checkpoint_events=400))
    assert again.all == clean().all


def test_facts_tell_who_was_bound_where() -> None:
    trace = clean()
    kinds: Counter[FactKind] = Counter()
    for rows in trace.rows.values():
        replay = Replay()
        for event in rows:
            replay.feed(event)
        assert replay.finish().outcome is Outcome.CONFORMS
        kinds.update(fact.kind for fact in [*replay.take_facts(), *replay.take_last_facts()])
        assert replay.take_facts() == []
    assert set(kinds) == set(FactKind) - {FactKind.KNOWN}
    assert kinds[FactKind.ISSUED] < kinds[FactKind.ADMITTED]


def test_a_replay_can_begin_at_any_checkpoint() -> None:
    kept: list[Checkpoint] = []
    rows: list[Event] = []
    generate(Blueprint(hubs=1, devices=30, events=2000, checkpoint_events=300), rows.append, kept.append)
    bounds = [*(checkpoint.sequence for checkpoint in kept), rows[-1].sequence + 1]
    assert len(kept) >= 5
    for at, checkpoint in enumerate(kept):
        replay = Replay.resume(checkpoint)
        for event in rows[bounds[at] : bounds[at + 1]]:
            replay.feed(event)
        if at + 1 < len(kept):
            assert replay.seal() == seal_of(kept[at + 1])
        assert replay.finish().outcome is Outcome.CONFORMS
    assert seal_of(msgspec.structs.replace(kept[0], state=kept[1].state)).digest == ""
    assert seal_of(msgspec.structs.replace(kept[0], state=b"nonsense")).digest == ""


def test_a_state_to_begin_with_that_cannot_be_read_leaves_the_hub_undecided() -> None:
    state = b'["hub","no such field",1]'
    digest = digest_of_encoding(state).hex()
    opening = Opening(Order.HANDLED, form_of(ROOT), digest)
    begins = Checkpoint("t", "hub", 0, digest, encode_policy(ROOT), state)
    assert seal_of(begins).digest == digest
    row = Event("t", "hub", 0, Kind.START, 1, payload=encode_opening(opening))
    verdict = verdict_of([row], begins=begins)
    assert (verdict.outcome, verdict.rule) == (Outcome.CANNOT_TELL, "TRACE-3")


# Small ones, by hand


def test_what_is_free_is_taken_from_what_was_seen() -> None:
    assert verdict_of(story(registered("A" * 43), END)).outcome is Outcome.CONFORMS
    assert verdict_of(story(registered("A" * 43, node_id=70), END)).outcome is Outcome.CONFORMS


def test_a_foreign_hub_writes_json_its_own_way() -> None:
    answer = registered("A" * 43)
    payload = answer.payload.replace(b'"msg":"ok",', b'"more": [1], "msg": "welcome", ')
    assert verdict_of(story(msgspec.structs.replace(answer, payload=payload), END)).outcome is Outcome.CONFORMS


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (registered("short"), "REG-4"),
        (registered("A" * 43, node_id=1), "REG-2"),
        (registered("A" * 43, target=9), "FRAME-14"),
        (msgspec.structs.replace(registered("A" * 43), source=5), "FRAME-12"),
        (msgspec.structs.replace(registered("A" * 43), payload=b"?"), "MSG-10"),
        (msgspec.structs.replace(registered("A" * 43), link=2), "REG-13"),
        (Event("t", "hub", 0, Kind.CLOSE, 1, 1), "REG-13"),
    ],
)
def test_what_is_not_free_is_compared(answer: Event, rule: str) -> None:
    verdict = verdict_of(story(answer, END))
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, rule), verdict


def test_a_missing_answer_is_a_violation_only_if_it_could_have_been_there() -> None:
    assert verdict_of(story(END)).outcome is Outcome.VIOLATES
    cut = verdict_of(story())
    assert cut.outcome is Outcome.CANNOT_TELL and cut.main.missing == "the end of the trace"


def test_a_run_that_was_cut_in_the_middle_of_a_step_proves_nothing() -> None:
    cut = verdict_of(numbered([*story(), start(ROOT)]))
    assert (cut.outcome, cut.main.missing) == (Outcome.CANNOT_TELL, "the end of the trace")
    assert verdict_of(numbered([*story(), END, start(ROOT)])).outcome is Outcome.VIOLATES


def test_msg_ids_of_the_hubs_own_requests_are_its_own_business() -> None:
    trace = clean()
    rows = [_renamed(event) for event in trace.rows["hub-1"] if event.kind is not Kind.CHECKPOINT]
    assert rows != trace.rows["hub-1"]
    assert verdict_of(numbered(rows)).outcome is Outcome.CONFORMS


def _renamed(event: Event) -> Event:
    """As if the hub counted its requests to its parent by sevens."""
    is_request = event.kind is Kind.FRAME_OUT and event.major == 3
    is_answer = event.kind is Kind.FRAME_IN and event.major in (0, 1)
    if event.link != 0 or event.sub_proto != 2 or b'"revoke' in event.payload or not (is_request or is_answer):
        return event
    return msgspec.structs.replace(event, msg_id=7 * event.msg_id + 1000)


@pytest.mark.parametrize(
    ("rows", "rule", "missing"),
    [
        ([], "", "any row at all"),
        ([END], "TRACE-2", "everything before row 0"),
        ([Event("t", "hub", 0, Kind.START, payload=b'{"order":"handled"}')], "TRACE-2", "the policy of the hub"),
        ([Event("t", "hub", 0, Kind.START, payload=b"{}")], "TRACE-5", "a readable start row"),
        (numbered([start(ROOT), Event("t", "hub", 1, Kind.LINK_UP), END]), "TRACE-5", "a readable row"),
        (numbered([start(ROOT), Event("t", "hub", 1, Kind.POLICY, payload=b"?"), END]), "TRACE-5", "a readable row"),
        (numbered([start(ROOT), Event("t", "hub", 1, Kind.OPERATOR, payload=b"{}"), END]), "TRACE-5", "a readable row"),
        ([start(ROOT), Event("t", "hub", 4, Kind.LINK_UP, link=1)], "TRACE-1", "rows 1 to 3"),
        ([start(ROOT), Event("t", "hub", 0, Kind.LINK_UP, link=1)], "TRACE-1", "the order of the rows"),
    ],
)
def test_what_is_missing_is_said(rows: Sequence[Event], rule: str, missing: str) -> None:
    verdict = verdict_of(rows)
    assert (verdict.outcome, verdict.rule, verdict.main.missing) == (Outcome.CANNOT_TELL, rule, missing)


def test_nothing_happens_without_a_cause() -> None:
    verdict = verdict_of(numbered([start(ROOT), registered("A" * 43), END]))
    assert (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "TRACE-2")


def test_after_the_first_mistake_nothing_changes_the_verdict() -> None:
    rows = story(registered("short"), END)
    rows += [msgspec.structs.replace(END, sequence=99)]
    assert verdict_of(rows).rule == "REG-4"


def test_outputs_of_different_links_may_be_logged_in_any_order() -> None:
    trace = clean()
    rows = trace.rows["hub-0"]
    swapped = 0
    result = list(rows)
    for at in range(len(rows) - 1):
        first, second = result[at], result[at + 1]
        if first.kind in OUTPUTS and second.kind in OUTPUTS and first.link != second.link:
            result[at], result[at + 1] = second, first
            swapped += 1
    assert swapped > 10
    assert verdict_of(numbered(result)).outcome is Outcome.CONFORMS


def test_a_connection_whose_beginning_is_missing_is_not_compared() -> None:
    trace = Generated(Blueprint(hubs=2, devices=10, events=1500, seed=3))
    for cut in trace.rows:
        ends = Ends()
        for hub, rows in trace.rows.items():
            for event in rows[200:] if hub == cut else rows:
                ends.feed(event)
        assert ends.verdicts() == []
