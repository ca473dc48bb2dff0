"""What a failed, cancelled or killed run did is undone in the right order, once, and its cleanup comes last.

Each trial is a plan drawn by chance: dependences, rollbacks, failures, and steps, undo steps and `finally` steps that
kill or signal planrun while they run, besides kills at random moments. `planrun finalize` follows until none is killed.
Each step adds lines to a file outside of the records: `>` when it begins, `+` when it is done, `(` and `-` when it is
being undone and is undone, `f` and `F` for the cleanup. From these lines, and the verdicts in the ledger, it is judged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs.trials import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

AT_ONCE = 2
LIMIT = 120.0
"""Seconds for one planrun; only one that hangs needs them."""
MOST = 12
"""Times that finalize is begun; each kill happens once, so there are fewer."""
_DRIVER = "import os\n{fault}from planrun.cli import run\nrun()\n"
FAULTS = {
    "": "",
    # The first thing that was done is undone first.
    "forward": "import planrun.model.rollback as u\nold = u.undoable\n"
    "u._later = lambda waits, wanted: {name: [] for name in wanted}\n"
    "u.undoable = lambda state: old(state)[::-1]\n",
    # What is undone already is owed again.
    "twice": "import planrun.model.rollback as u\nu._is_owed = lambda found: True\n",
    # What failed is undone, whether its rollback is for that or not.
    "all": "import planrun.model.rollback as u\n"
    "u._is_undoable = lambda found: found.step.rollback is not None and found.step.section == 'steps'\n",
    # Nobody cleans up after a kill.
    "no-cleanup": "import planrun.model.rollback as u\nu.owed_cleanup = lambda state: []\n"
    "from planrun.engine.scheduler import Scheduler as S\nold = S.drive\n"
    "S.drive = lambda self, section: None if self.options.cleanup_only and section == 'finally' "
    "else old(self, section)\n",
    # Who catches up goes on with the steps.
    "goes-on": "from planrun.engine.scheduler import Scheduler as S\nold = S._run_section\n"
    "S._run_section = lambda self, section: self.drive(section) if section == 'steps' else old(self, section)\n",
    # An attempt that was lost is made again, whatever the plan says.
    "repeats": "import planrun.app.finalize as f\nf._must_not_repeat = lambda state, name: False\n",
}
"""Faults to plant, as what is run before planrun starts; the empty name is planrun as it is."""


@dataclass(frozen=True)
class Node:
    """A step: `strikes` says what it, its undoing and nothing else does to planrun (KILL, TERM), by `do` and `undo`."""

    name: str
    after: tuple[str, ...]
    fails: bool = False
    rollback: bool = False
    on_failed: bool = False
    repeatable: bool = True
    strikes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Trial:
    """A plan, and when planrun is killed from outside, in seconds after each of its starts; 0: not."""

    number: int
    nodes: tuple[Node, ...]
    jobs: int
    end: str  # what the cleanup does to planrun
    kills: tuple[float, ...]
    fault: str = ""


@dataclass
class Finding:
    """What a trial came to."""

    trial: Trial
    verdict: str = ""
    undone: int = 0
    struck: int = 0
    problems: list[str] = field(default_factory=list)


def carry_out(trial: Trial, folder: Path) -> Finding:
    """Run a trial in a folder that is made for it."""
    workspace = folder / "ws"
    workspace.mkdir(parents=True)
    (workspace / "plan.yml").write_text(_plan(trial, folder), "utf-8")
    finding = Finding(trial)
    words: tuple[str, ...] = ("execute", "plan.yml", "--jobs", str(trial.jobs))
    kills = list(trial.kills)
    for _ in range(MOST):
        code = _planrun(trial, workspace, words, kills.pop(0) if kills else 0.0)
        finding.struck += code == -signal.SIGKILL
        if words[0] == "finalize" and code in (0, 1):
            break
        words = ("finalize", "last")
        if code == 2 and not _lines(folder):
            return finding  # killed before anything was on record
    else:
        finding.problems.append("finalize never came to its end")
    lines = _lines(folder)
    if _planrun(trial, workspace, ("finalize", "last"), 0.0) != 0:
        finding.problems.append("a last finalize has something to do")
    if _lines(folder) != lines:
        finding.problems.append("a last finalize did something")
    if _planrun(trial, workspace, ("verify", "last"), 0.0) != 0:
        finding.problems.append("the ledger is not intact, or has no end")
    report = workspace / "planrun-out" / "ledger.json"
    if not report.exists():
        finding.problems.append("there is no report")
        return finding
    ledger = json.loads(report.read_text("utf-8"))
    finding.verdict = str(ledger["verdict"])
    finding.undone = sum(line.startswith("-") for line in lines)
    finding.problems += _judge(trial, lines, ledger)
    left = _left(workspace)
    if left:
        finding.problems.append(f"still there: {left}")
    return finding


def _plan(trial: Trial, folder: Path) -> str:
    """Return the text of the plan of a trial."""
    rows = ["version: 1", "defaults: {shell: sh}", "steps:"]
    for node in trial.nodes:
        strikes = dict(node.strikes)
        end = "exit 3" if node.fails else "true"
        script = f"{_say(folder, '>', node.name)}{_strike(folder, node.name, strikes.get('do', ''))}"
        script += f"{_say(folder, '+', node.name)}{end}"
        rows += [f"  - id: {node.name}", f"    run: {json.dumps(script)}"]
        rows.append(
            f"    depends_on: {{{', '.join(f'{name}: ok' for name in node.after)}}}" if node.after else ""
        )
        if node.rollback:
            undo = _say(folder, "(", node.name) + _strike(
                folder, f"undo-{node.name}", strikes.get("undo", "")
            )
            undo += _say(folder, "-", node.name)
            rows.append(
                f"    rollback: {{run: {json.dumps(undo)}, on_failed: {json.dumps(node.on_failed)}, "
                f"idempotent: {json.dumps(node.repeatable)}}}"
            )
    cleanup = _say(folder, "f", "end") + _strike(folder, "end", trial.end) + _say(folder, "F", "end")
    rows += ["finally:", "  - id: end", f"    run: {json.dumps(cleanup)}"]
    return "\n".join(row for row in rows if row) + "\n"


def _say(folder: Path, sign: str, name: str) -> str:
    return f"echo '{sign} {name}' >> {folder}/lines; "


def _strike(folder: Path, name: str, sign: str) -> str:
    """Return a command that does this to planrun, once in a trial."""
    if not sign:
        return "sleep 0.0$(( $$ % 5 )); "
    once = folder / f"struck-{name}"
    return f"test -e {once} || {{ touch {once}; kill -{sign} $PPID; sleep 600; }}; "


def _planrun(trial: Trial, workspace: Path, words: Sequence[str], kill: float) -> int:
    """Run planrun to its end or, after `kill` seconds, to its death; returns its exit code."""
    caches = {"PYTHONPATH": str(ROOT), "PLANRUN_CACHE_DIR": str(workspace.parent / "cache")}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _DRIVER.format(fault=FAULTS[trial.fault]), *words],
        cwd=workspace,
        env=os.environ | caches,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(kill or LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait() if kill else 99


def _lines(folder: Path) -> list[str]:
    path = folder / "lines"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _left(workspace: Path) -> list[int]:
    """Return the processes that work in the workspace; those of a killed planrun have some time to end."""
    by = time.monotonic() + 10.0
    found: list[int] = []
    while time.monotonic() < by:
        found = [
            int(path.name)
            for path in Path("/proc").iterdir()
            if path.name.isdigit() and _is_in(path, workspace)
        ]
        if not found:
            break
        time.sleep(0.05)
    return found


def _is_in(path: Path, workspace: Path) -> bool:
    try:
        return os.readlink(path / "cwd") == str(workspace)
    except OSError:
        return False


# What is judged, by rules of its own.


def _judge(trial: Trial, lines: list[str], ledger: dict[str, Any]) -> Iterator[str]:
    steps = {step["id"]: step for step in ledger["steps"]}
    undoing = {step["id"].removeprefix("undo:"): step for step in ledger["rollback"]["steps"]}
    begun = [place for place, line in enumerate(lines) if line[0] == "("]
    first = min(begun, default=len(lines))
    short = any(steps[node.name]["status"] != "completed" for node in trial.nodes)
    for node in trial.nodes:
        yield from _judge_step(node, steps[node.name], undoing.get(node.name), lines, short=short)
    if any(line[0] in ">+" for line in lines[first:]):
        yield "a step ran after undoing had begun"
    for node in trial.nodes:
        for other in _behind(trial, node.name):
            early, late = _places(lines, f"( {node.name}"), _places(lines, f"- {other}")
            if early and late and early[0] < late[-1]:
                yield f"{node.name} was being undone before {other}, which depends on it"
    signs = [sign for node in trial.nodes for _, sign in node.strikes] + [trial.end]
    yield from _judge_end(lines, steps["end"], signalled="TERM" in signs)


def _judge_step(
    node: Node, step: dict[str, Any], undoing: dict[str, Any] | None, lines: list[str], *, short: bool
) -> Iterator[str]:
    began, done = len(_places(lines, f"( {node.name}")), len(_places(lines, f"- {node.name}"))
    ended = step["status"] == "completed" or (node.on_failed and bool(step["attempts"]))
    wanted = short and node.rollback and ended
    if not wanted:
        if began:
            yield f"{node.name}, which ended {step['status']}, was undone"
        return
    if undoing is None:
        yield f"{node.name}, which ended {step['status']}, was not undone"
        return
    broken = sum(attempt["status"] != "completed" for attempt in undoing["attempts"])
    if done > 1 + broken or began > 1 + broken:
        yield f"{node.name} was undone {done} times, begun {began} times, with {broken} attempts broken off"
    if not node.repeatable and began > 1:
        yield f"{node.name} was being undone {began} times, and must not be again"
    if node.repeatable and not done:
        yield f"{node.name} was never undone"
    if (undoing["status"] == "completed") != bool(done) and node.repeatable:
        yield f"undoing {node.name} ended {undoing['status']}, and it was undone {done} times"


def _judge_end(lines: list[str], end: dict[str, Any], *, signalled: bool) -> Iterator[str]:
    begun, done = _places(lines, "f end"), _places(lines, "F end")
    broken = sum(attempt["status"] != "completed" for attempt in end["attempts"])
    if not done or end["status"] != "completed":
        yield f"the cleanup ended {end['status']}"
    if len(begun) > 1 + broken:
        yield f"the cleanup began {len(begun)} times, {broken} times broken off"
    after = lines[done[-1] + 1 :] if done else []
    if any(line[0] in ">+" for line in after) or (after and not signalled):
        yield f"the last thing that happened is {lines[-1]}"  # after a signal undoing has no time before the cleanup


def _places(lines: list[str], line: str) -> list[int]:
    return [place for place, found in enumerate(lines) if found == line]


def _behind(trial: Trial, name: str) -> set[str]:
    """Return all that depends on a step, directly or through others."""
    found = {name}
    for node in trial.nodes:  # in file order, which is one of their dependences
        if found.intersection(node.after):
            found.add(node.name)
    return found - {name}


# Trials.


def draw(count: int, seed: int, fault: str = "") -> list[Trial]:
    """Draw trials by chance."""
    chance = random.Random(seed)
    return [_draw(number, chance, fault) for number in range(count)]


def _draw(number: int, chance: random.Random, fault: str) -> Trial:
    nodes: list[Node] = []
    for place in range(chance.randint(3, 8)):
        after = tuple(node.name for node in nodes if chance.random() < 0.35)
        strikes = {
            "do": chance.choice(("KILL", "TERM")) if chance.random() < 0.1 else "",
            "undo": chance.choice(("KILL", "TERM")) if chance.random() < 0.2 else "",
        }
        nodes.append(
            Node(
                f"s{place}",
                after,
                fails=chance.random() < 0.2,
                rollback=chance.random() < 0.7,
                on_failed=chance.random() < 0.4,
                repeatable=chance.random() < 0.8,
                strikes=tuple((name, sign) for name, sign in strikes.items() if sign),
            )
        )
    end = chance.choice(("KILL", "TERM")) if chance.random() < 0.2 else ""
    kills = tuple(chance.uniform(0.1, 0.6) for _ in range(chance.choice((0, 0, 1, 2))))
    return Trial(number, tuple(nodes), chance.randint(1, 3), end, kills, fault)


def prove(folder: Path, trials: Sequence[Trial], most: int = 10) -> list[Finding]:
    """Carry trials out, some at once, and print what they came to."""
    findings = _all(folder, trials)
    bad = [finding for finding in findings if finding.problems]
    verdicts = {finding.verdict for finding in findings}
    told = ", ".join(
        f"{sum(f.verdict == word for f in findings)} {word or 'never began'}" for word in sorted(verdicts)
    )
    print(
        f"{len(findings)} runs ({told}), {sum(f.struck for f in findings)} kills, "
        f"{sum(f.undone for f in findings)} times something was undone; {len(bad)} runs went wrong"
    )
    for finding in bad[:most]:
        print(f"run {finding.trial.number}:", *finding.problems, sep="\n  ")
    return findings


def _all(folder: Path, trials: Sequence[Trial]) -> list[Finding]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(
            pool.map(lambda trial: carry_out(trial, folder / f"{trial.fault}-{trial.number}"), trials)
        )


def prove_faults(folder: Path, count: int, seed: int) -> bool:
    """Plant each fault; returns whether every one was caught."""
    missed = False
    for fault in filter(None, FAULTS):
        told = [problem for found in _all(folder, draw(count, seed, fault)) for problem in found.problems]
        print(f"planted fault {fault}: {told[0] if told else 'NOT CAUGHT'}")
        missed = missed or not told
    return not missed


def main(words: Sequence[str]) -> int:
    """Run the proof; 1 when a run went wrong or a planted fault was not caught."""
    parser = argparse.ArgumentParser(prog="python -m proofs undo", description=__doc__)
    parser.add_argument("--rounds", type=int, default=150, help="how many runs")
    parser.add_argument(
        "--faults", type=int, default=25, help="how many runs for each planted fault; 0: none"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(words)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="undo-") as name:
        folder = Path(name).resolve()
        print(f"seed {chosen.seed}: ", end="", flush=True)
        findings = prove(folder, draw(chosen.rounds, chosen.seed))
        caught = not chosen.faults or prove_faults(folder, chosen.faults, chosen.seed)
    print(f"{time.monotonic() - began:.0f} s")
    return int(not caught or any(finding.problems for finding in findings))
