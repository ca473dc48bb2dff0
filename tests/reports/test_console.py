"""What people and CI systems see while a run is executing."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
from pathlib import Path

import pyte
import pytest

from planrun.reports.annotations import OF_STEP
from planrun.reports.ci import Look, look_of, sections_of
from planrun.reports.console import Console
from planrun.reports.policies import NO_POLICY_IN_SHORT
from planrun.reports.screen import Screen
from tests.reports.runs import RUN, Story, mixed_story, step
from tests.reports.watching import Options, shown


def test_plain_lines(tmp_path: Path) -> None:
    """One line for every end, with the place in the plan and the last output of a failed step."""
    rows = shown(mixed_story(tmp_path), Look()).splitlines()
    assert rows.pop(1) == f"  policy: {NO_POLICY_IN_SHORT}"
    assert rows == [
        f"Release & ship: 9 steps, 2 at a time, run {RUN}",
        "✓ build: Build the wheel (12.3s)",
        "✗ lint (failed: exit 1, 0.2s)",
        "  plans/release.yml:14: exit status 1",
        "  | E501 line too long",
        "◔ test: attempt 1 failed: exit status 1, next in 1.0s",
        "✓ test: Unit tests (3.0s, flaky)",
        "✗ fetch (failed: timeout, 30.0s)",
        "  plans/release.yml:22: ran longer than 30.0s",
        "  | 50%",
        "◔ integration: attempt 1 failed: exit status 2, next in 1.0s",
        "✗ integration: Tests | with <tricks> & @all #1 (failed: exit 3, 6.5s)",
        "  plans/release.yml:26: exit status 3",
        "  | second ```` try \ufffd",
        "⊘ notify (skipped: condition)",
        "✓ collect (0.1s)",
        "",
        "Failed:",
        "  ✗ fetch  plans/release.yml:22",
        "    ran longer than 30.0s, transient error, 30.0s",
        "    | 50%",
        "  ✗ integration: Tests | with <tricks> & @all #1  plans/release.yml:26",
        "    exit status 3, 2 attempts, 6.5s",
        "    | second ```` try \ufffd",
        "Tolerated:",
        "  ✗ lint  plans/release.yml:14",
        "    exit status 1, 0.2s",
        "    | E501 line too long",
        "Blocked by integration: deploy",
        "Skipped: notify (condition false: params.target == 'prod')",
        "Not selected: 1 step",
        "✗ failed in 52.1s: 9 steps: 3 successful, 3 failed, 2 skipped, 1 blocked",
    ]


def test_partial_shows(tmp_path: Path) -> None:
    """The last line says partial."""
    story = Story(tmp_path, step("lint", on_failure="continue"))
    story.run("lint", "failed").end()
    assert shown(story, Look()).splitlines()[-1] == "⚠ partial in 0.5s: 1 step: 1 failed"


def test_quiet_shows_failures_and_the_end(tmp_path: Path) -> None:
    """`--quiet` leaves out whatever went well."""
    rows = shown(mixed_story(tmp_path), Look(output="quiet")).splitlines()
    assert [row for row in rows if row[0] != " "] == [
        "Failed:",
        "Tolerated:",
        f"✗ failed in 52.1s: 9 steps: 3 successful, 3 failed, 2 skipped, 1 blocked, run {RUN}",
    ]
    assert "    | second ```` try \ufffd" in rows  # nothing else shows it


def test_ascii_and_colours(tmp_path: Path) -> None:
    """Other encodings get letters for icons; colours stand around the icon alone."""
    story = Story(tmp_path, step("a"), step("b"))
    story.run("a").run("b", "failed")
    rows = shown(story, Look(unicode=False, colour=True)).splitlines()
    assert rows[2] == "\x1b[32mv\x1b[0m a (0.5s)"
    assert rows[3] == "\x1b[31mx\x1b[0m b (failed: exit 1, 0.5s)"


def test_an_encoding_that_lacks_a_character(tmp_path: Path) -> None:
    """A title that the stream cannot encode is shown with question marks."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    story = Story(tmp_path, step("a", title="Prüfen"))
    look = look_of(out, {}, Options())
    watching = Console(Screen(out), look, story.state, str(tmp_path))
    story.run("a")
    watching.on_event(story.events[-1], story.state)
    watching.tick()
    assert isinstance(out.buffer, io.BytesIO)
    assert out.buffer.getvalue() == b"v a: Pr?fen (0.5s)\n"


