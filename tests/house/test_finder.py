"""The finder that spares the command line half of each import: the same modules, and never stale code."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOOK = """
import json, sys
sys.path.insert(0, sys.argv[1])
import planrun.finder
if sys.argv[2] == "quick":
    planrun.finder.install()
import planrun.clock, planrun.model.plan, planrun.model
names = ("__name__", "__file__", "__cached__", "__package__", "__path__", "__doc__")
modules = (planrun.clock, planrun.model, planrun.model.plan)
found = {m.__name__: {n: str(vars(m).get(n)) for n in names} for m in modules}
loaders = sorted({type(sys.modules[name].__loader__).__name__ for name in found})
print(json.dumps({"found": found, "loaders": loaders, "mark": getattr(planrun.clock, "MARK", 0)}))
"""


AHEAD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import planrun.finder as finder
finder.install()
ahead = {name: text.split() for name, text in finder.AHEAD.items()}
found, asked = finder.Finder.find_spec, []

def find_spec(name, path=None, target=None):
    asked.append(name)
    return found(name, path, target)

finder.Finder.find_spec = find_spec
import planrun.cli.run, planrun.plan.compile.compile
print(json.dumps({"ahead": ahead, "asked": asked}))
"""


def look(package: Path, how: str = "quick", *options: str, **variables: str) -> dict[str, Any]:
    """Import three modules in an interpreter of its own, with the finder or without it."""
    done = subprocess.run(
        [sys.executable, "-S", *options, "-c", LOOK, str(package), how],
        env={"PATH": os.defpath, **variables}, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package without bytecode; returns the folder it is in."""
    shutil.copytree(ROOT / "planrun", tmp_path / "planrun", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def write(copy: Path, text: str, mode: py_compile.PycInvalidationMode | None = None) -> Path:
    """Add a line to a module, keeping its time; with `mode` its bytecode is written before."""
    source = copy / "planrun" / "clock.py"
    if mode:
        py_compile.compile(str(source), doraise=True, invalidation_mode=mode)
    source.write_text(source.read_text(encoding="utf-8") + text, encoding="utf-8")
    return source


def test_modules_are_the_same_with_and_without_it(copy: Path) -> None:
    """Names, files, bytecode files and documentation of modules and packages do not depend on the finder."""
    usual, quick = look(copy, "usual"), look(copy)
    assert usual["found"] == quick["found"]
    assert quick["loaders"] == ["_Loader"]


def test_missing_bytecode_is_written_as_ever(copy: Path) -> None:
    """Without bytecode the source runs, and bytecode is there afterwards."""
    look(copy)
    assert list((copy / "planrun" / "__pycache__").glob("clock.*.pyc"))


@pytest.mark.parametrize("mode", list(py_compile.PycInvalidationMode))
def test_code_older_than_its_source_never_runs(copy: Path, mode: py_compile.PycInvalidationMode) -> None:
    """A changed source counts, in whatever way its bytecode says what it was made of, unless that is "unchecked"."""
    write(copy, "\nMARK = 1\n", mode)
    unchecked = mode is py_compile.PycInvalidationMode.UNCHECKED_HASH
    assert look(copy)["mark"] == look(copy, "usual")["mark"] == (0 if unchecked else 1)


def test_a_source_of_the_same_size_counts_by_its_time(copy: Path) -> None:
    """Time and size are both compared."""
    source = write(copy, "\nMARK = 1\n")
    look(copy)
    before = source.stat().st_mtime_ns
    source.write_text(source.read_text(encoding="utf-8").replace("MARK = 1", "MARK = 2"), encoding="utf-8")
    os.utime(source, ns=(before + 10**10, before + 10**10))
    assert look(copy)["mark"] == 2


def test_broken_bytecode_is_left_to_python(copy: Path) -> None:
    """A file that is cut off in its head is made anew."""
    write(copy, "\nMARK = 1\n")
    look(copy)
    (bytecode,) = (copy / "planrun" / "__pycache__").glob("clock.*.pyc")
    bytecode.write_bytes(bytecode.read_bytes()[:12])
    assert look(copy)["mark"] == 1


def test_other_kinds_of_bytecode_are_left_to_python(copy: Path, tmp_path: Path) -> None:
    """With -O or a folder of its own for bytecode the finder is not installed."""
    assert look(copy, "quick", "-O")["loaders"] == ["SourceFileLoader"]
    apart = look(copy, "quick", PYTHONPYCACHEPREFIX=str(tmp_path / "apart"))
    assert apart["loaders"] == ["SourceFileLoader"]


def test_a_zip_file_is_left_to_python(copy: Path) -> None:
    """A package in a zip file is imported from there."""
    with zipfile.ZipFile(copy / "planrun.zip", "w") as archive:
        for path in (copy / "planrun").rglob("*.py"):
            archive.write(path, path.relative_to(copy))
    assert look(copy / "planrun.zip")["loaders"] == ["zipimporter"]


def test_what_a_start_loads_ahead_is_in_order() -> None:
    """Each module that is loaded ahead comes after all that it imports: no import statement has to find it."""
    command = [sys.executable, "-S", "-c", AHEAD, str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(done.stdout)
    listed = [f"planrun.{name}" for names in found["ahead"].values() for name in names]
    assert [name for name in found["asked"] if name in listed] == listed
