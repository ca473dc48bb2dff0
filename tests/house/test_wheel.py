"""What the wheel carries, and that anyone can build the same one."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def built(into: Path, source: Path = ROOT, target: str = "wheel") -> Path:
    """Build the wheel (or sdist) of a source tree into a folder and return it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", into],
        cwd=source,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1767225600"},
        capture_output=True,
        check=True,
    )
    (result,) = into.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return result


def unpack(sdist: Path, folder: Path) -> None:
    """Unpack an sdist, with the filter of Python where it has one (3.11.4)."""
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as Python unpacks a ZIP archive of them: no file is executable, and there is no git."""
    folder = tmp_path_factory.mktemp("archive")
    unpack(built(folder, target="sdist"), folder)
    (source,) = folder.glob("planrun-*/")
    for path in source.rglob("*"):
        if path.is_file():
            path.chmod(0o644)
    return source


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel once."""
    return built(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_carries_what_is_read_at_run_time(wheel: Path) -> None:
    """The schemas, the pages about codes, the guardian and the typing mark travel inside the package."""
    names = set(zipfile.ZipFile(wheel).namelist())
    schemas = {f"planrun/schemas/{path.name}" for path in (ROOT / "schemas").iterdir()}
    pages = {"planrun/codes/errors.md", "planrun/codes/lint.md"}
    assert {"planrun/py.typed", "planrun/executors/guardian.sh", *schemas, *pages} <= names


def test_the_wheel_carries_the_package_and_nothing_else(wheel: Path) -> None:
    """Tests, plans and benchmarks stay in the repository."""
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top.rpartition(".")[2] if "-" in top else top for top in tops} == {"planrun", "dist-info"}


def test_the_first_run_from_a_source_archive_is_green(unpacked: Path, tmp_path: Path) -> None:
    """What the README's first command does, with the libraries that are there: build, install, run the first plan."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    (libraries,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (libraries / "shared.pth").write_text("\n".join(sys.path[1:]))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "."], cwd=unpacked, check=True)
    done = subprocess.run(
        [
            tmp_path / "venv" / "bin" / "planrun",
            "execute",
            "plans/quickstart.yml",
        ],
        cwd=unpacked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "completed in" in done.stdout + done.stderr


def test_the_same_sources_give_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """Whatever the folder, umask, time zone and file times: from here, and from the unpacked sdist."""
    sdist = built(tmp_path / "here", target="sdist")
    unpack(sdist, tmp_path / "other folder")
    (source,) = (tmp_path / "other folder").iterdir()
    for path in source.rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (1e9, 1e9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        before = os.umask(0o077)
        again = [built(tmp_path / "there", source, target) for target in ("wheel", "sdist")]
        os.umask(before)
    assert [path.read_bytes() for path in again] == [wheel.read_bytes(), sdist.read_bytes()]
