"""Output while steps run, as the installed command shows it: on pipes, on terminals of several sizes, in CI."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

import pyte
import pytest

import planrun
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
VARIABLES = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "TF_BUILD",
    "BUILDKITE",
    "NO_COLOR",
    "FORCE_COLOR",
    "BUILD_ID",
)
ALONE = "version: 1\nsteps:\n  - {id: a, run: 'echo one; sleep 0.5; echo two'}\n"
BOTH = """\
version: 1
limits: {max_parallel: 2}
steps:
  - {id: a, run: 'echo from a; touch a; until test -e b; do sleep 0.02; done; sleep 0.2; echo end of a'}
  - {id: long-name, run: 'until test -e a; do sleep 0.02; done; sleep 0.2; echo from b; sleep 0.2; touch b'}
"""


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a person's shell."""
    return (
        {name: value for name, value in os.environ.items() if name not in VARIABLES}
        | {"TERM": "xterm"}
        | more
    )


def ran(folder: Path, plan: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a plan with both streams in pipes."""
    (folder / "plan.yml").write_text(plan, "utf-8")
    return subprocess.run(
        [*WORDS, *words],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )


class Terminal:
    """A run on a terminal, and what a person sees there."""

    def __init__(self, folder: Path, columns: int, rows: int, *words: str, **more: str) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=2000)
        self.raw = b""
        self._stream = pyte.ByteStream(self.screen)
        self._leader, follower = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            [*WORDS, *words],
            cwd=folder,
            env=environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)

    def resize(self, columns: int, rows: int) -> None:
        """Change the size, as a window does."""
        fcntl.ioctl(self._leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, seen: Callable[[str], object]) -> str:
        """Read until the screen shows something; return it."""
        until = time.monotonic() + LIMIT
        while not seen(self.text):
            assert time.monotonic() < until, self.text
            assert self._read(), self.text
        return self.text

    def finish(self) -> str:
        """Read to the end and return all rows, also those that have scrolled away."""
        while self._read():
            pass
        self.process.wait(LIMIT)
        os.close(self._leader)
        above = [
            "".join([row[at].data for at in range(self.screen.columns)]) for row in self.screen.history.top
        ]
        return "\n".join([row.rstrip() for row in [*above, *self.screen.display]]).rstrip() + "\n"

    @property
    def text(self) -> str:
        """The rows of the screen."""
        return "\n".join([row.rstrip() for row in self.screen.display]).rstrip()

    def _read(self) -> bool:
        if not select.select([self._leader], [], [], LIMIT)[0]:
            return False
        try:
            data = os.read(self._leader, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)


def test_output_is_on_stdout_and_progress_on_stderr(tmp_path: Path) -> None:
    """A pipe gets what the step printed and nothing else; headings and ends are on the other stream."""
    done = ran(tmp_path, ALONE)
    assert done.stdout == "one\ntwo\n"
    assert "▶ a\n✓ a (" in done.stderr
    assert "\none" not in done.stderr


def test_one_stream_keeps_the_order(tmp_path: Path) -> None:
    """Where both are one file, each line stands where it belongs."""
    (tmp_path / "plan.yml").write_text(ALONE, "utf-8")
    with (tmp_path / "out").open("wb") as out:
        subprocess.run(
            WORDS, cwd=tmp_path, env=environment(), stdout=out, stderr=out, timeout=LIMIT, check=True
        )
    rows = (tmp_path / "out").read_text("utf-8").splitlines()
    assert [re.sub(r" \(.*", "", row) for row in rows[2:6]] == ["▶ a", "one", "two", "✓ a"]


def test_a_line_is_shown_while_its_step_runs(tmp_path: Path) -> None:
    """The line is there before the step ends; secrets are masked across the pieces that it wrote."""
    plan = """\
version: 1
secrets: [TOKEN]
steps:
  - id: a
    secrets: [TOKEN]
    run: |
      printf 'key %s' "${TOKEN:0:9}"; sleep 0.3; printf '%s.\\n' "${TOKEN:9}"
      until test -e seen; do sleep 0.05; done
"""
    (tmp_path / "plan.yml").write_text(plan, "utf-8")
    with subprocess.Popen(
        WORDS,
        cwd=tmp_path,
        env=environment(TOKEN="correct-horse-battery"),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"key ***.\n"
        assert process.poll() is None
        (tmp_path / "seen").touch()
        assert process.stdout.read() == b""
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize("columns", [60, 80, 140])
@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_shows_lines_above_what_runs(tmp_path: Path, columns: int, colour: bool) -> None:  # noqa: FBT001
    """Each step that runs has a line with its unfinished output; at the end only whole lines are left."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nlimits: {max_parallel: 2}\nsteps:\n"
        "  - id: bar\n    run: printf '\\033[32m1 of 2\\r2 of 2 漢字%0200d' 7; until test -e go; do sleep 0.05; done\n"
        "  - {id: lines, run: 'echo a line; until test -e go; do sleep 0.05; done; echo last; exit 3'}\n",
        "utf-8",
    )
    terminal = Terminal(tmp_path, columns, 24, **({} if colour else {"NO_COLOR": "1"}))
    shown = terminal.until(
        lambda text: "◐ bar" in text and "◐ lines" in text and "0/2" in text and "漢字" in text
    )
    rows = shown.splitlines()
    assert "lines | a line" in rows
    assert re.fullmatch(r"◐ bar     +\d+\.\ds  2 of 2 漢 ?字 ?0+…", rows[-3]), rows
    assert re.fullmatch(r"◐ lines   +\d+\.\ds", rows[-2]), rows
    assert rows[-1].startswith("0/2" if columns < 70 else "[....................] 0/2"), rows
    (tmp_path / "go").touch()
    text = terminal.finish()
    assert terminal.process.returncode == 1
    assert "◐" not in text
    assert "[...." not in text
    assert "lines | last\n" in text
    assert "✗ lines (failed: exit 3" in text
    # Above and below the area, and nothing of it between.
    assert b"\x1b[?25l" not in terminal.raw
    assert (b"\x1b[3" in terminal.raw) is colour
    assert not terminal.screen.cursor.hidden


