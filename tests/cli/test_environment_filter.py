"""What a step sees of the caller's environment under `inherit_env: safe`, with the variables of real CI systems."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from itertools import cycle, islice
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "environment" / "variables.tsv"
PLAN = """\
version: 1
steps:
  - id: names
    run: |
      compgen -e > names.txt
"""


def _value(text: str) -> str:
    letters = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8z0CfI"

    def made(found: re.Match[str]) -> str:
        pool = [char for char in letters if not found[1] or char in string.ascii_uppercase + string.digits]
        return "".join(islice(cycle(pool), int(found[2])))

    return re.sub(r"\{(UPPER)?(\d+)\}", made, text.replace("\\n", "\n"))


def _rows() -> list[tuple[str, str, str]]:
    lines = DATA.read_text(encoding="utf-8").splitlines()[1:]
    return [(kind, name, _value(value)) for kind, name, value in (line.split("\t") for line in lines)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names that a step sees when planrun is started with all variables of the list."""
    folder = tmp_path_factory.mktemp("environment")
    (folder / "plan.yml").write_text(PLAN)
    # planrun writes into the files that a CI system names: those of this test, not of another user of the machine.
    values = {name: value.replace("{TEMP}", str(folder)) for _, name, value in _rows()}
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder)} | values
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return set((folder / "names.txt").read_text().split())


def test_the_list_is_long_enough() -> None:
    """At least 150 variables of each kind, each once."""
    names = [name for _, name, _ in _rows()]
    assert len(set(names)) == len(names)
    for wanted in ("secret", "plain"):
        assert sum(kind == wanted for kind, _, _ in _rows()) >= 150


def test_steps_see_no_credential(seen: set[str]) -> None:
    """Words of the name, whatever joins them, and values that look like a credential."""
    assert sorted(name for kind, name, _ in _rows() if kind == "secret" and name in seen) == []


def test_steps_see_everything_else(seen: set[str]) -> None:
    """A word that only looks like one is none, and a region is no secret of a cloud."""
    assert sorted(name for kind, name, _ in _rows() if kind == "plain" and name not in seen) == []
