"""How long the end of a step or of a run may take, and that a timeout that was decided stays one."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import LIMIT, MASKED, start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Measure = Callable[[Path, str], "Measured"]

GRACE = 5.0
"""Seconds between the request to end and SIGKILL."""

_HEAD = "version: 1\nname: ending\ndefaults: {shell: sh}\nsteps:\n"
_DEAF = "trap '' TERM INT; touch ready-{name}; while :; do sleep 0.1; done"


class Measured:
    """One fact of a run in seconds, with what it may be at most, and what is wrong with the rest."""

    def __init__(self, name: str, seconds: float, most: float, problem: str = "") -> None:
        self.name = name
        self.seconds = seconds
        self.most = most
        self.problem = problem

    def __str__(self) -> str:
        verdict = self.problem or ("ok" if self.seconds <= self.most else "TOO LATE")
        return f"{self.name:48} {self.seconds:6.2f} s, at most {self.most:4.1f} s: {verdict}"


def held_log(folder: Path, secrets: str) -> Measured:
    """A background child in a session of its own keeps the log open and hears no request (R2)."""
    events = _run(folder, secrets, "trap '' TERM; setsid sleep 600 & exit 0")
    ended = _end_of(events, "a")
    late = _seconds(events, "a") - ended["duration"]
    noted = ended.get("notes") == ["1 background process ended"]
    return Measured("step's end after its main process, log held", late, 2.5, "" if noted else "no note")


def deaf_timeout(folder: Path, secrets: str) -> Measured:
    """A step that ignores SIGTERM and has one second (R3)."""
    events = _run(folder, secrets, _DEAF.format(name="a"), timeout="1s")
    reason = _end_of(events, "a")["reason"]
    problem = "" if reason == "timeout" else f"reason {reason}"
    return Measured(
        "timeout: 1s of a step that ignores SIGTERM", _seconds(events, "a"), 1 + GRACE + 0.5, problem
    )


def late_success(folder: Path, secrets: str) -> Measured:
    """A step that answers the request to end at its timeout with exit code 0 (R3)."""
    script = "trap 'exit 0' TERM; while :; do sleep 0.1; done"
    events = _run(folder, secrets, script, timeout="1s")
    ended = _end_of(events, "a")
    right = (ended["status"], ended["reason"]) == ("failed", "timeout")
    return Measured(
        "timeout: 1s, then exit 0", _seconds(events, "a"), 1 + GRACE + 0.5, "" if right else str(ended)
    )


def cancelled(folder: Path, secrets: str) -> Measured:
    """One SIGTERM while twenty steps run that ignore it (R4)."""
    return _cancelled(folder, secrets, "SIGTERM with 20 deaf steps, reports included", 7.0, again=False)


def cancelled_twice(folder: Path, secrets: str) -> Measured:
    """A second SIGTERM; the time counts from that one (R4)."""
    return _cancelled(folder, secrets, "second SIGTERM with 20 deaf steps", 1.0, again=True)


MEASURES: tuple[Measure, ...] = (
    held_log,
    deaf_timeout,
    late_success,
    cancelled,
    cancelled_twice,
)


def measure_all(secrets: str) -> list[Measured]:
    """Make every measurement once, each in a folder of its own; `secrets`: a line of each plan, or nothing."""
    found = []
    for measure in MEASURES:
        with tempfile.TemporaryDirectory(prefix="ending-") as folder:
            found.append(measure(Path(folder), secrets))
    return found


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when anything took longer than it may, or ended otherwise."""
    parser = argparse.ArgumentParser(prog="python -m proofs ending", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--masked", action="store_true", help="have all output pass through masks")
    chosen = parser.parse_args(words)
    secrets = MASKED if chosen.masked else ""
    found = [measured for _ in range(chosen.rounds) for measured in measure_all(secrets)]
    worst = [
        max(found[n :: len(MEASURES)], key=lambda one: (one.problem, one.seconds))
        for n in range(len(MEASURES))
    ]
    print(f"the slowest of {chosen.rounds}{', output masked' if secrets else ''}:", *worst, sep="\n")
    return int(any(one.problem or one.seconds > one.most for one in found))


def _run(folder: Path, secrets: str, script: str, timeout: str = "1m") -> list[dict[str, Any]]:
    step = f"  - id: a\n    timeout: {timeout}\n    run: {json.dumps(script)}\n"
    (folder / "plan.yml").write_text(secrets + _HEAD + step, "utf-8")
    start(folder).wait(LIMIT)
    return _events(folder)


def _cancelled(folder: Path, secrets: str, name: str, most: float, *, again: bool) -> Measured:
    steps = [f"  - id: s{n}\n    run: {json.dumps(_DEAF.format(name=n))}\n" for n in range(20)]
    (folder / "plan.yml").write_text(
        secrets + _HEAD.replace("steps:", "limits: {max_parallel: 20}\nsteps:") + "".join(steps), "utf-8"
    )
    planrun = start(folder, "import sys\nsys.argv += ['--jobs', '20']\n")
    limit = time.monotonic() + LIMIT
    while len(list(folder.glob("ready-*"))) < 20 and time.monotonic() < limit:
        time.sleep(0.02)
    began = time.monotonic()
    planrun.send_signal(signal.SIGTERM)
    if again:
        time.sleep(0.3)
        began = time.monotonic()
        planrun.send_signal(signal.SIGTERM)
    try:
        code = planrun.wait(LIMIT)
    except subprocess.TimeoutExpired:
        planrun.kill()
        code = planrun.wait()
    seconds = time.monotonic() - began
    reports = (folder / "planrun-out" / "junit.xml").exists() and _events(folder)[-1]["type"] == "run_ended"
    problem = f"exit code {code}" if code != 128 + signal.SIGTERM else "" if reports else "no reports"
    return Measured(name, seconds, most, problem)


def _events(folder: Path) -> list[dict[str, Any]]:
    (ledger,) = folder.glob(".planrun/runs/*/ledger.jsonl")
    return [json.loads(line) for line in ledger.read_text("utf-8").splitlines()]


def _end_of(events: list[dict[str, Any]], step: str) -> dict[str, Any]:
    (found,) = [event for event in events if event["type"] == "attempt_ended" and event["step"] == step]
    return found


def _seconds(events: list[dict[str, Any]], step: str) -> float:
    """From the attempt's start to its end, as the ledger has them."""
    (begun,) = [event for event in events if event["type"] == "attempt_started" and event["step"] == step]
    times = [datetime.fromisoformat(event["at"]) for event in (begun, _end_of(events, step))]
    return (times[1] - times[0]).total_seconds()
