"""The read-only verbs beside a run in progress, and after a killed run."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Said

    Say = Callable[..., Said]

LONG = "version: 1\nsteps:\n  - {id: first, run: echo hello}\n  - {id: long, run: exec sleep 60, depends_on: [first]}\n"
LONG += "  - {id: after, run: 'true', depends_on: [long]}\n"


@pytest.fixture
def going(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a long run in the test's folder and wait until its second step runs."""
    (tmp_path / "plan.yml").write_text(LONG)
    words = [sys.executable, "-m", "planrun", "execute", "plan.yml"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        until = time.monotonic() + LIMIT
        while not any(
            b'"step":"long"' in path.read_bytes() for path in tmp_path.glob(".planrun/runs/*/ledger.jsonl")
        ):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        try:
            yield process
        finally:
            process.kill()


def test_a_run_in_progress_is_running(say: Say, going: subprocess.Popen[bytes]) -> None:
    """While a run is in progress, it is `running` in every verb, and its report can be made."""
    said = say("status")
    assert said.out.startswith('Plan v1: "plan" [Running]\n[######..............] 1/3  run ')
    assert "    it waits for long, which is running\n" in said.out
    assert said.out.endswith("\nnext: after\n")
    assert json.loads(say("runs", "--json").out)["runs"][0]["status"] == "running"
    assert say("report").code == 0
    assert "unfinished" in say("verify").out
    assert "  it waits for long, which is running\n" in say("explain", "last", "after").out
    assert going.poll() is None


def test_half_a_line_of_a_run_in_progress_is_being_written(
    say: Say, going: subprocess.Popen[bytes], kill: Callable[[], None], tmp_path: Path
) -> None:
    """A reader beside the writer may see half of the last line: it is torn only once no process writes it."""
    going.send_signal(
        signal.SIGSTOP
    )  # else it may notice that another process wrote into its ledger, and end
    os.waitpid(going.pid, os.WUNTRACED)
    (ledger,) = tmp_path.glob(".planrun/runs/*/ledger.jsonl")
    with ledger.open("ab") as file:
        file.write(b'{"seq":7,"type":"att')
    assert say("status").out.startswith('Plan v1: "plan" [Running]\n')
    assert say("report").err == ""
    assert "unfinished" in say("verify").out
    assert json.loads(say("runs", "--json").out)["runs"][0]["status"] == "running"
    kill()
    assert "torn" in say("verify").out
    assert json.loads(say("runs", "--json").out)["runs"][0]["status"] == "torn"


@pytest.fixture
def kill(going: subprocess.Popen[bytes], tmp_path: Path) -> Callable[[], None]:
    """Return what kills the run; then the workspace is free: a child that is being spawned has the lock, too."""

    def kill() -> None:
        os.kill(going.pid, signal.SIGKILL)
        going.wait()
        fd = os.open(tmp_path / ".planrun" / "lock", os.O_RDONLY)
        until = time.monotonic() + LIMIT
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    assert time.monotonic() < until
                    time.sleep(0.005)
                else:
                    return
        finally:
            os.close(fd)

    return kill


@pytest.mark.shows("GP-75")
def test_a_run_that_was_killed_is_unfinished(say: Say, kill: Callable[[], None]) -> None:
    """After kill -9 it is `unfinished` at once, and each verb says how to go on."""
    kill()
    assert say("status").out.startswith('Plan v1: "plan" [Unfinished]\n')
    assert json.loads(say("runs", "--json").out)["runs"][0]["status"] == "unfinished"
    assert (
        "  the run was killed while it ran; `planrun resume` runs it again\n"
        in say("explain", "last", "long").out
    )
    assert "  the run has stopped; to continue: planrun resume " in say("explain", "last", "after").out
    suite = ET.fromstring(say("report", "--format", "junit").out.encode())
    assert suite.get("errors") == "1"
