"""The same examples every time, no verdict by the clock, and no test hears of another's log."""

import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """Commands that a test calls set up logging for the whole process, to a stream that is gone afterwards."""
    logger = logging.getLogger("hubauth")
    handlers, level, propagate = list(logger.handlers), logger.level, logger.propagate
    yield
    logger.handlers[:], logger.propagate = handlers, propagate
    logger.setLevel(level)
