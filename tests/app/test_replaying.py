"""Runs replayed from their ledgers: unchanged by the real loop, or what-if under other plans or policies."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import planrun
from planrun.app.copies import plans_of
from planrun.app.inspect import read_run
from planrun.app.resume import ResumeRequest, resume
from planrun.cli import main
from planrun.cli.run import changes, planner
from planrun.engine.failures import delay
from planrun.engine.queue import Queue
from planrun.model import events as ev
from planrun.model.plan import Retry
from planrun.plan.load import load
from planrun.records.reading import read_ledger
from planrun.replays.replay import replay_run
from planrun.replays.results import chance_of
from planrun.replays.whatif import what_if
from planrun.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from planrun.replays.replay import ReplayResult
    from planrun.replays.whatif import Row, WhatIfResult

PLAN = """\
version: 1
name: p
defaults: {shell: sh}
steps:
  - {id: build, run: echo v=1 >> "$PLANRUN_OUTPUT", outputs: {v: integer}}
  - id: test
    depends_on: [build]
    run: test -e ok || { touch ok; exit 75; }
    retries: {max: 1, backoff: {initial: 20ms}}
  - {id: broken, run: echo connection refused; exit 3, on_failure: continue}
  - {id: mends, depends_on: {broken: failed}, condition: steps.broken.exit_code == 3, run: "true"}
  - id: publish
    depends_on: [build, test]
    condition: steps.build.outputs.v == 1
    run: echo ${{ steps.build.outputs.v }}
finally:
  - {id: tidy, run: "true"}
"""
LIMIT = 60.0


def execute(folder: Path, text: str = PLAN, **options: Any) -> None:
    """Run a plan in a folder."""
    (folder / "plan.yml").write_text(text)
    planrun.execute(planrun.load(str(folder / "plan.yml")), workspace=str(folder), **{"jobs": 2, **options})


def run_of(folder: Path) -> str:
    """Return the folder of the newest run."""
    return str(max((folder / ".planrun" / "runs").iterdir()))


def again(folder: Path) -> ReplayResult:
    """Replay the newest run."""
    run = run_of(folder)
    reading = read_ledger(f"{run}/ledger.jsonl")
    return replay_run(run, reading, plans_of(run, reading))


def supposed(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = "", policy: str = "") -> WhatIfResult:
    """Return the what-if replay of the newest run under another plan or policy."""
    monkeypatch.chdir(folder)
    if text:
        (folder / "edited.yml").write_text(text)
    if policy:
        (folder / "policy.yml").write_text(policy)
    recorded = read_run("last")
    plan = load("edited.yml", cache=False) if text else None
    return what_if(recorded.state, recorded.rundir, plan, "policy.yml" if policy else "")


def rows(found: WhatIfResult) -> dict[str, Row]:
    """Return the rows by step."""
    return {row.step: row for row in found.rows}


def wait_for(look: Callable[[], str]) -> str:
    """Return what a look at files finds, as soon as it is there."""
    limit = time.monotonic() + LIMIT
    while True:
        with contextlib.suppress(FileNotFoundError):
            if found := look():
                return found
        assert time.monotonic() < limit
        time.sleep(0.01)


def ended(pid: str) -> str:
    """Return a word when a process has ended, whether or not its parent knows; nothing before."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"
    return state if state in "ZX" else ""


def test_a_run_is_replayed_event_for_event(tmp_path: Path) -> None:
    """Retries, tolerated failures, conditions, outputs and cleanup come out of the real loop as they were."""
    execute(tmp_path)
    replay = again(tmp_path)
    assert replay.differences == ()
    assert replay.played == 16
    assert replay.outside == 3  # the start of the run, and its way to `approved`


def test_a_resumed_run_is_replayed_process_by_process(tmp_path: Path) -> None:
    """What each process did is the same again, whatever happened between them."""
    execute(tmp_path, PLAN.replace("exit 75", "exit 1").replace("max: 1", "max: 0"))
    resume(
        "last",
        Settings(output="quiet", jobs=2),
        ResumeRequest(report=print, planner=planner, changes=changes, workspace=str(tmp_path)),
    )
    replay = again(tmp_path)
    assert replay.differences == ()
    assert replay.outside == 4