def test_a_terminal_of_five_rows(tmp_path: Path) -> None:
    """The area leaves room for output and names what runs; a narrower window is redrawn."""
    steps = "".join(
        [f"  - {{id: step{n}, run: 'until test -e go; do sleep 0.05; done'}}\n" for n in range(4)]
    )
    (tmp_path / "plan.yml").write_text(f"version: 1\nlimits: {{max_parallel: 4}}\nsteps:\n{steps}", "utf-8")
    terminal = Terminal(tmp_path, 60, 5)
    shown = terminal.until(lambda text: "0/4" in text)
    assert shown.splitlines()[-2] == "step0, step1, step2, step3"
    terminal.resize(20, 5)
    terminal.screen.resize(5, 20)
    terminal.until(lambda text: "step0, step1, step…" in text)
    (tmp_path / "go").touch()
    assert "0/4" not in terminal.finish().splitlines()[-3:]
    assert terminal.process.returncode == 0


def test_a_dumb_terminal_and_a_short_run_have_no_area(tmp_path: Path) -> None:
    """Nothing moves there: no control sequence is written."""
    (tmp_path / "plan.yml").write_text(ALONE, "utf-8")
    dumb = Terminal(tmp_path, 80, 24, TERM="dumb")
    dumb.finish()
    assert b"\x1b" not in dumb.raw
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: echo hi}]\n", "utf-8")
    short = Terminal(tmp_path, 80, 24, NO_COLOR="1")
    assert "▶ a\nhi\n✓ a (" in short.finish()
    assert b"\x1b" not in short.raw