def test_github_groups(tmp_path: Path) -> None:
    """Each step's output is a group of its own in which no command counts; failures are annotated."""
    look = Look(style="groups", output="group", sections=sections_of("github"))
    rows = shown(mixed_story(tmp_path), look).splitlines()
    depth, stopped = 0, ""
    words = []
    for row in rows:
        if stopped:
            stopped = "" if row == f"::{stopped}::" else stopped
        elif row.startswith("::group::"):
            depth += 1
        elif row == "::endgroup::":
            depth -= 1
        elif row.startswith("::stop-commands::"):
            stopped = row.removeprefix("::stop-commands::")
            words.append(stopped)
        elif row.startswith("::"):
            assert row.startswith(
                ("::error file=plans/release.yml,line=", "::warning file=plans/release.yml,line=")
            )
        assert depth in (0, 1)
    assert depth == 0
    assert not stopped
    assert len(set(words)) == len(words) == 7
    assert all(len(word) == 32 for word in words)
    assert "::group::✗ fetch (failed: timeout, 30.0s)" in rows
    assert "✓ collect (0.1s)" in rows
    assert (
        "::error file=plans/release.yml,line=22,title=fetch failed%3A timeout::ran longer than 30.0s" in rows
    )
    (tolerated,) = [row for row in rows if row.startswith("::warning ")]
    assert "title=lint failed" in tolerated


def test_annotations_are_few(tmp_path: Path) -> None:
    """Nine errors are annotated, the others are named in one."""
    names = [f"s{number}" for number in range(12)]
    story = Story(tmp_path, *(step(name, line=7) for name in names))
    for name in names:
        story.run(name, "failed")
    story.end(1)
    rows = shown(story, Look(style="groups", output="group", sections=sections_of("github"))).splitlines()
    errors = [row for row in rows if row.startswith("::error ")]
    assert len(errors) == OF_STEP
    assert errors[-1] == "::error title=and 3 more failed::s9, s10, s11"


