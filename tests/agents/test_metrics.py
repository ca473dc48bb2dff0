"""The metrics of delegations: rates, weights, trends, limits, and the file that several runs write."""

from __future__ import annotations

import json
import multiprocessing
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planrun.agents.metrics import (
    FILE,
    MAX_PATHS,
    Metrics,
    PathStats,
    Result,
    moved,
    path_key,
)
from planrun.errors import RecordsLost
from tests.agents.moments import START

if TYPE_CHECKING:
    from pathlib import Path

PATH = path_key("bash", "explore", "compilation_error")


def result(*, ok: bool, path: str = PATH, seconds: float = 1.5, at: str = START) -> Result:
    """Return the end of a delegation."""
    return Result(path=path, strategy=path.split(":")[1], ok=ok, seconds=seconds, at=at)


def test_a_path_has_the_key_from_to_context() -> None:
    """So are the rows of the file named."""
    assert PATH == "bash:explore:compilation_error"


def test_counts_times_and_rates() -> None:
    """Nothing known is one half; 0 and 1 count as they are."""
    metrics = Metrics()
    assert (metrics.of(PATH).rate, metrics.base_rate("explore")) == (0.5, 0.5)
    metrics.record(result(ok=True))
    assert (metrics.of(PATH).rate, metrics.base_rate("explore")) == (1.0, 1.0)
    metrics.record(result(ok=False, seconds=0.25))
    metrics.record(result(ok=False, path="plan:explore:empty_result"))
    stats = metrics.of(PATH)
    assert (stats.success, stats.failure, stats.seconds, stats.last_used) == (1, 1, 1.75, START)
    assert metrics.of("plan:explore:empty_result").rate == 0.0
    assert metrics.base_rate("explore") == pytest.approx(1 / 3)


def test_a_weight_moves_by_a_tenth_towards_two_or_a_half() -> None:
    """1.0 becomes 1.1 after a success and 0.95 after a failure; both ends of the range are reached."""
    assert moved(1.0, 0.1, ok=True) == 1.1
    assert moved(1.1, 0.1, ok=True) == 1.19
    assert moved(1.0, 0.1, ok=False) == 0.95
    high = low = 1.0
    for _ in range(300):
        high, low = moved(high, 0.1, ok=True), moved(low, 0.1, ok=False)
    assert high == pytest.approx(2.0, abs=1e-4)
    assert low == pytest.approx(0.5, abs=1e-4)


@given(st.lists(st.booleans(), max_size=100), st.floats(0, 1))
def test_a_weight_never_leaves_its_range(results: list[bool], alpha: float) -> None:
    """Whatever happens, and however fast it moves; a success never lowers it, a failure never raises it."""
    weight = 1.0
    for ok in results:
        after = moved(weight, alpha, ok=ok)
        assert 0.5 <= after <= 2.0
        assert after >= weight - 1e-6 if ok else after <= weight + 1e-6
        weight = after


@pytest.mark.parametrize(
    ("recent", "trend"),
    [
        ("", 0.0),
        ("0011", 0.0),  # too few
        ("00111", 1.0),
        ("11000", -1.0),
        ("01010", pytest.approx(-1 / 6)),
        ("0" * 10 + "1" * 10, 1.0),
        ("1" * 20, 0.0),
    ],
)
def test_a_trend_is_the_second_half_minus_the_first(recent: str, trend: float) -> None:
    """With at least five results; of an odd number the second half has one more."""
    assert PathStats(recent=tuple([mark == "1" for mark in recent])).trend == trend


@example([True] * 15 + [False] * 15)
@given(st.lists(st.booleans(), max_size=60))
def test_the_last_twenty_results_are_kept(results: list[bool]) -> None:
    """Older ones count in the totals alone, and the trend stays between -1 and 1."""
    metrics = Metrics()
    for ok in results:
        metrics.record(result(ok=ok))
    stats = metrics.of(PATH)
    assert stats.recent == tuple(results[-20:])
    assert stats.success + stats.failure == len(results)
    assert -1 <= stats.trend <= 1


