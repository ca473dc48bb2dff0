"""A run that a model plans anew survives being killed anywhere, and what had finished before is never run again.

Two parts. Kills: `kill -9` at random moments of a run, the seconds in which the model thinks included, then a resume.
Places: a failure injected at each step of a chain in turn. The service is a real server on loopback that answers with
delays, planrun and its model process are the real ones. Every step adds a line to a file, and from that, the ledger and
its copies of the plan it is judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planrun.app.copies import state_of
from planrun.records.reading import read_ledger
from tests.fakes.messages import FakeMessages, draft
from tests.fakes.messages.replies import as_reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fakes.messages import Asked, Reply

ROOT = Path(__file__).parents[1]
LIMIT = 300.0
THINKS = 0.6  # seconds before the service answers
STEPS = 6
FAULTS = {
    "": "",
    "no-copy": "from planrun.records import inputs as keeping\nkeeping.add_plan = lambda *_: None\n",
    "runs-again": "from planrun.app.rerun import RerunPlan as R\n"
    "R._unfinished = lambda self, found: 'again' if found.status == 'completed' else ''\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""
_DRIVER = "import os\n{fault}from planrun.cli import run\nrun()\n"


@dataclass(frozen=True)
class Finding:
    """What one trial came to; `moment`: what the last event before the kill was, or which step failed."""

    moment: str
    problems: tuple[str, ...]


def plan(broken: int, steps: int = STEPS) -> str:
    """Return a chain of steps of which one fails fatally; the last one stands for cleanup."""
    rows = [
        f"  - {{id: {n}, {f'depends_on: [{n - 1}], ' if n > 1 else ''}"
        f"run: echo {n} >> ran; sleep 0.05{'; echo Permission denied; exit 77' if n == broken else ''}}}\n"
        for n in range(1, steps + 1)
    ]
    return f"version: 1\nllm: {{model: model-a}}\nsteps:\n{''.join(rows)}finally:\n  - {{id: 99, run: echo end}}\n"


def model(asked: Asked) -> Reply:
    """Replace what failed, keep what is pending: computed from the question, as a model would."""
    failed = json.loads(_found(r"^failed: (\[.*\])$", asked))
    pending = json.loads(_found(r"^pending: (\[.*\])$", asked))
    first = int(_found(r"numbers from (\d+) on", asked))
    before = [str(int(name) - 1) for name in failed if int(name) > 1]
    step = {
        **dict.fromkeys(("title", "description", "condition", "review"), ""),
        "id": str(first),
        "run": f"echo {first} >> ran",
        "outputs": [],
        "estimated_tokens": 0,
        "depends_on": before,
        "replaces": failed,
    }
    return as_reply(draft([step], "It failed.", keep=pending)).but(first_byte=THINKS)


def _found(pattern: str, asked: Asked) -> str:
    match = re.search(pattern, asked.user, re.MULTILINE)
    assert match, asked.user
    return match[1]


class Scene:
    """A folder with a plan in it, and the planrun that works there."""

    def __init__(self, folder: Path, broken: int, env: dict[str, str], fault: str = "") -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "plan.yml").write_text(plan(broken), "utf-8")
        self._env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PLANRUN_CACHE_DIR": str(folder.parent / "cache"),
            **env,
        }
        self._driver = _DRIVER.format(fault=FAULTS[fault])

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start planrun in a session of its own."""
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                [sys.executable, "-c", self._driver, *words],
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )

    def planrun(self, *words: str) -> int:
        """Run planrun to its end."""
        return self.start(*words).wait(LIMIT)

    @property
    def ran(self) -> Counter[str]:
        """How often each step ran."""
        path = self.folder / "ran"
        return Counter(path.read_text("ascii").split()) if path.exists() else Counter()

    @property
    def ledger(self) -> list[bytes]:
        """The whole lines of the ledger."""
        paths = list((self.folder / ".planrun" / "runs").glob("*/ledger.jsonl"))
        data = paths[0].read_bytes() if paths else b""
        return data[: data.rfind(b"\n") + 1].splitlines(keepends=True)

    def ends(self) -> dict[str, str]:
        """Status and reason of every step, and the versions of the plan, from the ledger and its copies."""
        rundir = next((self.folder / ".planrun" / "runs").iterdir())
        state = state_of(str(rundir), read_ledger(str(rundir / "ledger.jsonl")))
        found = {name: f"{step.status}({step.reason})" for name, step in state.steps.items()}
        return found | {"versions": str(len(state.versions)), "verdict": state.verdict()}


