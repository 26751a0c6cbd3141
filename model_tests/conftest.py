"""How long the random tests look: HYPOTHESIS_PROFILE = dev (default), ci (the same examples every time) or long."""

import os

from hypothesis import HealthCheck, settings

# A machine draws its tree and its events as it goes, which these checks take for waste.
_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

_COMMON = settings(deadline=None, suppress_health_check=_QUIET)
settings.register_profile("dev", _COMMON, max_examples=40, stateful_step_count=40)
settings.register_profile("ci", _COMMON, max_examples=150, stateful_step_count=50, derandomize=True)
settings.register_profile("long", _COMMON, max_examples=3000, stateful_step_count=80)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
