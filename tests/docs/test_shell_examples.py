"""Codes whose example takes commands are shown by a script in docs/errors.md and docs/lint.md, which runs here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT
from tests.docs.pages import text_of
from tests.docs.test_errors_page import NOT_IN_A_BLOCK
from tests.docs.test_lint_page import BY_RECORDS

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = re.compile(r"^<!-- (wrong|advice|instead): (\w+) -->\n```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [found for page in ("errors.md", "lint.md") for found in EXAMPLE.findall(text_of(page))]


def codes_of(script: str, folder: Path) -> tuple[set[str], str]:
    """Run a script in an empty folder; return the codes of the findings that it prints, and all that it prints."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    command = bin_folder / "planrun"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m planrun "$@"\n')
    command.chmod(0o755)
    work = folder / "work"
    work.mkdir()
    names = ("PLANRUN_", "GITHUB_", "PYPI_", "CI")
    env = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=work,
        env=env | {"PATH": f"{bin_folder}:{env['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    shown = done.stdout + done.stderr
    return set(re.findall(r": (?:error|warning|advice)\[(\w+)\]: ", shown)), shown


def test_every_code_without_a_plan_has_a_script() -> None:
    """Each code has an example and what to write instead: as a plan, or as a script."""
    for kinds in (("wrong", "advice"), ("instead",)):
        assert {code for kind, code, _ in EXAMPLES if kind in kinds} == NOT_IN_A_BLOCK | BY_RECORDS


@pytest.mark.parametrize(
    ("kind", "code", "script"), EXAMPLES, ids=[f"{code}-{kind}" for kind, code, _ in EXAMPLES]
)
def test_a_script_shows_its_code(kind: str, code: str, script: str, tmp_path: Path) -> None:
    """The first script prints findings with its code; the second one prints none."""
    codes, shown = codes_of(script, tmp_path)
    if kind == "instead":
        assert codes == set(), shown
        assert "error" not in shown, shown
    elif code == "E199":  # the last one of a thousand, which text does not show
        assert shown.split() == [code]
    else:
        assert codes == {code}, shown
