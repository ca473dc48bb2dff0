"""`planrun execute` started by a queue: its run id is given, and its plan is verified again.

The process of a queued plan: started behind a gate, identifiable by a later runner, and signalled exactly.

A process waits at its gate until the queue's file names it. A runner that is killed in between closes the gate for
good, so no plan runs without an entry in the file, and none twice.
"""

from __future__ import annotations

import os
import subprocess
import sys

from planrun.errors import Denied, InvalidInput
from planrun.executors.scan import signal_exactly, start_time
from planrun.executors.tree import HAS_PROC
from planrun.model.queue import Worker
from planrun.records.lock import holder
from planrun.sha256 import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from planrun.model.plan import Plan
    from planrun.settings import Settings

VARIABLE = "PLANRUN_QUEUED"
"""Gives a queued `planrun execute` its run id and, behind a colon, the SHA-256 of the plan that was queued."""
_DIGITS = frozenset("0123456789abcdef-")


def as_queued(plan: Plan, settings: Settings) -> Settings:
    """Return the settings with the id that the queue chose, and take the variable from what steps inherit.

    Raises Denied when the plan is not the one that was queued: the bytes are those that will be run.
    """
    run, _, wanted = os.environ.pop(VARIABLE, "").partition(":")
    if not run or set(run) - _DIGITS or len(run) > 40:
        raise InvalidInput(f"{VARIABLE} is set by planrun queue run alone")
    if wanted and sha256(plan.source).hexdigest() != wanted:
        raise Denied(f"{plan.file} changed since it was queued")
    return settings.but(run=run)


# The shell becomes planrun and keeps number and moment of birth; at the end of its input it ends.
_GATE = 'read -r word && test "$word" = go && exec "$@" </dev/null'
# Without -P Python would take a planrun.py in the folder of the plan for planrun.
_PLANRUN = (sys.executable, "-P", "-m", "planrun")
_BOOT = "/proc/sys/kernel/random/boot_id"


class Gated:
    """A child that runs an entry once `release` was called."""

    def __init__(self, words: Sequence[str], folder: str, variable: str, output: IO[bytes] | None) -> None:
        env = {name: value for name, value in os.environ.items() if name != VARIABLE}
        if variable:
            env[VARIABLE] = variable
        self.process = subprocess.Popen(
            ["sh", "-c", _GATE, "planrun", *_PLANRUN, *words],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stderr=output,  # progress goes to stderr; stdout is for --json
            start_new_session=True,  # what Ctrl-C sends comes from the runner, once
        )
        self.worker = worker_of(self.process.pid)

    def release(self) -> None:
        """Let it start."""
        self._close(b"go\n")

    def dismiss(self) -> None:
        """End it before it starts."""
        self._close(b"")
        self.process.wait()

    def _close(self, word: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(word)
            self.process.stdin.close()
        except BrokenPipeError:  # it was killed already; its end is handled as any other
            return


def worker_of(pid: int) -> Worker:
    """Return the identity of a process of this machine."""
    return Worker(pid=pid, born=_born(pid), boot=_boot(), host=os.uname().nodename)


def lives(worker: Worker, run: str, folder: str) -> bool:
    """Whether a process still works on a run; for another machine by the lock of the run's folder."""
    if worker.host != os.uname().nodename:
        held = holder(folder)
        return held is not None and held.run == run
    return worker.boot == _boot() and _born(worker.pid) == worker.born


def send_signal(worker: Worker, signum: int) -> None:
    """Signal this process, and no other that got its number since; one of another machine is out of reach."""
    if worker.host != os.uname().nodename or worker.boot != _boot() or _born(worker.pid) != worker.born:
        return
    if HAS_PROC:
        signal_exactly(worker.pid, int(worker.born), signum)
        return
    try:
        os.kill(worker.pid, signum)
    except OSError:
        return


def _boot() -> str:
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:  # not Linux
        return ""


def _born(pid: int) -> str:
    """When a living process began; empty for none, and for one that ended and was not reaped."""
    if HAS_PROC:
        ticks = start_time(pid)
        return str(ticks) if ticks >= 0 else ""
    words = ["ps", "-o", "lstart=,stat=", "-p", str(pid)]
    output = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    moment, _, state = output.rpartition(" ")
    return "" if state.startswith("Z") else " ".join(moment.split())
