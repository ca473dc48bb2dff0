"""`execute --watch`: runs again when files change, cancels what is outdated, and does not run for ever."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from planrun.actions.files import patterns_of
from planrun.watch.changes import Tracker
from planrun.watch.subject import Subject
from planrun.watch.supervisor import Habits
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Start = Callable[..., "Watch"]

PLAN = "version: 1\nsteps: [{id: show, run: cat app.txt}]\n"


class Watch:
    """A watch in the test's folder; what it prints is read as it comes."""

    def __init__(self, *words: str) -> None:
        environ = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "planrun", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environ,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text: str, times: int = 1) -> None:
        """Wait until so many lines contain a text."""
        limit = time.monotonic() + LIMIT
        while sum(text in line for line in self.lines) < times:
            assert time.monotonic() < limit, self.lines
            assert self.process.poll() is None, self.lines
            time.sleep(0.02)

    def count(self, text: str) -> int:
        """Return how many lines contain a text."""
        return sum(text in line for line in self.lines)

    def end(self, number: int = signal.SIGINT) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.close()

    def close(self) -> int:
        """Wait for its end, and return the exit code."""
        code = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a watch in the test's folder; what still runs at the end is killed."""
    monkeypatch.chdir(tmp_path)
    started: list[Watch] = []

    def begin(*words: str) -> Watch:
        started.append(Watch("execute", "plan.yml", "--watch", *words))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
        each.close()


def runs(folder: Path) -> int:
    """Return how many runs a folder has."""
    return len(list((folder / ".planrun" / "runs").iterdir()))


def test_a_folder_among_the_files_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """Git lists a submodule as one path, which is a folder."""
    (tmp_path / "sub").mkdir()
    subject = Subject(
        root=str(tmp_path), named=frozenset({"sub"}), inputs=patterns_of(()), made=patterns_of(()), hidden=()
    )
    tracker = Tracker()
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        tracker.begin(subject)
        (tmp_path / "sub" / str(number)).touch()
        tracker.look()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_change_runs_the_plan_again(tmp_path: Path, start: Start) -> None:
    """After a run it waits; a change of a file starts the next, named in one line; Ctrl-C ends it with 0."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "app.txt").write_text("alpha-text\n")
    watch = start()
    watch.wait_for("waiting for a change of 2 files; Ctrl-C ends")
    assert watch.count("alpha-text") == 1
    (tmp_path / "app.txt").write_text("beta-text\n")
    watch.wait_for("planrun: app.txt changed; run 2")
    watch.wait_for("waiting for a change", 2)
    assert watch.count("beta-text") == 1
    (tmp_path / "new.txt").write_text("a new file\n")
    watch.wait_for("planrun: new.txt changed; run 3")
    watch.wait_for("waiting for a change", 3)
    assert watch.end() == 0
    assert runs(tmp_path) == 3


def test_a_file_with_the_same_content_is_no_change(tmp_path: Path, start: Start) -> None:
    """A file that is written anew with what it held starts nothing; the next real change is the only one named."""
    (tmp_path / "plan.yml").write_text(PLAN)
    (tmp_path / "app.txt").write_text("alpha-text\n")
    (tmp_path / "other.txt").write_text("1")
    watch = start()
    watch.wait_for("waiting for a change")
    (tmp_path / "app.txt").write_text("alpha-text\n")
    (tmp_path / "other.txt").write_text("2")
    watch.wait_for("planrun: other.txt changed; run 2")
    watch.wait_for("waiting for a change", 2)
    assert watch.end() == 0


def test_only_declared_inputs_count(tmp_path: Path, start: Start) -> None:
    """With `inputs` other files of the folder are not watched; the plan is, and so is its env_file."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nenv_file: [vars.env]\nsteps: [{id: show, run: cat src/app.txt, cache: {inputs: ['src/**']}}]\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.txt").write_text("alpha-text\n")
    (tmp_path / "vars.env").write_text("A=1\n")
    (tmp_path / "README").write_text("text\n")
    watch = start()
    watch.wait_for("waiting for a change of 3 files")
    (tmp_path / "README").write_text("another text\n")
    (tmp_path / "vars.env").write_text("A=2\n")
    watch.wait_for("planrun: vars.env changed; run 2")
    watch.wait_for("waiting for a change", 2)
    (tmp_path / "src" / "more.txt").write_text("more\n")
    watch.wait_for("planrun: src/more.txt changed; run 3")
    watch.wait_for("waiting for a change of 4 files")
    assert watch.end() == 0


