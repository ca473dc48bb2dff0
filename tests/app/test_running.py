"""What execute and resume do as whole processes, on plans that go wrong in ways a pipeline meets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

COMMAND = (sys.executable, "-m", "planrun")


@pytest.fixture
def run(planrun: Run, tmp_path: Path) -> Run:
    """Run planrun in the test's folder, with `plan` as its plan.yml."""

    def in_folder(*words: str, plan: str = "") -> subprocess.CompletedProcess[str]:
        if plan:
            (tmp_path / "plan.yml").write_text(plan)
        return planrun(*words)

    return in_folder


def until(fact: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until something is true, as long as the process lives."""
    limit = time.monotonic() + LIMIT
    while not fact():
        assert process.poll() is None, f"it ended with {process.returncode}"
        assert time.monotonic() < limit, "it never came true"
        time.sleep(0.02)


def ledger_of(folder: Path) -> bytes:
    """Return what the only run in a folder has on record."""
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    return ledger.read_bytes()


def ends(folder: Path) -> dict[str, str]:
    """Status and reason of every step, from ledger.json."""
    data: Any = json.loads((folder / "planrun-out" / "ledger.json").read_text())
    return {step["id"]: f"{step['status']}/{step['reason']}" for step in data["steps"]}


@pytest.mark.parametrize("action", ["exec: [no-such-program]", "{run: ls, workdir: missing}"])
def test_a_step_that_cannot_start_fails_like_any_other(run: Run, tmp_path: Path, action: str) -> None:
    """Also when nothing else runs: it is `failed(spawn)`, retries and cleanup follow, reports are written."""
    step = action if action.startswith("{") else "{" + action + "}"
    step = step[:-1] + ", id: a, retries: {max: 1, backoff: {initial: 10ms}}}"
    plan = f"version: 1\nsteps:\n  - {step}\nfinally:\n  - {{id: tidy, run: 'true'}}\n"
    done = run("execute", "plan.yml", plan=plan)
    assert done.returncode == 1, done.stderr
    assert ends(tmp_path) == {"a": "failed/spawn", "tidy": "completed/ran"}


@pytest.mark.shows("GP-76")
def test_resume_leaves_what_is_behind_a_tolerated_or_recovered_failure(run: Run, tmp_path: Path) -> None:
    """A publish that ran is not run again because something before it failed and was tolerated."""
    plan = """\
version: 1
steps:
  - {id: lint, run: echo lint >> trace; exit 1, on_failure: continue}
  - {id: test, run: echo test >> trace; exit 1}
  - {id: fix, depends_on: {test: failed}, recovers: [test], run: echo fix >> trace}
  - {id: publish, depends_on: [lint, test], run: echo publish >> trace}
  - {id: notify, depends_on: [publish], run: echo notify >> trace; test -f ok}
"""
    assert run("execute", "plan.yml", plan=plan).returncode == 1
    (tmp_path / "ok").touch()
    assert run("resume", "last").returncode == 0
    lines = (tmp_path / "trace").read_text().split()
    assert sorted(lines) == sorted(["lint", "test", "fix", "publish", "notify", "notify"])


def test_a_second_signal_leaves_no_time_to_cleanup(tmp_path: Path) -> None:
    """Steps that are in their grace time are killed, and `finally` does not start."""
    plan = """\
version: 1
steps:
  - {id: stubborn, run: "trap '' TERM INT; touch up; while :; do sleep 0.1; done"}
finally:
  - {id: slow, run: sleep 30}
"""
    (tmp_path / "plan.yml").write_text(plan)
    with subprocess.Popen(
        [*COMMAND, "execute", "plan.yml"], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as process:
        until((tmp_path / "up").exists, process)
        process.send_signal(signal.SIGTERM)
        # How soon the second one works is for `python -m proofs ending` to say.
        until(lambda: b'"type":"run_ending"' in ledger_of(tmp_path), process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 143
    assert ends(tmp_path) == {"stubborn": "cancelled/cancelled", "slow": "cancelled/cancelled"}


def test_a_step_that_spoils_its_own_files_is_a_failed_step(run: Run, tmp_path: Path) -> None:
    """A folder in the place of the outputs, or the run's folders gone: an exact failure, never a crash."""
    plan = f"""\
version: 1
steps:
  - {{id: a, run: 'mkdir "$PLANRUN_OUTPUT"', on_failure: continue}}
  - {{id: b, run: 'rm -r ".planrun/runs/$PLANRUN_RUN/outputs"', depends_on: a}}
  - id: c
    depends_on: b
    run: |
      true
{"".join(f"      # {'x' * 90}" + chr(10) for _ in range(400))}
"""
    done = run("execute", "plan.yml", plan=plan)
    assert done.returncode == 1, done.stderr
    assert ends(tmp_path) == {"a": "failed/outputs", "b": "completed/ran", "c": "failed/spawn"}
    assert "internal error" not in done.stderr


def test_an_env_file_that_is_a_pipe_is_refused_at_once(run: Run, tmp_path: Path) -> None:
    """A pipe is refused at once; so is a line with text after its closing quote."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bad.env").write_text('A="x" y\n')
    plan = """\
version: 1
steps:
  - {id: a, env_file: pipe, run: 'true', on_failure: continue}
  - {id: b, env_file: bad.env, run: 'true', depends_on: a}
"""
    done = run("execute", "plan.yml", plan=plan)
    assert done.returncode == 1
    assert ends(tmp_path) == {"a": "failed/refused", "b": "failed/refused"}
    assert "env_file pipe: not a regular file" in done.stderr
    assert "env_file bad.env: line 1 has text after its closing quote" in done.stderr


def test_an_impossible_report_folder_is_reported_before_anything_runs(run: Run, tmp_path: Path) -> None:
    """Exit 74 with its name, and no step has run."""
    (tmp_path / "planrun-out").write_text("in the way")
    done = run("execute", "plan.yml", plan="version: 1\nsteps: [{run: touch ran}]\n")
    assert done.returncode == 74
    assert "planrun-out" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_resume_says_when_the_plan_file_has_changed(run: Run, tmp_path: Path) -> None:
    """A resume uses the run's own copy, and reports when the file differs from it."""
    run("execute", "plan.yml", plan="version: 1\nsteps: [{run: exit 1}]\n")
    assert "has changed" not in run("resume", "last").stderr
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{run: exit 0}]\n")
    done = run("resume", "last")
    assert done.returncode == 1
    assert "plan.yml has changed; this run keeps its own copy" in done.stderr


