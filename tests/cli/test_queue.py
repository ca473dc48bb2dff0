"""`planrun queue`: plans that wait in a queue, by the installed command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from planrun.cliutil.options import EXECUTE, RESUME
from planrun.queue.serve import EXECUTE_ONLY
from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Command

NOTES = """\
version: 1
defaults: {shell: sh}
params: {word: {type: string, default: none}}
steps:
  - {id: note, run: "echo $WORD >> notes", env: {WORD: "${{ params.word }}"}}
"""
FAILS = "version: 1\ndefaults: {shell: sh}\nsteps: [{id: test, run: 'test -e fixed'}]\n"
HOLDS = """\
version: 1
defaults: {shell: sh}
steps:
  - {id: first, run: "echo first >> notes"}
  - {id: hold, depends_on: [first], run: "touch began; until test -e go; do sleep 0.02; done; echo held >> notes"}
"""
ASKS = """\
version: 1
defaults: {shell: sh}
steps:
  - {id: sure, ask: {question: Go on?}}
  - {id: note, depends_on: [sure], run: "echo asked >> notes"}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with plans."""
    for name, text in {"notes": NOTES, "fails": FAILS, "holds": HOLDS, "asks": ASKS}.items():
        (tmp_path / f"{name}.yml").write_text(text, "utf-8")
    return tmp_path


def entries(planrun: Command) -> dict[int, dict[str, Any]]:
    """Return the queue, by number."""
    found = planrun("queue", "list", "--json")
    assert (found.returncode, found.stderr) == (0, "")
    return {row["entry"]: row for row in json.loads(found.stdout)["entries"]}


def statuses(planrun: Command) -> dict[int, str]:
    """Return the status of each entry."""
    return {number: row["status"] for number, row in sorted(entries(planrun).items())}


def add(planrun: Command, *words: str) -> int:
    """Queue a plan and return its number."""
    found = planrun("queue", "add", *words)
    assert found.returncode == 0, found.stderr
    return int(found.stdout.split()[1].rstrip(":"))


def begin(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start a runner."""
    return subprocess.Popen(
        [sys.executable, "-m", "planrun", "queue", "run", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until(fact: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    limit = time.monotonic() + LIMIT
    while not fact():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.shows("V-73", "V-74")
def test_a_queue_is_worked_off_in_order(planrun: Command, folder: Path) -> None:
    """Priority counts first, then age; an entry waits for its predecessor; each entry is a run with its records."""
    add(planrun, "notes.yml", "--param", "word=one")
    add(planrun, "notes.yml", "-p", "word=two", "--priority", "5")
    add(planrun, "notes.yml", "--param=word=three", "--priority", "9", "--after", "1")
    assert statuses(planrun) == {1: "queued", 2: "queued", 3: "queued"}
    done = planrun("queue", "run")
    assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "notes").read_text("utf-8").split() == ["two", "one", "three"]
    assert statuses(planrun) == {1: "completed", 2: "completed", 3: "completed"}
    assert {row["run"] for row in entries(planrun).values()} == set(os.listdir(folder / ".planrun" / "runs"))
    assert planrun("queue", "run").returncode == 0


@pytest.mark.shows("V-73")
def test_what_comes_after_a_failure_is_blocked_until_it_is_retried(planrun: Command, folder: Path) -> None:
    """Blocked entries do not wait for ever; a retry has the failed run go on, and brings back what was blocked."""
    add(planrun, "fails.yml")
    add(planrun, "notes.yml", "--after", "1")
    add(planrun, "notes.yml", "--after", "2")
    assert planrun("queue", "run").returncode == 1
    found = entries(planrun)
    assert {number: row["status"] for number, row in found.items()} == {
        1: "failed",
        2: "blocked",
        3: "blocked",
    }
    assert (found[1]["reason"], found[3]["reason"]) == ("a step failed", "entry 2 is blocked")
    assert "retry what blocks it: 2" in planrun("queue", "retry", "3").stderr
    (folder / "fixed").touch()
    assert planrun("queue", "retry", "1").returncode == 0
    assert planrun("queue", "run").returncode == 0
    assert set(statuses(planrun).values()) == {"completed"}
    assert entries(planrun)[1]["run"] == found[1]["run"]


def test_an_unknown_entry_and_a_wrong_plan_are_refused_at_once(planrun: Command, folder: Path) -> None:
    """Unknown entries, wrong plans, parameters, options and folders are exit code 2, and change nothing."""
    (folder / "wrong.yml").write_text("version: 1\nsteps: [{ruin: x}]\n", "utf-8")
    for words, expected in {
        ("notes.yml", "--after", "7"): "--after 7: no such entry in the queue",
        ("notes.yml", "--priority", "high"): '--priority takes a whole number, not "high"',
        ("notes.yml", "--param", "wrd=x"): "wrd",
        ("notes.yml", "--folder", "nowhere"): "no such folder: nowhere",
        ("notes.yml", "--jbos", "2"): "--jobs",
        ("wrong.yml",): "unknown key",
        ("absent.yml",): "absent.yml",
    }.items():
        found = planrun("queue", "add", *words)
        assert (found.returncode, found.stdout) == (2, ""), words
        assert expected in found.stderr
    assert statuses(planrun) == {}
    assert "no entry 3" in planrun("queue", "cancel", "3").stderr


def test_a_plan_changed_after_queueing_does_not_run(planrun: Command, folder: Path) -> None:
    """A plan that changed since it was queued fails and does not run, unless it was queued with --track."""
    add(planrun, "notes.yml")
    add(planrun, "notes.yml", "--track")
    (folder / "notes.yml").write_text(NOTES.replace("$WORD", "changed"), "utf-8")
    assert planrun("queue", "run").returncode == 1
    assert entries(planrun)[1]["reason"] == "its plan changed since it was queued"
    assert (folder / "notes").read_text("utf-8") == "changed\n"


def test_a_queued_execute_looks_at_the_bytes_that_it_runs(planrun: Command, folder: Path) -> None:
    """Between the queue's look at a file and its own, execute would notice a change; a made-up id is refused."""
    words = ("execute", "notes.yml")
    found = planrun(*words, env={"PLANRUN_QUEUED": f"20260101-000000-000001:{'0' * 64}"})
    assert (found.returncode, "changed since it was queued" in found.stderr) == (3, True)
    assert planrun(*words, env={"PLANRUN_QUEUED": "../../x:"}).returncode == 2
    assert not (folder / "notes").exists()


def test_entries_of_different_folders_run_at_once(planrun: Command, folder: Path) -> None:
    """With --max-concurrent two folders are worked in at once, and one folder by one entry at a time."""
    for name in ("a", "b"):
        (folder / name).mkdir()
        add(planrun, "holds.yml", "--folder", name)
        add(planrun, "notes.yml", "--folder", name)
    with begin(folder, "--max-concurrent", "4") as runner:
        until(lambda: (folder / "a" / "began").exists() and (folder / "b" / "began").exists())
        assert statuses(planrun) == {1: "running", 2: "queued", 3: "running", 4: "queued"}
        (folder / "a" / "go").touch()
        (folder / "b" / "go").touch()
        said = runner.communicate(timeout=LIMIT)[0]
    assert runner.returncode == 0
    assert (folder / "a" / "notes").read_text("utf-8").split() == ["first", "held", "none"]
    assert said.count("✓ hold") == 2
    assert len(list((folder / "b" / ".planrun" / "runs").iterdir())) == 2


def test_another_run_in_the_folder_is_waited_for(planrun: Command, folder: Path) -> None:
    """An entry whose folder another run has waits, and does not end with exit code 2."""
    words = [sys.executable, "-m", "planrun", "execute", "holds.yml"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL) as other:
        until((folder / "began").exists)
        add(planrun, "notes.yml")
        with begin(folder) as runner:
            until(lambda: statuses(planrun)[1] == "running")
            (folder / "go").touch()
            runner.communicate(timeout=LIMIT)
    assert (other.returncode, runner.returncode) == (0, 0)


def test_a_run_that_waits_leaves_the_queue_with_exit_code_5(planrun: Command, folder: Path) -> None:
    """Later entries wait with it; once it is answered the next runner continues the same run."""
    add(planrun, "asks.yml")
    add(planrun, "notes.yml", "--after", "1")
    assert planrun("queue", "run").returncode == 5
    assert statuses(planrun) == {1: "waiting", 2: "queued"}
    assert planrun("queue", "run").returncode == 5
    run = entries(planrun)[1]["run"]
    assert planrun("decide", run, "sure=yes").returncode == 0
    assert planrun("queue", "run").returncode == 0
    assert (folder / "notes").read_text("utf-8").split() == ["asked", "none"]
    assert entries(planrun)[1]["run"] == run


@pytest.mark.usefixtures("folder")
def test_pause_cancel_and_clear(planrun: Command) -> None:
    """A paused queue starts nothing and reports it; a cancelled entry never runs; clearing deletes finished entries."""
    add(planrun, "notes.yml")
    add(planrun, "notes.yml")
    add(planrun, "notes.yml", "--after", "2")
    assert planrun("queue", "pause").stdout == "the queue is paused\n"
    assert planrun("queue", "run").returncode == 5
    assert "paused" in planrun("queue", "list").stdout
    assert planrun("queue", "cancel", "2").stdout == "entry 2: cancelled\n"
    assert planrun("queue", "cancel", "2").returncode == 2
    assert planrun("queue", "resume").returncode == 0
    assert planrun("queue", "run").returncode == 1
    assert statuses(planrun) == {1: "completed", 2: "cancelled", 3: "blocked"}
    assert planrun("queue", "clear").stdout == "1 entry removed\n"
    assert statuses(planrun) == {2: "cancelled", 3: "blocked"}
    assert planrun("queue", "clear", "--all").stdout == "2 entries removed\n"
    assert add(planrun, "notes.yml") == 4


def test_a_running_entry_is_cancelled_with_all_it_started(planrun: Command, folder: Path) -> None:
    """Its run ends as by Ctrl-C, and the queue continues with the next."""
    add(planrun, "holds.yml")
    add(planrun, "notes.yml")
    with begin(folder) as runner:
        until((folder / "began").exists)
        assert planrun("queue", "cancel", "1").stdout == "entry 1: cancelled\n"
        runner.communicate(timeout=LIMIT)
    assert runner.returncode == 1
    assert statuses(planrun) == {1: "cancelled", 2: "completed"}
    ended = json.loads(
        (folder / ".planrun" / "runs" / entries(planrun)[1]["run"] / "ledger.jsonl")
        .read_text()
        .splitlines()[-1]
    )
    assert ended["verdict"] == "cancelled"


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_what_runs_and_keeps_the_rest(planrun: Command, folder: Path, signum: int) -> None:
    """What ran is `cancelled` and can be retried, the rest stays queued; the exit code is that of the signal."""
    add(planrun, "holds.yml")
    add(planrun, "notes.yml")
    with begin(folder) as runner:
        until((folder / "began").exists)
        runner.send_signal(signum)
        runner.communicate(timeout=LIMIT)
    assert runner.returncode == 128 + signum
    assert statuses(planrun) == {1: "cancelled", 2: "queued"}
    (folder / "go").touch()
    assert planrun("queue", "retry", "1").returncode == 0
    assert planrun("queue", "run").returncode == 0
    assert (folder / "notes").read_text("utf-8").split() == ["first", "held", "none"]


def test_one_runner_works_on_a_queue(planrun: Command, folder: Path) -> None:
    """A second runner gets the name of the first; a waiting runner takes new entries, and ends by a signal."""
    with begin(folder, "--wait") as runner:
        until((folder / ".planrun" / "queue" / "lock").exists)
        until(lambda: f"process {runner.pid} " in planrun("queue", "run").stderr)
        add(planrun, "notes.yml")
        until(lambda: statuses(planrun)[1] == "completed")
        runner.send_signal(signal.SIGTERM)
        runner.communicate(timeout=LIMIT)
    assert runner.returncode == 143
    assert planrun("queue", "run", "--wait", "--drain").returncode == 2


@pytest.mark.shows("V-73")
@pytest.mark.parametrize("both", [False, True])
def test_orphaned_runs_are_resumed(planrun: Command, folder: Path, *, both: bool) -> None:
    """A run that outlived its runner is waited for, one that died with it is resumed; nothing runs twice."""
    add(planrun, "holds.yml")
    add(planrun, "notes.yml", "--after", "1")
    with begin(folder) as runner:
        until((folder / "began").exists)
        runner.kill()
        runner.wait(LIMIT)
        row = json.loads((folder / ".planrun" / "queue" / "queue.jsonl").read_text().splitlines()[-1])
        if both:
            os.kill(row["worker"]["pid"], signal.SIGKILL)
            until(lambda: entries(planrun)[1]["lost"])
        (folder / "go").touch()
    assert planrun("queue", "run").returncode == 0
    assert (folder / "notes").read_text("utf-8").split() == ["first", "held", "none"]
    assert entries(planrun)[1]["run"] == row["run"]
    assert statuses(planrun) == {1: "completed", 2: "completed"}


def test_a_step_cannot_change_a_queue(planrun: Command, folder: Path) -> None:
    """A step cannot add to the queue: the entry would run unasked, outside of the reviewed plan."""
    (folder / "step.yml").write_text(
        "version: 1\nsteps:\n"
        f"  - exec: [{sys.executable}, -m, planrun, queue, add, notes.yml]\n"
        f"  - exec: [env, -i, setsid, --wait, {sys.executable}, -m, planrun, queue, resume]\n",
        "utf-8",
    )
    found = planrun("execute", "step.yml", "--auto-approve", "high")
    assert found.returncode == 1
    assert found.stdout.count("a step of a run cannot change a queue") == 2
    assert statuses(planrun) == {}


def test_the_output_that_an_entry_asked_for_is_what_is_shown(planrun: Command, folder: Path) -> None:
    """Each spelling is kept as the one option that all of them set."""
    for words, kept in (
        (["-q"], "quiet"),
        (["--output", "stream"], "stream"),
        (["--logs", "all"], "group"),
    ):
        number = add(planrun, "notes.yml", *words)
        assert entries(planrun)[number]["options"] == [f"--output={kept}"]
    assert planrun("queue", "run", "--drain").returncode == 0
    assert (folder / "notes").read_text() == "none\n" * 3


def test_options_that_a_run_keeps_are_not_given_to_resume() -> None:
    """The list in the app is that of the table: what `resume` lacks, or takes for a new plan alone."""
    known = {option.flags[0] for option in RESUME} - {"--plan", "--param", "--locked"}
    assert {option.flags[0] for option in EXECUTE} - known == EXECUTE_ONLY
