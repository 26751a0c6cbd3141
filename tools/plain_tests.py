"""The tests that the generators run: what hubs do in them becomes vectors and evidence."""

import importlib
import inspect
from collections.abc import Callable, Iterator

from hypothesis import is_hypothesis_test

from tools.catalogue import ROOT


def plain_tests(folder: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """The test functions of a folder that can be called without a test runner."""
    for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
        module = importlib.import_module(f"tests.{folder}.{path.stem}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_test = name.startswith("test_") and function.__module__ == module.__name__
            if is_test and not inspect.signature(function).parameters and not is_hypothesis_test(function):
                yield f"{path.stem}.{name}", function