def test_an_interrupt_leaves_a_clean_terminal(tmp_path: Path) -> None:
    """The area is gone, the cursor visible, and the last line tells how the run ended."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps: [{id: a, run: 'printf waiting; sleep 60'}]\n", "utf-8"
    )
    terminal = Terminal(tmp_path, 80, 24)
    terminal.until(lambda text: "waiting" in text)
    terminal.process.send_signal(signal.SIGINT)
    text = terminal.finish()
    assert terminal.process.returncode == 130
    assert "waiting\n" in text
    assert "◐" not in text
    assert not terminal.screen.cursor.hidden
    assert "cancelled by SIGINT" in text


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interrupt_does_not_wait_for_a_slow_reader(tmp_path: Path) -> None:
    """Of what a step printed faster than the terminal takes it, the rest is left out, and what shows it is named."""
    plan = "version: 1\nsteps: [{id: a, run: 'echo $$ > pid; seq 3000000; touch printed; sleep 60'}]\n"
    (tmp_path / "plan.yml").write_text(plan, "utf-8")
    with subprocess.Popen(
        WORDS, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        until = time.monotonic() + LIMIT
        while not (tmp_path / "printed").exists() and time.monotonic() < until:
            time.sleep(0.02)
        run.send_signal(signal.SIGINT)  # planrun waits for somebody who reads
        pid = int((tmp_path / "pid").read_text("ascii"))
        read = b""
        while _is_there(pid) and time.monotonic() < until:  # until then it goes on with what is read
            read += os.read(run.stdout.fileno(), 1 << 16)
            time.sleep(0.02)
        out = (read + run.stdout.read()).decode()
        assert run.wait(LIMIT) == 130
    left = re.search(r"^… (\d+) bytes left out; planrun logs \S+ a shows all …$", out, re.MULTILINE)
    assert left, out[-500:]
    whole = sum([len(f"{number}\n") for number in range(1, 3_000_001)])
    shown = len(out.encode()) - len(f"{left[0]}\n".encode())
    assert shown + int(left[1]) in (
        whole,
        whole + 1,
    )  # one more: the line before the gap was cut, and got an end
    assert out.endswith("\n3000000\n")


def test_output_of_python_stays_off_its_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """planrun.execute prints failures and the result; with output="stream" also what steps print; all to stderr."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: a, run: echo hi}]\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    plan = planrun.load("plan.yml")
    planrun.execute(plan)
    said = capfd.readouterr()
    assert said.out == ""
    assert "hi" not in said.err
    planrun.execute(plan, output="stream")
    said = capfd.readouterr()
    assert said.out == ""
    assert "▶ a\nhi\n✓ a (" in said.err


def test_json_has_stdout_for_itself(tmp_path: Path) -> None:
    """Output goes to stderr, in its order."""
    done = ran(tmp_path, ALONE, "--json")
    assert done.stdout.startswith("{")
    assert "▶ a\none\ntwo\n✓ a (" in done.stderr


def test_a_reader_that_leaves_ends_no_run(tmp_path: Path) -> None:
    """`planrun execute plan.yml | head -1`: the rest is not shown, and the run ends as it would."""
    (tmp_path / "plan.yml").write_text(ALONE + "  - {id: b, depends_on: [a], run: 'seq 100000'}\n", "utf-8")
    line = f"{sys.executable} -m planrun execute plan.yml | head -n 1"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.stdout == "one\n"
    assert "✓ completed" in done.stderr