def test_a_change_during_a_run_cancels_it_and_starts_again(tmp_path: Path, start: Start) -> None:
    """The outdated run ends as one that is cancelled, with its `finally` steps; then the next one starts."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps: [{id: slow, run: 'cat app.txt; grep -q beta app.txt || exec sleep 60'}]\n"
        "finally: [{id: tidy, run: echo tidied}]\n"
    )
    (tmp_path / "app.txt").write_text("alpha-text\n")
    watch = start()
    watch.wait_for("alpha-text")
    (tmp_path / "app.txt").write_text("beta-text\n")
    watch.wait_for("planrun: app.txt changed; run 1 was cancelled; run 2")
    watch.wait_for("beta-text")
    watch.wait_for("waiting for a change")
    assert watch.count("cancelled: app.txt changed") == 1
    assert watch.end() == 0
    first, second = sorted((tmp_path / ".planrun" / "runs").iterdir())
    ends = [json.loads((run / "ledger.jsonl").read_text().splitlines()[-1]) for run in (first, second)]
    assert [end["verdict"] for end in ends] == ["cancelled", "completed"]
    assert (first / "logs" / "tidy" / "1.log").read_text() == "tidied\n"


def test_a_run_that_writes_into_its_folder_does_not_start_itself(tmp_path: Path, start: Start) -> None:
    """Files that a run makes or changes between its beginning and its end start no run for ever."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsteps: [{id: stamp, run: 'date +%N > made.txt; date +%N > stamp.txt; sleep 0.5'}]\n"
    )
    (tmp_path / "stamp.txt").write_text("0\n")
    watch = start()
    watch.wait_for("stamp.txt changes in every run, so a run writes it")
    watch.wait_for("waiting for a change")
    assert watch.count("made.txt changed") == 0
    assert runs(tmp_path) == 3
    (tmp_path / "stamp.txt").write_text("by a person\n")
    watch.wait_for("planrun: stamp.txt changed; run 4")
    watch.wait_for("waiting for a change", 2)
    assert watch.end() == 0


def test_a_plan_with_errors_is_waited_for(tmp_path: Path, start: Start) -> None:
    """Errors in the plan are printed, and the next change of it runs it."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: show, runn: x}]\n")
    (tmp_path / "app.txt").write_text("alpha-text\n")
    watch = start()
    watch.wait_for('unknown key "runn"')
    watch.wait_for("waiting for a change of 1 file;")
    (tmp_path / "plan.yml").write_text(PLAN)
    watch.wait_for("planrun: plan.yml changed; run 2")
    watch.wait_for("waiting for a change of 2 files")
    assert watch.count("alpha-text") == 1
    assert watch.end() == 0


def test_a_signal_ends_run_and_watch(tmp_path: Path, start: Start) -> None:
    """SIGTERM cancels the run and ends the watch with 143; no process is left."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: slow, run: echo begun; exec sleep 60}]\n")
    watch = start()
    watch.wait_for("begun")
    assert watch.end(signal.SIGTERM) == 143
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    assert json.loads((run / "ledger.jsonl").read_text().splitlines()[-1])["exit_code"] == 143


