"""What hatchling asks when it builds a wheel or an editable installation: compile what can be compiled."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from compiling.build import CannotCompile, build  # noqa: E402


class Compiled(BuildHookInterface):  # type: ignore[type-arg]
    """A wheel for this machine where there is a C compiler and HUBAUTH_PURE is not set, else one for every machine."""

    def dependencies(self) -> list[str]:
        """What compiling needs, if it can be done at all: mypy, and what the sources import, for its types."""
        if self.target_name != "wheel" or _is_pure():
            return []
        needed: list[str] = self.metadata.core.dependencies
        return ["mypy>=2.4,<2.5", "setuptools", *needed]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if _is_pure():
            return
        try:
            built = build()
        except (CannotCompile, OSError):
            # The sources run as they are, only slower. Whoever wants to know why: python -m compiling.build
            return
        if version != "editable":
            build_data["artifacts"].append(f"/{built.relative_to(ROOT).as_posix()}/")
            build_data["pure_python"], build_data["infer_tag"] = False, True


def _is_pure() -> bool:
    command = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "").split()
    return os.environ.get("HUBAUTH_PURE", "") not in ("", "0") or not command or shutil.which(command[0]) is None
