"""What the wheel carries, and that anyone can build the same one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def built(into: Path) -> Path:
    """Build the wheel into a folder and return it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", into],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1767225600"},
        capture_output=True,
        check=True,
    )
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    return built(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_carries_what_is_read_at_run_time(wheel: Path) -> None:
    """The schemas, the guardian and the typing mark travel inside the package."""
    names = set(zipfile.ZipFile(wheel).namelist())
    schemas = {f"planrun/schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    assert {"planrun/py.typed", "planrun/executors/guardian.sh", *schemas} <= names


def test_the_wheel_carries_the_package_and_nothing_else(wheel: Path) -> None:
    """Tests, plans and benchmarks stay in the repository."""
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top.rpartition(".")[2] if "-" in top else top for top in tops} == {"planrun", "data", "dist-info"}


def test_the_command_is_a_script_and_no_entry_point(wheel: Path) -> None:
    """The installer sets the interpreter in a script of ours, instead of writing its own, which imports re."""
    archive = zipfile.ZipFile(wheel)
    (script,) = [name for name in archive.namelist() if name.endswith(".data/scripts/planrun")]
    assert archive.read(script).startswith(b"#!python\n")
    assert not [name for name in archive.namelist() if name.endswith("entry_points.txt")]


def test_two_builds_are_equal(wheel: Path, tmp_path: Path) -> None:
    """The same commit gives the same bytes."""
    assert built(tmp_path).read_bytes() == wheel.read_bytes()