SYSTEMS = {
    "GITHUB_ACTIONS": (r"::group::▶ a\n::stop-commands::(\w+)\n", r"::(\w+)::\n::endgroup::\n"),
    "GITLAB_CI": (
        "\x1b\\[0Ksection_start:\\d+:(planrun_1)\r\x1b\\[0K▶ a\n",
        "\x1b\\[0Ksection_end:\\d+:(planrun_1)\r\x1b\\[0K\n",
    ),
    "TF_BUILD": (r"(##)\[group\]▶ a\n", r"(##)\[endgroup\]\n"),
    "BUILDKITE": (r"(---) ▶ a\n", r"()"),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_section_of_ci_is_written_live_and_beside_others_at_the_end(tmp_path: Path, system: str) -> None:
    """While a step runs alone its section is open; another section closes it, and what follows continues."""
    plan = """\
version: 1
limits: {max_parallel: 2}
steps:
  - {id: first, run: 'until test -e go; do sleep 0.02; done'}
  - {id: a, run: 'echo "::error::x"; echo "##[error]y"; touch go; until test -e gone; do sleep 0.02; done; echo end'}
  - {id: b, depends_on: [first], run: 'sleep 0.6; echo from b'}
  - {id: c, depends_on: [b], run: touch gone}
"""
    start, end = SYSTEMS[system]
    done = ran(tmp_path, plan, **{system: "true", "CI": "true"})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    text = done.stdout
    sections = re.findall(r"(?:::group::|\[group\]|--- |\x1b\[0K)([✓▶][^\n]*)\n", text)
    # a ran alone when it first had something to show, or beside b: both are right, and nothing is lost.
    assert [re.sub(r" \(\d.*", "", title) for title in sections] in (
        ["▶ a", "✓ b", "▶ a (continued)"],
        ["✓ b", "✓ a"],
        ["✓ b", "▶ a"],
        ["▶ a", "✓ b"],
    )
    for line in (": :error::x", "# #[error]y", "from b", "end"):
        assert len(re.findall(rf"^ *{re.escape(line)}$", text, re.MULTILINE)) == 1, text
    if sections[0] == "▶ a":
        assert re.search(start, text)
        assert re.search(end, text)
    assert not re.search(r"^\s*::(?!group|endgroup|stop-commands|[0-9a-f]{32}::$)", text, re.MULTILINE)


def test_a_live_section_is_complete_before_its_step_ends(tmp_path: Path) -> None:
    """GitHub: the group is open and has the first line while the step waits; it is closed at the end."""
    plan = (
        "version: 1\nsteps: [{id: a, run: 'echo one; until test -e seen; do sleep 0.05; done; echo two'}]\n"
    )
    (tmp_path / "plan.yml").write_text(plan, "utf-8")
    with subprocess.Popen(
        WORDS, cwd=tmp_path, env=environment(GITHUB_ACTIONS="true", CI="true"), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        rows = [process.stdout.readline().decode() for _ in range(5)]
        assert rows[2] == "::group::▶ a\n"
        word = rows[3].removeprefix("::stop-commands::").strip()
        assert rows[4] == "one\n"
        (tmp_path / "seen").touch()
        rest = process.stdout.read().decode()
    assert rest.startswith(f"two\n::{word}::\n::endgroup::\n✓ a (")


def test_a_service_that_is_ready_holds_no_section(tmp_path: Path) -> None:
    """Its section is closed when it is ready; the step that uses it is live, and the rest of its output comes last."""
    plan = """\
version: 1
steps:
  - id: server
    run: 'echo $$ > pid; echo up; until test -e used; do sleep 0.02; done; echo request; sleep 60'
    service: true
    ready: {run: sleep 0.3; kill -0 $(cat pid), interval: 100ms}
  - {id: use, depends_on: [server], run: 'echo use; sleep 0.3; touch used; sleep 0.3'}
"""
    rows = ran(tmp_path, plan, TF_BUILD="true", CI="true").stdout.splitlines()
    shown = [re.sub(r" \(\d.*?s\)", "", row) for row in rows if not row.startswith((" ", "##vso["))][1:-1]
    assert shown == [
        *("##[group]▶ server", "up", "##[endgroup]", "◐ server is ready"),
        *("##[group]▶ use", "use", "##[endgroup]", "✓ use"),
        *("##[group]✓ server (continued)", "request", "##[endgroup]"),
    ]


def test_each_attempt_has_its_section(tmp_path: Path) -> None:
    """What a failed attempt printed is shown before the next one starts, also beside another step."""
    plan = """\
version: 1
limits: {max_parallel: 2}
steps:
  - {id: other, run: 'until test -e done; do sleep 0.02; done'}
  - {id: a, run: 'echo try; if test -e tried; then touch done; else touch tried; exit 1; fi', retries: 1}
"""
    text = ran(tmp_path, plan, TF_BUILD="true", CI="true").stdout
    titles = [row for row in text.splitlines() if row.startswith("##[group]")]
    assert titles[0].startswith("##[group]◔ a: attempt 1 failed: exit")
    assert titles[1].startswith("##[group]✓ a (")
    assert text.count("\ntry\n") == 2


def test_groups_without_sections_are_indented(tmp_path: Path) -> None:
    """--output group and its earlier name show all that a step printed, below its id on a stdout apart."""
    for words in (["--output", "group"], ["--logs", "all"]):
        done = ran(tmp_path, "version: 1\nsteps: [{id: a, run: seq 30}]\n", *words)
        assert done.stdout == "".join(["a:\n", *[f"  | {number}\n" for number in range(1, 31)]])
        assert "\n✓ a (" in done.stderr


def test_stream_in_ci_has_no_commands(tmp_path: Path) -> None:
    """Without sections lines stand for themselves, and none is a command."""
    plan = "version: 1\nsteps: [{id: a, run: 'echo ::error::x; echo \"##[group]y\"'}]\n"
    done = ran(tmp_path, plan, "--output", "stream", GITHUB_ACTIONS="true", CI="true")
    assert ": :error::x\n# #[group]y\n" in done.stdout
    done = ran(tmp_path, plan, "--output", "stream", GITHUB_ACTIONS="true", CI="false")
    assert done.stdout == ": :error::x\n# #[group]y\n"
    # A CI system whose variables were removed may read a pipe; nothing but a person reads a terminal.
    assert ran(tmp_path, plan).stdout == ": :error::x\n# #[group]y\n"
    assert "\n::error::x\n##[group]y\n" in Terminal(tmp_path, 80, 24).finish()


def test_the_first_plan_prints_its_greeting(tmp_path: Path) -> None:
    """`planrun init` and `planrun execute plan.yml` in an empty folder show what the first step prints."""
    subprocess.run(
        [*WORDS[:3], "init"], cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=LIMIT
    )
    done = subprocess.run(
        WORDS, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout.lower()
