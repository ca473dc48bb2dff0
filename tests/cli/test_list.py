"""A bare `planrun` and `planrun list`: the plans of a folder, their steps, and how to go on."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said
    from tests.conftest import Command

PLAN = """\
version: 1
description: Build and test
steps:
  - {id: lint, title: Look at the code, run: ls}
  - {id: publish-the-package, description: Send it away, run: "rm -rf $HOME/x"}
  - {id: unit, matrix: {os: [a, b]}, run: "rm -f ${{ matrix.os }}"}
  - {id: think, description: Find a name}
finally:
  - {id: tidy, run: ls}
"""
LISTED = """\
plan.yml  Build and test
  lint                 read-only  Look at the code
  publish-the-package  high       Send it away
  unit                 medium     (2 instances)
  think                -          Find a name
  tidy                 read-only  ls (at the end)
"""
HELP = """
planrun run [STEP]   run plan.yml, or a step and what it depends on
planrun help         all commands
"""


def test_a_bare_planrun_lists_steps(say: Callable[..., Said], tmp_path: Path) -> None:
    """A folder with a plan shows its steps with risk and title, then two lines of help."""
    (tmp_path / "plan.yml").write_text(PLAN)
    assert say() == (0, LISTED + HELP, "")
    assert say("list") == (0, LISTED, "")


def test_a_broken_plan_is_listed_with_its_first_error(say: Callable[..., Said], tmp_path: Path) -> None:
    """Plans beside a broken one are listed as usual."""
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "a.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, rum: 'x'}\n  - {id: b, rum: 'x'}\n"
    )
    (tmp_path / "plans" / "b.yml").write_text("version: 1\nname: two\nsteps:\n  - {id: b, run: ls}\n")
    (tmp_path / "plans" / "policy.yml").write_text("auto_approve: high\n")
    said = say("list")
    assert said.code == 0
    assert said.out.startswith(
        'plans/a.yml\n  error: plans/a.yml:3:13: unknown key "rum" in step "a"; did you mean "run"?'
    )
    assert said.out.endswith("\n\nplans/b.yml  two\n  b  read-only  ls\n")
    assert say().out.endswith("\nplanrun run PLAN     run one of them\nplanrun help         all commands\n")


def test_a_script_of_several_lines_is_not_joined(say: Callable[..., Said], tmp_path: Path) -> None:
    """Its first line stands for it, since one line of all of them would be another script."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps:\n  - id: a\n    run: |\n      ls\n      pwd\n")
    assert say("list").out == "plan.yml  plan\n  a  read-only  ls …\n"


def test_files_of_other_tools_are_no_plans(say: Callable[..., Said], tmp_path: Path) -> None:
    """A folder with files of other tools only: those that can be converted are offered, the others left out."""
    (tmp_path / "azure-pipelines.yml").write_text("trigger: [main]\npool: {a: b}\nsteps:\n- script: ls\n")
    (tmp_path / "dag.yaml").write_text("steps:\n  - name: a\n    command: ls\n")
    (tmp_path / "Taskfile.yml").write_text("version: '3'\ntasks:\n  a: ls\n")
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "ci.yml").write_text(
        "on: push\njobs: {a: {runs-on: b, steps: []}}\n"
    )
    offered = [
        "planrun convert Taskfile.yml -o plan.yml",
        "planrun convert .github/workflows/ci.yml -o plan.yml",
        "planrun convert dag.yaml -o plan.yml",
    ]
    said = say()
    assert said.out.splitlines()[2:5] == offered
    assert "azure" not in said.out
    assert say("list") == said
    refused = say("run")
    assert (refused.code, refused.err.splitlines()[1:]) == (2, [f"  {command}" for command in offered])
    (tmp_path / "own.yml").write_text("version: 1\nsteps: [{id: a, run: ls}]\n")
    assert say("run").err.splitlines()[1:] == ["  planrun run own.yml"]
    assert say("list").out == "own.yml  own\n  a  read-only  ls\n"


def test_without_a_plan_it_says_so(say: Callable[..., Said]) -> None:
    """In an empty folder the way on is `init` and `help`."""
    said = say()
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("No plan in this folder: ")
    assert "planrun init " in said.out
    assert "planrun help " in said.out
    assert say("list") == said


def test_plans_of_a_folder_above(
    say: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a repository the plans of the nearest folder above are listed, which is named."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert say("list").out == f"in {tmp_path}:\n\n{LISTED}"


def test_json(say: Callable[..., Said], tmp_path: Path) -> None:
    """`--json` has every plan with its steps, which one is the default, and the error of a broken one."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "other.yml").write_text("version: 1\nsteps:\n")
    found = json.loads(say("list", "--json").out)
    assert [(plan["file"], plan["default"], bool(plan["error"])) for plan in found["plans"]] == [
        ("plan.yml", True, False),
        ("other.yml", False, True),
    ]
    assert found["plans"][0]["steps"][0] == {
        "id": "lint",
        "text": "Look at the code",
        "risk": "read-only",
        "section": "steps",
        "instances": 0,
    }


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_no_line_is_wider_than_the_terminal(planrun: Command, width: int) -> None:
    """On a terminal long titles end with an ellipsis at its width; wide characters count twice."""
    (planrun.folder / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        f"  - {{id: a, title: '{'long title ' * 20}', run: ls}}\n"
        f"  - {{id: b, title: '{'漢字' * 60}', run: 'rm -rf $X'}}\n"
    )
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "planrun", "list"],
        cwd=planrun.folder, stdout=child, env={**env, "TERM": "xterm"},
    )  # fmt: skip
    os.close(child)
    data = b""
    try:
        while piece := os.read(parent, 65536):
            data += piece
    except OSError:  # how Linux ends a terminal
        pass
    assert process.wait(timeout=60) == 0
    os.close(parent)
    text = data.decode()
    assert "\x1b[31mhigh\x1b[0m" in text
    assert "\x1b[1mplan.yml\x1b[0m" in text
    for code in ("\x1b[31m", "\x1b[1m", "\x1b[0m"):
        text = text.replace(code, "")
    rows = text.splitlines()
    assert sum(row.endswith("…") for row in rows) == 2
    assert max(len(row) + sum(char > "\u2fff" for char in row) for row in rows) <= width


def test_a_listing_loads_neither_click_nor_a_yaml_reader(planrun: Command) -> None:
    """A bare `planrun` takes plans that were seen before from the cache."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    script = "import sys; from planrun.cli import main; main([]); sys.stderr.write(' '.join(sys.modules))"

    def modules() -> set[str]:
        done = subprocess.run(
            [sys.executable, "-S", "-c", script],
            cwd=planrun.folder, capture_output=True, text=True, timeout=300, check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert done.stdout.startswith("plan.yml")
        return set(done.stderr.split())

    modules()
    assert not {"click", "yaml", "pydantic", "jinja2", "json", "re"} & modules()