def test_resume_keeps_strictness(run: Run, tmp_path: Path) -> None:
    """--strict of the first command stays in force."""
    plan = "version: 1\nsteps: [{id: a, run: exit 1, on_failure: continue}, {id: b, run: test -f ok}]\n"
    assert run("execute", "plan.yml", "--strict", plan=plan).returncode == 1
    (tmp_path / "ok").touch()
    assert run("resume", "last").returncode == 1
    assert ends(tmp_path) == {"a": "failed/exit", "b": "completed/ran"}


@pytest.mark.shows("GP-76")
def test_what_must_not_be_repeated_is_not_when_its_resume_was_killed(run: Run, tmp_path: Path) -> None:
    """The loss is on record, its step not failed yet when the resume dies: the next one does not run it either."""
    plan = """\
version: 1
steps:
  - {id: once, idempotent: false, on_failure: continue, run: "echo once >> ran; kill -KILL $PPID; sleep 0.2"}
  - {id: after, run: "true"}
"""
    assert run("execute", "plan.yml", "--jobs", "1", plan=plan).returncode == -signal.SIGKILL
    assert run("resume", "last").returncode == 0
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    lines = ledger.read_bytes().splitlines(keepends=True)
    (resumed,) = [place for place, line in enumerate(lines) if b'"type":"run_resumed"' in line]
    ledger.write_bytes(b"".join(lines[: resumed + 1]))
    assert run("resume", "last").returncode == 0
    assert ends(tmp_path) == {"once": "failed/lost", "after": "completed/ran"}
    assert (tmp_path / "ran").read_text() == "once\n"


def test_folders_of_a_run_that_are_gone_are_made_anew(run: Run, tmp_path: Path) -> None:
    """A power cut may take empty folders whose names were not on the disk yet; a resume does without them."""
    plan = """\
version: 1
steps:
  - {id: a, run: "test -e again || { touch again; kill -KILL $PPID; sleep 0.2; }; echo x=1 >> $PLANRUN_OUTPUT",
     outputs: {x: integer}}
"""
    assert run("execute", "plan.yml", plan=plan).returncode == -signal.SIGKILL
    (outputs,) = tmp_path.glob(".planrun/runs/*/outputs")
    for path in (*outputs.iterdir(), outputs):
        path.unlink() if path.is_file() else path.rmdir()
    assert run("resume", "last").returncode == 0
    assert ends(tmp_path) == {"a": "completed/ran"}


def test_a_home_that_was_made_and_nothing_more_is_kept_out_of_version_control(
    run: Run, tmp_path: Path
) -> None:
    """A planrun that died between making its folder and the file in it leaves that to the next one."""
    (tmp_path / ".planrun").mkdir(0o700)
    assert run("execute", "plan.yml", plan="version: 1\nsteps: [{id: a, run: 'true'}]\n").returncode == 0
    assert (tmp_path / ".planrun" / ".gitignore").read_text() == "*\n"


def test_a_long_script_keeps_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A script that goes through a file holds a parameter byte for byte, as a short one does."""
    (tmp_path / "plan.yml").write_text(
        "version: 1\nparams: {x: {type: string, required: true}}\nsteps:\n  - id: a\n    run: |\n"
        f"      # {'x' * 30_000}\n      printf %s ${{{{ params.x | sh }}}} >came\n"
    )
    words = [*map(os.fsencode, COMMAND), b"execute", b"plan.yml", b"--param", b"x=a\xe9b"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=LIMIT, check=False)
    assert (done.returncode, (tmp_path / "came").read_bytes()) == (0, b"a\xe9b"), done.stderr