def test_the_least_recently_used_path_gives_way_at_200() -> None:
    """A result is a use."""
    metrics = Metrics()
    for number in range(MAX_PATHS):
        metrics.record(result(ok=True, path=f"a:b:c{number}"))
    metrics.record(result(ok=True, path="a:b:c0"))
    metrics.record(result(ok=True, path="a:b:new"))
    assert len(metrics.paths) == MAX_PATHS
    assert "a:b:c0" in metrics.paths
    assert "a:b:c1" not in metrics.paths


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    """Nothing is written before `save`, nothing without results, and the file is the user's alone."""
    folder = str(tmp_path / "kept")
    metrics = Metrics()
    metrics.save(folder)
    assert not os.path.exists(folder)
    for ok in (True, True, False):
        metrics.record(result(ok=ok))
    assert not os.path.exists(folder)
    metrics.save(folder)
    again = Metrics()
    again.load(folder)
    assert again.as_data() == metrics.as_data()
    assert again.of(PATH).weight == metrics.of(PATH).weight == 1.121
    assert os.stat(os.path.join(folder, FILE)).st_mode & 0o777 == 0o600
    assert os.stat(folder).st_mode & 0o777 == 0o700


def _write(folder: str, count: int) -> None:
    for _ in range(count):
        metrics = Metrics()
        metrics.record(result(ok=True))
        metrics.save(folder)


def test_several_runs_write_at_the_same_time_and_lose_nothing(tmp_path: Path) -> None:
    """Each adds its results to what the others have written."""
    folder = str(tmp_path / "kept")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(folder, 20)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    metrics = Metrics()
    metrics.load(folder)
    assert metrics.of(PATH).success == 60
    assert metrics.strategies == {"explore": (60, 0)}


def test_a_run_that_saves_twice_adds_its_results_once(tmp_path: Path) -> None:
    """A second save has nothing to add."""
    metrics = Metrics()
    metrics.record(result(ok=True))
    metrics.save(str(tmp_path))
    metrics.save(str(tmp_path))
    assert metrics.of(PATH).success == 1


WRONG: list[Any] = [
    b"",
    b"{",
    b"[]",
    b"\xff",
    b'{"form": "something else", "paths": {}}',
    {"paths": [], "strategies": 3},
    {"paths": {"a:b:c": {}}, "strategies": {"x": [1], "y": [-1, 0], "z": [True, 1]}},
    {
        "paths": {
            "a:b:c": {"success": -1, "failure": 0, "seconds": 1, "weight": 1, "recent": [], "last_used": ""}
        }
    },
    {
        "paths": {
            "a:b:c": {"success": "x", "failure": 0, "seconds": 1, "weight": 1, "recent": [], "last_used": ""}
        }
    },
]


@pytest.mark.parametrize("content", WRONG)
def test_a_damaged_file_counts_as_missing(tmp_path: Path, content: Any) -> None:
    """No run depends on what is kept, so no run fails because of it."""
    data = (
        content
        if isinstance(content, bytes)
        else json.dumps({"form": "planrun delegation 1", **content}).encode()
    )
    (tmp_path / FILE).write_bytes(data)
    metrics = Metrics()
    metrics.load(str(tmp_path))
    assert (metrics.paths, metrics.strategies) == ({}, {})


def test_an_edited_weight_is_held_within_its_range(tmp_path: Path) -> None:
    """A file with 1000, NaN or -1 gives no weight that decides everything."""
    row = {"success": 1, "failure": 0, "seconds": 1, "recent": [1] * 99, "last_used": ""}
    paths = {
        "a:b:c": {**row, "weight": 1000},
        "a:b:d": {**row, "weight": float("nan")},
        "a:b:e": {**row, "weight": -1},
    }
    (tmp_path / FILE).write_text(json.dumps({"form": "planrun delegation 1", "paths": paths}))
    metrics = Metrics()
    metrics.load(str(tmp_path))
    assert [stats.weight for stats in metrics.paths.values()] == [2.0, 0.5, 0.5]
    assert {len(stats.recent) for stats in metrics.paths.values()} == {20}


def test_a_link_is_no_file_of_ours(tmp_path: Path) -> None:
    """Neither read nor written through."""
    target = tmp_path / "elsewhere"
    target.write_text("{}")
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / f"{FILE}.lock").symlink_to(target)
    metrics = Metrics()
    metrics.record(result(ok=True))
    with pytest.raises(RecordsLost, match="cannot write"):
        metrics.save(str(folder))
    assert target.read_text() == "{}"
