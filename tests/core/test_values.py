"""Values are attrs values in everything but what they cost."""

import copy
import inspect
import pickle

import pytest
from attrs import evolve, fields
from attrs.exceptions import FrozenInstanceError

from hubauth.core.messages import Action, Answer, Frame, Major, Reason, Register
from hubauth.core.model import Entry, Route
from hubauth.core.ordered import OrderedIds
from hubauth.core.values import frozen

ENTRY = Entry(7, "secret")


def test_a_value_never_changes() -> None:
    for name in ("node_id", "credential", "is_hub", "new", "__class__"):
        with pytest.raises(FrozenInstanceError):
            setattr(ENTRY, name, 8)
    with pytest.raises(FrozenInstanceError):
        del ENTRY.node_id
    assert Entry(7, "secret") == ENTRY and not hasattr(ENTRY, "__dict__") and type(ENTRY) is Entry


def test_arguments_are_those_of_attrs() -> None:
    assert Entry(credential="c", node_id=1) == Entry(1, "c", False) != Entry(1, "c", True)
    assert str(inspect.signature(Entry)) == "(node_id: int, credential: str, is_hub: bool = False) -> None"
    assert [field.name for field in fields(Frame)][:3] == ["body", "major", "msg_id"]
    with pytest.raises(TypeError, match="credential"):
        Entry(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="other"):
        Entry(1, "c", other=2)  # type: ignore[call-arg]


def test_copies_evolved_and_pickled_values_are_equal_and_frozen() -> None:
    frame = Frame(Answer(Action.REGISTER, Reason.OK, "d", 2), Major.OK_RESP, 5)
    for other in (copy.copy(frame), copy.deepcopy(frame), evolve(frame), pickle.loads(pickle.dumps(frame))):
        assert other == frame and hash(other) == hash(frame) and repr(other) == repr(frame)
        with pytest.raises(FrozenInstanceError):
            other.msg_id = 6  # type: ignore[misc]
    assert evolve(Route("d", 2, True), online=False) == Route("d", 2, False) != Register("d")  # type: ignore[comparison-overlap]


def test_a_value_is_pickled_by_what_it_is_made_of() -> None:
    assert ENTRY.__reduce__() == (Entry, (7, "secret", False))


def test_a_subclass_may_have_fields_of_its_own() -> None:
    class Remembering(OrderedIds):
        """Has a ``__dict__``, which its base has not."""

    assert list(Remembering((1, 3))) == [1, 2]

    @frozen
    class Numbered(Entry):
        number: int = 0

    numbered = Numbered(1, "c", number=4)
    assert (numbered.node_id, numbered.number, type(numbered)) == (1, 4, Numbered)
    with pytest.raises(FrozenInstanceError):
        numbered.number = 5  # type: ignore[misc]