def test_a_killed_run_is_replayed_to_its_last_event(tmp_path: Path) -> None:
    """The record ends in the middle, and so does the replay; the resumed part is replayed as well."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\ndefaults: {shell: sh}\nsteps:\n  - {id: a, run: 'true'}\n"
        "  - {id: b, depends_on: [a], run: 'test -e there || { touch there; sleep 600; }'}\n"
    )
    killed = subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    limit = time.monotonic() + LIMIT
    while not (tmp_path / "there").exists():
        assert time.monotonic() < limit
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait(LIMIT)
    assert again(tmp_path).differences == ()
    resume(
        "last",
        Settings(output="quiet"),
        ResumeRequest(report=print, planner=planner, changes=changes, workspace=str(tmp_path)),
    )
    assert again(tmp_path).differences == ()


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_answers_are_replayed_from_the_record(tmp_path: Path, answer: str) -> None:
    """Answers of an approval, a question and a policy are replayed."""
    text = (
        "version: 1\ndefaults: {shell: sh}\npolicy: {auto_approve: none, rules: [{allow: {step: first}}]}\nsteps:\n"
        "  - {id: first, run: 'true'}\n  - {id: sure, depends_on: [first], ask: {question: Sure?}}\n"
        "  - {id: risky, run: 'true', depends_on: [sure]}\n"
    )
    execute(tmp_path, text, decide=(f"sure={answer}",))
    assert again(tmp_path).differences == ()


def test_a_lock_of_another_run_is_replayed_from_the_record(tmp_path: Path) -> None:
    """A run that had to wait for another one on this host waits again, for as long and with the same words."""
    held, waits = tmp_path / "held", tmp_path / "waits"
    lock = f"replay-{os.getpid()}"
    for folder in (held, waits):
        folder.mkdir()
    (held / "plan.yml").write_text(
        f"version: 1\ndefaults: {{shell: sh}}\nsteps:\n"
        f"  - {{id: a, lock: {lock}, run: 'touch began; while [ ! -e go ]; do sleep 0.02; done'}}\n"
    )
    (waits / "plan.yml").write_text(
        f"version: 1\ndefaults: {{shell: sh}}\nsteps:\n  - {{id: b, lock: {lock}, run: 'true'}}\n"
        "  - {id: c, run: touch ../held/go}\n"
    )
    first = subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "-q"],
        cwd=held, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        limit = time.monotonic() + LIMIT
        while not (held / "began").exists():
            assert time.monotonic() < limit
            time.sleep(0.02)
        planrun.execute(planrun.load(str(waits / "plan.yml")), workspace=str(waits), jobs=2)
    finally:
        (held / "go").touch()
        assert first.wait(LIMIT) == 0
    events = read_ledger(f"{run_of(waits)}/ledger.jsonl").events
    assert [event.step for event in events if isinstance(event, ev.StepHeld)] == ["b"]
    assert again(waits).differences == ()


def test_another_decision_of_the_loop_is_found_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that starts steps in another order is reported with the line of the ledger."""
    execute(tmp_path, 'version: 1\nsteps: [{id: a, run: "true"}, {id: b, run: "true"}]\n', jobs=1)
    assert again(tmp_path).differences == ()
    whole = Queue.__init__

    def backwards(self: Queue, *given: Any) -> None:
        whole(self, *given)
        self._place = {name: -place for name, place in self._place.items()}

    monkeypatch.setattr(Queue, "__init__", backwards)
    (difference,) = again(tmp_path).differences
    assert (difference.line, getattr(difference.recorded, "step", "")) == (5, "a")
    assert getattr(difference.replayed, "step", "") == "b"


def test_retries_that_are_due_at_nearly_the_same_time_are_played_in_their_order(tmp_path: Path) -> None:
    """Which of two attempts began first, and which end came between them, is taken from the record."""
    pauses = (20, 24, 25, 23, 21, 22)
    retries = "retries: {max: 9, backoff: {initial: %sms, factor: 1, jitter: 0}}"
    rows = [f"  - {{id: s{pause}, {retries % pause}, exec: ['false']}}\n" for pause in pauses]
    for jobs in (3, len(pauses)):
        execute(tmp_path, f"version: 1\nsteps:\n{''.join(rows)}", jobs=jobs)
        assert again(tmp_path).differences == ()


