"""The short forms run under the same conditions as the tests (tests/conftest.py), and by one seed, which is printed."""

from __future__ import annotations

import pytest

from tests.conftest import (
    clean_environment,
    collector_on,
    heeded_signals,
    longest_first,
    open_to_children,
    planrun,
    pytest_configure,
    pytest_fixture_setup,
    pytest_xdist_auto_num_workers,
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
    "pytest_xdist_auto_num_workers",
    "rows_are_shown_by_running_planrun",
]


LONGEST = tuple(
    f"proofs/test_{name}.py"
    for name in (
        *("pipelines", "cluster", "sandbox", "tapes", "surfaces", "kills", "risk", "powercut", "escape"),
        *(
            "shared_queue_proof",
            "story",
            "strangers",
            "hostile",
            "views",
            "calls_of_models",
            "ending",
            "filters",
        ),
        *("replan_proof", "faults", "limits", "values", "cached", "masks", "kills_at_gates", "queue_proof"),
    )
)
"""Files that take longest, longest first: mostly that of `proofs/README.md`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files."""
    longest_first(items, LONGEST)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--seed` choose what is drawn by chance."""
    parser.addoption("--seed", type=int, default=1, help="what the proofs draw by (default: 1)")


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed, by which a failure is repeated."""
    return f"proofs: --seed {config.getoption('--seed')}"


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """Give the test the seed of this session."""
    found: int = pytestconfig.getoption("--seed")
    return found
