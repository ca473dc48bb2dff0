"""planrun where the library that calls models is not installed, as the GitHub Action installs it by default."""

from __future__ import annotations

import os
import subprocess
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

import planrun
from tests.conftest import LIMIT

ROOT = Path(__file__).parents[2]
PLAN = "version: 1\ngoal: It works.\nllm: {model: m}\nsteps: [{id: a, run: exit 77}]\n"
REMEDY = "anthropic is not installed: pip install anthropic; in the GitHub Action set the input `llm: true`"


def bare_python(folder: Path, without: tuple[str, ...]) -> Path:
    """Return the Python of a virtual environment with everything that is installed here, but for some libraries."""
    venv.EnvBuilder(symlinks=True).create(folder)
    (site,) = folder.glob("lib/*/site-packages")
    installed = Path(str(distribution("click").locate_file("")))
    for entry in installed.iterdir():
        if not entry.name.startswith((*without, "planrun", "__")):
            (site / entry.name).symlink_to(entry)
    (site / "planrun").symlink_to(Path(planrun.__file__).parent)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return such a Python without anthropic."""
    return bare_python(tmp_path_factory.mktemp("bare"), ("anthropic",))


def test_a_missing_library_is_reported_before_anything_is_asked(python: Path, tmp_path: Path) -> None:
    """Every verb that asks a model names the package to install; a run starts, and reports that no model can replan."""
    (tmp_path / "plan.yml").write_text(PLAN, "utf-8")
    (tmp_path / "open.yml").write_text(PLAN.replace("run: exit 77", "title: Build it"), "utf-8")
    env = {**os.environ, "ANTHROPIC_API_KEY": "sk-not-a-real-key", "PYTHONDONTWRITEBYTECODE": "1"}
    found = {}
    for words in (
        "execute plan.yml",
        "replan last",
        "replan last --propose",
        "execute open.yml --expand",
        "expand open.yml -o x.yml",
        "generate ship --llm-model m -o y.yml",
    ):
        done = subprocess.run(
            [python, "-m", "planrun", *words.split()],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert REMEDY in done.stdout + done.stderr, (words, done.stdout, done.stderr)
        found[words] = done.returncode
    assert found.pop("execute plan.yml") == 1
    assert set(found.values()) == {2}
    assert not (tmp_path / "x.yml").exists()
    doctor = [str(python), "-m", "planrun", "doctor"]
    seen = subprocess.run(doctor, cwd=tmp_path, env=env, capture_output=True, text=True, check=False).stdout
    assert "anthropic is not installed" in seen
    assert "set the input `llm: true`" in seen