@pytest.mark.parametrize("reaction", ["fail_fast: true}", "fail_fast: false}, on_failure: abort"])
def test_two_ends_that_were_seen_at_once_are_played_at_once(tmp_path: Path, reaction: str) -> None:
    """A failure that cancels others, and the end of another step, came before the end of the group."""
    wait = "echo $$ > pid.{}; until test -e go; do sleep 0.02; done; exit 1"
    (tmp_path / "plan.yml").write_text(
        "version: 1\ndefaults: {shell: sh}\nsteps:\n"
        f"  - {{id: test, run: '{wait.format('one')}', matrix: {{n: [1, 2, 3], max_parallel: 1, {reaction}}}\n"
        f"  - {{id: other, run: '{wait.format('other')}'}}\n"
    )
    run = subprocess.Popen(
        [sys.executable, "-m", "planrun", "execute", "plan.yml", "--jobs", "2"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    pids = [wait_for((tmp_path / name).read_text).strip() for name in ("pid.one", "pid.other")]
    run.send_signal(signal.SIGSTOP)
    (tmp_path / "go").touch()
    for pid in pids:
        wait_for(partial(ended, pid))
    run.send_signal(signal.SIGCONT)
    assert run.wait(LIMIT) == 1
    assert again(tmp_path).differences == ()


def test_the_pause_before_a_retry_is_the_one_that_was_drawn() -> None:
    """Chance is computed back from the pause that it made."""
    retry = Retry(max=3, initial=0.5, factor=3.0, cap=4.0, jitter=0.2)
    for tries in (1, 2, 3):
        for drawn in (0.0, 0.3, 1.0):
            assert chance_of(retry, tries, delay(retry, tries, drawn)) == pytest.approx(drawn)


def test_the_same_plan_has_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under its own plan no differences, and nothing is assumed."""
    execute(tmp_path)
    replay = supposed(tmp_path, monkeypatch, PLAN)
    assert [row.step for row in replay.rows if row.differs] == []
    assert (replay.verdict, replay.exit_code) == ("partial", 0)


def test_recorded_attempts_count_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its retry the flaky step would have failed as its first attempt did, and what depends on it not run."""
    execute(tmp_path)
    replay = supposed(tmp_path, monkeypatch, PLAN.replace("max: 1", "max: 0"))
    by_step = rows(replay)
    assert (by_step["test"].replayed, by_step["test"].why) == ("failed", "exit code 75")
    assert by_step["publish"].replayed == "blocked"
    assert not by_step["test"].is_assumed
    assert (replay.verdict, replay.exit_code) == ("failed", 1)


def test_what_changed_is_assumed_and_what_needs_it_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed step is assumed to complete; a condition that reads its outputs is unknown until it runs."""
    execute(tmp_path)
    replay = supposed(tmp_path, monkeypatch, PLAN.replace("echo v=1", "echo v=2"))
    by_step = rows(replay)
    assert (by_step["build"].is_assumed, by_step["build"].why) == (True, "its action changed")
    assert (by_step["publish"].is_unknown, by_step["test"].is_assumed) == (True, False)
    assert "build" in by_step["publish"].why
    assert replay.verdict is None


def test_steps_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new step has no result, a removed one is reported, a shorter timeout would have ended a step."""
    execute(
        tmp_path,
        PLAN.replace(
            'id: mends, depends_on: {broken: failed}, condition: steps.broken.exit_code == 3, run: "true"',
            "id: mends, run: sleep 0.3",
        ),
    )
    edited = PLAN.replace(
        "id: broken, run: echo connection refused; exit 3, on_failure: continue", "id: extra, run: 'true'"
    )
    edited = edited.replace(
        'id: mends, depends_on: {broken: failed}, condition: steps.broken.exit_code == 3, run: "true"',
        "id: mends, run: sleep 0.3, timeout: 100ms",
    )
    by_step = rows(supposed(tmp_path, monkeypatch, edited))
    assert (by_step["broken"].replayed, by_step["extra"].is_assumed) == ("", True)
    assert (by_step["mends"].replayed, by_step["mends"].replayed_reason) == ("failed", "timeout")


def test_a_policy_would_have_denied_and_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a ceiling that denies a step the run would have ended with 3, under one that asks with 5."""
    execute(tmp_path)
    denied = supposed(tmp_path, monkeypatch, policy="rules: [{deny: {step: publish}}]\nauto_approve: high\n")
    assert (rows(denied)["publish"].replayed_reason, denied.exit_code) == ("denied", 3)
    asked = supposed(tmp_path, monkeypatch, policy="rules: [{require: {step: test}}]\nauto_approve: high\n")
    assert (asked.waits_for, asked.exit_code, asked.verdict) == (("test",), 5, None)
    assert "requires an approval" in rows(asked)["test"].why


def test_nothing_is_written_and_nothing_started(tmp_path: Path) -> None:
    """The interpreter itself says what is opened, made or started: nothing of it changes a file or begins a process."""
    execute(tmp_path)
    guard = (
        "import os, sys\n"
        "from planrun.cli import main\n"
        "bad, changes = [], [f'os.{name}' for name in ('posix_spawn', 'fork', 'exec', 'link', 'mkdir', 'rename',\n"
        "                     'remove', 'truncate', 'symlink', 'chmod', 'rmdir')]\n"
        "def hear(name, args):\n"
        "    if name == 'open' and (args[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT): bad.append(args[0])\n"
        "    if name.split('.')[0] in ('subprocess', 'socket') or name in changes: bad.append(name)\n"
        "sys.addaudithook(hear)\n"
        "codes = [main(['replay', *words.split()]) for words in ('last', '--plan plan.yml', '--policy policy.yml')]\n"
        "print(codes, bad, file=sys.stderr)\n"
    )
    (tmp_path / "policy.yml").write_text("auto_approve: low\n")
    before = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / ".planrun").rglob("*"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", guard], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "PLANRUN_CACHE_DIR": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "[0, 0, 0] []"
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / ".planrun").rglob("*")) == before


def test_replay_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both forms as text and as JSON; a run that there is not is exit code 2."""
    monkeypatch.chdir(tmp_path)
    assert main(["replay"]) == 2
    execute(tmp_path)
    capsys.readouterr()
    assert main(["replay"]) == 0
    assert "identical to the record" in capsys.readouterr().out
    assert main(["replay", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is True
    (tmp_path / "edited.yml").write_text(PLAN.replace("max: 1", "max: 0"))
    assert main(["replay", "--plan", "edited.yml"]) == 0
    by_step = capsys.readouterr().out
    assert "| test " in by_step
    assert "would be: failed, exit code 1" in by_step
    assert main(["replay", "last", "--plan", "edited.yml", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["replayed"]["verdict"] == "failed"
    assert data["recorded"]["verdict"] == "partial"
