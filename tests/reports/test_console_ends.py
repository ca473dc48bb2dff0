"""The end of a run for people and CI systems, and its surroundings: pipes, terminals, variables, folders."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from planrun.model.plan import Limits
from planrun.reports import facts
from planrun.reports.ci import Look, look_of, sections_of
from planrun.reports.console import Console, console
from planrun.reports.policies import NO_POLICY_IN_SHORT
from planrun.reports.screen import Screen
from tests.reports.runs import RUN, Story, mixed_story, step
from tests.reports.watching import Options, shown

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize(
    ("options", "end"),
    [
        ({"fail_on_flaky": True}, "✗ failed: 1 flaky step (--fail-on-flaky): test"),
        ({"strict": True}, "✗ failed: 1 tolerated failure (--strict): lint"),
        (
            {"strict": True, "fail_on_flaky": True},
            "✗ failed: 1 tolerated failure (--strict): lint; 1 flaky step (--fail-on-flaky): test",
        ),
    ],
)
def test_the_end_shows_why_the_exit_code_is_1(
    tmp_path: Path, options: dict[str, bool], end: str, *, quiet: bool
) -> None:
    """A run that is not failed but ends with 1 has a last line that is not green and names option and steps."""
    story = Story(tmp_path, step("lint", on_failure="continue"), step("test"), options=options)
    story.run("lint", "failed").run("test", "waiting").run("test").end(1)
    assert shown(story, Look(output="quiet" if quiet else "failed")).splitlines()[-1] == end


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ({"why": "cancel", "signal": 15}, "⊗ cancelled by SIGTERM"),
        ({"why": "cancel", "signal": 2}, "⊗ cancelled by SIGINT"),
        ({"why": "cancel", "signal": 40}, "⊗ cancelled by signal 40"),
        ({"why": "deadline"}, "⊗ the deadline of 1h passed"),
        ({"why": "abort", "step": "build"}, "⊗ aborted by the failure of build"),
    ],
)
def test_what_ended_a_run_early_is_named(tmp_path: Path, ending: dict[str, Any], said: str) -> None:
    """The signal by its name, the deadline by its length, an abort by its step; a step says no word twice."""
    story = Story(tmp_path, step("nice"), limits=Limits(deadline=3600.0))
    story.start("nice")
    story.ending(**ending).cancel("nice")
    rows = shown(story, Look()).splitlines()
    assert rows[2:4] == [said, "⊗ nice (cancelled)"]


def test_a_second_signal_is_shown_as_such(tmp_path: Path) -> None:
    """A signal that comes while an abort is going on does not read as the abort."""
    story = Story(tmp_path, step("a"))
    story.ending("abort", step="a").ending("cancel", signal=15)
    assert shown(story, Look()).splitlines()[2:] == [
        "⊗ aborted by the failure of a",
        "⊗ cancelled by SIGTERM",
    ]


def test_variables_kept_back_are_named_once_and_few(tmp_path: Path) -> None:
    """Eight names and how many more, at the end of a run in which a step failed; nothing about them in another one."""
    names = [f"TOKEN_{number}" for number in range(11)]
    story = Story(tmp_path, step("a"), options={"env_left_out": names})
    story.run("a", "failed").end(1)
    story.resume("a").run("a").end()
    rows = [row for row in shown(story, Look()).splitlines() if "inherit_env" in row]
    assert rows == [f"  not passed to steps (inherit_env: safe): {', '.join(names[:8])} and 3 more"]
    well = Story(tmp_path, step("a"), options={"env_left_out": names})
    well.run("a").end()
    assert "inherit_env" not in shown(well, Look())


@pytest.mark.parametrize("style", ["plain", "live", "groups"])
def test_a_broken_console_ends_no_run(
    tmp_path: Path, style: Literal["plain", "live", "groups"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the display is reported once, then the display stops; GitHub still gets its outputs."""
    out = io.StringIO()
    story = mixed_story(tmp_path)
    watching = Console(Screen(out), Look(style=style), story.state, str(tmp_path))
    monkeypatch.setattr(facts, "details", lambda _step: 1 / 0)
    for event in story.events[1:]:
        watching.on_event(event, story.state)
        watching.tick()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "outputs"))
    watching.close(story.state, {"junit": "out/junit.xml"}, "0" * 64)
    rows = out.getvalue().splitlines()
    assert rows[-1] == "⚠ console output stopped, the run continues: ZeroDivisionError: division by zero"
    assert "result=failed\n" in (tmp_path / "outputs").read_text()


@pytest.mark.parametrize(("folder", "said"), [("/t/out", "/t/out"), ("../out", "../out"), ("out", "out")])
def test_the_report_folder_is_named_shortly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, said: str
) -> None:
    """As seen from here, or as an absolute path where that is shorter."""
    monkeypatch.chdir(tmp_path)
    out = io.StringIO()
    story = Story(tmp_path, step("a"))
    watching = Console(Screen(out), Look(), story.state, str(tmp_path))
    watching.close(story.state, {"junit": str(tmp_path / folder / "junit.xml")}, "0" * 64)
    assert out.getvalue().startswith(f"  reports in {said}: junit.xml\n")


