"""`on_failure: ask` with the installed command: what a failure means is asked, answered, and done."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Command

PLAN = """\
version: 1
policy:
  on_failure: {low: continue, reversible: ask, otherwise: abort}
steps:
  - {id: note, run: cp nothere there}
  - {id: build, run: sh build.sh}
  - {id: after, depends_on: [build], run: echo after}
"""


@pytest.fixture
def failing(planrun: Command) -> Command:
    """A folder with a plan whose build fails as long as there is no file `ok`."""
    (planrun.folder / "plan.yml").write_text(PLAN)
    (planrun.folder / "build.sh").write_text("test -e ok\n")
    return planrun


def steps(folder: Path) -> dict[str, tuple[str, str, int]]:
    """Status, reason and number of attempts of each step, from ledger.json."""
    ledger = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    return {step["id"]: (step["status"], step["reason"], len(step["attempts"])) for step in ledger["steps"]}


@pytest.mark.shows("N-51", "N-52")
def test_a_failure_waits_for_a_word_and_is_tried_once_more(failing: Command) -> None:
    """A low risk is tolerated, a reversible step asks, and after `retry` the run continues from there."""
    assert failing("execute", "plan.yml").returncode == 5
    statuses = steps(failing.folder)
    assert statuses["note"][:2] == ("failed", "exit")
    assert statuses["build"] == ("waiting", "decision", 1)
    assert statuses["after"][0] == "pending"
    (failing.folder / "ok").touch()
    assert failing("decide", "last", "build=retry").returncode == 0
    done = failing("resume", "last")
    assert done.returncode == 0, done.stderr
    assert steps(failing.folder)["build"][::2] == ("completed", 2)
    assert steps(failing.folder)["after"][0] == "completed"


@pytest.mark.shows("N-52")
@pytest.mark.parametrize(
    ("word", "code", "after"),
    [
        ("skip", 0, "skipped"),
        ("continue", 0, "completed"),
        ("block", 1, "blocked"),
        ("abort", 1, "cancelled"),
    ],
)
def test_the_answer_may_be_given_before(failing: Command, word: str, code: int, after: str) -> None:
    """--decide answers for a failure in advance: the run does not ask."""
    done = failing("execute", "plan.yml", "--decide", f"build={word}")
    assert done.returncode == code, done.stderr
    assert steps(failing.folder)["after"][0] == after


def test_to_try_once_more_holds_for_one_failure(failing: Command) -> None:
    """A standing `retry` does not try for ever: the second failure asks."""
    assert failing("execute", "plan.yml", "--decide", "build=retry").returncode == 5
    assert steps(failing.folder)["build"] == ("waiting", "decision", 2)


def test_only_what_there_is_can_be_answered(failing: Command) -> None:
    """Another word is exit code 2 with the ones that there are, and nothing ran."""
    done = failing("execute", "plan.yml", "--decide", "build=ignore")
    assert done.returncode == 2
    assert "retry, skip, continue, block, abort" in done.stderr
    assert not (failing.folder / ".planrun" / "runs").exists()


def test_a_failure_is_not_decided_before_it_happens(failing: Command) -> None:
    """While the step waits for its approval, there is no failure to speak of, and the answer is refused."""
    (failing.folder / "plan.yml").write_text(
        PLAN.replace("policy:", "policy:\n  rules: [{require: {step: build}}]")
    )
    assert failing("execute", "plan.yml").returncode == 5
    refused = failing("decide", "last", "build=continue")
    assert refused.returncode == 2
    assert "planrun approve" in refused.stderr
    assert failing("approve", "last", "build").returncode == 0
    assert failing("resume", "last").returncode == 5
    assert failing("decide", "last", "build=continue").returncode == 0
    assert failing("resume", "last").returncode == 0