def test_the_runs_of_a_job_share_its_annotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in one step of a job share its ten, those in all steps fifty; each counts what it leaves out in one more."""
    job = {"GITHUB_ACTIONS": "true", "GITHUB_RUN_ID": "7", "GITHUB_JOB": "test", "RUNNER_TEMP": str(tmp_path)}
    for name, value in job.items():
        monkeypatch.setenv(name, value)
    names = [f"s{number}" for number in range(6)]

    def errors(action: str) -> list[str]:
        monkeypatch.setenv("GITHUB_ACTION", action)
        folder = tmp_path / os.urandom(4).hex()
        folder.mkdir()
        story = Story(folder, *(step(name, line=7) for name in names))
        for name in names:
            story.run(name, "failed")
        story.end(1)
        rows = shown(story, Look(style="groups", output="group", sections=sections_of("github"))).splitlines()
        return [row.partition("::")[2].partition("::")[0] for row in rows if row.startswith("::error ")]

    counts = [len(errors(action)) for action in ("one", "one", *map(str, range(7)))]
    # Nine and a sentence in the first step, five times six in others: forty. From then on only the sentences.
    assert counts == [6, 4, 6, 6, 6, 6, 6, 1, 1]
    monkeypatch.setenv("GITHUB_JOB", "other")
    assert len(errors("one")) == 6
    monkeypatch.setenv("RUNNER_TEMP", "/nowhere")
    assert len(errors("one")) == 6


def test_steps_cannot_speak_for_planrun(tmp_path: Path) -> None:
    """Commands, escapes and section marks in output and titles are dead on every kind of console."""
    evil = (
        b"::set-output name=x::y\n  ::add-mask::a\n##[error]x\n##vso[task.setvariable variable=p]q\n"
        b"\x1b[2J\x1b]0;owned\x07\r\x1b[0Ksection_end:1:planrun_1\r\x1b[0K\n--- heading\n+++ heading\n"
    )
    for vendor in ("", "github", "gitlab", "azure", "buildkite"):
        story = Story(tmp_path, step("a", title="::error::no ##[x]", line=3))
        story.run("a", "failed", log=evil)
        marks = sections_of(vendor) if vendor else None
        text = shown(story, Look(style="groups" if vendor else "plain", output="group", sections=marks))
        rows = text.split("\n")
        ours = ("::group::", "::stop-commands::", "::endgroup::", "::error file=")
        commands = [row for row in rows if row.lstrip().startswith("::") and not row.startswith(ours)]
        assert [row for row in commands if len(row) != 36] == []  # the word that ends stop-commands
        assert text.count("##[") + text.count("##vso[") == (3 if vendor == "azure" else 0)
        assert text.count("\x1b") == (4 if vendor == "gitlab" else 0)
        assert text.count("section_end:1:") == 1  # its escape sequences are gone
        if vendor == "buildkite":
            headings = [row for row in rows if row.startswith(("--- ", "+++ ", "~~~ ", "^^^ "))]
            assert [row.split(" (")[0] for row in headings] == [
                "--- ✗ a: : :error::no # #[x]",
                "+++ a failed: exit 1",
            ]


def test_long_output_is_cut(tmp_path: Path) -> None:
    """A section shows 3 MiB from the beginning and 1 MiB from the end, and between them what shows all of it."""
    story = Story(tmp_path, step("a"))
    log = b"".join([b"%d some words in a row\n" % number for number in range(250_000)])
    story.run("a", log=log)
    text = shown(story, Look(style="groups", output="group", sections=sections_of("github")))
    body = (
        text.partition("::stop-commands::")[2]
        .partition("\n")[2]
        .rpartition("\n::endgroup")[0]
        .rpartition("\n")[0]
    )
    head, gap, tail = body.partition("\n… ")
    left, tail = tail.split("\n", 1)
    assert gap
    count = int(left.split(" ")[0])
    assert left == f"{count} bytes left out; planrun logs {tmp_path.name} a shows all …"
    assert len(head) + count + len(tail) + 1 in (len(log), len(log) - 1)
    assert log.decode().startswith(head)
    assert log.decode().endswith(f"\n{tail}\n")
    assert len(text) < 4.1 * 2**20


def test_the_end_of_a_long_log_names_its_file(tmp_path: Path) -> None:
    """Twenty lines of a failure are shown, below the name of the file that has the others."""
    story = Story(tmp_path, step("a"))
    story.run("a", "failed", log=b"".join(b"%d\n" % number for number in range(50)))
    rows = [row for row in shown(story, Look()).splitlines() if row.startswith("  | ")]
    assert rows[1:] == [f"  | {number}" for number in range(30, 50)]
    named = rows[0].removeprefix("  | … the end of ")
    assert Path(named).resolve() == (tmp_path / "logs" / "a" / "1.log").resolve()


def test_the_status_area(tmp_path: Path) -> None:
    """It comes after 0.3 s, is drawn at most ten times a second, erased before each line, and gone at the end."""
    out, now = io.StringIO(), [0.0]
    story = Story(tmp_path, step("a"), step("b"), step("c"))
    watching = Console(Screen(out, lambda: now[0]), Look(style="live"), story.state, str(tmp_path))
    for part in ("a", "b"):
        story.start(part)
        watching.on_event(story.events[-1], story.state)
    for _ in range(18):
        now[0] += 1 / 64
        watching.tick()
    assert out.getvalue() == ""
    for _ in range(108):
        now[0] += 1 / 64
        watching.tick()
    assert 13 <= out.getvalue().count("\r\x1b[2A\x1b[J") <= 17
    assert out.getvalue().endswith("\r\x1b[2A\x1b[J◐ a   2.0s\n◐ b   2.0s\n[....................] 0/3  2.0s")
    out.truncate(0)
    out.seek(0)
    story = Story(tmp_path, step("a"), step("b"), step("c"))
    for name in ("a", "b", "c"):
        story.run(name, took=4.0)
        now[0] += 0.25
        for event in story.events[-2:]:
            watching.on_event(event, story.state)
        watching.tick()
    story.end()
    watching.on_event(story.events[-1], story.state)
    assert out.getvalue() == (
        "\r\x1b[2A\x1b[J✓ a (4.0s)\n◐ b   2.2s\n[######..............] 1/3  2.2s  ETA at least 2.9s"
        "\r\x1b[1A\x1b[J✓ b (4.0s)\n✓ c (4.0s)\n✓ completed in 12.0s: 3 steps: 3 successful\n"
    )


def test_the_status_area_fits() -> None:
    """Each line is cut to the width of the terminal in cells; a terminal that became narrower is cleared."""
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "w", encoding="utf-8") as out:
        _resize(leader, 80, 24)
        screen = Screen(out)
        screen.show([], ["x" * 500])
        assert os.read(leader, 4096).decode() == "x" * 78 + "…"
        screen.show([], ["漢字" * 30, "\x1b[31mred\x1b[0m" + "字" * 60])
        expected = "\r\x1b[J" + "漢字" * 19 + "漢…\r\n\x1b[31mred\x1b[0m" + "字" * 37 + "…"
        assert os.read(leader, 4096).decode() == expected
        _resize(leader, 40, 24)
        screen.show(["text\n"])
        assert os.read(leader, 4096) == b"\r\x1b[3A\x1b[Jtext\r\n"


class Writes(io.StringIO):
    """A stream that keeps each write for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[str] = []

    def write(self, text: str) -> int:
        """Keep it."""
        self.all.append(text)
        return len(text)


