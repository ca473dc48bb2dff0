"""Folders of installed packages, which git ignores: an agent on a copy runs the tests of the project with them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.agents.worlds import agent, finish, git, repository, results, turns
from tests.fakes.messages import FakeMessages, use

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.fakes.messages import Asked


@pytest.mark.parametrize("kind", ["node", "venv", "nested"])
def test_an_agent_runs_the_tests_of_a_project_with_its_packages(planrun: Command, kind: str) -> None:
    """It imports a package that is installed in the workspace alone, cannot write it, and its patch has none of it."""
    folder = repository(planrun.folder)
    (folder / ".gitignore").write_text("node_modules/\n.venv/\n.planrun/\nplanrun-out/\n")
    if kind == "venv":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], cwd=folder, check=True)
        (site,) = (folder / ".venv" / "lib").glob("python*/site-packages")
        (site / "plus.py").write_text("ONE = 1\n")
        where, command = site / "plus.py", ".venv/bin/python -c 'import plus; print(\"found\", plus.ONE)'"
    else:
        top = folder / "packages" / "web" if kind == "nested" else folder
        package = top / "node_modules" / "plus"
        package.mkdir(parents=True)
        (package / "package.json").write_text(json.dumps({"name": "plus", "main": "index.js"}))
        where = package / "index.js"
        where.write_text("exports.one = 1;\n")
        (top / "test.js").write_text("console.log('found', require('plus').one);\n")
        command = f"node {(top / 'test.js').relative_to(folder)}"
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "packages")
    before = where.read_text()
    inside = where.relative_to(folder)
    told: list[str] = []

    def tell(asked: Asked) -> object:
        told.extend(results(asked))
        return finish()

    script = (
        f"{command}; (echo 'no' > {inside}) 2>/dev/null || echo kept; git status --short; echo new > new.txt"
    )
    (folder / "plan.yml").write_text(agent(apply="auto"))
    with FakeMessages(turns(use(("bash", {"command": script})), tell)) as api:
        done = planrun("execute", "plan.yml", env=api.env)
    assert done.returncode == 0, done.stderr
    assert "found 1" in told[0]
    assert "kept" in told[0]
    assert "node_modules" not in told[0].replace(str(inside), "")
    assert where.read_text() == before
    assert (folder / "new.txt").read_text() == "new\n"
    (patch,) = folder.glob(".planrun/runs/*/patches/fix/1.patch")
    assert "node_modules" not in patch.read_text()
    assert ".venv" not in patch.read_text()
