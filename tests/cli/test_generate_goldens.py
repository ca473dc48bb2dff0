"""Plans without a model as a whole, held against files that were read."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Said
    from tests.golden import Golden

FOLDER = Path(__file__).parent / "generated"
GOALS = {
    "implementation": "Implement a cache for the parser",
    "fixing": "Fix the crash of the parser in app.py",
    "refactoring": "Refactor the parser and main.go",
    "testing": "Write tests for the parser",
    "default": "Look at the latest state of the parser",
}
FILES = {
    "pyproject.toml": "[tool.pytest.ini_options]\n",
    "app.py": "print('parser')\n",
    "go.mod": "module x\n",
}


@pytest.mark.shows("GM-46", "GM-47", "GM-48", "GM-49")
@pytest.mark.parametrize("pattern", GOALS)
def test_a_pattern_gives_the_plan_that_was_read(
    say: Callable[..., Said], golden: Golden, tmp_path: Path, pattern: str
) -> None:
    """One goal for each pattern, in a repository of git with two languages; the plan is valid as it stands."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    said = say("generate", "--offline", GOALS[pattern], "-o", "-")
    assert said.code == 0
    path = FOLDER / f"{pattern}.yml"
    golden(path, said.out)
    assert say("validate", path).code == 0