def test_lines_are_gathered_for_a_short_time(tmp_path: Path) -> None:
    """Steps that end one after the other share a write; nothing waits for long, and the end of a run for nothing."""
    out, now = Writes(), [100.0]
    names = [f"s{number}" for number in range(8)]
    story = Story(tmp_path, *[step(name) for name in names])
    watching = Console(Screen(out, lambda: now[0]), Look(), story.state, str(tmp_path))

    def ended(name: str) -> float | None:
        story.run(name)
        for event in story.events[-2:]:
            watching.on_event(event, story.state)
        return watching.tick()

    ended("s0")
    assert out.all == ["✓ s0 (0.5s)\n"]
    for name in names[1:6]:
        now[0] += 0.008
        due = ended(name)
        assert due is not None
        assert now[0] + due <= 100.05 + 0.011
    assert len(out.all) == 1
    now[0] = 100.05
    watching.tick()
    assert out.all[1:] == ["".join([f"✓ {name} (0.5s)\n" for name in names[1:6]])]
    ended("s6")
    ended("s7")
    story.end()
    watching.on_event(story.events[-1], story.state)
    assert len(out.all) == 3
    assert out.all[2].startswith("✓ s6 (0.5s)\n✓ s7 (0.5s)\n✓ completed")


def test_each_stream_gets_one_write() -> None:
    """The output of steps comes before the lines about it: who has read that a step ended finds its output."""
    order: list[str] = []

    class Noted(io.StringIO):
        def write(self, text: str) -> int:
            order.append(text)
            return len(text)

    screen = Screen(Noted(), out=Noted())
    screen.show(["> a\n", b"one\n", b"two\n", "a ended\n", "> b\n", b"three\n", "b ended\n"])
    assert order == ["one\ntwo\nthree\n", "> a\na ended\n> b\nb ended\n"]


