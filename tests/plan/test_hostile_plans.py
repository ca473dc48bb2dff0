"""Bombs, wrong encodings, binaries and paths that name no file: an error with a place, and never more than that.

proofs/test_hostile.py reads the large ones too, and measures what each takes.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from planrun.errors import InvalidPlan
from planrun.plan.printing import render_text
from planrun.plan.problems import Problem
from planrun.plan.schema import shape
from planrun.plan.yaml.file import read_source
from proofs.hostile import SMALL, special_files, wrong

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", SMALL)
def test_hostile_file_ends_in_a_finding(name: str) -> None:
    """Each hostile file is answered by the finding that stops it, at its line and column."""
    assert wrong(name) == []


def test_paths_that_name_no_plan(tmp_path: Path) -> None:
    """A pipe, a device, a directory, a loop of links and the like are refused at once, each with one finding."""
    for kind, (path, code) in special_files(tmp_path).items():
        with pytest.raises(InvalidPlan) as refused:
            read_source(path)
        (problem,) = refused.value.problems
        assert isinstance(problem, Problem), kind
        assert (problem.code, problem.line, problem.col) == (code, 1, 1), kind


def test_a_file_given_by_mistake_is_not_shown(tmp_path: Path) -> None:
    """A file that is no plan is refused, and its content is not shown."""
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


def test_a_file_that_reports_size_zero_is_read(tmp_path: Path) -> None:
    """Files of /proc report size 0 and are read to their end; the limit counts the bytes read."""
    path = tmp_path / "plan.yml"
    path.write_bytes(b"version: 1\n")
    assert read_source(str(path)) == b"version: 1\n"
    if sys.platform == "linux":
        assert read_source("/proc/self/status").startswith(b"Name:")
