"""Decisions that chance reaches badly, over every small table: within the bounds given here this is a proof.

Each is stated as what must be true of the outcome, not as the way to it. Every case goes through ``step``.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import combinations, permutations, product
from typing import Any

import msgspec
import pytest
import z3
from attrs import evolve
from immutables import Map

from hubauth.core import perms, presence, routing
from hubauth.core.indexes import derive_index, initial_state
from hubauth.core.inputs import PARENT, Link, LinkUp, OperatorInvalidate, Received
from hubauth.core.invariants import check_state
from hubauth.core.messages import (
    ENTRANCE,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    Frame,
    GetPerms,
    Grant,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.core.model import PARENT_NEIGHBOUR, Entry, Neighbour, Pending, Registration, Route, Session, State
from hubauth.core.ordered import OrderedIds
from hubauth.core.outputs import Send
from hubauth.core.perms import MAX_PAGE, select_page
from hubauth.core.policy import Policy, Provisioned
from hubauth.core.step import step
from hubauth.core.transition import Step, Transition
from hubauth.wire.dialects.extension import read_ext
from model_tests import outcomes

step_module = sys.modules["hubauth.core.step"]
HUB, PARENT_NODE, DEVICE_NODE, CHILD_NODE, PLAIN_NODE = 1, 2, 5, 6, 7
STRANGER, DEVICE, CHILD, PLAIN = 1, 2, 3, 4
"""Links: somebody without a session, a device, an extended child hub, a plain one."""
SESSIONS: dict[Link, Session | None] = {
    STRANGER: None,
    DEVICE: Session("dev", DEVICE_NODE, is_hub=False),
    CHILD: Session("child", CHILD_NODE, is_hub=True, extended=True),
    PLAIN: Session("plain", PLAIN_NODE, is_hub=True),
}
C = "c" * 43


def below(policy: Policy, present: bool = True, **tables: Any) -> State:
    """A hub with everybody of ``SESSIONS`` on its links, and a parent that is present or not."""
    routes = {one.node_id: Route(one.device_id, one.node_id, True) for one in SESSIONS.values() if one is not None}
    links = Map({**SESSIONS, **({PARENT: None} if present else {})})
    directory = Map(routes).update(tables.pop("directory", Map()))
    entries = Map(
        {one.device_id: Entry(one.node_id, C, is_hub=one.is_hub) for one in SESSIONS.values() if one is not None}
    )
    state = evolve(
        initial_state(policy, "journal"),
        node_id=HUB,
        links=links,
        directory=directory,
        whitelist=entries.update(tables.pop("whitelist", Map())),
        parent_present=present,
        parent_extended=present,
        parent_node=PARENT_NODE if present else 0,
        neighbours=Map(
            {key: Neighbour(journal=f"journal {key}") for key in (PARENT_NEIGHBOUR, CHILD_NODE, PLAIN_NODE)}
        ),
        **tables,
    )
    return evolve(state, index=derive_index(policy, state))


def sent(done: Step) -> list[tuple[Link, Frame]]:
    return [(output.link, output.frame) for output in done.outputs if isinstance(output, Send)]


# BIND-10: contradiction of bindings

_DEVICES, _NODES = ("a", "b"), (20, 21)


def one_to_one() -> list[dict[str, int]]:
    """Every partial map of the devices to the nodes that gives no node twice."""
    maps: list[dict[str, int]] = [{}]
    for size in (1, 2):
        maps += [
            dict(zip(names, nodes, strict=True))
            for names in combinations(_DEVICES, size)
            for nodes in permutations(_NODES, size)
        ]
    return maps


def agree(bindings: Iterable[tuple[str, int]]) -> bool:
    known = set(bindings)
    return len({device for device, _ in known}) == len({node for _, node in known}) == len(known)


def test_an_announcement_is_believed_if_no_binding_that_is_known_speaks_against_it() -> None:
    seen = 0
    for configured, registered, stored, routed in product(one_to_one(), repeat=4):
        known = {*configured.items(), *registered.items(), *stored.items(), *routed.items()}
        if not agree(known):
            continue
        if not set(stored.items()) <= {*routed.items(), *configured.items()}:
            continue  # who has an entry was here, and a route stays when its node leaves
        provisioned = tuple(
            Provisioned(name, node, C, "hub" if name == "b" else "") for name, node in configured.items()
        )
        policy = Policy(has_parent=bool(not registered), node_id=HUB, provisioned=provisioned)
        state = below(
            policy,
            present=policy.has_parent,
            directory=Map({node: Route(name, CHILD_NODE, False) for name, node in routed.items()}),
            whitelist=Map({name: Entry(node, C) for name, node in stored.items() if name not in configured}),
            registry=Map({name: Registration(node) for name, node in registered.items() if name not in configured}),
            next_node_id=30,
        )
        if check_state(policy, state):
            continue
        for device, node in product(_DEVICES, _NODES):
            seen += 1
            done = step(policy, state, Received(CHILD, Frame(HubOnline(device, node), source=CHILD_NODE)))
            route = done.state.directory.get(node)
            believed = route == Route(device, CHILD_NODE, True)
            assert believed == agree({*known, (device, node)}), (known, device, node, done.rules)
            if not believed:
                assert done.state == state and not sent(done)
    assert seen > 500, seen


# Next hop


def test_a_frame_goes_one_hop_towards_its_target_and_never_back() -> None:
    far = 30
    routes = [None, Route("far", CHILD_NODE, True), Route("far", CHILD_NODE, False), Route("far", PLAIN_NODE, True)]
    targets = (0, HUB, DEVICE_NODE, CHILD_NODE, PLAIN_NODE, far, 99)
    sources = (0, DEVICE_NODE, CHILD_NODE, PLAIN_NODE, far, 98)
    policy, seen = Policy(has_parent=True, node_id=HUB), 0
    for route, present in product(routes, (True, False)):
        state = below(policy, present, directory=Map({far: route} if route is not None else {}))
        assert not check_state(policy, state)
        links = [link for link in state.links if link != PARENT or present]
        for link, source, target, hops in product(links, sources, targets, (0, 1, 2)):
            seen += 1
            frame = Frame(b"x", Major.MSG, 7, source, target, sub_proto=9, hop_limit=hops)
            session = SESSIONS.get(link)
            come = step(policy, state, Received(link, frame))
            ways = [to for to, _ in sent(come)]
            claimed = state.directory.get(source)
            reachable = link == PARENT or (
                session is not None
                and (
                    source == session.node_id
                    or (claimed is not None and claimed.via == session.node_id and session.is_hub)
                    or (link == PLAIN and (claimed is None or not claimed.online) and source == 98)
                    or (link == PLAIN and source == far and (claimed is None or not claimed.online))
                )
            )
            known = state.directory.get(target)
            if target == 0:
                due = {to for to, one in SESSIONS.items() if one is not None}
            elif target == HUB:
                due = set()
            elif known is not None and known.online:
                due = {to for to, one in SESSIONS.items() if one is not None and one.node_id == known.via}
            elif link == PLAIN and source == target and reachable:
                due = {link}  # learnt from this very frame
            else:
                due = {PARENT} if present else set()
            due = due - {link} if source and reachable and hops != 1 else set()
            assert set(ways) == due and len(ways) == len(due), (link, source, target, hops, route, come.rules)
            assert all(onward.hop_limit == (hops or 16) - 1 for _, onward in sent(come))
    assert seen > 2000


# Precedence of checks

_REQUESTS: tuple[Request, ...] = (
    Register("x"),
    Authenticate("x", C),
    AssistRegister("x"),
    AssistAuthenticate("x", C),
    AssistQueryCredential("x"),
    AssistOffline("x", 40),
    Revoke("x"),
    Offline("x", 40),
    GetPerms(40),
    ListRoles(),
    PermsInvalidate(),
    HubOnline("x", 40),
    HubDismiss("x", 40),
    HubFence(),
)
_ASSISTS = (AssistRegister, AssistAuthenticate, AssistQueryCredential, AssistOffline)
_EXTENSION = (HubOnline, HubDismiss, HubFence)


def verdict(link: Link, request: Request, is_readable: bool, source: int) -> Reason | str:
    """By the order of the rules: who may speak, in whose name, about what, and only then whether it is readable."""
    session = SESSIONS.get(link)
    if link != PARENT and request.action in ENTRANCE:
        return "served" if is_readable else Reason.INVALID_REQUEST
    if link == PARENT and isinstance(request, Register | Authenticate | Offline):
        return Reason.FORBIDDEN
    if isinstance(request, _EXTENSION) and link not in (PARENT, CHILD):
        return "dropped"
    if link != PARENT and session is None:
        return Reason.NOT_INDEXED if isinstance(request, Offline) else Reason.FORBIDDEN
    of_hub = link == PARENT or (session is not None and session.is_hub)
    if source == 0 and of_hub and not isinstance(request, _ASSISTS):
        return "dropped"
    own = session.node_id if session is not None else 0
    is_exempt = isinstance(request, Revoke) and of_hub
    if link != PARENT and source not in (0, own) and not is_exempt and (link != PLAIN or source == DEVICE_NODE):
        return "dropped"
    if isinstance(request, _ASSISTS) and not of_hub:
        return Reason.FORBIDDEN
    if isinstance(request, HubOnline) and not is_readable:
        return "dropped"  # it is never answered
    return "served" if is_readable else Reason.INVALID_REQUEST


def test_of_several_things_that_are_wrong_the_first_by_the_order_of_the_rules_is_answered() -> None:
    policy, seen = Policy(has_parent=True, node_id=HUB), 0
    state = below(policy)
    for link, request, is_readable, source in product(
        (PARENT, *SESSIONS), _REQUESTS, (True, False), (0, DEVICE_NODE, CHILD_NODE, 98)
    ):
        session = SESSIONS.get(link)
        body: Body = request if is_readable else Malformed(request.action, "no")
        named = source if source != CHILD_NODE or session is None else session.node_id
        if link == PARENT and named == CHILD_NODE:
            continue
        seen += 1
        done = step(policy, state, Received(link, Frame(body, Major.CMD, 7, named), fresh=C))
        answers = [frame.body.reason for to, frame in sent(done) if isinstance(frame.body, Answer) and to == link]
        due = verdict(link, request, is_readable, named)
        if isinstance(due, Reason):
            assert answers == [due], (link, body, named, answers, due, done.rules)
        if due == "dropped":
            assert not sent(done), (link, body, named, done.rules)
        if due != "served":
            left = evolve(done.state, learnt=state.learnt, index=state.index)
            assert left == state, (link, body, named, due, done.rules)
        elif answers and not isinstance(request, Offline | AssistOffline):
            assert answers != [Reason.INVALID_REQUEST], (link, body, named, done.rules)
    assert seen > 400


# Paging


def test_pages_of_small_sets_are_slices_of_all_that_is_listed() -> None:
    seen = 0
    nodes = (1, 2, 3, 5, 6)
    for places in product(range(4), repeat=len(nodes)):
        listed = tuple(
            OrderedIds.of(node for node, at in zip(nodes, places, strict=True) if at == one) for one in range(3)
        )
        everybody = [node for node, at in zip(nodes, places, strict=True) if at < 3]
        for offset, limit in product((0, 1, 2, 4, 5, 6, 2**31 - 1), (1, 2, 5, MAX_PAGE + 1)):
            seen += 1
            assert select_page(listed, (), offset, limit) == (len(everybody), everybody[offset : offset + limit])
        for wanted in ((1,), (6, 1, 1), (4, 5), (2, 3, 9)):
            left = [node for node in everybody if node in wanted]
            assert select_page(listed, wanted, 1, 1) == (len(left), left[1:2])
    assert seen > 20_000


def test_pages_of_any_size_and_number_meet_and_leave_nothing_out() -> None:
    """Of a list of any length, page after page: no bound on length, offset or limit."""
    length, offset, limit, most, item = z3.Ints("length offset limit most item")
    size = z3.If(limit < most, limit, most)

    def at_most_length(value: z3.ArithRef) -> z3.ArithRef:
        return z3.If(value < length, value, length)

    begins, ends = at_most_length(offset), at_most_length(offset + size)
    given = z3.And(length >= 0, offset >= 0, limit >= 1, most >= 1)
    next_begins = at_most_length(offset + size)
    claims = [
        next_begins == ends,
        z3.Implies(ends < length, ends - begins == size),
        z3.Implies(offset >= length, begins == ends),
        z3.Implies(z3.And(offset <= item, item < offset + size, item < length), z3.And(begins <= item, item < ends)),
        ends - begins <= most,
    ]
    for claim in claims:
        solver = z3.Solver()
        solver.add(given, z3.Not(claim))
        assert solver.check() == z3.unsat, claim
    solver = z3.Solver()
    solver.add(given, begins < ends)
    assert solver.check() == z3.sat, "there is a page at all"


def test_listings_are_what_filtering_every_known_node_by_role_and_name_leaves() -> None:
    policy = Policy(has_parent=True, node_id=HUB, provisioned=(Provisioned("named", 8, C, role="boss"),))
    seen = 0
    for roles in product((None, "node", "boss"), repeat=3):
        cached = {at: Grant(role, ()) for at, role in zip((DEVICE_NODE, PLAIN_NODE, 40), roles, strict=True) if role}
        state = below(policy, perms=Map(cached))
        for role, names in product(("", "node", "boss", "nobody"), ((), (8, 40), (DEVICE_NODE, 41))):
            seen += 1
            wanted = Received(CHILD, Frame(ListRoles(0, 100, role, names), Major.CMD, 7, CHILD_NODE))
            done = step(policy, state, wanted)
            (answer,) = [frame.body for link, frame in sent(done) if link == CHILD and isinstance(frame.body, Answer)]
            assert answer.reason is Reason.OK
            wrong = outcomes.check(policy, state, wanted, done)
            assert not wrong, (roles, role, names, wrong)
    assert seen > 300


# EXT-1, EXT-15: what of the extension counts


def test_what_is_said_of_the_extension_counts_in_this_version_and_whole() -> None:
    told = {
        "journal": ("", "j", "j" * 64, "j" * 65, "\u00e9" * 33, 7),
        "peer": (None, "", "p", "p" * 65),
        "handled": (None, 0, 3, -1, "3"),
    }
    seen = 0
    for version, journal, peer, handled in product((-1, 0, 1, 2, "1", None), *told.values()):
        seen += 1
        fields = {"v": version, "journal": journal, "peer": peer, "handled": handled}
        said = {name: value for name, value in fields.items() if value is not None}
        whole = journal in ("j", "j" * 64) and peer in (None, "", "p") and handled in (None, 0, 3)
        due = Ext(str(journal), str(peer or ""), int(handled or 0)) if version == 1 and whole else None
        assert read_ext(msgspec.Raw(msgspec.json.encode(said))) == due, said
    assert seen > 500


# PERM-5: staleness

_EVENTS = ("ask", "forget it", "forget all", "forget another", "answer first", "answer last", "operator")


@cache
def asking() -> tuple[Policy, State]:
    policy = Policy(has_parent=True, node_id=HUB)
    return policy, step(policy, below(policy), LinkUp(9)).state


def test_what_was_asked_before_an_invalidation_is_cached_after_no_answer() -> None:
    policy, first = asking()
    node, grant, seen = 40, Grant("boss", ("x",)), 0
    for length in (3, 4, 5):
        for events in product(_EVENTS, repeat=length):
            if "ask" not in events or not any(event.startswith("answer") for event in events):
                continue
            seen += 1
            state, asked, forgotten = first, list[tuple[int, int]](), -1
            cached_at = -1
            for now, event in enumerate(events):
                if event == "ask":
                    happened = Received(DEVICE, Frame(GetPerms(node), Major.CMD, now + 1, DEVICE_NODE))
                    done = step(policy, state, happened)
                    numbers = [frame.msg_id for link, frame in sent(done) if link == PARENT]
                    assert bool(numbers) == (cached_at < 0), events
                    asked += [(number, now) for number in numbers]
                elif event.startswith("answer"):
                    if not asked:
                        continue
                    number, since = asked.pop(0 if event == "answer first" else -1)
                    answer = Answer(Action.GET_PERMS, Reason.OK, "", node, grant=grant)
                    done = step(policy, state, Received(PARENT, Frame(answer, Major.OK_RESP, number, PARENT_NODE, HUB)))
                    relayed = [frame.body for link, frame in sent(done) if link == DEVICE]
                    assert len(relayed) == 1 and relayed[0].reason is Reason.OK, events  # type: ignore[union-attr]
                    cached_at = now if since > forgotten else cached_at
                else:
                    nodes = {"forget it": (node,), "forget another": (41,)}.get(event, ())
                    message = PermsInvalidate(nodes)
                    told = Received(PARENT, Frame(message, Major.CMD, 900 + now, PARENT_NODE))
                    done = step(policy, state, OperatorInvalidate(message) if event == "operator" else told)
                    if event != "forget another":
                        forgotten, cached_at = now, -1
                state = done.state
                assert (node in state.perms) == (cached_at >= 0), events[: now + 1]
    assert seen > 5000


# Each of these would notice


def _learns_anything(t: Transition, pending: Pending, grant: Grant) -> bool:
    t.put_perms(pending.node_id, grant)
    return True


def _reads_first(t: Transition, received: Received, body: Request | Malformed) -> bool:
    return isinstance(body, Malformed) or _may_ask(t, received, body)


def _merged_late(listed: list[OrderedIds], offset: int) -> Iterator[int]:
    return _merged(listed, offset + 1)


def _ignores_directory(t: Transition, device_id: str, node_id: int) -> bool:
    known = (t.registry.get(device_id), t.whitelist.get(device_id))
    return any(one.node_id != node_id for one in known if one is not None)


def _offline_too(t: Transition, target: int) -> list[Link]:
    route = t.directory.get(target)
    return [t.link_of_node[route.via]] if route is not None else _towards(t, target)


_may_ask, _merged, _towards = step_module._may_ask, perms._merged, routing._towards


@pytest.mark.parametrize(
    ("test", "module", "name", "wrong"),
    [
        (test_an_announcement_is_believed_if_no_binding_that_is_known_speaks_against_it,)
        + (presence, "contradicts_tables", _ignores_directory),
        (test_a_frame_goes_one_hop_towards_its_target_and_never_back, routing, "_towards", _offline_too),
        (test_of_several_things_that_are_wrong_the_first_by_the_order_of_the_rules_is_answered,)
        + (step_module, "_may_ask", _reads_first),
        (test_pages_of_small_sets_are_slices_of_all_that_is_listed, perms, "_merged", _merged_late),
        (test_what_was_asked_before_an_invalidation_is_cached_after_no_answer, perms, "learn", _learns_anything),
    ],
)
def test_a_mistake_is_found(
    test: Callable[[], None], module: object, name: str, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        test()
