"""`planrun logs`: the output of steps after a run."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

PLAN = r"""
version: 1
limits: {max_parallel: 1}
steps:
  - id: lint
    run: printf 'a \033[31mred\033[0m word\n10%%\r100%%\n\033]0;title\007::error::no\nno end'
  - id: test
    matrix: {py: ["3.11", "3.12"]}
    run: echo "on ${{ matrix.py }}, try $PLANRUN_ATTEMPT"; test "${{ matrix.py }}" = 3.11
    retries: {max: 1, backoff: {initial: 1ms}}
    on_failure: continue
  - {id: silent, run: "true"}
  - {id: never, run: echo never, condition: run.ci}
  - {id: checked, run: echo made, verify: [echo verified]}
"""


@pytest.fixture
def ran(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run the plan in the test's folder and return the folder of its run."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "plan.yml").write_text(PLAN)
    say("execute", "plan.yml", "--auto-approve", "high")
    (folder,) = (tmp_path / ".planrun" / "runs").iterdir()
    return folder


def raw(*words: str) -> bytes:
    """Return what `planrun logs` writes into a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "planrun", "logs", *words], capture_output=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_terminal(*words: str) -> str:
    """Return what `planrun logs` writes to a terminal."""
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm"}
    environ.pop("NO_COLOR", None)
    with subprocess.Popen(
        [sys.executable, "-m", "planrun", "logs", *words], stdout=theirs, stderr=theirs, env=environ
    ) as process:
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            parts.append(part)
        process.wait(LIMIT)
    os.close(ours)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.usefixtures("ran")
def test_in_a_pipe_each_line_has_its_step_before_it(say: Say) -> None:
    """The logs come in the order of their start, the last attempt of each step, cleaned, behind aligned prefixes."""
    said = say("logs")
    assert "test[py=3.12] | on 3.12, try 2\n" in said.out
    assert "test[py=3.11] | on 3.11, try 1\n" in said.out
    assert "checked       | made\nchecked       | verified\n" in said.out
    assert "on 3.12, try 1" not in said.out
    assert (
        "lint          | a red word\nlint          | 100%\nlint          | : :error::no\nlint          | no end\n"
        in said.out
    )
    assert said.code == 0


def test_one_step_in_a_pipe_is_written_byte_for_byte(ran: Path) -> None:
    """The log of one step goes into a pipe as it was logged."""
    assert raw("lint") == (ran / "logs" / "lint" / "1.log").read_bytes()
    assert raw("last", "lint") == raw(ran.name[:15], "lint")


@pytest.mark.usefixtures("ran")
def test_on_a_terminal_steps_have_headings_and_keep_their_colours() -> None:
    """On a terminal a heading names each step and how it ended; all control sequences but colours are removed."""
    shown = on_terminal()
    assert "── test[py=3.12] (attempt 2, failed: exit 1, 0.0s) ──" in shown
    assert "a \x1b[31mred\x1b[0m word\n100%\n" in shown
    assert "\x1b]" not in shown
    assert on_terminal("lint") == "a \x1b[31mred\x1b[0m word\n100%\n: :error::no\nno end\n"


@pytest.mark.usefixtures("ran")
def test_a_group_stands_for_its_members(say: Say) -> None:
    """The id of a matrix prints all instances, the id of one instance that one, and --attempt an earlier attempt."""
    assert say("logs", "test", "--no-prefix").out == "on 3.11, try 1\non 3.12, try 2\n"
    assert say("logs", "last", "test[py=3.12]", "--attempt", "1").out == "on 3.12, try 1\n"
    assert say("logs", "--failed").out == "on 3.12, try 2\n"


@pytest.mark.usefixtures("ran")
def test_head_and_tail_count_lines(say: Say) -> None:
    """--head and --tail print so many lines of each log; a last line without an end is one."""
    assert say("logs", "lint", "--tail", "1").out == "no end"
    assert say("logs", "checked", "--tail", "1").out == "made\nverified\n"
    assert say("logs", "lint", "--head", "1").out == "a \x1b[31mred\x1b[0m word\n"
    assert say("logs", "lint", "--head", "0").out == ""
    refused = say("logs", "--head", "1", "--tail", "1")
    assert (refused.code, refused.err) == (2, "planrun: error: --head and --tail exclude each other\n")


