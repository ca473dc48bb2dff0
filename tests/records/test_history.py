"""What is remembered of earlier runs: a fold of the last ten, harmless when it is broken."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from planrun.model.plan import Plan, Step
from planrun.plan.kinds.command import Run
from planrun.records.history import RUNS_KEPT, History, Past, estimates, path_of, read, write

if TYPE_CHECKING:
    from pathlib import Path


def ran(seconds: float, ending: str = "completed") -> Past:
    """Return what became of a step."""
    return Past(ending=ending, seconds=seconds)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    """Samples of every kind survive a file, and an estimate is the median of those that completed."""
    history = (
        History()
        .with_run("r1", {"a": ran(3.0), "b": ran(0.5, "failed")})
        .with_run("r2", {"a": ran(1.0, "flaky"), "deploy[eu west]": ran(7.25)})
        .with_run("r3", {"a": ran(2.0)})
    )
    path = str(tmp_path / "history" / "key")
    assert write(path, history)
    assert read(path) == history
    assert [past.ending for past in history.samples("a")] == ["completed", "flaky", "completed"]
    assert estimates(path) == {"a": 2.0, "deploy[eu west]": 7.25}


def test_a_run_is_recorded_once_however_often_it_is_reported() -> None:
    """A resumed run replaces its earlier entry."""
    history = History().with_run("r1", {"a": ran(3.0, "failed")}).with_run("r2", {"a": ran(1.0)})
    assert history.with_run("r1", {"a": ran(4.0)}).samples("a") == [ran(4.0), ran(1.0)]


def test_the_oldest_runs_are_forgotten() -> None:
    """Ten runs are kept in the order of their ids, and a step that ran in none of them is gone."""
    history = History().with_run("r00", {"old": ran(1.0)})
    for number in range(RUNS_KEPT, 0, -1):
        history = history.with_run(f"r{number:02d}", {"a": ran(number)})
    assert history.runs == tuple(f"r{number:02d}" for number in range(1, RUNS_KEPT + 1))
    assert [past.seconds for past in history.samples("a")] == list(range(1, RUNS_KEPT + 1))
    assert "old" not in history.cells
    assert history.with_run("r00", {"old": ran(1.0)}) == history


@pytest.mark.parametrize(
    "text",
    [
        "",
        "something else\nr1\n1.000\tc1.000\ta\n",
        "planrun history 1\n",
        "planrun history 1\nr1\nwhat\tc1.000\ta\n",
        "planrun history 1\nr1\nnan\tcnan\ta\n",
        "planrun history 1\nr1\n-1.000\tc-1.000\ta\n",
        "planrun history 1\nr1\n1.000\tc1.000\ta",
        "planrun history 1\nr1\n1.000\tc1.0\udcff00\ta\n",
    ],
)
def test_a_file_that_is_none_counts_as_missing(tmp_path: Path, text: str) -> None:
    """Whatever stands in the file, it causes no error, and the next run writes a good one."""
    path = tmp_path / "key"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert estimates(str(path)) == {}
    assert read(str(path)) == History()
    assert write(str(path), History().with_run("r1", {"a": ran(1.0)}))
    assert estimates(str(path)) == {"a": 1.0}


@pytest.mark.parametrize(
    "cells",
    [
        "c1.000 c2.000",
        "x1.000",
        "c",
        "-",
        "c1.0",
        "c1.0000",
        "c-1.000",
        "c1e3.000",
        "c\u0663.000",
        "cc1.000",
        "",
    ],
)
def test_invalid_cells_are_ignored(tmp_path: Path, cells: str) -> None:
    """A row with more cells than runs, or with cells of another kind, makes the whole file worthless."""
    path = tmp_path / "key"
    path.write_text(f"planrun history 1\nr1\n1.000\tk1.000\tz\n1.000\t{cells}\ta\n", encoding="utf-8")
    assert read(str(path)) == History()


@pytest.mark.parametrize(
    ("seconds", "median"),
    [((9.0, 10.0, 100.5), 10.0), ((10.0, 9.999, 0.001, 123456.789), 9.999), ((0.25, 0.125), 0.125)],
)
def test_the_median_is_of_numbers(tmp_path: Path, seconds: tuple[float, ...], median: float) -> None:
    """However many digits the seconds have, they are in the order of numbers; of two in the middle the lower counts."""
    history = History()
    for number, value in enumerate(seconds):
        history = history.with_run(f"r{number}", {"a": ran(value)})
    path = str(tmp_path / "key")
    assert write(path, history)
    assert estimates(path) == {"a": median}


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe, a folder or a link in the place of the file is as good as none; a link is not followed when writing."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    good = tmp_path / "good"
    write(str(good), History().with_run("r1", {"a": ran(1.0)}))
    (tmp_path / "link").symlink_to(good)
    for name in ("pipe", "folder", "link", "missing"):
        assert estimates(str(tmp_path / name)) == {}
    (tmp_path / "key").symlink_to(good)
    before = good.read_bytes()
    assert write(str(tmp_path / "key"), History())
    assert good.read_bytes() == before
    assert not (tmp_path / "key").is_symlink()


def test_a_history_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The folder has mode 0700, the file 0600."""
    path = tmp_path / "history" / "key"
    write(str(path), History().with_run("r1", {"a": ran(1.0)}))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_plan_is_known_by_its_name_and_its_place(tmp_path: Path) -> None:
    """However a file is named from the workspace it is the same plan; another name or file is another one."""
    home = str(tmp_path / ".planrun")
    plan = Plan(
        name="p", file="ci/p.yml", digest="", steps=(Step(id="a", action=Run(script="true"), kind="run"),)
    )
    same = {
        path_of(home, plan.but(file=name))
        for name in ("ci/p.yml", "./ci/../ci/p.yml", f"{tmp_path}/ci/p.yml")
    }
    assert len(same) == 1
    assert path_of(home, plan.but(name="q")) not in same
    assert path_of(home, plan.but(file="p.yml")) not in same
