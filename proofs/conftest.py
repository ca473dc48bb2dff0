"""The short forms run under the same conditions as the tests: see tests/conftest.py."""

from __future__ import annotations

from tests.conftest import (
    clean_environment,
    collector_on,
    heeded_signals,
    open_to_children,
    planrun,
    pytest_configure,
    pytest_fixture_setup,
    rows_are_shown_by_running_planrun,
)

__all__ = [
    "clean_environment",
    "collector_on",
    "heeded_signals",
    "open_to_children",
    "planrun",
    "pytest_configure",
    "pytest_fixture_setup",
    "rows_are_shown_by_running_planrun",
]