def test_at_a_terminal_ctrl_c_cancels_the_run_and_ends_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C reaches the run through the terminal once: it is cancelled and not killed, and the watch ends with 130."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: slow, run: echo begun; exec sleep 60}]\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "planrun", "run", "plan.yml", "-w"])
    shown = b""

    def until(text: bytes) -> None:
        nonlocal shown
        limit = time.monotonic() + LIMIT
        while text not in shown:
            assert time.monotonic() < limit, shown
            shown += os.read(terminal, 65536)

    until(b"begun")
    os.write(terminal, b"\x03")
    until(b"to continue: planrun resume")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    (run,) = (tmp_path / ".planrun" / "runs").iterdir()
    assert json.loads((run / "ledger.jsonl").read_text().splitlines()[-1])["exit_code"] == 130


def test_a_second_ctrl_c_during_a_run_ends_both(tmp_path: Path, start: Start) -> None:
    """The first one cancels the run, whose step ignores it; the second kills it; the watch ends with 130."""
    (tmp_path / "plan.yml").write_text(
        """version: 1
steps: [{id: deaf, run: "trap 'echo heard' INT TERM; echo begun; while :; do sleep 0.1; done"}]
"""
    )
    watch = start()
    watch.wait_for("begun")
    watch.process.send_signal(signal.SIGINT)
    watch.wait_for("cancelled by SIGINT")
    assert watch.end() == 130
    assert runs(tmp_path) == 1


@pytest.mark.parametrize(("words", "environ"), [(["--json"], {}), ([], {"CI": "true"}), (["--dry-run"], {})])
def test_where_it_makes_no_sense_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], environ: dict[str, str]
) -> None:
    """With --json, with --dry-run and in CI --watch is an error of the command line, and nothing runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yml").write_text(PLAN)
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "--watch", *words],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 2
    assert "--watch" in done.stderr
    assert not (tmp_path / ".planrun").exists()


def test_files_that_git_ignores_are_not_watched(tmp_path: Path) -> None:
    """In a repository the files of git and new ones count, ignored ones do not; nor does what steps make."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name, text in (
        (".gitignore", "*.log\n"),
        ("a.py", ""),
        ("b.log", ""),
        ("out/made", ""),
        ("out/no", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subject = Subject(
        root=str(tmp_path),
        named=frozenset({"plan.yml"}),
        inputs=None,
        made=patterns_of(["out/made"]),
        hidden=(".planrun",),
    )
    assert subject.files() == {"plan.yml", ".gitignore", "a.py", "out/no"}


def test_changes_are_found_by_content(tmp_path: Path) -> None:
    """Modified, created and deleted files are told apart; a new time alone is no change; new folders are found."""
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")
    tracker = Tracker()
    everything = Subject(
        root=str(tmp_path), named=frozenset(), inputs=patterns_of(["**"]), made=patterns_of(()), hidden=()
    )
    tracker.begin(everything)
    assert tracker.count == 2
    os.utime(tmp_path / "a", ns=(1, 1))
    assert tracker.look().all == ()
    (tmp_path / "a").write_text("2")
    (tmp_path / "b").unlink()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c").write_text("1")
    found = tracker.look()
    assert (found.modified, found.created, found.deleted) == (("a",), ("sub/c",), ("b",))
    assert tracker.look().all == ()


def test_a_person_who_saves_now_and_then_is_no_habit() -> None:
    """A file is a run's own after three changes at about the same second of runs in a row; others stay a person's."""
    habits = Habits()
    for seconds in (2.0, 7.0, 31.0, 4.0):
        habits.begin()
        assert habits.of_others(["app.py"], seconds) == ("app.py",)
    habits = Habits()
    kept = []
    for seconds in (5.0, 5.2, 4.9):
        habits.begin()
        kept.append(habits.of_others(["stamp.txt"], seconds))
    assert kept == [("stamp.txt",), ("stamp.txt",), ()]
    assert habits.news() == ["stamp.txt"]
    habits.begin()
    assert habits.of_others(["stamp.txt", "app.py"], 1.0) == ("app.py",)
