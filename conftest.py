"""Which of the two a run of pytest is about: the sources, or with HUBAUTH_COMPILED=1 what is compiled from them."""

import pytest

import tools  # decides it, before anything of the package is imported
from hubauth.compiled import running

PLANTED = "plants a mistake by replacing functions of modules, which compiled code does not look up again"
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