def test_a_question_is_below_the_area(tmp_path: Path) -> None:
    """Its lines are the last of the area, and stay while no step runs."""
    out, now = io.StringIO(), [0.0]
    story = Story(tmp_path, step("a"))
    screen = Screen(out, lambda: now[0])
    watching = Console(screen, Look(style="live"), story.state, str(tmp_path))
    story.run("a")
    watching.on_event(story.events[-2], story.state)
    now[0] = 1.0
    screen.ask_lines[:] = ["deploy to production?", "[y/n] "]
    watching.tick()
    assert out.getvalue() == ("◐ a   1.0s\n[....................] 0/1  1.0s\ndeploy to production?\n[y/n] ")
    watching.on_event(story.events[-1], story.state)
    now[0] = 2.0
    watching.tick()
    terminal = pyte.Screen(80, 24)
    terminal.set_mode(pyte.modes.LNM)
    pyte.Stream(terminal).feed(out.getvalue())
    assert [row.rstrip() for row in terminal.display[:3]] == ["✓ a (0.5s)", "deploy to production?", "[y/n]"]
    assert not "".join(terminal.display[3:]).strip()
    screen.ask_lines.clear()
    now[0] = 3.0
    watching.tick()
    assert out.getvalue().endswith("\r\x1b[1A\x1b[J")


def _resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_a_title_is_no_heading_of_buildkite(tmp_path: Path) -> None:
    """The one line that begins with the plan's title folds nothing."""
    out = io.StringIO()
    story = Story(tmp_path, step("a"), title="--- all is well")
    watching = Console(Screen(out), Look(style="groups"), story.state, str(tmp_path))
    for event in story.events:
        watching.on_event(event, story.state)
    watching.tick()
    assert out.getvalue().startswith(" --- all is well: 1 step")


def test_a_log_gets_a_heartbeat(tmp_path: Path) -> None:
    """After a minute without output the log shows running steps; tick() returns the seconds until the next call."""
    out, now = io.StringIO(), [0.0]
    story = Story(tmp_path, step("a"), step("b"))
    watching = Console(Screen(out, lambda: now[0]), Look(), story.state, str(tmp_path))
    assert watching.tick() is None
    story.start("a")
    watching.on_event(story.events[-1], story.state)
    assert watching.tick() == 60.0
    now[0] = 61.0
    assert watching.tick() == 60.0
    story.run("b", "waiting")
    for event in story.events[-2:]:
        watching.on_event(event, story.state)
    assert watching.tick() == 60.0
    now[0] += 59.0
    assert watching.tick() == 1.0
    now[0] += 3600.0
    assert watching.tick() == 60.0
    rows = out.getvalue().splitlines()
    assert rows[0] == "… still running: a (1m); 0 of 2 done"
    assert rows[2:] == ["… still running: a (1h2m), b (1h, waits for its next attempt); 0 of 2 done"]


def test_a_heartbeat_is_printed_in_groups_but_not_with_quiet(tmp_path: Path) -> None:
    """Where CI folds the output of steps the same line is printed; with --quiet it is not."""
    for look, expected in (
        (Look(style="groups", unicode=False), "... still running: a (1m); 0 of 1 done\n"),
        (Look(output="quiet"), ""),
    ):
        out, now = io.StringIO(), [0.0]
        story = Story(tmp_path, step("a"))
        watching = Console(Screen(out, lambda now=now: now[0]), look, story.state, str(tmp_path))  # type: ignore[misc]
        story.start("a")
        watching.on_event(story.events[-1], story.state)
        now[0] = 60.0
        watching.tick()
        assert out.getvalue() == expected


def test_an_unknown_eta_is_left_out(tmp_path: Path) -> None:
    """What steps of a millisecond let expect is no `ETA 0.0s`."""
    out, now = io.StringIO(), [0.0]
    story = Story(tmp_path, step("a"), step("b"))
    watching = Console(Screen(out, lambda: now[0]), Look(style="live"), story.state, str(tmp_path))
    story.run("a", took=0.001)
    story.start("b")
    for event in story.events[-3:]:
        watching.on_event(event, story.state)
    now[0] = 1.0
    watching.tick()
    assert out.getvalue().endswith("◐ b   1.0s\n[##########..........] 1/2  1.0s")
