"""The adapter of the documentation with a mistake planted in its core. Arguments: the mistake, and perhaps "bare".

A bare one says no digest, counts its own requests from another number and issues credentials of its own, as the hubs
of other people do.
"""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve
from msgspec.structs import replace

from hubauth.core.step import step
from hubauth.oracle.forms import ReceivedForm
from tests.oracle.conform.breaking import Broken
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.broken_extension import BROKEN_EXTENSION
from tests.oracle.twelve import TWELVE

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "fuzz_adapter.py"
PLANTED: dict[str, Broken] = {"": Broken(""), **BROKEN, **BROKEN_EXTENSION, **TWELVE}


def example() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_adapter", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(name: str, bare: bool) -> None:
    module, broken = example(), PLANTED[name]

    class Planted(module.Machine):  # type: ignore[misc, name-defined]
        def begin(self, init: Any) -> dict[str, object]:
            module.step = broken.decide() if name else step
            said = self._changed(super().begin(init))
            if bare:
                self.state: Any = evolve(self.state, next_msg_id=7000)
            return said

        def take(self, form: Any) -> dict[str, object]:
            if bare and isinstance(form.input, ReceivedForm) and form.input.fresh:
                form = replace(form, input=replace(form.input, fresh="own" + form.input.fresh[3:]))
            return self._changed(super().take(form))

        def _changed(self, said: dict[str, Any]) -> dict[str, object]:
            if bare:
                del said["digest"]
            if broken.spoil is not None:
                said = json.loads(msgspec.json.encode(said))
                for output in said.get("outputs", ()):
                    if output.get("payload") and self.policy.dialect.value == "auth":
                        output["payload"] = broken.spoil(output["payload"])
            return said

    module.converse(Planted())


if __name__ == "__main__":
    main(sys.argv[1], "bare" in sys.argv[2:])
