"""What a step leaves behind: a changed field is in the next state, and nothing changed is the very same state."""

import pytest

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.core.transition import INDEX_FIELDS, SCALARS, Transition

POLICY = Policy()
CHANGED = "something else"


@pytest.mark.parametrize("name", SCALARS)
def test_a_changed_value_is_in_the_next_state_and_among_the_changes(name: str) -> None:
    state = initial_state(POLICY)
    transition = Transition(POLICY, state)
    setattr(transition, name, CHANGED)
    done = transition.finish()
    assert getattr(done.state, name) == CHANGED
    assert done.changes == (("hub", name, getattr(state, name), CHANGED),)


@pytest.mark.parametrize("name", INDEX_FIELDS)
def test_a_changed_index_is_in_the_next_state(name: str) -> None:
    transition = Transition(POLICY, initial_state(POLICY))
    setattr(transition, name, CHANGED)
    assert getattr(transition.finish().state.index, name) == CHANGED


def test_a_step_that_changes_nothing_has_the_very_same_state() -> None:
    state = initial_state(POLICY)
    assert Transition(POLICY, state).finish().state is state
