"""Advice from recorded durations, in plans whose steps really took that long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from planrun.cli import main
from planrun.lint.lint import advise
from planrun.plan.edit.page import EditError
from planrun.plan.edit.reorder import by_longest_path, makespan, reorder_steps
from planrun.plan.load import load, load_bytes
from planrun.records import history

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HEAD = "# what ships\nversion: 1\n\nlimits: {max_parallel: 2}   # two at once\nsteps:\n"
ALIKE = """\
  # two quick ones
  - id: format
    run: grep -rq x . # looks
  - id: spell
    run: |
      grep -rq y .

  # the slow one
  # which decides
  - id: test     # slow
    run: make test
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty workspace."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def took(folder: Path, seconds: Mapping[str, float], file: str = "plan.yml") -> None:
    """Have it on record how long the steps of a plan took in one run."""
    home = folder / ".planrun"
    (home / history.FOLDER).mkdir(parents=True, exist_ok=True)
    pasts = {name: history.Past(ending="completed", seconds=each) for name, each in seconds.items()}
    assert history.write(
        history.path_of(str(home), load(file, cache=False)),
        history.History().with_run("20260101-000000-aaaa", pasts),
    )


def test_the_longest_path_is_put_first_and_no_other_byte_changes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By recorded durations another order is shorter: lint says so, `--fix` moves whole steps with their comments."""
    (folder / "plan.yml").write_text(HEAD + ALIKE)
    took(folder, {"format": 10.0, "spell": 10.0, "test": 30.0})
    (problems,) = advise("plan.yml").problems
    assert problems.code == "L412"
    assert "without records 2 at once take 40 s, and 30 s when it comes first" in problems.message
    assert "test, format, spell" in problems.hint
    before = load("plan.yml", cache=False)
    assert main(["lint", "plan.yml", "--fix"]) == 0
    assert "reordered steps: test, format, spell" in capsys.readouterr().err
    after = load("plan.yml", cache=False)
    assert [step.id for step in after.steps] == ["test", "format", "spell"]
    assert {step.id: step.action for step in after.steps} == {step.id: step.action for step in before.steps}
    text = (folder / "plan.yml").read_text()
    assert sorted(text.splitlines()) == sorted((HEAD + ALIKE).splitlines())
    assert "  # the slow one\n  # which decides\n  - id: test     # slow\n" in text
    assert "  # two quick ones\n  - id: format\n" in text
    assert advise("plan.yml").problems == ()


def test_nothing_is_moved_where_nothing_is_gained(folder: Path) -> None:
    """Without durations, under another schedule, or when the order is good, there is nothing to say and to write."""
    (folder / "plan.yml").write_text(HEAD + ALIKE)
    assert advise("plan.yml").problems == ()
    took(folder, {"format": 30.0, "spell": 1.0, "test": 1.0})
    assert advise("plan.yml").problems == ()
    (folder / "batches.yml").write_text("schedule: batches\n" + HEAD.replace("# what ships\n", "") + ALIKE)
    took(folder, {"format": 10.0, "spell": 10.0, "test": 30.0}, "batches.yml")
    assert advise("batches.yml").problems == ()
    assert main(["lint", "plan.yml", "batches.yml", "--fix"]) == 0
    assert (folder / "plan.yml").read_text() == HEAD + ALIKE


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("version: 1\nsteps: [{id: a, run: x}, {id: b, run: y}]\n", "in brackets cannot be moved"),
        ("version: 1\nsteps:\n  - run: x\n  - id: b\n    run: y\n", "has no id"),
        (
            "version: 1\nsteps:\n  - id: a\n    env: &e {X: '1'}\n    run: x\n  - id: b\n    env: *e\n    run: y\n",
            "alias",
        ),
        (
            "version: 1\nsteps:\n  - id: a\n    run: x\n  - id: b\n    run: |+\n      y\n\n\nname: n\n",
            "would change",
        ),
    ],
)
def test_a_text_that_would_mean_something_else_is_left_as_it_is(text: str, why: str) -> None:
    """Steps in brackets cannot be moved, steps without ids, anchors and texts that count empty lines do not move."""
    plan = load_bytes(text.encode(), "plan.yml", cache=False)
    names = [step.id for step in plan.steps]
    with pytest.raises(EditError, match=why):
        reorder_steps(text.encode(), "plan.yml", names[::-1])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "\n", "\n# the end\n", "\nfinally:\n  - {id: z, run: z}\n"])
def test_line_ends_and_what_comes_after_the_steps_stay(newline: str, end: str) -> None:
    """Whatever the lines end with and whatever follows the last step, the bytes are the same in another order."""
    text = f"version: 1\nsteps:\n  - id: a\n    run: x\n\n  - id: b # second\n    run: y{end}".replace(
        "\n", newline
    )
    made = reorder_steps(text.encode(), "plan.yml", ["b", "a"]).decode()
    assert [step.id for step in load_bytes(made.encode(), "plan.yml", cache=False).main()] == ["b", "a"]
    rest = end.replace("\n", newline)
    head = newline.join(
        ["version: 1", "steps:", "  - id: b # second", "    run: y", "", "  - id: a", "    run: x"]
    )
    assert made == head + rest


def test_the_reckoning_is_that_of_the_schedule() -> None:
    """Steps start as places get free, and the order of the file decides among steps that look alike."""
    before = {"a": (), "b": (), "c": (), "d": ("c",)}
    seconds = {"a": 2.0, "b": 2.0, "c": 1.0, "d": 5.0}
    assert makespan(before, list(before), seconds, 1) == 10.0
    assert makespan(before, list(before), seconds, 4) == 6.0
    assert by_longest_path(before, list(before), seconds) == ["c", "d", "a", "b"]


def test_steps_that_could_run_in_parallel_are_reported_with_the_saving(folder: Path) -> None:
    """A step that waits for another one without reading anything of it: the saving is that of the longest path."""
    plan = (
        "version: 1\nsteps:\n"
        "  - {id: docs, run: make docs, inputs: 'docs/**', produces: build/docs}\n"
        "  - {id: app, depends_on: [docs], run: make app, inputs: 'src/**', produces: build/app}\n"
    )
    (folder / "plan.yml").write_text(plan)
    (problems,) = advise("plan.yml").problems
    assert (problems.code, problems.line) == ("L411", 4)
    assert problems.hint.endswith("no durations recorded")
    took(folder, {"docs": 20.0, "app": 30.0})
    assert advise("plan.yml").problems[0].hint.endswith("about 20.0 s a run")


@pytest.mark.parametrize(
    "step",
    [
        "inputs: 'build/**', produces: build/app",  # reads what the other one makes
        "inputs: 'src/**', produces: build/docs/app",  # writes where the other one does
        "inputs: 'src/**', produces: build/app, env: {X: '${{ steps.docs.status }}'}",
        "inputs: 'src/**', produces: build/app, condition: run.ci",
        "inputs: 'src/**', produces: build/app, lock: disk",
        "produces: build/app",  # says nothing of what it reads
    ],
)
def test_a_wait_that_may_have_its_reason_is_not_spoken_of(folder: Path, step: str) -> None:
    """A step that reads, overwrites, has a condition or a lock, or names no inputs, waits with good reason."""
    (folder / "plan.yml").write_text(
        "version: 1\nsteps:\n"
        "  - {id: docs, run: make docs, inputs: 'docs/**', produces: build/docs}\n"
        f"  - {{id: app, depends_on: [docs], run: make app, {step}}}\n"
    )
    assert advise("plan.yml").problems == ()


def test_a_step_close_to_its_timeout_is_reported(folder: Path) -> None:
    """A median of more than 70 % of the timeout is advice; whose timeout it is stands beside it."""
    (folder / "plan.yml").write_text(
        "version: 1\nsteps:\n  - {id: a, run: make}\n  - {id: b, run: make, timeout: 10m}\n"
    )
    took(folder, {"a": 290.0, "b": 290.0})
    (problems,) = advise("plan.yml").problems
    assert problems.message == 'step "a" usually takes 4m50s; its timeout is 5m, the default'