def judge(scene: Scene, before: Sequence[bytes], ran: Counter[str], wanted: dict[str, str]) -> list[str]:
    """Say what a resumed run did wrong; `before` and `ran` are what there was at the kill."""
    problems = []
    events = [json.loads(row) for row in before]
    done = {
        event["step"]
        for event in events
        if event["type"] == "attempt_ended" and event["status"] == "completed" and event["step"] != "99"
    }
    problems += [
        f"{name} had finished and ran again" for name in sorted(done) if scene.ran[name] != ran[name]
    ]
    if any(event["type"] == "planning_ended" and event["outcome"] == "revised" for event in events):
        problems += [f"{name} was replaced and ran again" for name in ("3",) if scene.ran[name] != ran[name]]
    if scene.ledger[: len(before)] != list(before):
        problems.append("events that were on record are lost")
    if scene.planrun("verify", "last"):
        problems.append("the ledger is not whole")
    try:
        found = scene.ends()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        return [*problems, f"the records cannot be read: {error}"]
    problems += [
        f"{name} is {found.get(name)}, not {wanted[name]}"
        for name in wanted
        if found.get(name) != wanted[name]
    ]
    return problems


def kill(scene: Scene, when: float | str, wanted: dict[str, str]) -> Finding:
    """Kill a run after so many seconds, or behind an event of a type, and have it go on."""
    going = scene.start("execute", "plan.yml")
    if isinstance(when, float):
        time.sleep(when)
    else:
        limit = time.monotonic() + LIMIT
        while not any(f'"{when}"'.encode() in row for row in scene.ledger) and time.monotonic() < limit:
            time.sleep(0.01)
    going.kill()
    going.wait()
    before, ran = scene.ledger, scene.ran
    moment = json.loads(before[-1])["type"] if before else "nothing yet"
    code = scene.planrun("resume", "last") if before else scene.planrun("execute", "plan.yml")
    problems = judge(scene, before, ran, wanted)
    if code:
        problems.append(f"the resume ended with {code}")
    return Finding(moment, tuple(problems))


def fail_at(folder: Path, place: int, env: dict[str, str], fault: str = "") -> Finding:
    """Have one step of the chain fail; whatever is before it runs once, and so does whatever is behind."""
    scene = Scene(folder, place, env, fault)
    code = scene.planrun("execute", "plan.yml")
    wanted = Counter({str(n): 1 for n in [*range(1, STEPS + 1), 100]})
    problems = [f"planrun ended with {code}"] if code else []
    if scene.ran != wanted:
        problems.append(f"ran {dict(scene.ran)}")
    if scene.planrun("verify", "last"):
        problems.append("the ledger is not whole")
    return Finding(f"step {place}", tuple(problems))


def prove(moments: Sequence[float | str], places: Sequence[int], fault: str = "") -> list[Finding]:
    """Carry out all trials and return what each came to.

    `moments`: when runs are killed, as parts of the time that an undisturbed one takes, or as types of events.
    """
    folder = Path(tempfile.mkdtemp(prefix="replans-"))
    findings: list[Finding] = []
    try:
        with FakeMessages(model) as api:
            env: dict[str, Any] = dict(api.env)
            calm = Scene(folder / "calm", 3, env)
            began = time.monotonic()
            if calm.planrun("execute", "plan.yml"):
                return [Finding("undisturbed", ((calm.folder / "said").read_text("utf-8"),))]
            seconds = time.monotonic() - began
            wanted = calm.ends()
            findings += [fail_at(folder / f"place{place}", place, env, fault) for place in places]
            for number, moment in enumerate(moments):
                when = moment * seconds if isinstance(moment, float) else moment
                findings.append(kill(Scene(folder / f"kill{number}", 3, env, fault), when, wanted))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return findings


def main(words: Sequence[str]) -> int:
    """Print what was tried and found; 1 when anything was."""
    parser = argparse.ArgumentParser(prog="replans", description=__doc__)
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--fault", choices=sorted(FAULTS), default="")
    asked = parser.parse_args(words)
    chance = random.Random(asked.seed)
    # One in each part of the run, anywhere in it.
    moments = [(number + chance.random()) / asked.kills for number in range(asked.kills)]
    findings = prove(moments, range(1, STEPS + 1), asked.fault)
    bad = [found for found in findings if found.problems]
    for found in bad:
        print(f"{found.moment}: {'; '.join(found.problems)}")
    tried = Counter(found.moment for found in findings)
    print(f"seed {asked.seed}: {len(findings)} runs that were planned anew, {len(bad)} with a problem")
    print(
        "killed behind, or failed at: "
        + ", ".join(f"{name} {count}" for name, count in sorted(tried.items()))
    )
    return 1 if bad else 0
