"""`planrun expand --offline`: only planrun's own patterns make steps concrete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planrun.plan.load import load

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = """\
version: 1
goal: The login works.
steps:
  - {id: explore, title: Look around}
  - {id: fix, title: Fix it, depends_on: [explore]}
  - id: verify   # kept
    title: Run the tests
    depends_on: [fix]
"""


def test_known_steps_become_commands_and_others_are_named(planrun: Command) -> None:
    """Looking around and testing get commands, `fix` stays and is named; edges, ids and comments are kept."""
    (planrun.folder / "Makefile").write_text("test:\n\ttrue\n")
    (planrun.folder / "plan.yml").write_text(PLAN)
    done = planrun("expand", "plan.yml", "--offline", "-o", "out.yml")
    assert done.returncode == 0, done.stderr
    assert '"fix" stays without an action' in done.stderr
    steps = {step.id: step for step in load(str(planrun.folder / "out.yml"), cache=False).steps}
    assert {name: step.kind for name, step in steps.items()} == {
        "explore": "run",
        "fix": "abstract",
        "verify": "run",
    }
    assert steps["explore"].risk == "read-only"
    text = (planrun.folder / "out.yml").read_text()
    assert "make test" in text
    assert "depends_on: [fix]" in text
    assert "- {id: fix, title: Fix it, depends_on: [explore]}" in text


def test_without_any_known_step_there_is_no_file(planrun: Command) -> None:
    """Exit code 1, and why."""
    (planrun.folder / "plan.yml").write_text("version: 1\nsteps: [{id: fix, title: Fix it}]\n")
    done = planrun("expand", "plan.yml", "--offline", "-o", "out.yml")
    assert done.returncode == 1
    assert (
        "no built-in pattern fits its abstract steps; write them, or expand them with a model" in done.stderr
    )
    assert not (planrun.folder / "out.yml").exists()
