"""The promises as ``hubauth.promises.monitor`` states them: each name, its English, and the Python that judges it."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from hubauth.promises.monitor import Monitor

_NAMED = re.compile(r"^([A-Z][A-Za-z]+): ", re.MULTILINE)


@frozen
class Promise:
    """What is promised, and the method that judges it."""

    name: str
    text: str
    judge: Callable[..., Any]


def promises() -> dict[str, Promise]:
    """Every promise by its name, in the order of the source."""
    found = {}
    for judge in vars(Monitor).values():
        if inspect.isfunction(judge) and judge.__doc__:
            pieces = _NAMED.split(inspect.cleandoc(judge.__doc__))[1:]
            for name, text in zip(pieces[::2], pieces[1::2], strict=True):
                found[name] = Promise(name, " ".join(text.split()), judge)
    return found
