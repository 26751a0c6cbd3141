"""The canonical encoding and the digest."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from immutables import Map

from hubauth.core.canonical import TABLES, Digest, advance, decode_state, digest_of, encode_entry, encode_state
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import LinkUp
from hubauth.core.messages import (
    Grant,
    Revoke,
)
from hubauth.core.model import Entry, Neighbour, Owed, Registration, Route, Session, State
from hubauth.core.policy import Policy
from hubauth.core.step import step
from tests.core.scenario import eventful
from tools.catalogue import ROOT


def test_an_entry_is_one_compact_json_array() -> None:
    assert encode_entry("registry", "d", Registration(2)) == b'["registry","d",[2,false,true]]'
    assert encode_entry("links", 3, False) == b'["links",3,false]'
    assert encode_entry("hub", "announcing", (1, 2)) == b'["hub","announcing",[1,2]]'
    assert encode_entry("neighbours", 0, Neighbour(3, 2, 1, 0, "j")) == b'["neighbours",0,[3,2,1,0,"j",false]]'
    assert encode_entry("owed", (7, Revoke("a", 0, "c")), Owed(3, 9)) == b'["owed",[7,["revoke","a",0,"c",0]],[3,9]]'


def test_a_state_is_its_entries_as_sorted_lines() -> None:
    state = State(
        node_id=1,
        links=Map({1: None, 2: Session("d", 2, False)}),
        registry=Map({"d": Registration(2, True)}),
        whitelist=Map({"d": Entry(2, "c", True)}),
        directory=Map({2: Route("d", 2, True)}),
        perms=Map({9: Grant("r", ("p", "q"))}),
        beaten=Map({"p": "old"}),
    )
    lines = encode_state(state).split(b"\n")
    assert lines == sorted(lines)
    assert b'["links",1,false]' in lines and b'["links",2,["d",2,false,false]]' in lines
    assert b'["whitelist","d",[2,"c",true]]' in lines and b'["directory",2,["d",2,true]]' in lines
    assert b'["perms",9,["r",["p","q"]]]' in lines and b'["beaten","p","old"]' in lines
    assert b'["hub","announcing",null]' in lines and b'["hub","node_id",1]' in lines
    assert len(lines) == 12 + 7
    assert decode_state(Policy(), encode_state(state)).directory == state.directory


def test_an_encoding_reads_back_as_the_same_state_with_its_indexes() -> None:
    hub = eventful()
    tables = [table for table in TABLES[1:] if getattr(hub.state, table)]
    assert tables == ["links", "whitelist", "directory", "perms", "pending", "neighbours", "owed", "beaten"]
    again = decode_state(hub.policy, encode_state(hub.state))
    assert again == hub.state and again.index == hub.state.index
    assert encode_state(again) == encode_state(hub.state)


def test_every_table_and_every_field_counts_in_the_digest() -> None:
    state = eventful().state
    seen = {digest_of(state).hex()}
    others: tuple[tuple[str, Any], ...] = (
        ("node_id", 6),
        ("credential", "other"),
        ("next_node_id", 9),
        ("next_msg_id", 9),
        ("parent_present", False),
        ("parent_node", 9),
        ("perms_epoch", 9),
        ("announcing", (1, 1)),
        ("announce_timer", 9),
        ("registry", Map({"d": Registration(2)})),
        ("links", state.links.set(99, None)),
        ("whitelist", Map()),
        ("directory", Map()),
        ("perms", Map()),
        ("pending", Map()),
        ("neighbours", Map()),
        ("owed", Map()),
        ("beaten", Map()),
    )
    for name, value in others:
        seen.add(digest_of(evolve(state, **{name: value})).hex())
    assert len(seen) == 19


def test_entries_of_different_tables_are_not_confused() -> None:
    assert digest_of(State(beaten=Map({"a": "b"}))) != digest_of(State(beaten=Map({"b": "a"})))
    assert len(digest_of(State()).sums) == len(TABLES)
    assert all(0 <= part < 1 << 256 for part in digest_of(eventful().state).sums)


def test_the_digest_is_the_hash_over_the_tables_sums() -> None:
    assert Digest((1, 2)).hex() == sha256(bytes(31) + b"\1" + bytes(31) + b"\2").hexdigest()
    links = int.from_bytes(sha256(b'["links",1,false]').digest(), "big")
    others = int.from_bytes(sha256(b'["links",2,false]').digest(), "big")
    digest = digest_of(State(links=Map({1: None, 2: None})))
    assert digest.sums[TABLES.index("links")] == (links + others) % (1 << 256)
    assert digest.sums[TABLES.index("registry")] == 0


def test_a_step_that_changes_nothing_advances_nothing() -> None:
    state = initial_state(Policy())
    digest = digest_of(state)
    done = step(Policy(), evolve(state, links=Map({1: None})), LinkUp(1))
    assert done.changes == () and advance(digest, done) is digest


def test_indexes_are_no_part_of_the_digest() -> None:
    state = eventful().state
    assert digest_of(evolve(state, index=State().index)) == digest_of(state)


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"x",
        b"[]",
        b'["hub","node_id"]',
        b'["hub","node_id",1]',
        b'["nonsense",1,2]',
        b'["registry","d",[1]]\nx',
        b'["pending",1,[1]]',
        b'["neighbours",1,[1]]',
        b'["owed",1,[1,1]]',
        b'["owed",[1,["revoke","d",0]],[1,1]]',
        b"\xff",
    ],
)
def test_what_is_no_encoding_is_a_value_error(encoded: bytes) -> None:
    with pytest.raises(ValueError):
        decode_state(Policy(), encoded)


WRONG: st.SearchStrategy[Any] = st.sampled_from([None, "x", -1, 1.5, [], [[]], {}, True, ["a"], [1, 2, 3]])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_encoding_is_read_or_is_a_value_error(data: st.DataObject) -> None:
    hub = EVENTFUL
    lines = encode_state(hub.state).split(b"\n")
    at = data.draw(st.integers(min_value=0, max_value=len(lines) - 1))
    row = json.loads(lines[at])
    place = data.draw(st.integers(min_value=0, max_value=2))
    if place == 2 and isinstance(row[2], list) and row[2] and data.draw(st.booleans()):
        row[2][data.draw(st.integers(min_value=0, max_value=len(row[2]) - 1))] = data.draw(WRONG)
    else:
        row[place] = data.draw(WRONG)
    lines[at] = json.dumps(row).encode()
    with suppress(ValueError):
        decode_state(hub.policy, b"\n".join(lines))


@pytest.mark.parametrize("seeds", [("0", "1", "4242")])
def test_the_same_scenario_gives_the_same_bytes_under_any_hash_seed(seeds: tuple[str, ...]) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.core.scenario"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in seeds
    ]
    printed = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0] * len(seeds)
    assert len(printed) == 1
    assert len(printed.pop()) > 20_000


EVENTFUL = eventful()
