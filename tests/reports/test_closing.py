"""The end of a run that did not simply complete: its rows one by one, where real runs would take long or are rare."""

from __future__ import annotations

import time
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from planrun.model import events as ev
from planrun.reports import causes, facts
from planrun.reports.ci import Look, sections_of
from planrun.reports.closing import Ending, ending, next_steps
from tests.reports.runs import RUN, Story, step
from tests.reports.watching import shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def rows(
    story: Story, look: Look | None = None, printed: Mapping[str, int] = MappingProxyType({})
) -> list[str]:
    """Return the end of a story, without the blank line above it."""
    end = Ending(state=story.state, look=look or Look(), rundir=str(story.rundir), printed=printed)
    return "".join([*ending(end), *next_steps(end)]).lstrip("\n").splitlines()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "exit code 1"),
        (2, "exit code 2"),
        (126, "exit code 126: not executable"),
        (127, "exit code 127: command not found"),
        (128, "exit code 128"),
        (130, "exit code 130: killed by SIGINT"),
        (137, "exit code 137: killed by SIGKILL"),
        (139, "exit code 139: killed by SIGSEGV"),
        (143, "exit code 143: terminated by SIGTERM"),
        (255, "exit code 255"),
    ],
)
@pytest.mark.parametrize("message", ["", "exit code {}"])
def test_exit_codes_in_words(tmp_path: Path, code: int, said: str, message: str) -> None:
    """Those that shells give a meaning have it in words; others are the business of their program."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", exit_code=code, error={"class": "unknown", "message": message.format(code)})
    assert facts.sentence(story.state.steps["a"]) == said


@pytest.mark.parametrize(
    ("since", "lines"),
    [
        (None, [f"    | row {n}" for n in range(21, 31)]),
        (3, ["    | row 30"]),
        (19, ["    | row 30"]),
        (20, [f"    | row {n}" for n in range(26, 31)]),
    ],
)
def test_no_block_of_lines_stands_twice_in_succession(
    tmp_path: Path, since: int | None, lines: list[str]
) -> None:
    """Ten lines where the console did not show them, five where they are far above, the cause where they are near."""
    story = Story(tmp_path, step("a", line=3))
    story.run("a", "failed", log=b"".join(b"row %d\n" % n for n in range(1, 31)))
    story.end(1)
    found = rows(story, printed={} if since is None else {"a": since})
    assert [row for row in found if row.startswith("    | ")] == lines
    advice = f"  to see the whole output: planrun logs {RUN} a"
    assert (advice in found) is (since is None)


@pytest.mark.parametrize(("since", "shown_again"), [(1, []), (4, []), (5, ["    | Error: no"])])
def test_a_cause_between_other_lines_is_shown_again(
    tmp_path: Path, since: int, shown_again: list[str]
) -> None:
    """A short output stands right above, or other steps printed since and its cause is at the failed step too."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"begin\nError: no\n").end(1)
    assert [row for row in rows(story, printed={"a": since}) if "|" in row] == shown_again


def test_each_of_several_failures_has_its_cause(tmp_path: Path) -> None:
    """Of several failed steps none is left without the line that says why, wherever its output stands."""
    story = Story(tmp_path, step("a"), step("b"))
    for name in ("a", "b"):
        story.run(name, "failed", log=b"Error: no\n")
    story.end(1)
    found = rows(story, printed={"a": 3, "b": 1})
    assert [row for row in found if "|" in row] == ["    | Error: no", "    | Error: no"]


