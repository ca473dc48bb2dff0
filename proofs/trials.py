"""One trial: a step of one shape, one way to end it, and who is still there afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
SHAPES = (
    "background",
    "setsid",
    "double-fork",
    "ignores-term",
    "fork-storm",
    "holds-the-log",
    "double-term",
    "without-a-trace",
)
ENDS = ("normal", "timeout", "cancel", "kill")
ALLOWED = 3.0
"""Seconds after planrun is gone in which everything else has to be gone, too."""
SECRET = "open-sesame-0815"
"""What is planted around every planrun, and declared where its output is to be masked."""
PATIENT = 60.0
"""The same where it is not to be judged how fast that is, because others use the machine."""
TIMEOUTS = (0.4, 2.0, 10.0)
"""Timeouts in seconds of a step that has to begin before it, each for when the one before was too short."""
LIMIT = 300.0
"""Seconds after which a planrun that should have ended is said to hang."""

FAULTS = {
    "": "",
    "no-guardian": "from planrun.executors.local import Guardian as G\n"
    "G.__init__ = lambda self, *_, **__: setattr(self, '_pid', 0) or setattr(self, '_pipe', os.dup(1))\n",
    "no-marks": "from planrun.executors.mark import Marks as M\nM._try = lambda self: False\n",
    "no-spawned-pids": "from planrun.executors.tree import SpawnedPids as B\nB.since = lambda *_: range(0)\n",
    "one-look": "from planrun.executors.attempt import Attempt as A\n"
    "A._sweep = lambda self, now: (self._sweep_with(15), setattr(self, 'over', True))\n"
    "from planrun.executors.local import LocalExecutor as L\nL._kill_leftovers = lambda *_, **__: None\n",
    "late-sweep": "from planrun.executors.attempt import Attempt as A\n"
    "A._may_have_left_processes = lambda self: False\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""
MASKED = "secrets: [TRIAL_SECRET]\n"
"""A line of a plan that has all output pass through planrun."""
_DRIVER = "import os\n{fault}from planrun.cli import run\nrun()\n"
_PLAN = """\
version: 1
name: escape
{secrets}defaults: {{shell: sh}}
steps:
  - id: shape
    timeout: {timeout}
    exec: [sh, {script}, "{token}", {how}, {ready}]
finally:
  - id: witness
    run: grep -lsF -f token /proc/[0-9]*/cmdline > seen || true
"""


@dataclass(frozen=True)
class Trial:
    """What is tried; `delay`: seconds between the step's start and what ends it."""

    shape: str
    end: str
    number: int
    delay: float
    fault: str = ""
    secrets: str = ""  # a line of the plan

    @property
    def token(self) -> str:
        """How long everybody in this trial sleeps: a number that no other process has in its command line."""
        return f"{86400 + self.number}.{os.getpid():07d}"


@dataclass(frozen=True)
class Finding:
    """What a trial came to.

    `seen`: processes that the next step saw. `survivors`: those who were there when the time was over; `seconds`
    until the last one was gone.
    """

    trial: Trial
    seen: int
    survivors: tuple[int, ...]
    seconds: float
    exit_code: int
    problem: str = ""


def run(trial: Trial, folder: Path, allowed: float = ALLOWED) -> Finding:
    """Make the trial in an empty folder, and leave no process behind, whatever planrun does.

    `allowed`: seconds after planrun is gone in which everybody else has to be gone.
    """
    timeouts = list(TIMEOUTS if trial.end == "timeout" else (3600.0,))
    while True:
        own = folder / str(len(timeouts))
        own.mkdir()
        finding = _run(trial, own, timeouts.pop(0), allowed)
        if not timeouts or (own / "ready").exists():
            return finding


def _run(trial: Trial, folder: Path, timeout: float, allowed: float) -> Finding:
    ready = folder / "ready"
    (folder / "token").write_text(trial.token, "ascii")
    stays = "exit" if trial.end == "normal" else "stay"
    (folder / "plan.yml").write_text(
        _PLAN.format(
            secrets=trial.secrets,
            timeout=f"{timeout:g}s",
            script=HERE / "shapes" / f"{trial.shape}.sh",
            token=trial.token,
            how=stays,
            ready=ready,
        ),
        "utf-8",
    )
    planrun = start(folder, FAULTS[trial.fault])
    try:
        problem = _bring_about(trial, planrun, ready)
        survivors, seconds = _survivors(trial.token, allowed)
    finally:
        planrun.kill()
        planrun.wait()
        for pid in living(trial.token):
            os.kill(pid, signal.SIGKILL)
    problem = problem or _wrong(trial, planrun.returncode)
    return Finding(trial, _seen(folder), survivors, seconds, planrun.returncode, problem)


def start(folder: Path, fault: str = "") -> subprocess.Popen[bytes]:
    """Execute `plan.yml` in a folder, by a planrun of its own."""
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", _DRIVER.format(fault=fault), "execute", "plan.yml"],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "PLANRUN_CACHE_DIR": str(folder / "cache"), "TRIAL_SECRET": SECRET},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def living(token: str) -> list[int]:
    """Return the ids of the processes that name the trial in their command line; zombies have none."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if token.encode() in words:
                found.append(int(name))
    return found


def _bring_about(trial: Trial, planrun: subprocess.Popen[bytes], ready: Path) -> str:
    """Have the step end in the way the trial says; returns what went wrong."""
    limit = time.monotonic() + LIMIT
    while not ready.exists():
        if time.monotonic() > limit or (planrun.poll() is not None and not ready.exists()):
            return "the step never started"
        time.sleep(0.005)
    if trial.end in ("cancel", "kill"):
        time.sleep(trial.delay)
        if trial.end == "cancel":
            planrun.send_signal(signal.SIGTERM)
        elif trial.number % 2:
            planrun.kill()
        else:
            os.killpg(planrun.pid, signal.SIGKILL)  # as a CI system does that knows the group
        if trial.shape == "double-term" and trial.end == "cancel":
            time.sleep(0.2)
            planrun.send_signal(signal.SIGTERM)
    try:
        planrun.wait(LIMIT)
    except subprocess.TimeoutExpired:
        return "planrun did not end"
    return ""


def _seen(folder: Path) -> int:
    witness = folder / "seen"
    return witness.read_text("ascii").count("\n") if witness.exists() else 0


def _survivors(token: str, allowed: float) -> tuple[tuple[int, ...], float]:
    """Wait until nobody is left, or the time is over."""
    began = time.monotonic()
    while found := living(token):
        if time.monotonic() - began > allowed:
            return tuple(found), allowed
        time.sleep(0.02)
    return (), time.monotonic() - began


def _wrong(trial: Trial, code: int) -> str:
    expected = {"normal": 0, "timeout": 1, "cancel": 143, "kill": -signal.SIGKILL}[trial.end]
    return "" if code == expected else f"planrun ended with {code}, not {expected}"
