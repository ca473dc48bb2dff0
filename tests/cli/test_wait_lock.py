"""`--wait-lock`: a run that waits for another one in the same folder, by the installed command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PLAN = """\
version: 1
defaults: {shell: sh}
steps:
  - run: "touch began; until test -e go; do sleep 0.02; done"
"""
COMMAND = Path(sys.executable).with_name("planrun")
LIMIT = 60


@contextmanager
def holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Have a run hold the folder until `go` is there."""
    (folder / "plan.yml").write_text(PLAN, "utf-8")
    holder = start(folder)
    try:
        wait_for(folder / "began")
        yield holder
    finally:
        (folder / "go").touch()
        holder.communicate(timeout=LIMIT)


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    """Execute the plan in a folder."""
    return subprocess.Popen(
        [COMMAND, "execute", "plan.yml", *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("PLANRUN_")}
        | {"PLANRUN_CACHE_DIR": str(folder / "cache")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(path: Path) -> None:
    """Wait until there is such a file."""
    limit = time.monotonic() + LIMIT
    while not path.exists():
        assert time.monotonic() < limit, path
        time.sleep(0.01)


def test_it_waits_and_then_runs(tmp_path: Path) -> None:
    """It says once on stderr for whom it waits, and runs when the other one has ended."""
    with holding(tmp_path) as holder:
        waiter = start(tmp_path, "--wait-lock", "5m")
        assert waiter.stderr is not None
        said = waiter.stderr.readline()
        assert said.startswith("planrun: waiting up to 5m for this workspace: run 2")
        assert f"process {holder.pid} on {os.uname().nodename}, since " in said
        (tmp_path / "go").touch()
        _, errors = waiter.communicate(timeout=LIMIT)
    assert (holder.returncode, waiter.returncode) == (0, 0)
    assert "waiting" not in errors
    assert len(list((tmp_path / ".planrun" / "runs").iterdir())) == 2


def test_a_wait_that_was_in_vain_names_the_holder(tmp_path: Path) -> None:
    """When the time is over the exit code is that of a run that does not wait, and nothing was made."""
    with holding(tmp_path) as holder:
        waiter = start(tmp_path, "--wait-lock=200ms")
        _, errors = waiter.communicate(timeout=LIMIT)
        assert waiter.returncode == 2
        assert "error: another run has held this workspace for 200ms: run 2" in errors
        assert f"process {holder.pid} on" in errors
        assert len(list((tmp_path / ".planrun" / "runs").iterdir())) == 1


def test_a_run_that_does_not_wait_is_told_what_it_can_do(tmp_path: Path) -> None:
    """The refusal names the holder, then the commands that wait for it, watch it and end it; the last one works."""
    with holding(tmp_path) as holder:
        refused = start(tmp_path)
        _, errors = refused.communicate(timeout=LIMIT)
        (run,) = (each.name for each in (tmp_path / ".planrun" / "runs").iterdir())
        assert refused.returncode == 2
        assert errors.splitlines()[1:] == [
            "  to wait for it: --wait-lock 10m",
            f"  to watch it: planrun logs {run} --follow",
            f"  to end it: planrun cancel {run}",
        ]
        cancel = [str(COMMAND), "cancel", run]
        assert (
            subprocess.run(cancel, cwd=tmp_path, check=False, timeout=LIMIT, capture_output=True).returncode
            == 0
        )
        assert holder.wait(LIMIT) != 0


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait(tmp_path: Path, signum: signal.Signals) -> None:
    """A waiting command can be ended, with the exit code of the signal; nothing was made."""
    with holding(tmp_path):
        waiter = start(tmp_path, "--wait-lock", "1h")
        assert waiter.stderr is not None
        assert waiter.stderr.readline().startswith("planrun: waiting")
        waiter.send_signal(signum)
        _, errors = waiter.communicate(timeout=LIMIT)
        assert waiter.returncode == 128 + signum
        assert (
            errors
            == f"planrun: error: ended by {signum.name} while it waited for this workspace; nothing ran\n"
        )
        assert len(list((tmp_path / ".planrun" / "runs").iterdir())) == 1


def test_a_pause_does_not_end_the_wait(tmp_path: Path) -> None:
    """There is no run yet that could be paused: the signal has no effect, and the wait continues."""
    with holding(tmp_path):
        waiter = start(tmp_path, "--wait-lock", "5m")
        assert waiter.stderr is not None
        assert waiter.stderr.readline().startswith("planrun: waiting")
        waiter.send_signal(signal.SIGUSR1)
        (tmp_path / "go").touch()
        _, errors = waiter.communicate(timeout=LIMIT)
    assert (waiter.returncode, "SIGUSR1" in errors) == (0, False)


def test_a_wait_needs_a_unit(tmp_path: Path) -> None:
    """What is no duration is refused before anything is looked at."""
    waiter = start(tmp_path, "--wait-lock", "10")
    _, errors = waiter.communicate(timeout=LIMIT)
    assert (waiter.returncode, errors) == (
        2,
        'planrun: error: --wait-lock takes a duration such as 30s, 5m or 1h30m, not "10"\n',
    )
