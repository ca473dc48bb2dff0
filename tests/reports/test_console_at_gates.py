"""What a console shows of a run with gates."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from planrun.model import events as ev
from planrun.reports.ci import Azure, Buildkite, GitHub, GitLab, Look
from planrun.reports.console import HEARTBEAT, Console
from planrun.reports.screen import Screen
from tests.reports.runs import RUN, Story, step, waiting_run
from tests.reports.watching import shown

if TYPE_CHECKING:
    from pathlib import Path

    from planrun.reports.ci import Sections


def left(run_story: Story, look: Look) -> str:
    """Return the last output of a console for a story."""
    out = io.StringIO()
    watching = Console(Screen(out), look, run_story.state, str(run_story.rundir))
    watching.close(run_story.state, {"json": "planrun-out/ledger.json"}, "ab12")
    return out.getvalue()


def test_gates_are_shown_as_they_open_and_close(tmp_path: Path) -> None:
    """The policy in force first; waiting steps and reasons; reviewers; denials."""
    story = waiting_run(tmp_path)
    story.rest()
    rows = shown(story, Look()).splitlines()
    assert rows[1].startswith(
        "  policy: auto-approve medium, model-written low, 2 rules (plans/release.yml:7); at most"
    )
    why = "risk high (`git push`: publishes), limit medium, plans/release.yml:7"
    assert rows[2:] == [
        "✓ test (2.0s)",
        f"◔ publish needs approval: {why}",
        f"◔ notes needs approval: {why}",
        "✓ notes: approved by Ann (by the approval rel-7)",
        "✓ notes (0.0s)",
        "✗ wipe (failed: denied)",
        "  plans/release.yml:26: rule 1 (ci/policy.yml:3) denies it; its risk is high",
        "◔ really needs an answer: Last look: Publish <1.2> to @all?",
        "◔ where needs a decision: Where to?",
        "◔ paused: approval required",
        "",
        "Failed:",
        "  ✗ wipe  plans/release.yml:26",
        "    rule 1 (ci/policy.yml:3) denies it; its risk is high (ceiling:rules.1)",
        "◔ paused in 2.0s: 8 steps: 2 successful, 1 failed, 5 to run",
    ]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_run_that_waits_ends_with_the_ways_to_answer(quiet: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Every open gate with its commands, and how to continue; also under --quiet."""
    story = waiting_run(tmp_path)
    story.rest()
    said = left(story, Look(output="quiet" if quiet else "failed"))
    assert f"    $ planrun approve {RUN} publish\n    $ planrun reject {RUN} publish\n" in said
    assert f"    $ planrun decide {RUN} where=staging\n" in said
    assert f"  to continue once answered: planrun resume {RUN}\n" in said
    assert "to continue: " not in said


def test_a_plan_that_waits_is_introduced(tmp_path: Path) -> None:
    """Nothing started, so the first lines are the run id and the policy in force."""
    story = Story(tmp_path, step("a"), begun=False)
    story.ask("", rule="plan:auto_approve", reason="a: risk high")
    rows = shown(story, Look()).splitlines()
    assert rows[0] == f"release: 1 step, 2 at a time, run {RUN}"
    assert rows[2] == "◔ the plan needs approval: a: risk high"
    assert f"    $ planrun approve {RUN}\n" in left(story, Look())


def test_quiet_shows_no_gates_during_the_run(tmp_path: Path) -> None:
    """Only what failed, and the end."""
    story = waiting_run(tmp_path)
    assert shown(story, Look(output="quiet")) == ""
    story.rest()
    rows = shown(story, Look(output="quiet")).splitlines()
    assert rows[:3] == ["◔ paused: approval required", "Failed:", "  ✗ wipe  plans/release.yml:26"]
    assert rows[-1] == f"◔ paused in 2.0s: 8 steps: 2 successful, 1 failed, 5 to run, run {RUN}"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            GitHub(),
            "::notice file=plans/release.yml,line=18,title=publish needs approval::May it run? risk",
        ),
        (GitLab(), ""),
        (
            Azure(),
            "##vso[task.logissue type=warning;sourcepath=plans/release.yml;linenumber=18]publish needs",
        ),
        (Buildkite(), "+++ publish needs approval\n  plans/release.yml:18: May it run? risk high"),
    ],
)
def test_open_gates_are_annotations(sections: Sections, said: str, tmp_path: Path) -> None:
    """At the line of the step, where the CI system has them; the command that answers is a part of it."""
    story = waiting_run(tmp_path)
    story.rest()
    found = left(story, Look(style="groups", sections=sections))
    assert said in found
    notices = [row for row in found.splitlines() if row.startswith(("::notice", "##vso"))]
    assert len(notices) == (3 if said.startswith(("::", "##")) else 0)
    assert all(
        f"planrun {verb} {RUN}" in row
        for verb, row in zip(("approve", "decide", "decide"), notices, strict=False)
    )


def test_a_waiting_run_prints_a_heartbeat(tmp_path: Path) -> None:
    """A gate with its own timeout keeps the run open; CI systems end jobs without output."""
    story = Story(tmp_path, step("a"), step("b"))
    story.ask("a", rule="plan:rules.1", reason="why", until="2026-01-31T10:00:00.000Z")
    rows = shown(story, Look(), turn=HEARTBEAT).splitlines()
    out, now = io.StringIO(), [0.0]
    watching = Console(Screen(out, lambda: now[0]), Look(), story.state, str(tmp_path))
    watching.on_event(story.events[-1], story.state)
    watching.tick()
    now[0] += HEARTBEAT
    assert watching.tick() == HEARTBEAT
    assert out.getvalue().splitlines() == [rows[-1], "… still waiting: a needs approval; 0 of 2 done"]
    story.answer("a", "approved")
    watching.on_event(story.events[-1], story.state)
    assert watching.tick() is None


def test_a_rejection_is_shown(tmp_path: Path) -> None:
    """The reviewer's name is beside the step that failed by the denial."""
    story = Story(tmp_path, step("a"))
    story.ask("a", rule="plan:rules.1", reason="why").answer("a", "rejected", by="Ann")
    story.add(
        ev.StepMoved(at=story.at, step="a", status="failed", reason="denied", message="rejected by Ann")
    )
    rows = shown(story, Look()).splitlines()
    assert rows[3:] == [
        "⊗ a: rejected by Ann",
        "✗ a (failed: denied)",
        "  plans/release.yml:0: rejected by Ann",
    ]
