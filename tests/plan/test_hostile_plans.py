"""Bombs, wrong encodings, binaries and paths that name no file: an error with a place, and never more than that."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidPlan
from planrun.plan.problems import MAX_PROBLEMS, Problem, render_text
from planrun.plan.schema import shape
from planrun.plan.yaml.file import read_source
from tests.plan.hostile import HOSTILE, special_files

if TYPE_CHECKING:
    from pathlib import Path

MOST_MEMORY = 150
"""MiB, for any file at all."""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file_ends_in_a_finding(name: str) -> None:
    """Each hostile file is answered by the finding that stops it, at its line and column."""
    hostile = HOSTILE[name]
    data = hostile.data
    root, problems = shape.read(data, name)
    found = [
        each
        for each in problems
        if each.code == hostile.code and hostile.line in {0, each.line} and hostile.col in {0, each.col}
    ]
    assert found, [(each.code, each.line, each.col) for each in problems[:5]]
    assert len(problems) <= MAX_PROBLEMS + 2
    assert all(each.line >= 1 and each.col >= 1 for each in problems)
    assert len(render_text(problems, {name: data})) < 20_000
    assert root is None or problems


def test_hostile_files_take_little_memory() -> None:
    """No hostile file makes reader, checks and report together hold more than 150 MiB."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.plan.measure_hostile"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    most = json.loads(done.stdout)
    assert set(most) == set(HOSTILE)
    assert {name: used for name, used in most.items() if used is None or used > MOST_MEMORY} == {}


def test_paths_that_name_no_plan(tmp_path: Path) -> None:
    """A pipe, a device, a directory, a loop of links and the like are refused at once, each with one finding."""
    for kind, (path, code) in special_files(tmp_path).items():
        with pytest.raises(InvalidPlan) as refused:
            read_source(path)
        (problem,) = refused.value.problems
        assert isinstance(problem, Problem), kind
        assert (problem.code, problem.line, problem.col) == (code, 1, 1), kind


def test_a_file_given_by_mistake_is_not_shown(tmp_path: Path) -> None:
    """What is no plan is refused without a word of what stands in it."""
    secrets = {
        "passwd": b"root:x:0:0:hunter2:/root:/bin/sh\n",
        "environ": b"A=b\0TOKEN=hunter2\0",
        "dotenv": b"TOKEN=hunter2\n",
        "broken": b"password: 'hunter2\n",
        "list": b"- hunter2\n",
        "yaml": b"token: hunter2\nhunter: [hunter2]\n",
    }
    for name, data in secrets.items():
        (tmp_path / name).write_bytes(data)
        _, problems = shape.read(read_source(str(tmp_path / name)), name)
        assert problems
        assert "hunter2" not in render_text(problems, {name: data}), name


def test_a_file_that_says_it_is_empty_is_read(tmp_path: Path) -> None:
    """Files of /proc say size 0 and are read to their end; the limit counts what comes."""
    path = tmp_path / "plan.yml"
    path.write_bytes(b"version: 1\n")
    assert read_source(str(path)) == b"version: 1\n"
    if sys.platform == "linux":
        assert read_source("/proc/self/status").startswith(b"Name:")