@pytest.mark.usefixtures("ran")
def test_what_has_no_log_is_explained(say: Say) -> None:
    """For a step without a log stderr says why, and an unknown step names the nearest and those with logs."""
    said = say("logs", "never", "silent")
    assert said == (
        0,
        "",
        (
            "planrun: never has no log: it was skipped: its condition is false: run.ci\n"
            "planrun: silent has no log: it printed nothing\n"
        ),
    )
    unknown = say("logs", "tset")
    assert unknown.code == 2
    run = json.loads(say("runs", "--json").out)["runs"][0]["run"]
    assert unknown.err.startswith(
        f'planrun: error: no step "tset" in run {run}; did you mean "test"?\n  steps with logs: '
    )
    assert "silent" not in unknown.err
    assert (
        say("logs", "checked", "--attempt", "3").err == "planrun: checked has no attempt 3; its last is 1\n"
    )
    assert say("logs", "checked", "--failed").err == "planrun: checked has not failed\n"


def test_a_removed_log_is_reported(say: Say, ran: Path) -> None:
    """A log that had content and is gone is an error that names it; the others are printed."""
    (ran / "logs" / "lint" / "1.log").unlink()
    said = say("logs", "lint", "checked", "--no-prefix")
    assert (said.code, said.out) == (1, "made\nverified\n")
    assert said.err == f"planrun: the log of lint is gone: {ran}/logs/lint/1.log was removed\n"


@pytest.mark.usefixtures("ran")
def test_an_unknown_run_may_have_been_pruned(say: Say) -> None:
    """A word in the form of a run's id is a run, and a missing one may have been deleted by `prune`."""
    said = say("logs", "20200131-093000-1f2e3d", "lint")
    assert said.code == 2
    assert said.err.endswith("; `planrun prune` deletes runs with their logs\n")


@pytest.mark.usefixtures("ran")
def test_json_has_one_document_a_line(say: Say) -> None:
    """--json: where a log begins, its lines as they were logged, and how the attempt ended."""
    found = [json.loads(row) for row in say("logs", "lint", "--json").out.splitlines()]
    assert [each["type"] for each in found] == ["log", *["line"] * 4, "end"]
    assert found[1]["text"] == "a \x1b[31mred\x1b[0m word"
    assert (found[-1]["status"], found[-1]["exit_code"], found[-1]["attempt"]) == ("completed", 0, 1)


def test_a_reader_that_ends_ends_it(say: Say, tmp_path: Path) -> None:
    """A large log is not read to its end when its reader is gone, and nothing is complained of."""
    (tmp_path / "plan.yml").write_text("version: 1\nsteps: [{id: big, run: seq 3000000}]\n")
    say("execute", "plan.yml")
    words = f"{sys.executable} -m planrun logs big | head -n 2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n2\n", "", 141)
    assert say("logs", "big", "-n", "2").out == "2999999\n3000000\n"
    prefixed = say("logs", "big").out
    assert prefixed.endswith("\n3000000\n")


def test_secrets_are_masked(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is masked, since the log is."""
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    (tmp_path / "plan.yml").write_text(
        "version: 1\nsecrets: [TOKEN]\nsteps: [{id: login, run: 'echo token=$TOKEN', secrets: [TOKEN]}]\n"
    )
    say("execute", "plan.yml", "--auto-approve", "high")
    assert say("logs", "login").out == "token=***\n"


def test_completion_offers_runs_and_steps(ran: Path) -> None:
    """The first word is completed to a run or a step of the last run, later ones to steps."""

    def offered(words: str, count: int) -> list[str]:
        environ = {
            **os.environ,
            "_PLANRUN_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(count),
        }
        done = subprocess.run(
            [sys.executable, "-m", "planrun"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        return [row.partition(",")[2] for row in done.stdout.splitlines()]

    assert offered("planrun logs la", 2) == ["last"]
    assert offered("planrun logs li", 2) == ["lint"]
    assert offered("planrun logs 2", 2) == [ran.name]
    assert offered("planrun logs last chec", 3) == ["checked"]
