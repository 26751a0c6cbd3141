"""Trees with a hub that knows only the documents: a mistake in the core, or in the machine beside it, is noticed."""

from collections.abc import Callable
from functools import cache

import pytest

from hubauth.core import authenticate, once, owed, plain, register, revoke, unheard
from hubauth.core.model import Pending
from hubauth.core.transition import Transition
from hubauth.lab.plain import Asked, PlainHub
from model_tests.equivalence.graph import Graph, compare_graphs
from tools.equivalence import AnyMachine, read_graph
from tools.models import read_catalogue

MODELS = {model.name: model for model in read_catalogue().models}
DEPTH = 8
"""Steps within which every one of these mistakes must show."""


@cache
def dumped(name: str) -> tuple[AnyMachine, Graph]:
    return read_graph(MODELS[name], DEPTH)


def _nothing(*_: object, **__: object) -> None:
    return None


def _never(*_: object, **__: object) -> bool:
    return False


def _forgets(t: Transition, msg_id: int, *, fired: bool = False) -> Pending:
    return t.take_pending(msg_id, fired=fired)


def _only_devices(_: Transition, pending: Pending, __: object) -> bool:
    return pending.asker is not None and pending.purpose.value == "authenticate"


def _newest(t: Transition, link: int, answer: object) -> int | None:
    fits = list(t.asked.get((link, getattr(answer, "device_id", "")), ()))
    return fits[-1] if fits else None


def _forgets_nothing(self: PlainHub, asked: Asked) -> None:
    for link in sorted(self.hubs.keys() - {asked.link}):
        self._request(link, "revoke", asked.data)


def _keeps_to_itself(self: PlainHub, asked: Asked) -> None:
    self.whitelist.pop(asked.device_id, None)


_admit, _answered = PlainHub._admit, PlainHub._answered


def _caches(self: PlainHub, asked: Asked, node: int, credential: str) -> None:
    self.whitelist[asked.device_id] = node, credential
    _admit(self, asked, node, credential)


def _hears_no_failure(self: PlainHub, link: int, action: str, data: dict[str, object]) -> None:
    if data["code"] == 1:
        _answered(self, link, action, data)


CORE = [
    ("MCPlainParentSteady", plain, "find_asked", _nothing),
    ("MCPlainParentSteady", plain, "find_asked", _newest),
    ("MCPlainParentSteady", unheard, "forget", _forgets),
    ("MCPlainParentSteady", unheard, "end", _nothing),
    ("MCPlainParentSteady", once, "send", _nothing),
    ("MCPlainMiddle", once, "was_plain", _never),
    ("MCPlainMiddle", owed, "_tell_kept", _nothing),
    ("MCPlainMiddle", register, "follow_answer", _nothing),
    ("MCPlainRelayed", authenticate, "follow_answer", _nothing),
    ("MCPlainRelayed", revoke, "_is_ended", _only_devices),
    ("MCPlainEcho", once, "is_echo", _never),
]
MACHINE = [
    ("MCPlainParentSteady", "_revoke", _forgets_nothing),
    ("MCPlainMiddle", "_revoke", _keeps_to_itself),
    ("MCPlainMiddle", "_admit", _caches),
    ("MCPlainMiddle", "_up", _nothing),
    ("MCPlainChildRaces", "_answered", _hears_no_failure),
]


@pytest.mark.parametrize("name", ["MCPlainParentSteady", "MCPlainMiddle", "MCPlainRelayed", "MCPlainEcho"])
def test_without_a_mistake_they_are_equal(name: str) -> None:
    found = compare_graphs(*dumped(name), DEPTH)
    assert found.difference == () and found.steps > 500


@pytest.mark.parametrize(("name", "module", "rule", "instead"), CORE)
def test_a_mistake_in_the_core_is_noticed(
    name: str, module: object, rule: str, instead: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, rule, instead)
    assert compare_graphs(*dumped(name), DEPTH).difference


@pytest.mark.parametrize(("name", "part", "instead"), MACHINE)
def test_a_mistake_in_the_machine_of_the_documents_is_noticed(
    name: str, part: str, instead: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainHub, part, instead)
    assert compare_graphs(*dumped(name), DEPTH).difference
