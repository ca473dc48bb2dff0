"""`planrun convert`: where it writes the plan, what it reports, and its exit codes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

WORKFLOW = """\
on: push
jobs:
  a: {runs-on: ubuntu-latest, steps: [{run: make}]}
  b: {runs-on: ubuntu-latest, needs: a, steps: [{uses: some/thing@v1}]}
"""


def test_a_plan_is_written_and_valid(say: Callable[..., Said], tmp_path: Path) -> None:
    """With -o the plan is a file that `validate` accepts, and the list goes to stderr with file, line and column."""
    (tmp_path / "ci.yml").write_text(WORKFLOW)
    said = say("convert", "ci.yml", "--job", "a", "-o", "new/plan.yml")
    assert (said.code, said.out) == (0, "wrote new/plan.yml: 1 step; next: planrun show new/plan.yml\n")
    assert "ci.yml:3:16: differs[runs-on]: " in said.err
    assert say("validate", "new/plan.yml").code == 0


def test_what_is_refused_leaves_no_file(say: Callable[..., Said], tmp_path: Path) -> None:
    """Exit code 2 and the names to give up; given up, there is a plan."""
    (tmp_path / "ci.yml").write_text(f"novel: 1\n{WORKFLOW}")
    said = say("convert", "ci.yml", "-o", "plan.yml")
    assert (said.code, said.out) == (2, "")
    assert "ci.yml:1:1: refused[key:novel]: " in said.err
    assert said.err.endswith("no plan is written; what cannot be converted: key:novel\n")
    assert not (tmp_path / "plan.yml").exists()
    assert say("convert", "ci.yml", "--accept", "key:novel", "-o", "plan.yml").code == 0


def test_nothing_is_overwritten(say: Callable[..., Said], tmp_path: Path) -> None:
    """A file that is there stays unless --force is given."""
    (tmp_path / "ci.yml").write_text(WORKFLOW)
    (tmp_path / "plan.yml").write_text("mine")
    assert say("convert", "ci.yml", "--job", "a", "-o", "plan.yml").code == 2
    assert (tmp_path / "plan.yml").read_text() == "mine"
    assert say("convert", "ci.yml", "--job", "a", "-o", "plan.yml", "--force").code == 0


def test_one_document_tells_all(say: Callable[..., Said], tmp_path: Path) -> None:
    """--json has the plan and each finding with its place; without -o nothing is written."""
    (tmp_path / "ci.yml").write_text(WORKFLOW)
    said = say("convert", "ci.yml", "--json")
    found = json.loads(said.out)
    assert (said.code, found["source"], found["refused"]) == (0, "github", False)
    (left,) = [each for each in found["findings"] if each["kind"] == "todo"]
    assert (left["code"], left["line"], left["step"]) == ("uses:some/thing", 4, "b.thing")
    assert json.loads(say("convert", "ci.yml", "--json", "--job", "a").out)["plan"].startswith("# Converted")


def test_what_is_no_file_of_a_known_tool(say: Callable[..., Said], tmp_path: Path) -> None:
    """A file that cannot be read, or is another tool's, is exit code 2 with a sentence."""
    (tmp_path / "other.yml").write_text("a: b\n")
    assert "name its tool by --from" in say("convert", "other.yml").err
    (tmp_path / "broken.yml").write_text("jobs: [\n")
    assert "broken.yml:" in say("convert", "broken.yml").err
    assert say("convert", "missing.yml").code == 2
    (tmp_path / "ci.yml").write_text(WORKFLOW)
    assert 'there is no job "c"' in say("convert", "ci.yml", "--job", "c").err
