"""Which of the two a run of pytest is about: the sources, or with HUBAUTH_COMPILED=1 what is compiled from them."""

import pytest

import tools  # decides it, before anything of the package is imported
from hubauth.compiled import running

PLANTED = "plants a mistake by replacing functions of modules, which compiled code does not look up again"
NOTED = "listens by replacing methods, which compiled code does not look up again"
WRONG_TYPES = "gives a field what is not of its type, which a native value does not take"
ATTRS = "is about values as attrs makes them; tests/compiling/test_natives.py is about native ones"
INTERPRETED = {
    "tests/core/test_finish.py": WRONG_TYPES,
    "tests/core/test_invariants.py::test_a_registration_with_a_secret_in_it": WRONG_TYPES,
    "tests/core/test_values.py": ATTRS,
    "tests/network/test_invariants.py::test_a_hub_below_is_told_what_the_hub_above_has_missed": PLANTED,
    "tests/network/test_invariants.py::test_a_revoke_of_one_credential_excuses_no_other": PLANTED,
    "tests/network/test_invariants.py::test_what_is_owed_excuses_nothing_under_another_number": PLANTED,
    "tests/network/test_invariants.py::test_a_revoke_that_goes_nowhere_was_said_all_the_same": PLANTED,
    "tests/network/test_three_levels.py::test_story_checks_bite": PLANTED,
    "tests/network/test_tree_invariants.py::test_a_mistake_is_found": PLANTED,
    "tests/shell/test_door.py::test_a_step_that_fails_is_admitted": PLANTED,
    "tests/shell/test_limits.py::test_a_step_that_fails_costs_one_connection": PLANTED,
    "tests/shell/test_outlet.py::test_a_broadcast_leaves_piece_by_piece_and_answers_come_behind_it": NOTED,
    "tests/shell/test_outlet.py::test_a_long_frame_is_read_piece_by_piece": NOTED,
    "tests/shell/test_outlet.py::test_an_answer_does_not_wait_for_the_rest_of_a_broadcast": NOTED,
    "tests/shell/test_outlet.py::test_broadcasts_of_many_turns_leave_with_few_writes": NOTED,
    "tests/shell/test_turns.py::test_broadcasts_end_a_turn_early": NOTED,
    "tests/shell/test_turns.py::test_five_strangers_do_not_stall_everybody": NOTED,
    "tests/shell/test_turns.py::test_who_asks_goes_before_who_floods_everybody": NOTED,
    "tests/shell/test_watching.py::test_a_revoked_device_that_is_admitted_raises_an_alarm_and_the_hub_goes_on": PLANTED,
    "tests/shell/test_watching.py::test_each_broken_promise_is_found": PLANTED,
    "tests/trace/test_recording.py::test_a_restart_answers_nobody_and_still_conforms": NOTED,
}
"""The tests, by the beginnings of their names, that need the sources, and why."""


def pytest_configure() -> None:
    if tools.COMPILED and not running().modules:
        raise pytest.UsageError(f"HUBAUTH_COMPILED is set, but this is {running()}: run make compiled")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not tools.COMPILED:
        return
    needed = tuple(INTERPRETED)
    left_out = [item for item in items if item.nodeid.startswith(needed)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
