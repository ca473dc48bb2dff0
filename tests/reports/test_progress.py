"""How far a run is, without numbers that mean nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from planrun.reports.facts import epoch
from planrun.reports.progress import AGE, Estimates, Tally, progress
from tests.reports.runs import Story, step

if TYPE_CHECKING:
    from collections.abc import Mapping

START = epoch("2026-01-31T09:00:00Z")


def test_in_the_middle(tmp_path: Path) -> None:
    """All fields of a run with two steps at a time, one done, one running, two to come."""
    story = Story(tmp_path, *(step(name, title=f"Do {name}") for name in "abcd"))
    story.run("a", took=10.0)
    story.start("b")
    found = progress(story.state, START + 14.0)
    assert vars(found) == {
        "plan_id": "release",
        "status": "executing",
        "total_steps": 4,
        "completed_steps": 1,
        "progress": 0.25,
        "percentage": 25.0,
        "current_step": "b",
        "current_title": "Do b",
        "eta": (6.0 + 10.0 + 10.0) / 2,
        "eta_known": False,
        "average_step_duration": 10.0,
        "elapsed_time": 14.0,
    }


def test_before_and_after(tmp_path: Path) -> None:
    """Nothing is known at first; at the end nothing is left, and the clock stops."""
    story = Story(tmp_path, step("a"), step("b"))
    first = progress(story.state, START + 1.0)
    assert (first.eta, first.average_step_duration, first.progress, first.current_step) == (
        None,
        None,
        0.0,
        "",
    )
    story.run("a", took=2.0).move("b", "skipped", "condition")
    last = progress(story.end(), START + 99.0)
    assert (last.eta, last.average_step_duration, last.progress) == (0.0, 2.0, 1.0)
    assert (last.elapsed_time, last.status) == (2.0, "completed")


def test_no_steps_is_done(tmp_path: Path) -> None:
    """A plan without steps is no division by zero."""
    found = progress(Story(tmp_path).state, START)
    assert (found.progress, found.percentage, found.eta) == (1.0, 100.0, 0.0)


def test_attempts_are_not_steps(tmp_path: Path) -> None:
    """A step that is repeated is still running, and counts once with the time of all its attempts."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("a", "waiting", 3.0)
    assert progress(story.state, START + 3.0).completed_steps == 0
    assert progress(story.state, START + 3.0).current_step == "a"
    story.run("a", took=4.0)
    found = progress(story.state, START + 7.0)
    assert (found.completed_steps, found.average_step_duration) == (1, 7.0)


def test_known_durations_come_first(tmp_path: Path) -> None:
    """What earlier runs took counts before the mean; the longest running step is the least."""
    story = Story(tmp_path, step("a"), step("b"))
    story.start("a")
    assert progress(story.state, START + 10.0, Estimates(expected={"a": 100.0, "b": 4.0})).eta == 90.0


@given(
    st.lists(st.tuples(st.floats(0, 1e4), st.booleans()), max_size=20),
    st.integers(1, 8),
    st.data(),
)
def test_it_always_adds_up(steps: list[tuple[float, bool]], jobs: int, data: st.DataObject) -> None:
    """For any order of starts and ends: shares grow to 1, the ETA is a number or unknown."""
    names = [str(number) for number in range(len(steps))]
    expected = {name: took for name, (took, known) in zip(names, steps, strict=True) if known}
    tally, share, now = Tally(names, jobs, Estimates(expected=expected)), 0.0, 0.0
    for name in data.draw(st.permutations(names)):
        took, ran = steps[int(name)][0], data.draw(st.booleans())
        if ran:
            tally.start(name, now)
            tally.start(name, now + 1)
        now += took
        eta = tally.eta(now)
        assert eta is None or 0.0 <= eta < 1e9
        tally.end(name, took if ran else None)
        assert share <= tally.share() <= 1.0
        share = tally.share()
    assert tally.share() == 1.0
    assert tally.eta(now) == 0.0


def test_a_resumed_run_restarts_its_counts(tmp_path: Path) -> None:
    """A step that is pending again does not run yet; once it runs, it does so since then."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("a", "failed", took=60.0).run("b", took=4.0).end(1)
    story.resume("a")
    assert progress(story.state, START + 70.0).current_step == ""
    story.start("a")
    found = progress(story.state, START + 65.0)
    assert (found.current_step, found.eta, found.average_step_duration) == ("a", 3.0, 4.0)


def test_progress_that_a_step_reports_counts(tmp_path: Path) -> None:
    """A step that reports half takes as long again; with a known duration, its report counts by half."""
    story = Story(tmp_path, step("a"))
    story.start("a")
    said = Estimates(reported=lambda names: dict.fromkeys(names, (0.5, "half of it")))
    assert progress(story.state, START + 10.0, said).eta is None  # nothing is known of durations at all
    both = Estimates(expected={"a": 14.0}, reported=lambda names: dict.fromkeys(names, (0.5, "")))
    assert progress(story.state, START + 10.0, both).eta == 0.5 * 10.0 + 0.5 * 4.0


def test_a_forecast_is_asked_for_when_something_changed() -> None:
    """In between time passes, so that a long plan is not worked out again ten times a second."""
    asked = []

    def forecast(left: Mapping[str, float], usual: float) -> float:
        asked.append((dict(left), usual))
        return 50.0

    tally = Tally(
        ("a", "b", "c"), 2, Estimates(expected={"a": 10.0, "b": 20.0, "c": 30.0}, forecast=forecast)
    )
    tally.start("a", 0.0)
    assert [tally.eta(moment) for moment in (0.0, AGE / 4, AGE / 2)] == [50.0, 50.0 - AGE / 4, 50.0 - AGE / 2]
    assert len(asked) == 1
    assert asked[0] == ({"a": 10.0, "b": 20.0, "c": 30.0}, 0.0)
    tally.start("b", AGE / 2)
    tally.eta(AGE / 2)
    tally.eta(AGE * 2)
    assert len(asked) == 3