def test_annotations_count_from_the_root_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan in a subfolder in which planrun runs is annotated where GitHub looks for it."""
    (tmp_path / "service").mkdir()
    monkeypatch.chdir(tmp_path / "service")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    story = Story(tmp_path, step("a", line=3), file="./plan.yml")
    story.run("a", "failed")
    rows = shown(story, Look(style="groups", sections=sections_of("github"))).splitlines()
    assert rows[-1].startswith("::error file=service/plan.yml,line=3,")


def test_a_resumed_step_shows_its_new_time(tmp_path: Path) -> None:
    """The time of a step before the resume is not added to its time now."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", took=60.0).end(1)
    story.resume("a").run("a", took=2.0).end()
    assert "✓ a (2.0s)" in shown(story, Look()).splitlines()


def test_what_an_interrupted_run_could_not_write_is_counted() -> None:
    """A reader that comes back after it took nothing for too long reads how many bytes are missing."""
    reads, writes = os.pipe()
    clock = iter(range(1000))
    with open(writes, "w", encoding="utf-8") as out, open(reads, "rb", buffering=0) as reader:
        screen = Screen(out, now=lambda: float(next(clock)))
        screen.keeps_waiting = lambda: False
        screen.write("x\n" * (1 << 17))
        missing = (1 << 18) - len(reader.read(1 << 20))
        screen.write("lost\n" * (1 << 17))
        first, said, rest = reader.read(1 << 20).split(b"\n", 2)
        assert (first, said) == (b"", b"... %d bytes left out: no one read them" % missing)
        missing = 5 * (1 << 17) - len(rest)
        screen.write("end\n")
        assert reader.read(1 << 20) == b"\n... %d bytes left out: no one read them\nend\n" % missing


def test_a_reader_that_does_not_read(tmp_path: Path) -> None:
    """A closed pipe makes the console silent, not the run fail; at its end nothing complains."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as out:
        story = mixed_story(tmp_path)
        watching = Console(Screen(out), Look(), story.state, str(tmp_path))
        for event in story.events[1:]:
            watching.on_event(event, story.state)
            watching.tick()
        watching.close(story.state, {"junit": "out/junit.xml"}, "0" * 64)
    gone = io.StringIO()
    gone.close()
    Screen(gone).write("x\n")
    Screen(None).write("x\n")


@pytest.mark.parametrize(
    ("environ", "options", "style", "output"),
    [
        ({}, Options(), "plain", "stream"),
        ({"CI": "true"}, Options(), "plain", "stream"),
        ({"GITHUB_ACTIONS": "true"}, Options(), "groups", "group"),
        ({"GITHUB_ACTIONS": "true"}, Options(output="failed"), "groups", "failed"),
        ({"GITHUB_ACTIONS": "true", "CI": "false"}, Options(output="quiet"), "plain", "quiet"),
    ],
)
def test_how_it_looks(environ: Mapping[str, str], options: Options, style: str, output: str) -> None:
    """Environment and options decide; outside of a terminal nothing moves."""
    look = look_of(io.StringIO(), environ, options)
    assert (look.style, look.output, look.sections is not None) == (style, output, style == "groups")


def test_groups_go_to_stdout_unless_it_holds_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json stdout is the ledger's alone; summary and outputs are handed to GitHub."""
    story = mixed_story(tmp_path)
    summary, results = tmp_path / "summary.md", tmp_path / "outputs"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.setenv("GITHUB_OUTPUT", str(results))
    for json in (False, True):
        watching = console(story.state, str(tmp_path), Options(json=json))
        watching.on_event(story.events[-1], story.state)
        watching.close(story.state, {"junit": str(tmp_path / "out" / "junit.xml")}, "ab" * 32)
        said = capsys.readouterr()
        text = said.err if json else said.out
        assert "✗ failed in 52.1s" in text or "x failed in 52.1s" in text
        assert f"to continue: planrun resume {RUN}" in text
        assert "junit.xml; ledger head abababababab" in text
        assert (said.out if json else said.err) == ""
    assert summary.read_text("utf-8").count("# ✗ Plan v1: ") == 2
    assert "result=failed\n" in results.read_text()
    assert sys.stdout is not None


def test_a_resumed_run_counts_what_is_left(tmp_path: Path) -> None:
    """What ended before the run was resumed is done already."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("a")
    out = io.StringIO()
    watching = Console(Screen(out), Look(), story.state, str(tmp_path))
    watching.on_event(story.events[3], story.state)
    story.start("b")
    watching.on_event(story.events[-1], story.state)
    watching.tick()
    assert out.getvalue() == f"release: 1 step, 2 at a time, run {RUN}\n  policy: {NO_POLICY_IN_SHORT}\n"