def test_the_cause_is_among_the_last_lines(tmp_path: Path) -> None:
    """A cause that stands further up takes the place of lines that say less."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"Error: no\n" + b"bye\n" * 30).end(1)
    assert [row for row in rows(story) if "|" in row] == ["    | Error: no", "    | …", *["    | bye"] * 8]


def test_many_failures_have_few_lines_each(tmp_path: Path) -> None:
    """Thirty failures: the cause of each of twenty, and the names of some of the rest."""
    names = [f"s{n}" for n in range(30)]
    story = Story(tmp_path, *(step(name) for name in names))
    for name in names:
        story.run(name, "failed", log=b"first\nError: no\nlast\n")
    story.end(1)
    found = rows(story)
    assert sum(row == "    | Error: no" for row in found) == 20
    assert "    | last" not in found
    assert "  and 10 more: s20, s21, s22, s23, s24, s25, s26, s27 and 2 more" in found


def test_a_long_chain_of_blocked_steps(tmp_path: Path) -> None:
    """The step that failed is found for each of ten thousand, in time that grows with their number."""
    names = [f"s{n}" for n in range(10_000)]
    story = Story(tmp_path, step("s0"), *(step(b, a) for a, b in pairwise(names)))
    story.run("s0", "failed")
    for name in names[1:]:
        story.move(name, "blocked", "upstream")
    began = time.perf_counter()
    assert list(causes.rows(story.state)) == ["Blocked by s0: s1, s2, s3, s4, s5, s6, s7, s8 and 9991 more"]
    assert time.perf_counter() - began < 5


def test_many_causes_of_one_step(tmp_path: Path) -> None:
    """Three are named; a step on two ways to the same cause names it once."""
    names = [f"s{n}" for n in range(6)]
    story = Story(
        tmp_path,
        *map(step, names),
        step("all", *names),
        step("x", "s0"),
        step("y", "s0"),
        step("z", "y", "x"),
    )
    for name in names:
        story.run(name, "failed")
    for name in ("all", "x", "y", "z"):
        story.move(name, "blocked", "upstream")
    assert list(causes.rows(story.state)) == [
        "Blocked by s0, s1, s2 and others: all",
        "Blocked by s0: x, y, z",
    ]


def test_what_did_not_run_by_cause(tmp_path: Path) -> None:
    """Each cause has a line, in the same order whatever ended first."""
    story = Story(
        tmp_path,
        step("a"),
        step("b"),
        step("c", "a"),
        step("d", "b", "c"),
        step("e", condition_text="run.ci"),
        step("f"),
        step("g"),
    )
    story.move("f", "skipped", "not_selected").move("e", "skipped", "condition", "run.ci")
    story.run("a", "failed").run("b", "failed").move("c", "blocked", "upstream").move(
        "d", "blocked", "upstream"
    )
    story.start("g")
    story.ending("cancel", signal=2).cancel("g")
    assert list(causes.rows(story.state)) == [
        "Blocked by a: c",
        "Blocked by b, a: d",
        "Skipped: e (condition false: run.ci)",
        "Cancelled: g (after 0.0s)",
        "Not selected: 1 step",
    ]


def test_on_a_terminal_the_run_is_called_last(tmp_path: Path) -> None:
    """A person reads the command now; a log may be read when the run is no longer the newest."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed").end(1)
    assert rows(story, Look(style="live"))[-1] == "  to continue: planrun resume last"
    assert rows(story)[-1] == f"  to continue: planrun resume {RUN}"


def test_step_names_are_words_of_the_shell(tmp_path: Path) -> None:
    """The command can be copied as it stands."""
    story = Story(tmp_path, step("test[a b]"))
    story.log_path = "logs/t/1.log"
    story.run("test[a b]", "failed", log=b"row\n" * 40).end(1)
    assert f"  to see the whole output: planrun logs {RUN} 'test[a b]'" in rows(story)


@pytest.mark.parametrize(
    ("vendor", "said"),
    [
        (
            "github",
            "::error file=plans/release.yml,line=3,title=a failed%3A exit 1::Error: 50%25 is not enough\n",
        ),
        (
            "azure",
            "##vso[task.logissue type=error;sourcepath=plans/release.yml;linenumber=3]a failed: exit 1: Error: 50%",
        ),
        ("buildkite", "+++ a failed: exit 1\n  plans/release.yml:3: Error: 50% is not enough\n"),
    ],
)
def test_annotations_have_the_cause(tmp_path: Path, vendor: str, said: str) -> None:
    """The message is what the program said, not that it ended with 1; the title names the step."""
    story = Story(tmp_path, step("a", line=3))
    story.run("a", "failed", log=b"2026-01-31T09:00:00Z \x1b[31mError: 50% is not enough\x1b[0m\nbye\n").end(
        1
    )
    assert said in shown(story, Look(style="groups", output="group", sections=sections_of(vendor)))


def test_colours_stand_around_icons(tmp_path: Path) -> None:
    """What programs print is shown without their colours."""
    story = Story(tmp_path, step("a", line=3))
    story.run("a", "failed", log=b"\x1b[31mError\x1b[0m: no\n").end(1)
    found = rows(story, Look(colour=True))
    assert found[1] == "  \x1b[31m✗\x1b[0m a  plans/release.yml:3"
    assert "    | Error: no" in found


def test_one_attempt_more_is_counted(tmp_path: Path) -> None:
    """Attempts, their time and the rule that found the class."""
    error: dict[str, Any] = {"class": "transient", "rule": "text:connection", "message": ""}
    story = Story(tmp_path, step("a"))
    story.run("a", "waiting", took=1.0, error=error).run("a", "failed", took=2.0, error=error).end(1)
    assert rows(story)[2] == "    exit code 1, transient error (connection), 2 attempts, 3.0s"


def test_a_run_by_one_at_a_time_says_so(tmp_path: Path) -> None:
    """Under `schedule: sequential` one step runs at a time, whatever the limit."""
    story = Story(tmp_path, step("a"), step("b"), options={"schedule": "sequential", "jobs": 4})
    story.add(ev.RunEnding(at=story.at, why="pause"))
    assert "2 steps, 1 at a time" in shown(story, Look())


@pytest.mark.parametrize("vendor", ["github", "gitlab", "azure", "buildkite"])
def test_what_a_step_printed_is_no_command(tmp_path: Path, vendor: str) -> None:
    """The last lines stand outside of every section, so they must not be read by the CI system."""
    evil = b"::set-output name=x::y\n##vso[task.setvariable variable=p]q\n##[error]x\n\x1b[2Jerror: ::add-mask::a\n"
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=evil).end(1)
    found = rows(story, Look(style="groups", output="group", sections=sections_of(vendor)))
    assert sum(row.startswith("    | ") for row in found) == 4
    assert [row for row in found if row.lstrip(" |").startswith("::") or "##" in row or "\x1b" in row] == []
