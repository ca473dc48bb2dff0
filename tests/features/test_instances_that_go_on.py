"""Groups of instances in runs that are resumed, killed, changed or narrowed, with real processes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

LISTED = """\
version: 1
steps:
  - {id: l, run: 'cat list >> "$PLANRUN_OUTPUT"', outputs: {l: array}}
  - id: t
    depends_on: [l]
    foreach: "${{ steps.l.outputs.l }}"
    run: echo r >> ran-${{ item }}; test -e ok || test ${{ item }} != b
  - {id: after, depends_on: [t], run: "true"}
"""
AXES = """\
version: 1
steps:
  - {id: t, matrix: {n: [%s]}, run: 'echo r >> ran-${{ matrix.n }}'}
  - {id: after, depends_on: [t], run: echo r >> ran-after}
finally:
  - {id: f, matrix: {n: [1, 2]}, run: 'echo ${{ run.status }} >> ran-f${{ matrix.n }}'}
  - {id: g, depends_on: [f], run: echo r >> ran-g}
"""


def ran(folder: Path) -> dict[str, int]:
    """How often each instance ran."""
    return {path.name[4:]: len(path.read_text().splitlines()) for path in folder.glob("ran-*")}


def ends(folder: Path) -> dict[str, str]:
    """Status of each step, as ledger.json tells."""
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text("utf-8"))
    return {step["id"]: step["status"] for step in ledger["steps"]}


def test_a_resumed_run_repeats_the_instances_that_failed(planrun: Command) -> None:
    """Those that completed stay as they are, also where a list of the run made them."""
    (planrun.folder / "plan.yml").write_text(LISTED)
    (planrun.folder / "list").write_text('l=["a","b","c"]\n')
    assert planrun("execute", "plan.yml").returncode == 1
    (planrun.folder / "ok").touch()
    assert planrun("resume", "last").returncode == 0
    assert ran(planrun.folder) == {"a": 1, "b": 2, "c": 1}


def test_another_list_makes_other_instances(planrun: Command) -> None:
    """When what gives the list runs again, instances that are no longer there are gone, and new ones run."""
    (planrun.folder / "plan.yml").write_text(LISTED)
    (planrun.folder / "list").write_text('l=["a","b"]\n')
    (planrun.folder / "ok").touch()
    assert planrun("execute", "plan.yml").returncode == 0
    (planrun.folder / "list").write_text('l=["b","c"]\n')
    assert planrun("retry", "last", "l").returncode == 0
    assert ran(planrun.folder) == {"a": 1, "b": 2, "c": 1}
    assert [name for name in ends(planrun.folder) if "[" in name] == ["t[b]", "t[c]"]


def test_a_value_more_runs_one_instance_more(planrun: Command) -> None:
    """`resume --plan` keeps the instances that ended; what waits for the group runs again, and so does cleanup."""
    (planrun.folder / "plan.yml").write_text(AXES % "1, 2")
    assert planrun("execute", "plan.yml").returncode == 0
    (planrun.folder / "plan.yml").write_text(AXES % "1, 2, 3")
    assert planrun("resume", "last", "--plan", "plan.yml").returncode == 0
    assert ran(planrun.folder) == {"1": 1, "2": 1, "3": 1, "after": 2, "f1": 2, "f2": 2, "g": 2}


def test_one_instance_can_be_chosen_and_left_out(planrun: Command) -> None:
    """By its id, or all of them by that of the step; `retry` repeats one."""
    (planrun.folder / "plan.yml").write_text(AXES % "1, 2")
    assert planrun("execute", "plan.yml", "--only", "t[n=2]").returncode == 0
    assert ran(planrun.folder) == {"2": 1, "f1": 1, "f2": 1, "g": 1}
    assert planrun("execute", "plan.yml", "--skip", "t[n=2]", "--skip", "f").returncode == 0
    assert ran(planrun.folder) == {"1": 1, "2": 1, "after": 1, "f1": 1, "f2": 1, "g": 2}
    assert planrun("retry", "last", "t[n=1]").returncode == 0
    assert ran(planrun.folder)["1"] == 2


def test_a_run_that_was_killed_in_a_group_goes_on_in_it(planrun: Command) -> None:
    """Also where planrun died before the first instance had ended: the list is the one that was found."""
    (planrun.folder / "plan.yml").write_text(
        LISTED.replace("echo r >> ran", "test -e ok || kill -9 $PPID; echo r >> ran")
    )
    (planrun.folder / "list").write_text('l=["a","b"]\n')
    assert planrun("execute", "plan.yml", "--jobs", "1").returncode == -9
    (planrun.folder / "ok").touch()
    (planrun.folder / "list").write_text('l=["z"]\n')
    done = planrun("resume", "last")
    assert done.returncode == 0, done.stderr
    assert ends(planrun.folder) == dict.fromkeys(["l", "t", "t[a]", "t[b]", "after"], "completed")
