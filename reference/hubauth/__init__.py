"""hubauth: the formally specified reference implementation of the hub authentication protocol.

What is promised is the names in ``__all__`` and nothing else: ``step``, the values it works on, and the modules around
it. A name is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hubauth import compiled

if TYPE_CHECKING:
    from hubauth.core import inputs, invariants, messages, outputs
    from hubauth.core.indexes import initial_state
    from hubauth.core.model import State
    from hubauth.core.policy import Policy
    from hubauth.core.step import step
    from hubauth.core.transition import Step
    from hubauth.judge import replay
    from hubauth.wire import dialects as codecs
    from hubauth.wire import framing

__version__ = "0.1.0"

__all__ = [
    "Policy",
    "State",
    "Step",
    "codecs",
    "framing",
    "initial_state",
    "inputs",
    "invariants",
    "messages",
    "outputs",
    "replay",
    "step",
]

_HOMES = {
    "Policy": "hubauth.core.policy:Policy",
    "State": "hubauth.core.model:State",
    "Step": "hubauth.core.transition:Step",
    "codecs": "hubauth.wire.dialects",
    "framing": "hubauth.wire.framing",
    "initial_state": "hubauth.core.indexes:initial_state",
    "inputs": "hubauth.core.inputs",
    "invariants": "hubauth.core.invariants",
    "messages": "hubauth.core.messages",
    "outputs": "hubauth.core.outputs",
    "replay": "hubauth.judge.replay",
    "step": "hubauth.core.step:step",
}
"""Name -> module, or module:attribute."""

compiled.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    home = import_module(module)
    value = getattr(home, attribute) if attribute else home
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
